//! Takes over what lies in the dead letter place of a broker.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use seawall::Clock;

use super::processor::wall;
use super::{AGGREGATE_ID_HEADER, CONSUMER_HEADER, Delivery, EVENT_TYPE_HEADER, FailureEvidence};
use crate::StoreError;
use crate::deadletter::{Attempt, DeadLetters, LetterFault, Origin, PutOutcome, Record, Status};

/// Raises an alert about a dead letter.
pub type AlertHook = Arc<dyn Fn(&Record) + Send + Sync>;

/// Takes messages from the dead letter queue, topic or stream of a broker over into [`DeadLetters`], where they can be searched,
/// edited, parked and replayed whatever broker they came from.
///
/// A queue can't be searched, and a topic can't forget one record; so an adapter reads its dead letter place with an intake, and
/// acknowledges a message there when the store has it. A message that is taken twice is one letter; one that two consumers gave
/// up is two, and the header `seawall-consumer` says whose it is. It is a handle: clones share
/// everything.
#[derive(Clone)]
pub struct DeadLetterIntake {
    kind: &'static str,
    component: Arc<str>,
    letters: DeadLetters,
    alert: Option<AlertHook>,
    clock: Clock,
}

impl DeadLetterIntake {
    /// Creates an intake. The kind is that of the letters' origin, such as `kafka`; the component stands in log lines, such as
    /// `Kafka-DLT`.
    #[must_use]
    pub fn new(kind: &'static str, component: &str, letters: DeadLetters) -> Self {
        DeadLetterIntake { kind, component: component.into(), letters, alert: None, clock: Clock::default() }
    }

    /// Calls this for every message that is taken, after the store has it: at least once for each, and again if the broker
    /// delivers it again. A hook that panics is reported in the log and stops nothing.
    #[must_use]
    pub fn alert(mut self, hook: impl Fn(&Record) + Send + Sync + 'static) -> Self {
        self.alert = Some(Arc::new(hook));
        self
    }

    /// Stamps letters with this clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The dead letters that this intake fills.
    #[must_use]
    pub fn letters(&self) -> &DeadLetters {
        &self.letters
    }

    /// Keeps a message in the store. Acknowledge it to the broker only after this returns `Ok`.
    pub async fn take(&self, delivery: &Delivery) -> Result<PutOutcome, StoreError> {
        let mut record = self.record(delivery);
        if record.attempts.is_empty()
            && let Some(known) = self.letters.get(&record.id).await?
            && known.status != Status::Replayed
            && known.claim.is_none()
        {
            // Nothing says when it died, and nothing was sent again since it was taken: the broker delivers it a second time.
            // The time of now would make a new death of that, and bring a deleted letter back.
            record.at = known.record.at;
        }
        let outcome = self.letters.put(&record).await?;
        self.tell(delivery, &record);
        Ok(outcome)
    }

    /// The record of a message, by the evidence in its headers.
    #[must_use]
    pub fn record(&self, delivery: &Delivery) -> Record {
        let message = delivery.message();
        let evidence = FailureEvidence::from_headers(message.headers());
        let place = evidence.origin().unwrap_or(delivery.place()).to_owned();
        // What has no id is the message at its first position, or else at the one where it was found.
        let position = || evidence.origin_position().map_or_else(|| delivery.position_text(), str::to_owned);
        let id = Some(message.event_id()).filter(|id| !id.is_empty()).map_or_else(position, str::to_owned);
        let mut headers = FailureEvidence::strip(message.headers());
        for (name, value) in
            [(EVENT_TYPE_HEADER, message.event_type()), (AGGREGATE_ID_HEADER, message.aggregate_id())]
        {
            if !value.is_empty() && !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                headers.push((name.to_owned(), value.to_owned()));
            }
        }
        let consumer = evidence.consumer();
        headers.extend(consumer.map(|consumer| (CONSUMER_HEADER.to_owned(), consumer.to_owned())));
        let attempts = evidence.failures().iter().map(|failure| Attempt {
            at: failure.at,
            took: failure.took,
            error: Some(failure.error.clone()),
            ..Attempt::default()
        });
        let last = evidence.failures().last().map(|failure| failure.at + failure.took);
        Record {
            id: [self.kind, &place, &id].into_iter().chain(consumer).collect::<Vec<_>>().join(":"),
            origin: Origin { kind: self.kind.to_owned(), place, id, at: None },
            payload: message.payload().to_vec(),
            headers,
            fault: LetterFault {
                reason: evidence.reason().unwrap_or("unknown").to_owned(),
                message: evidence.cause().map(str::to_owned),
            },
            at: last.unwrap_or_else(|| wall(&self.clock)),
            attempts: attempts.collect(),
            trace: delivery.trace_id().map(str::to_owned),
        }
    }

    fn tell(&self, delivery: &Delivery, record: &Record) {
        let _ = delivery;
        #[cfg(feature = "metrics")]
        metrics::counter!("messaging.dead_letters.taken", "system" => self.kind, "destination" => record.origin.place.clone())
            .increment(1);
        #[cfg(feature = "tracing")]
        {
            let message = delivery.message();
            tracing::error!(target: "seawall", traceId = delivery.trace_id(), eventType = message.event_type(), eventId = message.event_id(),
                aggregateId = message.aggregate_id(), place = record.origin.place.as_str(), partition = delivery.position("partition"),
                offset = delivery.position("offset"), letterId = record.id.as_str(), reason = record.fault.reason.as_str(),
                errorMessage = record.fault.message.as_deref(), action = "ManualReview",
                "[{}][{}] Sent to DLQ!", self.component, super::telemetry::operation(message));
        }
        let Some(alert) = &self.alert else { return };
        if catch_unwind(AssertUnwindSafe(|| alert(record))).is_err() {
            #[cfg(feature = "tracing")]
            tracing::error!(target: "seawall", letterId = record.id.as_str(), "[{}][Alert] The alert hook panicked!", self.component);
        }
    }
}

impl fmt::Debug for DeadLetterIntake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetterIntake")
            .field("kind", &self.kind)
            .field("component", &self.component)
            .finish_non_exhaustive()
    }
}
