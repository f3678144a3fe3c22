//! `#[guarded]` as its users write it. In a process of its own, because the global registry is one per process.

#![cfg(feature = "macros")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(
    clippy::disallowed_methods,
    reason = "spawning shows that a future is `Send`, and every task is awaited"
)]

mod borrows;
mod fallback;
mod names;
mod options;
mod places;
mod support;
