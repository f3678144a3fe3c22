//! Deliveries.

use std::sync::Arc;

use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::delivery::{DeliveryId, Reason, State as Stands};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{DeliveryFilter, Kept, Store};
use serde_json::{Map, Value, json};

use super::Caught;
use super::access::Caller;
use super::query::{Query, paged};
use super::reply::{missing, store_problem, success};
use super::services::merged;
use crate::hub::Hub;

/// Those that have not ended.
const OPEN: [Stands; 6] =
    [Stands::Leased, Stands::Queued, Stands::Waiting, Stands::Stalled, Stands::Blocked, Stands::Held];

/// The words of the API, and the states that each may stand for. Which of them it is depends on the service too, so a list
/// that is asked for a word looks at each.
const WORDS: [(&str, &[Stands]); 7] = [
    ("pending", &[Stands::Queued, Stands::Blocked, Stands::Leased]),
    ("inFlight", &[Stands::Leased]),
    ("waiting", &[Stands::Waiting, Stands::Stalled]),
    ("held", &OPEN),
    ("delivered", &[Stands::Delivered]),
    ("deadLettered", &[Stands::DeadLettered]),
    (NOT_ENDED, &OPEN),
];
/// Whatever it is called, it has not ended.
const NOT_ENDED: &str = "open";

/// A delivery of a service that is paused is held, wherever it is.
fn word(hub: &Hub, kept: &Kept) -> &'static str {
    if OPEN.contains(&kept.state) && hub.service(&kept.service).is_some_and(|service| service.paused) {
        return "held";
    }
    match kept.state {
        // In hand, and nobody has said yet that it went out.
        Stands::Leased if kept.progress.failures == 0 => "pending",
        state => plain_word(state),
    }
}

pub(super) fn plain_word(state: Stands) -> &'static str {
    match state {
        Stands::Queued | Stands::Blocked => "pending",
        Stands::Leased => "inFlight",
        Stands::Waiting | Stands::Stalled => "waiting",
        Stands::Held => "held",
        Stands::Delivered => "delivered",
        Stands::DeadLettered => "deadLettered",
    }
}

/// What it waits for, if it does.
fn waits_for(hub: &Hub, kept: &Kept) -> Option<&'static str> {
    let paused = hub.service(&kept.service).is_some_and(|service| service.paused);
    match kept.state {
        Stands::Delivered | Stands::DeadLettered => None,
        _ if paused => Some("service"),
        Stands::Held => Some("rule"),
        Stands::Blocked => Some("order"),
        Stands::Stalled => Some("peer"),
        Stands::Waiting => Some("time"),
        Stands::Leased | Stands::Queued => Some("turn"),
    }
}

pub(super) fn shown(hub: &Hub, kept: &Kept) -> Value {
    json!({
        "id": kept.id.to_string(), "state": word(hub, kept), "waitsFor": waits_for(hub, kept), "event": kept.event,
        "rule": kept.rule.0.as_str(), "ruleVersion": kept.rule.1, "service": kept.service.as_str(),
        "reason": kept.reason.map(Reason::word), "acceptedAt": kept.progress.accepted.to_string(),
        "dueAt": matches!(kept.state, Stands::Waiting | Stands::Stalled).then(|| kept.due.to_string()),
        "failures": kept.progress.failures, "counted": kept.progress.counted, "orderingKey": kept.order,
        "replayOf": kept.replay_of.map(|id| id.to_string()),
    })
}

pub(super) fn shown_attempt(attempt: &Attempt) -> Value {
    let pairs = |pairs: &[(String, String)]| -> Map<String, Value> {
        pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
    };
    let answer = attempt.answer.as_ref();
    json!({
        "at": attempt.at.to_string(), "tookMicros": u64::try_from(attempt.took.as_micros()).unwrap_or(u64::MAX),
        "status": answer.map(|answer| answer.status), "error": attempt.error,
        "sent": attempt.sent.as_ref().map(|sent| json!({"line": sent.line, "headers": pairs(&sent.headers)})),
        "answerHeaders": answer.map(|answer| pairs(&answer.headers)),
        "answer": answer.map(|answer| String::from_utf8_lossy(&answer.body).into_owned()),
    })
}

pub(super) async fn get(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let Some(id) = DeliveryId::parse(&id) else { return missing("delivery") };
    match hub.store().delivery(id).await {
        Ok(Some((kept, attempts))) if caller.sees_delivery(&kept) => {
            let attempts: Vec<Value> = attempts.iter().map(shown_attempt).collect();
            success(StatusCode::OK, &merged(shown(&hub, &kept), json!({"attempts": attempts})))
        }
        Ok(_) => missing("delivery"),
        Err(error) => store_problem(&error),
    }
}

const FILTERS: &str = "service, rule, event, state, reason, page_size, page_token";

/// Which deliveries, and the word that they are to be shown with.
fn filter(query: &mut Query, caller: &Caller) -> (DeliveryFilter, Option<&'static str>) {
    let words = WORDS.map(|(word, states)| (word, (word, states)));
    let asked = query.word("state", &words);
    let reasons: Vec<(&str, Reason)> = Reason::ALL.iter().map(|reason| (reason.word(), *reason)).collect();
    let filter = DeliveryFilter {
        sources: caller.sources(),
        service: query.parsed("service", Slug::new),
        rule: query.parsed("rule", Slug::new),
        event: query.text("event"),
        states: asked.map(|(_, states)| states.to_vec()).unwrap_or_default(),
        reason: query.word("reason", &reasons),
    };
    (filter, asked.map(|(word, _)| word).filter(|word| *word != NOT_ENDED))
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Caught {
    let mut query = Query::new(query.as_deref());
    let ((filter, asked), page) = (filter(&mut query, &caller), query.page());
    query.end(FILTERS)?;
    Ok(match hub.store().deliveries(filter, page).await {
        Ok(mut page) => {
            // A page may be short, and is not the last one for that.
            page.items.retain(|kept| {
                caller.sees_delivery(kept) && asked.is_none_or(|asked| word(&hub, kept) == asked)
            });
            success(StatusCode::OK, &paged(&page, "deliveries", |kept| shown(&hub, kept)))
        }
        Err(error) => store_problem(&error),
    })
}
