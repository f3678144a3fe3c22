//! Units of the usual shapes, many at once in few statements.
//!
//! # Why no savepoints?
//! A unit that is refused changes nothing in these statements, so nothing has to be taken back: what a statement returns says which
//! units it has applied, and the next statement finds out why the others were not.

mod events;
mod keys;
mod outcomes;

use seawall_hub_core::domain::delivery::{DeliveryId, Disposition, InitialState};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::port::store::{
    Change, Claim, CommitResult, IdempotencyRecord, NewDelivery, Settlement, StoreError, UnitOfWork,
};

use super::applier::{ApplyError, NodeId, UnitApplier};
use crate::postgres::engine::session::Session;

/// What a unit of work looks like to the writer. Units of the same shape that is not [`UnitShape::Single`] are applied together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::postgres) enum UnitShape {
    /// It is a transaction of its own.
    Single,
    /// One new event, whose deliveries need no look at another row.
    Event,
    /// The same under an idempotency key.
    KeyedEvent,
    /// One outcome of a delivery without an order that is neither a dead letter nor a replay.
    Outcome,
    /// Claimed deliveries that are given back.
    Return,
}

/// The result of one unit of a batch.
type UnitResult = Result<CommitResult, StoreError>;

/// A new event with its deliveries.
#[derive(Clone, Copy)]
struct NewEvent<'u> {
    event: &'u Event,
    deliveries: &'u [NewDelivery],
}

/// Returns how a unit is applied.
pub(in crate::postgres) fn shape(unit: &UnitOfWork) -> UnitShape {
    match &unit.changes[..] {
        [Change::AddEvent(_, deliveries)] if deliveries.iter().all(is_plain) => UnitShape::Event,
        [Change::ClaimKey(_), Change::AddEvent(_, deliveries)] if deliveries.iter().all(is_plain) => {
            UnitShape::KeyedEvent
        }
        [Change::Settle(settlement)] if is_usual(settlement) => UnitShape::Outcome,
        [Change::ReturnToStore(_)] => UnitShape::Return,
        _ => UnitShape::Single,
    }
}

/// Whether a new delivery needs no look at another row.
fn is_plain(new: &NewDelivery) -> bool {
    new.order.is_none() && matches!(new.initial, InitialState::Leased | InitialState::Queued)
}

/// Whether a settlement changes nothing but its delivery and its attempts.
fn is_usual(settlement: &Settlement) -> bool {
    let is_alone = !settlement.ordered && !settlement.is_replay;
    is_alone
        && match settlement.decision.disposition {
            Disposition::Delivered | Disposition::Retry { .. } | Disposition::Defer { .. } => true,
            Disposition::Hold => settlement.attempt.is_none(),
            Disposition::DeadLetter { .. } => false,
        }
}

/// Applies units of one shape within the transaction of the session, and returns a result for each, in their order. A refusal of
/// one says nothing about the others; an error means that nothing was applied.
pub(in crate::postgres) async fn apply_batch(
    session: &Session,
    node: NodeId,
    shape: UnitShape,
    units: &[&UnitOfWork],
) -> Result<Vec<UnitResult>, ApplyError> {
    let batch = Batch { session, node };
    let changes = units.iter().map(|unit| &unit.changes[..]);
    let results = match shape {
        UnitShape::Event => {
            batch
                .add_events(&changes.filter_map(|changes| new_event(changes.first()?)).collect::<Vec<_>>())
                .await?
        }
        UnitShape::KeyedEvent => {
            batch.add_keyed_events(&changes.filter_map(keyed).collect::<Vec<_>>()).await?
        }
        UnitShape::Outcome => batch.settle(&changes.filter_map(settlement).collect::<Vec<_>>()).await?,
        UnitShape::Return => {
            let claims: Vec<Claim> = changes.filter_map(returned).flatten().copied().collect();
            UnitApplier::new(session, node).return_to_store(&claims).await?;
            units.iter().map(|_| Ok(batch.result())).collect()
        }
        UnitShape::Single => Vec::new(),
    };
    if results.len() == units.len() {
        Ok(results)
    } else {
        Err(StoreError::Failed("a unit is in a batch of another shape".into()).into())
    }
}

fn new_event(change: &Change) -> Option<NewEvent<'_>> {
    match change {
        Change::AddEvent(event, deliveries) => Some(NewEvent { event, deliveries }),
        _ => None,
    }
}

fn keyed(changes: &[Change]) -> Option<(&IdempotencyRecord, NewEvent<'_>)> {
    match changes {
        [Change::ClaimKey(record), event] => Some((record, new_event(event)?)),
        _ => None,
    }
}

fn settlement(changes: &[Change]) -> Option<&Settlement> {
    match changes {
        [Change::Settle(settlement)] => Some(settlement),
        _ => None,
    }
}

fn returned(changes: &[Change]) -> Option<&[Claim]> {
    match changes {
        [Change::ReturnToStore(claims)] => Some(claims),
        _ => None,
    }
}

/// Applies units within the transaction of a session.
struct Batch<'s> {
    session: &'s Session,
    node: NodeId,
}

impl Batch<'_> {
    /// Returns the result of a unit that has created nothing.
    fn result(&self) -> CommitResult {
        CommitResult { epoch: self.node.epoch, ..CommitResult::default() }
    }

    /// Returns the id of a delivery that this node inserts.
    fn id(&self, number: i64) -> DeliveryId {
        DeliveryId::new(self.node.era, number.cast_unsigned())
    }
}

/// Returns the units that have no result yet, by their places.
fn pending(results: &[Option<UnitResult>]) -> Vec<usize> {
    let places = results.iter().enumerate();
    places.filter(|(_, result)| result.is_none()).map(|(place, _)| place).collect()
}

/// Returns the results, with a failure for each unit whose rows others insert and delete all the time.
fn finished(results: Vec<Option<UnitResult>>) -> Vec<UnitResult> {
    let failed = || Err(StoreError::Failed("its row is inserted and deleted all the time".into()));
    results.into_iter().map(|result| result.unwrap_or_else(failed)).collect()
}

/// How often units are applied whose rows are in the way and then gone.
const ROUNDS_MAX: usize = 8;
