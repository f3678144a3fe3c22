//! The routes of deliveries.

use axum::extract::Path;
use seawall_api::{
    Attempt, Delivery, DeliveryPage, DeliveryQuery, DeliveryState, DeliveryStateFilter, DeliveryWithAttempts,
    SentRequest, WaitFields,
};
use seawall_dist::deadletter;
use seawall_hub_core::domain::delivery::waiting::Wait;
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryId, DeliveryState as Stands};
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{DeliveryFilter, StoredDelivery};

use crate::http::access::Caller;
use crate::http::context::RequestContext;
use crate::http::error::ApiError;
use crate::http::input::slug;
use crate::http::query::{QueryInput, next_token, page_of};
use crate::http::reply::{ApiReply, ApiResult};
use crate::hub::Server;

/// Those that have not ended.
const OPEN: [Stands; 6] =
    [Stands::Leased, Stands::Queued, Stands::Waiting, Stands::Stalled, Stands::Blocked, Stands::Held];

/// The states that a word of the API may stand for. Which of them it is depends on the service too, so a list that is asked
/// for a word looks at each.
fn states(asked: &DeliveryStateFilter) -> &'static [Stands] {
    match asked {
        DeliveryStateFilter::Pending => &[Stands::Queued, Stands::Leased, Stands::Waiting, Stands::Stalled],
        DeliveryStateFilter::InFlight => &[Stands::Leased],
        DeliveryStateFilter::Delivered => &[Stands::Delivered],
        DeliveryStateFilter::DeadLettered => &[Stands::DeadLettered],
        _ => &OPEN,
    }
}

fn state(kept: &StoredDelivery, wait: Option<Wait>) -> DeliveryState {
    match (kept.state, wait) {
        (Stands::Delivered, _) => DeliveryState::Delivered,
        (Stands::DeadLettered, _) => DeliveryState::DeadLettered,
        (_, None) => DeliveryState::InFlight,
        (_, Some(wait)) if wait.needs_person() => DeliveryState::Held,
        (_, Some(Wait::Turn)) => DeliveryState::Pending,
        _ => DeliveryState::Waiting,
    }
}

/// True if a list of the first state contains deliveries that are shown in the second. `pending` and `held` are kinds of waiting.
fn is_asked_for(asked: &DeliveryStateFilter, state: &DeliveryState) -> bool {
    match asked {
        DeliveryStateFilter::Waiting => {
            matches!(state, DeliveryState::Waiting | DeliveryState::Pending | DeliveryState::Held)
        }
        DeliveryStateFilter::Open => true,
        asked => asked.as_str() == state.as_str(),
    }
}

/// Where a replay stands, of which no more than its state is known.
pub(crate) fn plain_word(state: Stands) -> &'static str {
    match state {
        Stands::Queued | Stands::Blocked | Stands::Leased => "pending",
        Stands::Waiting | Stands::Stalled => "waiting",
        Stands::Held => "held",
        Stands::Delivered => "delivered",
        Stands::DeadLettered => "deadLettered",
    }
}

/// What something waits for, until when, and in words.
pub(crate) fn wait_fields(wait: Option<Wait>, now: Millis) -> WaitFields {
    WaitFields {
        waits_for: wait.map(|wait| wait.word().into()),
        waits_until: wait.and_then(Wait::until).map(|until| until.to_string().into()),
        waits_because: wait.map(|wait| wait.explain(now)),
    }
}

pub(crate) fn view(hub: &Server, kept: &StoredDelivery) -> Delivery {
    let wait = hub.ops.wait_of(kept);
    let is_due = matches!(kept.state, Stands::Waiting | Stands::Stalled);
    Delivery {
        id: kept.id.to_string().into(),
        state: state(kept, wait),
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

pub(crate) fn attempt_view(attempt: &deadletter::Attempt) -> Attempt {
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

pub(crate) async fn get(cx: RequestContext, Path(id): Path<String>) -> ApiResult<DeliveryWithAttempts> {
    let missing = || ApiError::missing("delivery");
    let found = cx.hub.bridge.delivery(DeliveryId::parse(&id).ok_or_else(missing)?).await?;
    let (kept, attempts) = found.filter(|(kept, _)| cx.caller.sees_delivery(kept)).ok_or_else(missing)?;
    let attempts = attempts.iter().map(attempt_view).collect();
    Ok(ApiReply::new(DeliveryWithAttempts { delivery: view(&cx.hub, &kept), attempts }))
}

/// Which deliveries, of those that the caller may see.
fn filter(query: &DeliveryQuery, caller: &Caller) -> DeliveryFilter {
    let reason = query.reason.as_ref();
    DeliveryFilter {
        sources: caller.sources(),
        service: query.service.as_ref().map(slug),
        rule: query.rule.as_ref().map(slug),
        event: query.event.clone(),
        states: query.state.as_ref().map(|asked| states(asked).to_vec()).unwrap_or_default(),
        reason: reason.and_then(|reason| DeadLetterReason::from_word(reason.as_str())),
    }
}

pub(crate) async fn list(
    cx: RequestContext,
    QueryInput(query): QueryInput<DeliveryQuery>,
) -> ApiResult<DeliveryPage> {
    let mut page = cx.hub.bridge.deliveries(filter(&query, &cx.caller), page_of(&query.page)).await?;
    let is_asked_for = |kept: &StoredDelivery| {
        let state = || state(kept, cx.hub.ops.wait_of(kept));
        query.state.as_ref().is_none_or(|asked| is_asked_for(asked, &state()))
    };
    // A page may be short, and is not the last one for that.
    page.items.retain(|kept| cx.caller.sees_delivery(kept) && is_asked_for(kept));
    let deliveries = page.items.iter().map(|kept| view(&cx.hub, kept)).collect();
    Ok(ApiReply::new(DeliveryPage { deliveries, next_page_token: next_token(&page) }))
}
