//! What a budget is told.

use std::fmt;
use std::time::Duration;

use super::machine::{Bucket, FLOOR_BELOW_CALLS, Floor, Rules, Share};
use super::policy::RetryBudget;
use crate::clock::{Clock, units};
use crate::config::{ConfigError, Percent, Problems};
use crate::stats::Slicing;

/// Retries may be this many percent of the calls: enough for the odd failure, too little for a storm.
pub const SHARE: u8 = 10;
/// Calls and retries are counted over this while.
pub const WINDOW: Duration = Duration::from_secs(10);
/// While the window holds fewer than 100 calls, this many retries a second are allowed nevertheless, up to what a window
/// brings at once (30): a share of few calls would be none.
pub const FLOOR_PER_SECOND: f64 = 3.0;

/// A debt to the floor is forgotten this long after the floor paid for a retry the last time. An outage that began while the
/// window was still filling is over or has been repaid by then; an older debt would deny the odd retry of a healthy process that
/// has become busy, and would protect nobody.
pub(super) const DEBT_LIFETIME: Duration = Duration::from_secs(60);

/// The bucket of gRPC's form, as its examples have it.
pub const TOKENS: f64 = 10.0;
/// What a first attempt that succeeds puts back into it.
pub const TOKEN_RATIO: f64 = 0.1;

/// The configuration of a retry budget.
///
/// ```
/// use seawall::{Budget, secs};
/// let budget = Budget::share_of_calls(20).window(secs(30)).floor_per_second(1.0).build()?;
/// budget.first_attempt();
/// assert!(budget.try_spend().is_some(), "the floor allows it");
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Budget(Form);

#[derive(Clone, Copy, PartialEq, Debug)]
enum Form {
    Share { share: Percent, window: Duration, floor_per_second: f64 },
    Tokens { max: f64, ratio: f64 },
}

impl Default for Budget {
    fn default() -> Self {
        Budget::share_of_calls(SHARE)
    }
}

impl Budget {
    /// Retries may be this share of the calls in the window. Where those are few, there is a
    /// [floor](Budget::floor_per_second).
    #[must_use]
    pub fn share_of_calls(share: impl Into<Percent>) -> Self {
        Budget(Form::Share { share: share.into(), window: WINDOW, floor_per_second: FLOOR_PER_SECOND })
    }

    /// gRPC's form: a bucket of `max` tokens; each failure takes one, each first attempt that succeeds puts
    /// [`token_ratio`](Budget::token_ratio) back, and retries are allowed while more than half of the bucket is left.
    #[must_use]
    pub fn tokens(max: f64) -> Self {
        Budget(Form::Tokens { max, ratio: TOKEN_RATIO })
    }

    /// What each first attempt that succeeds puts back into the bucket of gRPC's form, which it makes of any other.
    #[must_use]
    pub fn token_ratio(self, ratio: f64) -> Self {
        let max = if let Form::Tokens { max, .. } = self.0 { max } else { TOKENS };
        Budget(Form::Tokens { max, ratio })
    }

    /// The while over which calls and retries are counted. Has no meaning for [`tokens`](Budget::tokens), and
    /// makes it a [`share_of_calls`](Budget::share_of_calls).
    #[must_use]
    pub fn window(self, window: Duration) -> Self {
        let (share, floor_per_second) = self.share();
        Budget(Form::Share { share, window, floor_per_second })
    }

    /// This many retries a second are allowed while the window holds fewer than 100 first attempts, if the share does not
    /// allow them: 3 by default, 0 for none. At once the floor pays for what a window brings, 30 by default.
    ///
    /// The share repays them: as soon as the window holds 100 first attempts, it denies as many retries as the floor has paid
    /// for, at most 30 by default. 60 s after the last of them the debt is forgotten. As for [`window`](Budget::window).
    #[must_use]
    pub fn floor_per_second(self, floor_per_second: f64) -> Self {
        let (share, _) = self.share();
        let window = if let Form::Share { window, .. } = self.0 { window } else { WINDOW };
        Budget(Form::Share { share, window, floor_per_second })
    }

    fn share(self) -> (Percent, f64) {
        match self.0 {
            Form::Share { share, floor_per_second, .. } => (share, floor_per_second),
            Form::Tokens { .. } => (SHARE.into(), FLOOR_PER_SECOND),
        }
    }

    /// A budget on its own, on the default clock.
    pub fn build(self) -> Result<RetryBudget, ConfigError> {
        self.build_with(Clock::default())
    }

    /// A budget on its own, on this clock.
    pub fn build_with(self, clock: Clock) -> Result<RetryBudget, ConfigError> {
        let mut problems = Problems::default();
        self.check(&mut problems);
        problems.into_result("the retry budget", ())?;
        Ok(RetryBudget::new(&self, clock))
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        match self.0 {
            Form::Share { share, window, floor_per_second } => {
                share.check("retry.budget.share_of_calls", problems, Percent::is_share, || {
                    format!("{share} is not between 0 % and 100 %; 10 is usual")
                });
                problems.refuse_if(
                    !(Duration::from_millis(100)..=Duration::from_secs(3_600)).contains(&window),
                    "retry.budget.window",
                    || format!("{window:?} is not between 100 ms and 1 h; 10 s is usual"),
                );
                problems.refuse_if(
                    !(0.0..=1e6).contains(&floor_per_second),
                    "retry.budget.floor_per_second",
                    || format!("{floor_per_second} is not between 0 and a million"),
                );
                let never = share.millionths() == 0 && floor_per_second == 0.0;
                problems.refuse_if(never, "retry.budget", || {
                    "it never allows a single retry; raise the share or the floor, or take retry out of the guard"
                        .into()
                });
            }
            Form::Tokens { max, ratio } => {
                problems.refuse_if(!(1.0..=1_000.0).contains(&max), "retry.budget.tokens", || {
                    format!("{max} tokens are not between 1 and 1000; 10 is usual")
                });
                problems.refuse_if(!(0.001..=1_000.0).contains(&ratio), "retry.budget.token_ratio", || {
                    format!("a ratio of {ratio} is not between 0.001 and 1000; 0.1 is usual")
                });
            }
        }
    }

    pub(crate) fn rules(&self) -> Rules {
        match self.0 {
            Form::Share { share, window, floor_per_second } => {
                let slicing = Slicing::of(window);
                Rules::Share(Share {
                    slicing,
                    retry_slicing: slicing.at_least(),
                    share: share.millionths(),
                    floor: Floor::new(floor_per_second, window),
                    debt_lifetime: units(DEBT_LIFETIME),
                })
            }
            Form::Tokens { max, ratio } => {
                Rules::Bucket(Bucket { max: (max * 1e3) as u64, ratio: (ratio * 1e3) as u64 })
            }
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Form::Share { share, window, floor_per_second } => {
                write!(f, "{share} of the calls of the last {window:?}")?;
                if let Some(floor) = Floor::new(floor_per_second, window) {
                    let at_once = floor.burst_retries();
                    write!(
                        f,
                        "; while those are fewer than {FLOOR_BELOW_CALLS} calls also {floor_per_second} a second, \
                         up to {at_once} at once, which the share repays later"
                    )?;
                }
                Ok(())
            }
            Form::Tokens { max, ratio } => {
                write!(f, "{max} tokens, {ratio} back for each first attempt that succeeds")
            }
        }
    }
}
