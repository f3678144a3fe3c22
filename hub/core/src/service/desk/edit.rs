//! Changing what a dead letter sends, and sending it.
//!
//! Either the event is changed and rendered by today's rule, or the request itself. The event that was sent in stays as it is,
//! and so does the dead letter: what goes out is a copy that is linked to it and says that it was changed.

use serde_json::Value as Json;
use tracing::info;

use super::super::hub::{Hub, Refused};
use super::remake::Remaker;
use super::{fingerprint, record};
use crate::domain::delivery::DeliveryId;
use crate::domain::event::Event;
use crate::domain::operation::Mode;
use crate::port::store::{Birth, Dead, NewDelivery, Replay, Store, WholeLetter};
use crate::port::transport::Transport;
use crate::render::{Body, Request};

/// What to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Edit {
    /// The `data` of the event, and it is rendered by today's rule.
    Data(Json),
    /// Parts of the request. What is not named stays as it was.
    Request {
        /// The method.
        method: Option<String>,
        /// The path with its query.
        path: Option<String>,
        /// All headers.
        headers: Option<Vec<(String, String)>>,
        /// The body.
        body: Option<Vec<u8>>,
    },
}

/// What a change has come to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edited {
    /// The new delivery; none, if somebody only wanted to see.
    pub delivery: Option<DeliveryId>,
    /// What is sent.
    pub request: Request,
    /// How it differs from what was sent before.
    pub differences: Vec<Difference>,
}

/// One place in which two requests differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// `method`, `path`, `headers.x-order`, `body.data.id`, …
    pub place: String,
    /// What was there, if anything was.
    pub was: Option<String>,
    /// What is there now, if anything is.
    pub now: Option<String>,
}

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Sends a changed copy of a dead letter, or only shows what it would be. A double click sends it once.
    pub async fn edit(
        &self,
        id: DeliveryId,
        edit: &Edit,
        only_show: bool,
        again: bool,
        key: Option<&str>,
    ) -> Result<Edited, Refused> {
        let Some(whole) = self.store.dead_letter(id).await? else { return Err(Refused::Missing) };
        let before = Request::from_bytes(&whole.dead.delivery.request, &whole.dead.delivery.payload);
        let (new, request) = self.changed(&whole, before.as_ref(), edit).await?;
        let differences = differences(before.as_ref(), &request);
        if only_show {
            return Ok(Edited { delivery: None, request, differences });
        }
        if differences.is_empty() {
            let reason = "nothing is changed by it; `:replay` with mode `same` sends it again as it was";
            return Err(Refused::Conflict(reason.into()));
        }
        let marks = fingerprint(&format!("{id} {again} {:?}", request.to_bytes()));
        let change = Replay { dead: id, new, at: self.now(), again, edited: true };
        let made = self.send_again(change, key, marks).await?;
        let event = record(&whole).origin.id;
        info!(target: "seawall", deadLetterId = %id, eventId = event, deliveryId = %made, "[DeadLetter][Edit] Success.");
        Ok(Edited { delivery: Some(made), request, differences })
    }

    async fn changed(
        &self,
        whole: &WholeLetter,
        before: Option<&Request>,
        edit: &Edit,
    ) -> Result<(NewDelivery, Request), Refused> {
        let WholeLetter { dead, event, .. } = whole;
        match edit {
            Edit::Data(data) => {
                let event = with_data(event, data)?;
                let mut remaker = Remaker::new(self);
                let (rule, mut request) = remaker.render(&dead.delivery.rule.0, &event).await?;
                // The event that is kept is another: the body has to be its own.
                if let Body::Event(bytes) = request.body {
                    request.body = Body::Own(bytes);
                }
                let (rule, service) = ((rule.name.clone(), rule.version), rule.service.clone());
                self.sendable(dead, rule, service, request)
            }
            Edit::Request { method, path, headers, body } => {
                let Some(mut request) = before.cloned() else {
                    let reason =
                        "no request could ever be made of it; change its `data` instead, or mend the rule";
                    return Err(Refused::Conflict(reason.into()));
                };
                if let Some(method) = method {
                    request.method = method.to_ascii_uppercase();
                }
                request.path = path.clone().unwrap_or(request.path);
                if let Some(headers) = headers {
                    let small = |(name, value): &(String, String)| (name.to_ascii_lowercase(), value.clone());
                    request.headers = headers.iter().map(small).collect();
                }
                if let Some(body) = body {
                    request.body = if body.is_empty() { Body::Empty } else { Body::Own(body.clone().into()) };
                }
                let mistakes = request.mistakes();
                if !mistakes.is_empty() {
                    let named = |one: crate::render::Mistake| (format!("request.{}", one.place), one.reason);
                    return Err(Refused::Wrong(mistakes.into_iter().map(named).collect()));
                }
                let kept = Remaker::new(self).make(&dead.delivery, event, Mode::Same).await?;
                self.sendable(dead, kept.rule, kept.service, request)
            }
        }
    }

    fn sendable(
        &self,
        dead: &Dead,
        rule: (crate::domain::slug::Slug, u64),
        service: crate::domain::slug::Slug,
        request: Request,
    ) -> Result<(NewDelivery, Request), Refused> {
        if self.service(&service).is_none() {
            return Err(Refused::Conflict(format!("service `{service}` is gone; register it again")));
        }
        let order = dead.delivery.order.clone();
        let new = NewDelivery { rule, service, request: request.to_bytes(), birth: Birth::Queued, order };
        Ok((new, request))
    }
}

/// The event with other data. Everything else of it stays.
fn with_data(event: &Event, data: &Json) -> Result<Event, Refused> {
    let mut whole: Json = serde_json::from_slice(&event.payload)
        .map_err(|_| Refused::Conflict("the event is no JSON; change the request instead".into()))?;
    whole["data"] = data.clone();
    Ok(Event { payload: whole.to_string().into_bytes().into(), ..event.clone() })
}

/// How two requests differ: bodies that are JSON, place by place.
#[must_use]
pub fn differences(before: Option<&Request>, now: &Request) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut add = |place: &str, was: Option<String>, now: Option<String>| {
        if was != now {
            all.push(Difference { place: place.into(), was, now });
        }
    };
    add("method", before.map(|before| before.method.clone()), Some(now.method.clone()));
    add("path", before.map(|before| before.path.clone()), Some(now.path.clone()));
    let value = |request: &Request, name: &str| {
        request.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let mut names: Vec<&String> = now.headers.iter().map(|(name, _)| name).collect();
    names.extend(before.iter().flat_map(|before| before.headers.iter().map(|(name, _)| name)));
    names.sort();
    names.dedup();
    for name in names {
        add(&format!("headers.{name}"), before.and_then(|before| value(before, name)), value(now, name));
    }
    let json = |request: &Request| -> Option<Json> { serde_json::from_slice(request.body.bytes()?).ok() };
    let text =
        |request: &Request| request.body.bytes().map(|body| String::from_utf8_lossy(body).into_owned());
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

    fn request(path: &str, headers: &[(&str, &str)], body: &str) -> Request {
        Request {
            method: "POST".into(),
            path: path.into(),
            headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            body: Body::Own(body.as_bytes().to_vec().into()),
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
