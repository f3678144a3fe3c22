//! What is shown of dead letters, their groups and the work on them.

use seawall_hub_core::domain::dead_letter::{LetterFilter, LetterGroup, LetterState};
use seawall_hub_core::domain::delivery::DeadLetterReason;
use seawall_hub_core::domain::operation::{
    BulkAction, Operation, OperationProgress, OperationState, ReplayMode, ReplayPlan,
};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{DeadLetter, DeadLetterDetails, StoreError};
use seawall_hub_core::render::RenderedRequest;
use seawall_hub_core::service::{Difference, curl, differences};
use serde_json::{Map, Value, json};

use super::super::access::Caller;
use super::super::deliveries::{attempt_view, plain_word, view};
use super::super::evaluate::request_view;
use super::super::merge::merged;
use crate::hub::Server;

/// A dead letter, as lists have it.
pub(super) fn letter(hub: &Server, dead: &DeadLetter) -> Value {
    let replayed = dead.replayed.map(
        |(id, state, at)| json!({"as": id.to_string(), "state": plain_word(state), "at": at.to_string()}),
    );
    let more = json!({
        "deadAt": dead.at.to_string(), "status": dead.status, "error": dead.error, "replayed": replayed,
        "standing": dead.state.word(), "group": dead.group.to_string(), "source": dead.source, "note": dead.note,
        "operation": dead.operation.map(|operation| operation.to_string()), "edited": dead.edited,
        "deletedAt": dead.deleted.map(|at| at.to_string()),
        "purgeAt": purge_at(hub, dead.deleted).map(|at| at.to_string()),
    });
    merged(json!(view(hub, &dead.delivery)), more)
}

/// When what was deleted then goes for good; never, if nothing.
pub(super) fn purge_at(hub: &Server, deleted: Option<Millis>) -> Option<Millis> {
    Some(deleted? + hub.ops.retention().discarded?)
}

/// A dead letter with everything that is known of it. `compared` says whether the caller may see what it replays.
pub(super) fn whole(hub: &Server, caller: &Caller, whole: &DeadLetterDetails, compared: bool) -> Value {
    let DeadLetterDetails { dead, attempts, event, related, before } = whole;
    let kept = &dead.delivery;
    let service = hub.registry.service(&kept.service);
    let request = RenderedRequest::from_bytes(&kept.request, &kept.payload);
    let before = before.as_ref().filter(|_| compared);
    let before = before.and_then(|(request, payload)| RenderedRequest::from_bytes(request, payload));
    let diff = before.zip(request.as_ref()).map(|(before, now)| diff(&differences(Some(&before), now)));
    let line = service.as_ref().zip(request.as_ref());
    let line = line.map(|(service, request)| curl(&service.address, request, service.auth.is_some()));
    let related = related.iter().filter(|other| caller.sees(&other.service));
    let more = json!({
        "rawEvent": serde_json::from_slice::<Value>(&event.payload).unwrap_or_default(),
        "request": request.map(|request| request_view(&request, service.as_ref().map(|one| &*one.address))),
        "attempts": attempts.iter().map(attempt_view).collect::<Vec<_>>(),
        "ruleVersionToday": hub.registry.rule(&kept.rule.0).map(|rule| rule.version), "trace": event.trace,
        "related": related.map(|other| view(hub, other)).collect::<Vec<_>>(),
        "curl": line, "serviceHasAuth": service.map(|service| service.auth.is_some()), "diff": diff,
    });
    merged(letter(hub, dead), more)
}

/// Where two requests differ.
pub(super) fn diff(all: &[Difference]) -> Value {
    all.iter().map(|one| json!({"place": one.place, "was": one.was, "now": one.now})).collect()
}

/// Returns a group as JSON.
pub(super) fn group(group: &LetterGroup) -> Value {
    let counts: Map<String, Value> = LetterState::ALL
        .into_iter()
        .map(|standing| (standing.word().to_owned(), json!(group.counts.of(standing))))
        .collect();
    json!({
        "fingerprint": group.fingerprint.to_string(), "service": group.failure.service.as_str(),
        "rule": group.failure.rule.as_str(), "reason": group.failure.reason.word(), "status": group.failure.status,
        "message": group.failure.message, "state": group.state.word(), "note": group.note,
        "firstAt": group.first.to_string(), "lastAt": group.last.to_string(), "reopened": group.reopened,
        "counts": counts, "sample": group.sample.map(|id| id.to_string()),
    })
}

/// Work on many.
pub(super) async fn operation(hub: &Server, operation: &Operation) -> Result<Value, StoreError> {
    let OperationProgress { begun, skipped, tried, faltered, delivered, failed } = operation.progress;
    let replays = matches!(operation.task, BulkAction::Replay(_));
    let under_way = if replays { operation.progress.under_way() } else { 0 };
    let plan = match &operation.task {
        BulkAction::Replay(ReplayPlan { mode, rate, canary }) => {
            let mode = if *mode == ReplayMode::Same { "same" } else { "render" };
            json!({"mode": mode, "ratePerSecond": rate, "canary": canary})
        }
        _ => Value::Null,
    };
    Ok(json!({
        "id": operation.id.to_string(), "task": operation.task.word(), "state": operation.run.word(),
        "why": operation.cause, "failedDelivery": failed_delivery(operation), "waitsFor": hub.dead_letters.describe_wait(operation).await?, "plan": plan,
        "filter": filter(operation), "max": operation.most, "percent": percent(operation),
        "progress": {
            "total": operation.total, "begun": begun, "skipped": skipped, "tried": tried, "faltered": faltered,
            "delivered": delivered, "failed": failed, "underWay": under_way,
        },
        "who": operation.who, "reason": operation.reason, "beganAt": operation.began.to_string(),
        "changedAt": operation.changed.to_string(), "endedAt": operation.ended.map(|at| at.to_string()),
    }))
}

/// The delivery that has stopped it.
fn failed_delivery(operation: &Operation) -> Option<String> {
    operation.failed_delivery.filter(|_| operation.run == OperationState::Stopped).map(|id| id.to_string())
}

/// How far it is. What ends without having begun all of it says how far it came.
fn percent(operation: &Operation) -> u64 {
    let OperationProgress { begun, skipped, delivered, failed, .. } = operation.progress;
    let ended =
        skipped + if matches!(operation.task, BulkAction::Replay(_)) { delivered + failed } else { begun };
    match (operation.run, operation.total) {
        (OperationState::Done, _) => 100,
        (_, 0) => 0,
        (_, total) => (ended.min(total) * 100) / total,
    }
}

/// Under the names by which it was asked for. What nobody has said is not in it.
fn filter(operation: &Operation) -> Value {
    let LetterFilter {
        service, rule, event, reason, status, group, states, since, before, text, ids, ..
    } = &operation.filter;
    // Work takes nothing that comes after it has begun: that nobody has asked for.
    let until = before.filter(|before| *before <= operation.began);
    let said = json!({
        "service": service.as_ref().map(Slug::as_str), "rule": rule.as_ref().map(Slug::as_str), "event": event,
        "reason": reason.map(DeadLetterReason::word), "status": status, "group": group.map(|group| group.to_string()),
        "standing": states.iter().map(|standing| standing.word()).collect::<Vec<_>>(),
        "since": since.map(|since| since.to_string()), "until": until.map(|until| until.to_string()), "q": text,
        "ids": (!ids.is_empty()).then(|| ids.iter().map(ToString::to_string).collect::<Vec<_>>()),
    });
    match said {
        Value::Object(all) => all.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        other => other,
    }
}
