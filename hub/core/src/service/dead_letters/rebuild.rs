//! The delivery of a replay: with the request that was sent, or with what the current rule makes of the event.

use std::sync::Arc;

use crate::domain::event::Event;
use crate::domain::operation::ReplayMode;
use crate::domain::slug::Slug;
use crate::port::store::{InitialState, NewDelivery, Store, StoredDelivery};
use crate::port::transport::Transport;
use crate::render::{Meter, RenderedRequest, TemplateContext, TemplateError};
use crate::service::bridge::render_pool::{QUICK_BYTES_MAX, QUICK_WORK_MAX};
use crate::service::bridge::rule_set::CompiledRule;
use crate::service::gateway::call::GATEWAY_RULE;
use crate::service::shared::{ChangeError, Core};

/// Returns the delivery for a replay.
pub(super) async fn rebuild<S: Store + Clone, T: Transport>(
    core: &Core<S, T>,
    dead: &StoredDelivery,
    event: &Event,
    mode: ReplayMode,
) -> Result<NewDelivery, ChangeError> {
    // A call was never rendered: there is nothing but the request as it was.
    let mode = if dead.rule.0.as_str() == GATEWAY_RULE { ReplayMode::Same } else { mode };
    let (rule, service, request) = match mode {
        ReplayMode::Same if dead.request.is_empty() => {
            let reason = "it could not be rendered, so there is no original request to send; fix the \
                          rule, and replay with mode `render`";
            return Err(ChangeError::Conflict(reason.into()));
        }
        ReplayMode::Same => (dead.rule.clone(), dead.service.clone(), dead.request.clone()),
        ReplayMode::Render => {
            let (rule, request) = render(core, &dead.rule.0, event).await?;
            // A rule may send elsewhere today.
            ((rule.name.clone(), rule.version), rule.service.clone(), request.to_bytes())
        }
    };
    if core.service(&service).is_none() {
        return Err(ChangeError::Conflict(format!("service `{service}` was deleted; create it again")));
    }
    Ok(NewDelivery { rule, service, request, initial: InitialState::Queued, order: dead.order.clone() })
}

/// Renders the request by the current rule; costly renderings go to the pool. The filter is ignored, because the replay was asked
/// for explicitly.
pub(super) async fn render<S: Store + Clone, T: Transport>(
    core: &Core<S, T>,
    name: &Slug,
    event: &Event,
) -> Result<(Arc<CompiledRule>, RenderedRequest), ChangeError> {
    let rule = core.accept.rules().find(name).ok_or_else(|| {
        ChangeError::Conflict(format!("rule `{name}` was deleted; replay with mode `same`"))
    })?;
    let rendered = match render_quickly(&rule, event) {
        Some(rendered) => rendered,
        None => {
            let (rule, event) = (rule.clone(), event.clone());
            core.accept.pool().run(move || render_within(&rule, &event, &Meter::default())).await?
        }
    };
    match rendered {
        Ok(request) => Ok((rule, request)),
        Err(mistake) => Err(ChangeError::Wrong(vec![(format!("rule.{}", mistake.place), mistake.reason)])),
    }
}

/// Renders at once what is small; `None` if that takes too long.
fn render_quickly(rule: &CompiledRule, event: &Event) -> Option<Result<RenderedRequest, TemplateError>> {
    if event.payload.len() > QUICK_BYTES_MAX {
        return None;
    }
    let meter = Meter::with_work(QUICK_WORK_MAX);
    Some(render_within(rule, event, &meter)).filter(|_| !meter.is_spent())
}

fn render_within(
    rule: &CompiledRule,
    event: &Event,
    meter: &Meter,
) -> Result<RenderedRequest, TemplateError> {
    let view = TemplateContext::of_payload(&event.id, event.kind.as_str(), &event.source, &event.payload);
    // The replay keeps the ordering key that it had. One that can't be rendered is a mistake of the rule all the same.
    rule.program.order(&view, meter)?;
    rule.program.render(&view, &event.payload, meter)
}

/// Formats the request as a curl command, without the credentials that the hub adds when it sends.
#[must_use]
pub fn curl(address: &str, request: &RenderedRequest, has_auth: bool) -> String {
    let url = format!("{}{}", address.trim_end_matches('/'), request.target);
    let mut line = format!("curl -X {} {}", request.operation, quoted(&url));
    for (name, value) in &request.attributes {
        line.push_str(&format!(" \\\n  -H {}", quoted(&format!("{name}: {value}"))));
    }
    if has_auth {
        line.push_str(" \\\n  -H \"authorization: $CREDENTIALS\"");
    }
    if let Some(body) = request.body.bytes() {
        match std::str::from_utf8(body) {
            Ok(text) if !text.contains('\0') => {
                line.push_str(&format!(" \\\n  --data-raw {}", quoted(text)));
            }
            _ => line.push_str(" \\\n  --data-binary @body"),
        }
    }
    line
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::RequestBody;

    /// HUB-6: what is copied for a shell is one command, whatever the request holds, and without credentials.
    #[test]
    fn hub_6_a_request_for_a_shell_is_quoted() {
        let request = RenderedRequest {
            operation: "POST".into(),
            target: "/a?b=c&d=$HOME".into(),
            attributes: vec![("x-name".into(), "it's `me`".into())],
            body: RequestBody::Own(br#"{"a":"$(rm -rf /)'"}"#.to_vec().into()),
        };
        let expected = "curl -X POST 'http://peer/a?b=c&d=$HOME' \\\n  -H 'x-name: it'\\''s `me`' \\\n  \
                        -H \"authorization: $CREDENTIALS\" \\\n  --data-raw '{\"a\":\"$(rm -rf /)'\\''\"}'";
        assert_eq!(curl("http://peer/", &request, true), expected);
        let empty = RenderedRequest { body: RequestBody::Empty, attributes: vec![], ..request };
        assert_eq!(curl("http://peer", &empty, false), "curl -X POST 'http://peer/a?b=c&d=$HOME'");
    }
}
