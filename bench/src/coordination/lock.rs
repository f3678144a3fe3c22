//! Taking a lock on one Redis and giving it back: ours, `rslock`, and what people write by hand.
//!
//! All three share one server and run in turns, so that the noise of the machine hits all alike, in a task of the runtime, as the
//! handlers of a service do: from the thread of `main` each answer would have to wake another thread first. Ours does more in the
//! same two requests: it draws a fencing token, and renews the lock if the work takes longer.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{Client, Script};
use seawall_dist::lock::Locks;
use seawall_redis::Connection;
use seawall_redis::lock::RedisLocks;

use super::server::Redis;

/// The number of rounds of each row; the median of them counts.
const ROUNDS: usize = 21;
/// The number of locks that a round takes and gives back.
const LOCKS: u32 = 1_000;
const LEASE: Duration = Duration::from_secs(1);
const KEY: &str = "lock:bench:one:1";

/// A lock as people write it: `SET NX PX`, and a script that deletes it.
struct HandWritten {
    connection: MultiplexedConnection,
    delete: Script,
    count: u64,
}

impl HandWritten {
    async fn lock(&mut self) -> redis::RedisResult<()> {
        self.count += 1;
        let mut set = redis::cmd("SET");
        set.arg(KEY).arg(self.count).arg("NX").arg("PX").arg(LEASE.as_millis() as u64);
        while set.query_async::<Option<String>>(&mut self.connection).await?.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let mut delete = self.delete.key(KEY);
        delete.arg(self.count).invoke_async::<()>(&mut self.connection).await
    }
}

/// Measures, and prints microseconds per lock with the ratios to the peers.
pub async fn run() -> Result<(), Box<dyn Error>> {
    let measured = tokio::spawn(measure()).await?;
    measured.map_err(|error| error as Box<dyn Error>)
}

async fn measure() -> Result<(), Box<dyn Error + Send + Sync>> {
    let redis = Redis::start()?;
    let ours = Locks::new(Arc::new(RedisLocks::new(Connection::new(&redis.url())?)));
    let peer = rslock::LockManager::new(vec![redis.url()]);
    let connection = Client::open(redis.url())?.get_multiplexed_async_connection().await?;
    let script =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
    let mut by_hand = HandWritten { connection, delete: Script::new(script), count: 0 };
    let mut rounds: [Vec<f64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..LOCKS {
            ours.with_lock(KEY, |_| async {}).await?;
        }
        rounds[0].push(micros(begun));
        let begun = Instant::now();
        for _ in 0..LOCKS {
            let lock = peer.lock(KEY.as_bytes(), LEASE).await?;
            peer.unlock(&lock).await;
        }
        rounds[1].push(micros(begun));
        let begun = Instant::now();
        for _ in 0..LOCKS {
            by_hand.lock().await?;
        }
        rounds[2].push(micros(begun));
    }
    let ratio = |peer: usize| {
        let pairs = rounds[0].iter().zip(&rounds[peer]).map(|(ours, peer)| ours / peer);
        median(&mut pairs.collect::<Vec<_>>())
    };
    let (to_rslock, to_hand) = (ratio(1), ratio(2));
    println!("lock and unlock on one Redis, median of {ROUNDS} rounds of {LOCKS}, in turns");
    for (name, rounds) in ["seawall", "rslock", "SET NX and a script by hand"].iter().zip(&mut rounds) {
        println!("  {name:<30} {:>8.1} µs", median(rounds));
    }
    println!("  seawall / rslock  {to_rslock:.2}   (at most 1.00)");
    println!("  seawall / by hand {to_hand:.2}");
    Ok(())
}

fn micros(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(LOCKS)
}

fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
