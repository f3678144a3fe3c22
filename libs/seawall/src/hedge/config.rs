//! When hedges start, and how many.

use std::fmt;
use std::time::Duration;

use crate::config::{Percent, Problems};

/// A percentile of fewer answers than this is chance.
pub const SAMPLES_MIN: u64 = 100;
/// Attempts beside the first: the second one brings most of what there is to gain.
pub const MAX_HEDGES: u32 = 1;
/// The delay until a percentile is known.
pub const UNTIL_KNOWN: Duration = Duration::from_secs(1);
/// More attempts at once than this are a flood.
const HEDGES_MAX: u32 = 10;

/// The configuration of hedging: after which delay further attempts start beside the first, and how many.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hedge {
    pub(super) delay: Delay,
    pub(super) max_hedges: u32,
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
        Hedge { delay: Delay::Fixed(delay), max_hedges: MAX_HEDGES }
    }

    /// When the first attempt has taken longer than this share of the recent answers: at 95, one call in twenty is hedged.
    /// Until a hundred answers are known, after [`until_known`](Hedge::until_known).
    #[must_use]
    pub fn percentile(share: impl Into<Percent>) -> Self {
        let delay = Delay::Percentile { share: share.into(), until_known: UNTIL_KNOWN };
        Hedge { delay, max_hedges: MAX_HEDGES }
    }

    /// The delay until a [`percentile`](Hedge::percentile) is known. A fixed delay is known from the start.
    #[must_use]
    pub const fn until_known(mut self, delay: Duration) -> Self {
        if let Delay::Percentile { share, .. } = self.delay {
            self.delay = Delay::Percentile { share, until_known: delay };
        }
        self
    }

    /// At most this many attempts beside the first, each one delay after the one before.
    #[must_use]
    pub const fn max_hedges(mut self, hedges: u32) -> Self {
        self.max_hedges = hedges;
        self
    }

    /// The delay before anything is known about answers, with the setting that it comes from.
    pub(crate) fn first_delay(&self) -> (&'static str, Duration) {
        match self.delay {
            Delay::Fixed(delay) => ("hedge.after", delay),
            Delay::Percentile { until_known, .. } => ("hedge.until_known", until_known),
        }
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        let (path, delay) = self.first_delay();
        problems.refuse_if(delay.is_zero(), path, || {
            "a delay of zero doubles every call; wait as long as most answers take".into()
        });
        problems.refuse_if(!(1..=HEDGES_MAX).contains(&self.max_hedges), "hedge.max_hedges", || {
            format!("{} is not between 1 and {HEDGES_MAX}; 1 is usual", self.max_hedges)
        });
        if let Delay::Percentile { share, .. } = self.delay {
            share.check(
                "hedge.percentile",
                problems,
                |share| (500_000..1_000_000).contains(&share.millionths()),
                || format!("{share} is not between 50 % and just below 100 %; 95 hedges one call in twenty"),
            );
        }
    }
}

impl fmt::Display for Hedge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max_hedges {
            1 => f.write_str("a second attempt after ")?,
            hedges => write!(f, "up to {hedges} further attempts, each after ")?,
        }
        match self.delay {
            Delay::Fixed(delay) => write!(f, "{delay:?}"),
            Delay::Percentile { share, until_known } => {
                write!(f, "what {share} of the answers take, {until_known:?} until that is known")
            }
        }
    }
}
