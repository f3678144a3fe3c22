//! The audit log: which changes have an entry, and what it says.
//!
//! # Why does no operation write its entry itself?
//! Every change of what people decide goes through one place, and that place adds the entry to the same unit. A new operation
//! can't forget it, and can't write an entry for something that did not happen.
#![deny(clippy::wildcard_enum_match_arm)]

use super::context::Context;
use crate::domain::alert::AlertRule;
use crate::domain::audit::AuditEntry;
use crate::domain::circuit::CircuitState;
use crate::domain::dead_letter::GroupState;
use crate::domain::operation::OperationState;
use crate::domain::slug::Slug;
use crate::port::store::{
    Annotation, Change, CircuitCause, DeliverySelector, LetterAction, LetterMove, OperationTransition,
};

/// The action of an operator who moves a circuit.
pub(super) const MOVE_CIRCUIT: &str = "circuit.move";

/// Returns the entry of something that is no single change.
pub(super) fn entry(action: &str, target: String, cx: &Context) -> AuditEntry {
    AuditEntry {
        at: cx.now,
        who: cx.author.to_string(),
        action: action.into(),
        target,
        reason: cx.reason.clone(),
        trace: cx.trace.map(|trace| trace.to_string()),
    }
}

/// Returns the entry of a change, or `None` for a change that people do not decide about.
pub(super) fn audit(change: &Change, cx: &Context) -> Option<AuditEntry> {
    let named = |action, target: &dyn ToString| Some(entry(action, target.to_string(), cx));
    let first = |version: u64, create, change| if version == 1 { create } else { change };
    match change {
        Change::PutService(service) => {
            named(first(service.version, "service.create", "service.change"), &service.name)
        }
        Change::DeleteService(name, _) => named("service.delete", name),
        Change::PutRule(rule) => named(first(rule.version, "rule.create", "rule.change"), &rule.name),
        Change::DeleteRule(name, _) => named("rule.delete", name),
        Change::PutSource(source) => {
            named(first(source.version, "source.create", "source.change"), &source.name)
        }
        Change::DeleteSource(name, _) => named("source.delete", name),
        // A built-in rule is there before it has a version.
        Change::PutAlertRule(rule) if AlertRule::kind_named(&rule.name).is_some() => {
            named("alertRule.change", &rule.name)
        }
        Change::PutAlertRule(rule) => {
            named(first(rule.version, "alertRule.create", "alertRule.change"), &rule.name)
        }
        Change::DeleteAlertRule(name, _) if AlertRule::kind_named(name).is_some() => {
            named("alertRule.reset", name)
        }
        Change::DeleteAlertRule(name, _) => named("alertRule.delete", name),
        Change::PutChannel(channel) => {
            named(first(channel.version, "alertChannel.create", "alertChannel.change"), &channel.name)
        }
        Change::DeleteChannel(name, _) => named("alertChannel.delete", name),
        Change::PutCircuit { circuit, cause: CircuitCause::Command } => {
            named(MOVE_CIRCUIT, &circuit_target(&circuit.service, circuit.state))
        }
        Change::PutKey(key) if key.revoked.is_some() => named("key.revoke", &key.name),
        Change::PutKey(key) => named("key.put", &key.name),
        Change::Replay(replay) => named("deadLetter.replay", &replay.dead),
        Change::Move(LetterMove { dead, to, .. }) => named(letter_action(*to), dead),
        Change::Note(Annotation::Letter { dead, .. }) => named("deadLetter.note", dead),
        Change::Note(Annotation::Group { fingerprint, .. }) => named("deadLetterGroup.note", fingerprint),
        Change::Note(Annotation::GroupState { fingerprint, state }) => {
            named(group_action(*state), fingerprint)
        }
        Change::StartOperation(operation) => named("deadLetters.begin", &operation.task.word()),
        Change::TransitionOperation(OperationTransition { operation, to, .. }) => {
            named(operation_action(*to), operation)
        }
        Change::DeadLetterAll { selector: DeliverySelector::Service(name), .. } => {
            named("service.bury", name)
        }
        Change::DeadLetterAll { selector: DeliverySelector::HeldBy(name), .. } => named("rule.bury", name),
        // What the hub does by itself, what a change above has caused, and entries themselves.
        Change::PutCircuit { cause: CircuitCause::Breaker, .. }
        | Change::PutIncident(_)
        | Change::Audit(_)
        | Change::ClaimKey(_)
        | Change::AddEvent(..)
        | Change::MoveTimes { .. }
        | Change::Settle(_)
        | Change::ReturnToStore(_)
        | Change::RecordStop
        | Change::AdvanceOperation(_)
        | Change::Index { .. }
        | Change::ReleaseHeld { .. }
        | Change::Reseal(_)
        | Change::Prune(_) => None,
    }
}

/// Returns the target of an entry about a circuit: its service and its state.
pub(super) fn circuit_target(service: &Slug, state: CircuitState) -> String {
    format!("{service} {}", state.word())
}

fn letter_action(action: LetterAction) -> &'static str {
    match action {
        LetterAction::Park => "deadLetter.park",
        LetterAction::Unpark => "deadLetter.unpark",
        LetterAction::Delete => "deadLetter.delete",
        LetterAction::Restore => "deadLetter.restore",
        LetterAction::Purge => "deadLetter.purge",
    }
}

fn group_action(state: GroupState) -> &'static str {
    match state {
        GroupState::Open => "deadLetterGroup.reopen",
        GroupState::Acknowledged => "deadLetterGroup.acknowledge",
        GroupState::Resolved => "deadLetterGroup.resolve",
    }
}

fn operation_action(to: OperationState) -> &'static str {
    match to {
        OperationState::Running => "operation.resume",
        OperationState::Paused => "operation.pause",
        OperationState::Done => "operation.end",
        OperationState::Cancelled => "operation.cancel",
        OperationState::Stopped => "operation.stop",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::circuit::Circuit;
    use crate::domain::time::Millis;
    use crate::service::Author;

    // HUB-14
    #[test]
    fn a_circuit_has_an_entry_if_a_command_moved_it_and_not_if_it_tripped() {
        let circuit = Circuit {
            service: Slug::new("billing").unwrap(),
            state: CircuitState::Open,
            until: None,
            trips: 1,
            reason: None,
            changed: Millis(7),
        };
        let author = Author::Key(Slug::new("ann").unwrap());
        let cx = Context { author, reason: Some("a test".into()), trace: None, now: Millis(7) };
        let by = |cause| audit(&Change::PutCircuit { circuit: circuit.clone(), cause }, &cx);
        assert_eq!(by(CircuitCause::Breaker), None);
        let entry = by(CircuitCause::Command).unwrap();
        let found = (&*entry.who, &*entry.action, &*entry.target, entry.reason.as_deref(), entry.at);
        assert_eq!(found, ("ann", "circuit.move", "billing open", Some("a test"), Millis(7)));
    }
}
