//! Shares.

use std::fmt;

/// A share in percent. Checked when what it belongs to is built.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Percent(f64);

impl Percent {
    /// The share in millionths, in which the machines count.
    pub(crate) fn millionths(self) -> u64 {
        (self.0 * 10_000.0).round() as u64
    }

    pub(crate) fn is_share(self) -> bool {
        (0.0..=100.0).contains(&self.0)
    }
}

impl From<u8> for Percent {
    fn from(percent: u8) -> Self {
        Percent(f64::from(percent))
    }
}

impl From<i32> for Percent {
    fn from(percent: i32) -> Self {
        Percent(f64::from(percent))
    }
}

impl From<f64> for Percent {
    fn from(percent: f64) -> Self {
        Percent(percent)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}
