//! Work under a lock that several processes share, on a real Redis, and a table on a real PostgreSQL that refuses who comes
//! too late.

use std::sync::Arc;
use std::time::Duration;

use seawall::secs;
use seawall_dist::lock::{FencingToken, LockError, Locks, Wait};
use seawall_redis::{Connection, lock::RedisLocks};
use seawall_sql::postgres::{self, lock::PostgresLocks};
use seawall_testkit::servers::{Postgres, Redis};
use sqlx::{Executor, PgPool};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Moves money under the lock of the sender. Its caller may hold that lock already: then it runs at once.
async fn transfer(locks: &Locks, accounts: &Accounts, from: &str, to: &str, amount: i64) -> Result {
    locks
        .with_user_transaction(from, |lease| async move {
            accounts.add(from, -amount, lease.fence()).await?;
            accounts.add(to, amount, lease.fence()).await
        })
        .await?
}

/// Pays for an order: the outer work and the transfer inside of it need the same lock.
async fn pay(locks: &Locks, accounts: &Accounts, buyer: &str) -> Result {
    locks
        .with_user_transaction(buyer, |outer| async move {
            println!("outer and inner have the lock of {buyer}: {}", outer.key());
            transfer(locks, accounts, buyer, "shop", 30).await
        })
        .await?
}

/// Accounts that remember the token of the last write, and refuse an older one.
struct Accounts(PgPool);

impl Accounts {
    async fn add(&self, user: &str, amount: i64, fence: FencingToken) -> Result {
        // Check and write are one statement.
        let update = "UPDATE accounts SET balance = balance + $1, fence = $2 WHERE name = $3 AND fence <= $2";
        let query = sqlx::query(update).bind(amount).bind(fence.as_i64()).bind(user);
        match query.execute(&self.0).await?.rows_affected() {
            0 => Err(format!("{user}: a newer holder has written").into()),
            _ => Ok(()),
        }
    }

    async fn balance(&self, user: &str) -> Result<i64> {
        let query = sqlx::query_scalar("SELECT balance FROM accounts WHERE name = $1").bind(user);
        Ok(query.fetch_one(&self.0).await?)
    }
}

#[tokio::main]
async fn main() -> Result {
    let (redis, server) = (Redis::start()?, Postgres::start()?);
    let pool = PgPool::connect(server.database()?.url()).await?;
    postgres::migrate(&pool).await?;
    pool.execute(
        "CREATE TABLE accounts (name TEXT PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT NOT NULL);
         INSERT INTO accounts VALUES ('ada', 100, 0), ('shop', 0, 0)",
    )
    .await?;
    let accounts = Accounts(pool.clone());

    // Locks on Redis; the tokens come from PostgreSQL, which keeps them whatever happens to Redis.
    let store = Arc::new(RedisLocks::new(Connection::new(&redis.url())?));
    let tokens = Arc::new(PostgresLocks::new(pool.clone()));
    let locks = Locks::builder(store.clone()).fencing(tokens.clone()).build()?;

    let total = locks.with_lock("lock:order:create:buyer:456", |_lease| async { 3 + 4 }).await?;
    println!("under the lock: {total}");

    pay(&locks, &accounts, "ada").await?;
    println!("ada has {}, the shop {}", accounts.balance("ada").await?, accounts.balance("shop").await?);

    // Another process: another handle, which finds the lock held.
    let other = Locks::builder(Arc::new(RedisLocks::new(Connection::new(&redis.url())?)))
        .fencing(tokens.clone())
        .wait(Wait::ONCE)
        .build()?;
    let both =
        locks.with_user_transaction("ada", |_| other.with_user_transaction("ada", |_| async {})).await?;
    println!("somebody else: {}", matches!(both, Err(LockError::Contended { .. })));

    // Work that is cancelled because Redis is gone, and a late write with its old token.
    let mut late = None;
    let lost = locks
        .with_user_transaction("ada", |lease| {
            late = Some(lease.fence());
            let redis = &redis;
            async move {
                if let Err(error) = redis.control().kill() {
                    println!("{error}");
                }
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
        })
        .await;
    println!("without Redis: {}", lost.expect_err("nobody renews the lock"));
    redis.control().start()?;
    locks
        .key("lock:transaction:user:ada")
        .wait(Wait::default())
        .lease(secs(2))
        .with(|lease| {
            let accounts = &accounts;
            async move { accounts.add("ada", 5, lease.fence()).await }
        })
        .await??;
    let refused = accounts.add("ada", -1000, late.expect("the work ran")).await;
    println!("the late write: {}", refused.expect_err("its token is older"));
    println!("ada has {}", accounts.balance("ada").await?);
    Ok(())
}
