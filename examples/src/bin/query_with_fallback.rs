//! Two databases with the same rows: reads go to the secondary while the primary is down, and back when it has returned.
//! On two real PostgreSQL servers, of which one is killed.

use std::error::Error;

use seawall::failover::Side;
use seawall::{Breaker, Guard, millis, secs};
use seawall_sql::failover::{SqlAnswer, SqlFailover, SqlFailoverError, pool_options};
use seawall_testkit::servers::Postgres as Server;
use sqlx::{Executor, PgPool, Postgres};

/// The prices of all goods, from whichever database answers.
async fn find_prices(
    data: &SqlFailover<Postgres>,
) -> Result<SqlAnswer<Vec<(String, i64)>>, SqlFailoverError> {
    data.read(|pool: PgPool| async move {
        sqlx::query_as("SELECT goods_code, special_price FROM limit_buy ORDER BY goods_code")
            .fetch_all(&pool)
            .await
    })
    .await
}

/// A pool for a new database of this server, with three rows in it.
async fn open(server: &Server) -> Result<PgPool, Box<dyn Error>> {
    let pool = pool_options().acquire_timeout(millis(500)).connect_lazy(server.database()?.url())?;
    pool.execute("CREATE TABLE limit_buy (goods_code TEXT, special_price BIGINT)").await?;
    pool.execute("INSERT INTO limit_buy VALUES ('A-7', 100), ('A-8', 250), ('B-1', 30)").await?;
    Ok(pool)
}

fn guard(name: &str) -> Result<Guard, seawall::ConfigError> {
    let breaker = Breaker::consecutive_failures(2).cooldown(millis(200)).cooldown_max(millis(200));
    Guard::builder(name).attempt_timeout(secs(2)).no_retry().breaker(breaker).build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (primary, secondary) = (Server::start()?, Server::start()?);
    let data = SqlFailover::builder("DataSource")
        .guarded_side(guard("limit-buy-1")?, open(&primary).await?)
        .guarded_side(guard("limit-buy-2")?, open(&secondary).await?)
        .build()?;

    let prices = find_prices(&data).await?;
    println!("{} prices from the {}", prices.len(), prices.side());

    primary.control().kill()?;
    for _ in 0..5 {
        let prices = find_prices(&data).await?;
        println!("{} prices from the {}", prices.len(), prices.side());
    }

    primary.control().start()?;
    while find_prices(&data).await?.side() != Side::PRIMARY {
        tokio::time::sleep(millis(50)).await;
    }
    println!("back at the primary");

    primary.control().kill()?;
    secondary.control().kill()?;
    let error = find_prices(&data).await.expect_err("both servers are down");
    println!("both down: {}", error.previous().is_some());
    Ok(())
}
