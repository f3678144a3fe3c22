use seawall_sql::{POSTGRES_MIGRATIONS, SQLITE_MIGRATIONS, postgres, sqlite};
use seawall_testkit::servers::Postgres;
use sqlx::PgPool;

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
