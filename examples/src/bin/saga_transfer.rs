//! A transfer between accounts as a saga on PostgreSQL: one that completes, one that is undone, one whose process goes away.

use std::sync::Arc;

use anyhow::anyhow;
use seawall::{millis, secs};
use seawall_dist::saga::{
    CompensationMark, NewSaga, Saga, SagaEnd, SagaStep, Sagas, StepContext, StepError, StepMark,
};
use seawall_sql::postgres::saga::{PostgresSagaStore, mark_compensation, mark_step};
use seawall_sql::step_error;
use seawall_testkit::servers::Postgres;
use sqlx::PgPool;

/// The input of a saga: `from to amount`.
fn order(context: &StepContext) -> anyhow::Result<(i32, i32, i64)> {
    let text = std::str::from_utf8(&context.input)?;
    let mut words = text.split(' ');
    let mut word = || words.next().ok_or_else(|| anyhow!("an order has three words"));
    Ok((word()?.parse()?, word()?.parse()?, word()?.parse()?))
}

/// Changes a balance and marks the step, in one transaction: once per key, and never after the compensation.
async fn book(pool: &PgPool, key: &str, account: i32, amount: i64) -> anyhow::Result<()> {
    let mut transaction = seawall_sql::transaction::begin(pool).await.map_err(step_error)?;
    match mark_step(&mut transaction, key).await? {
        StepMark::Repeated => return Ok(()),
        StepMark::Refused => Err(StepError::permanent("the step was compensated"))?,
        StepMark::First => {}
    }
    let update = "UPDATE accounts SET balance = balance + $2 WHERE id = $1 AND open AND balance + $2 >= 0";
    let done = sqlx::query(update)
        .bind(account)
        .bind(amount)
        .execute(&mut *transaction)
        .await
        .map_err(step_error)?;
    if done.rows_affected() == 0 {
        Err(StepError::permanent(format!("account {account} is closed or has not enough")))?;
    }
    transaction.commit().await.map_err(step_error)?;
    Ok(())
}

/// Takes back what was booked under the key, if anything was. From then on a late booking is refused.
async fn take_back(pool: &PgPool, key: &str, account: i32, amount: i64) -> anyhow::Result<()> {
    let mut transaction = seawall_sql::transaction::begin(pool).await.map_err(step_error)?;
    if mark_compensation(&mut transaction, key).await? == CompensationMark::Undo {
        let update = "UPDATE accounts SET balance = balance - $2 WHERE id = $1";
        sqlx::query(update)
            .bind(account)
            .bind(amount)
            .execute(&mut *transaction)
            .await
            .map_err(step_error)?;
    }
    transaction.commit().await.map_err(step_error)?;
    Ok(())
}

fn transfer(pool: &PgPool) -> anyhow::Result<Saga> {
    let (debit, no_debit) = (pool.clone(), pool.clone());
    let (credit, no_credit) = (pool.clone(), pool.clone());
    let debit = SagaStep::new("debit", move |context| {
        let pool = debit.clone();
        async move {
            let (from, _, amount) = order(&context)?;
            book(&pool, &context.key, from, -amount).await
        }
    })
    .compensate(move |context| {
        let pool = no_debit.clone();
        async move {
            let (from, _, amount) = order(&context)?;
            take_back(&pool, &context.key, from, -amount).await
        }
    });
    let credit = SagaStep::new("credit", move |context| {
        let pool = credit.clone();
        async move {
            let (_, to, amount) = order(&context)?;
            book(&pool, &context.key, to, amount).await
        }
    })
    .compensate(move |context| {
        let pool = no_credit.clone();
        async move {
            let (_, to, amount) = order(&context)?;
            take_back(&pool, &context.key, to, amount).await
        }
    });
    Ok(Saga::builder("transfer", 1).step(debit).step(credit).build()?)
}

async fn balances(pool: &PgPool) -> anyhow::Result<Vec<i64>> {
    Ok(sqlx::query_scalar("SELECT balance FROM accounts ORDER BY id").fetch_all(pool).await?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Postgres::start()?;
    let pool = PgPool::connect(server.database()?.url()).await?;
    seawall_sql::postgres::migrate(&pool).await?;
    sqlx::query("CREATE TABLE accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL, open BOOL NOT NULL)")
        .execute(&pool)
        .await?;
    sqlx::query("INSERT INTO accounts VALUES (1, 100, true), (2, 100, true), (3, 100, false)")
        .execute(&pool)
        .await?;

    let store = Arc::new(PostgresSagaStore::new(pool.clone()));
    let sagas = Sagas::builder(store).register(transfer(&pool)?).lease(secs(1)).build()?;

    let end = sagas.start(NewSaga::new("transfer", "t1", "1 2 30").entity("account:1")).await?;
    println!(
        "to an open account: completed {}, balances {:?}",
        matches!(end, SagaEnd::Completed(_)),
        balances(&pool).await?
    );

    let end = sagas.start(NewSaga::new("transfer", "t2", "1 3 30").entity("account:1")).await?;
    if let SagaEnd::Compensated { reason } = end {
        println!("to a closed account: {reason}; balances {:?}", balances(&pool).await?);
    }

    // A caller that goes away in the middle. While its lease lasts, nobody else drives the saga; then a monitor does.
    let start = sagas.start(NewSaga::new("transfer", "t3", "2 1 30").entity("account:2"));
    let _ = tokio::time::timeout(millis(3), start).await;
    while sagas.get("t3").await?.is_some_and(|saga| saga.state.is_active()) {
        sagas.run_due().await?;
        tokio::time::sleep(millis(50)).await;
    }
    let ended = sagas.get("t3").await?.map(|saga| saga.state.name());
    println!(
        "a caller that went away: {}, the sum is {}",
        ended.unwrap_or("never stored"),
        balances(&pool).await?.iter().sum::<i64>()
    );
    Ok(())
}
