//! What a store of shared limits does.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use seawall::Clock;

use super::machine::{BucketRules, Decision, decide, give_back};
use crate::StoreFuture;

/// The answer of a store to calls that want to pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitAnswer {
    /// The calls may pass.
    Admitted {
        /// The time until their turn; zero if it has come.
        wait: Duration,
        /// When their turn comes, by the store's clock.
        at: SystemTime,
    },
    /// The calls are above the limit.
    Refused {
        /// The time until they would pass.
        retry_after: Duration,
    },
}

/// A store of buckets that several processes share. Every method is one atomic step, by the store's own clock.
///
/// The suite `seawall_testkit::conformance::limit` tests a store of your own.
pub trait LimitStore: Send + Sync + 'static {
    /// Takes calls out of the bucket of this name, if their turn comes within `max_wait`.
    fn take<'a>(
        &'a self,
        name: &'a str,
        rules: BucketRules,
        calls: u32,
        max_wait: Duration,
    ) -> StoreFuture<'a, LimitAnswer>;

    /// Gives calls back whose turn had not come.
    fn give_back<'a>(&'a self, name: &'a str, rules: BucketRules, calls: u32) -> StoreFuture<'a, ()>;
}

/// Buckets in the memory of this process, for tests.
#[derive(Debug, Default)]
pub struct MemoryLimits {
    clock: Clock,
    buckets: Mutex<HashMap<String, u64>>,
}

impl MemoryLimits {
    /// Makes a store on this clock.
    #[must_use]
    pub fn with_clock(clock: Clock) -> Self {
        MemoryLimits { clock, buckets: Mutex::default() }
    }

    fn take_now(&self, name: &str, rules: &BucketRules, calls: u32, max_wait: Duration) -> LimitAnswer {
        let now = micros(Duration::from_nanos(self.clock.precise().as_nanos()));
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = buckets.get(name).copied().unwrap_or(0);
        match decide(full_at, now, rules, calls, micros(max_wait)) {
            Decision::Admit { wait, full_at } => {
                buckets.insert(name.to_owned(), full_at);
                let wait = Duration::from_micros(wait);
                LimitAnswer::Admitted { wait, at: SystemTime::UNIX_EPOCH + Duration::from_micros(now) + wait }
            }
            Decision::Refuse { retry_after } => {
                LimitAnswer::Refused { retry_after: Duration::from_micros(retry_after) }
            }
        }
    }
}

impl LimitStore for MemoryLimits {
    fn take<'a>(
        &'a self,
        name: &'a str,
        rules: BucketRules,
        calls: u32,
        max_wait: Duration,
    ) -> StoreFuture<'a, LimitAnswer> {
        Box::pin(async move { Ok(self.take_now(name, &rules, calls, max_wait)) })
    }

    fn give_back<'a>(&'a self, name: &'a str, rules: BucketRules, calls: u32) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(full_at) = buckets.get_mut(name) {
                *full_at = give_back(*full_at, &rules, calls);
            }
            Ok(())
        })
    }
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
