//! The parts of a letter that are lists, as JSON that a person can read in a query.

use std::fmt::Write as _;
use std::time::Duration;

use seawall_dist::Millis;
use seawall_dist::deadletter::{Answer, Attempt, LetterReplay, SentRequest};
use serde_json::{Value, json};
use sqlx::error::BoxDynError;

type Headers = Vec<(String, String)>;

pub(crate) fn headers_text(headers: &[(String, String)]) -> String {
    json!(headers).to_string()
}

pub(crate) fn headers_of(text: &str) -> Result<Headers, BoxDynError> {
    Ok(serde_json::from_str(text)?)
}

pub(crate) fn replays_text(replays: &[LetterReplay]) -> String {
    let replays: Vec<Value> = replays
        .iter()
        .map(|replay| json!({"generation": replay.generation, "key": replay.key, "at": replay.at.0}))
        .collect();
    Value::from(replays).to_string()
}

pub(crate) fn replays_of(text: &str) -> Result<Vec<LetterReplay>, BoxDynError> {
    let replays: Vec<Value> = serde_json::from_str(text)?;
    let read = |value: &Value| {
        Some(LetterReplay {
            generation: u32::try_from(value["generation"].as_u64()?).ok()?,
            key: value["key"].as_str()?.to_owned(),
            at: Millis(value["at"].as_i64()?),
        })
    };
    replays.iter().map(|value| read(value).ok_or_else(|| unreadable("replays"))).collect()
}

pub(crate) fn attempts_text(attempts: &[Attempt]) -> String {
    let attempts: Vec<Value> = attempts.iter().map(attempt_value).collect();
    Value::from(attempts).to_string()
}

fn attempt_value(attempt: &Attempt) -> Value {
    let sent = attempt.sent.as_ref().map(|sent| json!({"line": sent.line, "headers": sent.headers}));
    let answer = attempt
        .answer
        .as_ref()
        .map(|answer| json!({"status": answer.status, "headers": answer.headers, "body": hex(&answer.body)}));
    let nanos = u64::try_from(attempt.took.as_nanos()).unwrap_or(u64::MAX);
    json!({"at": attempt.at.0, "tookNanos": nanos, "sent": sent, "error": attempt.error, "answer": answer})
}

pub(crate) fn attempts_of(text: &str) -> Result<Vec<Attempt>, BoxDynError> {
    let attempts: Vec<Value> = serde_json::from_str(text)?;
    attempts.iter().map(|value| attempt_of(value).ok_or_else(|| unreadable("attempts"))).collect()
}

fn attempt_of(value: &Value) -> Option<Attempt> {
    let headers = |value: &Value| serde_json::from_value::<Headers>(value["headers"].clone()).ok();
    let sent = match &value["sent"] {
        Value::Null => None,
        sent => Some(SentRequest { line: sent["line"].as_str()?.to_owned(), headers: headers(sent)? }),
    };
    let answer = match &value["answer"] {
        Value::Null => None,
        answer => Some(Answer {
            status: u16::try_from(answer["status"].as_u64()?).ok()?,
            headers: headers(answer)?,
            body: bytes(answer["body"].as_str()?)?,
        }),
    };
    Some(Attempt {
        at: Millis(value["at"].as_i64()?),
        took: Duration::from_nanos(value["tookNanos"].as_u64()?),
        sent,
        error: value["error"].as_str().map(str::to_owned),
        answer,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn unreadable(column: &str) -> BoxDynError {
    format!("the column `{column}` of a dead letter has been changed to something else").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRD-7: a row that somebody has changed by hand is an error, and no panic.
    #[test]
    fn crd_7_rows_that_were_spoilt_are_errors() {
        for text in [
            "",
            "{}",
            "[1]",
            r#"[{"at":1,"tookNanos":-1}]"#,
            r#"[{"at":1,"tookNanos":1,"answer":{"body":"ä"}}]"#,
        ] {
            assert!(attempts_of(text).is_err(), "{text}");
        }
        assert!(replays_of("[{}]").is_err() && headers_of("[[1]]").is_err());
        assert_eq!(bytes("f"), Some(vec![15]), "half a byte is read as what it is");
        assert_eq!(bytes("\u{e4}"), None);
    }
}
