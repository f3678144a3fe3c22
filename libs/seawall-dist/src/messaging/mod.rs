//! What every consumer of a broker does with a message, whatever the broker is.
#![doc = ""]
#![doc = include_str!("../../docs/messaging.md")]

mod config;
mod delivery;
mod disposition;
mod evidence;
mod handler;
mod intake;
mod processor;
mod publish;
mod replayer;
mod telemetry;

pub use config::{ATTEMPTS_MAX, BACKOFF_BASE, BACKOFF_MAX, HANDLER_TIMEOUT, MessageProcessorBuilder};
pub use delivery::{AGGREGATE_ID_HEADER, Delivery, EVENT_ID_HEADER, EVENT_TYPE_HEADER};
pub use disposition::{DeathReason, Disposition};
pub use evidence::{AttemptFailure, CONSUMER_HEADER, ERROR_CHARS_MAX, FAILURES_KEPT_MAX, FailureEvidence};
pub use handler::{HandlerError, HandlerFuture, MessageHandler};
pub use intake::{AlertHook, DeadLetterIntake};
pub use processor::MessageProcessor;
pub use publish::PublishTelemetry;
pub use replayer::PublisherReplayer;
#[cfg(feature = "metrics")]
pub(crate) use telemetry::METRICS;
