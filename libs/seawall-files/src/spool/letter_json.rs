//! Dead letters as JSON.

use std::io;
use std::time::Duration;

use seawall_dist::Millis;
use seawall_dist::deadletter::{
    Answer, Attempt, DeadLetter, LetterFault, LetterReplay, Origin, Record, ReplayClaim, SentRequest,
};
use serde_json::{Value, json};

use super::row::millis;
use super::staged::hexadecimal;

type Headers = Vec<(String, String)>;

pub(super) fn to_json(letter: &DeadLetter) -> Vec<u8> {
    let Record { id, origin, payload, headers, fault, at, attempts, trace } = &letter.record;
    let replays = letter.replays.iter();
    let value = json!({
        "version": 1,
        "id": id,
        "origin": { "kind": origin.kind, "place": origin.place, "id": origin.id, "at": origin.at.map(|at| at.0) },
        "payload": bytes_to(payload),
        "headers": headers,
        "fault": { "reason": fault.reason, "message": fault.message },
        "at": at.0,
        "attempts": attempts.iter().map(attempt_to).collect::<Vec<_>>(),
        "trace": trace,
        "status": letter.status.name(),
        "deletedAt": letter.deleted_at.map(|at| at.0),
        "replays": replays.map(|replay| json!([replay.generation, replay.key, replay.at.0])).collect::<Vec<_>>(),
        "claim": letter.claim.as_ref().map(|claim| json!([claim.number, claim.key, claim.until.0])),
        "claims": letter.claims,
        "copyOf": letter.copy_of,
        "supersededBy": letter.superseded_by,
    });
    value.to_string().into_bytes()
}

pub(super) fn from_json(bytes: &[u8]) -> io::Result<DeadLetter> {
    let value: Value = serde_json::from_slice(bytes).map_err(io::Error::other)?;
    read(&value).ok_or_else(|| io::Error::other("the dead letter lacks a field or is of another version"))
}

fn read(value: &Value) -> Option<DeadLetter> {
    (value.get("version")?.as_u64()? == 1).then_some(())?;
    let (origin, fault) = (value.get("origin")?, value.get("fault")?);
    let mut letter = DeadLetter::new(Record {
        id: text(value, "id")?,
        origin: Origin {
            kind: text(origin, "kind")?,
            place: text(origin, "place")?,
            id: text(origin, "id")?,
            at: time(origin, "at"),
        },
        payload: bytes_of(value.get("payload")?)?,
        headers: headers_of(value.get("headers")?)?,
        fault: LetterFault { reason: text(fault, "reason")?, message: text(fault, "message") },
        at: time(value, "at")?,
        attempts: value.get("attempts")?.as_array()?.iter().map(attempt_of).collect::<Option<_>>()?,
        trace: text(value, "trace"),
    });
    let replay = |value: &Value| {
        Some(LetterReplay {
            generation: u32::try_from(value.get(0)?.as_u64()?).ok()?,
            key: value.get(1)?.as_str()?.to_owned(),
            at: Millis(value.get(2)?.as_i64()?),
        })
    };
    letter.status = value.get("status")?.as_str()?.parse().ok()?;
    letter.deleted_at = time(value, "deletedAt");
    letter.replays = value.get("replays")?.as_array()?.iter().map(replay).collect::<Option<_>>()?;
    letter.claim = value.get("claim").filter(|claim| !claim.is_null()).and_then(|claim| {
        Some(ReplayClaim {
            number: claim.get(0)?.as_u64()?,
            key: claim.get(1)?.as_str()?.to_owned(),
            until: Millis(claim.get(2)?.as_i64()?),
        })
    });
    letter.claims = value.get("claims")?.as_u64()?;
    letter.copy_of = text(value, "copyOf");
    letter.superseded_by = text(value, "supersededBy");
    Some(letter)
}

fn attempt_to(attempt: &Attempt) -> Value {
    json!({
        "at": attempt.at.0,
        "tookMs": millis(attempt.took),
        "tookNanos": attempt.took.subsec_nanos() % 1_000_000,
        "sent": attempt.sent.as_ref().map(|sent| json!({ "line": sent.line, "headers": sent.headers })),
        "error": attempt.error,
        "answer": attempt.answer.as_ref().map(|answer| {
            json!({ "status": answer.status, "headers": answer.headers, "body": bytes_to(&answer.body) })
        }),
    })
}

fn attempt_of(value: &Value) -> Option<Attempt> {
    let sent = value.get("sent").filter(|sent| !sent.is_null());
    let sent = sent.and_then(|sent| {
        Some(SentRequest { line: text(sent, "line")?, headers: headers_of(sent.get("headers")?)? })
    });
    let answer = value.get("answer").filter(|answer| !answer.is_null()).and_then(|answer| {
        Some(Answer {
            status: u16::try_from(answer.get("status")?.as_u64()?).ok()?,
            headers: headers_of(answer.get("headers")?)?,
            body: bytes_of(answer.get("body")?)?,
        })
    });
    let took = Duration::from_millis(value.get("tookMs")?.as_u64()?)
        + Duration::from_nanos(value.get("tookNanos")?.as_u64()?);
    Some(Attempt { at: time(value, "at")?, took, sent, error: text(value, "error"), answer })
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

fn time(value: &Value, name: &str) -> Option<Millis> {
    value.get(name)?.as_i64().map(Millis)
}

fn headers_of(value: &Value) -> Option<Headers> {
    let header =
        |value: &Value| Some((value.get(0)?.as_str()?.to_owned(), value.get(1)?.as_str()?.to_owned()));
    value.as_array()?.iter().map(header).collect()
}

/// Text as it is, so that a person can read the file; other bytes in hexadecimal.
fn bytes_to(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "hex": hexadecimal(bytes) }),
    }
}

fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    if let Some(text) = value.get("text") {
        return Some(text.as_str()?.as_bytes().to_vec());
    }
    let digits = value.get("hex")?.as_str()?;
    let byte = |index: usize| u8::from_str_radix(digits.get(index..index + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
}
