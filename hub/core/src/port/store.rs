//! Where everything is kept.
//!
//! # Units of work
//! Whoever changes something puts together a [`Unit`]: a list of changes that become true together or not at all. Services
//! make units, the store commits them, and never begins one by itself. Units that wait at the same time share one commit,
//! and so one wait for the disk; each still succeeds or fails alone.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use seawall_dist::deadletter::Attempt;

use crate::domain::alert::{AlertRule, Channel, Incident};
use crate::domain::audit::AuditEntry;
use crate::domain::circuit::Circuit;
use crate::domain::delivery::{DeliveryId, Progress, Reason, State};
use crate::domain::event::Event;
use crate::domain::key::Key;
use crate::domain::retention::Limits;
use crate::domain::rule::Rule;
use crate::domain::service::Service;
use crate::domain::slug::Slug;
use crate::domain::source::Source;
use crate::domain::time::Millis;
use crate::domain::trace::TraceId;

pub use super::alerts::{Health, IncidentFilter};
pub use super::crash::{Evidence, StepMarks};
pub use super::desk::{Behind, Dead, Desk, Found, Letters, WholeLetter};
pub use super::unit::{
    Birth, Change, Committed, Following, NewDelivery, Once, Owner, Prune, Reseal, Settlement, Unit, Whose,
};
pub use super::work::{Doing, Move, Note, Replay, Steer, Tray, WorkStep};

/// A delivery as it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Its name.
    pub id: DeliveryId,
    /// The event that it is about.
    pub event: String,
    /// Where that comes from.
    pub source: String,
    /// When that was accepted.
    pub event_accepted: Millis,
    /// The trace that it belongs to, if it said so.
    pub trace: Option<TraceId>,
    /// The rule and its version.
    pub rule: (Slug, u64),
    /// To whom.
    pub service: Slug,
    /// Where it stands.
    pub state: State,
    /// Why it was given up, if it was.
    pub reason: Option<Reason>,
    /// When it is due, if it waits.
    pub due: Millis,
    /// What it has cost so far.
    pub progress: Progress,
    /// Those with the same key go out one after the other.
    pub order: Option<String>,
    /// True if it was in hand at a crash, and no outcome has acquitted it since.
    pub suspected: bool,
    /// True if a crash speaks against it: it is worked at alone.
    pub accused: bool,
    /// The dead letter that it replays, if it does.
    pub replay_of: Option<DeliveryId>,
    /// The request as it was rendered. Not in lists.
    pub request: Vec<u8>,
    /// The event, if the request says that its body is that.
    pub payload: Bytes,
}

impl Kept {
    /// Whether it comes behind fresh ones: it was tried before, or somebody replays it.
    #[must_use]
    pub fn is_again(&self) -> bool {
        self.progress.failures > 0 || self.replay_of.is_some()
    }
}

/// A page of something, the newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next one begins, if there may be one.
    pub next: Option<u64>,
}

/// Which page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageAt {
    /// What a page before said is next; the newest, if nothing.
    pub from: Option<u64>,
    /// So many at most.
    pub size: usize,
}

/// Which events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventFilter {
    /// Of this kind, or of a kind that begins so if it ends with `.*`.
    pub kind: Option<crate::domain::event_type::Pattern>,
    /// From one of these; from anywhere, if it is none.
    pub sources: Option<Vec<String>>,
    /// That no rule was for.
    pub unmatched: bool,
}

/// Which deliveries.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeliveryFilter {
    /// Of events from one of these sources; from anywhere, if it is none.
    pub sources: Option<Vec<String>>,
    /// To this service.
    pub service: Option<Slug>,
    /// Of this rule.
    pub rule: Option<Slug>,
    /// About this event.
    pub event: Option<String>,
    /// In one of these states; in any, if there are none.
    pub states: Vec<State>,
    /// Given up for this reason.
    pub reason: Option<Reason>,
}

/// How urgent a unit is. Each has a queue of its own: one that is full answers "busy", and does not hold up the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Urgency {
    /// Events that come in.
    Ingest,
    /// What came of tries.
    Outcomes,
    /// What people change.
    Admin,
    /// What is old goes, when nobody waits.
    Retention,
}

/// Why a unit was not committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreError {
    /// Another version is there than the one that was expected; nothing is there, if it is none.
    Stale {
        /// What is there.
        found: Option<u64>,
    },
    /// There is an event of this id already, with this fingerprint.
    EventExists {
        /// Of what was sent then.
        fingerprint: [u8; 32],
        /// What it led to.
        deliveries: Vec<DeliveryId>,
    },
    /// The unit has happened before, under its key.
    Happened {
        /// Of what was sent then.
        fingerprint: [u8; 32],
        /// What whoever repeats it is to be told.
        note: String,
        /// The deliveries that began then.
        deliveries: Vec<DeliveryId>,
    },
    /// Somebody else has the delivery now, or it has ended.
    NotOurs(DeliveryId),
    /// It is no dead letter, or not any more.
    NotDead(DeliveryId),
    /// The dead letter has been replayed as this, which stands there.
    Replayed(DeliveryId, State),
    /// The dead letter, or the work on many, stands somewhere else, where this can't be done; it says where.
    Elsewhere(&'static str),
    /// Too much waits already.
    Busy,
    /// There is no room on the disk; nothing was changed.
    Full,
    /// Part of what was stored can't be read any more. Nothing but outcomes is written from now on.
    Damaged(String),
    /// It is not known whether it was committed, and nothing will be from now on: the process has to end and look.
    Fatal(String),
    /// Anything else; nothing was changed.
    Failed(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Stale { found: Some(found) } => {
                write!(f, "it has been changed: version {found} is there")
            }
            StoreError::Stale { found: None } => f.write_str("it is not there"),
            StoreError::EventExists { .. } => f.write_str("there is an event of this id already"),
            StoreError::Happened { .. } => f.write_str("it has happened before under this key"),
            StoreError::NotOurs(id) => write!(f, "{id} is in other hands, or has ended"),
            StoreError::NotDead(id) => write!(f, "{id} is no dead letter"),
            StoreError::Replayed(id, _) => write!(f, "it has been replayed as {id}"),
            StoreError::Elsewhere(word) => write!(f, "it is {word}"),
            StoreError::Busy => f.write_str("too much is waiting to be written; try again"),
            StoreError::Full => f.write_str("there is no room on the disk"),
            StoreError::Damaged(reason) => {
                write!(
                    f,
                    "the database is damaged ({reason}); nothing more is accepted; stop the hub and restore a backup"
                )
            }
            StoreError::Fatal(reason) => write!(f, "the store can't be trusted any more: {reason}"),
            StoreError::Failed(reason) => write!(f, "the store failed: {reason}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// What is kept of the registry, all of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Registered {
    /// All services.
    pub services: Vec<Service>,
    /// All rules, as they are today.
    pub rules: Vec<Rule>,
    /// All sources.
    pub sources: Vec<Source>,
    /// All circuits that have ever moved.
    pub circuits: Vec<Circuit>,
    /// All keys to the API.
    pub keys: Vec<Key>,
    /// Those rules of alerts that somebody has written or changed.
    pub alert_rules: Vec<AlertRule>,
    /// All channels of alerts.
    pub channels: Vec<Channel>,
}

/// Where everything is kept.
pub trait Store: Desk + Send + Sync + 'static {
    /// Commits a unit, together with others that wait.
    fn commit(
        &self,
        urgency: Urgency,
        unit: Unit,
    ) -> impl Future<Output = Result<Committed, StoreError>> + Send;

    /// Commits several units, each for itself, in as few commits as can be. The answers are in the same order.
    fn commit_all(
        &self,
        urgency: Urgency,
        units: Vec<Unit>,
    ) -> impl Future<Output = Vec<Result<Committed, StoreError>>> + Send;

    /// What is registered.
    fn registered(&self) -> impl Future<Output = Result<Registered, StoreError>> + Send;

    /// Every version of a rule, the newest first.
    fn rule_versions(&self, name: &Slug) -> impl Future<Output = Result<Vec<Rule>, StoreError>> + Send;

    /// What a circuit went through, the newest first, up to so many.
    fn circuit_history(
        &self,
        service: &Slug,
        most: usize,
    ) -> impl Future<Output = Result<Vec<Circuit>, StoreError>> + Send;

    /// An event. Ids are unique for a source; without one, the newest of this id.
    fn event(
        &self,
        id: &str,
        source: Option<&str>,
    ) -> impl Future<Output = Result<Option<Event>, StoreError>> + Send;

    /// Events.
    fn events(
        &self,
        filter: EventFilter,
        page: PageAt,
    ) -> impl Future<Output = Result<Page<Event>, StoreError>> + Send;

    /// A delivery with the tries that were made.
    fn delivery(
        &self,
        id: DeliveryId,
    ) -> impl Future<Output = Result<Option<(Kept, Vec<Attempt>)>, StoreError>> + Send;

    /// Deliveries, without their requests.
    fn deliveries(
        &self,
        filter: DeliveryFilter,
        page: PageAt,
    ) -> impl Future<Output = Result<Page<Kept>, StoreError>> + Send;

    /// Who has changed what.
    fn audit(&self, page: PageAt) -> impl Future<Output = Result<Page<AuditEntry>, StoreError>> + Send;

    /// Incidents that are open, or of which somebody has still to be told.
    fn live_incidents(&self) -> impl Future<Output = Result<Vec<Incident>, StoreError>> + Send;

    /// An incident.
    fn incident(&self, id: &str) -> impl Future<Output = Result<Option<Incident>, StoreError>> + Send;

    /// Incidents.
    fn incidents(
        &self,
        filter: IncidentFilter,
        page: PageAt,
    ) -> impl Future<Output = Result<Page<Incident>, StoreError>> + Send;

    /// How many dead letters each service has got since then. Counts no further than `most` of all.
    fn dead_since(
        &self,
        since: Millis,
        most: u32,
    ) -> impl Future<Output = Result<Vec<(Slug, u32)>, StoreError>> + Send;

    /// How the store is, without asking the disk for anything but its room.
    fn health(&self) -> Health;

    /// How many deliveries to a service have not ended, or wait for a rule. Counts no further than `most`.
    fn pending(&self, whose: Whose, most: u32) -> impl Future<Output = Result<u32, StoreError>> + Send;

    /// How much there is of these services. Counts no further than `most` of anything, so that it never takes long.
    fn census(
        &self,
        services: Vec<Slug>,
        most: u32,
    ) -> impl Future<Output = Result<Census, StoreError>> + Send;

    /// Takes deliveries that are due, the longest due first: of each service up to so many. They are this process's from now
    /// on. What a process that is gone had in hand is due at once.
    fn take_due(
        &self,
        now: Millis,
        room: Vec<Room>,
    ) -> impl Future<Output = Result<Vec<Kept>, StoreError>> + Send;

    /// Where the steps of suspects are marked.
    fn step_marks(&self) -> Arc<dyn StepMarks>;

    /// Those against whom the last crash was the proof, with what is known against them.
    fn convicts(&self) -> impl Future<Output = Result<Vec<(Kept, Evidence)>, StoreError>> + Send;

    /// When the next delivery of each service is due, for those that have one.
    fn next_due(&self) -> impl Future<Output = Result<Vec<Due>, StoreError>> + Send;

    /// Events that may go, the oldest first. Looks at a bounded number of them, from behind this one on.
    fn old_events(
        &self,
        limits: Limits,
        behind: u64,
    ) -> impl Future<Output = Result<OldEvents, StoreError>> + Send;
}

/// Events that may go.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OldEvents {
    /// Their numbers, and how many bytes each is.
    pub found: Vec<(u64, u64)>,
    /// Where to look on, if there may be more.
    pub next: Option<u64>,
}

/// How much there is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Census {
    /// How many deliveries of each service wait in the store: for their time, their turn or their rule.
    pub waiting: Vec<(Slug, u32)>,
    /// How many dead letters of each service are open.
    pub dead_letters: Vec<(Slug, u64)>,
}

/// When the next deliveries of a service are due.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Due {
    /// Of which service.
    pub service: Slug,
    /// The next one that was never tried.
    pub fresh: Option<Millis>,
    /// The next one that was.
    pub again: Option<Millis>,
}

/// Room for deliveries of a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Room {
    /// Of which service.
    pub service: Slug,
    /// For how many that were never tried.
    pub fresh: usize,
    /// For how many that were.
    pub again: usize,
    /// Its circuit closed then: what has stalled before that is due, whatever its time.
    pub forward: Option<Millis>,
}
