//! What nothing can be cheaper than: the bare call, and the smallest things that a guard is made of.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use arc_swap::ArcSwap;
use rustix::time::{ClockId, clock_gettime};

use crate::op::{blocking_op, op};
use crate::row::{BARE_BLOCKING, BARE_CALL, EMPTY_LOOP, Group, NO_OPERATION, Rows};

pub fn add(rows: &mut Rows) {
    rows.calls(Group::Bare, BARE_CALL, || async |kind| op(kind).await);
    rows.calls_without_operation(Group::Bare, NO_OPERATION, || async |_| Ok::<u64, Infallible>(42));
    rows.plain(Group::Bare, BARE_BLOCKING, blocking_op);
    rows.plain(Group::Bare, EMPTY_LOOP, || 0);

    let counter = AtomicU64::new(0);
    rows.plain(Group::Limits, "AtomicU64::fetch_add", move || counter.fetch_add(1, Ordering::Relaxed));
    let mutex = Mutex::new(0_u64);
    rows.plain(Group::Limits, "std Mutex, lock and unlock", move || {
        *mutex.lock().expect("nothing panics under this lock") += 1;
    });
    let settings = ArcSwap::from_pointee(42_u64);
    rows.plain(Group::Limits, "arc_swap load", move || **settings.load());
    let shared = Arc::new(42_u64);
    rows.plain(Group::Limits, "Arc clone and drop", move || *Arc::clone(&shared));
    rows.plain(Group::Limits, "coarse clock (rustix)", || clock_gettime(ClockId::MonotonicCoarse));
    rows.plain(Group::Limits, "Instant::now", Instant::now);
}
