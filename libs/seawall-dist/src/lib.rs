//! Coordination across processes and time: what has to hold although the one who began may be gone.
//!
//! Logic and plain types, without a store: stores on SQLite, Postgres and Redis are crates of their own, and the hub has its
//! own. What two of them need is written once, here.
//!
//! - [`idempotency`]: work under a key happens once, and whoever repeats it gets what came of it.
//! - [`deadletter`]: what was given up, in one form, wherever it came from.

pub mod deadletter;
pub mod idempotency;
mod time;

pub use time::Millis;
