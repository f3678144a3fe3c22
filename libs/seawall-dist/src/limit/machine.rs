//! A token bucket in one number: the time at which the bucket would be full again if no call came.

/// The settings of a bucket. Times are microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketRules {
    /// The time between two calls at the agreed rate.
    pub interval: u64,
    /// How far the full time may be ahead of the present: the burst, as a time.
    pub burst: u64,
    /// The longest wait that any caller of this limit may have. A full time beyond it comes from a clock that was set back.
    pub wait_max: u64,
}

/// The decision about some calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// They may pass after `wait`; the bucket is full at `full_at` then.
    Admit {
        /// The time until their turn; zero if it has come.
        wait: u64,
        /// The new state of the bucket.
        full_at: u64,
    },
    /// They are above the limit, and may come back after `retry_after`.
    Refuse {
        /// The time until they would pass.
        retry_after: u64,
    },
}

/// Decides about `calls` calls at `now`, each of which waits for its turn for at most `max_wait`.
#[must_use]
pub fn decide(full_at: u64, now: u64, rules: &BucketRules, calls: u32, max_wait: u64) -> Decision {
    let horizon = now.saturating_add(rules.burst).saturating_add(rules.wait_max);
    let next = full_at.min(horizon).max(now).saturating_add(cost(rules, calls));
    let wait = next.saturating_sub(now).saturating_sub(rules.burst);
    if wait > max_wait {
        Decision::Refuse { retry_after: wait }
    } else {
        Decision::Admit { wait, full_at: next }
    }
}

/// The state of the bucket after `calls` calls that were admitted are given back.
#[must_use]
pub fn give_back(full_at: u64, rules: &BucketRules, calls: u32) -> u64 {
    full_at.saturating_sub(cost(rules, calls))
}

fn cost(rules: &BucketRules, calls: u32) -> u64 {
    rules.interval.saturating_mul(u64::from(calls))
}
