//! The cache that degrades, and the remote tier of the cache loader, against a real Redis.

mod adapter;
mod drops;
mod metrics;
mod outage;
mod processes;
mod remote;
