//! The dead letters of a stream: where they are kept, what JetStream itself gave up, and the way into a dead letter store.

mod advisory;
mod collector;
mod place;
mod reader;
mod side;

pub use collector::NatsAdvisoryCollector;
pub use place::{ADVISORIES_KEPT_FOR, LETTER_WINDOW};
pub(crate) use place::{Casualty, DeadLetterPlace, declare_stream};
pub use reader::NatsDeadLetterReader;
