//! When a second attempt starts.

use std::fmt;
use std::time::Duration;

use crate::config::{Percent, Problems};

/// A percentile of fewer answers than this is chance.
pub const SAMPLES_MIN: u64 = 100;

/// The configuration of hedging: after which delay a second attempt starts beside the first.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hedge {
    pub(super) delay: Delay,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Delay {
    Fixed(Duration),
    Percentile { share: Percent, until_known: Duration },
}

impl Hedge {
    /// After this delay.
    #[must_use]
    pub const fn after(delay: Duration) -> Self {
        Hedge { delay: Delay::Fixed(delay) }
    }

    /// When the first attempt has taken longer than this share of the recent answers: at 95, one call in twenty is hedged.
    /// Until a hundred answers are known, after `until_known`.
    #[must_use]
    pub fn percentile(share: impl Into<Percent>, until_known: Duration) -> Self {
        Hedge { delay: Delay::Percentile { share: share.into(), until_known } }
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        let (Delay::Fixed(delay) | Delay::Percentile { until_known: delay, .. }) = self.delay;
        let path = if matches!(self.delay, Delay::Fixed(_)) { "hedge.after" } else { "hedge.until_known" };
        problems.refuse_if(delay.is_zero(), path, || {
            "a delay of zero doubles every call; wait as long as most answers take".into()
        });
        if let Delay::Percentile { share, .. } = self.delay {
            problems.refuse_if(
                !(500_000..1_000_000).contains(&share.millionths()),
                "hedge.percentile",
                || format!("{share} is not between 50 % and just below 100 %; 95 hedges one call in twenty"),
            );
        }
    }
}

impl fmt::Display for Hedge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.delay {
            Delay::Fixed(delay) => write!(f, "a second attempt after {delay:?}"),
            Delay::Percentile { share, until_known } => {
                write!(
                    f,
                    "a second attempt after what {share} of the answers take, {until_known:?} until that is known"
                )
            }
        }
    }
}
