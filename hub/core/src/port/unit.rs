//! Units of work: what is changed together.

use std::sync::Arc;

use seawall_dist::deadletter::Attempt;

use crate::domain::alert::{AlertRule, Channel, Incident};
use crate::domain::audit::AuditEntry;
use crate::domain::circuit::Circuit;
use crate::domain::delivery::{DeliveryId, Progress, Reason, State};
use crate::domain::event::Event;
use crate::domain::key::Key;
use crate::domain::operation::{Operation, OperationId};
use crate::domain::retention::Limits;
use crate::domain::rule::Rule;
use crate::domain::service::{Sealed, Service};
use crate::domain::slug::Slug;
use crate::domain::source::Source;
use crate::domain::time::Millis;

use super::store::{Kept, Move, Note, Replay, Steer, WorkStep};

/// Changes that become true together or not at all.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    /// In this order.
    pub changes: Vec<Change>,
}

impl Unit {
    /// One change alone.
    #[must_use]
    pub fn of(change: Change) -> Self {
        Unit { changes: vec![change] }
    }
}

/// One change.
#[derive(Clone, Debug)]
pub enum Change {
    /// A new service, or a new version of one: its version must be one more than what is there.
    PutService(Service),
    /// A service goes, if this is its version.
    DeleteService(Slug, u64),
    /// A new rule, or a new version of one. Versions before it stay readable.
    PutRule(Rule),
    /// A rule goes, if this is its version.
    DeleteRule(Slug, u64),
    /// A new source of webhooks, or a new version of one.
    PutSource(Source),
    /// A source goes, if this is its version.
    DeleteSource(Slug, u64),
    /// A rule of alerts, new or changed.
    PutAlertRule(AlertRule),
    /// A rule of alerts goes, or is again as it came, if this is its version.
    DeleteAlertRule(Slug, u64),
    /// A channel of alerts, new or changed.
    PutChannel(Channel),
    /// A channel of alerts goes, if this is its version.
    DeleteChannel(Slug, u64),
    /// An incident, new or changed.
    PutIncident(Box<Incident>),
    /// A circuit has moved.
    PutCircuit(Circuit),
    /// A key to the API, new or changed.
    PutKey(Key),
    /// Who has changed what.
    Audit(AuditEntry),
    /// The unit happens once under this key: if it has happened before, nothing of it does.
    Once(Once),
    /// An event, with what it leads to.
    AddEvent(Arc<Event>, Vec<NewDelivery>),
    /// The clock has jumped by so many milliseconds: the times of deliveries that have not ended move along, and none of them
    /// lies ahead of `now`. Unless it is `thorough`, only if the newest delivery lies ahead.
    MoveTimes {
        /// By how much.
        by: i64,
        /// What the clock says now.
        now: Millis,
        /// Whether all of them are looked at.
        thorough: bool,
    },
    /// What came of a try.
    Settle(Settlement),
    /// There is no room in hand for these; they wait in the store. What this process does not have is left alone.
    PutBack(Vec<DeliveryId>),
    /// The process has ended in the middle of a step of this one again and again: it is given up, as the settlement says.
    Convict(Settlement),
    /// The process ends in order: what it has in hand is no suspect for that.
    Stopped,
    /// A dead letter is sent again, as a new delivery that is linked to it.
    Replay(Replay),
    /// A dead letter is put somewhere else on the desk.
    Move(Move),
    /// Something about dead letters is written down, or said of a group of them.
    Note(Note),
    /// Work on many dead letters begins. [`Committed::operation`] says which it is.
    Begin(Box<Operation>),
    /// Somebody halts such work, lets it go on, or ends it; or it ends by itself.
    Steer(Steer),
    /// A step of such work: what is done to some dead letters, and how far it is then.
    Step(WorkStep),
    /// Dead letters become findable by their words, up to so many; [`Committed::touched`] says how many it was.
    Index {
        /// So many at most.
        most: u32,
    },
    /// Deliveries that have not ended become dead letters, up to so many.
    Bury {
        /// Whose.
        whose: Whose,
        /// So many at most; [`Committed::touched`] says how many it was.
        most: u32,
        /// When.
        at: Millis,
    },
    /// Deliveries that waited for their rule go on, up to so many.
    Release {
        /// The rule.
        rule: Slug,
        /// So many at most; [`Committed::touched`] says how many it was.
        most: u32,
    },
    /// A secret is sealed anew, if it is still this one; [`Committed::touched`] says whether it is. Nothing else changes.
    Reseal(Reseal),
    /// What is old goes; [`Committed::touched`] says how much of it.
    Prune(Prune),
}

/// A secret that is sealed anew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reseal {
    /// Whose it is.
    pub owner: Owner,
    /// As it is.
    pub was: Sealed,
    /// As it will be.
    pub now: Sealed,
}

/// Who has a secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A service.
    Service(Slug),
    /// A source.
    Source(Slug),
    /// A channel of alerts.
    Channel(Slug),
}

/// What is old, and goes. Each is small, so that the one who writes is never held up for long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Prune {
    /// These events, with all that belongs to them, unless something has come between: a replay, or a newer limit.
    Events {
        /// As [`Store::old_events`](super::store::Store::old_events) has found them.
        numbers: Vec<u64>,
        /// What may go.
        limits: Limits,
    },
    /// Who has changed what, the oldest first.
    Audit {
        /// From before that.
        before: Millis,
        /// So many at most.
        most: u32,
    },
    /// Incidents that are over, and of which nobody has still to be told, the oldest first.
    Incidents {
        /// Resolved before that.
        before: Millis,
        /// So many at most.
        most: u32,
    },
    /// Keys whose time is over.
    Keys {
        /// Now.
        now: Millis,
        /// So many at most.
        most: u32,
    },
    /// Room that is left over in the store, and is more than it will soon need again, in pages.
    Room {
        /// So many at most.
        most: u32,
    },
}

/// A key under which a unit happens once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Once {
    /// What kind of thing it is about, so that keys of different kinds never meet.
    pub scope: &'static str,
    /// As it was sent.
    pub key: String,
    /// Of what was sent.
    pub fingerprint: [u8; 32],
    /// What whoever repeats it is to be told, beside the deliveries that began.
    pub note: String,
    /// Now.
    pub at: Millis,
}

/// Whose deliveries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Whose {
    /// Those to this service.
    Service(Slug),
    /// Those that wait for this rule, which is disabled.
    HeldBy(Slug),
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
    /// How it begins.
    pub birth: Birth,
    /// Those with the same key go out one after the other. One that is not the first of them is born blocked.
    pub order: Option<String>,
}

/// How a delivery begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Birth {
    /// In this process's hand.
    Leased,
    /// In the store: there is no room in hand.
    Queued,
    /// Its rule is disabled.
    Held,
    /// As a dead letter: no request could be made of the event.
    Dead {
        /// What it is called.
        reason: Reason,
        /// Why.
        error: String,
        /// Whether those behind it in its order wait until somebody has dealt with it.
        hold: bool,
    },
}

/// What came of a try, and what follows.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// Of which delivery. Only if this process still has it.
    pub delivery: DeliveryId,
    /// What follows.
    pub next: Following,
    /// Whether others wait behind it in an order.
    pub ordered: bool,
    /// When it was.
    pub at: Millis,
    /// What is remembered of the attempt; nothing, if none took place.
    pub attempt: Option<Attempt>,
    /// What the peer did last, of a delivery that becomes too old while nothing may be sent to it.
    pub cause: Option<String>,
    /// The sends of this delivery, counted from 1.
    pub number: u32,
    /// Whether it replays a dead letter, which then hears of it.
    pub replays: bool,
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
        /// Whether it waits for its peer to come back.
        stalled: bool,
    },
    /// It waits for its rule.
    Held,
    /// It is a dead letter.
    DeadLetter {
        /// Why.
        reason: Reason,
        /// Where it stands at the end.
        progress: Progress,
        /// Whether those behind it in its order wait until somebody has dealt with it.
        hold: bool,
    },
}

/// What a commit has made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Committed {
    /// The deliveries that began, in the order of the unit, and how.
    pub deliveries: Vec<(DeliveryId, State)>,
    /// Deliveries whose turn it is now that others before them have ended. They are this process's.
    pub ready: Vec<Kept>,
    /// How many were buried, released, pruned or indexed, or done in a step.
    pub touched: usize,
    /// The work on many dead letters that has begun.
    pub operation: Option<OperationId>,
}
