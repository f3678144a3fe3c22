//! An event that comes twice is processed once: with the table `processed_events` in the transaction of the work, and with
//! `SET NX` on Redis for work that may be lost or repeated. Starts a PostgreSQL and a Redis of its own.

use std::error::Error;

use seawall_dist::idempotency::MessageOutcome;
use seawall_redis::Connection;
use seawall_redis::idempotency::processed_events;
use seawall_sql::postgres;
use seawall_sql::postgres::idempotency::record_processed;
use seawall_testkit::servers::{Postgres, Redis};
use sqlx::{Executor, PgPool};

const EVENT: &str = "0192f8a0-1111-7abc-8def-0123456789ab";

/// For what must not happen twice: effect and record are one transaction.
async fn reserve_stock(pool: &PgPool, event_id: &str, crashes: bool) -> Result<&'static str, Box<dyn Error>> {
    let mut transaction = seawall_sql::transaction::begin(pool).await?;
    if !record_processed(&mut transaction, event_id).await? {
        return Ok("already processed");
    }
    transaction.execute("UPDATE stock SET count = count - 1").await?;
    if crashes {
        // Whatever ends the process here takes effect and record with it.
        return Ok("crashed before the commit");
    }
    transaction.commit().await?;
    Ok("processed")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (postgres, redis) = (Postgres::start()?, Redis::start()?);

    let pool = PgPool::connect(postgres.database()?.url()).await?;
    postgres::migrate(&pool).await?;
    pool.execute("CREATE TABLE stock (count INT); INSERT INTO stock VALUES (10)").await?;
    for crashes in [true, false, false] {
        println!("stock: {}", reserve_stock(&pool, EVENT, crashes).await?);
    }
    let count: i32 = sqlx::query_scalar("SELECT count FROM stock").fetch_one(&pool).await?;
    println!("left in stock: {count}");

    // For notifications: a Go service that does `SetNX("processed:"+id, "1", 24h)` shares these keys.
    let connection = Connection::new(&redis.url())?;
    let inbox = processed_events(connection.clone())?;
    for _ in 0..2 {
        let mail = |_| async { Ok::<_, std::io::Error>("sent") };
        match inbox.handle(EVENT, mail).await? {
            MessageOutcome::Done(outcome) => println!("mail: {outcome}"),
            MessageOutcome::Duplicate => println!("mail: already processed"),
        }
    }
    let mut get = redis::cmd("GET");
    let value: String = connection.query("reading a key", get.arg(format!("processed:{EVENT}"))).await?;
    println!("processed:{EVENT} = {value}");
    Ok(())
}
