use seawall_dist::lock::{FencingSource as _, LockKey};
use seawall_sql::{POSTGRES_MIGRATIONS, Part, SQLITE_MIGRATIONS, postgres, sqlite};
use seawall_testkit::servers::Postgres;
use sqlx::{PgPool, SqlitePool};

/// The schema is applied once, also when several processes apply it at the same time, and a second time changes nothing.
#[tokio::test]
async fn migrations_are_applied_once_on_postgres() {
    let pool = PgPool::connect(Postgres::shared().database().unwrap().url()).await.unwrap();
    let (first, second, third) =
        tokio::join!(postgres::migrate(&pool), postgres::migrate(&pool), postgres::migrate(&pool));
    first.and(second).and(third).unwrap();
    let count: i64 =
        sqlx::query_scalar("SELECT count(*) FROM seawall_migrations").fetch_one(&pool).await.unwrap();
    assert_eq!(usize::try_from(count), Ok(POSTGRES_MIGRATIONS.len()));
}

#[tokio::test]
async fn migrations_are_applied_once_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let pool = sqlite::open(&folder.path().join("test.db")).await.unwrap();
    let (first, second, third) =
        tokio::join!(sqlite::migrate(&pool), sqlite::migrate(&pool), sqlite::migrate(&pool));
    first.and(second).and(third).unwrap();
    let count: i64 =
        sqlx::query_scalar("SELECT count(*) FROM seawall_migrations").fetch_one(&pool).await.unwrap();
    assert_eq!(usize::try_from(count), Ok(SQLITE_MIGRATIONS.len()));
}

/// Both databases know the same steps, so that a page can name them once.
#[test]
fn both_databases_have_the_same_steps() {
    let names = |steps: &[seawall_sql::Migration]| steps.iter().map(|step| step.name).collect::<Vec<_>>();
    assert_eq!(names(POSTGRES_MIGRATIONS), names(SQLITE_MIGRATIONS));
}

/// The names of all tables that are there.
async fn postgres_tables(pool: &PgPool) -> Vec<String> {
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";
    sqlx::query_scalar(tables).fetch_all(pool).await.unwrap()
}

async fn sqlite_tables(pool: &SqlitePool) -> Vec<String> {
    let tables =
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1";
    sqlx::query_scalar(tables).fetch_all(pool).await.unwrap()
}

/// Files that another tool has applied are no obstacle, and nothing that was stored since is changed.
#[tokio::test]
async fn migrations_follow_those_of_another_tool() {
    let pool = PgPool::connect(Postgres::shared().database().unwrap().url()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = sqlite::open(&folder.path().join("test.db")).await.unwrap();
    for (server, sqlite) in POSTGRES_MIGRATIONS.iter().zip(SQLITE_MIGRATIONS) {
        sqlx::raw_sql(server.sql).execute(&pool).await.unwrap();
        sqlx::raw_sql(sqlite.sql).execute(&file).await.unwrap();
    }
    let (locks, key) =
        (sqlite::lock::SqliteLocks::new(file.clone()), LockKey::new("lock:transaction:user:1").unwrap());
    let token = locks.next_token(&key).await.unwrap();
    postgres::migrate(&pool).await.unwrap();
    sqlite::migrate(&file).await.unwrap();
    assert!(locks.next_token(&key).await.unwrap() > token, "a counter began anew");
    let rows: i64 =
        sqlx::query_scalar("SELECT count(*) FROM seawall_outbox_tokens").fetch_one(&file).await.unwrap();
    assert_eq!(rows, 1);
}

/// A database that needs one part has the tables of that part alone, and may get others later.
#[tokio::test]
async fn parts_are_migrated_by_themselves() {
    let pool = PgPool::connect(Postgres::shared().database().unwrap().url()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = sqlite::open(&folder.path().join("test.db")).await.unwrap();
    postgres::migrate_parts(&pool, &[Part::Locks, Part::DeadLetters]).await.unwrap();
    sqlite::migrate_parts(&file, &[Part::Locks, Part::DeadLetters]).await.unwrap();
    assert_eq!(postgres_tables(&pool).await, ["seawall_dead_letters", "seawall_locks", "seawall_migrations"]);
    let tables = ["seawall_dead_letters", "seawall_lock_fence", "seawall_locks", "seawall_migrations"];
    assert_eq!(sqlite_tables(&file).await, tables);
    postgres::migrate(&pool).await.unwrap();
    sqlite::migrate(&file).await.unwrap();
    for table in postgres_tables(&pool).await.into_iter().chain(sqlite_tables(&file).await) {
        // The name of this one is what programs in other languages use.
        assert!(table.starts_with("seawall_") || table == "processed_events", "`{table}` may be the user's");
    }
}
