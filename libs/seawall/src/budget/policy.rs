//! The budget itself, shared by all callers of a guard.

use std::fmt;
use std::sync::Arc;

use super::config::Budget;
use super::ledger::{Ledger, Payment};
use super::machine::{Bucket, Rules, Share};
use crate::clock::{Clock, Tick};
use crate::config::{ConfigError, Problems};
use crate::sync::{AtomicU64, Ordering};
use crate::versions::Versions;

/// A retry budget that many threads share. Made by [`Budget::build`]; every guard with retries has one.
#[derive(Debug)]
pub struct RetryBudget {
    versions: Versions<Version>,
    clock: Clock,
    /// Of gRPC's form, in thousandths.
    tokens: AtomicU64,
    denied: AtomicU64,
}

/// Settings and the ledger that fits them; a change that leaves the window's length shares it.
#[derive(Debug)]
struct Version {
    rules: Rules,
    ledger: Arc<Ledger>,
    text: String,
}

impl RetryBudget {
    pub(crate) fn new(budget: &Budget, clock: Clock) -> Self {
        let rules = budget.rules();
        let tokens = if let Rules::Bucket(bucket) = rules { bucket.max } else { 0 };
        RetryBudget {
            versions: Versions::new(Version { rules, ledger: Ledger::new(), text: budget.to_string() }),
            clock,
            tokens: AtomicU64::new(tokens),
            denied: AtomicU64::new(0),
        }
    }

    /// Which clock it goes by.
    #[cfg(not(seawall_loom))]
    pub(crate) fn clock_id(&self) -> crate::clock::ClockId {
        self.clock.id()
    }

    /// The first attempt of a call starts: this is what earns.
    #[inline]
    pub fn first_attempt(&self) {
        self.first_attempt_at(self.clock.now());
    }

    #[inline]
    pub(crate) fn first_attempt_at(&self, now: Tick) {
        let version = self.versions.newest();
        if let Rules::Share(Share { slicing, .. }) = &version.rules {
            version.ledger.first_attempt(*slicing, now);
        }
    }

    /// An attempt succeeded. Only first attempts earn, and only in gRPC's form do they earn by success.
    #[inline]
    pub fn succeeded(&self, first_attempt: bool) {
        if let Rules::Bucket(bucket) = &self.versions.newest().rules
            && first_attempt
            // A full bucket is only read, so that healthy traffic shares nothing that is written.
            && self.tokens.load(Ordering::Acquire) < bucket.max
        {
            let _ = self.tokens.fetch_update(Ordering::AcqRel, Ordering::Acquire, |tokens| {
                Some(bucket.after_success(tokens))
            });
        }
    }

    /// An attempt failed in a way that could be retried. Costs a token in gRPC's form.
    pub fn failed(&self) {
        if let Rules::Bucket(_) = &self.versions.newest().rules {
            let _ = self.tokens.fetch_update(Ordering::AcqRel, Ordering::Acquire, |tokens| {
                Some(Bucket::after_failure(tokens))
            });
        }
    }

    /// Asks for one retry. The token is the retry's price: [`spend`](Token::spend) it when the attempt starts;
    /// dropped before that, it goes back.
    #[must_use = "dropping the token gives the retry back"]
    pub fn try_spend(&self) -> Option<Token<'_>> {
        self.try_spend_at(self.clock.now())
    }

    pub(crate) fn try_spend_at(&self, now: Tick) -> Option<Token<'_>> {
        let version = self.versions.newest();
        let paid = match &version.rules {
            Rules::Share(share) => version.ledger.try_spend(share, now),
            Rules::Bucket(bucket) => {
                bucket.allows(self.tokens.load(Ordering::Acquire)).then(|| Payment::by_share(now.as_units()))
            }
        };
        if paid.is_none() {
            self.denied.fetch_add(1, Ordering::Relaxed);
        }
        paid.map(|paid| Token { version, clock: &self.clock, paid })
    }

    /// How many retries were asked for and not allowed.
    #[must_use]
    pub fn denied(&self) -> u64 {
        self.denied.load(Ordering::Relaxed)
    }

    /// First attempts and retries that the window holds now. Retries are held a little longer than first attempts, so that
    /// none is forgotten too early. A retry that was denied because the share repaid the floor with it is held too. Always
    /// zero in gRPC's form, which has no window.
    #[must_use]
    pub fn in_window(&self) -> (u64, u64) {
        let Version { rules, ledger, .. } = self.versions.newest();
        match rules {
            Rules::Share(share) => ledger.in_window(share, self.clock.now()),
            Rules::Bucket(_) => (0, 0),
        }
    }

    /// Changes the settings of a running budget. What was earned and spent stays, unless the window has another length:
    /// then it starts empty. A bucket stays as full as it was.
    pub fn reconfigure(&self, budget: &Budget) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        budget.check(&mut problems);
        let rules = problems.into_result("the retry budget", budget.rules())?;
        let published = self.versions.publish(|old| {
            let same_window = match (&old.rules, &rules) {
                (Rules::Share(old), Rules::Share(new)) => old.slicing == new.slicing,
                _ => false,
            };
            if let Rules::Bucket(new) = rules {
                let _ = self.tokens.fetch_update(Ordering::AcqRel, Ordering::Acquire, |tokens| {
                    Some(if let Rules::Bucket(old) = old.rules {
                        new.as_full_as(old, tokens)
                    } else {
                        new.max
                    })
                });
            }
            let ledger = if same_window { old.ledger.clone() } else { Ledger::new() };
            Version { rules, ledger, text: budget.to_string() }
        });
        published.map_err(|too_many| too_many.refusal("the retry budget", "retry.budget"))
    }

    /// What it allows, in words.
    #[must_use]
    pub fn explain(&self) -> &str {
        &self.versions.newest().text
    }
}

/// The price of one retry.
#[must_use = "dropping the token gives the retry back"]
pub struct Token<'a> {
    /// The settings under which it was taken, whatever they are now.
    version: &'a Version,
    clock: &'a Clock,
    paid: Payment,
}

impl Token<'_> {
    /// The retry has started.
    pub fn spend(self) {
        std::mem::forget(self);
    }
}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        // In gRPC's form failures are what costs, so there is nothing to give back.
        if let Rules::Share(share) = &self.version.rules {
            self.version.ledger.give_back(share, self.paid, self.clock.now());
        }
    }
}

impl fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}
