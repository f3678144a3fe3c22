//! governor: a rate limiter that is asked before the call and always says yes.

use std::num::NonZeroU32;
use std::sync::Arc;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::op::op;
use crate::row::{Group, Rows};

/// More a second than any machine asks for.
const RATE: NonZeroU32 = NonZeroU32::new(1_000_000_000).expect("not zero");

pub(super) fn add(rows: &mut Rows) {
    let limiter = Arc::new(limiter());
    rows.calls(Group::Admission, "governor, check", move || {
        let limiter = Arc::clone(&limiter);
        async move |kind| {
            limiter.check().expect("the quota is more than is ever asked for");
            op(kind).await
        }
    });
    rows.footprint("governor", self::limiter, async |limiter, kind| {
        limiter.check().expect("the quota is more than is ever asked for");
        op(kind).await
    });
}

fn limiter() -> DefaultDirectRateLimiter {
    RateLimiter::direct(Quota::per_second(RATE))
}
