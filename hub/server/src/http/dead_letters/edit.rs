//! `POST …/deadLetters/{id}:edit`: replays an edited copy, or only shows the differences.

use axum::body::Bytes;
use axum::http::HeaderMap;
use seawall_api::{self as wire, EditInput, ReplayOptions, RequestEdit};
use seawall_hub_core::domain::operation::ReplayMode;
use seawall_hub_core::render::RenderedRequest;
use seawall_hub_core::service::{EditResult, LetterEdit};
use serde_json::Value;

use super::letters::{NOUN, check_target, find, id_of};
use super::{because, view};
use crate::http::bridge::events::idempotency_key;
use crate::http::context::{RequestContext, Target};
use crate::http::error::refused;
use crate::http::gateway::is_json_type;
use crate::http::input::Input;
use crate::http::registry::evaluate::request_view;
use crate::http::reply::{ApiReply, ApiResult};

pub(crate) async fn edit(
    cx: RequestContext,
    target: Target,
    headers: HeaderMap,
    body: Bytes,
) -> ApiResult<wire::EditResult> {
    let mut input = Input::<EditInput>::optional(&body)?;
    match (input.has("data"), input.raw("request").is_some()) {
        (true, true) => input.wrong("request", "set either `data` or `request`, not both"),
        (false, false) => {
            input.wrong("data", "required: the new `data` of the event, or changes of the `request`");
        }
        _ => {}
    }
    let EditInput { data, request, dry_run, options: ReplayOptions { again, reason } } = input.finish()?;
    let (is_dry_run, again) = (dry_run.unwrap_or(false), again.unwrap_or(false));
    let details = find(&cx, &target).await?;
    let stored = &details.dead.delivery;
    // What is rendered is sent to the service of the current rule.
    let mode = if data.is_some() { ReplayMode::Render } else { ReplayMode::Same };
    check_target(&cx, &details, mode)?;
    let key = idempotency_key(&headers, &cx.caller)?;
    let edit = match data {
        Some(data) => LetterEdit::Data(data),
        None => {
            let before = RenderedRequest::from_bytes(&stored.request, &stored.payload);
            request_edit(request.unwrap_or_default(), before.as_ref())
        }
    };
    let context = because(&cx, reason);
    let edited = cx.hub.dead_letters.edit(&context, &details, &edit, is_dry_run, again, key.as_deref()).await;
    let EditResult { delivery, request, differences } = edited.map_err(refused(NOUN))?;
    let rule = cx.hub.registry.rule(&stored.rule.0).filter(|_| mode == ReplayMode::Render);
    let service = rule.as_ref().map_or(&stored.service, |rule| &rule.service);
    let address = cx.hub.registry.service(service).map(|service| service.address);
    let data = wire::EditResult {
        delivery: delivery.map(|delivery| delivery.to_string().into()),
        replay_of: id_of(&details).to_string().into(),
        request: request_view(&request, address.as_deref()),
        diff: view::diff(differences),
    };
    Ok(if is_dry_run { ApiReply::new(data) } else { ApiReply::accepted(data) })
}

/// Changes of a request. Its body is text or JSON by its content type, which is added for JSON if there is none.
fn request_edit(edit: RequestEdit, before: Option<&RenderedRequest>) -> LetterEdit {
    let mut headers = edit.headers.map(|headers| headers.into_iter().collect::<Vec<_>>());
    let body = edit.body.map(|body| {
        let all = headers.as_ref().or(before.map(|before| &before.attributes));
        let mut named = all.into_iter().flatten();
        let content_type = named.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        match (body, content_type) {
            (Value::Null, _) => Vec::new(),
            (Value::String(text), Some((_, kind))) if !is_json_type(kind) => text.into_bytes(),
            (body, content_type) => {
                if content_type.is_none() {
                    let mut with_type = all.cloned().unwrap_or_default();
                    with_type.push(("content-type".into(), "application/json".into()));
                    headers = Some(with_type);
                }
                body.to_string().into_bytes()
            }
        }
    });
    let path = edit.path.map(wire::RequestPath::into_string);
    LetterEdit::Request { method: edit.method, path, headers, body }
}
