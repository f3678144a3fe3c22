//! The edge between the engine and its users: threads, answers that are wrong rather than errors, the error types that people
//! have, guards within guards, and everything in combination.

#![expect(clippy::disallowed_methods, reason = "that a call fits into a spawned task is what is tested")]

mod clocks;
mod combinations;
mod errors;
mod hedges;
mod nested;
mod send;
mod sharing;
mod sides;
mod verdicts;
