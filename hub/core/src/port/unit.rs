//! Units of work: what is changed together.

use std::sync::Arc;

use seawall_dist::deadletter::Attempt;

use crate::domain::alert::{AlertRule, Channel, Incident};
use crate::domain::audit::AuditEntry;
use crate::domain::circuit::Circuit;
use crate::domain::dead_letter::FailureSummary;
use crate::domain::delivery::{Decision, DeliveryId, DeliveryState, Disposition, InitialState};
use crate::domain::event::Event;
use crate::domain::key::Key;
use crate::domain::operation::{Operation, OperationId};
use crate::domain::retention::Limits;
use crate::domain::rule::Rule;
use crate::domain::service::{SealedSecret, Service};
use crate::domain::slug::Slug;
use crate::domain::source::Source;
use crate::domain::time::Millis;

use super::store::{
    Annotation, LetterMove, OperationStep, OperationTransition, ReplayChange, StoredDelivery,
};

/// Changes that a store applies together or not at all.
#[derive(Clone, Debug, Default)]
pub struct UnitOfWork {
    /// The changes in the order in which they are applied.
    pub changes: Vec<Change>,
}

impl UnitOfWork {
    /// Creates a unit with a single change.
    #[must_use]
    pub fn of(change: Change) -> Self {
        UnitOfWork { changes: vec![change] }
    }
}

/// One change of a unit.
#[derive(Clone, Debug)]
pub enum Change {
    /// Creates or replaces a service. Its version must be one more than the stored one.
    PutService(Service),
    /// Deletes a service, if this is its version.
    DeleteService(Slug, u64),
    /// Creates or replaces a rule. Earlier versions stay readable.
    PutRule(Rule),
    /// Deletes a rule, if this is its version.
    DeleteRule(Slug, u64),
    /// Creates or replaces a source of webhooks.
    PutSource(Source),
    /// Deletes a source, if this is its version.
    DeleteSource(Slug, u64),
    /// Creates or replaces an alert rule.
    PutAlertRule(AlertRule),
    /// Deletes an alert rule or resets a built-in one, if this is its version.
    DeleteAlertRule(Slug, u64),
    /// Creates or replaces a channel of alerts.
    PutChannel(Channel),
    /// Deletes a channel of alerts, if this is its version.
    DeleteChannel(Slug, u64),
    /// Creates or updates an incident.
    PutIncident(Box<Incident>),
    /// Stores the new state of a circuit.
    PutCircuit {
        /// The circuit in its new state.
        circuit: Circuit,
        cause: CircuitCause,
    },
    /// Creates or updates an API key.
    PutKey(Key),
    /// Adds an entry to the audit log.
    Audit(AuditEntry),
    /// Claims an idempotency key. If it was claimed before, the whole unit is refused.
    ClaimKey(IdempotencyRecord),
    /// Inserts an event with its deliveries.
    AddEvent(Arc<Event>, Vec<NewDelivery>),
    /// Shifts the times of deliveries that have not ended, because the clock jumped. None of them is later than `now` afterwards.
    /// Unless it is `thorough`, nothing happens if the newest delivery is not in the future.
    MoveTimes {
        /// The jump in milliseconds.
        by: i64,
        /// The current time of the clock.
        now: Millis,
        /// Whether all deliveries are checked.
        thorough: bool,
    },
    /// Stores the outcome of an attempt.
    Settle(Settlement),
    /// Returns claimed deliveries to the store, because there is no room in memory. Those that are not claimed under the epoch
    /// of their claim stay as they are.
    ReturnToStore(Vec<Claim>),
    /// Records that the process stopped in an orderly way, so that its claimed deliveries are no suspects.
    RecordStop,
    /// Replays a dead letter as a new delivery that is linked to it.
    Replay(ReplayChange),
    /// Applies an action to a dead letter.
    Move(LetterMove),
    /// Writes a note on a dead letter or a group, or sets the state of a group.
    Note(Annotation),
    /// Starts a bulk operation. [`CommitResult::operation`] has its id.
    StartOperation(Box<Operation>),
    /// Pauses, resumes, cancels, stops or completes a bulk operation.
    TransitionOperation(OperationTransition),
    /// Applies a batch of a bulk operation and stores its progress.
    AdvanceOperation(OperationStep),
    /// Adds dead letters to the full-text index; [`CommitResult::touched`] has their number.
    Index {
        /// The maximum number of dead letters.
        limit: u32,
    },
    /// Dead-letters deliveries that have not ended; [`CommitResult::touched`] has their number.
    DeadLetterAll {
        /// The deliveries to dead-letter.
        selector: DeliverySelector,
        /// The maximum number of deliveries.
        limit: u32,
        /// The time of the change.
        at: Millis,
    },
    /// Releases deliveries that a rule holds; [`CommitResult::touched`] has their number.
    ReleaseHeld {
        /// The rule that was enabled.
        rule: Slug,
        /// The maximum number of deliveries.
        limit: u32,
    },
    /// Encrypts a secret with another key, if it was not changed meanwhile; [`CommitResult::touched`] says whether that is so.
    Reseal(SecretRotation),
    /// Deletes old rows; [`CommitResult::touched`] has their number.
    Prune(PruneTarget),
}

/// The cause of a change of a circuit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CircuitCause {
    /// An operator gave a command.
    Command,
    /// The circuit breaker changed its state by itself.
    Breaker,
}

/// A secret that is encrypted with another key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecretRotation {
    /// The record that the secret belongs to.
    pub owner: SecretOwner,
    /// The stored value, which must be unchanged.
    pub was: SealedSecret,
    /// The new value of the secret.
    pub now: SealedSecret,
}

/// The record that a secret belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SecretOwner {
    /// The credentials of a service.
    Service(Slug),
    /// The secret of a source.
    Source(Slug),
    /// The settings of a channel.
    Channel(Slug),
}

/// A kind of old rows to delete. Each is small, so that the writer is never blocked for long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PruneTarget {
    /// Events with all their rows, unless a replay or another retention has come between.
    Events {
        /// The row numbers from [`old_events`](super::store::RetentionReads::old_events).
        numbers: Vec<u64>,
        /// The current limits of the retention.
        limits: Limits,
    },
    /// Entries of the audit log, the oldest first.
    Audit {
        /// The time before which entries are deleted.
        before: Millis,
        /// The maximum number of entries.
        limit: u32,
    },
    /// Resolved incidents without pending notices, the oldest first.
    Incidents {
        /// The time before which the incident was resolved.
        before: Millis,
        /// The maximum number of incidents.
        limit: u32,
    },
    /// Expired idempotency keys.
    Keys {
        /// The current time.
        now: Millis,
        /// The maximum number of keys.
        limit: u32,
    },
    /// Free pages of the database file that it will not need again soon.
    Room {
        /// The maximum number of pages.
        limit: u32,
    },
}

/// An idempotency key and what was first done under it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotencyRecord {
    /// The kind of request, so that keys of different kinds never collide.
    pub scope: &'static str,
    /// The key as the caller sent it.
    pub key: String,
    /// The fingerprint of the request.
    pub fingerprint: [u8; 32],
    /// A note that is returned to a caller who repeats the request, beside the deliveries.
    pub note: String,
    /// The time of the claim.
    pub at: Millis,
}

/// The deliveries that a change applies to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeliverySelector {
    /// All deliveries to this service.
    Service(Slug),
    /// The deliveries that this disabled rule holds.
    HeldBy(Slug),
}

/// A delivery that a unit inserts.
#[derive(Clone, Debug)]
pub struct NewDelivery {
    /// The name and the version of the rule.
    pub rule: (Slug, u64),
    /// The service that receives the request.
    pub service: Slug,
    /// The rendered request, encoded by the dispatcher.
    pub request: Vec<u8>,
    /// The state in which it is inserted.
    pub initial: InitialState,
    /// The ordering key. A delivery that is not the first of its key is inserted as blocked.
    pub order: Option<String>,
}

/// A delivery that a process has claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    pub delivery: DeliveryId,
    /// The epoch under which the delivery was claimed.
    pub epoch: u64,
}

/// The decision on a delivery, to be stored.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// The claimed delivery. The settlement is refused if the delivery is no longer claimed under this epoch.
    pub claim: Claim,
    pub decision: Decision,
    /// The attempt to record; `None` if none took place.
    pub attempt: Option<Attempt>,
    /// The failure of a dead letter. If no attempt took place, the last recorded attempt has precedence.
    pub failure: Option<FailureSummary>,
    /// The time of the decision.
    pub at: Millis,
    /// Whether others wait behind it in its order.
    pub ordered: bool,
    /// Whether it replays a dead letter, whose state then changes too.
    pub is_replay: bool,
}

impl Settlement {
    /// Returns when the delivery changed: a delivered one at its attempt.
    #[must_use]
    pub fn touched(&self) -> Millis {
        match (&self.attempt, self.decision.disposition) {
            (Some(attempt), Disposition::Delivered) => attempt.at,
            _ => self.at,
        }
    }
}

/// What a commit has created and released.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CommitResult {
    /// The inserted deliveries in the order of the unit, with their states.
    pub deliveries: Vec<(DeliveryId, DeliveryState)>,
    /// The epoch under which the inserted deliveries are claimed that are leased.
    pub epoch: u64,
    /// Deliveries whose turn has come in their order. They are claimed by this process.
    pub ready: Vec<StoredDelivery>,
    /// The number of rows that were dead-lettered, released, pruned, indexed or changed by a bulk operation.
    pub touched: usize,
    /// The id of the bulk operation that was started.
    pub operation: Option<OperationId>,
}
