//! Who does something, and what is remembered of it.
//!
//! # Why is nobody asked for it?
//! Every change of what people decide goes through one place, and that place adds the entry to the same unit. Whoever writes a
//! new operation can't forget it, and can't write an entry for something that did not happen.

use std::future::Future;

use crate::domain::alert::AlertRule;
use crate::domain::audit::AuditEntry;
use crate::domain::letter::GroupState;
use crate::domain::operation::Run;
use crate::domain::time::Millis;
use crate::port::store::{Change, Move, Note, Steer, Tray, Whose};

/// Who does something, and why.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct By {
    /// The name of the key.
    pub who: String,
    /// As they say.
    pub reason: Option<String>,
    /// The trace of the request.
    pub trace: Option<String>,
}

tokio::task_local! {
    static BY: By;
}

/// Whatever is changed in `work` is done by them.
pub async fn on_behalf_of<F: Future>(by: By, work: F) -> F::Output {
    BY.scope(by, work).await
}

/// Whatever is changed in `work` is done for this reason, by whoever does it; for the one that was said before, if it is none.
pub async fn because<F: Future>(reason: Option<String>, work: F) -> F::Output {
    match reason {
        Some(_) => BY.scope(By { reason, ..by() }, work).await,
        None => work.await,
    }
}

/// Who it is; the hub itself, if nobody else.
pub(super) fn by() -> By {
    BY.try_with(Clone::clone).unwrap_or_else(|_| By { who: "hub".into(), ..By::default() })
}

/// What is remembered of a change, if people decide about it.
pub(super) fn entry(change: &Change, at: Millis) -> Option<AuditEntry> {
    let (action, target) = match change {
        Change::PutService(service) if service.version == 1 => ("service.create", service.name.to_string()),
        Change::PutService(service) => ("service.change", service.name.to_string()),
        Change::DeleteService(name, _) => ("service.delete", name.to_string()),
        Change::PutRule(rule) if rule.version == 1 => ("rule.create", rule.name.to_string()),
        Change::PutRule(rule) => ("rule.change", rule.name.to_string()),
        Change::DeleteRule(name, _) => ("rule.delete", name.to_string()),
        Change::PutSource(source) if source.version == 1 => ("source.create", source.name.to_string()),
        Change::PutSource(source) => ("source.change", source.name.to_string()),
        Change::DeleteSource(name, _) => ("source.delete", name.to_string()),
        Change::PutAlertRule(rule) if rule.version == 1 && AlertRule::kind_named(&rule.name).is_none() => {
            ("alertRule.create", rule.name.to_string())
        }
        Change::PutAlertRule(rule) => ("alertRule.change", rule.name.to_string()),
        Change::DeleteAlertRule(name, _) if AlertRule::kind_named(name).is_some() => {
            ("alertRule.reset", name.to_string())
        }
        Change::DeleteAlertRule(name, _) => ("alertRule.delete", name.to_string()),
        Change::PutChannel(channel) if channel.version == 1 => {
            ("alertChannel.create", channel.name.to_string())
        }
        Change::PutChannel(channel) => ("alertChannel.change", channel.name.to_string()),
        Change::DeleteChannel(name, _) => ("alertChannel.delete", name.to_string()),
        Change::PutKey(key) if key.revoked.is_some() => ("key.revoke", key.name.to_string()),
        Change::PutKey(key) => ("key.put", key.name.to_string()),
        Change::Replay(replay) => ("deadLetter.replay", replay.dead.to_string()),
        Change::Move(Move { dead, to, .. }) => (moved(*to), dead.to_string()),
        Change::Note(Note::Letter { dead, .. }) => ("deadLetter.note", dead.to_string()),
        Change::Note(Note::Group { fingerprint, .. }) => ("deadLetterGroup.note", fingerprint.to_string()),
        Change::Note(Note::Stands { fingerprint, state }) => (stands(*state), fingerprint.to_string()),
        Change::Begin(operation) => ("deadLetters.begin", operation.task.word().to_owned()),
        Change::Steer(Steer { operation, to, .. }) => (steered(*to), operation.to_string()),
        Change::Bury { whose: Whose::Service(name), .. } => ("service.bury", name.to_string()),
        Change::Bury { whose: Whose::HeldBy(name), .. } => ("rule.bury", name.to_string()),
        _ => return None,
    };
    Some(noted(action, target, at))
}

fn moved(to: Tray) -> &'static str {
    match to {
        Tray::Aside => "deadLetter.park",
        Tray::Back => "deadLetter.unpark",
        Tray::Bin => "deadLetter.delete",
        Tray::OutOfBin => "deadLetter.restore",
        Tray::Nowhere => "deadLetter.purge",
    }
}

fn stands(state: GroupState) -> &'static str {
    match state {
        GroupState::Open => "deadLetterGroup.reopen",
        GroupState::Acknowledged => "deadLetterGroup.acknowledge",
        GroupState::Resolved => "deadLetterGroup.resolve",
    }
}

fn steered(to: Run) -> &'static str {
    match to {
        Run::Running => "operation.resume",
        Run::Paused => "operation.pause",
        Run::Done => "operation.end",
        Run::Cancelled => "operation.cancel",
        Run::Stopped => "operation.stop",
    }
}

/// What is remembered of something that is no single change.
pub(super) fn noted(action: &str, target: String, at: Millis) -> AuditEntry {
    let by = by();
    AuditEntry { at, who: by.who, action: action.into(), target, reason: by.reason, trace: by.trace }
}
