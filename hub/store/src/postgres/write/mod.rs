//! Changes of units, each in a transaction.

pub(super) mod applier;

pub(super) mod batch;
pub(super) mod bulk;
pub(super) mod claims;
pub(super) mod deliveries;
pub(super) mod events;
pub(super) mod facts;
pub(super) mod orders;
pub(super) mod restart;

mod alerts;
mod audit;
mod circuits;
mod idempotency;
mod index;
mod letters;
mod operations;
mod prune;
mod registry;
