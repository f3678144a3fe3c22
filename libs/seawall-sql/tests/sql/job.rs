//! Scheduled jobs on real databases.

use std::sync::Arc;

use seawall_dist::schedule::JobStore;
use seawall_sql::postgres::job::PostgresJobStore;
use seawall_sql::sqlite::job::SqliteJobStore;
use seawall_sql::{postgres, sqlite};
use seawall_testkit::conformance::{self, job_processes};
use seawall_testkit::servers::{Postgres, worker_settings};
use sqlx::PgPool;
use tokio::runtime::Runtime;

/// The store at an address: a URL of PostgreSQL, or the path of a file of SQLite.
async fn store(address: &str) -> Arc<dyn JobStore> {
    if address.starts_with("postgres:") {
        let pool = PgPool::connect(address).await.unwrap();
        postgres::migrate(&pool).await.unwrap();
        Arc::new(PostgresJobStore::new(pool))
    } else {
        let pool = sqlite::open(address.as_ref()).await.unwrap();
        sqlite::migrate(&pool).await.unwrap();
        Arc::new(SqliteJobStore::new(pool))
    }
}

/// CRD-6: the store on PostgreSQL keeps the contract of every store of jobs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_6_postgres_is_a_job_store() {
    conformance::job(store(Postgres::shared().database().unwrap().url()).await).await;
}

/// CRD-6: the store on SQLite keeps the contract of every store of jobs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_6_sqlite_is_a_job_store() {
    let folder = tempfile::tempdir().unwrap();
    conformance::job(store(folder.path().join("jobs.db").to_str().unwrap()).await).await;
}

#[test]
fn job_worker() {
    let Some(settings) = worker_settings() else { return };
    Runtime::new().unwrap().block_on(async {
        job_processes::run_worker(store(&settings["ADDRESS"]).await, &settings).await;
    });
}

fn ticks() -> u32 {
    if std::env::var_os("SEAWALL_LONG").is_some() { 200 } else { 40 }
}

/// CRD-6: a job fires once per tick across three processes that are killed, for each missed-run policy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_6_a_job_fires_once_per_tick_across_processes_on_postgres() {
    let (database, folder) = (Postgres::shared().database().unwrap(), tempfile::tempdir().unwrap());
    let (store, address) = (store(database.url()).await, database.url());
    let report =
        job_processes::fires_once_per_tick(store, "job::job_worker", address, folder.path(), ticks()).await;
    println!("PostgreSQL: {report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_6_a_job_fires_once_per_tick_across_processes_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let (store, address) = (store(path.to_str().unwrap()).await, path.to_str().unwrap());
    let report =
        job_processes::fires_once_per_tick(store, "job::job_worker", address, folder.path(), ticks()).await;
    println!("SQLite: {report}");
}
