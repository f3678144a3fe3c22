//! The peers, one file each: configured as their documentation recommends, around the same operation.
//!
//! What their interface makes a caller do per call (clone a handle, box a future, copy a request) is their cost; what a
//! caller does once (build, clone a service for its thread) is not measured.

mod backon;
mod failsafe;
mod governor;
mod hand_made;
mod recloser;
mod seatbelt;
mod tokio;
pub(crate) mod tower;
mod tower_resilience;

use std::time::Duration;

use crate::row::Rows;

// What every row of a kind has in common, ours included.

/// A whole call, and one attempt of it, in every row with timeouts: long enough never to run out here.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// The first back-off of every row with retries. Nothing fails in them, so nobody waits for it.
pub(crate) const BACKOFF: Duration = Duration::from_millis(100);
/// The cooldown of every row with rejections: longer than any run.
pub(crate) const COOLDOWN: Duration = Duration::from_secs(3600);
/// The window of the rows by entries: longer than any run, so that no entry is forgotten during it.
pub(crate) const LONG_WINDOW: Duration = Duration::from_secs(3600);
/// The bulkhead of every row with one.
pub(crate) const PERMITS: usize = 20;

pub fn add(rows: &mut Rows) {
    tokio::add(rows);
    backon::add(rows);
    governor::add(rows);
    tower::add(rows);
    recloser::add(rows);
    failsafe::add(rows);
    seatbelt::add(rows);
    tower_resilience::add(rows);
    hand_made::add(rows);
}
