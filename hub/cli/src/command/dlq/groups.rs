//! Groups of dead letters with the same failure.

use clap::Args;
use seawall_client::ApiCall;
use seawall_client::api::{DeadLetterGroup, DeadLetterReason, GroupQuery, GroupStateInput, NoteInput};
use serde::Serialize;

use crate::connection::{ReasonArg, Session};
use crate::error::{CommandError, CommandResult};
use crate::lists::Pages;
use crate::output::{Column, cell};

const COLUMNS: &[Column<DeadLetterGroup>] = &[
    ("GROUP", |group| cell(&group.fingerprint)),
    ("OPEN", |group| cell(&group.counts.open)),
    ("STATE", |group| cell(&group.state)),
    ("REASON", |group| cell(&group.reason)),
    ("STATUS", |group| cell(&group.status)),
    ("MESSAGE", |group| cell(&group.message)),
    ("SERVICE", |group| cell(&group.service)),
    ("RULE", |group| cell(&group.rule)),
    ("LAST", |group| cell(&group.last_at)),
];

const FIRST: &[&str] = &[
    "fingerprint",
    "state",
    "service",
    "rule",
    "reason",
    "status",
    "message",
    "note",
    "firstAt",
    "lastAt",
    "reopened",
    "counts",
];

const SAMPLE: &[&str] = &["id", "standing", "event", "deadAt", "reason", "status", "error"];

/// A filter for groups.
#[derive(Args)]
pub(crate) struct GroupFilterArgs {
    /// Only groups of this service.
    #[arg(long)]
    service: Option<String>,
    /// Only groups of this rule.
    #[arg(long)]
    rule: Option<String>,
    /// Only groups in this state; separate several with commas.
    #[arg(long, value_delimiter = ',', value_parser = ["open", "acknowledged", "resolved"])]
    state: Vec<String>,
}

/// A change of a group's state, with an optional note.
#[derive(Args)]
pub(crate) struct GroupNoteArgs {
    /// Fingerprint of the group: `grp_…`.
    #[arg(value_name = "FP")]
    pub(super) fingerprint: String,
    /// New note of the group.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    why: ReasonArg,
}

impl GroupNoteArgs {
    pub(super) fn input(&self) -> GroupStateInput {
        GroupStateInput { note: self.note.clone(), reason: None }
    }
}

pub(super) async fn list(session: &Session, which: &GroupFilterArgs, pages: &Pages) -> CommandResult {
    let query = |page| GroupQuery {
        service: which.service.as_deref().map(Into::into),
        rule: which.rule.as_deref().map(Into::into),
        state: Some(which.state.join(",")).filter(|all| !all.is_empty()),
        page,
    };
    session.list(COLUMNS, pages, |page| session.hub.dead_letter_groups().list(&query(page))).await
}

pub(super) async fn show(session: &Session, fingerprint: &str) -> CommandResult {
    let reply = session.send(session.hub.dead_letter_groups().get(fingerprint)).await?;
    session.show_without(&reply, FIRST, &["sample", "sampleLetter"])?;
    let Some(letter) = reply.sample_letter.as_ref().filter(|_| !session.out.json) else { return Ok(()) };
    session.out.text("\nSample")?;
    let sample = Sample {
        id: letter.delivery.id.as_str(),
        standing: letter.standing.as_str(),
        event: &letter.delivery.event,
        dead_at: letter.dead_at.as_str(),
        reason: letter.delivery.reason.as_ref().map(DeadLetterReason::as_str),
        status: letter.status,
        error: letter.error.as_deref(),
    };
    let sample = serde_json::to_string(&sample).map_err(CommandError::of)?;
    session.out.describe(&sample, SAMPLE, &[])?;
    session.out.text(&format!("\nseawall dlq show {}", cell(&letter.delivery.id)))
}

/// What is shown of the dead letter of a group.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sample<'a> {
    id: &'a str,
    standing: &'a str,
    event: &'a str,
    dead_at: &'a str,
    reason: Option<&'a str>,
    status: Option<u16>,
    error: Option<&'a str>,
}

/// Sends a request that changes the state of a group.
pub(super) async fn changed(
    session: &Session,
    args: &GroupNoteArgs,
    call: ApiCall<DeadLetterGroup>,
) -> CommandResult {
    let reply = session.send(args.why.of(call)).await?;
    session.told(&reply, |group| format!("group {} is now {}", cell(&group.fingerprint), cell(&group.state)))
}

/// Sets the note of a group or a dead letter. An empty text removes it.
pub(super) async fn note(session: &Session, name: &str, text: &str, why: &ReasonArg) -> CommandResult {
    let note = Some(text).filter(|text| !text.trim().is_empty()).map(ToOwned::to_owned);
    let word = if note.is_some() { "saved" } else { "removed" };
    let (input, done) = (NoteInput { note, reason: None }, format!("note of {name} {word}"));
    if name.starts_with("grp_") {
        let reply = session.send(why.of(session.hub.dead_letter_groups().note(name, &input))).await?;
        session.told(&reply, |_| done)
    } else {
        let reply = session.send(why.of(session.hub.dead_letters().note(name, &input))).await?;
        session.told(&reply, |_| done)
    }
}
