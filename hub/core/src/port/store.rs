//! The port to the database.
//!
//! # Units of work
//! A change is a [`UnitOfWork`]: a list of changes that are committed together or not at all. Services
//! make units, the store commits them, and never begins one by itself. Units that wait at the same time share one commit,
//! and so one wait for the disk; each still succeeds or fails alone.
//!
//! # Epochs
//! A store counts how often it was opened: that is the [epoch](UnitStore::epoch) of the process. A claim belongs to the epoch
//! under which it was made, and a settlement or a return names that epoch. A store that has given the delivery to
//! another epoch meanwhile refuses, so that a late outcome never counts for the claim of somebody else.

pub use crate::domain::dead_letter::LetterAction;
pub use crate::domain::delivery::InitialState;
pub use crate::domain::operation::OperationTransition;

pub use super::alerts::{AlertReads, IncidentFilter};
pub use super::crash::{CrashHistory, StepMarks};
pub use super::dead_letters::{
    DeadLetter, DeadLetterBatch, DeadLetterDetails, DeadLetterPage, DeadLetterReads, MatchCount,
};
pub use super::error::StoreError;
pub use super::events::{BacklogCounts, DeliveryFilter, EventFilter, EventReads, StoredDelivery};
pub use super::operations::{Annotation, BulkItem, LetterMove, OperationStep, ReplayChange};
pub use super::registry::{RegistryReads, RegistrySnapshot};
pub use super::retention::{PrunableEvents, RetentionReads};
pub use super::unit::{
    Change, CircuitCause, Claim, CommitResult, DeliverySelector, IdempotencyRecord, NewDelivery, PruneTarget,
    SecretOwner, SecretRotation, Settlement, UnitOfWork,
};
pub use super::unit_store::{DueTimes, LaneCapacity, StoreHealth, UnitStore, WritePriority};

/// The whole port. A service that needs only a part asks for that part.
pub trait Store:
    UnitStore + RegistryReads + EventReads + DeadLetterReads + AlertReads + RetentionReads
{
}

impl<S> Store for S where
    S: UnitStore + RegistryReads + EventReads + DeadLetterReads + AlertReads + RetentionReads
{
}

/// A page of a list, the newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page<T> {
    /// The items of the page.
    pub items: Vec<T>,
    /// The position of the next page; `None` if this is the last.
    pub next: Option<u64>,
}

/// The position and the size of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRequest {
    /// The `next` of the page before; `None` means the first page.
    pub from: Option<u64>,
    /// The maximum number of items.
    pub size: usize,
}
