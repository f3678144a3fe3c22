//! Failover between real servers.
#![expect(clippy::disallowed_methods, reason = "callers in tasks of their own")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use seawall::failover::Side;
use seawall::{Breaker, Guard, Kind, millis, secs};
use seawall_sql::failover::{SqlFailover, WritePolicy, pool_options};
use seawall_testkit::servers::Postgres;
use sqlx::postgres::PgRow;
use sqlx::{Executor, PgPool, Row};

/// A server with a table of three rows, and its address.
async fn server(settings: &[&str]) -> (Postgres, String) {
    let builder = settings.iter().fold(Postgres::builder(), |builder, line| builder.setting(line));
    let server = tokio::task::spawn_blocking(move || builder.start().unwrap()).await.unwrap();
    let url = server.database().unwrap().url().to_owned();
    (server, url)
}

async fn fill(url: &str, name: &str) {
    let pool = PgPool::connect(url).await.unwrap();
    pool.execute("CREATE TABLE items (id INT, server TEXT)").await.unwrap();
    let insert = sqlx::query("INSERT INTO items SELECT n, $1 FROM generate_series(1, 3) AS n").bind(name);
    insert.execute(&pool).await.unwrap();
    pool.close().await;
}

fn guard(name: &str) -> Guard {
    let breaker = Breaker::consecutive_failures(3).cooldown(millis(500)).cooldown_max(millis(500));
    Guard::builder(name).attempt_timeout(secs(2)).no_retry().breaker(breaker).build().unwrap()
}

fn pool(url: &str) -> PgPool {
    pool_options().max_connections(8).acquire_timeout(millis(500)).connect_lazy(url).unwrap()
}

fn failover(primary: &str, secondary: &str) -> SqlFailover<sqlx::Postgres> {
    SqlFailover::builder("DataSource")
        .guarded_side(guard("primary"), pool(primary))
        .guarded_side(guard("secondary"), pool(secondary))
        .build()
        .unwrap()
}

async fn items(pool: PgPool) -> Result<Vec<PgRow>, sqlx::Error> {
    sqlx::query("SELECT server FROM items").fetch_all(&pool).await
}

/// ADP-9: one of two servers is killed under load: no read fails. When the server is back, reads go back to it, on the same
/// pool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_9_no_read_fails_while_the_primary_is_killed_under_load() {
    let ((primary, primary_url), (_secondary, secondary_url)) = tokio::join!(server(&[]), server(&[]));
    tokio::join!(fill(&primary_url, "one"), fill(&secondary_url, "two"));
    let data = failover(&primary_url, &secondary_url);
    let (stop, counts) = (Arc::new(AtomicBool::new(false)), Arc::new([AtomicU64::new(0), AtomicU64::new(0)]));
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let (data, stop, counts) = (data.clone(), stop.clone(), counts.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let answer = data.read(items).await.expect("no read fails");
                    let side = answer.side();
                    let expected = if side == Side::PRIMARY { "one" } else { "two" };
                    assert!(
                        answer.len() == 3 && answer.iter().all(|row| row.get::<String, _>(0) == expected)
                    );
                    counts[side.index()].fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let reach = async |side: Side, more: u64| {
        let target = counts[side.index()].load(Ordering::Relaxed) + more;
        while counts[side.index()].load(Ordering::Relaxed) < target {
            assert!(tasks.iter().all(|task| !task.is_finished()), "a read failed");
            tokio::time::sleep(millis(20)).await;
        }
    };
    reach(Side::PRIMARY, 200).await;
    primary.control().kill().unwrap();
    reach(Side::SECONDARY, 500).await;
    primary.control().start().unwrap();
    reach(Side::PRIMARY, 500).await;
    primary.control().stop().unwrap();
    reach(Side::SECONDARY, 500).await;
    primary.control().start().unwrap();
    reach(Side::PRIMARY, 500).await;
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    println!("reads by primary and secondary: {counts:?}");
}

/// ADP-9: a primary that hangs is given up after its attempt timeout, and not asked again until it answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_9_a_primary_that_hangs_is_left() {
    let ((primary, primary_url), (_secondary, secondary_url)) = tokio::join!(server(&[]), server(&[]));
    tokio::join!(fill(&primary_url, "one"), fill(&secondary_url, "two"));
    let data = failover(&primary_url, &secondary_url);
    assert_eq!(data.read(items).await.unwrap().side(), Side::PRIMARY);
    primary.control().pause().unwrap();
    for _ in 0..5 {
        assert_eq!(data.read(items).await.unwrap().side(), Side::SECONDARY);
    }
    primary.control().resume().unwrap();
    let back = async {
        while data.read(items).await.unwrap().side() != Side::PRIMARY {
            tokio::time::sleep(millis(50)).await;
        }
    };
    tokio::time::timeout(secs(30), back).await.expect("the pool of the primary heals");
}

/// ADP-9: writes stay on the primary unless told otherwise, a standby that takes no writes counts as failed, and a fault of the
/// statement is nobody's failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_9_a_side_that_takes_no_writes_has_failed() {
    let (standby, standby_url) = server(&[]).await;
    let (_main, main_url) = server(&[]).await;
    tokio::join!(fill(&standby_url, "one"), fill(&main_url, "two"));
    PgPool::connect(&standby_url)
        .await
        .unwrap()
        .execute("ALTER SYSTEM SET default_transaction_read_only = on")
        .await
        .unwrap();
    standby.control().stop().unwrap();
    standby.control().start().unwrap();
    let insert =
        |pool: PgPool| async move { sqlx::query("INSERT INTO items VALUES (4, 'x')").execute(&pool).await };

    let careful = failover(&standby_url, &main_url);
    for _ in 0..3 {
        let error = careful.write(insert).await.unwrap_err();
        assert_eq!(error.last_fault().did_run(), seawall::Ran::No, "{error}");
    }
    assert_eq!(careful.write(insert).await.unwrap_err().kind(), Kind::Rejected, "the circuit is open");

    let cluster = SqlFailover::builder("DataSource")
        .guarded_side(guard("primary"), pool(&standby_url))
        .guarded_side(guard("secondary"), pool(&main_url))
        .writes(WritePolicy::AnySide)
        .build()
        .unwrap();
    let answer = cluster.write(insert).await.unwrap();
    assert_eq!((answer.side(), answer.rows_affected()), (Side::SECONDARY, 1));
    let wrong =
        |pool: PgPool| async move { sqlx::query("INSERT INTO nothing VALUES (4)").execute(&pool).await };
    for _ in 0..5 {
        let error = cluster.write(wrong).await.unwrap_err();
        assert!(error.previous().is_none(), "a mistake in the statement is not asked elsewhere: {error}");
    }
    assert_eq!(cluster.read(items).await.unwrap().side(), Side::PRIMARY);
}

/// ADP-9: a pool with these options gets over a restart of its server by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_9_a_pool_heals_after_a_restart() {
    let (server, url) = server(&[]).await;
    fill(&url, "one").await;
    let pool = pool_options()
        .max_connections(4)
        .min_connections(2)
        .acquire_timeout(secs(60))
        .connect_lazy(&url)
        .unwrap();
    assert_eq!(items(pool.clone()).await.unwrap().len(), 3);
    for crash in [true, false, true] {
        if crash {
            server.control().kill().unwrap();
        } else {
            server.control().stop().unwrap();
        }
        // A query that begins while the server is away waits for it, connecting again and again.
        let waits = tokio::spawn(items(pool.clone()));
        server.control().start().unwrap();
        assert_eq!(waits.await.unwrap().unwrap().len(), 3);
        for _ in 0..8 {
            assert_eq!(items(pool.clone()).await.unwrap().len(), 3, "no broken connection is handed out");
        }
    }
}

/// PRM-4: a read that is dropped at every poll leaks neither a connection nor a permit.
#[tokio::test]
async fn prm_4_a_read_can_be_dropped_at_every_poll() {
    let url = Postgres::shared().database().unwrap().url().to_owned();
    fill(&url, "one").await;
    let data = failover("postgres://nobody@127.0.0.1:1/none", &url);
    for polls in 0..200 {
        let mut read = Box::pin(data.read(items));
        let (mut left, mut ended) = (polls, false);
        std::future::poll_fn(|cx| {
            if left == 0 {
                return std::task::Poll::Ready(());
            }
            left -= 1;
            let polled = read.as_mut().poll(cx);
            ended = polled.is_ready();
            if left == 0 { std::task::Poll::Ready(()) } else { polled.map(|_| ()) }
        })
        .await;
        drop(read);
        if ended {
            let pool = &data.pools()[1];
            let mut all = Vec::new();
            for _ in 0..pool.options().get_max_connections() {
                all.push(pool.acquire().await.expect("every connection comes back"));
            }
            return;
        }
    }
    panic!("the read does not end");
}

/// ADP-9: the configuration is checked.
#[tokio::test]
async fn adp_9_a_failover_needs_two_sides() {
    let alone = SqlFailover::builder("DataSource").side(pool("postgres://a@127.0.0.1:1/x")).build();
    assert!(alone.unwrap_err().to_string().contains("two or more"));
}

/// ADP-9: transactions that are in each other's way say nothing about their server: the circuit of the primary stays closed, and
/// no conflict is carried to the secondary.
#[tokio::test]
async fn adp_9_conflicts_neither_open_the_circuit_nor_fail_over() {
    let (one, two) = (Postgres::shared().database().unwrap(), Postgres::shared().database().unwrap());
    tokio::join!(fill(one.url(), "one"), fill(two.url(), "two"));
    let data = SqlFailover::builder("DataSource")
        .guarded_side(guard("primary"), pool(one.url()))
        .guarded_side(guard("secondary"), pool(two.url()))
        .writes(WritePolicy::AnySide)
        .build()
        .unwrap();
    for code in ["40001", "40P01", "55P03"] {
        let script = format!("DO $$ BEGIN RAISE EXCEPTION 'in the way' USING ERRCODE = '{code}'; END $$");
        for _ in 0..5 {
            let asked = AtomicU64::new(0);
            let conflict = |pool: PgPool| {
                asked.fetch_add(1, Ordering::Relaxed);
                let script = script.clone();
                async move { pool.execute(sqlx::AssertSqlSafe(script)).await }
            };
            let error = data.write(conflict).await.unwrap_err();
            assert!(error.last_fault().is_transient(), "{error:?}");
            assert_eq!(asked.load(Ordering::Relaxed), 1, "{code} was carried to the secondary");
            let error = data.read(async |pool: PgPool| {
                let rows = pool.fetch_all(sqlx::AssertSqlSafe(script.clone()));
                rows.await
            });
            error.await.unwrap_err();
        }
        assert_eq!(data.read(items).await.unwrap().side(), Side::PRIMARY, "{code} opened the circuit");
    }
}
