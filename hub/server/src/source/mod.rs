//! How events come in from others: whether a webhook is from whom it says, whether it was seen before, and what
//! events a request holds that is written as CloudEvents.
//!
//! Nothing here reads a clock, a socket or a store: a request goes in with the time, and a verdict or events come out.
//! So what a sender can do wrong is tested without a server, and the routes that use it only translate.
//!
//! The order for an inbound webhook:
//! 1. [`verify::Verifier::check`]. If it refuses, the caller gets [`VerifyError`](verify::VerifyError) as text, which is the
//!    same for every cause, and the log gets its [`reason`](verify::VerifyError::reason).
//! 2. [`ReplayCache::look`] with the [`replay_key`](verify::VerifiedRequest::replay_key), if the scheme has one. What was accepted
//!    already is answered like a duplicate, not like a failure, or its sender would try for ever. What is under way is
//!    neither: its sender asks again.
//! 3. The event is stored, and then [`ReplayCache::accepted`]. If that fails, [`ReplayCache::forget`], so that a sender that repeats
//!    the same bytes is heard.

pub mod cloudevents;
mod replay;
pub mod verify;

pub use replay::{ReplayCache, ReplayCheck};
