//! The log lines of a failover and of hooks, as a subscriber sees them.

use seawall::{Breaker, Guard, millis, secs};
use seawall_sql::failover::{SqlFailover, pool_options};
use seawall_sql::transaction::{in_transaction, scoped};
use seawall_testkit::observe::Lines;
use seawall_testkit::servers::Postgres;
use sqlx::PgPool;

/// ADP-9, OBS-1: the lines of a failover say who answered with how many rows, each switch, and that both failed.
#[tokio::test]
async fn obs_1_a_failover_writes_its_lines() {
    let lines = Lines::collect();
    let url = Postgres::shared().database().unwrap().url().to_owned();
    let nowhere = "postgres://nobody@127.0.0.1:1/none";
    let build = |primary: &str, secondary: &str| {
        let side = |url: &str| pool_options().acquire_timeout(millis(200)).connect_lazy(url).unwrap();
        let guard = |name: &str| {
            let breaker = Breaker::consecutive_failures(1).cooldown(secs(60));
            Guard::builder(name).attempt_timeout(secs(5)).no_retry().breaker(breaker).build().unwrap()
        };
        let builder = SqlFailover::builder("DataSource").guarded_side(guard("one"), side(primary));
        builder.guarded_side(guard("two"), side(secondary)).build().unwrap()
    };
    let rows = |pool: PgPool| async move {
        sqlx::query_scalar::<_, i32>("SELECT * FROM generate_series(1, 3)").fetch_all(&pool).await
    };

    build(&url, nowhere).read(rows).await.unwrap();
    let line = lines.find("INFO [DataSource][primary] Query success.");
    assert!(line.contains(" rows=3") && line.contains(" duration="), "{line}");

    let second = build(nowhere, &url);
    second.read(rows).await.unwrap();
    let line = lines.find("WARN [DataSource][Failover] primary failed, switching to secondary.");
    assert!(line.contains(" duration=") && line.contains(" cause=\"pool timed out"), "{line}");
    let line = lines.find("INFO [DataSource][secondary] Failover success.");
    assert!(line.contains(" rows=3"), "{line}");
    drop(lines.take());
    second.read(rows).await.unwrap();
    let line = lines.find("WARN [DataSource][Failover] primary failed, switching to secondary.");
    assert!(line.contains(" cause=\"circuit open\""), "{line}");

    build(nowhere, nowhere).read(rows).await.unwrap_err();
    let line = lines.find("ERROR [DataSource][Failover] Both primary and secondary failed!");
    assert!(line.contains(" cause="), "{line}");

    let wrong = |pool: PgPool| async move { sqlx::query("SELECT nothing").fetch_all(&pool).await };
    build(&url, nowhere).read(wrong).await.unwrap_err();
    let line = lines.find("WARN [DataSource][primary] Query failed!");
    assert!(line.contains(" cause="), "{line}");
}

/// ADP-9, OBS-1: a hook that fails needs a person.
#[tokio::test]
async fn obs_1_a_hook_that_fails_is_an_error() {
    let lines = Lines::collect();
    let pool = PgPool::connect(Postgres::shared().database().unwrap().url()).await.unwrap();
    let work = in_transaction(&pool, |tx| {
        scoped(async move {
            tx.after_commit(|| async { Err::<(), _>("mail is down") });
            Ok::<_, sqlx::Error>(())
        })
    });
    work.await.unwrap();
    let line = lines.find("ERROR [Transaction][AfterCommit] Failed!");
    assert!(line.contains(" hook=1") && line.contains("mail is down"), "{line}");
}
