//! The stores that are tested, and how each of them is opened. The tests of `hub/core` read this file too.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use seawall::Clock;
use seawall_hub_core::port::store::Store;
use seawall_hub_store::memory::{MemoryPlace, MemoryStore};
use seawall_hub_store::{OpenError, Postgres, PostgresOptions, Sqlite};
use seawall_testkit::servers::{self, Database};
use tempfile::TempDir;

/// A place for a store, and how it is opened there.
pub(crate) trait StoreFactory: Send + Sync + Sized + 'static {
    type Store: Store + Clone;
    const CAPABILITIES: Capabilities;

    /// Creates an empty place for this test alone.
    fn create() -> impl Future<Output = Self> + Send;

    /// Opens the store, as a process does that starts.
    fn open(&self) -> impl Future<Output = Result<Self::Store, OpenError>> + Send;

    /// Ends the process of this store without an orderly stop.
    fn kill(&self, store: Self::Store) -> impl Future<Output = ()> + Send {
        async move { drop(store) }
    }

    /// Returns a second handle to write with at the same time: another process if the store allows that.
    fn beside(&self, store: &Self::Store) -> impl Future<Output = Self::Store> + Send {
        async { if Self::CAPABILITIES.many_processes { self.open().await.unwrap() } else { store.clone() } }
    }
}

/// What a store can do beyond the port.
pub(crate) struct Capabilities {
    /// Several processes may have it open.
    pub(crate) many_processes: bool,
    /// It is on a disk of this machine, whose room it knows.
    pub(crate) local_disk: bool,
    /// Words are found without their diacritics.
    pub(crate) full_text: bool,
}

/// A folder of its own for SQLite.
pub(crate) struct SqliteFactory(TempDir);

impl StoreFactory for SqliteFactory {
    type Store = Sqlite;
    const CAPABILITIES: Capabilities =
        Capabilities { many_processes: false, local_disk: true, full_text: true };

    async fn create() -> Self {
        SqliteFactory(TempDir::new().unwrap())
    }

    async fn open(&self) -> Result<Sqlite, OpenError> {
        Sqlite::open(self.0.path(), &Clock::system())
    }
}

/// Tables of their own in memory.
pub(crate) struct MemoryFactory(MemoryPlace);

impl StoreFactory for MemoryFactory {
    type Store = MemoryStore;
    const CAPABILITIES: Capabilities =
        Capabilities { many_processes: false, local_disk: false, full_text: false };

    async fn create() -> Self {
        // As with files, no two places have the same id.
        static PLACES: AtomicU64 = AtomicU64::new(7);
        MemoryFactory(MemoryPlace::new(PLACES.fetch_add(1, Ordering::Relaxed)))
    }

    async fn open(&self) -> Result<MemoryStore, OpenError> {
        Ok(self.0.open())
    }
}

/// A database of its own on a server of PostgreSQL that all tests of the process share, and a folder for what is not in it.
pub(crate) struct PostgresFactory {
    database: Database,
    folder: TempDir,
}

impl PostgresFactory {
    /// Returns how the store is opened here.
    pub(crate) fn options(&self) -> PostgresOptions {
        let (url, data_folder) = (self.database.url().to_owned(), self.folder.path().to_owned());
        PostgresOptions { url, data_folder, name: "test".into() }
    }
}

impl StoreFactory for PostgresFactory {
    type Store = Postgres;
    const CAPABILITIES: Capabilities =
        Capabilities { many_processes: false, local_disk: false, full_text: true };

    async fn create() -> Self {
        // The server is started, and the database made, by programs that are waited for.
        let database = tokio::task::spawn_blocking(|| servers::Postgres::shared().database().unwrap());
        PostgresFactory { database: database.await.unwrap(), folder: TempDir::new().unwrap() }
    }

    async fn open(&self) -> Result<Postgres, OpenError> {
        Postgres::open(&self.options(), &Clock::system()).await
    }
}
