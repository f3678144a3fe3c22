//! Where sagas are kept.

use std::time::Duration;

use super::definition::DefinitionId;
use super::journal::{EntryKind, JournalEntry};
use crate::{Millis, StoreFuture};

/// Where a saga stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SagaState {
    /// The saga goes forward.
    Running,
    /// The saga undoes what it did.
    Compensating,
    /// Every step is done. An end.
    Completed,
    /// Every step that may have taken effect is undone. An end.
    Compensated,
    /// The saga can't go on by itself. An end, until an operator retries or resolves it.
    NeedsAttention,
}

impl SagaState {
    /// Every state.
    pub const ALL: [SagaState; 5] = [
        SagaState::Running,
        SagaState::Compensating,
        SagaState::Completed,
        SagaState::Compensated,
        SagaState::NeedsAttention,
    ];

    /// The states of sagas that somebody or something still has to bring to their end.
    pub const OPEN: [SagaState; 3] = [SagaState::Running, SagaState::Compensating, SagaState::NeedsAttention];

    /// The name that is stored: `needs_attention`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SagaState::Running => "running",
            SagaState::Compensating => "compensating",
            SagaState::Completed => "completed",
            SagaState::Compensated => "compensated",
            SagaState::NeedsAttention => "needs_attention",
        }
    }

    /// The state with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<SagaState> {
        SagaState::ALL.into_iter().find(|state| state.name() == name)
    }

    /// True while the saga goes on by itself.
    #[must_use]
    pub const fn is_active(self) -> bool {
        matches!(self, SagaState::Running | SagaState::Compensating)
    }
}

/// The lease of a saga: who drives it, and until when nobody else may.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SagaLease {
    /// The process that drives the saga.
    pub owner: String,
    /// The fencing token: the number of processes that drove the saga. A write with an older one is refused.
    pub fence: u64,
    /// When the lease ends unless it is renewed, by the store's clock.
    pub until: Millis,
}

/// A saga as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SagaRecord {
    /// The id that the caller gave it.
    pub id: String,
    /// The definition that it was started with.
    pub definition: DefinitionId,
    /// Where it stands.
    pub state: SagaState,
    /// Why it is compensated or needs attention.
    pub reason: Option<String>,
    /// The entity that no other active saga may work on.
    pub entity: Option<String>,
    /// The input.
    pub input: Vec<u8>,
    /// Grows with every entry of the journal.
    pub version: u64,
    /// The lease.
    pub lease: SagaLease,
    /// When it was started.
    pub created_at: Millis,
    /// When the last entry was written.
    pub updated_at: Millis,
    /// When it is compensated if it still goes forward.
    pub deadline_at: Millis,
    /// The note of the operator who declared it settled.
    pub resolution: Option<String>,
    /// The store's clock when the record was read.
    pub now: Millis,
    /// The journal. Empty in lists.
    pub journal: Vec<JournalEntry>,
}

/// A saga that is to be stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SagaRow {
    /// The id that the caller gave it.
    pub id: String,
    /// The definition.
    pub definition: DefinitionId,
    /// The entity that no other active saga may work on.
    pub entity: Option<String>,
    /// The input.
    pub input: Vec<u8>,
    /// How long it may go forward.
    pub timeout: Duration,
    /// The process that drives it.
    pub owner: String,
    /// How long nobody else may drive it. Zero if nobody drives it yet: the next monitor takes it.
    pub lease: Duration,
}

impl SagaRow {
    /// The fence that the saga is stored with: 1 for the process that drives it, or 0 if none does yet.
    #[must_use]
    pub fn first_fence(&self) -> u64 {
        u64::from(!self.lease.is_zero())
    }
}

/// What came of storing a saga.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CreateOutcome {
    /// It is stored, with version 0, and with fence 1, or 0 if nobody drives it yet.
    Created(SagaRecord),
    /// There is one with this id.
    Exists(SagaRecord),
    /// An active saga has the entity.
    EntityBusy {
        /// The id of that saga.
        saga: String,
    },
}

/// What came of a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClaimOutcome {
    /// The saga is claimed: the record has the new lease and the journal.
    Claimed(SagaRecord),
    /// Another process drives it.
    Held(SagaLease),
    /// It is completed, compensated or resolved.
    Ended(SagaRecord),
    /// There is no such saga.
    Missing,
}

/// One transition: an entry of the journal and the state after it, stored as one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SagaWrite {
    /// The saga.
    pub id: String,
    /// The fence of the writer's lease.
    pub fence: u64,
    /// The version that the writer has read.
    pub version: u64,
    /// The entry. The store sets its time.
    pub entry: JournalEntry,
    /// The state after the entry.
    pub state: SagaState,
    /// The reason after the entry.
    pub reason: Option<String>,
    /// How long the saga may go forward from this write on; the deadline stays as it is if there is none.
    pub timeout: Option<Duration>,
}

impl SagaWrite {
    /// True when the entity is free for other sagas after this write.
    #[must_use]
    pub fn frees_entity(&self) -> bool {
        matches!(self.state, SagaState::Completed | SagaState::Compensated)
            || self.entry.kind == EntryKind::Resolved
    }

    /// True when the lease ends with this write: the saga has ended.
    #[must_use]
    pub fn ends_lease(&self) -> bool {
        !self.state.is_active()
    }

    /// The operator's note, if this write resolves the saga.
    #[must_use]
    pub fn resolution(&self) -> Option<&str> {
        let text = self.entry.text.as_deref().unwrap_or_default();
        (self.entry.kind == EntryKind::Resolved).then_some(text)
    }
}

/// What came of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteOutcome {
    /// It is stored.
    Written,
    /// Fence or version are not the writer's any more, and nothing was stored.
    Conflict {
        /// The fence in the store.
        fence: u64,
        /// The version in the store.
        version: u64,
    },
}

/// Which sagas a monitor takes over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueSagas {
    /// The process that takes them.
    pub owner: String,
    /// How long nobody else may take them.
    pub lease: Duration,
    /// The definitions that the process knows. It takes no others: those belong to another service, or to another version of
    /// this one.
    pub known: Vec<DefinitionId>,
    /// The maximum number of sagas.
    pub limit: u32,
}

/// Which sagas to list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SagaFilter {
    /// The state; all if there is none. Resolved ones are never listed as needing attention.
    pub state: Option<SagaState>,
    /// Only active sagas whose lease has been over for this long.
    pub unclaimed_for: Option<Duration>,
    /// Sagas after this id, for the next page.
    pub after: Option<String>,
    /// The maximum number of records.
    pub limit: u32,
}

/// The store of sagas. Every method is one atomic change; times come from the store's clock.
pub trait SagaStore: Send + Sync + 'static {
    /// Stores a new saga with a lease, unless its id or its entity is taken.
    fn create<'a>(&'a self, row: &'a SagaRow) -> StoreFuture<'a, CreateOutcome>;

    /// Reads a saga with its journal.
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<SagaRecord>>;

    /// Lists sagas by id, without their journals.
    fn list<'a>(&'a self, filter: &'a SagaFilter) -> StoreFuture<'a, Vec<SagaRecord>>;

    /// Takes the lease of one saga that is active or needs attention, if nobody holds it.
    fn claim<'a>(&'a self, id: &'a str, owner: &'a str, lease: Duration) -> StoreFuture<'a, ClaimOutcome>;

    /// Takes the leases of active sagas of known definitions whose lease is over, the longest over first. One that this version
    /// can't read is reported, given back and left out: it keeps no other from being taken over.
    fn claim_due<'a>(&'a self, due: &'a DueSagas) -> StoreFuture<'a, Vec<SagaRecord>>;

    /// Makes the lease last from now on. False if the fence is not the saga's any more.
    fn renew<'a>(&'a self, id: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool>;

    /// Ends the lease, so that another process may claim the saga at once. Does nothing if the fence is not the saga's.
    fn release<'a>(&'a self, id: &'a str, fence: u64) -> StoreFuture<'a, ()>;

    /// Appends an entry and changes the state, if fence and version are still the saga's. The entry can be read when this
    /// returns.
    fn write<'a>(&'a self, write: &'a SagaWrite) -> StoreFuture<'a, WriteOutcome>;

    /// Counts the sagas that have not ended, by state: running, compensating, and those that need attention and are not resolved.
    /// Ended sagas are many, and a count of them would read them all.
    fn count(&self) -> StoreFuture<'_, Vec<(SagaState, u64)>>;

    /// Counts the active sagas whose lease has been over for `age`, by definition.
    fn unclaimed(&self, age: Duration) -> StoreFuture<'_, Vec<(DefinitionId, u64)>>;

    /// Deletes up to `limit` sagas that were completed, compensated or resolved longer ago than `age`, with their journals.
    fn clean_up(&self, age: Duration, limit: u32) -> StoreFuture<'_, u64>;
}
