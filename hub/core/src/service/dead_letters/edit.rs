//! Changing what a dead letter sends, and sending it.
//!
//! Either the event is changed and rendered by today's rule, or the request itself. The event that was sent in stays as it is,
//! and so does the dead letter: what goes out is a copy that is linked to it and says that it was changed.

use serde_json::Value as Json;
use tracing::info;

use super::rebuild::{rebuild, render};
use super::replay::fingerprint;
use crate::domain::delivery::DeliveryId;
use crate::domain::event::Event;
use crate::domain::operation::ReplayMode;
use crate::port::store::{DeadLetter, DeadLetterDetails, InitialState, NewDelivery, ReplayChange, Store};
use crate::port::transport::Transport;
use crate::render::{RenderedRequest, RequestBody};
use crate::service::context::Context;
use crate::service::handles::DeadLetterHandle;
use crate::service::shared::ChangeError;

/// An edit of a dead letter before its replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LetterEdit {
    /// Other `data` of the event, rendered by the current rule.
    Data(Json),
    /// Other parts of the request. A part that is `None` stays as it was.
    Request {
        /// The new method.
        method: Option<String>,
        /// The new path with its query.
        path: Option<String>,
        /// The new headers, all of them.
        headers: Option<Vec<(String, String)>>,
        /// The new body.
        body: Option<Vec<u8>>,
    },
}

/// The result of an edit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EditResult {
    /// The new delivery; `None` after a preview.
    pub delivery: Option<DeliveryId>,
    /// The edited request.
    pub request: RenderedRequest,
    /// The differences to the request before.
    pub differences: Vec<Difference>,
}

/// A field in which two requests differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The path of the field, like `method`, `headers.x-order` or `body.data.id`.
    pub place: String,
    /// The value before; `None` if there was none.
    pub was: Option<String>,
    /// The value after; `None` if there is none.
    pub now: Option<String>,
}

impl<S: Store + Clone, T: Transport> DeadLetterHandle<S, T> {
    /// Sends an edited copy of a dead letter, or only previews it. A double click sends it once.
    pub async fn edit(
        &self,
        cx: &Context,
        letter: &DeadLetterDetails,
        edit: &LetterEdit,
        only_show: bool,
        again: bool,
        key: Option<&str>,
    ) -> Result<EditResult, ChangeError> {
        let stored = &letter.dead.delivery;
        let id = stored.id;
        let before = RenderedRequest::from_bytes(&stored.request, &stored.payload);
        let (new, request) = self.changed(letter, before.as_ref(), edit).await?;
        let differences = differences(before.as_ref(), &request);
        if only_show {
            return Ok(EditResult { delivery: None, request, differences });
        }
        if differences.is_empty() {
            let reason = "nothing is changed by it; `:replay` with mode `same` sends it again as it was";
            return Err(ChangeError::Conflict(reason.into()));
        }
        let marks = fingerprint(&format!("{id} {again} {:?}", request.to_bytes()));
        let change = ReplayChange { dead: id, new, at: cx.now, again, edited: true };
        let made = self.send_again(cx, change, key, marks).await?;
        let event = &*stored.event;
        info!(target: "seawall", deadLetterId = %id, eventId = event, deliveryId = %made, "[DeadLetter][Edit] Success.");
        Ok(EditResult { delivery: Some(made), request, differences })
    }

    async fn changed(
        &self,
        whole: &DeadLetterDetails,
        before: Option<&RenderedRequest>,
        edit: &LetterEdit,
    ) -> Result<(NewDelivery, RenderedRequest), ChangeError> {
        let DeadLetterDetails { dead, event, .. } = whole;
        match edit {
            LetterEdit::Data(data) => {
                let event = with_data(event, data)?;
                let (rule, mut request) = render(&self.core, &dead.delivery.rule.0, &event).await?;
                // The stored event is another: the body has to be its own.
                if let RequestBody::Event(bytes) = request.body {
                    request.body = RequestBody::Own(bytes);
                }
                let (rule, service) = ((rule.name.clone(), rule.version), rule.service.clone());
                self.sendable(dead, rule, service, request)
            }
            LetterEdit::Request { method, path, headers, body } => {
                let Some(mut request) = before.cloned() else {
                    let reason =
                        "it could not be rendered and has no request; edit its `data`, or fix the rule";
                    return Err(ChangeError::Conflict(reason.into()));
                };
                if let Some(method) = method {
                    request.operation = method.to_ascii_uppercase();
                }
                request.target = path.clone().unwrap_or(request.target);
                if let Some(headers) = headers {
                    let small = |(name, value): &(String, String)| (name.to_ascii_lowercase(), value.clone());
                    request.attributes = headers.iter().map(small).collect();
                }
                if let Some(body) = body {
                    request.body = if body.is_empty() {
                        RequestBody::Empty
                    } else {
                        RequestBody::Own(body.clone().into())
                    };
                }
                let mistakes = request.mistakes();
                if !mistakes.is_empty() {
                    let named =
                        |one: crate::render::TemplateError| (format!("request.{}", one.place), one.reason);
                    return Err(ChangeError::Wrong(mistakes.into_iter().map(named).collect()));
                }
                let same = rebuild(&self.core, &dead.delivery, event, ReplayMode::Same).await?;
                self.sendable(dead, same.rule, same.service, request)
            }
        }
    }

    fn sendable(
        &self,
        dead: &DeadLetter,
        rule: (crate::domain::slug::Slug, u64),
        service: crate::domain::slug::Slug,
        request: RenderedRequest,
    ) -> Result<(NewDelivery, RenderedRequest), ChangeError> {
        if self.core.service(&service).is_none() {
            return Err(ChangeError::Conflict(format!("service `{service}` was deleted; create it again")));
        }
        let order = dead.delivery.order.clone();
        let new =
            NewDelivery { rule, service, request: request.to_bytes(), initial: InitialState::Queued, order };
        Ok((new, request))
    }
}

/// Returns the event with other data.
fn with_data(event: &Event, data: &Json) -> Result<Event, ChangeError> {
    let mut whole: Json = serde_json::from_slice(&event.payload)
        .map_err(|_| ChangeError::Conflict("the event is no JSON; change the request instead".into()))?;
    whole["data"] = data.clone();
    Ok(Event { payload: whole.to_string().into_bytes().into(), ..event.clone() })
}

/// Compares two requests; JSON bodies field by field.
#[must_use]
pub fn differences(before: Option<&RenderedRequest>, now: &RenderedRequest) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut add = |place: &str, was: Option<String>, now: Option<String>| {
        if was != now {
            all.push(Difference { place: place.into(), was, now });
        }
    };
    add("method", before.map(|before| before.operation.clone()), Some(now.operation.clone()));
    add("path", before.map(|before| before.target.clone()), Some(now.target.clone()));
    let value = |request: &RenderedRequest, name: &str| {
        request.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let mut names: Vec<&String> = now.attributes.iter().map(|(name, _)| name).collect();
    names.extend(before.iter().flat_map(|before| before.attributes.iter().map(|(name, _)| name)));
    names.sort();
    names.dedup();
    for name in names {
        add(&format!("headers.{name}"), before.and_then(|before| value(before, name)), value(now, name));
    }
    let json =
        |request: &RenderedRequest| -> Option<Json> { serde_json::from_slice(request.body.bytes()?).ok() };
    let text = |request: &RenderedRequest| {
        request.body.bytes().map(|body| String::from_utf8_lossy(body).into_owned())
    };
    match (before.and_then(json), json(now)) {
        (Some(was), Some(now)) => compare("body", &was, &now, &mut add),
        _ => add("body", before.and_then(text), text(now)),
    }
    all
}

fn compare(place: &str, was: &Json, now: &Json, add: &mut impl FnMut(&str, Option<String>, Option<String>)) {
    let show = |value: Option<&Json>| value.map(Json::to_string);
    match (was, now) {
        (Json::Object(was), Json::Object(now)) => {
            let mut names: Vec<&String> = was.keys().chain(now.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let place = format!("{place}.{name}");
                match (was.get(name), now.get(name)) {
                    (Some(was), Some(now)) => compare(&place, was, now, add),
                    (was, now) => add(&place, show(was), show(now)),
                }
            }
        }
        (Json::Array(was), Json::Array(now)) => {
            for index in 0..was.len().max(now.len()) {
                let place = format!("{place}[{index}]");
                match (was.get(index), now.get(index)) {
                    (Some(was), Some(now)) => compare(&place, was, now, add),
                    (was, now) => add(&place, show(was), show(now)),
                }
            }
        }
        (was, now) => add(place, show(Some(was)), show(Some(now))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, headers: &[(&str, &str)], body: &str) -> RenderedRequest {
        RenderedRequest {
            operation: "POST".into(),
            target: path.into(),
            attributes: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            body: RequestBody::Own(body.as_bytes().to_vec().into()),
        }
    }

    /// HUB-6: a diff names each place with what was and what is there.
    #[test]
    fn hub_6_a_diff_names_every_place() {
        let before = request("/a", &[("x-a", "1"), ("x-b", "2")], r#"{"id":7,"lines":[1,2],"gone":true}"#);
        let now = request("/b", &[("x-a", "1"), ("x-c", "3")], r#"{"id":8,"lines":[1,3,4]}"#);
        let found: Vec<String> = differences(Some(&before), &now)
            .into_iter()
            .map(|one| {
                let shown = |value: Option<String>| value.unwrap_or_else(|| "-".into());
                format!("{} {} {}", one.place, shown(one.was), shown(one.now))
            })
            .collect();
        let expected = [
            "path /a /b",
            "headers.x-b 2 -",
            "headers.x-c - 3",
            "body.gone true -",
            "body.id 7 8",
            "body.lines[1] 2 3",
            "body.lines[2] - 4",
        ];
        assert_eq!(found, expected);
        assert_eq!(differences(Some(&now), &now), []);
        let text = request("/b", &[("x-a", "1"), ("x-c", "3")], "no json");
        let whole = differences(Some(&now), &text);
        assert_eq!(whole.len(), 1);
        assert_eq!((&*whole[0].place, whole[0].now.as_deref()), ("body", Some("no json")));
    }
}
