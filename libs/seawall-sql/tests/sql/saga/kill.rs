use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use seawall_dist::StoreFuture;
use seawall_dist::saga::{
    ClaimOutcome, CreateOutcome, DefinitionId, DueSagas, NewSaga, SagaFilter, SagaRecord, SagaRow, SagaState,
    SagaStore, SagaWrite, WriteOutcome,
};
use seawall_testkit::servers::{WorkerProcess, worker_settings};
use tokio::runtime::Runtime;

use super::bank::{ACCOUNTS, BALANCE, Bank};

/// How long the leases of killed processes last.
const LEASE: Duration = Duration::from_secs(2);

/// The number of journal writes of a transfer: an intent and a result for three steps, and the end; with a refusal, also an
/// intent and a result for three compensations.
const WRITES: [u32; 2] = [7, 13];

/// A store that ends the process before or after one of its journal writes.
struct CrashingStore {
    inner: Arc<dyn SagaStore>,
    writes: AtomicU32,
    crash_at: u32,
    after: bool,
}

impl SagaStore for CrashingStore {
    fn create<'a>(&'a self, row: &'a SagaRow) -> StoreFuture<'a, CreateOutcome> {
        self.inner.create(row)
    }

    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<SagaRecord>> {
        self.inner.get(id)
    }

    fn list<'a>(&'a self, filter: &'a SagaFilter) -> StoreFuture<'a, Vec<SagaRecord>> {
        self.inner.list(filter)
    }

    fn claim<'a>(&'a self, id: &'a str, owner: &'a str, lease: Duration) -> StoreFuture<'a, ClaimOutcome> {
        self.inner.claim(id, owner, lease)
    }

    fn claim_due<'a>(&'a self, due: &'a DueSagas) -> StoreFuture<'a, Vec<SagaRecord>> {
        self.inner.claim_due(due)
    }

    fn renew<'a>(&'a self, id: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool> {
        self.inner.renew(id, fence, lease)
    }

    fn release<'a>(&'a self, id: &'a str, fence: u64) -> StoreFuture<'a, ()> {
        self.inner.release(id, fence)
    }

    fn write<'a>(&'a self, write: &'a SagaWrite) -> StoreFuture<'a, WriteOutcome> {
        Box::pin(async move {
            let is_it = self.writes.fetch_add(1, Ordering::Relaxed) + 1 == self.crash_at;
            if is_it && !self.after {
                std::process::abort();
            }
            let outcome = self.inner.write(write).await;
            if is_it {
                std::process::abort();
            }
            outcome
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

/// Starts one transfer, and crashes where it is told.
#[test]
fn transfer_worker() {
    let Some(settings) = worker_settings() else { return };
    Runtime::new().unwrap().block_on(async {
        let bank = Bank::open(&settings["DATABASE"]).await;
        let store = CrashingStore {
            inner: bank.store.clone(),
            writes: AtomicU32::new(0),
            crash_at: settings["CRASH_AT"].parse().unwrap(),
            after: settings["AFTER"] == "true",
        };
        let sagas = bank.sagas(Arc::new(store), LEASE).build().unwrap();
        let new = NewSaga::new("transfer", &settings["ID"], settings["INPUT"].as_str())
            .entity(settings["ID"].as_str());
        let end = sagas.start(new).await;
        unreachable!("the saga ended without a crash: {end:?}");
    });
}

/// Takes over what others left, until it is killed.
#[test]
fn monitor_worker() {
    let Some(settings) = worker_settings() else { return };
    Runtime::new().unwrap().block_on(async {
        let bank = Bank::open(&settings["DATABASE"]).await;
        let sagas = bank.sagas(bank.store.clone(), LEASE).owner(settings["OWNER"].as_str()).build().unwrap();
        println!("monitor ready");
        sagas.run(std::future::pending()).await;
    });
}

/// CRD-5: a process is killed before and after every journal write of a transfer; three monitors bring every saga to its end,
/// each saga by one of them, and no money is lost or made.
async fn kills_at_every_journal_write(bank: Bank) {
    let mut cases = Vec::new();
    for (refuse, writes) in [false, true].into_iter().zip(WRITES) {
        for crash_at in 1..=writes {
            cases.extend([false, true].map(|after| (refuse, crash_at, after)));
        }
    }
    let mut ids = Vec::new();
    for group in cases.chunks(4) {
        let mut workers = Vec::new();
        for &(refuse, crash_at, after) in group {
            let id = format!(
                "{}-{crash_at}-{}",
                if refuse { "refused" } else { "fine" },
                if after { "after" } else { "before" }
            );
            let input =
                format!("{} {} 7{}", crash_at % 10, (crash_at + 1) % 10, if refuse { " refuse" } else { "" });
            let settings = [
                ("DATABASE", bank.address.as_str()),
                ("ID", &id),
                ("INPUT", &input),
                ("CRASH_AT", &crash_at.to_string()),
                ("AFTER", &after.to_string()),
            ];
            workers.push(WorkerProcess::spawn("saga::kill::transfer_worker", &settings).unwrap());
            ids.push((id, refuse, crash_at, after));
        }
        for mut worker in workers {
            while let Some(line) = worker.read_line().unwrap() {
                assert!(!line.contains("panicked"), "{line}");
            }
            assert!(!worker.wait().unwrap(), "a worker was to crash and did not");
        }
    }
    let monitors: Vec<WorkerProcess> = (0..3)
        .map(|number| {
            let owner = format!("monitor-{number}");
            let settings = [("DATABASE", bank.address.as_str()), ("OWNER", owner.as_str())];
            WorkerProcess::spawn("saga::kill::monitor_worker", &settings).unwrap()
        })
        .collect();
    super::takeover::until_none_is_active(&bank).await;
    drop(monitors);
    let mut expected = vec![BALANCE; ACCOUNTS as usize];
    for (id, refuse, crash_at, after) in &ids {
        let record = bank.store.get(id).await.unwrap().unwrap();
        let state = if *refuse { SagaState::Compensated } else { SagaState::Completed };
        assert_eq!(record.state, state, "{id}: {:?}", record.reason);
        // The last write is the end itself: nobody has to take over after it.
        let ended = *after && *crash_at == WRITES[usize::from(*refuse)];
        assert_eq!(record.lease.fence, if ended { 1 } else { 2 }, "{id} was not taken over exactly once");
        if !refuse {
            expected[(crash_at % 10) as usize] -= 7;
            expected[((crash_at + 1) % 10) as usize] += 7;
        }
    }
    assert_eq!(bank.balances().await, expected, "a transfer took effect twice, or half");
    assert_eq!(expected.iter().sum::<i64>(), ACCOUNTS * BALANCE);
    println!("{} kills, every saga ended, the sum is conserved", ids.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_5_kills_at_every_journal_write_on_postgres() {
    kills_at_every_journal_write(Bank::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_5_kills_at_every_journal_write_on_sqlite() {
    kills_at_every_journal_write(Bank::sqlite().await).await;
}
