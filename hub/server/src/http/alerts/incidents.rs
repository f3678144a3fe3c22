//! The routes of incidents.

use axum::body::Bytes;
use axum::extract::Path;
use schemars::JsonSchema;
use seawall_api::{
    Acknowledgement, Alert, AlertPage, AlertQuery, AlertState, DurationText, FieldProblem, Mute, MuteInput,
    Notification, NotificationState, Reason,
};
use seawall_hub_core::domain;
use seawall_hub_core::domain::alert::{Incident, Notice, NoticeState, Severity};
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::IncidentFilter;
use seawall_hub_core::service::ChangeError;
use serde::de::DeserializeOwned;

use crate::http::context::{RequestContext, Target};
use crate::http::error::{ApiError, refused};
use crate::http::input::{Input, duration, slug};
use crate::http::query::{QueryInput, next_token, page_of};
use crate::http::reply::{ApiReply, ApiResult};
use crate::hub::Server;

pub(crate) async fn list(
    cx: RequestContext,
    QueryInput(query): QueryInput<AlertQuery>,
) -> ApiResult<AlertPage> {
    let filter = IncidentFilter {
        open: query.state.map(|state| state == AlertState::Open),
        severity: query.severity.and_then(|severity| Severity::from_word(severity.as_str())),
        service: query.service.as_ref().map(slug),
        rule: query.rule.as_ref().map(slug),
        only: cx.caller.services(),
    };
    let page = cx.hub.alerts.incidents(filter, page_of(&query.page)).await?;
    let alerts = page.items.iter().map(|incident| view(&cx.hub, incident)).collect();
    Ok(ApiReply::new(AlertPage { alerts, next_page_token: next_token(&page) }))
}

pub(crate) async fn get(cx: RequestContext, Path(id): Path<String>) -> ApiResult<Alert> {
    Ok(ApiReply::new(view(&cx.hub, &find(&cx, &id).await?)))
}

/// Handles `POST …/alerts/{id}:acknowledge`.
pub(crate) async fn acknowledge(cx: RequestContext, target: Target, body: Bytes) -> ApiResult<Alert> {
    let Reason { reason } = Input::<Reason>::optional(&body)?.finish()?;
    find(&cx, &target).await?;
    changed(&cx, cx.hub.alerts.acknowledge(&cx, &target, reason).await)
}

/// Handles `POST …/alerts/{id}:mute`.
pub(crate) async fn mute(cx: RequestContext, target: Target, body: Bytes) -> ApiResult<Alert> {
    let mute = read_mute(&cx.hub, Input::optional(&body)?)?;
    find(&cx, &target).await?;
    changed(&cx, cx.hub.alerts.mute_incident(&cx, &target, Some(mute)).await)
}

/// Handles `POST …/alerts/{id}:unmute`.
pub(crate) async fn unmute(cx: RequestContext, target: Target) -> ApiResult<Alert> {
    find(&cx, &target).await?;
    changed(&cx, cx.hub.alerts.mute_incident(&cx, &target, None).await)
}

fn changed(cx: &RequestContext, result: Result<Incident, ChangeError>) -> ApiResult<Alert> {
    Ok(ApiReply::new(view(&cx.hub, &result.map_err(refused("incident"))?)))
}

/// What is not for whoever asks looks as if it were not there.
async fn find(cx: &RequestContext, id: &str) -> Result<Incident, ApiError> {
    let is_seen = |incident: &Incident| match &incident.service {
        Some(service) => cx.caller.sees(service),
        None => cx.caller.sees_all(),
    };
    cx.hub.alerts.incident(id).await?.filter(is_seen).ok_or_else(|| ApiError::missing("incident"))
}

/// Reads a mute.
pub(super) fn read_mute(
    hub: &Server,
    mut input: Input<MuteInput>,
) -> Result<domain::alert::Mute, Vec<FieldProblem>> {
    let until = end_of_mute(hub.now(), "", &mut input);
    let MuteInput { reason, .. } = input.finish()?;
    Ok(domain::alert::Mute { until, reason })
}

/// The end of a mute whose fields are below `place`. A problem with it is reported, and the result is then of no use.
pub(super) fn end_of_mute<S, V>(now: Millis, place: &str, input: &mut Input<S, V>) -> Millis
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
pub(super) fn running(mute: Option<&domain::alert::Mute>, now: Millis) -> Option<&domain::alert::Mute> {
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
