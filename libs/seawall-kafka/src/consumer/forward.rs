//! Moves records to retry topics and to the dead letter topic.

use std::time::{Duration, UNIX_EPOCH};

use rdkafka::producer::FutureRecord;
use seawall::Clock;
use seawall_dist::messaging::{AttemptFailure, DeathReason, FailureEvidence};

use crate::producer::SharedProducer;
use crate::record::ReceivedRecord;
use crate::topics::TopicFamily;

/// The header with the time when a record of a retry topic is due: milliseconds since 1970, and after how many milliseconds
/// that is. The second number bounds the wait where clocks disagree.
pub const DUE_HEADER: &str = "seawall-due";

/// The first wait before a record is forwarded again that the cluster did not take.
const FORWARD_WAIT: Duration = Duration::from_millis(200);

/// The longest wait before a record is forwarded again.
const FORWARD_WAIT_MAX: Duration = Duration::from_secs(5);

/// Writes records to the topics beside a topic.
pub(crate) struct Forwarder {
    pub(crate) producer: SharedProducer,
    pub(crate) family: TopicFamily,
    /// Who failed. Another group that reads the retry topics leaves the record to this one.
    pub(crate) group: String,
    pub(crate) clock: Clock,
}

impl Forwarder {
    /// Writes a record whose attempt failed to its retry topic. Returns when the cluster has it.
    pub(crate) async fn retry(&self, record: &ReceivedRecord, after: Duration, failure: AttemptFailure) {
        let Some(topic) = self.family.retry_after(failure.attempt) else {
            return self.bury(record, DeathReason::Attempts, Some(failure)).await;
        };
        let mut headers = self.evidence(record, None, Some(failure));
        let due = (wall_millis(&self.clock), after.as_millis());
        headers.push((DUE_HEADER.to_owned(), format!("{} {}", due.0.saturating_add(due.1), due.1)));
        self.write(topic, record, &headers).await;
    }

    /// Writes a record that is given up to the dead letter topic. Returns when the cluster has it.
    pub(crate) async fn bury(
        &self,
        record: &ReceivedRecord,
        reason: DeathReason,
        failure: Option<AttemptFailure>,
    ) {
        let headers = self.evidence(record, Some(reason), failure);
        self.write(self.family.dead_letter_topic(), record, &headers).await;
    }

    fn evidence(
        &self,
        record: &ReceivedRecord,
        reason: Option<DeathReason>,
        failure: Option<AttemptFailure>,
    ) -> Vec<(String, String)> {
        let (delivery, headers) = (&record.delivery, record.message().headers());
        let mut evidence = FailureEvidence::from_headers(headers);
        evidence.set_origin(delivery.place(), &delivery.position_text());
        evidence.set_consumer(&self.group);
        if let Some(failure) = failure {
            evidence.add(failure);
        }
        if let Some(reason) = reason {
            evidence.set_reason(reason);
        }
        let mut headers = evidence.apply(headers);
        headers.retain(|(name, _)| name != DUE_HEADER);
        headers
    }

    /// Writes until the cluster has it. While it does not, the record counts as being processed, so that nothing is lost: the
    /// partition waits, and the log says why.
    async fn write(&self, topic: &str, record: &ReceivedRecord, headers: &[(String, String)]) {
        let mut wait = FORWARD_WAIT;
        loop {
            let mut forwarded = FutureRecord::to(topic).headers(record.wire_headers(headers));
            forwarded.key = record.key();
            forwarded.payload = record.payload();
            let Err(error) = self.producer.send(forwarded).await else {
                #[cfg(feature = "metrics")]
                crate::metrics::forwarded(topic);
                return;
            };
            let text = format!("{topic}: {error}");
            let log = self.producer.events().log();
            if error.fault().is_transient() {
                log.warn("Forward", "The cluster did not take the record, will retry.", &text);
            } else {
                log.error("Forward", "The cluster refuses the record, and its partition waits!", &text);
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(FORWARD_WAIT_MAX);
        }
    }
}

/// How long a record still has to wait, by its header.
pub(crate) fn remaining_wait(record: &ReceivedRecord, clock: &Clock) -> Duration {
    let read = |text: &str| {
        let (due, delay) = text.split_once(' ')?;
        let (due, delay) = (due.parse::<u128>().ok()?, delay.parse::<u64>().ok()?);
        let left = u64::try_from(due.saturating_sub(wall_millis(clock))).unwrap_or(u64::MAX);
        Some(Duration::from_millis(left.min(delay)))
    };
    record.message().header(DUE_HEADER).and_then(read).unwrap_or_default()
}

fn wall_millis(clock: &Clock) -> u128 {
    clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}
