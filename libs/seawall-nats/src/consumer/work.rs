//! What happens to one message between its arrival and its end.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::AckKind;
use async_nats::{Message, Subject};
use seawall_dist::Millis;
use seawall_dist::messaging::{AttemptFailure, DeathReason, Delivery, FailureEvidence, MessageProcessor};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::sleep;

use super::failures::FailedMessages;
use super::held::{HeldMessage, HeldMessages};
use super::queue::MessageQueue;
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
    /// The number of handlers that may run at the same time.
    pub(super) concurrency: u32,
    pub(super) held: Arc<HeldMessages>,
    pub(super) failures: FailedMessages,
    pub(super) place: DeadLetterPlace,
    pub(super) ack_wait: Duration,
    pub(super) confirm_acks: bool,
    pub(super) log: ConsumerLog,
}

/// A message with its position and its place among those in hand.
#[derive(Debug)]
pub(super) struct Job {
    message: Message,
    /// The message as handlers see it, once one has seen it.
    delivery: Option<Arc<Delivery>>,
    /// Where its acknowledgement goes.
    pub(super) reply: Subject,
    pub(super) sequence: u64,
    delivered: u32,
    _held: HeldMessage,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Worker {
    /// Runs the handler on one message after the other, until the queue is closed.
    pub(super) async fn work(self: Arc<Self>, queue: Arc<MessageQueue>) {
        while let Some(mut job) = queue.next().await {
            let delivery = job.delivery.take().unwrap_or_else(|| self.delivery(&job));
            job.delivery = Some(delivery.clone());
            let disposition = self.processor.process(delivery).await;
            queue.end(job, disposition).await;
        }
    }

    /// The message with its position; `None` for something that is no message of a stream.
    pub(super) fn job(&self, pulled: PulledMessage) -> Option<Job> {
        let PulledMessage { message, permit } = pulled;
        let reply = message.reply.clone()?;
        let Position { sequence, delivered } = Position::of_reply(&reply)?;
        let held = self.held.hold(reply.clone());
        Some(Job { message, delivery: None, reply, sequence, delivered, _held: held, _permit: permit })
    }

    fn delivery(&self, job: &Job) -> Arc<Delivery> {
        let Message { subject, headers, payload, .. } = &job.message;
        let content = message_of(subject.as_str(), headers.as_ref(), payload);
        let delivery = Delivery::new(content, self.target.stream.clone(), job.delivered);
        Arc::new(delivery.with_position("sequence", job.sequence))
    }

    /// Lets a message wait before its handler runs again. The server counts each delivery; so the message is not given back.
    pub(super) async fn release(
        self: Arc<Self>,
        job: Job,
        after: Duration,
        queue: Arc<MessageQueue>,
        mut stopped: watch::Receiver<bool>,
    ) {
        let refused = tokio::select! {
            biased;
            () = stop(&mut stopped) => Some(job),
            () = sleep(after) => queue.put_back(job),
        };
        if let Some(job) = refused {
            self.settle(&job, AckKind::Nak(None)).await;
        }
    }

    /// Stores the letter of a message, and then lets the message go. While the letter can't be stored the message stays in hand.
    pub(super) async fn bury(
        self: Arc<Self>,
        job: Job,
        reason: DeathReason,
        failure: Option<AttemptFailure>,
        mut stopped: watch::Receiver<bool>,
    ) {
        let mut evidence = self.failures.take(job.sequence).unwrap_or_default();
        evidence.add(failure.unwrap_or_else(|| self.crash(job.delivered)));
        let mut failures = 0;
        let end = loop {
            match self.store(&job, &evidence, reason).await {
                Ok(()) => break AckKind::Term,
                Err(error) => self.log.failed("DeadLetter", &self.target, job.sequence, &error),
            }
            let pause = reconnect_pause(failures);
            failures += 1;
            tokio::select! {
                biased;
                () = stop(&mut stopped) => {
                    evidence.failures().iter().for_each(|failure| self.failures.remember(job.sequence, failure.clone()));
                    break AckKind::Nak(None);
                }
                () = sleep(pause) => {}
            }
        };
        self.settle(&job, end).await;
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

    /// Returns true if the server has to confirm it. The end of a message is confirmed where it matters: one that was terminated
    /// without the server's knowledge would be delivered again, and its letter is stored.
    pub(super) fn is_confirmed(&self, kind: AckKind) -> bool {
        self.confirm_acks && matches!(kind, AckKind::Ack | AckKind::Term)
    }

    /// Tells the server what became of a message.
    pub(super) async fn settle(&self, job: &Job, kind: AckKind) {
        let confirmed = self.is_confirmed(kind);
        let settled = settle(&self.connection, &job.reply, kind, confirmed, self.ack_wait).await;
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
