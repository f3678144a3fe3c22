//! Changes of units, each in a transaction.

/// The condition that the node with this epoch is live. One that was taken for dead must not claim anything any more: nobody would
/// give it back. Whoever gives back its claims waits for its transactions first (see `restart.rs`), so this can't be out of date.
macro_rules! is_live {
    ($epoch:literal) => {
        concat!(
            "((SELECT state FROM nodes WHERE nodes.epoch = ",
            $epoch,
            ") IS NOT DISTINCT FROM ",
            $crate::sql::sql!(NODE_LIVE),
            ")"
        )
    };
}

pub(super) mod applier;

pub(super) mod batch;
pub(super) mod bulk;
pub(super) mod claims;
pub(super) mod deliveries;
pub(super) mod events;
pub(super) mod facts;
pub(super) mod orders;
pub(super) mod restart;
pub(super) mod set_based;

mod alerts;
mod audit;
mod circuits;
mod groups;
mod idempotency;
mod index;
mod letters;
mod locks;
mod operations;
mod prune;
mod registry;
