//! Stores that are broken on purpose: the suite has to find each mistake.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use seawall_dist::StoreFuture;
use seawall_dist::saga::{
    ClaimOutcome, CreateOutcome, DefinitionId, DueSagas, EntryKind, MemorySagaStore, SagaFilter, SagaRecord,
    SagaRow, SagaState, SagaStore, SagaWrite, WriteOutcome,
};
use seawall_testkit::conformance;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// A transition is written whatever the version is.
    VersionNotCompared,
    /// A transition is written whatever the fence is.
    FenceNotCompared,
    /// An intent is kept back and written after the result.
    ResultBeforeIntent,
    /// A claim succeeds although another process has the lease.
    ClaimNotExclusive,
    /// The saga of an entity is not looked for.
    EntityNotUnique,
    /// A process takes whatever is due.
    UnknownClaimed,
    /// A new deadline is not stored.
    DeadlineKept,
}

struct BrokenStore {
    inner: MemorySagaStore,
    mistake: Mistake,
    kept_back: Mutex<Vec<SagaWrite>>,
}

fn store(mistake: Mistake) -> Arc<BrokenStore> {
    Arc::new(BrokenStore { inner: MemorySagaStore::new(), mistake, kept_back: Mutex::default() })
}

impl BrokenStore {
    async fn current(&self, write: &SagaWrite) -> Option<SagaRecord> {
        self.inner.get(&write.id).await.ok()?
    }
}

impl SagaStore for BrokenStore {
    fn create<'a>(&'a self, row: &'a SagaRow) -> StoreFuture<'a, CreateOutcome> {
        Box::pin(async move {
            let mut row = row.clone();
            if self.mistake == Mistake::EntityNotUnique {
                row.entity = None;
            }
            self.inner.create(&row).await
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<SagaRecord>> {
        self.inner.get(id)
    }

    fn list<'a>(&'a self, filter: &'a SagaFilter) -> StoreFuture<'a, Vec<SagaRecord>> {
        self.inner.list(filter)
    }

    fn claim<'a>(&'a self, id: &'a str, owner: &'a str, lease: Duration) -> StoreFuture<'a, ClaimOutcome> {
        Box::pin(async move {
            if self.mistake == Mistake::ClaimNotExclusive
                && let Some(record) = self.inner.get(id).await?
            {
                self.inner.release(id, record.lease.fence).await?;
            }
            self.inner.claim(id, owner, lease).await
        })
    }

    fn claim_due<'a>(&'a self, due: &'a DueSagas) -> StoreFuture<'a, Vec<SagaRecord>> {
        Box::pin(async move {
            let mut due = due.clone();
            if self.mistake == Mistake::UnknownClaimed {
                due.known = vec![DefinitionId { name: "transfer".to_owned(), version: 3 }];
            }
            self.inner.claim_due(&due).await
        })
    }

    fn renew<'a>(&'a self, id: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool> {
        self.inner.renew(id, fence, lease)
    }

    fn release<'a>(&'a self, id: &'a str, fence: u64) -> StoreFuture<'a, ()> {
        self.inner.release(id, fence)
    }

    fn write<'a>(&'a self, write: &'a SagaWrite) -> StoreFuture<'a, WriteOutcome> {
        Box::pin(async move {
            let mut write = write.clone();
            match self.mistake {
                Mistake::VersionNotCompared => {
                    write.version = self.current(&write).await.map_or(0, |record| record.version);
                }
                Mistake::FenceNotCompared => {
                    write.fence = self.current(&write).await.map_or(0, |record| record.lease.fence);
                }
                Mistake::DeadlineKept => write.timeout = None,
                Mistake::ResultBeforeIntent if write.entry.kind == EntryKind::StepIntent => {
                    self.kept_back.lock().unwrap_or_else(PoisonError::into_inner).push(write);
                    return Ok(WriteOutcome::Written);
                }
                _ => {}
            }
            self.inner.write(&write).await
        })
    }

    fn count(&self) -> StoreFuture<'_, Vec<(SagaState, u64)>> {
        self.inner.count()
    }

    fn unclaimed(&self, age: Duration) -> StoreFuture<'_, Vec<(DefinitionId, u64)>> {
        self.inner.unclaimed(age)
    }

    fn clean_up(&self, age: Duration, limit: u32) -> StoreFuture<'_, u64> {
        self.inner.clean_up(age, limit)
    }
}

#[tokio::test]
#[should_panic(expected = "a transition was written without comparing the version")]
async fn crd_5_the_suite_finds_a_store_that_does_not_compare_versions() {
    conformance::saga(store(Mistake::VersionNotCompared)).await;
}

#[tokio::test]
#[should_panic(expected = "a write with an older fence was accepted")]
async fn crd_5_the_suite_finds_a_store_that_does_not_compare_fences() {
    conformance::saga(store(Mistake::FenceNotCompared)).await;
}

#[tokio::test]
#[should_panic(expected = "the journal is not what was written, in the order of the writes")]
async fn crd_5_the_suite_finds_a_store_that_writes_results_before_intents() {
    conformance::saga(store(Mistake::ResultBeforeIntent)).await;
}

#[tokio::test]
#[should_panic(expected = "a lost lease was given back")]
async fn crd_5_the_suite_finds_a_store_whose_claims_are_not_exclusive() {
    conformance::saga(store(Mistake::ClaimNotExclusive)).await;
}

#[tokio::test]
#[should_panic(expected = "two sagas work on one entity")]
async fn crd_5_the_suite_finds_a_store_that_forgets_entities() {
    conformance::saga(store(Mistake::EntityNotUnique)).await;
}

#[tokio::test]
#[should_panic(expected = "a process took a saga of a definition that it does not know")]
async fn crd_5_the_suite_finds_a_store_that_hands_out_unknown_definitions() {
    conformance::saga(store(Mistake::UnknownClaimed)).await;
}

#[tokio::test]
#[should_panic(expected = "a write did not move the deadline")]
async fn crd_5_the_suite_finds_a_store_that_keeps_an_old_deadline() {
    conformance::saga(store(Mistake::DeadlineKept)).await;
}
