//! Accepting an event: matched, rendered, and written with all that it leads to in one commit; only then is anybody told.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::rulebook::{Matched, Rulebook, Tally};
use crate::domain::delivery::DeliveryId;
use crate::domain::event::{EVENT_ID_MAX, Event};
use crate::domain::event_type::EventType;
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::store::{Change, NewDelivery, Store, StoreError, Unit, Urgency};
use crate::render::{Request, View};

/// Accepts events.
#[derive(Debug)]
pub struct Accept<S> {
    store: S,
    rules: RwLock<Arc<Rulebook>>,
}

/// An event as it came in.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// What the sender calls it.
    pub id: String,
    /// Its kind.
    pub kind: EventType,
    /// Where it comes from.
    pub source: String,
    /// When it happened, as the sender says.
    pub time: String,
    /// What it is about.
    pub data: Json,
    /// The trace that it belongs to.
    pub trace: Option<String>,
}

/// An event that is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// What it led to.
    pub deliveries: Vec<DeliveryId>,
    /// Whether it was there before, with the same content.
    pub deduplicated: bool,
    /// What is to be sent now, if it is new: by which rule, to whom, what.
    pub begun: Vec<(DeliveryId, Slug, Slug, Request)>,
    /// How many rules said what.
    pub tally: Tally,
}

/// Why an event is not kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotAccepted {
    /// Its id can't be one.
    BadId(&'static str),
    /// There is one of this id with another content.
    OtherContent,
    /// The store did not take it.
    Store(StoreError),
}

impl<S: Store> Accept<S> {
    /// Accepts events into this store, by these rules.
    pub fn new(store: S, rules: Rulebook) -> Self {
        Accept { store, rules: RwLock::new(Arc::new(rules)) }
    }

    /// From now on by these rules.
    pub fn change_rules(&self, rules: Rulebook) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// Keeps an event with all that it leads to. When this returns well, it is on the disk.
    pub async fn accept(&self, incoming: Incoming, now: Millis) -> Result<Accepted, NotAccepted> {
        check_id(&incoming.id)?;
        let Incoming { id, kind, source, time, data, trace } = incoming;
        let view = View::new(&id, kind.as_str(), &source, &time, &data);
        let whole = serde_json::json!({"id": id, "type": kind.as_str(), "source": source, "time": time, "data": data});
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Matched { requests, tally, unrendered } = rules.apply(kind.as_str(), &view, &whole);
        let fingerprint = fingerprint(&kind, &source, &data);
        let payload = whole.to_string().into_bytes();
        let event = Arc::new(Event { id, kind, source, payload, fingerprint, accepted: now, trace });
        let mut deliveries = Vec::with_capacity(requests.len() + unrendered.len());
        for (rule, version, service, request) in &requests {
            deliveries.push(NewDelivery {
                rule: (rule.clone(), *version),
                service: service.clone(),
                request: request.to_bytes(),
                stillborn: None,
            });
        }
        // What can't be rendered can't be sent, now or later: it is a dead letter with its reason, and not nothing.
        for (rule, version, service, mistake) in unrendered {
            deliveries.push(NewDelivery {
                rule: (rule, version),
                service,
                request: Vec::new(),
                stillborn: Some(mistake.to_string()),
            });
        }
        let change = Change::AddEvent(event, deliveries);
        match self.store.commit(Urgency::Ingest, Unit { changes: vec![change] }).await {
            Ok(committed) => {
                let begun = committed.deliveries.iter().zip(requests);
                let begun = begun.map(|(id, (rule, _, service, request))| (*id, rule, service, request));
                Ok(Accepted {
                    begun: begun.collect(),
                    deliveries: committed.deliveries,
                    deduplicated: false,
                    tally,
                })
            }
            Err(StoreError::EventExists { fingerprint: there, deliveries }) if there == fingerprint => {
                Ok(Accepted { deliveries, deduplicated: true, begun: Vec::new(), tally: Tally::default() })
            }
            Err(StoreError::EventExists { .. }) => Err(NotAccepted::OtherContent),
            Err(error) => Err(NotAccepted::Store(error)),
        }
    }
}

fn check_id(id: &str) -> Result<(), NotAccepted> {
    if id.is_empty() {
        return Err(NotAccepted::BadId("it is empty"));
    }
    if id.len() > EVENT_ID_MAX {
        return Err(NotAccepted::BadId("it is longer than 200 characters"));
    }
    if !id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(NotAccepted::BadId("it may hold visible ASCII characters only"));
    }
    Ok(())
}

/// Of what was sent, but for when: the same event sent again has the same.
fn fingerprint(kind: &EventType, source: &str, data: &Json) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [kind.as_str(), source] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.update(data.to_string());
    hash.finalize().into()
}

impl fmt::Display for NotAccepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAccepted::BadId(reason) => write!(f, "the event's id can't be one: {reason}"),
            NotAccepted::OtherContent => f.write_str("there is an event of this id with another content"),
            NotAccepted::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotAccepted {}
