//! Write-through: the service that writes the data invalidates the cache in the same use case, after the commit.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use seawall::millis;
use seawall::task::cache::{RawCodec, RemoteLookup};
use seawall::task::{Cache, RemoteCache};
use seawall_redis::{Connection, cache::RedisRemoteCache};
use seawall_testkit::servers::Redis;

/// Stands for the database. Counts how often it is read.
#[derive(Clone, Default)]
struct Orders {
    rows: Arc<Mutex<HashMap<u32, String>>>,
    reads: Arc<AtomicU32>,
}

impl Orders {
    async fn status(self, id: u32) -> io::Result<Option<String>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        Ok(self.rows.lock().expect("nobody panics").get(&id).cloned())
    }

    /// A transaction: it commits, or its error rolls it back.
    async fn set_status(&self, id: u32, status: &str) -> io::Result<()> {
        if status.is_empty() {
            return Err(io::Error::other("an order has a status"));
        }
        self.rows.lock().expect("nobody panics").insert(id, status.to_owned());
        Ok(())
    }
}

/// The use cases of a service, in one of its processes.
struct OrderService {
    orders: Orders,
    cache: Cache<String>,
    remote: RedisRemoteCache,
}

impl OrderService {
    fn new(orders: &Orders, redis: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let remote = RedisRemoteCache::builder("orders", Connection::new(redis)?).prefix("order:").build()?;
        let cache = Cache::builder("orders").remote(remote.clone(), RawCodec).build()?;
        Ok(OrderService { orders: orders.clone(), cache, remote })
    }

    async fn status(&self, id: u32) -> Result<String, Box<dyn std::error::Error>> {
        let orders = self.orders.clone();
        let status = self.cache.load(&id.to_string(), move || orders.status(id)).await?;
        Ok(status.unwrap_or_else(|| "no such order".into()))
    }

    /// The cache is invalidated after the commit: before it, the next reader would store the old value again. It is deleted and
    /// not updated: two writers could update it in the wrong order. After a rollback it is left alone.
    async fn update(&self, id: u32, status: &str) -> io::Result<()> {
        self.cache.after_commit([id.to_string()], self.orders.set_status(id, status)).await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let redis = Redis::start()?;
    let orders = Orders::default();
    let reads = || orders.reads.load(Ordering::SeqCst);
    let service = OrderService::new(&orders, &redis.url())?;
    service.update(7, "paid").await?;

    service.status(7).await?;
    let status = service.status(7).await?;
    println!("two lookups, {} read: {status}", reads());

    let refused = service.update(7, "").await.is_err();
    assert!(refused, "an empty status is refused");
    let status = service.status(7).await?;
    println!("rolled back, still {} read: {status}", reads());

    service.update(7, "shipped").await?;
    let status = service.status(7).await?;
    println!("committed, {} reads: {status}", reads());

    // Another process has nothing in its memory, and finds the value in Redis. It is written there a moment after the answer.
    while !matches!(service.remote.get("7", 0).await, Ok(RemoteLookup::Hit(..))) {
        tokio::time::sleep(millis(1)).await;
    }
    let other = OrderService::new(&orders, &redis.url())?;
    let status = other.status(7).await?;
    println!("the other process, still {} reads: {status}", reads());

    // Without Redis the update goes through, and lookups ask the database.
    redis.control().kill()?;
    service.update(7, "delivered").await?;
    let status = service.status(7).await?;
    println!("Redis is away, {} reads: {status}", reads());
    Ok(())
}
