//! Claims that go the short way, past rows that are gone and can't be removed.

use std::time::Duration;

use seawall::{millis, secs};
use seawall_dist::Message;
use seawall_dist::outbox::{BatchRequest, OutboxStore, OutcomeKind, Retention, RowOutcome};
use seawall_sql::postgres::{self, outbox::PostgresOutbox};
use seawall_testkit::servers::Postgres;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use super::pool;

fn message(aggregate: &str, name: &str) -> Message {
    Message::new(name, aggregate, "").with_topic("orders")
}

/// Claims once and publishes what was found: the names of the messages.
async fn publish(outbox: &PostgresOutbox) -> Vec<String> {
    publish_some(outbox, 1_000, 16).await
}

async fn publish_some(outbox: &PostgresOutbox, rows: u32, lanes: u32) -> Vec<String> {
    let request = BatchRequest::new("me", rows, lanes, secs(60));
    let Some(batch) = outbox.claim(&request).await.unwrap() else { return Vec::new() };
    let outcome = |id| RowOutcome { id, kind: OutcomeKind::Published };
    let outcomes: Vec<RowOutcome> = batch.rows.iter().map(|row| outcome(row.id)).collect();
    outbox.record(&batch.lease, &outcomes, Retention::Delete).await.unwrap();
    batch.rows.iter().map(|row| row.message.event_type().to_owned()).collect()
}

/// Claims until something was found.
async fn publish_next(outbox: &PostgresOutbox) -> Vec<String> {
    for _ in 0..500 {
        let published = publish(outbox).await;
        if !published.is_empty() {
            return published;
        }
        tokio::time::sleep(millis(20)).await;
    }
    panic!("nothing was found within ten seconds");
}

/// CRD-3, TRAPS: a row whose transaction commits long after others were published is found, and so is the first row of a lane.
#[tokio::test]
async fn crd_3_a_late_row_and_a_new_lane_are_found_on_the_short_way() {
    let pool = pool().await;
    let outbox = PostgresOutbox::new(pool.clone()).walk_limit(Duration::ZERO);
    // The first claims are walks, and all others go the short way.
    for _ in 0..5 {
        assert_eq!(publish(&outbox).await, Vec::<String>::new());
    }
    outbox.store(&[message("a", "first")]).await.unwrap();
    assert_eq!(publish_next(&outbox).await, ["first"]);
    let mut late = pool.begin().await.unwrap();
    outbox.enqueue(&mut late, &message("a", "late")).await.unwrap();
    let mut is_passed = false;
    for number in 0..1_000 {
        outbox.store(&[message("a", &format!("{number}"))]).await.unwrap();
        assert_eq!(publish_next(&outbox).await, [format!("{number}")]);
        // Within the late transaction `now()` is its beginning, and lanes are seen as they are.
        let passed = "SELECT clear_before > now() FROM seawall_outbox_lanes";
        is_passed = sqlx::query_scalar(passed).fetch_one(&mut *late).await.unwrap();
        if is_passed {
            break;
        }
        tokio::time::sleep(millis(10)).await;
    }
    assert!(is_passed, "the claims never looked past the late row");
    late.commit().await.unwrap();
    outbox.store(&[message("a", "after it")]).await.unwrap();
    let mut published = publish_next(&outbox).await;
    if published.len() < 2 {
        published.extend(publish_next(&outbox).await);
    }
    assert_eq!(published, ["late", "after it"], "the order of the aggregate");
    outbox.store(&[message("b", "of a new lane")]).await.unwrap();
    assert_eq!(publish_next(&outbox).await, ["of a new lane"]);
}

/// How many entries of the index of ready rows were read until now. All is done over the one connection of the first pool.
async fn entries_read(own: &PgPool, others: &PgPool) -> i64 {
    // A session reports its numbers when a transaction of it ends, at most once in a second.
    tokio::time::sleep(millis(1_100)).await;
    sqlx::query("SELECT 1").execute(own).await.unwrap();
    let query = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'seawall_outbox_ready'";
    sqlx::query_scalar(query).fetch_one(others).await.unwrap()
}

/// How many entries ten claims read.
async fn entries_of_claims(outbox: &PostgresOutbox, own: &PgPool, others: &PgPool) -> i64 {
    let before = entries_read(own, others).await;
    for number in 0..10 {
        outbox.store(&[message(&format!("a{number}"), "new")]).await.unwrap();
        publish_next(outbox).await;
    }
    entries_read(own, others).await - before
}

async fn one_connection(pool: &PgPool) -> PgPool {
    let url = pool.connect_options();
    PgPoolOptions::new().max_connections(1).connect_with((*url).clone()).await.unwrap()
}

/// CRD-3: a claim reads about as many rows as it takes, however many wait, and whichever way it goes.
#[tokio::test]
async fn crd_3_a_claim_does_not_read_the_whole_backlog() {
    const ROWS: i64 = 20_000;
    // A server of its own: a transaction of another test keeps what was published in the index.
    let server = Postgres::start().unwrap();
    for limit in [Duration::MAX, Duration::ZERO] {
        let others = PgPool::connect(server.database().unwrap().url()).await.unwrap();
        postgres::migrate(&others).await.unwrap();
        let own = one_connection(&others).await;
        let outbox = PostgresOutbox::new(own.clone()).walk_limit(limit);
        // With no rows, until it goes the short way.
        for _ in 0..6 {
            assert_eq!(publish(&outbox).await, Vec::<String>::new());
        }
        let messages: Vec<Message> =
            (0..ROWS).map(|row| message(&format!("a{}", row % 1_000), "waits")).collect();
        outbox.store(&messages).await.unwrap();
        sqlx::query("ANALYZE seawall_outbox").execute(&others).await.unwrap();
        publish_next(&outbox).await;
        let before = entries_read(&own, &others).await;
        let mut claimed = 0;
        for _ in 0..10 {
            claimed += publish_some(&outbox, 100, 4).await.len();
        }
        let read = entries_read(&own, &others).await - before;
        assert!(claimed >= 500, "{claimed} rows were claimed");
        assert!(
            read < ROWS / 4,
            "{read} entries of {ROWS} were read to claim {claimed} rows, limit {limit:?}"
        );
    }
}

/// TRAPS "Dead tuples / long transactions": while a transaction is held open, claims do not look through all that was published.
#[tokio::test]
async fn crd_3_claims_do_not_wade_through_dead_rows() {
    // Enough that ten claims read more by walking than the walks beside them, which take a tenth of the time.
    const ROWS: i64 = 40_000;
    let others = pool().await;
    let own = one_connection(&others).await;
    let mut held_open = others.begin().await.unwrap();
    sqlx::query("SELECT txid_current()").execute(&mut *held_open).await.unwrap();
    let walking = PostgresOutbox::new(own.clone()).walk_limit(Duration::MAX);
    let messages: Vec<Message> = (0..ROWS).map(|row| message(&format!("a{}", row % 1_000), "gone")).collect();
    walking.store(&messages).await.unwrap();
    while !publish(&walking).await.is_empty() {}
    let walked = entries_of_claims(&walking, &own, &others).await;
    let short = PostgresOutbox::new(own.clone()).walk_limit(Duration::ZERO);
    // The first claims walk, the next one makes a walk begin beside it, and then it is known what to skip.
    for number in 0..20 {
        short.store(&[message(&format!("a{number}"), "new")]).await.unwrap();
        publish_next(&short).await;
        tokio::time::sleep(millis(100)).await;
    }
    let skipped = entries_of_claims(&short, &own, &others).await;
    held_open.rollback().await.unwrap();
    assert!(walked >= 10 * ROWS, "a walk reads every entry: {walked}");
    assert!(skipped < walked / 2, "{skipped} entries were read the short way, and {walked} by walks");
}
