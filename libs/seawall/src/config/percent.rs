//! Shares.

use std::fmt;

use super::Problems;

/// A share in percent. Checked when what it belongs to is built.
///
/// A number strictly between 0 and 1 may be a share of one or a percentage, and nobody knows which, so it is refused there,
/// as it is in a file. [`Percent::exact`] says that less than one percent is meant.
///
/// ```
/// use seawall::{Breaker, Percent};
/// let error = Breaker::failure_rate(0.5).build().unwrap_err();
/// assert!(error.to_string().contains("write 50, or `Percent::exact(0.5)`"));
/// assert!(Breaker::failure_rate(50).build().is_ok());
/// assert!(Breaker::failure_rate(Percent::exact(0.5)).build().is_ok());
/// ```
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Percent {
    percent: f64,
    /// Whether it may as well be meant as a share of one.
    is_doubtful: bool,
}

impl Percent {
    /// This many percent, also if that is less than one: 0.5 is half a percent.
    #[must_use]
    pub const fn exact(percent: f64) -> Self {
        Percent { percent, is_doubtful: false }
    }

    /// Refuses a share of which nobody knows what is meant, and one that is not `within` what its owner allows.
    pub(crate) fn check(
        self,
        path: &'static str,
        problems: &mut Problems,
        within: impl FnOnce(Percent) -> bool,
        reason: impl FnOnce() -> String,
    ) {
        if self.is_doubtful {
            // Rounded to the millionths in which shares are counted: 0.07 is 7, not 7.000000000000001.
            let (percent, meant) = (self.percent, (self.percent * 1e8).round() / 1e6);
            let text = format!(
                "{percent} is less than one percent: write {meant}, or `Percent::exact({percent})` if {percent} % is meant"
            );
            problems.add(path, text);
        } else {
            problems.refuse_if(!within(self), path, reason);
        }
    }

    /// The share in millionths, in which the machines count.
    pub(crate) fn millionths(self) -> u64 {
        (self.percent * 10_000.0).round() as u64
    }

    pub(crate) fn is_share(self) -> bool {
        (0.0..=100.0).contains(&self.percent)
    }
}

impl From<u8> for Percent {
    fn from(percent: u8) -> Self {
        Percent::exact(f64::from(percent))
    }
}

impl From<i32> for Percent {
    fn from(percent: i32) -> Self {
        Percent::exact(f64::from(percent))
    }
}

impl From<f64> for Percent {
    fn from(percent: f64) -> Self {
        Percent { percent, is_doubtful: percent > 0.0 && percent < 1.0 }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.percent)
    }
}
