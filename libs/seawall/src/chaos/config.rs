//! What trouble is asked for.

use std::fmt;
use std::time::Duration;

use super::machine::Rules;
use crate::config::{Percent, Problems};
use crate::fault::Fault;

/// The configuration of chaos: which share of the attempts fails, hangs or is slow.
///
/// ```
/// use seawall::{Chaos, Fault, Guard, millis};
/// let shaky = Guard::builder("shaky").chaos(Chaos::faults(10, Fault::io()).latency(20, millis(300))).build()?;
/// shaky.chaos().unwrap().switch(false); // Off until somebody wants it.
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Chaos {
    faults: Percent,
    fault: Fault,
    hangs: Percent,
    slow: Percent,
    latency: Duration,
    pub(super) starts_on: bool,
}

impl Chaos {
    /// No trouble yet; say which.
    #[must_use]
    pub fn new() -> Self {
        let none = Percent::from(0);
        Chaos {
            faults: none,
            fault: Fault::io(),
            hangs: none,
            slow: none,
            latency: Duration::ZERO,
            starts_on: true,
        }
    }

    /// This share of the attempts fails with this fault, without the operation having run.
    #[must_use]
    pub fn faults(share: impl Into<Percent>, fault: Fault) -> Self {
        Chaos::new().and_faults(share, fault)
    }

    /// As [`faults`](Chaos::faults), beside what was asked for already.
    #[must_use]
    pub fn and_faults(mut self, share: impl Into<Percent>, fault: Fault) -> Self {
        self.faults = share.into();
        self.fault = fault;
        self
    }

    /// This share of the attempts never answers.
    #[must_use]
    pub fn hangs(mut self, share: impl Into<Percent>) -> Self {
        self.hangs = share.into();
        self
    }

    /// This share of the attempts starts this much later.
    #[must_use]
    pub fn latency(mut self, share: impl Into<Percent>, latency: Duration) -> Self {
        self.slow = share.into();
        self.latency = latency;
        self
    }

    /// It is there and does nothing until it is [switched](super::Injector::switch) on.
    #[must_use]
    pub fn switched_off(mut self) -> Self {
        self.starts_on = false;
        self
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        let shares = [self.faults, self.hangs, self.slow];
        problems.refuse_if(!shares.iter().all(|share| share.is_share()), "chaos", || {
            "each share is between 0 % and 100 %".into()
        });
        let sum: u64 = shares.iter().map(|share| share.millionths()).sum();
        problems.refuse_if(sum > 1_000_000, "chaos", || {
            "the shares of faults, hangs and slow attempts are more than all attempts together; lower them".into()
        });
    }

    pub(super) fn rules(&self) -> Rules {
        Rules {
            faults: self.faults.millionths(),
            hangs: self.hangs.millionths(),
            slow: self.slow.millionths(),
            fault: self.fault,
            latency: self.latency,
        }
    }
}

impl Default for Chaos {
    fn default() -> Self {
        Chaos::new()
    }
}

impl fmt::Display for Chaos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of the attempts fail ({}), {} hang, {} start {:?} later",
            self.faults, self.fault, self.hangs, self.slow, self.latency
        )
    }
}
