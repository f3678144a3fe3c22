//! The row of a file in the queue: where it goes, and what was tried.

use std::io;
use std::time::Duration;

use seawall_dist::Millis;
use serde_json::{Value, json};

/// The number of attempts that a row remembers: the first ones are the cause, the last ones the state.
const ATTEMPTS_KEPT: usize = 20;

/// A file that waits to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    /// The id of the file, which is its name in the folder.
    pub(crate) id: String,
    /// The key in the store.
    pub(crate) key: String,
    pub(crate) content_type: String,
    pub(crate) bytes: u64,
    /// The SHA-256 of the bytes, in hexadecimal.
    pub(crate) checksum: String,
    /// When the file was accepted.
    pub(crate) at: Millis,
    /// Why the file was not sent at once.
    pub(crate) trigger: String,
    pub(crate) trace: Option<String>,
    /// The attempts, the first one first.
    pub(crate) attempts: Vec<RowAttempt>,
    /// How many attempts there were, those that are not remembered included.
    pub(crate) attempts_made: u64,
    /// How often the file failed while another one behind it was sent.
    pub(crate) strikes: u64,
}

/// One attempt to send a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RowAttempt {
    pub(crate) at: Millis,
    pub(crate) took: Duration,
    pub(crate) error: String,
}

impl Row {
    pub(super) fn add(&mut self, attempt: RowAttempt) {
        if self.attempts.len() >= ATTEMPTS_KEPT {
            self.attempts.remove(ATTEMPTS_KEPT / 2);
        }
        self.attempts.push(attempt);
        self.attempts_made += 1;
    }

    /// What the last attempt said.
    pub(super) fn last_error(&self) -> &str {
        self.attempts.last().map_or("", |last| &last.error)
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        let attempts = self.attempts.iter().map(
            |attempt| json!({ "at": attempt.at.0, "tookMs": millis(attempt.took), "error": attempt.error }),
        );
        let row = json!({
            "version": 1,
            "id": self.id,
            "key": self.key,
            "contentType": self.content_type,
            "bytes": self.bytes,
            "sha256": self.checksum,
            "at": self.at.0,
            "trigger": self.trigger,
            "traceId": self.trace,
            "attempts": attempts.collect::<Vec<Value>>(),
            "attemptsMade": self.attempts_made,
            "strikes": self.strikes,
        });
        row.to_string().into_bytes()
    }

    pub(super) fn from_json(bytes: &[u8]) -> io::Result<Row> {
        let value: Value = serde_json::from_slice(bytes).map_err(io::Error::other)?;
        Row::read(&value).ok_or_else(|| io::Error::other("the row lacks a field or is of another version"))
    }

    fn read(value: &Value) -> Option<Row> {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let number = |name: &str| value.get(name)?.as_u64();
        let attempt = |value: &Value| {
            Some(RowAttempt {
                at: Millis(value.get("at")?.as_i64()?),
                took: Duration::from_millis(value.get("tookMs")?.as_u64()?),
                error: value.get("error")?.as_str()?.to_owned(),
            })
        };
        (number("version")? == 1).then_some(())?;
        Some(Row {
            id: text("id")?,
            key: text("key")?,
            content_type: text("contentType")?,
            bytes: number("bytes")?,
            checksum: text("sha256")?,
            at: Millis(value.get("at")?.as_i64()?),
            trigger: text("trigger")?,
            trace: text("traceId"),
            attempts: value.get("attempts")?.as_array()?.iter().map(attempt).collect::<Option<_>>()?,
            attempts_made: number("attemptsMade")?,
            strikes: number("strikes")?,
        })
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            id: "7f8a6a3e-2c0b-4d7e-9a51-0c9a3e0d1b2c_a \"quoted\" näme.pdf".to_owned(),
            key: "uploads/x".to_owned(),
            content_type: "application/pdf".to_owned(),
            bytes: 7,
            checksum: "00".to_owned(),
            at: Millis(1_794_744_000_250),
            trigger: "refused\nin two lines".to_owned(),
            trace: None,
            attempts: Vec::new(),
            attempts_made: 0,
            strikes: 3,
        }
    }

    /// ADP-8: what is written to the queue is what is read from it, and what is torn is not taken for a row.
    #[test]
    fn adp_8_a_row_is_read_as_it_was_written() {
        let mut row = row();
        for number in 0..50 {
            let took = Duration::from_millis(number);
            row.add(RowAttempt { at: Millis(5), took, error: format!("attempt {number}") });
        }
        let json = row.to_json();
        assert_eq!(Row::from_json(&json).unwrap(), row);
        assert_eq!((row.attempts.len(), row.attempts_made), (ATTEMPTS_KEPT, 50));
        assert_eq!(row.attempts[0].error, "attempt 0");
        assert_eq!(row.attempts.last().unwrap().error, "attempt 49");
        for end in 0..json.len() {
            assert!(Row::from_json(&json[..end]).is_err(), "{end}");
        }
    }
}
