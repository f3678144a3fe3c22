//! Three processes on one lock, while they are killed, stopped and cut off.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use seawall::{Clock, Tick, millis, secs};
use seawall_dist::lock::UNTIL_LOCKED_DELAY;
use seawall_testkit::servers::{Database, FaultProxy, NetworkFault, Postgres, Redis, WorkerProcess};
use sqlx::{Executor, PgPool};

use super::report::{Line, Report, listen};

pub(super) const KEY: &str = "lock:torture:register:1";
pub(super) const LEASE: Duration = secs(1);
const WORKERS: usize = 3;

/// How late the machine may be: other tests run beside this one.
const SLACK: Duration = millis(1_500);

/// The lock's servers, each behind a proxy per worker.
struct Backend {
    name: &'static str,
    redis: Vec<Redis>,
    proxies: Vec<Vec<FaultProxy>>,
    addresses: Vec<String>,
}

impl Backend {
    fn redlock() -> Backend {
        let redis: Vec<Redis> = (0..5).map(|_| Redis::start().unwrap()).collect();
        let proxy = |node: &Redis| FaultProxy::start(node.address()).unwrap();
        let proxies: Vec<Vec<FaultProxy>> = (0..WORKERS).map(|_| redis.iter().map(proxy).collect()).collect();
        let url = |proxy: &FaultProxy| format!("redis://{}/", proxy.address());
        let urls = |proxies: &Vec<FaultProxy>| proxies.iter().map(url).collect::<Vec<_>>().join(",");
        let addresses = proxies.iter().map(urls).collect();
        Backend { name: "redlock", redis, proxies, addresses }
    }

    fn postgres(database: &Database, server: &Postgres) -> Backend {
        let proxy = |_| vec![FaultProxy::start(server.address()).unwrap()];
        let proxies: Vec<Vec<FaultProxy>> = (0..WORKERS).map(proxy).collect();
        let addresses = proxies.iter().map(|proxies| database.url_through(proxies[0].address())).collect();
        Backend { name: "postgres", redis: Vec::new(), proxies, addresses }
    }

    /// Cuts a worker off from all servers of the lock, or lets it in again.
    fn set(&self, worker: usize, fault: NetworkFault) {
        self.proxies[worker].iter().for_each(|proxy| proxy.set(fault));
    }
}

/// One run: workers, what they say, and what is done to them.
struct Torture<'a> {
    backend: &'a Backend,
    register: String,
    workers: Vec<WorkerProcess>,
    sender: SyncSender<Line>,
    lines: Receiver<Line>,
    report: Report,
    until: Tick,
    /// Chance, with a seed.
    dice: u64,
}

impl<'a> Torture<'a> {
    fn start(backend: &'a Backend, register: &str) -> Self {
        let (sender, lines) = sync_channel(10_000);
        let length = if std::env::var_os("SEAWALL_LONG").is_some() { secs(60) } else { secs(9) };
        let mut torture = Torture {
            backend,
            register: register.to_owned(),
            workers: Vec::new(),
            sender,
            lines,
            report: Report::default(),
            until: Clock::system().precise() + length,
            dice: 7,
        };
        for worker in 0..WORKERS {
            let process = torture.spawn(worker);
            torture.workers.push(process);
        }
        torture
    }

    fn spawn(&self, worker: usize) -> WorkerProcess {
        let settings = [
            ("BACKEND", self.backend.name),
            ("NODES", self.backend.addresses[worker].as_str()),
            ("REGISTER", self.register.as_str()),
        ];
        let mut process = WorkerProcess::spawn("lock::worker::lock_worker", &settings).unwrap();
        listen(worker, process.take_output().unwrap(), self.sender.clone());
        process
    }

    fn run(mut self) -> Report {
        self.watch(millis(800));
        // Each once, then by chance.
        let mut round = 0;
        let kinds = if self.backend.redis.is_empty() { 4 } else { 5 };
        while Clock::system().precise() < self.until || round < kinds {
            let worker = self.holder();
            let kind = if round < kinds { round } else { self.roll(kinds) };
            match kind {
                0 => self.kill(worker),
                1 => self.stop(worker),
                2 => self.cut(worker, NetworkFault::Partition),
                3 => self.cut(worker, NetworkFault::LostResponses),
                _ => self.lose_node(),
            }
            round += 1;
            self.watch(millis(500));
        }
        // Whatever happened, in the end somebody gets the lock again.
        let grants = self.report.grants;
        self.watch(LEASE * 2 + SLACK);
        assert!(self.report.grants > grants, "nobody got the lock any more: {:?}", self.report);
        self.report
    }

    fn kill(&mut self, worker: usize) {
        self.workers[worker].kill().unwrap();
        // What it said before it died is heard first.
        self.watch(millis(1));
        self.report.killed(worker, Clock::system().precise());
        // The two others wait for its lock; a new process would wait with them and take time from them.
        self.watch(LEASE + UNTIL_LOCKED_DELAY);
        self.workers[worker] = self.spawn(worker);
    }

    fn stop(&mut self, worker: usize) {
        self.report.stops += 1;
        self.workers[worker].pause().unwrap();
        self.watch(LEASE * 3 / 2);
        self.workers[worker].resume().unwrap();
    }

    fn cut(&mut self, worker: usize, fault: NetworkFault) {
        self.report.partitions += 1;
        self.backend.set(worker, fault);
        self.watch(LEASE * 3 / 2);
        self.backend.set(worker, NetworkFault::None);
    }

    /// One node is killed and comes back without its data.
    fn lose_node(&mut self) {
        self.report.node_losses += 1;
        let node = self.roll(5);
        self.backend.redis[node].control().kill().unwrap();
        self.watch(millis(300));
        self.backend.redis[node].control().start().unwrap();
    }

    /// The one that has the lock, if that is known, and otherwise any.
    fn holder(&mut self) -> usize {
        for _ in 0..50 {
            if let Some(holder) = self.report.holder {
                return holder;
            }
            self.watch(millis(10));
        }
        self.roll(WORKERS)
    }

    /// Hears what the workers say, for this long.
    fn watch(&mut self, time: Duration) {
        let until = Clock::system().precise() + time;
        loop {
            let left = until.since(Clock::system().precise());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.report.take(&line),
                Err(_) => return,
            }
        }
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.dice >> 33).unwrap() % sides
    }
}

/// The register never went back, and each token wrote for one holder only.
fn check_register(runtime: &tokio::runtime::Runtime, pool: &PgPool) -> i64 {
    runtime.block_on(async {
        let one = async |query: &'static str| sqlx::query_scalar::<_, i64>(query).fetch_one(pool).await.unwrap();
        let back = one(
            "SELECT count(*) FROM (SELECT fence, lag(fence) OVER (ORDER BY id) AS before FROM history) AS pairs
              WHERE fence < before",
        );
        assert_eq!(back.await, 0, "the register went backwards");
        let shared = one(
            "SELECT count(*) FROM (SELECT fence FROM history GROUP BY fence HAVING count(DISTINCT holder) > 1) AS shared",
        );
        assert_eq!(shared.await, 0, "two holders wrote with the same token");
        one("SELECT count(*) FROM history").await
    })
}

fn torture(backend: impl FnOnce(&Database, &Postgres) -> Backend) {
    let server = Postgres::start().unwrap();
    let database = server.database().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let pool = runtime.block_on(async {
        let pool = PgPool::connect(database.url()).await.unwrap();
        seawall_sql::postgres::migrate(&pool).await.unwrap();
        pool.execute(
            "CREATE TABLE register (fence BIGINT NOT NULL);
             CREATE TABLE history (id BIGSERIAL PRIMARY KEY, fence BIGINT NOT NULL, holder TEXT NOT NULL);
             INSERT INTO register VALUES (0)",
        )
        .await
        .unwrap();
        pool
    });
    let backend = backend(&database, &server);
    let report = Torture::start(&backend, database.url()).run();
    let writes = check_register(&runtime, &pool);
    println!("{}: {writes} writes, {report:#?}", backend.name);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    // A short run on a busy machine may strike a holder just when it is done; a long one hits each kind.
    assert!(report.grants >= 5 && writes > 50, "{report:?}");
    assert!(report.cancelled + report.cancelled_after_stop > 0, "{report:?}");
    if std::env::var_os("SEAWALL_LONG").is_some() {
        assert!(report.holders_killed > 0 && report.cancelled > 0 && report.refused_writes > 0, "{report:?}");
    }
    let bound = LEASE + UNTIL_LOCKED_DELAY + SLACK;
    assert!(report.longest_wait < bound, "a dead holder's lock was free after {:?}", report.longest_wait);
}

/// CRD-1, PRM-5: over five Redis nodes, with kill -9, SIGSTOP past the lease, partitions and nodes that lose their data: the
/// fenced register never goes back, work is cancelled before its lease ends, and a dead holder's lock is free after its lease.
#[test]
fn crd_1_redlock_survives_kills_stops_and_partitions() {
    torture(|_, _| Backend::redlock());
}

/// CRD-1, PRM-5: the same over PostgreSQL.
#[test]
fn crd_1_postgres_survives_kills_stops_and_partitions() {
    torture(Backend::postgres);
}
