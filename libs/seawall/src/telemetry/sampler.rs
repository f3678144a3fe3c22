//! How much is written, and how.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Tick;

/// A time as it stands in a line: `12ms`, and below ten `3.25ms`.
#[derive(Clone, Copy, Debug)]
pub struct Millis(pub Duration);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_secs_f64() * 1e3;
        let digits = if millis < 10.0 && millis != 0.0 { 2 } else { 0 };
        write!(f, "{millis:.digits$}ms")
    }
}

/// A name as part of a line: what would end the line, or command a terminal, is escaped. Keys come from outside.
pub(super) struct OneLine<'a>(pub(super) &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends_it = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
        let mut rest = self.0;
        while let Some((at, c)) = rest.char_indices().find(|&(_, c)| ends_it(c)) {
            write!(f, "{}{}", &rest[..at], c.escape_default())?;
            rest = &rest[at + c.len_utf8()..];
        }
        f.write_str(rest)
    }
}

/// Lets so many pass in a second, for whoever writes lines in a loop. Exact without a lock: second and count are one word.
#[derive(Debug)]
pub struct Sampler {
    per_second: u32,
    /// The second (32 bits) and how many passed in it.
    word: AtomicU64,
    suppressed: AtomicU64,
}

impl Sampler {
    /// Lets so many pass in a second.
    #[must_use]
    pub fn new(per_second: u32) -> Self {
        Sampler { per_second, word: AtomicU64::new(u64::MAX << 32), suppressed: AtomicU64::new(0) }
    }

    /// Whether it may pass, and then how many did not since the last one that did, if any.
    pub fn pass(&self, now: Tick) -> Option<Option<u64>> {
        let second = (now.as_nanos() / 1_000_000_000) & 0xFFFF_FFFF;
        let taken = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            let passed = if word >> 32 == second { word & 0xFFFF_FFFF } else { 0 };
            (passed < u64::from(self.per_second)).then_some(second << 32 | (passed + 1))
        });
        if taken.is_err() {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(Some(self.suppressed.swap(0, Ordering::Relaxed)).filter(|&suppressed| suppressed > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obs_1_a_sampler_lets_so_many_pass_in_a_second_and_says_what_it_kept_back() {
        let sampler = Sampler::new(2);
        let passes =
            [7, 7, 7, 7, 8, 8, 8, 9].map(|second| sampler.pass(Tick::from_nanos(second * 1_000_000_000)));
        assert_eq!(
            passes,
            [Some(None), Some(None), None, None, Some(Some(2)), Some(None), None, Some(Some(1))]
        );
        assert_eq!(Sampler::new(0).pass(Tick::from_nanos(1)), None);
    }

    #[test]
    fn obs_1_durations_are_milliseconds() {
        let text = |micros| Millis(Duration::from_micros(micros)).to_string();
        assert_eq!([0, 3_254, 12_700, 61_000_000].map(text), ["0ms", "3.25ms", "13ms", "61000ms"]);
    }
}
