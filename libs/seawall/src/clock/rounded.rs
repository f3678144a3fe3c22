//! Durations as a person reads them.

use std::fmt;
use std::time::Duration;

/// A duration with two or three digits that matter: `4.7s`, `31s`, `250ms`, `12µs`.
///
/// Nine digits of a wait help nobody who reads a log line, and hide that it is about five seconds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rounded(pub(crate) Duration);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        // Rounding may reach the next unit, so each bound lies half a digit below it.
        if seconds >= 9.95 {
            write!(f, "{seconds:.0}s")
        } else if seconds >= 0.9995 {
            write!(f, "{}s", (seconds * 10.0).round() / 10.0)
        } else if seconds >= 0.000_999_5 {
            write!(f, "{:.0}ms", seconds * 1e3)
        } else if seconds >= 0.000_000_999_5 {
            write!(f, "{:.0}µs", seconds * 1e6)
        } else if self.0.is_zero() {
            f.write_str("0s")
        } else {
            write!(f, "{}ns", self.0.as_nanos())
        }
    }
}

impl fmt::Debug for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ENG-11: times in texts have as many digits as a reader needs.
    #[test]
    fn eng_11_durations_are_rounded_for_readers() {
        let text = |nanos: u64| Rounded(Duration::from_nanos(nanos)).to_string();
        assert_eq!(text(4_739_563_520), "4.7s");
        assert_eq!(text(5_000_000_000), "5s");
        assert_eq!(text(29_213_327_360), "29s");
        assert_eq!(text(9_960_000_000), "10s");
        assert_eq!(text(999_700_000), "1s");
        assert_eq!(text(250_400_000), "250ms");
        assert_eq!(text(999_600), "1ms");
        assert_eq!(text(12_400), "12µs");
        assert_eq!(text(12), "12ns");
        assert_eq!(text(0), "0s");
        assert_eq!(Rounded(Duration::MAX).to_string().len(), 21);
    }
}
