//! Dead letters, their groups and bulk operations as they are returned.

use seawall_api::{
    DeadLetter, DeadLetterFilter, DeadLetterGroup, DeadLetterWithEvidence, Difference, FailureFilter,
    LetterCounts, LetterStates, Operation, OperationProgress, ReplayPlan, ReplayState, Timestamp,
};
use seawall_hub_core::domain::dead_letter::{LetterGroup, LetterState};
use seawall_hub_core::domain::operation::{self, BulkAction, OperationState, ReplayMode};
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{self, DeadLetterDetails, StoreError};
use seawall_hub_core::render::RenderedRequest;
use seawall_hub_core::service::{self, curl, differences};

use crate::http::access::Caller;
use crate::http::bridge::deliveries::{self, attempt_view, plain_word};
use crate::http::registry::evaluate::request_view;
use crate::hub::Server;

/// A dead letter without its evidence, as in a list.
pub(super) fn letter(hub: &Server, dead: &store::DeadLetter) -> DeadLetter {
    DeadLetter {
        delivery: deliveries::view(hub, &dead.delivery),
        dead_at: time(dead.at),
        status: dead.status,
        error: dead.error.clone(),
        replayed: dead.replayed.map(|(id, state, at)| ReplayState {
            r#as: id.to_string().into(),
            state: plain_word(state).into(),
            at: time(at),
        }),
        standing: dead.state.word().into(),
        group: dead.group.to_string().into(),
        source: dead.source.clone(),
        note: dead.note.clone(),
        operation: dead.operation.map(|operation| operation.to_string().into()),
        edited: dead.edited,
        deleted_at: dead.deleted.map(time),
        purge_at: purge_at(hub, dead.deleted),
    }
}

/// The time at which a dead letter that was deleted then is purged; `None` means never.
pub(super) fn purge_at(hub: &Server, deleted: Option<Millis>) -> Option<Timestamp> {
    Some(time(deleted? + hub.ops.retention().discarded?))
}

/// A dead letter with its evidence. `may_compare` is true if the caller may see the request that it replays.
pub(super) fn evidence(
    hub: &Server,
    caller: &Caller,
    details: &DeadLetterDetails,
    may_compare: bool,
) -> DeadLetterWithEvidence {
    let DeadLetterDetails { dead, attempts, event, related, before } = details;
    let stored = &dead.delivery;
    let service = hub.registry.service(&stored.service);
    let request = RenderedRequest::from_bytes(&stored.request, &stored.payload);
    let before = before.as_ref().filter(|_| may_compare);
    let before = before.and_then(|(request, payload)| RenderedRequest::from_bytes(request, payload));
    let diff = before.zip(request.as_ref()).map(|(before, now)| diff(differences(Some(&before), now)));
    let sent = service.as_ref().zip(request.as_ref());
    let curl = sent.map(|(service, request)| curl(&service.address, request, service.auth.is_some()));
    let related = related.iter().filter(|other| caller.sees(&other.service));
    let address = service.as_ref().map(|service| &*service.address);
    DeadLetterWithEvidence {
        letter: letter(hub, dead),
        raw_event: serde_json::from_slice(&event.payload).unwrap_or_default(),
        request: request.map(|request| request_view(&request, address)),
        attempts: attempts.iter().map(attempt_view).collect(),
        rule_version_today: hub.registry.rule(&stored.rule.0).map(|rule| rule.version),
        trace: event.trace.clone(),
        related: related.map(|other| deliveries::view(hub, other)).collect(),
        curl,
        service_has_auth: service.as_ref().map(|service| service.auth.is_some()),
        diff,
    }
}

/// The differences between two requests.
pub(super) fn diff(all: Vec<service::Difference>) -> Vec<Difference> {
    let one = |service::Difference { place, was, now }| Difference { place, was, now };
    all.into_iter().map(one).collect()
}

pub(super) fn group(group: &LetterGroup) -> DeadLetterGroup {
    let failure = &group.failure;
    DeadLetterGroup {
        fingerprint: group.fingerprint.to_string().into(),
        service: failure.service.as_str().into(),
        rule: failure.rule.as_str().into(),
        reason: failure.reason.word().into(),
        status: failure.status,
        message: failure.message.clone(),
        state: group.state.word().into(),
        note: group.note.clone(),
        first_at: time(group.first),
        last_at: time(group.last),
        reopened: group.reopened.into(),
        counts: LetterCounts {
            open: group.counts.of(LetterState::Open),
            replaying: group.counts.of(LetterState::Replaying),
            delivered: group.counts.of(LetterState::Delivered),
            failed_again: group.counts.of(LetterState::FailedAgain),
            parked: group.counts.of(LetterState::Parked),
            deleted: group.counts.of(LetterState::Deleted),
        },
        sample: group.sample.map(|id| id.to_string().into()),
    }
}

pub(super) async fn operation(
    hub: &Server,
    operation: &operation::Operation,
) -> Result<Operation, StoreError> {
    let has_stopped = operation.run == OperationState::Stopped;
    let plan = match &operation.task {
        BulkAction::Replay(plan) => Some(plan),
        _ => None,
    };
    let operation::OperationProgress { begun, skipped, tried, faltered, delivered, failed } =
        operation.progress;
    Ok(Operation {
        id: operation.id.to_string().into(),
        task: operation.task.word().into(),
        state: operation.run.word().into(),
        why: operation.cause.clone(),
        failed_delivery: operation.failed_delivery.filter(|_| has_stopped).map(|id| id.to_string().into()),
        waits_for: hub.dead_letters.describe_wait(operation).await?,
        plan: plan.map(|plan| ReplayPlan {
            mode: if plan.mode == ReplayMode::Same { "same" } else { "render" }.into(),
            rate_per_second: plan.rate,
            canary: plan.canary.clone(),
        }),
        filter: filter(operation),
        max: operation.limit,
        percent: percent(operation),
        progress: OperationProgress {
            total: operation.total,
            begun,
            skipped,
            tried,
            faltered,
            delivered,
            failed,
            under_way: plan.map_or(0, |_| operation.progress.under_way()),
        },
        who: operation.who.clone(),
        reason: operation.reason.clone(),
        began_at: time(operation.began),
        changed_at: time(operation.changed),
        ended_at: operation.ended.map(time),
    })
}

/// The progress in percent. An operation that was ended early keeps the progress that it had.
fn percent(operation: &operation::Operation) -> u8 {
    let operation::OperationProgress { begun, skipped, delivered, failed, .. } = operation.progress;
    let is_replay = matches!(operation.task, BulkAction::Replay(_));
    let ended = skipped + if is_replay { delivered + failed } else { begun };
    match (operation.run, operation.total) {
        (OperationState::Done, _) => 100,
        (_, 0) => 0,
        (_, total) => u8::try_from((ended.min(total) * 100) / total).unwrap_or(100),
    }
}

/// The filter as it was requested.
fn filter(operation: &operation::Operation) -> DeadLetterFilter {
    let filter = &operation.filter;
    let ids = filter.ids.iter().map(|id| id.to_string().into()).collect::<Vec<_>>();
    DeadLetterFilter {
        failure: FailureFilter {
            service: filter.service.as_ref().map(|service| service.as_str().into()),
            rule: filter.rule.as_ref().map(|rule| rule.as_str().into()),
            reason: filter.reason.map(|reason| reason.word().into()),
            status: filter.status,
            group: filter.group.map(|group| group.to_string().into()),
            // It is a part of the states.
            replayed: None,
        },
        event: filter.event.clone(),
        standing: Some(LetterStates(filter.states.iter().map(|state| state.word().into()).collect())),
        since: filter.since.map(time),
        // An operation takes nothing that is dead-lettered after its start. Nobody has asked for that limit.
        until: filter.before.filter(|before| *before <= operation.began).map(time),
        q: filter.text.clone(),
        ids: (!ids.is_empty()).then_some(ids),
    }
}

fn time(at: Millis) -> Timestamp {
    at.to_string().into()
}
