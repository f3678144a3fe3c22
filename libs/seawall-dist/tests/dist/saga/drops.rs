use std::sync::Arc;
use std::time::Duration;

use seawall_dist::StoreFuture;
use seawall_dist::saga::{
    ClaimOutcome, CreateOutcome, DefinitionId, DueSagas, MemorySagaStore, NewSaga, SagaEnd, SagaFilter,
    SagaRecord, SagaRow, SagaState, SagaStore, SagaWrite, StepError, WriteOutcome,
};
use seawall_testkit::poll_once;

use super::{LEASE, Record, fine, refused, sagas, step, transfer};

/// PRM-4, CRD-5: a start that is dropped at any poll leaves a saga that a monitor brings to its end; nothing is left half done.
#[tokio::test(start_paused = true)]
async fn prm_4_a_start_may_be_dropped_at_every_poll() {
    for fails in [false, true] {
        for polls in 0.. {
            let (store, record) = (Arc::new(PausingStore::default()), Record::default());
            let last = if fails { refused } else { fine };
            let saga = || transfer(&record).step(step("notify", &record, last, shaky));
            let handle = sagas(&store, saga()).build().unwrap();
            let mut future = Box::pin(handle.start(NewSaga::new("transfer", "t1", "").entity("account:1")));
            let mut ended = false;
            for _ in 0..polls {
                ended = poll_once(future.as_mut()).is_ready();
                if ended {
                    break;
                }
                tokio::time::advance(LEASE / 100).await;
            }
            drop(future);
            tokio::time::advance(LEASE * 2).await;
            let monitor = sagas(&store, saga()).build().unwrap();
            monitor.run_due().await.unwrap();
            if let Some(found) = monitor.get("t1").await.unwrap() {
                let expected = if fails { SagaState::Compensated } else { SagaState::Completed };
                assert_eq!(found.state, expected, "dropped after {polls} polls");
                assert_eq!(record.count("undo debit") > 0, fails);
                // The entity is free again.
                let next =
                    monitor.start(NewSaga::new("transfer", "t2", "").entity("account:1")).await.unwrap();
                assert_eq!(matches!(next, SagaEnd::Completed(_)), !fails);
            }
            if ended {
                assert!(polls > 15, "the future was dropped in few places only");
                break;
            }
        }
    }
}

fn shaky(attempt: u32) -> Result<(), StepError> {
    if attempt == 1 { Err(StepError::transient("try later")) } else { Ok(()) }
}

/// PRM-4: the futures of operators and of the monitor may be dropped at every poll too.
#[tokio::test(start_paused = true)]
async fn prm_4_retries_resolutions_and_monitors_may_be_dropped_at_every_poll() {
    for operation in 0..4 {
        for polls in 0..60 {
            let (store, record) = (Arc::new(PausingStore::default()), Record::default());
            let saga =
                transfer(&record).step(step("notify", &record, refused, refused).compensation_attempts(1));
            let handle = sagas(&store, saga).build().unwrap();
            let _ = handle.start(NewSaga::new("transfer", "t1", "").entity("account:1")).await.unwrap();
            let mut future: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> = match operation {
                0 => Box::pin(async { drop(handle.retry("t1").await) }),
                1 => Box::pin(async { drop(handle.resolve("t1", "by hand").await) }),
                2 => Box::pin(async { drop(handle.compensate("t1", "nothing to undo").await) }),
                _ => Box::pin(handle.run(std::future::pending())),
            };
            for _ in 0..polls {
                if poll_once(future.as_mut()).is_ready() {
                    break;
                }
                tokio::time::advance(LEASE / 100).await;
            }
            drop(future);
            tokio::time::advance(LEASE * 2).await;
            handle.run_due().await.unwrap();
            let found = handle.get("t1").await.unwrap().unwrap();
            assert_eq!(found.state, SagaState::NeedsAttention, "operation {operation}, {polls} polls");
            if found.resolution.is_none() {
                handle.resolve("t1", "by hand").await.unwrap();
            }
            let _ = handle.start(NewSaga::new("transfer", "t2", "").entity("account:1")).await.unwrap();
        }
    }
}

/// A store that returns to its caller before and after each operation, as one across a network does.
#[derive(Default)]
struct PausingStore(MemorySagaStore);

async fn pausing<T>(operation: impl Future<Output = T>) -> T {
    tokio::task::yield_now().await;
    let result = operation.await;
    tokio::task::yield_now().await;
    result
}

impl SagaStore for PausingStore {
    fn create<'a>(&'a self, row: &'a SagaRow) -> StoreFuture<'a, CreateOutcome> {
        Box::pin(pausing(self.0.create(row)))
    }

    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<SagaRecord>> {
        Box::pin(pausing(self.0.get(id)))
    }

    fn list<'a>(&'a self, filter: &'a SagaFilter) -> StoreFuture<'a, Vec<SagaRecord>> {
        Box::pin(pausing(self.0.list(filter)))
    }

    fn claim<'a>(&'a self, id: &'a str, owner: &'a str, lease: Duration) -> StoreFuture<'a, ClaimOutcome> {
        Box::pin(pausing(self.0.claim(id, owner, lease)))
    }

    fn claim_due<'a>(&'a self, due: &'a DueSagas) -> StoreFuture<'a, Vec<SagaRecord>> {
        Box::pin(pausing(self.0.claim_due(due)))
    }

    fn renew<'a>(&'a self, id: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(pausing(self.0.renew(id, fence, lease)))
    }

    fn release<'a>(&'a self, id: &'a str, fence: u64) -> StoreFuture<'a, ()> {
        Box::pin(pausing(self.0.release(id, fence)))
    }

    fn write<'a>(&'a self, write: &'a SagaWrite) -> StoreFuture<'a, WriteOutcome> {
        Box::pin(pausing(self.0.write(write)))
    }

    fn count(&self) -> StoreFuture<'_, Vec<(SagaState, u64)>> {
        Box::pin(pausing(self.0.count()))
    }

    fn unclaimed(&self, age: Duration) -> StoreFuture<'_, Vec<(DefinitionId, u64)>> {
        Box::pin(pausing(self.0.unclaimed(age)))
    }

    fn clean_up(&self, age: Duration, limit: u32) -> StoreFuture<'_, u64> {
        Box::pin(pausing(self.0.clean_up(age, limit)))
    }
}
