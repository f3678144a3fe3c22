use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use seawall::Clock;
use seawall_dist::limit::{DecidedBy, SharedLimit};
use seawall_redis::Connection;
use seawall_redis::limit::RedisLimits;
use seawall_testkit::servers::{Redis, WorkerProcess, worker_settings};

const PROCESSES: u32 = 3;
const RATE: u32 = 100;
const BURST: u32 = 20;

/// A call that passed, as a worker reports it: by which limit, and when, in microseconds since 1970.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Passed {
    worker: usize,
    shared: bool,
    at: u64,
}

#[derive(Clone, Default)]
struct Record(Arc<Mutex<Vec<Passed>>>);

impl Record {
    fn of(&self, shared: bool, from: u64) -> Vec<Passed> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|call| call.shared == shared && call.at >= from).copied().collect()
    }

    /// Waits until every worker has reported so many calls of this kind since then.
    #[expect(clippy::panic, reason = "a test that waits in vain says for what")]
    fn wait_for(&self, shared: bool, from: u64, calls: usize) {
        for _ in 0..3_000 {
            let found = self.of(shared, from);
            if (0..PROCESSES as usize)
                .all(|worker| found.iter().filter(|call| call.worker == worker).count() >= calls)
            {
                return;
            }
            pause(Duration::from_millis(10));
        }
        panic!("not every process has {calls} calls with shared = {shared}");
    }
}

fn now() -> u64 {
    micros(Clock::system().wall())
}

fn micros(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "what happens in another process can't be awaited")]
fn pause(duration: Duration) {
    thread::sleep(duration);
}

/// Asserts that no span of time holds more calls than the burst and what the rate allows in it, and so no second more than the
/// rate and the burst.
fn assert_limited(calls: &[Passed], rate: f64, burst: u32) {
    let mut times: Vec<u64> = calls.iter().map(|call| call.at).collect();
    times.sort_unstable();
    for (first, from) in times.iter().enumerate() {
        for (last, to) in times.iter().enumerate().skip(first) {
            let seconds = (to - from) as f64 / 1e6;
            let count = last - first + 1;
            let allowed = f64::from(burst) + seconds * rate;
            assert!(count as f64 <= allowed + 0.1, "{count} calls in {seconds} s");
        }
    }
}

/// CRD-8: three processes at 100 calls per second on one limit never exceed it; with Redis killed each limits itself within a
/// second, to its share; with Redis back they share again.
#[test]
fn crd_8_three_processes_share_a_limit_and_fall_back_within_a_second() {
    let redis = Redis::start().unwrap();
    let record = Record::default();
    let mut workers = Vec::new();
    for number in 0..PROCESSES as usize {
        let settings = [("REDIS", redis.url())];
        let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut worker = WorkerProcess::spawn("limit::processes::limit_worker", &settings).unwrap();
        let (output, record) = (worker.take_output().unwrap(), record.clone());
        thread::spawn(move || {
            for line in std::io::BufRead::lines(output).map_while(Result::ok) {
                let mut words = line.split(' ').rev();
                let (Some(at), Some(kind)) = (words.next(), words.next()) else { continue };
                let (Ok(at), true) = (at.parse(), ["shared", "local"].contains(&kind)) else { continue };
                record.0.lock().unwrap().push(Passed { worker: number, shared: kind == "shared", at });
            }
        });
        workers.push(worker);
    }
    record.wait_for(true, 0, 40);
    pause(Duration::from_secs(2));
    let killed = now();
    redis.control().kill().unwrap();
    record.wait_for(false, killed, 10);
    pause(Duration::from_millis(1_500));
    let (before, local) = (record.of(true, 0), record.of(false, 0));
    for worker in 0..PROCESSES as usize {
        let first = local.iter().find(|call| call.worker == worker).unwrap().at;
        let took = Duration::from_micros(first.saturating_sub(killed));
        assert!(took < Duration::from_secs(1), "process {worker} fell back after {took:?}");
        let own: Vec<_> = local.iter().filter(|call| call.worker == worker).copied().collect();
        assert_limited(&own, f64::from(RATE) / f64::from(PROCESSES), BURST / PROCESSES);
    }
    let restarted = now();
    redis.control().start().unwrap();
    record.wait_for(true, restarted, 20);
    let after = record.of(true, restarted);
    assert_limited(&before, f64::from(RATE), BURST);
    assert_limited(&after, f64::from(RATE), BURST);
    // The limit is used up, and not only kept.
    let span =
        before.iter().map(|call| call.at).max().unwrap() - before.iter().map(|call| call.at).min().unwrap();
    let used = before.len() as f64 / (span as f64 / 1e6 * f64::from(RATE));
    println!("{} calls before the kill, {used:.2} of the limit, {} local ones", before.len(), local.len());
    assert!(used > 0.1, "three processes that want more than the limit got {used:.2} of it");
}

/// The worker of the test above: wants as much as it can get, and reports what it gets.
#[tokio::test]
async fn limit_worker() {
    let Some(settings) = worker_settings() else { return };
    let store = Arc::new(RedisLimits::new(Connection::new(&settings["REDIS"]).unwrap()));
    let limit = SharedLimit::builder(store, "sms", RATE).burst(BURST).processes(PROCESSES).build().unwrap();
    loop {
        match limit.try_acquire().await {
            Ok(admission) if admission.decided_by() == DecidedBy::Shared => {
                println!("shared {}", micros(admission.store_time().unwrap()));
            }
            Ok(_) => println!("local {}", now()),
            Err(error) => {
                let wait = error.retry_after().unwrap().min(Duration::from_millis(5));
                tokio::time::sleep(wait).await;
            }
        }
    }
}
