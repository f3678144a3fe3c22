//! The cache that degrades, and the remote tier of the cache loader, against a real Redis.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod adapter;
mod drops;
mod lines;
mod metrics;
mod outage;
mod processes;
mod remote;
