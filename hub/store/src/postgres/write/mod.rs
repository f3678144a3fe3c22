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

/// The settings of sessions that write. Their statements look for rows by an index, one after the other, whatever the statistics say: a
/// plan that was made when a table was empty is used for as long as the connection lives. So rows are also locked in the sequence in
/// which a statement names them.
pub(super) const WRITER_SETTINGS: &str =
    "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off";
