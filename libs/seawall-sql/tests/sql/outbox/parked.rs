//! Rows that wait for an earlier one of their aggregate, as they are in the table.

use std::time::Duration;

use seawall::{millis, secs};
use seawall_dist::Message;
use seawall_dist::outbox::{Batch, BatchRequest, OutboxStore, OutcomeKind, Retention, RowOutcome};
use seawall_sql::postgres::outbox::PostgresOutbox;
use sqlx::PgPool;

use super::pool;

const ROWS: usize = 500;
const BATCH: u32 = 20;

async fn claim(outbox: &PostgresOutbox) -> Batch {
    for _ in 0..500 {
        if let Some(batch) = outbox.claim(&BatchRequest::new("me", BATCH, 16, secs(60))).await.unwrap() {
            if !batch.rows.is_empty() {
                return batch;
            }
            outbox.record(&batch.lease, &[], Retention::Delete).await.unwrap();
        }
        tokio::time::sleep(millis(10)).await;
    }
    panic!("no row was found within five seconds");
}

/// Records the batch: rows before this place were published, and those from it on have this outcome.
async fn record(outbox: &PostgresOutbox, batch: &Batch, published: usize, rest: &OutcomeKind) {
    let outcomes: Vec<RowOutcome> = batch
        .rows
        .iter()
        .enumerate()
        .map(|(place, row)| {
            let kind = if place < published { OutcomeKind::Published } else { rest.clone() };
            RowOutcome { id: row.id, kind }
        })
        .collect();
    outbox.record(&batch.lease, &outcomes, Retention::Delete).await.unwrap();
}

async fn due(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM seawall_outbox WHERE due_at <= now()")
        .fetch_one(pool)
        .await
        .unwrap()
}

fn failed() -> OutcomeKind {
    OutcomeKind::Failed { delay: secs(600), error: "no broker".into(), outage: true }
}

/// Ends the wait of the rows that failed.
async fn end_wait(pool: &PgPool) {
    let update = "UPDATE seawall_outbox SET due_at = now() WHERE failure_count > 0";
    sqlx::query(update).execute(pool).await.unwrap();
}

/// CRD-3: rows behind one that failed are parked at once, and woken in portions that the next batches can take. More would be
/// parked again with the next failure.
#[tokio::test]
async fn crd_3_rows_behind_a_failed_one_are_parked_together_and_woken_in_portions() {
    let pool = pool().await;
    let outbox = PostgresOutbox::new(pool.clone());
    let messages: Vec<Message> = (0..ROWS).map(|_| Message::new("Tested", "a", "")).collect();
    outbox.store(&messages).await.unwrap();
    record(&outbox, &claim(&outbox).await, 0, &failed()).await;
    let empty = outbox.claim(&BatchRequest::new("me", BATCH, 16, secs(60))).await.unwrap().unwrap();
    assert_eq!((empty.rows.len(), due(&pool).await), (0, 0), "all rows are parked by one claim");
    outbox.record(&empty.lease, &[], Retention::Delete).await.unwrap();

    // All of the first batch failed: they come again together, and wake the next ones when they are published.
    end_wait(&pool).await;
    let again = claim(&outbox).await;
    assert_eq!(again.rows.len(), BATCH as usize);
    record(&outbox, &again, 5, &failed()).await;
    assert_eq!(due(&pool).await, 0, "rows were woken behind one that failed");
    end_wait(&pool).await;
    let again = claim(&outbox).await;
    assert_eq!(again.rows.len(), BATCH as usize - 5);
    record(&outbox, &again, ROWS, &failed()).await;
    let woken = due(&pool).await;
    assert!((15..=40).contains(&woken), "{woken} rows were woken by 15 that were published");
}

/// CRD-3: a relay that is told to stop gives rows back. They stay before the later rows of their aggregate, however many these are.
#[tokio::test]
async fn crd_3_rows_that_are_given_back_keep_their_place() {
    let pool = pool().await;
    let outbox = PostgresOutbox::new(pool.clone());
    let messages: Vec<Message> = (0..ROWS).map(|number| Message::new(format!("{number}"), "a", "")).collect();
    outbox.store(&messages).await.unwrap();
    let first = claim(&outbox).await;
    record(&outbox, &first, 3, &OutcomeKind::Returned { delay: Duration::ZERO }).await;
    let next = outbox.claim(&BatchRequest::new("me", BATCH, 16, secs(60))).await.unwrap().unwrap();
    let names: Vec<&str> = next.rows.iter().map(|row| row.message.event_type()).collect();
    let expected: Vec<String> = (3..3 + BATCH).map(|number| number.to_string()).collect();
    assert_eq!(names, expected, "the first claim finds the rows that were given back");
    assert_eq!(next.rows[0].attempts, 1, "a row that was given back has its attempt back");
}
