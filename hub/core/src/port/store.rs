//! Where everything is kept.
//!
//! # Units of work
//! Whoever changes something puts together a [`Unit`]: a list of changes that become true together or not at all. Services
//! make units, the store commits them, and never begins one by itself. Units that wait at the same time share one commit,
//! and so one wait for the disk; each still succeeds or fails alone.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use crate::domain::delivery::{DeliveryId, Progress, Reason, State};
use crate::domain::event::Event;
use crate::domain::rule::Rule;
use crate::domain::service::Service;
use crate::domain::slug::Slug;
use crate::domain::time::Millis;

/// Changes that become true together or not at all.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    /// In this order.
    pub changes: Vec<Change>,
}

/// One change.
#[derive(Clone, Debug)]
pub enum Change {
    /// A new service, or a new version of one: its version must be one more than what is there.
    PutService(Service),
    /// A service goes.
    DeleteService(Slug),
    /// A new rule, or a new version of one.
    PutRule(Rule),
    /// A rule goes.
    DeleteRule(Slug),
    /// An event, with what it leads to. Its deliveries are born leased to this process.
    AddEvent(Arc<Event>, Vec<NewDelivery>),
    /// What came of a try.
    Settle(Settlement),
}

/// A delivery that begins.
#[derive(Clone, Debug)]
pub struct NewDelivery {
    /// The rule that asks for it, and its version.
    pub rule: (Slug, u64),
    /// To whom.
    pub service: Slug,
    /// The request as it was rendered, in bytes of the sender's own making.
    pub request: Vec<u8>,
    /// Why it is a dead letter from the beginning, if it is: no request could be made of the event.
    pub stillborn: Option<String>,
}

/// What came of a try, and what follows.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// Of which delivery. Only if this process still has it.
    pub delivery: DeliveryId,
    /// What follows.
    pub next: Following,
    /// What is remembered of the try, if it was one.
    pub attempt: Option<AttemptRecord>,
}

/// What follows a try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Following {
    /// It is delivered.
    Delivered,
    /// It waits.
    Waits {
        /// Until.
        until: Millis,
        /// Where it stands.
        progress: Progress,
    },
    /// It is a dead letter.
    DeadLetter(Reason),
}

/// What is remembered of a try.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptRecord {
    /// When it began.
    pub at: Millis,
    /// How long it took, in microseconds.
    pub took_micros: u64,
    /// The status, if there was an answer.
    pub status: Option<u16>,
    /// What went wrong, in words.
    pub error: Option<String>,
    /// The beginning of the answer.
    pub answer: Vec<u8>,
}

/// What a commit has made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Committed {
    /// The deliveries that began, in the order of the unit.
    pub deliveries: Vec<DeliveryId>,
}

/// A delivery as it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Its name.
    pub id: DeliveryId,
    /// The event that it is about.
    pub event: String,
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
    /// The request as it was rendered.
    pub request: Vec<u8>,
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
    /// Somebody else has the delivery now, or it has ended.
    NotOurs(DeliveryId),
    /// Too much waits already.
    Busy,
    /// There is no room on the disk; nothing was changed.
    Full,
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
            StoreError::NotOurs(id) => write!(f, "{id} is in other hands, or has ended"),
            StoreError::Busy => f.write_str("too much is waiting to be written; try again"),
            StoreError::Full => f.write_str("there is no room on the disk"),
            StoreError::Fatal(reason) => write!(f, "the store can't be trusted any more: {reason}"),
            StoreError::Failed(reason) => write!(f, "the store failed: {reason}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// Where everything is kept.
pub trait Store: Send + Sync + 'static {
    /// Commits a unit, together with others that wait.
    fn commit(
        &self,
        urgency: Urgency,
        unit: Unit,
    ) -> impl Future<Output = Result<Committed, StoreError>> + Send;

    /// All services.
    fn services(&self) -> impl Future<Output = Result<Vec<Service>, StoreError>> + Send;

    /// All rules.
    fn rules(&self) -> impl Future<Output = Result<Vec<Rule>, StoreError>> + Send;

    /// An event.
    fn event(&self, id: &str) -> impl Future<Output = Result<Option<Event>, StoreError>> + Send;

    /// A delivery with the tries that were made.
    fn delivery(
        &self,
        id: DeliveryId,
    ) -> impl Future<Output = Result<Option<(Kept, Vec<AttemptRecord>)>, StoreError>> + Send;

    /// Takes deliveries that are due, the longest due first: of each service up to so many. They are this process's from now
    /// on. What a process that is gone had in hand is due at once.
    fn take_due(
        &self,
        now: Millis,
        room: Vec<Room>,
    ) -> impl Future<Output = Result<Vec<Kept>, StoreError>> + Send;

    /// When the next delivery of each service is due, for those that have one.
    fn next_due(&self) -> impl Future<Output = Result<Vec<(Slug, Millis)>, StoreError>> + Send;
}

/// Room for deliveries of a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Room {
    /// Of which service.
    pub service: Slug,
    /// For how many.
    pub most: usize,
}
