//! The store that the hub was started with. A trait object is not possible, because the port has asynchronous functions.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use seawall::Clock;
use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::alert::Incident;
use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::circuit::Circuit;
use seawall_hub_core::domain::dead_letter::{Fingerprint, GroupFilter, LetterFilter, LetterGroup};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::operation::{Operation, OperationId};
use seawall_hub_core::domain::retention::Limits;
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    AlertReads, BacklogCounts, CommitResult, CrashHistory, DeadLetterBatch, DeadLetterDetails,
    DeadLetterPage, DeadLetterReads, DeliveryFilter, DeliverySelector, DueTimes, EventFilter, EventReads,
    IdempotencyRecord, IncidentFilter, LaneCapacity, MatchCount, Page, PageRequest, PrunableEvents,
    RegistryReads, RegistrySnapshot, RetentionReads, StepMarks, StoreError, StoreHealth, StoredDelivery,
    UnitOfWork, UnitStore, WritePriority,
};

use crate::postgres::{Postgres, PostgresOptions};
use crate::sqlite::{OpenError, Sqlite, make_private, take_lock};

/// The store that the hub was started with. A handle: clones share everything.
#[derive(Clone, Debug)]
pub enum AnyStore {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// Implements a trait of the port by calling the store that it is. Functions behind `async` are awaited.
macro_rules! forward {
    ($trait:ident {
        $(async $name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*
        $(sync $direct:ident() -> $value:ty;)*
    }) => {
        impl $trait for AnyStore {
            $(
                async fn $name(&self, $($argument: $kind),*) -> $answer {
                    match self {
                        AnyStore::Sqlite(store) => store.$name($($argument),*).await,
                        AnyStore::Postgres(store) => store.$name($($argument),*).await,
                    }
                }
            )*
            $(
                fn $direct(&self) -> $value {
                    match self {
                        AnyStore::Sqlite(store) => store.$direct(),
                        AnyStore::Postgres(store) => store.$direct(),
                    }
                }
            )*
        }
    };
}

type StoreResult<T> = Result<T, StoreError>;

forward!(UnitStore {
    async commit(priority: WritePriority, unit: UnitOfWork) -> StoreResult<CommitResult>;
    async commit_all(priority: WritePriority, units: Vec<UnitOfWork>) -> Vec<StoreResult<CommitResult>>;
    async claimed(scope: &'static str, key: &str) -> StoreResult<Option<IdempotencyRecord>>;
    async take_due(now: Millis, room: Vec<LaneCapacity>) -> StoreResult<Vec<StoredDelivery>>;
    async quarantine_candidates() -> StoreResult<Vec<(StoredDelivery, CrashHistory)>>;
    async next_due() -> StoreResult<Vec<DueTimes>>;
    async broken() -> StoreError;
    sync step_marks() -> Arc<dyn StepMarks>;
    sync health() -> StoreHealth;
    sync epoch() -> u64;
    sync record_gauges() -> ();
});

forward!(RegistryReads {
    async registered() -> StoreResult<RegistrySnapshot>;
    async rule_versions(name: &Slug) -> StoreResult<Vec<Rule>>;
    async circuit_history(service: &Slug, most: usize) -> StoreResult<Vec<Circuit>>;
    async audit(page: PageRequest) -> StoreResult<Page<AuditEntry>>;
});

forward!(EventReads {
    async event(id: &str, source: Option<&str>) -> StoreResult<Option<Event>>;
    async events(filter: EventFilter, page: PageRequest) -> StoreResult<Page<Event>>;
    async delivery(id: DeliveryId) -> StoreResult<Option<(StoredDelivery, Vec<Attempt>)>>;
    async deliveries(filter: DeliveryFilter, page: PageRequest) -> StoreResult<Page<StoredDelivery>>;
    async pending(whose: DeliverySelector, most: u32) -> StoreResult<u32>;
    async backlog_counts(services: Vec<Slug>, most: u32) -> StoreResult<BacklogCounts>;
});

forward!(DeadLetterReads {
    async dead_letter(id: DeliveryId) -> StoreResult<Option<DeadLetterDetails>>;
    async dead_letters(filter: LetterFilter, page: PageRequest) -> StoreResult<DeadLetterPage>;
    async count_letters(filter: LetterFilter, most: u64) -> StoreResult<MatchCount>;
    async letters_behind(filter: LetterFilter, behind: u64, most: usize) -> StoreResult<DeadLetterBatch>;
    async failed_replay(operation: OperationId, up_to: u64) -> StoreResult<Option<DeliveryId>>;
    async groups(filter: GroupFilter, page: PageRequest) -> StoreResult<Page<LetterGroup>>;
    async group(fingerprint: Fingerprint) -> StoreResult<Option<LetterGroup>>;
    async operations(page: PageRequest) -> StoreResult<Page<Operation>>;
    async operation(id: OperationId) -> StoreResult<Option<Operation>>;
    async untried_replays(operation: OperationId, services: Vec<Slug>) -> StoreResult<Vec<(Slug, u64)>>;
    async running() -> StoreResult<Vec<Operation>>;
});

forward!(AlertReads {
    async live_incidents() -> StoreResult<Vec<Incident>>;
    async incident(id: &str) -> StoreResult<Option<Incident>>;
    async incidents(filter: IncidentFilter, page: PageRequest) -> StoreResult<Page<Incident>>;
    async dead_since(since: Millis, most: u32) -> StoreResult<Vec<(Slug, u32)>>;
});

forward!(RetentionReads {
    async old_events(limits: Limits, behind: u64) -> StoreResult<PrunableEvents>;
});

impl AnyStore {
    /// Opens the database in this folder, or creates one.
    pub fn open_sqlite(folder: &Path, clock: &Clock) -> Result<Self, OpenError> {
        Sqlite::open(folder, clock).map(AnyStore::Sqlite)
    }

    /// Opens the database behind this URL. The folder holds the marks of steps, and belongs to this process alone.
    pub async fn open_postgres(url: &str, folder: &Path, clock: &Clock) -> Result<Self, OpenError> {
        let options = PostgresOptions::new(url, folder);
        Postgres::open(&options, clock).await.map(AnyStore::Postgres)
    }

    /// Returns the host and the name of the database, if it is not a file.
    #[must_use]
    pub fn database(&self) -> Option<String> {
        match self {
            AnyStore::Sqlite(_) => None,
            AnyStore::Postgres(store) => Some(store.address()),
        }
    }

    /// Returns the fingerprint of the key that has sealed the secrets, if it was noted. SQLite lies in one folder with its key.
    pub async fn secret(&self) -> Result<Option<Vec<u8>>, StoreError> {
        match self {
            AnyStore::Sqlite(_) => Ok(None),
            AnyStore::Postgres(store) => store.secret().await,
        }
    }

    /// Notes the fingerprint of the key that seals the secrets.
    pub async fn put_secret(&self, fingerprint: &[u8; 32]) -> Result<(), StoreError> {
        match self {
            AnyStore::Sqlite(_) => Ok(()),
            AnyStore::Postgres(store) => store.put_secret(fingerprint).await,
        }
    }

    /// Whether the store can be used, if that is known without asking it: with the reason if it can't.
    #[must_use]
    pub fn contact(&self) -> Option<Result<(), String>> {
        match self {
            AnyStore::Sqlite(_) => None,
            AnyStore::Postgres(store) => Some(store.unreachable().map_or(Ok(()), Err)),
        }
    }

    /// Returns why nothing is accepted any more, if part of the stored data can't be read.
    #[must_use]
    pub fn damaged(&self) -> Option<StoreError> {
        match self {
            AnyStore::Sqlite(store) => store.damaged(),
            AnyStore::Postgres(store) => store.damaged(),
        }
    }

    /// Prepares the files of the store for the end of the process. A server keeps its own.
    pub async fn fold_log(&self) -> Result<(), StoreError> {
        match self {
            AnyStore::Sqlite(store) => store.fold_log().await,
            AnyStore::Postgres(_) => Ok(()),
        }
    }
}

/// Takes a folder for this process alone, for as long as the file is open. A hub on PostgreSQL keeps its key and its marks there.
pub fn lock_folder(folder: &Path) -> Result<File, OpenError> {
    let failed =
        |error: std::io::Error| OpenError(format!("can't make the folder `{}`: {error}", folder.display()));
    make_private(folder).map_err(failed)?;
    take_lock(folder)
}
