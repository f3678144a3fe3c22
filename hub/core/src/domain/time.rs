//! Points in time that outlive a process.

use std::ops::Add;
use std::time::Duration;

/// Milliseconds since 1970, by the wall clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Millis(pub i64);

impl Millis {
    /// How long after `earlier`; zero if it is not.
    #[must_use]
    pub fn since(self, earlier: Millis) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Millis {
    type Output = Millis;

    fn add(self, duration: Duration) -> Millis {
        Millis(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}
