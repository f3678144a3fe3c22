//! Accepting an event: matched, rendered, and written with all that it leads to in one commit; only then is anybody told.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use seawall::Clock;
use serde_json::Value as Json;

use super::content::{fingerprint, payload, says_the_same};
use super::render_pool::{NotRendered, QUICK_BYTES_MAX, QUICK_WORK_MAX, RenderPool};
use super::rulebook::{Looked, Made, Matched, Rulebook, Tally};
use crate::domain::delivery::{DeliveryId, State};
use crate::domain::event::{EVENT_ID_MAX, Event};
use crate::domain::event_type::EventType;
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::store::{Birth, Change, Committed, NewDelivery, Once, Store, StoreError, Unit, Urgency};
use crate::render::{Request, Said, Tree, View};

/// The number of events after which others have a turn.
const TURN: usize = 8;

/// Accepts events.
#[derive(Debug)]
pub struct Accept<S> {
    store: S,
    rules: Arc<Rulebook>,
    /// Where rules are applied that take long.
    pool: RenderPool,
    /// Where to look how long the rules take, if anybody wants to know.
    timed: Option<Clock>,
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
    pub time: Option<String>,
    /// What of the source it is about.
    pub subject: Option<String>,
    /// Anything else that the sender said about it.
    pub extensions: Vec<(String, Json)>,
    /// What it is about.
    pub data: Data,
    /// The trace that it belongs to.
    pub trace: Option<String>,
    /// Whoever sends it again under this key means the same.
    pub key: Option<String>,
}

/// What an event is about: JSON, as a text. It is taken apart only if a rule wants to look into it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data(String);

impl Data {
    /// A text that is known to be JSON.
    #[must_use]
    pub fn of_text(text: String) -> Self {
        Data(text)
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&Json> for Data {
    fn from(value: &Json) -> Self {
        Data(value.to_string())
    }
}

/// An event that is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// Its id: that of the first, if it was there before under the same key.
    pub id: String,
    /// What it led to.
    pub deliveries: Vec<DeliveryId>,
    /// Whether it was there before, with the same content.
    pub deduplicated: bool,
    /// What is to be sent now, if it is new.
    pub begun: Vec<Begun>,
    /// How many rules said what.
    pub tally: Tally,
    /// How many deliveries are held, because their rule is disabled.
    pub held: u32,
    /// How the rules looked at it, if it is new and somebody wants to know.
    pub looked: Option<Looked>,
}

/// A delivery that begins, in this process's hand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Begun {
    /// Its name.
    pub id: DeliveryId,
    /// The rule.
    pub rule: Slug,
    /// And its version.
    pub rule_version: u64,
    /// To whom.
    pub service: Slug,
    /// What is sent.
    pub request: Request,
    /// The event that it is about.
    pub event: Arc<Event>,
    /// Whether others wait behind it.
    pub ordered: bool,
}

/// Why an event is not kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotAccepted {
    /// Its id can't be one.
    BadId(&'static str),
    /// There is one of this id with another content, or the key was used for another one.
    OtherContent,
    /// The store did not take it.
    Store(StoreError),
}

/// An event that is matched and rendered, before it is kept.
struct Prepared {
    event: Arc<Event>,
    made: Vec<Made>,
    tally: Tally,
    looked: Option<Looked>,
}

impl<S: Store> Accept<S> {
    /// Accepts events into this store, by these rules.
    pub fn new(store: S, rules: Rulebook) -> Self {
        Accept { store, rules: Arc::new(rules), pool: RenderPool::for_events(), timed: None }
    }

    /// Where renderings go that take long.
    pub fn pool(&self) -> &RenderPool {
        &self.pool
    }

    /// From now on says how long the rules take.
    pub fn time_rules(&mut self, clock: Clock) {
        self.timed = Some(clock);
    }

    /// The rules that it goes by.
    pub fn rules(&self) -> &Arc<Rulebook> {
        &self.rules
    }

    /// Keeps an event with all that it leads to. When this returns well, it is on the disk. `has_room` says whether there is
    /// room in hand for a delivery to a service; if not, it begins in the store.
    pub async fn accept(
        &self,
        incoming: Incoming,
        now: Millis,
        has_room: impl Fn(&Slug) -> bool,
    ) -> Result<Accepted, NotAccepted> {
        let (prepared, unit) = self.prepare(incoming, now, &has_room).await?;
        let committed = self.store.commit(Urgency::Ingest, unit).await;
        self.judge(prepared, committed).await
    }

    /// Keeps several events, each for itself, in as few commits as can be.
    pub async fn accept_all(
        &self,
        incoming: Vec<Incoming>,
        now: Millis,
        has_room: impl Fn(&Slug) -> bool,
    ) -> Vec<Result<Accepted, NotAccepted>> {
        let mut prepared: Vec<Result<(Prepared, Unit), NotAccepted>> = Vec::with_capacity(incoming.len());
        for (at, event) in incoming.into_iter().enumerate() {
            prepared.push(self.prepare(event, now, &has_room).await);
            // Each of them is quick, and many of them together are not.
            if at % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
        let (mut units, mut kept) = (Vec::new(), Vec::with_capacity(prepared.len()));
        for prepared in prepared {
            kept.push(prepared.map(|(prepared, unit)| {
                units.push(unit);
                prepared
            }));
        }
        let mut committed = self.store.commit_all(Urgency::Ingest, units).await.into_iter();
        let missing = || Err(StoreError::Failed("the store said nothing of it".into()));
        let mut answers = Vec::with_capacity(kept.len());
        for prepared in kept {
            answers.push(match prepared {
                Ok(prepared) => self.judge(prepared, committed.next().unwrap_or_else(missing)).await,
                Err(error) => Err(error),
            });
        }
        answers
    }

    async fn prepare(
        &self,
        incoming: Incoming,
        now: Millis,
        has_room: impl Fn(&Slug) -> bool,
    ) -> Result<(Prepared, Unit), NotAccepted> {
        check_id(&incoming.id)?;
        let time = incoming.time.clone().unwrap_or_else(|| now.to_string());
        let payload = payload(&incoming, &time);
        let fingerprint = fingerprint(&incoming);
        let began = self.timed.as_ref().map(|clock| (clock.wall(), clock));
        let (incoming, Matched { made, tally }) = self.matched(incoming, time, &payload).await?;
        let looked = began.map(|(began, clock)| Looked::since(began, clock, &made));
        let deliveries = made.iter().map(|made| new_delivery(made, &has_room)).collect();
        let Incoming { id, kind, source, trace, key, .. } = incoming;
        let Tally { considered, filtered, .. } = tally;
        let event =
            Event { id, kind, source, payload, fingerprint, accepted: now, trace, considered, filtered };
        let event = Arc::new(event);
        let once = key.map(|key| {
            Change::Once(Once { scope: "events", key, fingerprint, note: event.id.clone(), at: now })
        });
        let changes = once.into_iter().chain([Change::AddEvent(event.clone(), deliveries)]).collect();
        Ok((Prepared { event, made, tally, looked }, Unit { changes }))
    }
}

impl<S: Store> Accept<S> {
    /// What the rules make of it: here if that is quick, and else on a thread that may be held up.
    async fn matched(
        &self,
        incoming: Incoming,
        time: String,
        payload: &Bytes,
    ) -> Result<(Incoming, Matched), NotAccepted> {
        let rules = self.rules();
        if payload.len() <= QUICK_BYTES_MAX {
            let view = || view(&incoming, &time);
            let matched = rules.apply_quickly(incoming.kind.as_str(), view, payload, QUICK_WORK_MAX);
            if let Some(matched) = matched {
                return Ok((incoming, matched));
            }
        }
        let (rules, payload) = (rules.clone(), payload.clone());
        let apply = move || {
            let matched = rules.apply(incoming.kind.as_str(), || view(&incoming, &time), &payload);
            (incoming, matched)
        };
        self.pool.run(apply).await.map_err(|failed| match failed {
            NotRendered::Busy | NotRendered::Stopping => NotAccepted::Store(StoreError::Busy),
        })
    }

    /// What the store's answer means.
    async fn judge(
        &self,
        prepared: Prepared,
        committed: Result<Committed, StoreError>,
    ) -> Result<Accepted, NotAccepted> {
        let Prepared { event, made, tally, looked } = prepared;
        match committed {
            Ok(Committed { deliveries, .. }) => {
                let held = deliveries.iter().filter(|(_, state)| *state == State::Held).count();
                let begun = deliveries.iter().zip(made).filter_map(|(&(id, state), made)| {
                    super::watch::made(id, &made, &event);
                    let request = made.request.ok().filter(|_| state == State::Leased)?;
                    let ((rule, rule_version), service, ordered) =
                        (made.rule, made.service, made.order.is_some());
                    Some(Begun { id, rule, rule_version, service, request, event: event.clone(), ordered })
                });
                Ok(Accepted {
                    begun: begun.collect(),
                    id: event.id.clone(),
                    deliveries: deliveries.into_iter().map(|(id, _)| id).collect(),
                    deduplicated: false,
                    tally,
                    held: u32::try_from(held).unwrap_or(u32::MAX),
                    looked,
                })
            }
            Err(StoreError::EventExists { fingerprint: there, deliveries }) => {
                let id = event.id.clone();
                self.repeated(&event, there, id, deliveries).await
            }
            Err(StoreError::Happened { fingerprint: there, note, deliveries }) => {
                self.repeated(&event, there, note, deliveries).await
            }
            Err(error) => Err(NotAccepted::Store(error)),
        }
    }
}

impl<S: Store> Accept<S> {
    /// An event that was there before: answered as the first time, if it says the same.
    async fn repeated(
        &self,
        event: &Event,
        fingerprint: [u8; 32],
        id: String,
        deliveries: Vec<DeliveryId>,
    ) -> Result<Accepted, NotAccepted> {
        let kept = self.store.event(&id, Some(&event.source)).await.map_err(NotAccepted::Store)?;
        let Some(kept) = kept else { return Err(NotAccepted::OtherContent) };
        if fingerprint != event.fingerprint && !says_the_same(event, &kept) {
            return Err(NotAccepted::OtherContent);
        }
        let Event { considered, filtered, .. } = kept;
        let tally = Tally { considered, filtered, unclear: 0 };
        Ok(Accepted { id, deliveries, deduplicated: true, begun: Vec::new(), tally, held: 0, looked: None })
    }
}

fn view<'a>(incoming: &'a Incoming, time: &'a str) -> View<'a> {
    View::new(Said {
        id: &incoming.id,
        kind: incoming.kind.as_str(),
        source: &incoming.source,
        time,
        subject: incoming.subject.as_deref(),
        extensions: &incoming.extensions,
        data: Tree::parse(incoming.data.as_str()),
    })
}

/// An event as it would be kept, for whoever only wants to see what becomes of it.
#[must_use]
pub fn sample_event(incoming: &Incoming, now: Millis) -> Event {
    let time = incoming.time.clone().unwrap_or_else(|| now.to_string());
    Event {
        id: incoming.id.clone(),
        kind: incoming.kind.clone(),
        source: incoming.source.clone(),
        payload: payload(incoming, &time),
        fingerprint: fingerprint(incoming),
        accepted: now,
        trace: incoming.trace.clone(),
        considered: 0,
        filtered: 0,
    }
}

/// What can't be rendered can't be sent, now or later: it is a dead letter with its reason, and not nothing.
fn new_delivery(made: &Made, has_room: impl Fn(&Slug) -> bool) -> NewDelivery {
    let (request, birth) = match &made.request {
        Err(mistake) => {
            let (reason, error) = (made.reason(), mistake.to_string());
            (Vec::new(), Birth::Dead { reason, error, hold: made.hold })
        }
        Ok(request) if !made.enabled => (request.to_bytes(), Birth::Held),
        Ok(request) if has_room(&made.service) => (request.to_bytes(), Birth::Leased),
        Ok(request) => (request.to_bytes(), Birth::Queued),
    };
    NewDelivery {
        rule: made.rule.clone(),
        service: made.service.clone(),
        request,
        birth,
        order: made.order.clone(),
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

impl fmt::Display for NotAccepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAccepted::BadId(reason) => write!(f, "the event's id can't be one: {reason}"),
            NotAccepted::OtherContent => {
                f.write_str("there is an event of this id, or under this key, with another content")
            }
            NotAccepted::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotAccepted {}
