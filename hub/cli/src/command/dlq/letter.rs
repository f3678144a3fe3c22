//! One dead letter.

use seawall_client::Reply;
use seawall_client::api::{
    Attempt, BulkTask, DeadLetter, DeadLetterDeleted, DeadLetterWithEvidence, Delivery, Difference, Headers,
    ReasonInput, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::deliveries::ATTEMPTS;
use super::super::rules::request_text;
use crate::connection::{ReasonArg, Session};
use crate::error::{CommandError, CommandResult, REFUSED};
use crate::output::{Column, cell, note};

const FIRST: &[&str] = &[
    "id",
    "standing",
    "reason",
    "status",
    "error",
    "deadAt",
    "service",
    "rule",
    "ruleVersion",
    "ruleVersionToday",
    "event",
    "group",
    "note",
    "replayed",
    "operation",
];

const RELATED: &[Column<Delivery>] = &[
    ("ID", |delivery| cell(&delivery.id)),
    ("STATE", |delivery| cell(&delivery.state)),
    ("SERVICE", |delivery| cell(&delivery.service)),
    ("RULE", |delivery| cell(&delivery.rule)),
    ("REPLAY OF", |delivery| cell(&delivery.replay_of)),
    ("ACCEPTED", |delivery| cell(&delivery.accepted_at)),
];

/// The fields that get a section of their own.
const BELOW: [&str; 6] = ["attempts", "request", "rawEvent", "related", "curl", "diff"];

/// Prints a dead letter with all evidence; only its event, if `raw`.
pub(super) async fn show(session: &Session, id: &str, raw: bool) -> CommandResult {
    let reply = session.send(session.hub.dead_letters().get(id)).await?;
    if raw {
        return session.out.content(event(&reply)?);
    }
    session.show_without(&reply, FIRST, &BELOW)?;
    if session.out.json {
        return Ok(());
    }
    session.out.section("Attempts", ATTEMPTS, &reply.attempts)?;
    for (number, one) in reply.attempts.iter().enumerate() {
        session.out.text(&attempt(number + 1, one))?;
    }
    if let Some(request) = &reply.request {
        session.out.text(&format!("\nRequest\n{}", request_text(request)))?;
    }
    if let Some(diff) = reply.diff.as_ref().filter(|diff| !diff.is_empty()) {
        session.out.text(&format!("\nChanges before replay\n{}", differences(diff)))?;
    }
    session.out.section("Related", RELATED, &reply.related)?;
    let event: Value = serde_json::from_str(event(&reply)?).unwrap_or_default();
    session.out.text(&format!("\nEvent\n{event:#}"))
}

/// The stored event as text, so that numbers keep their exact digits.
fn event(reply: &Reply<DeadLetterWithEvidence>) -> Result<&str, CommandError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ExactEvent<'a> {
        #[serde(borrow)]
        raw_event: &'a RawValue,
    }
    serde_json::from_str::<ExactEvent<'_>>(reply.text())
        .map(|exact| exact.raw_event.get())
        .map_err(|_| CommandError::new(REFUSED, "its event is no longer stored"))
}

/// The request and response of an attempt.
fn attempt(number: usize, attempt: &Attempt) -> String {
    let lines = |mark: char, first: &str, headers: Option<&Headers>| {
        let headers = headers.into_iter().flatten().map(|(name, value)| format!("{mark} {name}: {value}\n"));
        format!("{mark} {first}\n{}", headers.collect::<String>())
    };
    let mut out = format!("\nAttempt {number}\n");
    out.push_str(&match &attempt.sent {
        Some(sent) => lines('>', &sent.line, Some(&sent.headers)),
        None => lines('>', "no request was sent", None),
    });
    if let Some(status) = attempt.status {
        out.push_str(&lines('<', &status.to_string(), attempt.answer_headers.as_ref()));
    }
    out.push_str(attempt.answer.as_deref().unwrap_or_default());
    out
}

/// The differences between two requests, a line each.
pub(super) fn differences(diff: &[Difference]) -> String {
    let mut out = String::new();
    for one in diff {
        let place = cell(&one.place);
        for (mark, side) in [('-', &one.was), ('+', &one.now)] {
            if let Some(text) = side {
                out.push_str(&format!("{mark} {place}: {text}\n"));
            }
        }
    }
    out
}

/// Prints its request as a curl command.
pub(super) async fn curl(session: &Session, id: &str) -> CommandResult {
    #[derive(Serialize)]
    struct CurlLine<'a> {
        curl: &'a str,
    }
    let reply = session.send(session.hub.dead_letters().get(id)).await?;
    let Some(curl) = reply.curl.as_deref() else {
        return Err(CommandError::new(
            REFUSED,
            "its request could not be rendered, or its service was deleted",
        )
        .and(format!("`seawall dlq show {id}` shows the details")));
    };
    if session.out.json {
        return session.out.line(&serde_json::to_string(&CurlLine { curl }).map_err(CommandError::of)?);
    }
    if reply.service_has_auth == Some(true) {
        note("the hub adds the service's credentials; set CREDENTIALS to your own");
    }
    session.out.content(curl)
}

/// Applies an action to one dead letter, immediately.
pub(super) async fn act(session: &Session, id: &str, task: &BulkTask, why: &ReasonArg) -> CommandResult {
    let (letters, none) = (session.hub.dead_letters(), ReasonInput::default());
    let call = match task {
        BulkTask::Delete => {
            let reply = session.send(why.of(letters.delete(id))).await?;
            return session.told(&reply, |DeadLetterDeleted { id, standing, purge_at, .. }| {
                changed(&cell(id), &cell(standing), purge_at.as_ref().map(Timestamp::as_str))
            });
        }
        BulkTask::Park => letters.park(id, &none),
        BulkTask::Unpark => letters.unpark(id, &none),
        _ => letters.restore(id, &none),
    };
    let reply = session.send(why.of(call)).await?;
    session.told(&reply, |DeadLetter { delivery, standing, purge_at, .. }| {
        changed(&cell(&delivery.id), &cell(standing), purge_at.as_ref().map(Timestamp::as_str))
    })
}

fn changed(id: &str, standing: &str, purge_at: Option<&str>) -> String {
    match purge_at {
        Some(at) => {
            format!("dead letter {id} {standing}; it will be purged at {at}\nseawall dlq restore {id}")
        }
        None => format!("dead letter {id} is now {standing}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: an attempt is shown as it was on the wire, and a difference with both sides.
    #[test]
    fn hub_10_an_attempt_is_shown_as_it_was_on_the_wire() {
        let sent = r#"{
            "at": "", "tookMicros": 1, "status": 422, "answer": "no: such", "answerHeaders": {"x": "y"}, "error": null,
            "sent": {"line": "POST http://peer/a", "headers": {"seawall-try": "1"}}
        }"#;
        let shown = "\nAttempt 2\n> POST http://peer/a\n> seawall-try: 1\n< 422\n< x: y\nno: such";
        assert_eq!(attempt(2, &serde_json::from_str(sent).unwrap()), shown);
        let unsent = serde_json::from_str(r#"{"at": "", "tookMicros": 1, "status": null}"#).unwrap();
        assert_eq!(attempt(1, &unsent), "\nAttempt 1\n> no request was sent\n");
        let diff = r#"[{"place": "path", "was": "/a", "now": "/b"}, {"place": "headers.x", "was": null, "now": "1"}]"#;
        let diff: Vec<Difference> = serde_json::from_str(diff).unwrap();
        assert_eq!(differences(&diff), "- path: /a\n+ path: /b\n+ headers.x: 1\n");
    }
}
