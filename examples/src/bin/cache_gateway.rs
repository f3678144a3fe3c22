//! A cache behind an interface of the application. Trouble with Redis is a miss, a skipped write or a warning; only what the caller
//! did wrong is an error.

use std::error::Error;

use seawall::{millis, secs};
use seawall_redis::cache::{JsonCodec, RedisCache};
use seawall_redis::{Connection, ConnectionBuilder};
use seawall_testkit::servers::Redis;
use serde::{Deserialize, Serialize};

/// What the application sees.
trait UserCache {
    async fn get(&self, id: &str) -> Result<Option<User>, Box<dyn Error>>;
    async fn put(&self, id: &str, user: &User) -> Result<(), Box<dyn Error>>;
    async fn evict(&self, id: &str);
}

#[derive(Serialize, Deserialize, Debug)]
struct User {
    name: String,
}

struct RedisUserCache(RedisCache<JsonCodec>);

impl UserCache for RedisUserCache {
    async fn get(&self, id: &str) -> Result<Option<User>, Box<dyn Error>> {
        Ok(self.0.get(id).await?)
    }

    async fn put(&self, id: &str, user: &User) -> Result<(), Box<dyn Error>> {
        self.0.put(id, user, secs(1_800)).await?;
        Ok(())
    }

    async fn evict(&self, id: &str) {
        self.0.delete(id).await;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let redis = Redis::start()?;
    let client = Connection::new(&redis.url())?.client().clone();
    let connection = ConnectionBuilder::of(client).response_timeout(millis(200)).build()?;
    let cache =
        RedisUserCache(RedisCache::builder(connection.clone()).codec(JsonCodec).prefix("user:").build()?);
    let ada = User { name: "Ada".to_owned() };

    println!("empty: {:?}", cache.get("7").await?);
    cache.put("7", &ada).await?;
    println!("stored: {:?}", cache.get("7").await?);
    cache.evict("7").await;
    println!("deleted: {:?}", cache.get("7").await?);

    // An old release wrote something else there.
    connection.query::<()>("an old release", redis::cmd("SET").arg("user:8").arg("no JSON")).await?;
    println!("unreadable: {:?}", cache.get("8").await?);
    println!("without a key: {}", cache.get("").await.is_err());

    redis.control().pause()?;
    println!(
        "Redis hangs: {:?}, the write is skipped: {}",
        cache.get("7").await?,
        cache.put("7", &ada).await.is_ok()
    );
    redis.control().resume()?;
    redis.control().kill()?;
    cache.evict("7").await;
    println!(
        "Redis is away: {:?}, the write is skipped: {}",
        cache.get("7").await?,
        cache.put("7", &ada).await.is_ok()
    );
    Ok(())
}
