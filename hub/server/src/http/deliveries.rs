//! Deliveries and dead letters.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::delivery::{DeliveryId, Reason, State as Stands};
use seawall_hub_core::domain::letter::LetterFilter;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{Dead, DeliveryFilter, Desk, Kept, Letters, Store, Tray, WholeLetter};
use seawall_hub_core::render::Request;
use seawall_hub_core::service::{Again, Mode};
use serde_json::{Map, Value, json};

use super::access::Caller;
use super::evaluate::shown_request;
use super::fields::Fields;
use super::query::{Query, paged};
use super::reply::{missing, parse, refused, store_problem, success, wrong_fields};
use super::services::merged;
use super::{Caught, split_verb};
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

fn plain_word(state: Stands) -> &'static str {
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

fn shown(hub: &Hub, kept: &Kept) -> Value {
    json!({
        "id": kept.id.to_string(), "state": word(hub, kept), "waitsFor": waits_for(hub, kept), "event": kept.event,
        "rule": kept.rule.0.as_str(), "ruleVersion": kept.rule.1, "service": kept.service.as_str(),
        "reason": kept.reason.map(Reason::word), "acceptedAt": kept.progress.accepted.to_string(),
        "dueAt": matches!(kept.state, Stands::Waiting | Stands::Stalled).then(|| kept.due.to_string()),
        "failures": kept.progress.failures, "counted": kept.progress.counted, "orderingKey": kept.order,
        "replayOf": kept.replay_of.map(|id| id.to_string()),
    })
}

fn shown_attempt(attempt: &Attempt) -> Value {
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
        Ok(Some((kept, attempts))) if caller.sees(&kept.service) => {
            let attempts: Vec<Value> = attempts.iter().map(shown_attempt).collect();
            success(StatusCode::OK, &merged(shown(&hub, &kept), json!({"attempts": attempts})))
        }
        Ok(_) => missing("delivery"),
        Err(error) => store_problem(&error),
    }
}

const FILTERS: &str = "service, rule, event, state, reason, page_size, page_token";

/// Which deliveries, and the word that they are to be shown with.
fn filter(query: &mut Query) -> (DeliveryFilter, Option<&'static str>) {
    let words = WORDS.map(|(word, states)| (word, (word, states)));
    let asked = query.word("state", &words);
    let reasons: Vec<(&str, Reason)> = Reason::ALL.iter().map(|reason| (reason.word(), *reason)).collect();
    let filter = DeliveryFilter {
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
    let ((filter, asked), page) = (filter(&mut query), query.page());
    query.end(FILTERS)?;
    Ok(match hub.store().deliveries(filter, page).await {
        Ok(mut page) => {
            // A page may be short, and is not the last one for that.
            page.items.retain(|kept| {
                caller.sees(&kept.service) && asked.is_none_or(|asked| word(&hub, kept) == asked)
            });
            success(StatusCode::OK, &paged(&page, "deliveries", |kept| shown(&hub, kept)))
        }
        Err(error) => store_problem(&error),
    })
}

fn shown_dead(hub: &Hub, dead: &Dead) -> Value {
    let replayed = dead.replayed.map(
        |(id, state, at)| json!({"as": id.to_string(), "state": plain_word(state), "at": at.to_string()}),
    );
    let more = json!({
        "deadAt": dead.at.to_string(), "status": dead.status, "error": dead.error, "replayed": replayed,
    });
    merged(shown(hub, &dead.delivery), more)
}

pub(super) async fn list_dead(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Caught {
    let mut query = Query::new(query.as_deref());
    let ((asked, _), page) = (filter(&mut query), query.page());
    let replayed = query.word("replayed", &[("true", true), ("false", false)]);
    query.end("service, rule, event, reason, replayed, page_size, page_token")?;
    let DeliveryFilter { service, rule, event, reason, .. } = asked;
    let filter = LetterFilter { service, rule, event, reason, ..LetterFilter::default() };
    Ok(match hub.store().dead_letters(filter, page).await {
        Ok(Letters { mut page, .. }) => {
            page.items.retain(|dead| {
                let asked = replayed.is_none_or(|replayed| replayed == dead.replayed.is_some());
                asked && caller.sees(&dead.delivery.service)
            });
            success(StatusCode::OK, &paged(&page, "deadLetters", |dead| shown_dead(&hub, dead)))
        }
        Err(error) => store_problem(&error),
    })
}

/// Everything that is known of it: what happened, what was to be sent, and every try.
pub(super) async fn get_dead(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let Some(id) = DeliveryId::parse(&id) else { return missing("dead letter") };
    match hub.dead_letter(id).await {
        Ok(Some((WholeLetter { dead, .. }, record))) if caller.sees(&dead.delivery.service) => {
            let address = hub.service(&dead.delivery.service).map(|service| service.address);
            let request = Request::from_bytes(&dead.delivery.request, &dead.delivery.payload);
            let today = hub.rule(&dead.delivery.rule.0).map(|rule| rule.version);
            let more = json!({
                "rawEvent": serde_json::from_slice::<Value>(&record.payload).unwrap_or_default(),
                "request": request.map(|request| shown_request(&request, address.as_deref())),
                "attempts": record.attempts.iter().map(shown_attempt).collect::<Vec<_>>(),
                "ruleVersionToday": today, "trace": record.trace,
            });
            success(StatusCode::OK, &merged(shown_dead(&hub, &dead), more))
        }
        Ok(_) => missing("dead letter"),
        Err(error) => store_problem(&error),
    }
}

pub(super) async fn discard(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let Some(id) = DeliveryId::parse(&id) else { return missing("dead letter") };
    if !sees(&hub, &caller, id, Mode::Same).await {
        return missing("dead letter");
    }
    match hub.move_letter(id, Tray::Bin).await {
        Ok(()) => success(StatusCode::OK, &json!({"id": id.to_string(), "deleted": true})),
        Err(why) => refused(why, "dead letter"),
    }
}

/// `POST …/deadLetters/{id}:replay` with `{mode, again}`.
pub(super) async fn act(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(id_verb): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    let Some((id, verb)) = split_verb(&id_verb) else { return Ok(super::nothing_here()) };
    if verb != "replay" {
        return Ok(super::no_verb(verb, "replay"));
    }
    let mut fields = Fields::new(if body.is_empty() { json!({}) } else { parse(&body)? });
    let mode = match fields.text("mode").as_deref() {
        None | Some("render") => Mode::Render,
        Some("same") => Mode::Same,
        Some(_) => {
            fields.wrong("mode", "it is `render`, again by today's rule, or `same`, the same bytes");
            Mode::Render
        }
    };
    let again = fields.switch("again", false);
    let problems = fields.end("mode, again");
    if !problems.is_empty() {
        return Ok(wrong_fields(&problems));
    }
    let Some(dead) = DeliveryId::parse(id) else { return Ok(missing("dead letter")) };
    if !sees(&hub, &caller, dead, mode).await {
        return Ok(missing("dead letter"));
    }
    let key = super::events::idempotency_key(&headers, &caller)?;
    Ok(match hub.replay(&Again { dead, mode, again, key }).await {
        Ok(delivery) => {
            let data = json!({"delivery": delivery.to_string(), "replayOf": dead.to_string()});
            success(StatusCode::ACCEPTED, &data)
        }
        Err(why) => refused(why, "dead letter"),
    })
}

/// Whether a dead letter is for the caller to see, and so is whoever gets it in this mode: a rule may send elsewhere today. What
/// is not answers exactly like one that is not there.
async fn sees(hub: &Hub, caller: &Caller, id: DeliveryId, mode: Mode) -> bool {
    if caller.sees_all() {
        return true;
    }
    let Ok(Some((kept, _))) = hub.store().delivery(id).await else { return false };
    let today = hub.rule(&kept.rule.0).filter(|_| mode == Mode::Render);
    caller.sees(&kept.service) && today.is_none_or(|rule| caller.sees(&rule.service))
}
