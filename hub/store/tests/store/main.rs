//! The stores: what each of them must do, and what belongs to SQLite alone. What the hub does with a store is tested in `hub/core`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod place;
#[path = "../postgres/mod.rs"]
mod postgres_server;
mod retention;
#[path = "../suite/mod.rs"]
mod suite;
mod upgrade;

suite::conformance!(sqlite, crate::suite::SqliteFactory);
suite::conformance!(memory, crate::suite::MemoryFactory);
suite::conformance!(postgres, crate::suite::PostgresFactory);
