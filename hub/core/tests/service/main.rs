//! The services of the hub, on a store and with a peer that does what a script says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod accept;
mod dead_letters;
mod deliver;
#[path = "../../../store/tests/suite/factory.rs"]
#[expect(dead_code, reason = "the conformance suite of the stores uses more of it")]
mod factory;
#[path = "../../../store/tests/suite/fixtures.rs"]
#[expect(dead_code, unused_imports, reason = "the conformance suite of the stores uses more of it")]
mod fixtures;
mod forward;
mod letters;
mod operations;
mod order;
mod outage;
mod peer;
mod poison;
mod retention;
mod scene;
mod semantics;
mod time;
#[path = "../../../store/tests/suite/wrapped.rs"]
mod wrapped;
