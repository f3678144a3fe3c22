mod chaos;
mod parked;
mod relay;
mod short_way;

use std::sync::Arc;

use seawall_dist::Message;
use seawall_dist::outbox::OutboxStore;
use seawall_sql::postgres::{self, outbox::PostgresOutbox};
use seawall_sql::sqlite::{self, outbox::SqliteOutbox};
use seawall_testkit::conformance::{OutboxUnderTest, TestFuture, TestTransaction, outbox};
use seawall_testkit::servers::Postgres;
use sqlx::{PgPool, SqlitePool};

pub(crate) async fn pool() -> PgPool {
    let pool = PgPool::connect(Postgres::shared().database().unwrap().url()).await.unwrap();
    postgres::migrate(&pool).await.unwrap();
    pool
}

struct OnPostgres(PgPool);

impl OutboxUnderTest for OnPostgres {
    fn store(&self) -> Arc<dyn OutboxStore> {
        Arc::new(PostgresOutbox::new(self.0.clone()))
    }

    fn begin(&self) -> TestFuture<'_, Box<dyn TestTransaction>> {
        Box::pin(async {
            let open =
                PostgresTransaction(PostgresOutbox::new(self.0.clone()), self.0.begin().await.unwrap());
            Box::new(open) as Box<dyn TestTransaction>
        })
    }
}

struct PostgresTransaction(PostgresOutbox, sqlx::Transaction<'static, sqlx::Postgres>);

impl TestTransaction for PostgresTransaction {
    fn enqueue<'a>(&'a mut self, message: &'a Message) -> TestFuture<'a, ()> {
        Box::pin(async { self.0.enqueue(&mut self.1, message).await.unwrap() })
    }

    fn commit(self: Box<Self>) -> TestFuture<'static, ()> {
        Box::pin(async { self.1.commit().await.unwrap() })
    }

    fn rollback(self: Box<Self>) -> TestFuture<'static, ()> {
        Box::pin(async { self.1.rollback().await.unwrap() })
    }
}

/// CRD-3: the outbox on PostgreSQL holds what every outbox has to hold.
#[tokio::test]
async fn crd_3_the_outbox_on_postgres_conforms() {
    outbox(&OnPostgres(pool().await)).await;
}

struct OnSqlite(SqlitePool);

impl OutboxUnderTest for OnSqlite {
    fn store(&self) -> Arc<dyn OutboxStore> {
        Arc::new(SqliteOutbox::new(self.0.clone()))
    }

    fn begin(&self) -> TestFuture<'_, Box<dyn TestTransaction>> {
        Box::pin(async {
            let transaction = self.0.begin_with("BEGIN IMMEDIATE").await.unwrap();
            Box::new(SqliteTransaction(SqliteOutbox::new(self.0.clone()), transaction))
                as Box<dyn TestTransaction>
        })
    }

    fn has_concurrent_writers(&self) -> bool {
        false
    }
}

struct SqliteTransaction(SqliteOutbox, sqlx::Transaction<'static, sqlx::Sqlite>);

impl TestTransaction for SqliteTransaction {
    fn enqueue<'a>(&'a mut self, message: &'a Message) -> TestFuture<'a, ()> {
        Box::pin(async { self.0.enqueue(&mut self.1, message).await.unwrap() })
    }

    fn commit(self: Box<Self>) -> TestFuture<'static, ()> {
        Box::pin(async { self.1.commit().await.unwrap() })
    }

    fn rollback(self: Box<Self>) -> TestFuture<'static, ()> {
        Box::pin(async { self.1.rollback().await.unwrap() })
    }
}

/// CRD-3: the outbox on SQLite holds what every outbox has to hold.
#[tokio::test]
async fn crd_3_the_outbox_on_sqlite_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let pool = sqlite::open(&folder.path().join("outbox.db")).await.unwrap();
    sqlite::migrate(&pool).await.unwrap();
    outbox(&OnSqlite(pool)).await;
}

/// The page has the schema as it is.
#[test]
fn the_page_has_the_schema_of_the_migration() {
    let step = seawall_sql::POSTGRES_MIGRATIONS.iter().find(|step| step.name == "0003_outbox").unwrap();
    assert!(
        include_str!("../../docs/outbox.md").contains(step.sql),
        "copy the migration into docs/outbox.md"
    );
}

/// CRD-3: what can't be stored is refused before it is sent to the database, so that the transaction goes on. Headers may hold
/// anything.
#[tokio::test]
async fn crd_3_names_that_can_not_be_stored_are_refused_before_they_are_sent() {
    let pool = pool().await;
    let server = PostgresOutbox::new(pool.clone());
    let folder = tempfile::tempdir().unwrap();
    let file = sqlite::open(&folder.path().join("test.db")).await.unwrap();
    sqlite::migrate(&file).await.unwrap();
    let on_file = SqliteOutbox::new(file.clone());
    let long = super::dead_letter::noise(1_500);
    let refused = [
        Message::new("created", long.clone() + &long, ""),
        Message::new("created", long.as_str(), "").with_topic(long.as_str()),
        Message::new("cre\0ated", "a", ""),
        Message::new("created", "a\0", ""),
        Message::new("created", "a", "").with_topic("\0"),
        Message::new("created", "a", "").with_event_id("\0"),
    ];
    let (mut transaction, mut writer) =
        (pool.begin().await.unwrap(), file.begin_with("BEGIN IMMEDIATE").await.unwrap());
    for message in &refused {
        let errors = [
            server.enqueue(&mut transaction, message).await.unwrap_err(),
            server.enqueue_all(&mut transaction, std::slice::from_ref(message)).await.unwrap_err(),
            on_file.enqueue(&mut writer, message).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.fault(), seawall::Fault::business().ran(seawall::Ran::No), "{error}");
        }
    }
    let kept = Message::new("created", long, "").with_header("a\0", "b\0\n\\0");
    server.enqueue(&mut transaction, &kept).await.unwrap();
    on_file.enqueue(&mut writer, &kept).await.unwrap();
    transaction.commit().await.unwrap();
    writer.commit().await.unwrap();
    let stores: [&dyn OutboxStore; 2] = [&server, &on_file];
    for store in stores {
        let request = seawall_dist::outbox::BatchRequest::new("me", 10, 16, seawall::secs(5));
        let batch = store.claim(&request).await.unwrap().unwrap();
        assert_eq!(batch.rows[0].message, kept);
    }
}

/// CRD-3: a poll that finds nothing to do reads only: it does not wait for a writer, and no writer waits for it.
#[tokio::test]
async fn crd_3_an_idle_poll_on_sqlite_takes_no_write_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.db");
    let file = sqlite::open(&path).await.unwrap();
    sqlite::migrate(&file).await.unwrap();
    let impatient =
        sqlx::sqlite::SqliteConnectOptions::new().filename(&path).busy_timeout(seawall::millis(0));
    let outbox = SqliteOutbox::new(SqlitePool::connect_with(impatient).await.unwrap());
    outbox.store(&[Message::new("created", "a", "")]).await.unwrap();
    let request = seawall_dist::outbox::BatchRequest::new("me", 10, 16, seawall::secs(60));
    let idle = async |why: &str| {
        let writer = file.begin_with("BEGIN IMMEDIATE").await.unwrap();
        let claimed = outbox.claim(&request).await;
        assert!(matches!(claimed, Ok(None)), "a poll of rows that {why} took the write lock: {claimed:?}");
        writer.rollback().await.unwrap();
    };
    let batch = outbox.claim(&request).await.unwrap().unwrap();
    idle("are leased").await;
    let kind = seawall_dist::outbox::OutcomeKind::Failed {
        delay: seawall::secs(60),
        error: String::new(),
        outage: false,
    };
    let outcome = seawall_dist::outbox::RowOutcome { id: batch.rows[0].id, kind };
    outbox.record(&batch.lease, &[outcome], seawall_dist::outbox::Retention::Delete).await.unwrap();
    idle("are not due").await;
}
