//! What a message carries in its headers about its failures.

use std::time::Duration;

use super::DeathReason;
use crate::Millis;

/// How many failures are kept: the first one and the last ones. Brokers bound the size of headers.
pub const FAILURES_KEPT_MAX: usize = 16;
/// How many characters of an error are kept.
pub const ERROR_CHARS_MAX: usize = 1_000;

const ATTEMPT: &str = "seawall-attempt";
const CAUSE: &str = "seawall-cause";
const REASON: &str = "seawall-reason";
const ORIGIN: &str = "seawall-origin";
const POSITION: &str = "seawall-origin-position";
/// The header with the consumer that attempts a message, where several consumers share the place that it lies in.
pub const CONSUMER_HEADER: &str = "seawall-consumer";
/// What the names of all these headers begin with.
const PREFIX: &str = "seawall-";
const FAILURE: &str = "seawall-failure-";

/// An attempt that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptFailure {
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// When it began.
    pub at: Millis,
    /// How long it took.
    pub took: Duration,
    /// What went wrong, in words.
    pub error: String,
}

/// The failures of a message and where it comes from, as they stand in its headers.
///
/// | header | value |
/// |---|---|
/// | `seawall-attempt` | how many attempts failed |
/// | `seawall-cause` | what the last one said |
/// | `seawall-origin`, `seawall-origin-position` | the place that the message came from first, and where in it |
/// | `seawall-consumer` | who attempted it: the group or the durable consumer, where several share the place |
/// | `seawall-reason` | why it was given up |
/// | `seawall-failure-1`, … | an attempt: when it began in milliseconds since 1970, how many milliseconds it took, what it said |
///
/// ```
/// use std::time::Duration;
/// use seawall_dist::Millis;
/// use seawall_dist::messaging::{FailureEvidence, AttemptFailure};
/// let mut evidence = FailureEvidence::from_headers(&[]);
/// evidence.add(AttemptFailure { attempt: 1, at: Millis(1_700_000_000_000), took: Duration::from_millis(12), error: "no answer".into() });
/// let headers = evidence.apply(&[("content-type".into(), "application/json".into())]);
/// assert!(headers.contains(&("seawall-failure-1".into(), "1700000000000 12 no answer".into())));
/// assert_eq!(FailureEvidence::from_headers(&headers), evidence);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FailureEvidence {
    origin: Option<String>,
    position: Option<String>,
    consumer: Option<String>,
    reason: Option<String>,
    cause: Option<String>,
    attempts: u32,
    failures: Vec<AttemptFailure>,
}

impl FailureEvidence {
    /// Reads the evidence of a message. What can't be read is left out.
    #[must_use]
    pub fn from_headers(headers: &[(String, String)]) -> Self {
        let mut evidence = FailureEvidence::default();
        for (name, value) in headers.iter().filter(|(name, _)| may_be_evidence(name)) {
            let text = || Some(value.clone());
            match name.to_ascii_lowercase().as_str() {
                ATTEMPT => evidence.attempts = value.trim().parse().unwrap_or(0),
                CAUSE => evidence.cause = text(),
                REASON => evidence.reason = text(),
                ORIGIN => evidence.origin = text(),
                POSITION => evidence.position = text(),
                CONSUMER_HEADER => evidence.consumer = text(),
                other => evidence.failures.extend(failure_of(other, value)),
            }
        }
        evidence.failures.sort_by_key(|failure| failure.attempt);
        let seen = evidence.failures.last().map_or(0, |failure| failure.attempt);
        evidence.attempts = evidence.attempts.max(seen);
        evidence
    }

    /// Adds an attempt that failed. The middle ones go when there are too many.
    pub fn add(&mut self, mut failure: AttemptFailure) {
        failure.error = clean(&failure.error);
        self.attempts = self.attempts.max(failure.attempt);
        self.cause = Some(failure.error.clone());
        self.failures.retain(|known| known.attempt != failure.attempt);
        self.failures.push(failure);
        if self.failures.len() > FAILURES_KEPT_MAX {
            self.failures.remove(1);
        }
    }

    /// Says where the message comes from, unless that is known: the first place counts.
    pub fn set_origin(&mut self, place: &str, position: &str) {
        if self.origin.is_none() {
            self.origin = Some(clean(place));
            self.position = Some(clean(position)).filter(|position| !position.is_empty());
        }
    }

    /// Says who attempts the message: a group of Kafka, a durable consumer of NATS.
    pub fn set_consumer(&mut self, consumer: &str) {
        self.consumer = Some(clean(consumer));
    }

    /// Says why the message was given up.
    pub fn set_reason(&mut self, reason: DeathReason) {
        self.reason = Some(reason.name().to_owned());
    }

    /// How many attempts failed. The next one has the number after it.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The attempts that are kept, the first one first.
    #[must_use]
    pub fn failures(&self) -> &[AttemptFailure] {
        &self.failures
    }

    /// The place that the message came from first.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// Where in that place it was.
    #[must_use]
    pub fn origin_position(&self) -> Option<&str> {
        self.position.as_deref()
    }

    /// Who attempted the message, where several consumers share its place.
    #[must_use]
    pub fn consumer(&self) -> Option<&str> {
        self.consumer.as_deref()
    }

    /// Why the message was given up.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// What the last attempt said.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// The headers of a message with this evidence in place of what stood there.
    #[must_use]
    pub fn apply(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let mut headers = FailureEvidence::strip(headers);
        let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
        if self.attempts > 0 {
            add(ATTEMPT, self.attempts.to_string());
        }
        let texts = [
            (CAUSE, &self.cause),
            (REASON, &self.reason),
            (ORIGIN, &self.origin),
            (POSITION, &self.position),
            (CONSUMER_HEADER, &self.consumer),
        ];
        for (name, value) in texts {
            if let Some(value) = value {
                add(name, value.clone());
            }
        }
        for AttemptFailure { attempt, at, took, error } in &self.failures {
            add(&format!("{FAILURE}{attempt}"), format!("{} {} {error}", at.0, took.as_millis()));
        }
        headers
    }

    /// The headers of a message without evidence.
    #[must_use]
    pub fn strip(headers: &[(String, String)]) -> Vec<(String, String)> {
        let is_evidence = |name: &str| {
            let name = name.to_ascii_lowercase();
            let names = [ATTEMPT, CAUSE, REASON, ORIGIN, POSITION, CONSUMER_HEADER];
            names.contains(&name.as_str()) || name.starts_with(FAILURE)
        };
        headers.iter().filter(|(name, _)| !(may_be_evidence(name) && is_evidence(name))).cloned().collect()
    }
}

/// A quick look, because most headers are others.
fn may_be_evidence(name: &str) -> bool {
    name.get(..PREFIX.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX))
}

fn failure_of(name: &str, value: &str) -> Option<AttemptFailure> {
    let attempt = name.strip_prefix(FAILURE)?.parse().ok()?;
    let mut parts = value.splitn(3, ' ');
    let at = Millis(parts.next()?.parse().ok()?);
    let took = Duration::from_millis(parts.next()?.parse().ok()?);
    Some(AttemptFailure { attempt, at, took, error: parts.next().unwrap_or_default().to_owned() })
}

/// A text that fits into one line of a header, whatever the broker allows there.
fn clean(text: &str) -> String {
    let text = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    text.take(ERROR_CHARS_MAX).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use seawall::millis;

    fn failure(attempt: u32, error: &str) -> AttemptFailure {
        AttemptFailure {
            attempt,
            at: Millis(1_000 + i64::from(attempt)),
            took: millis(3),
            error: error.into(),
        }
    }

    /// ADP-5, CRD-7: headers carry cause, attempt and origin through any number of retries.
    #[test]
    fn adp_5_evidence_survives_its_headers() {
        let mut evidence = FailureEvidence::default();
        evidence.set_origin("orders", "partition=1 offset=5");
        evidence.set_origin("orders-retry-1", "partition=0 offset=0");
        evidence.add(failure(1, "connection\r\nrefused"));
        evidence.add(failure(2, "timed out"));
        evidence.set_reason(DeathReason::Attempts);
        evidence.set_consumer("billing");
        let own = [("a".to_owned(), "b".to_owned())];
        let headers = evidence.apply(&own);
        assert_eq!(FailureEvidence::from_headers(&headers), evidence);
        assert_eq!(FailureEvidence::strip(&headers), own);
        assert_eq!(evidence.apply(&headers), headers, "nothing doubles");
        assert_eq!(
            (evidence.attempts(), evidence.origin(), evidence.reason()),
            (2, Some("orders"), Some("attempts"))
        );
        assert!(headers.iter().all(|(_, value)| !value.contains(['\r', '\n'])), "{headers:?}");
    }

    /// CRD-7: evidence is bounded, and the first and the last failure stay.
    #[test]
    fn crd_7_of_many_failures_the_first_and_the_last_are_kept() {
        let mut evidence = FailureEvidence::default();
        (1..=100).for_each(|attempt| evidence.add(failure(attempt, &"x".repeat(5_000))));
        let kept: Vec<u32> = evidence.failures().iter().map(|failure| failure.attempt).collect();
        assert_eq!((kept.len(), kept[0], kept[15], evidence.attempts()), (FAILURES_KEPT_MAX, 1, 100, 100));
        assert!(evidence.failures().iter().all(|failure| failure.error.chars().count() == ERROR_CHARS_MAX));
    }

    /// CRD-7: headers that somebody else wrote break nothing.
    #[test]
    fn crd_7_headers_that_can_not_be_read_are_left_out() {
        let broken = ["seawall-attempt", "seawall-failure-1", "seawall-failure-x", "SEAWALL-FAILURE-9"];
        let headers = broken.map(|name| (name.to_owned(), "nonsense".to_owned()));
        assert_eq!(FailureEvidence::from_headers(&headers), FailureEvidence::default());
        assert_eq!(FailureEvidence::strip(&headers), []);
    }
}
