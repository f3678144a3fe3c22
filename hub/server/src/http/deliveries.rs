//! The routes of deliveries.

use axum::extract::{Path, RawQuery};
use axum::http::StatusCode;
use axum::response::Response;
use seawall_api::{Attempt, Delivery, DeliveryPage, DeliveryWithAttempts, SentRequest, WaitFields};
use seawall_dist::deadletter;
use seawall_hub_core::domain::delivery::waiting::Wait;
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryId, DeliveryState as Stands};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{DeliveryFilter, StoredDelivery};

use super::HandlerResult;
use super::access::Caller;
use super::context::RequestContext;
use super::query::{Query, next_token};
use super::reply::{missing, store_problem, success};
use crate::hub::Server;

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
/// The word for a delivery that waits for something that ends by itself.
const WAITING: &str = "waiting";
/// The word for a delivery that waits for a person.
const HELD: &str = "held";
/// The filter word for all deliveries that have not ended.
const NOT_ENDED: &str = "open";

fn word(kept: &StoredDelivery, wait: Option<Wait>) -> &'static str {
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
pub(super) fn wait_fields(wait: Option<Wait>, now: Millis) -> WaitFields {
    WaitFields {
        waits_for: wait.map(|wait| wait.word().into()),
        waits_until: wait.and_then(Wait::until).map(|until| until.to_string().into()),
        waits_because: wait.map(|wait| wait.explain(now)),
    }
}

pub(super) fn view(hub: &Server, kept: &StoredDelivery) -> Delivery {
    let wait = hub.ops.wait_of(kept);
    let is_due = matches!(kept.state, Stands::Waiting | Stands::Stalled);
    Delivery {
        id: kept.id.to_string().into(),
        state: word(kept, wait).into(),
        event: kept.event.clone(),
        rule: kept.rule.0.as_str().into(),
        rule_version: kept.rule.1,
        service: kept.service.as_str().into(),
        reason: kept.reason.map(|reason| reason.word().into()),
        accepted_at: kept.progress.accepted.to_string().into(),
        due_at: is_due.then(|| kept.due.to_string().into()),
        failures: kept.progress.failures.into(),
        counted: kept.progress.counted.into(),
        ordering_key: kept.order.clone(),
        replay_of: kept.replay_of.map(|id| id.to_string().into()),
        wait: wait_fields(wait, hub.now()),
    }
}

pub(super) fn attempt_view(attempt: &deadletter::Attempt) -> Attempt {
    let answer = attempt.answer.as_ref();
    let sent = |sent: &deadletter::SentRequest| SentRequest {
        line: sent.line.clone(),
        headers: sent.headers.iter().cloned().collect(),
    };
    Attempt {
        at: attempt.at.to_string().into(),
        took_micros: u64::try_from(attempt.took.as_micros()).unwrap_or(u64::MAX),
        status: answer.map(|answer| answer.status),
        error: attempt.error.clone(),
        sent: attempt.sent.as_ref().map(sent),
        answer_headers: answer.map(|answer| answer.headers.iter().cloned().collect()),
        answer: answer.map(|answer| String::from_utf8_lossy(&answer.body).into_owned()),
    }
}

pub(super) async fn get(cx: RequestContext, Path(id): Path<String>) -> Response {
    let Some(id) = DeliveryId::parse(&id) else { return missing("delivery") };
    match cx.hub.bridge.delivery(id).await {
        Ok(Some((kept, attempts))) if cx.caller.sees_delivery(&kept) => {
            let attempts = attempts.iter().map(attempt_view).collect();
            success(StatusCode::OK, &DeliveryWithAttempts { delivery: view(&cx.hub, &kept), attempts })
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
    let reasons: Vec<(&str, DeadLetterReason)> =
        DeadLetterReason::ALL.iter().map(|reason| (reason.word(), *reason)).collect();
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

pub(super) async fn list(cx: RequestContext, RawQuery(query): RawQuery) -> HandlerResult {
    let mut query = Query::new(query.as_deref());
    let ((filter, asked), page) = (filter(&mut query, &cx.caller), query.page());
    query.end(FILTERS)?;
    Ok(match cx.hub.bridge.deliveries(filter, page).await {
        Ok(mut page) => {
            // A page may be short, and is not the last one for that.
            page.items.retain(|kept| {
                cx.caller.sees_delivery(kept)
                    && asked.is_none_or(|asked| is_asked_for(asked, word(kept, cx.hub.ops.wait_of(kept))))
            });
            let deliveries = page.items.iter().map(|kept| view(&cx.hub, kept)).collect();
            success(StatusCode::OK, &DeliveryPage { deliveries, next_page_token: next_token(&page) })
        }
        Err(error) => store_problem(&error),
    })
}
