//! Units of the usual shapes, many at once in few statements.

use seawall_hub_core::port::store::{CommitResult, StoreError, UnitOfWork};

use super::applier::{ApplyError, NodeId};
use crate::postgres::engine::session::Session;

/// What a unit of work looks like to the writer. Units of the same shape that is not [`Shape::Single`] are applied together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::postgres) enum Shape {
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

pub(in crate::postgres) fn shape(_unit: &UnitOfWork) -> Shape {
    Shape::Single
}

/// Applies units of one shape within the transaction of the session, and returns a result for each, in their order. A refusal of
/// one says nothing about the others; an error means that nothing was applied.
pub(in crate::postgres) async fn apply_batch(
    _session: &Session,
    _node: NodeId,
    _shape: Shape,
    _units: &[&UnitOfWork],
) -> Result<Vec<Result<CommitResult, StoreError>>, ApplyError> {
    todo!()
}
