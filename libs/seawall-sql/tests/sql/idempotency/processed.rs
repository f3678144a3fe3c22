use std::time::Duration;

use seawall_sql::postgres::idempotency as on_postgres;
use seawall_sql::sqlite::idempotency as on_sqlite;

use super::{postgres_pool, sqlite_pool};

const EVENT: &str = "0192f8a0-1111-7abc-8def-0123456789ab";

/// CRD-2: an event that was processed before is found without an error, and the transaction goes on.
#[tokio::test]
async fn crd_2_a_processed_event_does_not_fail_the_transaction() {
    let pool = postgres_pool().await;
    for expected in [true, false] {
        let mut transaction = pool.begin().await.unwrap();
        assert_eq!(on_postgres::record_processed(&mut transaction, EVENT).await.unwrap(), expected);
        let wrong = on_postgres::record_processed(&mut transaction, "42").await.unwrap_err();
        assert!(wrong.to_string().contains("not a UUID"), "{wrong}");
        sqlx::query("SELECT 1").execute(&mut *transaction).await.unwrap();
        transaction.commit().await.unwrap();
    }
    // A program in another language inserts into the same table.
    let other = "INSERT INTO processed_events (event_id) VALUES (gen_random_uuid()) RETURNING event_id::text";
    let other: String = sqlx::query_scalar(other).fetch_one(&pool).await.unwrap();
    let mut connection = pool.acquire().await.unwrap();
    assert!(!on_postgres::record_processed(&mut connection, &other.to_uppercase()).await.unwrap());
    assert_eq!(on_postgres::remove_processed(&pool, Duration::from_secs(60), 10).await.unwrap(), 0);
    assert_eq!(on_postgres::remove_processed(&pool, Duration::ZERO, 10).await.unwrap(), 2);
}

/// CRD-2: two consumers in one database both process the same event, each of them once.
#[tokio::test]
async fn crd_2_each_consumer_processes_an_event_once() {
    let pool = postgres_pool().await;
    let folder = tempfile::tempdir().unwrap();
    let file = sqlite_pool(&folder).await;
    let (mut server, mut file) = (pool.acquire().await.unwrap(), file.acquire().await.unwrap());
    for expected in [true, false] {
        for consumer in ["mail", "stock", ""] {
            let on_server = on_postgres::record_processed_by(&mut server, consumer, EVENT).await.unwrap();
            let on_file = on_sqlite::record_processed_by(&mut file, consumer, EVENT).await.unwrap();
            assert_eq!((on_server, on_file), (expected, expected), "{consumer}");
        }
    }
    assert!(!on_postgres::record_processed(&mut server, EVENT).await.unwrap());
    assert!(!on_sqlite::record_processed(&mut file, EVENT).await.unwrap());
    assert_eq!(on_postgres::remove_processed(&pool, Duration::ZERO, 2).await.unwrap(), 2, "by rows");
    assert_eq!(on_postgres::remove_processed(&pool, Duration::ZERO, 2).await.unwrap(), 1, "by rows");
}

/// CRD-2: a rollback takes the record with it, and a second transaction waits for the first one.
#[tokio::test]
async fn crd_2_a_rollback_makes_the_event_new_again() {
    let pool = postgres_pool().await;
    let mut first = pool.begin().await.unwrap();
    assert!(on_postgres::record_processed(&mut first, EVENT).await.unwrap());
    let mut second = pool.begin().await.unwrap();
    let (waited, ()) = tokio::join!(on_postgres::record_processed(&mut second, EVENT), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        first.rollback().await.unwrap();
    });
    assert!(waited.unwrap(), "the first one was rolled back, and the second one skipped the event");
}

/// CRD-2: the same on SQLite.
#[tokio::test]
async fn crd_2_events_are_processed_once_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let pool = sqlite_pool(&folder).await;
    for (commits, expected) in [(false, true), (true, true), (true, false)] {
        let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
        assert_eq!(on_sqlite::record_processed(&mut transaction, EVENT).await.unwrap(), expected);
        if commits { transaction.commit().await.unwrap() } else { transaction.rollback().await.unwrap() }
    }
    assert_eq!(on_sqlite::remove_processed(&pool, Duration::from_secs(60), 10).await.unwrap(), 0);
    assert_eq!(on_sqlite::remove_processed(&pool, Duration::ZERO, 10).await.unwrap(), 1);
}
