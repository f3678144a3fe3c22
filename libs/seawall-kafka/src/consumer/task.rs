//! What is done with one record.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use seawall_dist::messaging::{DeadLetterIntake, DeathReason, Disposition, MessageProcessor};
use tokio::sync::Notify;

use super::forward::Forwarder;
use super::lanes::Assignment;
use crate::record::{RawRecord, ReceivedRecord};

/// The number of a topic among those that a consumer reads, and a partition of it.
pub(crate) type Place = (usize, i32);

/// A record on its way through a consumer.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) place: Place,
    pub(crate) assignment: Assignment,
    pub(crate) record: RawRecord,
}

/// Tells the running records of a partition that it has gone to another consumer.
#[derive(Debug, Default)]
pub(crate) struct Revocation {
    is_revoked: AtomicBool,
    revoked: Notify,
}

impl Revocation {
    pub(crate) fn revoke(&self) {
        self.is_revoked.store(true, Ordering::Release);
        self.revoked.notify_waiters();
    }

    /// Waits until the partition is revoked.
    pub(crate) async fn wait(&self) {
        let revoked = self.revoked.notified();
        if !self.is_revoked.load(Ordering::Acquire) {
            revoked.await;
        }
    }
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

/// The work on records.
pub(crate) enum RecordTask {
    Handler(HandlerTask),
    Intake(IntakeTask),
}

impl RecordTask {
    /// Works on a record. `is_retry` says that it comes from a retry topic.
    pub(crate) async fn run(&self, record: ReceivedRecord, is_retry: bool) -> Outcome {
        match self {
            RecordTask::Handler(task) => task.run(record, is_retry).await,
            RecordTask::Intake(task) => Box::pin(task.run(record)).await,
        }
    }
}

/// Runs the handler of the application, and forwards what failed.
pub(crate) struct HandlerTask {
    pub(crate) processor: MessageProcessor,
    pub(crate) forwarder: Forwarder,
}

/// How long a record waits for which the processor knows something that this adapter does not.
const UNKNOWN_WAIT: Duration = Duration::from_secs(1);

impl HandlerTask {
    async fn run(&self, record: ReceivedRecord, is_retry: bool) -> Outcome {
        if is_retry && record.is_of_another(&self.forwarder.group) {
            return Outcome::Done;
        }
        // What is rare is in a box, so that the future of the usual case is small.
        match self.processor.process(record.delivery.clone()).await {
            Disposition::Acknowledge => Outcome::Done,
            Disposition::Release { after } => Outcome::Again(after),
            Disposition::Retry { after, failure } => {
                Box::pin(self.forwarder.retry(&record, after, failure)).await;
                Outcome::Done
            }
            Disposition::DeadLetter { reason, failure } => {
                Box::pin(self.forwarder.bury(&record, reason, failure)).await;
                if reason == DeathReason::Crashes { Outcome::Solved } else { Outcome::Done }
            }
            _ => Outcome::Again(UNKNOWN_WAIT),
        }
    }
}

/// Takes records of a dead letter topic over into a store.
pub(crate) struct IntakeTask {
    pub(crate) intake: DeadLetterIntake,
    /// How long a record waits whose store is away.
    pub(crate) wait: Duration,
    pub(crate) log: crate::telemetry::ClientLog,
}

impl IntakeTask {
    async fn run(&self, record: ReceivedRecord) -> Outcome {
        match self.intake.take(&record.delivery).await {
            Ok(_) => Outcome::Done,
            Err(error) => {
                let text = "The store is away, the dead letter stays in its topic.";
                self.log.error("Intake", text, &error);
                Outcome::Again(self.wait)
            }
        }
    }
}
