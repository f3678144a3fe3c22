//! Queries, on connections that do nothing else.

pub(super) mod alerts;
pub(super) mod backlog;
pub(super) mod dead_letters;
pub(super) mod deliveries;
pub(super) mod events;
pub(super) mod groups;
pub(super) mod idempotency;
pub(super) mod operations;
pub(super) mod registry;
pub(super) mod retention;
