//! Making the request of a dead letter anew.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::domain::event::Event;
use crate::domain::operation::ReplayMode;
use crate::domain::rule::Rule;
use crate::domain::slug::Slug;
use crate::port::store::{InitialState, NewDelivery, Store, StoredDelivery};
use crate::port::transport::Transport;
use crate::render::{RenderedRequest, RequestTemplate};
use crate::service::bridge::evaluate::{Evaluation, render_in};
use crate::service::bridge::rule_set::compile;
use crate::service::gateway::call::GATEWAY_RULE;
use crate::service::shared::{ChangeError, Core};

/// Rebuilds requests, and caches the rules that it has compiled.
pub(super) struct RequestRebuilder<'h, S, T: Transport> {
    core: &'h Core<S, T>,
    rules: HashMap<Slug, Result<(Rule, Arc<RequestTemplate>), ChangeError>>,
}

impl<'h, S: Store + Clone, T: Transport> RequestRebuilder<'h, S, T> {
    pub(super) fn new(core: &'h Core<S, T>) -> Self {
        RequestRebuilder { core, rules: HashMap::new() }
    }

    /// Returns the delivery for a replay.
    pub(super) async fn make(
        &mut self,
        kept: &StoredDelivery,
        event: &Event,
        mode: ReplayMode,
    ) -> Result<NewDelivery, ChangeError> {
        // A call was never rendered: there is nothing but the request as it was.
        let mode = if kept.rule.0.as_str() == GATEWAY_RULE { ReplayMode::Same } else { mode };
        let (rule, service, request) = match mode {
            ReplayMode::Same if kept.request.is_empty() => {
                let reason = "it could not be rendered, so there is no original request to send; fix the \
                              rule, and replay with mode `render`";
                return Err(ChangeError::Conflict(reason.into()));
            }
            ReplayMode::Same => (kept.rule.clone(), kept.service.clone(), kept.request.clone()),
            ReplayMode::Render => {
                let (rule, request) = self.render(&kept.rule.0, event).await?;
                // A rule may send elsewhere today.
                ((rule.name.clone(), rule.version), rule.service.clone(), request.to_bytes())
            }
        };
        if self.core.service(&service).is_none() {
            return Err(ChangeError::Conflict(format!("service `{service}` was deleted; create it again")));
        }
        Ok(NewDelivery { rule, service, request, initial: InitialState::Queued, order: kept.order.clone() })
    }

    /// Renders the request by the current rule. Its filter is ignored, because the replay was asked for explicitly.
    pub(super) async fn render(
        &mut self,
        name: &Slug,
        event: &Event,
    ) -> Result<(&Rule, RenderedRequest), ChangeError> {
        let known = match self.rules.entry(name.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(compiled(self.core, name)),
        };
        let (rule, program) = known.as_ref().map_err(Clone::clone)?;
        let wrong = |place: &str, reason: String| ChangeError::Wrong(vec![(format!("rule.{place}"), reason)]);
        match render_in(self.core.accept.pool(), program, event).await? {
            Evaluation::Request { request, .. } => Ok((rule, request)),
            Evaluation::Unrenderable(mistake) => Err(wrong(&mistake.place, mistake.reason)),
            Evaluation::Filtered(_) | Evaluation::OtherKind => {
                Err(wrong("filter", "it does not take the event".into()))
            }
        }
    }
}

fn compiled<S: Store + Clone, T: Transport>(
    core: &Core<S, T>,
    name: &Slug,
) -> Result<(Rule, Arc<RequestTemplate>), ChangeError> {
    let rule = core.rule(name).ok_or_else(|| {
        ChangeError::Conflict(format!("rule `{name}` was deleted; replay with mode `same`"))
    })?;
    let unfiltered = Rule { filter: None, ..rule.clone() };
    let program = compile(&unfiltered).map_err(|mistakes| {
        ChangeError::Wrong(
            mistakes.into_iter().map(|one| (format!("rule.{}", one.place), one.reason)).collect(),
        )
    })?;
    Ok((rule, Arc::new(program)))
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
