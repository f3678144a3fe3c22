//! Incidents.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use seawall_hub_core::domain::alert::{Incident, Mute, Notice, NoticeState, Severity};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::IncidentFilter;
use serde_json::{Value, json};

use super::access::Caller;
use super::fields::Fields;
use super::query::{Query, paged};
use super::reply::{missing, parse, refused, store_problem, success, wrong_fields};
use super::{Caught, Early, no_verb, nothing_here, split_verb};
use crate::hub::Hub;
use crate::source::cloudevents::time::moment;

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Caught {
    let mut query = Query::new(query.as_deref());
    let page = query.page();
    let filter = IncidentFilter {
        open: query.word("state", &[("open", true), ("resolved", false)]),
        severity: query.word("severity", &Severity::ALL.map(|severity| (severity.word(), severity))),
        service: query.parsed("service", Slug::new),
        rule: query.parsed("rule", Slug::new),
        only: caller.services(),
    };
    query.end("state, severity, service, rule, page_size, page_token")?;
    Ok(match hub.incidents(filter, page).await {
        Ok(page) => success(StatusCode::OK, &paged(&page, "alerts", |incident| shown(&hub, incident))),
        Err(error) => store_problem(&error),
    })
}

pub(super) async fn get(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Caught {
    let incident = find(&hub, &caller, &id).await?;
    Ok(success(StatusCode::OK, &shown(&hub, &incident)))
}

/// `:acknowledge`, `:mute`, `:unmute`.
pub(super) async fn act(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(part): Path<String>,
    body: Bytes,
) -> Caught {
    let Some((id, verb)) = split_verb(&part) else { return Ok(nothing_here()) };
    let fields = || -> Result<Fields, Box<Response>> {
        Ok(Fields::new(if body.is_empty() { json!({}) } else { parse(&body)? }))
    };
    let done = match verb {
        "acknowledge" => {
            let mut fields = fields()?;
            let reason = fields.text("reason");
            let problems = fields.end("reason");
            if !problems.is_empty() {
                return Ok(wrong_fields(&problems));
            }
            find(&hub, &caller, id).await?;
            hub.acknowledge(id, reason).await
        }
        "mute" => {
            let mute = mute(&hub, fields()?)?;
            find(&hub, &caller, id).await?;
            hub.mute_incident(id, Some(mute)).await
        }
        "unmute" => {
            find(&hub, &caller, id).await?;
            hub.mute_incident(id, None).await
        }
        verb => return Ok(no_verb(verb, ":acknowledge, :mute, :unmute")),
    };
    Ok(match done {
        Ok(incident) => success(StatusCode::OK, &shown(&hub, &incident)),
        Err(why) => refused(why, "incident"),
    })
}

/// What is not for whoever asks looks as if it were not there.
async fn find(hub: &Hub, caller: &Caller, id: &str) -> Result<Incident, Early> {
    let found = hub.incident(id).await.map_err(|error| Early(store_problem(&error)))?;
    let sees = |incident: &Incident| match &incident.service {
        Some(service) => caller.sees(service),
        None => caller.sees_all(),
    };
    found.filter(sees).ok_or_else(|| Early(missing("incident")))
}

/// `{for | until, reason}`.
pub(super) fn mute(hub: &Hub, mut fields: Fields) -> Result<Mute, Box<Response>> {
    let mute = read_mute(hub, &mut fields);
    let problems = fields.end("for, until, reason");
    mute.filter(|_| problems.is_empty()).ok_or_else(|| Box::new(wrong_fields(&problems)))
}

pub(super) fn read_mute(hub: &Hub, fields: &mut Fields) -> Option<Mute> {
    let (now, reason) = (hub.now(), fields.needed("reason"));
    let until = match (fields.duration("for"), fields.text("until")) {
        (Some(lasts), None) => Some(now + lasts),
        (None, Some(text)) => {
            let until = moment(&text);
            if until.is_none() {
                fields.wrong("until", "a time like `2026-11-15T14:00:00Z` is expected");
            }
            until
        }
        (Some(_), Some(_)) => {
            fields.wrong("until", "say `for` or `until`, not both");
            None
        }
        (None, None) => {
            if !fields.has_problems() {
                fields.wrong("for", "say for how long, like `2h`, or `until` when");
            }
            None
        }
    };
    if until.is_some_and(|until| until <= now) {
        fields.wrong("until", "it is over already");
    }
    if until.is_some_and(|until| until.0 > YEAR_9999) {
        fields.wrong("until", "nobody will be there any more");
    }
    until.map(|until| Mute { until, reason })
}

/// Later times can't be written.
const YEAR_9999: i64 = 253_402_300_799_000;

pub(super) fn shown(hub: &Hub, incident: &Incident) -> Value {
    let Incident { id, rule, kind, severity, service, opened, updated, value, summary, .. } = incident;
    let (resolved, seen) = (incident.resolved.as_ref(), incident.acknowledged.as_ref());
    json!({
        "id": id, "rule": rule.as_str(), "kind": kind.word(), "severity": severity.word(),
        "service": service.as_ref().map(Slug::as_str), "state": if incident.is_open() { "open" } else { "resolved" },
        "summary": summary, "value": value, "openedAt": opened.to_string(), "updatedAt": updated.to_string(),
        "resolvedAt": resolved.map(|resolved| resolved.at.to_string()),
        "resolvedBecause": resolved.map(|resolved| &resolved.because),
        "acknowledged": seen.map(|seen| json!({"by": seen.who, "at": seen.at.to_string(), "reason": seen.reason})),
        "muted": muted(incident.muted.as_ref(), hub.now()), "link": hub.incident_link(incident),
        "notifications": incident.notices.iter().map(notice).collect::<Vec<_>>(),
    })
}

/// One whose time is over is none.
pub(super) fn muted(mute: Option<&Mute>, now: Millis) -> Value {
    let mute = mute.filter(|mute| now < mute.until);
    mute.map_or(Value::Null, |mute| json!({"until": mute.until.to_string(), "reason": mute.reason}))
}

fn notice(notice: &Notice) -> Value {
    let (state, at, due) = match notice.state {
        NoticeState::Waiting { due } => ("waiting", None, Some(due.to_string())),
        NoticeState::Sent { at } => ("sent", Some(at.to_string()), None),
        NoticeState::Dropped => ("dropped", None, None),
    };
    json!({
        "channel": notice.channel.as_str(), "about": notice.turn.word(), "state": state, "tries": notice.tries,
        "sentAt": at, "nextTryAt": due, "error": notice.error,
    })
}
