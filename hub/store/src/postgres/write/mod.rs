//! Changes of units, each in a transaction.

pub(super) mod applier;
