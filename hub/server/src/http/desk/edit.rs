//! `POST …/deadLetters/{id}:edit`: a changed copy is sent, or only shown.

use axum::http::{HeaderMap, StatusCode};
use seawall_hub_core::domain::operation::ReplayMode;
use seawall_hub_core::render::RenderedRequest;
use seawall_hub_core::service::{EditResult, LetterEdit};
use serde_json::{Value, json};

use super::super::HandlerResult;
use super::super::context::RequestContext;
use super::super::evaluate::request_view;
use super::super::events::idempotency_key;
use super::super::fields::Fields;
use super::super::gateway::is_json_type;
use super::super::reply::{refused, success};
use super::letters::{find, may_send};
use super::{end, reason, shown};

pub(super) async fn edit(
    cx: &RequestContext,
    id: &str,
    headers: &HeaderMap,
    mut fields: Fields,
) -> HandlerResult {
    let changed = changed(&mut fields);
    let (dry, again) = (fields.switch("dryRun", false), fields.switch("again", false));
    let reason = reason(&mut fields);
    end(fields, "data, request, dryRun, again, reason")?;
    let (dead, whole) = find(&cx.hub, &cx.caller, id).await?;
    // What is rendered goes where today's rule sends it.
    let mode = if matches!(changed, EditBody::Data(_)) { ReplayMode::Render } else { ReplayMode::Same };
    may_send(&cx.hub, &cx.caller, &whole, mode)?;
    let key = idempotency_key(headers, &cx.caller)?;
    let before = RenderedRequest::from_bytes(&whole.dead.delivery.request, &whole.dead.delivery.payload);
    let edit = changed.into_edit(before.as_ref());
    Ok(
        match cx
            .hub
            .dead_letters
            .edit(&cx.with_reason(reason), &whole, &edit, dry, again, key.as_deref())
            .await
        {
            Ok(EditResult { delivery, request, differences }) => {
                let kept = &whole.dead.delivery;
                let today = cx
                    .hub
                    .registry
                    .rule(&kept.rule.0)
                    .filter(|_| mode == ReplayMode::Render)
                    .map(|rule| rule.service);
                let address = cx
                    .hub
                    .registry
                    .service(today.as_ref().unwrap_or(&kept.service))
                    .map(|service| service.address);
                let data = json!({
                    "delivery": delivery.map(|delivery| delivery.to_string()), "replayOf": dead.to_string(),
                    "request": request_view(&request, address.as_deref()), "diff": shown::diff(&differences),
                });
                success(if dry { StatusCode::OK } else { StatusCode::ACCEPTED }, &data)
            }
            Err(why) => refused(why, "dead letter"),
        },
    )
}

/// What somebody wants to be different.
enum EditBody {
    Data(Value),
    Request {
        method: Option<String>,
        path: Option<String>,
        headers: Option<Vec<(String, String)>>,
        /// Null is no body.
        body: Option<Value>,
    },
}

fn changed(fields: &mut Fields) -> EditBody {
    match (fields.has("data"), fields.has("request")) {
        (true, false) => return EditBody::Data(fields.any("data").unwrap_or_default()),
        (false, true) => {}
        (true, true) => fields.wrong("request", "set either `data` or `request`, not both"),
        (false, false) => {
            fields.wrong("data", "required: the new `data` of the event, or changes of the `request`");
        }
    }
    fields.any("data");
    let mut request = fields.group("request").unwrap_or_else(|| Fields::new(json!({})));
    let headers = request.has("headers").then(|| request.pairs("headers"));
    let body = request.has("body").then(|| request.any("body").unwrap_or_default());
    let changed =
        EditBody::Request { method: request.text("method"), path: request.text("path"), headers, body };
    fields.within("request", request, "method, path, headers, body");
    changed
}

impl EditBody {
    fn into_edit(self, before: Option<&RenderedRequest>) -> LetterEdit {
        let (method, path, mut headers, body) = match self {
            EditBody::Data(data) => return LetterEdit::Data(data),
            EditBody::Request { method, path, headers, body } => (method, path, headers, body),
        };
        let body = body.map(|body| {
            let all = headers.as_ref().or(before.map(|before| &before.attributes));
            let said = all.into_iter().flatten().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
            match (body, said) {
                (Value::Null, _) => Vec::new(),
                // Whoever says that it is a text of another kind does not want it in quotes.
                (Value::String(text), Some((_, kind))) if !is_json_type(kind) => text.into_bytes(),
                (body, said) => {
                    if said.is_none() {
                        let mut with = all.cloned().unwrap_or_default();
                        with.push(("content-type".into(), "application/json".into()));
                        headers = Some(with);
                    }
                    body.to_string().into_bytes()
                }
            }
        });
        LetterEdit::Request { method, path, headers, body }
    }
}
