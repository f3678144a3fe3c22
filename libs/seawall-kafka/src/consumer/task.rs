//! What is done with one record.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seawall_dist::messaging::{DeadLetterIntake, DeathReason, Disposition, MessageProcessor};

use super::forward::Forwarder;
use super::lanes::Assignment;
use crate::record::ReceivedRecord;

/// The number of a topic among those that a consumer reads, and a partition of it.
pub(crate) type Place = (usize, i32);

/// A record on its way through a consumer.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) place: Place,
    pub(crate) assignment: Assignment,
    pub(crate) offset: i64,
    pub(crate) record: ReceivedRecord,
}

/// What became of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It is done, or another topic has it.
    Done,
    /// It was given up, because it kills the process.
    Solved,
    /// It runs again after this time.
    Again(Duration),
}

/// The future of a [`RecordTask`].
pub(crate) type TaskFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Does the work on records.
pub(crate) trait RecordTask: Send + Sync {
    fn run(self: Arc<Self>, job: Arc<Job>) -> TaskFuture;
}

/// Runs the handler of the application, and forwards what failed.
pub(crate) struct HandlerTask {
    pub(crate) processor: MessageProcessor,
    pub(crate) forwarder: Forwarder,
}

/// How long a record waits for which the processor knows something that this adapter does not.
const UNKNOWN_WAIT: Duration = Duration::from_secs(1);

impl RecordTask for HandlerTask {
    fn run(self: Arc<Self>, job: Arc<Job>) -> TaskFuture {
        Box::pin(async move {
            match self.processor.process(job.record.delivery.clone()).await {
                Disposition::Acknowledge => Outcome::Done,
                Disposition::Release { after } => Outcome::Again(after),
                Disposition::Retry { after, failure } => {
                    self.forwarder.retry(&job.record, after, failure).await;
                    Outcome::Done
                }
                Disposition::DeadLetter { reason, failure } => {
                    self.forwarder.bury(&job.record, reason, failure).await;
                    if reason == DeathReason::Crashes { Outcome::Solved } else { Outcome::Done }
                }
                _ => Outcome::Again(UNKNOWN_WAIT),
            }
        })
    }
}

/// Takes records of a dead letter topic over into a store.
pub(crate) struct IntakeTask {
    pub(crate) intake: DeadLetterIntake,
    /// How long a record waits whose store is away.
    pub(crate) wait: Duration,
    pub(crate) log: crate::telemetry::ClientLog,
}

impl RecordTask for IntakeTask {
    fn run(self: Arc<Self>, job: Arc<Job>) -> TaskFuture {
        Box::pin(async move {
            match self.intake.take(&job.record.delivery).await {
                Ok(_) => Outcome::Done,
                Err(error) => {
                    self.log.error(
                        "Intake",
                        "The store is away, the dead letter stays in its topic.",
                        &error,
                    );
                    Outcome::Again(self.wait)
                }
            }
        })
    }
}
