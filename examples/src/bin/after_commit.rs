//! An order is placed in a transaction, and its confirmation is sent after the commit: never for an order that was rolled back,
//! and not for a gift whose savepoint was. On a real PostgreSQL server.

use seawall_sql::transaction::{Transactions, scoped};
use seawall_testkit::servers::Postgres as Server;
use sqlx::{Executor, PgPool, Postgres};

/// Places an order. A gift is added if there is one left; the order does not depend on it.
async fn place_order(transactions: &Transactions<Postgres>, order: i64, stock: i64) -> anyhow::Result<()> {
    transactions
        .run(|tx| {
            scoped(async move {
                sqlx::query("INSERT INTO orders (id) VALUES ($1)").bind(order).execute(&mut **tx).await?;
                tx.after_commit(move || async move { println!("order {order}: confirmation sent") });
                let gift = tx.run(|tx| {
                    scoped(async move {
                        tx.after_commit(move || async move { println!("order {order}: a gift is packed") });
                        sqlx::query("UPDATE gifts SET remaining = remaining - 1")
                            .execute(&mut **tx)
                            .await
                            .map(|_| ())
                    })
                });
                if gift.await.is_err() {
                    println!("order {order}: no gift left");
                }
                anyhow::ensure!(stock > 0, "order {order}: out of stock");
                anyhow::Ok(())
            })
        })
        .await
        .map_err(|error| anyhow::Error::from_boxed(error.into_boxed()))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start()?;
    let pool = PgPool::connect(server.database()?.url()).await?;
    pool.execute("CREATE TABLE orders (id BIGINT PRIMARY KEY)").await?;
    pool.execute("CREATE TABLE gifts (remaining INT CHECK (remaining >= 0)); INSERT INTO gifts VALUES (1)")
        .await?;
    let transactions = Transactions::new(pool.clone());

    place_order(&transactions, 1, 5).await?;
    place_order(&transactions, 2, 5).await?;
    let error = place_order(&transactions, 3, 0).await.expect_err("there is no stock");
    println!("{error}");

    let orders: Vec<i64> = sqlx::query_scalar("SELECT id FROM orders ORDER BY id").fetch_all(&pool).await?;
    println!("orders {orders:?}");
    Ok(())
}
