//! The routes of incidents.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use schemars::JsonSchema;
use seawall_api::{
    Acknowledgement, Alert, AlertPage, AlertQuery, AlertState, DurationText, Mute, MuteInput, Notification,
    NotificationState, Reason,
};
use seawall_hub_core::domain;
use seawall_hub_core::domain::alert::{Incident, Notice, NoticeState, Severity};
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::IncidentFilter;
use serde::de::DeserializeOwned;

use crate::http::access::Caller;
use crate::http::context::RequestContext;
use crate::http::fields::FieldError;
use crate::http::input::{Input, duration, slug};
use crate::http::query::{QueryInput, next_token, page_of};
use crate::http::reply::{missing, refused, store_problem, success};
use crate::http::{EarlyResponse, HandlerResult, no_verb, nothing_here, split_verb};
use crate::hub::Server;

pub(in crate::http) async fn list(
    cx: RequestContext,
    QueryInput(query): QueryInput<AlertQuery>,
) -> HandlerResult {
    let filter = IncidentFilter {
        open: query.state.map(|state| state == AlertState::Open),
        severity: query.severity.and_then(|severity| Severity::from_word(severity.as_str())),
        service: query.service.as_ref().map(slug),
        rule: query.rule.as_ref().map(slug),
        only: cx.caller.services(),
    };
    Ok(match cx.hub.alerts.incidents(filter, page_of(&query.page)).await {
        Ok(page) => {
            let alerts = page.items.iter().map(|incident| view(&cx.hub, incident)).collect();
            success(StatusCode::OK, &AlertPage { alerts, next_page_token: next_token(&page) })
        }
        Err(error) => store_problem(&error),
    })
}

pub(in crate::http) async fn get(cx: RequestContext, Path(id): Path<String>) -> HandlerResult {
    let incident = find(&cx.hub, &cx.caller, &id).await?;
    Ok(success(StatusCode::OK, &view(&cx.hub, &incident)))
}

/// `:acknowledge`, `:mute`, `:unmute`.
pub(in crate::http) async fn act(cx: RequestContext, Path(part): Path<String>, body: Bytes) -> HandlerResult {
    let Some((id, verb)) = split_verb(&part) else { return Ok(nothing_here()) };
    let done = match verb {
        "acknowledge" => {
            let Reason { reason } = Input::<Reason>::optional(&body)?.finish()?;
            find(&cx.hub, &cx.caller, id).await?;
            cx.hub.alerts.acknowledge(&cx, id, reason).await
        }
        "mute" => {
            let mute = mute(&cx.hub, Input::optional(&body)?)?;
            find(&cx.hub, &cx.caller, id).await?;
            cx.hub.alerts.mute_incident(&cx, id, Some(mute)).await
        }
        "unmute" => {
            find(&cx.hub, &cx.caller, id).await?;
            cx.hub.alerts.mute_incident(&cx, id, None).await
        }
        verb => return Ok(no_verb(verb, ":acknowledge, :mute, :unmute")),
    };
    Ok(match done {
        Ok(incident) => success(StatusCode::OK, &view(&cx.hub, &incident)),
        Err(why) => refused(why, "incident"),
    })
}

/// What is not for whoever asks looks as if it were not there.
async fn find(hub: &Server, caller: &Caller, id: &str) -> Result<Incident, EarlyResponse> {
    let found = hub.alerts.incident(id).await.map_err(|error| EarlyResponse(store_problem(&error)))?;
    let sees = |incident: &Incident| match &incident.service {
        Some(service) => caller.sees(service),
        None => caller.sees_all(),
    };
    found.filter(sees).ok_or_else(|| EarlyResponse(missing("incident")))
}

/// Reads a mute.
pub(in crate::http) fn mute(
    hub: &Server,
    mut input: Input<MuteInput>,
) -> Result<domain::alert::Mute, Vec<FieldError>> {
    let until = end_of_mute(hub.now(), "", &mut input);
    let MuteInput { reason, .. } = input.finish()?;
    Ok(domain::alert::Mute { until, reason })
}

/// The end of a mute whose fields are below `place`. A problem with it is reported, and the result is then of no use.
pub(in crate::http) fn end_of_mute<S, V>(now: Millis, place: &str, input: &mut Input<S, V>) -> Millis
where
    S: DeserializeOwned + JsonSchema + 'static,
    V: JsonSchema + 'static,
{
    let (lasts, ends) = (format!("{place}for"), format!("{place}until"));
    let until = input.get::<String>(&ends).and_then(|text| Millis::from_rfc3339(&text));
    let until = match (input.get::<DurationText>(&lasts).as_ref().map(duration), until) {
        (Some(lasts), None) => now + lasts,
        (None, Some(until)) => until,
        (Some(_), Some(_)) => {
            input.wrong(&ends, "set either `for` or `until`, not both");
            return now;
        }
        (None, None) => {
            if !input.has_problems() {
                input.wrong(&lasts, "required: a duration such as `2h`, or set `until`");
            }
            return now;
        }
    };
    if until <= now {
        input.wrong(&ends, "must be in the future");
    }
    if until.0 > YEAR_9999 {
        input.wrong(&ends, "too far in the future");
    }
    until
}

/// Later times can't be written.
const YEAR_9999: i64 = 253_402_300_799_000;

fn view(hub: &Server, incident: &Incident) -> Alert {
    let acknowledged = |seen: &domain::alert::Acknowledgement| Acknowledgement {
        by: seen.who.clone(),
        at: seen.at.to_string().into(),
        reason: seen.reason.clone(),
    };
    Alert {
        id: incident.id.clone(),
        rule: incident.rule.as_str().into(),
        kind: incident.kind.word().into(),
        severity: incident.severity.word().into(),
        service: incident.service.as_ref().map(|service| service.as_str().into()),
        state: if incident.is_open() { AlertState::Open } else { AlertState::Resolved },
        summary: incident.summary.clone(),
        value: incident.value,
        opened_at: incident.opened.to_string().into(),
        updated_at: incident.updated.to_string().into(),
        resolved_at: incident.resolved.as_ref().map(|resolved| resolved.at.to_string().into()),
        resolved_because: incident.resolved.as_ref().map(|resolved| resolved.because.clone()),
        acknowledged: incident.acknowledged.as_ref().map(acknowledged),
        muted: running(incident.muted.as_ref(), hub.now())
            .map(|mute| Mute { until: mute.until.to_string().into(), reason: mute.reason.clone() }),
        link: hub.alerts.incident_link(incident),
        notifications: incident.notices.iter().map(notification).collect(),
    }
}

/// A mute whose time is over is none.
pub(in crate::http) fn running(
    mute: Option<&domain::alert::Mute>,
    now: Millis,
) -> Option<&domain::alert::Mute> {
    mute.filter(|mute| now < mute.until)
}

fn notification(notice: &Notice) -> Notification {
    let (state, at, due) = match notice.state {
        NoticeState::Waiting { due } => (NotificationState::Waiting, None, Some(due.to_string().into())),
        NoticeState::Sent { at } => (NotificationState::Sent, Some(at.to_string().into()), None),
        NoticeState::Dropped => (NotificationState::Dropped, None, None),
    };
    Notification {
        channel: notice.channel.as_str().into(),
        about: notice.turn.word().into(),
        state,
        tries: notice.tries.into(),
        sent_at: at,
        next_try_at: due,
        error: notice.error.clone(),
    }
}
