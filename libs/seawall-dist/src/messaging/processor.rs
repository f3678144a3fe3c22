//! Runs the handler of the application on one delivery, and says what comes of it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, UNIX_EPOCH};

use seawall::{Clock, Fault};
use tokio::time::timeout;

use super::disposition::{Rules, after_failure};
use super::telemetry::Telemetry;
use super::{
    AttemptFailure, DeathReason, Delivery, Disposition, HandlerError, MessageHandler, MessageProcessorBuilder,
};
use crate::Millis;
use crate::idempotency::{Inbox, MessageOutcome, OnceError};
use crate::random;
use crate::work::poll_caught;

/// Runs a handler on deliveries. Adapters of brokers are built around it. It is a handle: clones share everything.
///
/// [The module](super) describes its behaviour.
#[derive(Clone)]
pub struct MessageProcessor(Arc<Inner>);

struct Inner {
    handler: Arc<dyn MessageHandler>,
    inbox: Option<Inbox>,
    rules: Rules,
    handler_timeout: Duration,
    clock: Clock,
    telemetry: Telemetry,
}

/// How a delivery ended that needs no further attempt, or none that counts.
enum Ending {
    Done,
    Duplicate,
    Failed(HandlerError),
    /// Not attempted; the wait that somebody asked for, and why.
    Postponed(Option<Duration>, String),
    Dead(DeathReason, String),
}

impl MessageProcessor {
    /// Starts to configure a processor. The component stands in its log lines, such as `Kafka-Consumer`; the system in its
    /// metrics, such as `kafka`.
    pub fn builder(
        component: &str,
        system: &'static str,
        handler: impl MessageHandler,
    ) -> MessageProcessorBuilder {
        MessageProcessorBuilder::new(component, system, Arc::new(handler))
    }

    /// Starts to configure a processor with a handler that others share.
    pub fn builder_shared(
        component: &str,
        system: &'static str,
        handler: Arc<dyn MessageHandler>,
    ) -> MessageProcessorBuilder {
        MessageProcessorBuilder::new(component, system, handler)
    }

    pub(super) fn new(
        handler: Arc<dyn MessageHandler>,
        inbox: Option<Inbox>,
        rules: Rules,
        handler_timeout: Duration,
        clock: Clock,
        telemetry: Telemetry,
    ) -> Self {
        MessageProcessor(Arc::new(Inner { handler, inbox, rules, handler_timeout, clock, telemetry }))
    }

    /// How often a message is attempted.
    #[must_use]
    pub fn attempts_max(&self) -> u32 {
        self.0.rules.attempts_max
    }

    /// The time limit of the handler.
    #[must_use]
    pub fn handler_timeout(&self) -> Duration {
        self.0.handler_timeout
    }

    /// Runs the handler, unless the message was processed before, and says what to do with the message.
    ///
    /// It never fails: errors, panics and time limits are dispositions. A future that is dropped leaves the message to its next
    /// delivery.
    pub async fn process(&self, delivery: Arc<Delivery>) -> Disposition {
        let Inner { rules, clock, telemetry, .. } = &*self.0;
        telemetry.received(&delivery);
        let (began, at) = (clock.precise(), wall(clock));
        if delivery.attempt() > rules.attempts_max {
            let reason = DeathReason::Crashes;
            telemetry.died(&delivery, reason, "delivered more often than it may be", Duration::ZERO);
            return Disposition::DeadLetter { reason, failure: None };
        }
        let ending = self.run(&delivery).await;
        let took = clock.precise().since(began);
        self.dispose(&delivery, ending, at, took)
    }

    /// Runs the handler, through the inbox if there is one.
    async fn run(&self, delivery: &Arc<Delivery>) -> Ending {
        let Some(inbox) = &self.0.inbox else {
            return self.attempt(delivery).await.map_or_else(Ending::Failed, |()| Ending::Done);
        };
        let Some(identity) = delivery.identity() else {
            let text = "the message has no id, so that the inbox can't recognise it";
            return Ending::Dead(DeathReason::Invalid, text.to_owned());
        };
        match inbox.handle(&identity, |_| self.attempt(delivery)).await {
            Ok(MessageOutcome::Done(())) => Ending::Done,
            Ok(MessageOutcome::Duplicate) => Ending::Duplicate,
            Err(OnceError::Failed { error, .. }) => Ending::Failed(error),
            Err(OnceError::InFlight { retry_after, .. }) => {
                Ending::Postponed(Some(retry_after), "another consumer works on it".to_owned())
            }
            Err(OnceError::Store(error)) => Ending::Postponed(None, format!("the inbox is away: {error}")),
            // The work is done. That the inbox does not know it matters only if the broker delivers it again.
            Err(OnceError::NotRecorded { .. } | OnceError::TooLarge { .. }) => Ending::Done,
            Err(OnceError::InvalidKey(error)) => Ending::Dead(DeathReason::Invalid, error.to_string()),
            Err(OnceError::Unknown) => {
                let text = "an earlier attempt may have taken effect: look, and resolve its key in the inbox";
                Ending::Dead(DeathReason::Unknown, text.to_owned())
            }
            Err(error @ (OnceError::Mismatch | OnceError::StoredFailure(_))) => {
                Ending::Dead(DeathReason::Refused, error.to_string())
            }
            Err(error @ OnceError::Lost) => {
                Ending::Failed(HandlerError::with_fault(Fault::timeout(), error.to_string()))
            }
        }
    }

    async fn attempt(&self, delivery: &Arc<Delivery>) -> Result<(), HandlerError> {
        let Inner { handler, handler_timeout, .. } = &*self.0;
        // Calling the handler may panic too, before there is a future.
        let mut work = pin!(async { handler.handle(delivery.clone()).await });
        let mut caught = pin!(poll_fn(move |context| poll_caught(work.as_mut(), context)));
        // What ends at its first poll needs no timer, which would cost more than a quick handler does.
        let first = poll_fn(|context| Poll::Ready(caught.as_mut().poll(context))).await;
        let ended = match first {
            Poll::Ready(result) => Ok(result),
            Poll::Pending => timeout(*handler_timeout, caught).await,
        };
        match ended {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => {
                Err(HandlerError::with_fault(Fault::system(), format!("the handler panicked: {panic}")))
            }
            Err(_) => Err(HandlerError::with_fault(
                Fault::timeout(),
                format!("the handler took longer than {handler_timeout:?}"),
            )),
        }
    }

    fn dispose(&self, delivery: &Delivery, ending: Ending, at: Millis, took: Duration) -> Disposition {
        let Inner { rules, telemetry, .. } = &*self.0;
        let failure = |error: String| AttemptFailure { attempt: delivery.attempt(), at, took, error };
        match ending {
            Ending::Done => {
                telemetry.done(delivery, took);
                Disposition::Acknowledge
            }
            Ending::Duplicate => {
                telemetry.duplicate(delivery, took);
                Disposition::Acknowledge
            }
            Ending::Failed(error) => {
                let (text, fault) = (error.text(), error.fault());
                let disposition =
                    after_failure(failure(text.clone()), fault, error.is_invalid(), rules, random::word());
                match &disposition {
                    Disposition::DeadLetter { reason, .. } => telemetry.died(delivery, *reason, &text, took),
                    Disposition::Release { after } => telemetry.released(delivery, &text, *after, took),
                    _ => telemetry.failed(delivery, fault, &text, took),
                }
                disposition
            }
            Ending::Postponed(wait, why) => {
                let shortest = rules.backoff.wait(0, Duration::ZERO, false, random::word());
                let after = wait.unwrap_or_default().max(shortest);
                telemetry.released(delivery, &why, after, took);
                Disposition::Release { after }
            }
            Ending::Dead(reason, why) => {
                telemetry.died(delivery, reason, &why, took);
                Disposition::DeadLetter { reason, failure: Some(failure(why)) }
            }
        }
    }
}

/// The wall time now.
pub(super) fn wall(clock: &Clock) -> Millis {
    Millis(0) + clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl fmt::Debug for MessageProcessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageProcessor")
            .field("rules", &self.0.rules)
            .field("handler_timeout", &self.0.handler_timeout)
            .field("inbox", &self.0.inbox)
            .finish_non_exhaustive()
    }
}
