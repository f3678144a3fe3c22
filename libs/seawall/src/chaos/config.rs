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
/// let chaos = Chaos::new().fault_rate(10).fault(Fault::unreachable()).slow_rate(20).slow_by(millis(300));
/// let shaky = Guard::builder("shaky").chaos(chaos).build()?;
/// shaky.chaos().unwrap().switch(false); // Off until somebody wants it.
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Chaos {
    fault_rate: Percent,
    fault: Fault,
    hang_rate: Percent,
    slow_rate: Percent,
    slow_by: Duration,
    pub(super) enabled: bool,
}

impl Chaos {
    /// No trouble yet; say which.
    #[must_use]
    pub fn new() -> Self {
        let none = Percent::from(0);
        Chaos {
            fault_rate: none,
            fault: Fault::io(),
            hang_rate: none,
            slow_rate: none,
            slow_by: Duration::ZERO,
            enabled: true,
        }
    }

    /// This share of the attempts fails without the operation having run, with an I/O fault unless
    /// [`fault`](Chaos::fault) says otherwise.
    #[must_use]
    pub fn fault_rate(mut self, share: impl Into<Percent>) -> Self {
        self.fault_rate = share.into();
        self
    }

    /// The fault that failing attempts get.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }

    /// This share of the attempts never answers.
    #[must_use]
    pub fn hang_rate(mut self, share: impl Into<Percent>) -> Self {
        self.hang_rate = share.into();
        self
    }

    /// This share of the attempts starts later, by [`slow_by`](Chaos::slow_by).
    #[must_use]
    pub fn slow_rate(mut self, share: impl Into<Percent>) -> Self {
        self.slow_rate = share.into();
        self
    }

    /// How much later slow attempts start.
    #[must_use]
    pub fn slow_by(mut self, delay: Duration) -> Self {
        self.slow_by = delay;
        self
    }

    /// Whether it makes trouble from the start, which is the default in code, or waits until it is
    /// [switched](super::Injector::switch) on.
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        let shares = [self.fault_rate, self.hang_rate, self.slow_rate];
        for share in shares {
            share.check("chaos", problems, Percent::is_share, || {
                format!("{share} is not between 0 % and 100 %; lower it")
            });
        }
        let sum: u64 = shares.iter().map(|share| share.millionths()).sum();
        problems.refuse_if(sum > 1_000_000, "chaos", || {
            "the shares of faults, hangs and slow attempts are more than all attempts together; lower them".into()
        });
    }

    pub(super) fn rules(&self) -> Rules {
        Rules {
            faults: self.fault_rate.millionths(),
            hangs: self.hang_rate.millionths(),
            slow: self.slow_rate.millionths(),
            fault: self.fault,
            latency: self.slow_by,
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
            self.fault_rate, self.fault, self.hang_rate, self.slow_rate, self.slow_by
        )
    }
}
