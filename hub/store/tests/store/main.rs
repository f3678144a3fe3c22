//! The store, and what the hub does with it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod accept;
mod alerts;
mod census;
mod conformance;
mod deliver;
mod forward;
mod letters;
mod order;
mod retention;
mod scene;
