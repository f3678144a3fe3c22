//! Calling a service now, later, or now and otherwise later.
//!
//! A call that is kept is an event of its own kind with one delivery, written in one unit like any other; what becomes of it
//! shows where deliveries show. Its rule is a name that no rule can have.

use std::sync::Arc;
use std::time::Duration;

use seawall::{Kind, Safety};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::accept::Begun;
use super::deliver::Answered;
use super::hub::Hub;
use crate::domain::delivery::{DeliveryId, State};
use crate::domain::event::Event;
use crate::domain::event_type::EventType;
use crate::domain::slug::Slug;
use crate::port::store::{Birth, Change, NewDelivery, Store, StoreError, Unit, Urgency};
use crate::port::transport::Transport;
use crate::render::Request;

/// The rule of deliveries that come from calls. No rule has this name.
pub const GATEWAY_RULE: &str = "gateway-call";
/// The kind of the events that they are about, and where those come from.
const KIND: &str = "seawall.call";
const SOURCE: &str = "gateway";
/// A server recognises a repetition by it.
const KEY_HEADER: &str = "idempotency-key";
/// What is kept of a call may carry none of these: it stands in the database as it is.
const SECRET: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];

/// A call to a service.
#[derive(Clone, Debug)]
pub struct Call {
    /// Whom.
    pub service: Slug,
    /// What is sent.
    pub request: Request,
    /// Now or later.
    pub mode: CallMode,
    /// The service does it once for this key, and so does the hub if it keeps the call.
    pub key: Option<String>,
    /// Who calls: others may use the same key for something else.
    pub whose: String,
    /// What it is called if it is kept and has no key.
    pub fresh_id: String,
    /// How long it may take, if less than the service's policy says.
    pub timeout: Option<Duration>,
    /// How deep in retries the caller is already, if it says so.
    pub retries_above: Option<u32>,
    /// The trace that it belongs to.
    pub trace: Option<String>,
}

/// When a call is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CallMode {
    /// Now.
    #[default]
    Sync,
    /// Later, as a delivery.
    Async,
    /// Now, and if it can't be had now, later.
    SyncOrQueue,
}

/// What came of a call that was made or kept.
#[derive(Clone, Debug)]
pub enum Called {
    /// It was made; there is an answer or a reason.
    Now(Answered),
    /// It is kept.
    Later(KeptCall),
}

/// A call that is kept.
#[derive(Clone, Debug)]
pub struct KeptCall {
    /// The event that stands for it.
    pub event: String,
    /// Its delivery.
    pub deliveries: Vec<DeliveryId>,
    /// Whether it was kept before, under the same key.
    pub deduplicated: bool,
    /// What came of trying it now, if that was tried.
    pub tried: Option<Answered>,
}

/// Why a call was neither made nor kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotCalled {
    /// There is no such service.
    Missing,
    /// The service is paused.
    Paused,
    /// Some of it is wrong.
    Wrong(Vec<(String, String)>),
    /// The key was used for another call.
    OtherContent,
    /// The store did not take it.
    Store(StoreError),
}

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Calls a service, or keeps the call.
    pub async fn call(&self, mut call: Call) -> Result<Called, NotCalled> {
        let paused = self.deliver.is_paused(&call.service).ok_or(NotCalled::Missing)?;
        check(&call)?;
        let sent = call.request.headers.iter().find(|(name, _)| name == KEY_HEADER);
        call.key = sent.map(|(_, key)| key.clone()).or(call.key);
        tell(&mut call.request, call.key.as_deref());
        if call.mode == CallMode::Sync {
            if paused {
                return Err(NotCalled::Paused);
            }
            return self.deliver.call(&call).await.map(Called::Now).ok_or(NotCalled::Missing);
        }
        let id = call
            .key
            .as_ref()
            .map_or_else(|| call.fresh_id.clone(), |key| named(&call.whose, &call.service, key));
        if call.mode == CallMode::Async || paused {
            return self.keep(&call, id, None).await.map(Called::Later);
        }
        // What is kept under this key already will be delivered: calling now would be a second time.
        if call.key.is_some()
            && self.store.event(&id, Some(SOURCE)).await.map_err(NotCalled::Store)?.is_some()
        {
            return self.keep(&call, id, None).await.map(Called::Later);
        }
        if Safety::of_http_method(&call.request.method) == Safety::Once {
            // It may run now and be delivered later all the same, if nobody hears of its end: a service that looks at keys
            // can tell.
            tell(&mut call.request, Some(&id));
        }
        let answered = self.deliver.call(&call).await.ok_or(NotCalled::Missing)?;
        if may_be_had_later(&answered) {
            return self.keep(&call, id, Some(answered)).await.map(Called::Later);
        }
        Ok(Called::Now(answered))
    }

    /// Keeps a call with its delivery. When this returns well, it is on the disk.
    async fn keep(&self, call: &Call, id: String, tried: Option<Answered>) -> Result<KeptCall, NotCalled> {
        let (now, fingerprint) = (self.now(), fingerprint(call));
        let Request { method, path, .. } = &call.request;
        let bytes = call.request.body.bytes().map_or(0, bytes::Bytes::len);
        let payload = json!({
            "id": id, "type": KIND, "source": SOURCE, "time": now.to_string(),
            "data": {"service": call.service.as_str(), "method": method, "path": path, "bodyBytes": bytes},
        });
        let wrong = |error: &dyn std::fmt::Display| NotCalled::Store(StoreError::Failed(error.to_string()));
        let event = Arc::new(Event {
            id: id.clone(),
            kind: EventType::new(KIND).map_err(|error| wrong(&error))?,
            source: SOURCE.into(),
            payload: payload.to_string().into_bytes().into(),
            fingerprint,
            accepted: now,
            trace: call.trace.clone(),
            considered: 1,
            filtered: 0,
        });
        let rule = Slug::new(GATEWAY_RULE).map_err(|error| wrong(&error))?;
        let birth = if self.deliver.has_room(&call.service) { Birth::Leased } else { Birth::Queued };
        let delivery = NewDelivery {
            rule: (rule.clone(), 0),
            service: call.service.clone(),
            request: call.request.to_bytes(),
            birth,
            order: None,
        };
        let unit = Unit::of(Change::AddEvent(event.clone(), vec![delivery]));
        let (deliveries, deduplicated) = match self.store.commit(Urgency::Ingest, unit).await {
            Ok(committed) => {
                let begun = committed.deliveries.iter().filter(|(_, state)| *state == State::Leased);
                let begun = begun.map(|(id, _)| Begun {
                    id: *id,
                    rule: rule.clone(),
                    rule_version: 0,
                    service: call.service.clone(),
                    request: call.request.clone(),
                    event: event.clone(),
                    ordered: false,
                });
                self.deliver.begin(begun.collect());
                (committed.deliveries.into_iter().map(|(id, _)| id).collect(), false)
            }
            Err(StoreError::EventExists { fingerprint: there, deliveries }) if there == fingerprint => {
                (deliveries, true)
            }
            Err(StoreError::EventExists { .. }) => return Err(NotCalled::OtherContent),
            Err(error) => return Err(NotCalled::Store(error)),
        };
        Ok(KeptCall { event: id, deliveries, deduplicated, tried })
    }

    /// A service, for whoever calls it without the help of the core.
    #[must_use]
    pub fn target(&self, name: &str) -> Option<super::Target> {
        self.deliver.target(name)
    }

    /// Writes down where circuits stand that have moved without a delivery.
    pub async fn observe_circuits(&self) {
        self.deliver.observe_all().await;
    }
}

fn check(call: &Call) -> Result<(), NotCalled> {
    let mut wrong: Vec<(String, String)> =
        call.request.mistakes().into_iter().map(|mistake| (mistake.place, mistake.reason)).collect();
    if call.mode != CallMode::Sync {
        let secret = call.request.headers.iter().filter(|(name, _)| SECRET.contains(&&**name));
        wrong.extend(secret.map(|(name, _)| {
            let reason =
                "a call that may be kept can't carry credentials; give them to the service as its `auth`";
            (format!("headers.{name}"), reason.to_owned())
        }));
    }
    if wrong.is_empty() { Ok(()) } else { Err(NotCalled::Wrong(wrong)) }
}

/// The service is told a key, so that it can do the work once.
fn tell(request: &mut Request, key: Option<&str>) {
    if let Some(key) = key
        && !request.headers.iter().any(|(name, _)| name == KEY_HEADER)
    {
        request.headers.push((KEY_HEADER.into(), key.into()));
    }
}

/// Whether nobody is to blame but the moment.
fn may_be_had_later(answered: &Answered) -> bool {
    match &answered.answer {
        Ok(whole) => matches!(whole.status, 429 | 502..=504),
        Err(error) => {
            let final_word =
                error.last().is_some_and(|last| last.impossible || last.too_large || last.no_memory);
            matches!(error.kind(), Kind::Rejected | Kind::TimedOut) || !final_word
        }
    }
}

/// The id of a call under a key: the same key of somebody else, or for another service, is another call.
fn named(whose: &str, service: &Slug, key: &str) -> String {
    let hash = hash(&[whose.as_bytes(), service.as_str().as_bytes(), key.as_bytes()]);
    let hex: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("call_{hex}")
}

fn fingerprint(call: &Call) -> [u8; 32] {
    let Request { method, path, headers, body } = &call.request;
    let mut headers: Vec<&(String, String)> = headers.iter().collect();
    headers.sort();
    let mut parts = vec![call.service.as_str().as_bytes(), method.as_bytes(), path.as_bytes()];
    parts.push(body.bytes().map_or(&[][..], |body| &body[..]));
    parts.extend(headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
    hash(&parts)
}

/// Each part with its length, so that no two lists of parts are the same bytes.
fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
