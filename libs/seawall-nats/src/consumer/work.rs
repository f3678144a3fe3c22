//! What happens to one message between its arrival and its end.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Message;
use async_nats::jetstream::AckKind;
use seawall_dist::Millis;
use seawall_dist::messaging::{
    AttemptFailure, DeathReason, Delivery, Disposition, FailureEvidence, MessageProcessor,
};
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;

use super::failures::FailedMessages;
use super::held::{HeldMessage, HeldMessages};
use crate::NatsConnection;
use crate::connection::reconnect_pause;
use crate::deadletter::{Casualty, DeadLetterPlace};
use crate::format::message_of;
use crate::log::ConsumerLog;
use crate::position::Position;
use crate::pull::{PullTarget, PulledMessage};
use crate::settle::settle;

/// Works on messages. All messages of a consumer share it.
pub(super) struct Worker {
    pub(super) connection: NatsConnection,
    pub(super) target: PullTarget,
    pub(super) processor: MessageProcessor,
    /// A permit for each handler that may run at the same time.
    pub(super) slots: Semaphore,
    pub(super) held: Arc<HeldMessages>,
    pub(super) failures: FailedMessages,
    pub(super) place: DeadLetterPlace,
    pub(super) ack_wait: Duration,
    pub(super) confirm_acks: bool,
    pub(super) log: ConsumerLog,
}

/// A message with its position and its place among those in hand.
struct Job {
    message: Message,
    sequence: u64,
    delivered: u32,
    held: HeldMessage,
}

impl Worker {
    /// Works on a message until the server knows what became of it.
    pub(super) async fn work(self: Arc<Self>, pulled: PulledMessage, stopped: watch::Receiver<bool>) {
        let PulledMessage { message, permit: _permit } = pulled;
        let Some(job) = self.job(message) else { return };
        let subject = job.message.subject.as_str();
        let content = message_of(subject, job.message.headers.as_ref(), &job.message.payload);
        let delivery = Delivery::new(content, &*self.target.stream, job.delivered);
        let delivery = Arc::new(delivery.with_position("sequence", job.sequence));
        let end = self.process(&job, delivery, stopped).await;
        self.settle(&job, end).await;
    }

    /// Gives back a message that nobody has begun to work on.
    pub(super) async fn give_back(&self, pulled: PulledMessage) {
        let Some(job) = self.job(pulled.message) else { return };
        self.settle(&job, AckKind::Nak(None)).await;
    }

    /// The message with its position; `None` for something that is no message of a stream.
    fn job(&self, message: Message) -> Option<Job> {
        let reply = message.reply.clone()?;
        let Position { sequence, delivered } = Position::of_reply(&reply)?;
        Some(Job { held: self.held.hold(reply), message, sequence, delivered })
    }

    /// Processes a message until it is clear what to tell the server.
    async fn process(
        &self,
        job: &Job,
        delivery: Arc<Delivery>,
        mut stopped: watch::Receiver<bool>,
    ) -> AckKind {
        loop {
            let slot = tokio::select! {
                biased;
                () = stop(&mut stopped) => return AckKind::Nak(None),
                slot = self.slots.acquire() => slot,
            };
            let disposition = self.processor.process(delivery.clone()).await;
            drop(slot);
            match disposition {
                Disposition::Acknowledge => {
                    self.failures.take(job.sequence);
                    return AckKind::Ack;
                }
                Disposition::Retry { after, failure } => {
                    self.failures.remember(job.sequence, failure);
                    return AckKind::Nak(Some(after));
                }
                // The server counts each delivery. So the message is not given back, and waits here.
                Disposition::Release { after } => tokio::select! {
                    biased;
                    () = stop(&mut stopped) => return AckKind::Nak(None),
                    () = sleep(after) => {}
                },
                Disposition::DeadLetter { reason, failure } => {
                    return self.bury(job, reason, failure, stopped).await;
                }
                _ => return AckKind::Nak(None),
            }
        }
    }

    /// Stores the letter of a message, and then lets the message go. While the letter can't be stored the message stays in hand.
    async fn bury(
        &self,
        job: &Job,
        reason: DeathReason,
        failure: Option<AttemptFailure>,
        mut stopped: watch::Receiver<bool>,
    ) -> AckKind {
        let mut evidence = self.failures.take(job.sequence).unwrap_or_default();
        evidence.add(failure.unwrap_or_else(|| self.crash(job.delivered)));
        let mut failures = 0;
        loop {
            match self.store(job, &evidence, reason).await {
                Ok(()) => return AckKind::Term,
                Err(error) => self.log.failed("DeadLetter", &self.target, job.sequence, &error),
            }
            let pause = reconnect_pause(failures);
            failures += 1;
            tokio::select! {
                biased;
                () = stop(&mut stopped) => {
                    evidence.failures().iter().for_each(|failure| self.failures.remember(job.sequence, failure.clone()));
                    return AckKind::Nak(None);
                }
                () = sleep(pause) => {}
            }
        }
    }

    async fn store(
        &self,
        job: &Job,
        evidence: &FailureEvidence,
        reason: DeathReason,
    ) -> Result<(), crate::NatsError> {
        let context = self.connection.jetstream().await?;
        let consumer = &*self.target.consumer;
        let casualty = Casualty {
            consumer,
            sequence: job.sequence,
            subject: job.message.subject.as_str(),
            headers: job.message.headers.as_ref(),
            payload: &job.message.payload,
        };
        if self.place.bury(&context, &casualty, evidence.clone(), reason).await? {
            self.log.buried(&self.target.stream, consumer, job.sequence, reason.name());
        }
        Ok(())
    }

    /// What is known of a message whose deliveries ended without an outcome.
    fn crash(&self, delivered: u32) -> AttemptFailure {
        let since_1970 = self.connection.clock().wall().duration_since(std::time::UNIX_EPOCH);
        let error =
            format!("delivered {delivered} times without an outcome: the process died, or took too long");
        AttemptFailure {
            attempt: delivered,
            at: Millis(0) + since_1970.unwrap_or_default(),
            took: Duration::ZERO,
            error,
        }
    }

    async fn settle(&self, job: &Job, kind: AckKind) {
        // The end of a message is confirmed where it matters: one that was terminated without the server's knowledge would be
        // delivered again, and its letter is stored.
        let confirmed = self.confirm_acks && matches!(kind, AckKind::Ack | AckKind::Term);
        let settled = settle(&self.connection, job.held.reply(), kind, confirmed, self.ack_wait).await;
        if let Err(error) = settled {
            self.log.failed("Acknowledge", &self.target, job.sequence, &error);
        }
    }
}

/// Waits until the consumer is told to stop.
pub(crate) async fn stop(stopped: &mut watch::Receiver<bool>) {
    // A sender that is gone means that nobody waits for us any more.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}
