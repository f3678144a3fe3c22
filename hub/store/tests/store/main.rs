//! The store, and what the hub does with it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod dead_letters;
mod forward;
mod letters;
mod operations;
mod order;
mod place;
mod poison;
mod retention;
mod scene;
mod semantics;
#[path = "../suite/mod.rs"]
mod suite;
mod upgrade;

suite::conformance!(sqlite, crate::suite::SqliteFactory);
suite::conformance!(memory, crate::suite::MemoryFactory);
