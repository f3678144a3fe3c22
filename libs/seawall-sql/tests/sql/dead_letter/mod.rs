//! Dead letters on real databases.
#![expect(
    clippy::disallowed_methods,
    reason = "callers in tasks of their own, and times that are only printed"
)]

mod kill;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use seawall_dist::Millis;
use seawall_dist::deadletter::{
    Attempt, DeadLetterStore, DeadLetters, Edit, Filter, LetterChange, LetterFault, LetterOrder, Origin,
    Record, ReplayMessage, ReplayOutcome, ReplayRequest, ReplayStart, Status,
};
use seawall_sql::postgres::{self, dead_letter::PostgresDeadLetters};
use seawall_sql::sqlite::{self, dead_letter::SqliteDeadLetters};
use seawall_sql::transaction::{in_transaction, scoped};
use seawall_testkit::conformance;
use seawall_testkit::servers::Postgres;
use sqlx::{PgPool, SqlitePool};

async fn postgres_pool() -> PgPool {
    let pool = PgPool::connect(Postgres::shared().database().unwrap().url()).await.unwrap();
    postgres::migrate(&pool).await.unwrap();
    pool
}

async fn sqlite_pool() -> (SqlitePool, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let pool = sqlite::open(&folder.path().join("test.db")).await.unwrap();
    sqlite::migrate(&pool).await.unwrap();
    (pool, folder)
}

/// CRD-7: PostgreSQL holds what every store has to hold.
#[tokio::test]
async fn crd_7_the_store_on_postgres_conforms() {
    conformance::dead_letter(Arc::new(PostgresDeadLetters::new(postgres_pool().await))).await;
}

/// CRD-7: SQLite holds what every store has to hold.
#[tokio::test]
async fn crd_7_the_store_on_sqlite_conforms() {
    let (pool, _folder) = sqlite_pool().await;
    conformance::dead_letter(Arc::new(SqliteDeadLetters::new(pool))).await;
}

pub(crate) fn record(id: &str) -> Record {
    Record {
        id: id.into(),
        origin: Origin {
            kind: "outbox".into(),
            place: "orders".into(),
            id: format!("m-{id}"),
            at: Some(Millis(7)),
        },
        payload: b"{\"order\": 7}".to_vec(),
        headers: vec![("content-type".into(), "application/json".into())],
        fault: LetterFault { reason: "attempts".into(), message: Some("503 from billing".into()) },
        at: Millis(1_000),
        attempts: vec![Attempt::default()],
        trace: None,
    }
}

/// Waits until no letter is claimed, for much less than the lease of a replay.
async fn nobody_claims(letters: &DeadLetters) {
    for _ in 0..500 {
        let page = letters.list(&Filter::default(), None, 1_000).await.unwrap();
        if page.letters.iter().all(|letter| letter.claim.is_none()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a letter stays claimed until its lease ends");
}

/// The same tests on both databases.
macro_rules! on_both {
    ($($database:ident: $open:expr, $store:ident;)*) => { $(mod $database {
        use super::*;

        /// CRD-7. Trap "broker limits drop silently": a message leaves its queue and becomes a dead letter in one commit, or
        /// neither happens.
        #[tokio::test]
        async fn crd_7_a_message_leaves_its_queue_in_the_same_commit() {
            let (pool, _folder) = $open.await;
            sqlx::query("CREATE TABLE queue (id TEXT)").execute(&pool).await.unwrap();
            sqlx::query("INSERT INTO queue VALUES ('a')").execute(&pool).await.unwrap();
            let letters = DeadLetters::new(Arc::new($store::new(pool.clone())));
            for commits in [false, true] {
                let result = in_transaction(&pool, |tx| scoped(async move {
                    sqlx::query("DELETE FROM queue WHERE id = 'a'").execute(&mut **tx).await?;
                    $store::put_in(tx, &record("a")).await?;
                    if commits { anyhow::Ok(()) } else { anyhow::bail!("the disk is full") }
                }));
                assert_eq!(result.await.is_ok(), commits);
                let left: i64 = sqlx::query_scalar("SELECT count(*) FROM queue").fetch_one(&pool).await.unwrap();
                assert_eq!((left == 0, letters.get("a").await.unwrap().is_some()), (commits, commits));
            }
        }

        /// CRD-7. Trap "replay = delete then enqueue": into a table of the same database a replay happens exactly if its
        /// commit does, and a double click happens once.
        #[tokio::test]
        async fn crd_7_a_replay_into_an_outbox_is_one_commit() {
            let (pool, _folder) = $open.await;
            sqlx::query("CREATE TABLE messages (id TEXT, generation BIGINT)").execute(&pool).await.unwrap();
            let letters = DeadLetters::new(Arc::new($store::new(pool.clone())));
            letters.put(&record("a")).await.unwrap();
            for (commits, expected) in [(false, 0_i64), (true, 1), (true, 1)] {
                let result = in_transaction(&pool, |tx| scoped(async move {
                    let start = $store::replay_in(tx, "a", &ReplayRequest::new("click")).await?;
                    if let ReplayStart::Started { message, .. } = start {
                        sqlx::query("INSERT INTO messages VALUES ($1, $2)")
                            .bind(&message.origin.id).bind(i64::from(message.generation)).execute(&mut **tx).await?;
                    }
                    if commits { anyhow::Ok(()) } else { anyhow::bail!("no") }
                }));
                assert_eq!(result.await.is_ok(), commits);
                let sent: i64 = sqlx::query_scalar("SELECT count(*) FROM messages").fetch_one(&pool).await.unwrap();
                let status = letters.get("a").await.unwrap().unwrap().status;
                assert_eq!((sent, status == Status::Replayed), (expected, expected == 1));
            }
        }

        /// CRD-7: 16 clicks at once send the letter once.
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn crd_7_clicks_at_once_are_one_replay() {
            let (pool, _folder) = $open.await;
            let letters = DeadLetters::new(Arc::new($store::new(pool.clone())));
            letters.put(&record("a")).await.unwrap();
            let sent = Arc::new(AtomicU32::new(0));
            let clicks: Vec<_> = (0..16).map(|_| {
                let (letters, sent) = (letters.clone(), sent.clone());
                tokio::spawn(async move {
                    let replayer = move |_: ReplayMessage| {
                        sent.fetch_add(1, Ordering::Relaxed);
                        async { Ok(()) }
                    };
                    letters.replay("a", &ReplayRequest::new("click"), &replayer).await.unwrap()
                })
            }).collect();
            for click in clicks {
                let outcome = click.await.unwrap();
                let expected = matches!(outcome, ReplayOutcome::Replayed { generation: 1, .. } | ReplayOutcome::InProgress { .. });
                assert!(expected, "{outcome:?}");
            }
            assert_eq!(sent.load(Ordering::Relaxed), 1);
        }

        /// PRM-4: dropped at every poll, a replay leaves a letter that waits or was replayed and that nobody claims, and gives
        /// every connection back.
        #[tokio::test]
        async fn prm_4_a_replay_can_be_dropped_at_every_poll() {
            let (pool, _folder) = $open.await;
            let letters = DeadLetters::new(Arc::new($store::new(pool.clone())));
            for polls in 0..500 {
                let id = format!("{polls:04}");
                let request = ReplayRequest::new("k");
                let replayer = |_: ReplayMessage| async { Ok(()) };
                let mut work = Box::pin(async {
                    letters.put(&record(&id)).await.unwrap();
                    let edit = Edit { payload: Some(b"x".to_vec()), headers: None };
                    letters.replay(&id, &request, &replayer).await.unwrap();
                    letters.edit_and_replay(&id, &edit, &request, &replayer).await.unwrap();
                    letters.delete(&id).await.unwrap();
                    letters.list(&Filter::default().text("order"), None, 3).await.unwrap();
                    letters.counts(&Filter::default()).await.unwrap();
                });
                let (mut left, mut ended) = (polls, false);
                std::future::poll_fn(|cx| {
                    if left == 0 {
                        return Poll::Ready(());
                    }
                    left -= 1;
                    ended = work.as_mut().poll(cx).is_ready();
                    if left == 0 || ended { Poll::Ready(()) } else { Poll::Pending }
                }).await;
                drop(work);
                if let Some(letter) = letters.get(&id).await.unwrap() {
                    let others = letter.record.attempts.iter().filter_map(|attempt| attempt.error.as_deref());
                    let others: Vec<&str> = others.collect();
                    assert!(others.iter().all(|error| error.contains("cancelled")), "{others:?}");
                    if letter.deleted_at.is_none() && letter.status == Status::Waiting {
                        // A task brings the dropped replay to its end, in much less time than the lease.
                        let mut retry = letters.replay(&id, &request, &replayer).await.unwrap();
                        for _ in 0..500 {
                            if !matches!(retry, ReplayOutcome::InProgress { .. }) {
                                break;
                            }
                            tokio::time::sleep(Duration::from_millis(10)).await;
                            retry = letters.replay(&id, &request, &replayer).await.unwrap();
                        }
                        assert!(matches!(retry, ReplayOutcome::Replayed { .. }), "{retry:?}");
                    }
                }
                if ended {
                    nobody_claims(&letters).await;
                    let mut all = Vec::new();
                    for _ in 0..pool.options().get_max_connections() {
                        all.push(pool.acquire().await.expect("every connection comes back"));
                    }
                    return;
                }
            }
            panic!("the work does not end");
        }

        /// CRD-7: how long lists and searches take on many letters. Long: 100 000.
        #[tokio::test]
        async fn crd_7_many_letters_are_searched() {
            let (pool, _folder) = $open.await;
            let letters = DeadLetters::new(Arc::new($store::new(pool.clone())));
            let count = if std::env::var_os("SEAWALL_LONG").is_some() { 100_000_i64 } else { 1_000 };
            let mut transaction = pool.begin().await.unwrap();
            let began = std::time::Instant::now();
            for number in 0..count {
                let mut record = record(&format!("{number:06}"));
                record.at = Millis(number);
                record.fault.reason = ["age", "attempts", "refused"][usize::try_from(number % 3).unwrap()].into();
                record.payload = format!("{{\"order\": \"{number}\", \"text\": \"{}\"}}", "lorem ipsum ".repeat(80)).into();
                $store::put_in(&mut transaction, &record).await.unwrap();
            }
            transaction.commit().await.unwrap();
            println!("{}: {count} puts in one commit: {:?}", stringify!($database), began.elapsed());
            let rare = format!("\"{}\"", count / 2);
            for (what, filter, expected) in [
                ("the newest page", Filter::default(), 50),
                ("a page of one reason", Filter::default().reason("age"), 50),
                ("a text that all have", Filter::default().text("lorem"), 50),
                ("a text that one has", Filter::default().text(rare), 1),
                ("a text that nobody has", Filter::default().text("nobody has this"), 0),
            ] {
                let mut times = Vec::new();
                for _ in 0..5 {
                    let began = std::time::Instant::now();
                    let page = letters.list(&filter, None, 50).await.unwrap();
                    times.push(began.elapsed());
                    assert_eq!(page.letters.len(), expected, "{what}");
                }
                times.sort_unstable();
                println!("{}: {what}: median {:?}", stringify!($database), times[2]);
            }
            let began = std::time::Instant::now();
            let groups = letters.counts(&Filter::default()).await.unwrap();
            println!("{}: counts by group: {:?}", stringify!($database), began.elapsed());
            assert_eq!(groups.iter().map(|group| group.count).sum::<u64>(), u64::try_from(count).unwrap());
        }
    })* };
}

on_both! {
    on_postgres: async { (postgres_pool().await, ()) }, PostgresDeadLetters;
    on_sqlite: sqlite_pool(), SqliteDeadLetters;
}

/// CRD-7: a store that is away says so; the message has to stay where it was.
#[tokio::test]
async fn crd_7_a_store_that_is_away_fails_the_put() {
    let pool = seawall_sql::failover::pool_options()
        .acquire_timeout(Duration::from_millis(200))
        .connect_lazy("postgres://nobody@127.0.0.1:1/none")
        .unwrap();
    let letters = DeadLetters::new(Arc::new(PostgresDeadLetters::new(pool)));
    let error = letters.put(&record("a")).await.unwrap_err();
    assert!(error.fault().is_transient(), "{error}");
}

/// CRD-7: a letter that is restored while it is purged stays.
#[tokio::test]
async fn crd_7_a_letter_that_is_restored_meanwhile_is_not_purged() {
    let pool = postgres_pool().await;
    let store = PostgresDeadLetters::new(pool.clone());
    store.put(&record("a")).await.unwrap();
    store.change("a", LetterChange::Delete).await.unwrap();
    let mut restore = pool.begin().await.unwrap();
    sqlx::query("UPDATE seawall_dead_letters SET deleted_at = NULL").execute(&mut *restore).await.unwrap();
    let commit = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&pool).await.unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        restore.commit().await.unwrap();
    };
    let (purged, ()) = tokio::join!(store.purge(Duration::ZERO, Duration::MAX, 10), commit);
    assert_eq!(purged.unwrap(), 0);
    assert!(store.get("a").await.unwrap().is_some());
}

/// Text that can't be made small: an index entry of PostgreSQL is compressed before it is measured.
pub(crate) fn noise(bytes: usize) -> String {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + u8::try_from((state >> 33) % 75).unwrap())
    };
    (0..bytes).map(|_| next()).collect()
}

/// CRD-7: a letter with very long names is kept and found by them: it must not be lost for its names.
async fn long_names_are_kept(store: &dyn DeadLetterStore) {
    let mut long = record(&noise(5_000));
    long.origin.kind = noise(3_000);
    long.origin.place = noise(3_000);
    long.fault.reason = noise(3_000);
    store.put(&long).await.unwrap();
    assert!(store.get(&long.id).await.unwrap().is_some(), "it is not found by its id");
    let filter =
        Filter::default().kind(&long.origin.kind).place(&long.origin.place).reason(&long.fault.reason);
    assert_eq!(
        store.list(&filter, LetterOrder::NewestFirst, None, 10).await.unwrap().letters.len(),
        1,
        "it is not found by its names"
    );
    let mut other = long.clone();
    other.id.push('x');
    other.origin.place.push('x');
    store.put(&other).await.unwrap();
    assert_eq!(
        store.list(&filter, LetterOrder::NewestFirst, None, 10).await.unwrap().letters.len(),
        1,
        "two places became one"
    );
    assert_eq!(
        store.list(&Filter::default(), LetterOrder::NewestFirst, None, 10).await.unwrap().letters.len(),
        2
    );
}

#[tokio::test]
async fn crd_7_long_names_are_kept() {
    long_names_are_kept(&PostgresDeadLetters::new(postgres_pool().await)).await;
    let (pool, _folder) = sqlite_pool().await;
    long_names_are_kept(&SqliteDeadLetters::new(pool)).await;
}
