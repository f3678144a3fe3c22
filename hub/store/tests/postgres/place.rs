//! Databases on servers that a test may break, and units whose effects can be counted.

use std::collections::HashMap;
use std::path::Path;

use seawall::Clock;
use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_store::{OpenError, Postgres, PostgresOptions};
use seawall_testkit::servers;

use crate::suite::fixtures::*;

/// How a store is opened at this URL.
pub(super) fn options(url: &str, folder: &Path, name: &str) -> PostgresOptions {
    PostgresOptions { url: url.to_owned(), data_folder: folder.to_owned(), name: name.to_owned() }
}

pub(super) async fn open(url: &str, folder: &Path, name: &str) -> Result<Postgres, OpenError> {
    Postgres::open(&options(url, folder, name), &Clock::system()).await
}

/// Starts a server that only this test uses.
pub(super) async fn server() -> Arc<servers::Postgres> {
    blocking(|| Arc::new(servers::Postgres::start().unwrap())).await
}

/// Runs what blocks, such as programs that are waited for.
pub(super) async fn blocking<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(run).await.unwrap()
}

/// A unit whose effect adds up if it is applied more than once.
pub(super) fn entry(name: &str) -> UnitOfWork {
    unit([Change::Audit(AuditEntry {
        at: NOW,
        who: "test".into(),
        action: "count".into(),
        target: name.into(),
        reason: None,
        trace: None,
    })])
}

/// Returns how often each unit was applied.
pub(super) async fn entries(store: &Postgres) -> HashMap<String, u32> {
    let (mut counts, mut from) = (HashMap::new(), None);
    loop {
        let page = store.audit(PageRequest { from, size: 500 }).await.unwrap();
        for entry in page.items {
            *counts.entry(entry.target).or_default() += 1;
        }
        from = page.next;
        if from.is_none() {
            return counts;
        }
    }
}

/// What the callers of units were told.
#[derive(Debug, Default)]
pub(super) struct Promises(HashMap<String, Promise>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Promise {
    Stored,
    NotStored,
    Unknown,
}

impl Promises {
    /// Notes what the caller of a unit was told. Only a database that is away is an excuse.
    pub(super) fn note(&mut self, name: String, answer: &Result<CommitResult, StoreError>) {
        let promise = match answer {
            Ok(_) => Promise::Stored,
            Err(StoreError::Unavailable { sent: false }) => Promise::NotStored,
            Err(StoreError::Unavailable { sent: true }) => Promise::Unknown,
            Err(error) => unreachable!("{name}: {error:?}"),
        };
        self.0.insert(name, promise);
    }

    pub(super) fn stored(&self) -> usize {
        self.0.values().filter(|promise| **promise == Promise::Stored).count()
    }

    pub(super) fn unknown(&self) -> usize {
        self.0.values().filter(|promise| **promise == Promise::Unknown).count()
    }

    /// Checks that nothing acknowledged is missing, nothing refused is there, and nothing was applied twice.
    pub(super) async fn check(&self, store: &Postgres) {
        let counts = entries(store).await;
        for (name, promise) in &self.0 {
            let count = counts.get(name).copied().unwrap_or(0);
            let allowed = match promise {
                Promise::Stored => 1..=1,
                Promise::NotStored => 0..=0,
                Promise::Unknown => 0..=1,
            };
            assert!(
                allowed.contains(&count),
                "{name} was applied {count} times, and its caller heard {promise:?}"
            );
        }
    }
}
