//! The whole guard, seen by its users: one test binary, one file for each concern.

mod amplification;
mod breaker;
mod deadlines;
mod drops;
mod explain;
mod million;
mod retry;
mod threads;
