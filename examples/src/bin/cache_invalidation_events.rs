//! Event-driven invalidation: a service caches what another service owns, and deletes its entries when that service says in an
//! event that they changed.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use seawall::millis;
use seawall::task::cache::RemoteLookup;
use seawall::task::{Cache, Group, RemoteCache};
use seawall_redis::Connection;
use seawall_redis::cache::{JsonCodec, RedisRemoteCache};
use seawall_testkit::servers::Redis;

/// The consumer of the other service's events. One process of the group gets each event; the memory of the others hears of the
/// deletion through Redis.
struct ProductCacheInvalidator {
    products: Cache<u32>,
}

#[derive(serde::Deserialize)]
struct ProductEvent {
    product_id: String,
}

impl ProductCacheInvalidator {
    /// A repeated event deletes once more, which is harmless: the consumer needs no memory of what it has seen.
    async fn handle(&self, event_type: &str, payload: &[u8]) -> Result<(), serde_json::Error> {
        if let "product.price_changed" | "product.updated" | "product.deleted" = event_type {
            let event: ProductEvent = serde_json::from_slice(payload)?;
            self.products.invalidate(&event.product_id).await;
        }
        Ok(())
    }
}

/// One process of the service that caches.
struct Process {
    products: Cache<u32>,
    remote: RedisRemoteCache,
}

impl Process {
    fn new(redis: &str) -> Result<Self, Box<dyn Error>> {
        let connection = Connection::new(redis)?;
        let remote = RedisRemoteCache::builder("products", connection).prefix("product:").build()?;
        let products = Cache::builder("products").remote(remote.clone(), JsonCodec).build()?;
        Ok(Process { products, remote })
    }

    async fn price(&self, catalogue: &Arc<AtomicU32>) -> Result<u32, Box<dyn Error>> {
        let catalogue = catalogue.clone();
        let ask = move || async move { Ok::<_, io::Error>(Some(catalogue.load(Ordering::SeqCst))) };
        Ok(self.products.load("mug", ask).await?.unwrap_or_default())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let redis = Redis::start()?;
    // Stands for the other service, which owns the price of its one product.
    let catalogue = Arc::new(AtomicU32::new(10));
    let (first, second) = (Process::new(&redis.url())?, Process::new(&redis.url())?);
    let consumer = ProductCacheInvalidator { products: first.products.clone() };

    // Every process listens beside its cache.
    let mut listeners = Group::new();
    for process in [&first, &second] {
        let products = process.products.clone();
        listeners.spawn("deletions", async move {
            products.listen().await;
            Ok::<(), io::Error>(())
        });
    }

    let prices = (first.price(&catalogue).await?, second.price(&catalogue).await?);
    println!("both processes: {} and {}", prices.0, prices.1);
    // The value is written to Redis a moment after the answer. A process whose subscription begins during a load drops what it
    // loaded, because it may have missed a deletion; so it is asked again.
    while !matches!(first.remote.get("mug", 0).await, Ok(RemoteLookup::Hit(..))) {
        first.price(&catalogue).await?;
        tokio::time::sleep(millis(1)).await;
    }

    catalogue.store(12, Ordering::SeqCst);
    consumer.handle("product.viewed", br#"{"product_id":"mug"}"#).await?;
    let prices = (first.price(&catalogue).await?, second.price(&catalogue).await?);
    println!("after product.viewed: {} and {}", prices.0, prices.1);

    consumer.handle("product.price_changed", br#"{"product_id":"mug"}"#).await?;
    let mut prices = (first.price(&catalogue).await?, second.price(&catalogue).await?);
    while prices.1 != 12 {
        // The second process hears of it through Redis, a moment later.
        tokio::time::sleep(millis(1)).await;
        prices.1 = second.price(&catalogue).await?;
    }
    println!("after product.price_changed: {} and {}", prices.0, prices.1);

    let refused = consumer.handle("product.updated", b"no JSON").await.is_err();
    println!("an event that can't be read is an error, for the broker to deliver again: {refused}");
    Ok(())
}
