//! A process that works under a lock and writes to a fenced register, for as long as it is let.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use seawall::{Tick, millis};
use seawall_dist::lock::{BootClock, Lease, LockError, LockStore, Locks, OwnerId, Wait};
use seawall_sql::postgres::lock::PostgresLocks;
use seawall_testkit::servers::worker_settings;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use super::torture::{KEY, LEASE};

/// A pause of the process that is longer than this explains why it was late.
const GAP: Duration = Duration::from_millis(60);

/// The history has the order of the writes, because each waits for the row of the register.
const WRITE: &str = "
WITH written AS (UPDATE register SET fence = $1 WHERE fence <= $1 RETURNING 1)
INSERT INTO history (fence, holder) SELECT $1, $2 FROM written";

#[test]
fn lock_worker() {
    let Some(settings) = worker_settings() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let register = PgPool::connect(&settings["REGISTER"]).await.unwrap();
        let store: Arc<dyn LockStore> = match settings["BACKEND"].as_str() {
            "redlock" => Arc::new(seawall_redis::lock::redlock(settings["NODES"].split(',')).unwrap()),
            _ => {
                let pool = PgPoolOptions::new().max_connections(4).acquire_timeout(millis(500));
                Arc::new(PostgresLocks::new(pool.connect_lazy(&settings["NODES"]).unwrap()))
            }
        };
        let locks = Locks::builder(store).lease(LEASE).wait(Wait::UntilLocked).build().unwrap();
        loop {
            run_once(&locks, &register).await;
        }
    });
}

async fn run_once(locks: &Locks, register: &PgPool) {
    let holder = OwnerId::random();
    let work = |lease: Lease| {
        println!("\n@grant {} {}", lease.fence(), holder.as_str());
        let writes = write_often(register, lease.fence().as_i64(), holder.as_str());
        let late =
            LateWrite { register: register.clone(), fence: lease.fence().as_i64(), holder: holder.clone() };
        let (work, clock) = (Box::pin(writes), BootClock::system());
        Watched { lease, work, clock, last: Cell::new(None), ended: false, late }
    };
    match locks.with_lock(KEY, work).await {
        Ok(()) => println!("\n@done"),
        Err(LockError::Lost { .. }) => {}
        Err(error) => {
            println!("\n@error {error}");
            tokio::time::sleep(millis(20)).await;
        }
    }
}

/// Writes every ten milliseconds, for up to four leases: some are over before the first renewal, and most outlive a partition.
async fn write_often(register: &PgPool, fence: i64, holder: &str) {
    let number = u64::from_str_radix(&holder[..8], 16).unwrap_or_default();
    for _ in 0..10 + number % 300 {
        match sqlx::query(WRITE).bind(fence).bind(holder).execute(register).await {
            Ok(result) if result.rows_affected() == 1 => {}
            Ok(_) => println!("\n@refused {fence}"),
            Err(error) => println!("\n@error {error}"),
        }
        tokio::time::sleep(millis(10)).await;
    }
}

/// A write of a holder that lost its lock: it was under way somewhere, and arrives when there is a newer holder.
struct LateWrite {
    register: PgPool,
    fence: i64,
    holder: OwnerId,
}

impl LateWrite {
    fn arrive_later(&self) {
        let (register, fence, holder) = (self.register.clone(), self.fence, self.holder.clone());
        tokio::runtime::Handle::current().spawn(async move {
            tokio::time::sleep(LEASE * 2).await;
            let written = sqlx::query(WRITE).bind(fence).bind(holder.as_str()).execute(&register).await;
            if written.is_ok_and(|written| written.rows_affected() == 0) {
                println!("\n@refused {fence}");
            }
        });
    }
}

/// Looks at each poll whether the lease is valid, and when the work is dropped whether it was in time.
struct Watched<'a> {
    lease: Lease,
    work: Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
    clock: BootClock,
    last: Cell<Option<Tick>>,
    ended: bool,
    late: LateWrite,
}

impl Future for Watched<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.clock.now();
        // The driver has looked a moment ago; a process that is stopped between the two looks is no mistake of its.
        if now >= self.lease.valid_until() && self.last.get().is_some_and(|last| now.since(last) < GAP) {
            println!(
                "\n@violation the work was polled {:?} after its lease",
                now.since(self.lease.valid_until())
            );
        }
        self.last.set(Some(now));
        let polled = self.work.as_mut().poll(cx);
        self.ended = polled.is_ready();
        polled
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.late.arrive_later();
        let (now, valid_until) = (self.clock.now(), self.lease.valid_until());
        let gap = self.last.get().map_or(Duration::ZERO, |last| now.since(last));
        let (early, late) = (valid_until.since(now).as_millis(), now.since(valid_until).as_millis());
        match (late, gap > GAP) {
            (0, _) => println!("\n@cancelled {early}"),
            (_, true) => println!("\n@stopped {late}"),
            (_, false) => println!("\n@violation the work was cancelled {late} ms after its lease"),
        }
    }
}
