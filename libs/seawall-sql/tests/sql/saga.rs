//! Sagas on real databases: a transfer between accounts, killed wherever it writes.
#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod bank;
mod count;
mod drops;
mod kill;
mod mark;
mod outage;
mod takeover;
mod unreadable;

use std::sync::Arc;

use bank::Bank;
use seawall_testkit::conformance;

/// CRD-5: the store on PostgreSQL keeps the contract of every store of sagas.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_5_postgres_is_a_saga_store() {
    let bank = Bank::postgres().await;
    conformance::saga(Arc::clone(&bank.store)).await;
}

/// CRD-5: the store on SQLite keeps the contract of every store of sagas.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_5_sqlite_is_a_saga_store() {
    let bank = Bank::sqlite().await;
    conformance::saga(Arc::clone(&bank.store)).await;
}
