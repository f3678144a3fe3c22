//! Making the request of a dead letter anew.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::super::call::GATEWAY_RULE;
use super::super::evaluate::{Evaluation, render_in};
use super::super::hub::{Hub, Refused};
use super::super::rulebook::compile;
use crate::domain::event::Event;
use crate::domain::operation::Mode;
use crate::domain::rule::Rule;
use crate::domain::slug::Slug;
use crate::port::store::{Birth, Kept, NewDelivery, Store};
use crate::port::transport::Transport;
use crate::render::{Program, Request};

/// Makes requests anew, and remembers each rule that it has compiled.
pub(super) struct Remaker<'h, S, T: Transport> {
    hub: &'h Hub<S, T>,
    rules: HashMap<Slug, Result<(Rule, Arc<Program>), Refused>>,
}

impl<'h, S: Store + Clone, T: Transport> Remaker<'h, S, T> {
    pub(super) fn new(hub: &'h Hub<S, T>) -> Self {
        Remaker { hub, rules: HashMap::new() }
    }

    /// What is sent when this is sent again.
    pub(super) async fn make(
        &mut self,
        kept: &Kept,
        event: &Event,
        mode: Mode,
    ) -> Result<NewDelivery, Refused> {
        // A call was never rendered: there is nothing but the request as it was.
        let mode = if kept.rule.0.as_str() == GATEWAY_RULE { Mode::Same } else { mode };
        let (rule, service, request) = match mode {
            Mode::Same if kept.request.is_empty() => {
                let reason = "no request could ever be made of it, so there is nothing to send again as it was; mend the \
                              rule, and replay with mode `render`";
                return Err(Refused::Conflict(reason.into()));
            }
            Mode::Same => (kept.rule.clone(), kept.service.clone(), kept.request.clone()),
            Mode::Render => {
                let (rule, request) = self.render(&kept.rule.0, event).await?;
                // A rule may send elsewhere today.
                ((rule.name.clone(), rule.version), rule.service.clone(), request.to_bytes())
            }
        };
        if self.hub.service(&service).is_none() {
            return Err(Refused::Conflict(format!("service `{service}` is gone; register it again")));
        }
        Ok(NewDelivery { rule, service, request, birth: Birth::Queued, order: kept.order.clone() })
    }

    /// The request of today's rule. A filter that would not take the event today is passed over: somebody asks for it.
    pub(super) async fn render(&mut self, name: &Slug, event: &Event) -> Result<(&Rule, Request), Refused> {
        let known = match self.rules.entry(name.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(compiled(self.hub, name)),
        };
        let (rule, program) = known.as_ref().map_err(Clone::clone)?;
        let wrong = |place: &str, reason: String| Refused::Wrong(vec![(format!("rule.{place}"), reason)]);
        match render_in(self.hub.accept.pool(), program, event).await? {
            Evaluation::Request { request, .. } => Ok((rule, request)),
            Evaluation::Unrenderable(mistake) => Err(wrong(&mistake.place, mistake.reason)),
            Evaluation::Filtered(_) | Evaluation::OtherKind => {
                Err(wrong("filter", "it does not take the event".into()))
            }
        }
    }
}

fn compiled<S: Store + Clone, T: Transport>(
    hub: &Hub<S, T>,
    name: &Slug,
) -> Result<(Rule, Arc<Program>), Refused> {
    let rule = hub
        .rule(name)
        .ok_or_else(|| Refused::Conflict(format!("rule `{name}` is gone; replay with mode `same`")))?;
    let unfiltered = Rule { filter: None, ..rule.clone() };
    let program = compile(&unfiltered).map_err(|mistakes| {
        Refused::Wrong(mistakes.into_iter().map(|one| (format!("rule.{}", one.place), one.reason)).collect())
    })?;
    Ok((rule, Arc::new(program)))
}

/// The request as a line for a shell. Credentials are added by the hub on the way out, and are not in it.
#[must_use]
pub fn curl(address: &str, request: &Request, has_auth: bool) -> String {
    let url = format!("{}{}", address.trim_end_matches('/'), request.path);
    let mut line = format!("curl -X {} {}", request.method, quoted(&url));
    for (name, value) in &request.headers {
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

/// For a shell that takes everything within single quotes as it is.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Body;

    /// HUB-6: what is copied for a shell is one command, whatever the request holds, and without credentials.
    #[test]
    fn hub_6_a_request_for_a_shell_is_quoted() {
        let request = Request {
            method: "POST".into(),
            path: "/a?b=c&d=$HOME".into(),
            headers: vec![("x-name".into(), "it's `me`".into())],
            body: Body::Own(br#"{"a":"$(rm -rf /)'"}"#.to_vec().into()),
        };
        let expected = "curl -X POST 'http://peer/a?b=c&d=$HOME' \\\n  -H 'x-name: it'\\''s `me`' \\\n  \
                        -H \"authorization: $CREDENTIALS\" \\\n  --data-raw '{\"a\":\"$(rm -rf /)'\\''\"}'";
        assert_eq!(curl("http://peer/", &request, true), expected);
        let empty = Request { body: Body::Empty, headers: vec![], ..request };
        assert_eq!(curl("http://peer", &empty, false), "curl -X POST 'http://peer/a?b=c&d=$HOME'");
    }
}
