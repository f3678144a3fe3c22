//! Deliveries.

use std::sync::Arc;

use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::delivery::{DeliveryId, Reason, State as Stands};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::domain::wait::Wait;
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
    (PENDING, &[Stands::Queued, Stands::Leased, Stands::Waiting, Stands::Stalled]),
    ("inFlight", &[Stands::Leased]),
    (WAITING, &OPEN),
    (HELD, &OPEN),
    ("delivered", &[Stands::Delivered]),
    ("deadLettered", &[Stands::DeadLettered]),
    (NOT_ENDED, &OPEN),
];
/// It waits for its turn, and for nothing else.
const PENDING: &str = "pending";
/// It waits.
const WAITING: &str = "waiting";
/// It waits for a person.
const HELD: &str = "held";
/// Whatever it is called, it has not ended.
const NOT_ENDED: &str = "open";

fn word(kept: &Kept, wait: Option<Wait>) -> &'static str {
    match (kept.state, wait) {
        (Stands::Delivered, _) => "delivered",
        (Stands::DeadLettered, _) => "deadLettered",
        (_, None) => "inFlight",
        (_, Some(wait)) if wait.needs_person() => HELD,
        (_, Some(Wait::Turn)) => PENDING,
        _ => WAITING,
    }
}

/// Whether somebody who asks for the first word wants to see a delivery that is shown with the second. `pending` and `held` are
/// kinds of waiting: whoever asks for what waits gets them too.
fn is_asked_for(asked: &str, word: &str) -> bool {
    match asked {
        WAITING => [WAITING, PENDING, HELD].contains(&word),
        NOT_ENDED => true,
        asked => asked == word,
    }
}

/// Where a replay stands, of which no more than its state is known.
pub(super) fn plain_word(state: Stands) -> &'static str {
    match state {
        Stands::Queued | Stands::Blocked | Stands::Leased => PENDING,
        Stands::Waiting | Stands::Stalled => WAITING,
        Stands::Held => HELD,
        Stands::Delivered => "delivered",
        Stands::DeadLettered => "deadLettered",
    }
}

/// What something waits for, until when, and in words.
pub(super) fn shown_wait(wait: Option<Wait>, now: Millis) -> Value {
    json!({
        "waitsFor": wait.map(Wait::word), "waitsUntil": wait.and_then(Wait::until).map(|until| until.to_string()),
        "waitsBecause": wait.map(|wait| wait.explain(now)),
    })
}

pub(super) fn shown(hub: &Hub, kept: &Kept) -> Value {
    let wait = hub.wait_of(kept);
    let shown = json!({
        "id": kept.id.to_string(), "state": word(kept, wait), "event": kept.event,
        "rule": kept.rule.0.as_str(), "ruleVersion": kept.rule.1, "service": kept.service.as_str(),
        "reason": kept.reason.map(Reason::word), "acceptedAt": kept.progress.accepted.to_string(),
        "dueAt": matches!(kept.state, Stands::Waiting | Stands::Stalled).then(|| kept.due.to_string()),
        "failures": kept.progress.failures, "counted": kept.progress.counted, "orderingKey": kept.order,
        "replayOf": kept.replay_of.map(|id| id.to_string()),
    });
    merged(shown, shown_wait(wait, hub.now()))
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
    (filter, asked.map(|(word, _)| word))
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
                caller.sees_delivery(kept)
                    && asked.is_none_or(|asked| is_asked_for(asked, word(kept, hub.wait_of(kept))))
            });
            success(StatusCode::OK, &paged(&page, "deliveries", |kept| shown(&hub, kept)))
        }
        Err(error) => store_problem(&error),
    })
}
