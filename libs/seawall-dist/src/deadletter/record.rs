//! The record of something that was given up.
//!
//! # What is in the record
//! An operator who opens a dead letter at three in the morning wants to know what it was, where it should have gone, what was tried
//! and what came back, each time. So all of it is in the record, and nothing has to be looked up in a log that has been
//! rotated away. What is secret is not: evidence is taken before credentials are added, and of an answer's headers only those
//! are kept that are known to be harmless ([`KEPT_HEADERS`]).

use std::time::Duration;

use crate::Millis;

/// Something that was given up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its name.
    pub id: String,
    /// Where it comes from.
    pub origin: Origin,
    /// What it was about, as it came.
    pub payload: Vec<u8>,
    /// What was to be sent.
    pub headers: Vec<(String, String)>,
    /// Why it was given up.
    pub fault: LetterFault,
    /// When.
    pub at: Millis,
    /// Every attempt, the first one first.
    pub attempts: Vec<Attempt>,
    /// The trace that it belongs to.
    pub trace: Option<String>,
}

/// Where a dead letter comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The kind of place: `bridge`, `amqp`, `kafka`, `outbox`.
    pub kind: String,
    /// Which of them: a service, a queue, a topic.
    pub place: String,
    /// The name that the sender gave it: an event's id, a message's id.
    pub id: String,
    /// When the sender created it, if that is known. A replay hands it on, so that the receiver can tell old state from new.
    pub at: Option<Millis>,
}

/// The reason for which something was given up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LetterFault {
    /// In one word that does not change: `refused`, `attempts`, `age`, …
    pub reason: String,
    /// What the last attempt said.
    pub message: Option<String>,
}

/// One attempt, with what was sent and what came back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attempt {
    /// When it began.
    pub at: Millis,
    /// How long it took.
    pub took: Duration,
    /// What was sent, if it is not what the record says.
    pub sent: Option<SentRequest>,
    /// What went wrong, in words.
    pub error: Option<String>,
    /// What came back, if anything did.
    pub answer: Option<Answer>,
}

/// A request as it was sent, without credentials.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SentRequest {
    /// `POST https://billing.example/invoices/7`
    pub line: String,
    /// Names in small letters, and values.
    pub headers: Vec<(String, String)>,
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// The status, or what stands for it.
    pub status: u16,
    /// Those of [`KEPT_HEADERS`] that came.
    pub headers: Vec<(String, String)>,
    /// The beginning of the body.
    pub body: Vec<u8>,
}

/// Headers of an answer that may be kept. A list of what is harmless, and not of what is secret: nobody knows all of those.
pub const KEPT_HEADERS: [&str; 13] = [
    "content-type",
    "content-length",
    "content-encoding",
    "date",
    "retry-after",
    "server",
    "via",
    "x-request-id",
    "x-correlation-id",
    "traceparent",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
];

/// Of these headers those that may be kept.
#[must_use]
pub fn kept_headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<(String, String)> {
    let kept = headers.into_iter().filter(|(name, _)| KEPT_HEADERS.contains(name));
    kept.map(|(name, value)| (name.to_owned(), String::from_utf8_lossy(value).into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRD-7, PRM-9. Trap "stored metadata that carries credentials": what may be kept is a list; a cookie is not on it.
    #[test]
    fn crd_7_of_an_answer_only_harmless_headers_are_kept() {
        let headers: [(&str, &[u8]); 4] = [
            ("content-type", b"text/plain"),
            ("set-cookie", b"session=s3cr3t"),
            ("x-auth-token", b"s3cr3t"),
            ("retry-after", b"7"),
        ];
        let kept = kept_headers(headers);
        assert_eq!(
            kept,
            [
                ("content-type".to_owned(), "text/plain".to_owned()),
                ("retry-after".to_owned(), "7".to_owned())
            ]
        );
    }
}
