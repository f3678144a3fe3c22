//! The store, and what the hub does with it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod accept;
mod alerts;
mod census;
mod conformance;
mod dead_letters;
mod deliver;
mod forward;
mod letters;
mod open_list;
mod operations;
mod order;
mod poison;
mod retention;
mod scene;
mod semantics;
mod upgrade;
