//! Locks on PostgreSQL, and locks everywhere with a fenced register on PostgreSQL.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that can't go on fails with the reason, and a worker speaks by its output"
)]

mod report;
mod sqlite;
mod store;
mod torture;
mod worker;
