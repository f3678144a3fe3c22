//! Many writers, three relays in processes of their own, and somebody who kills them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use seawall::Fault;
use seawall_dist::outbox::{OutboxStore, Relay};
use seawall_dist::{Message, PublishError, PublishFuture, Publisher};
use seawall_sql::postgres::{self, outbox::PostgresOutbox};
use seawall_testkit::servers::{Postgres, WorkerProcess, worker_settings};
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::task::JoinSet;

const WRITERS: usize = 32;
const RELAYS: usize = 3;
/// Keys that one writer has for itself, and keys that all writers share.
const OWN_KEYS: u64 = 3;
const SHARED_KEYS: u64 = 10;
const LEASE: Duration = Duration::from_millis(1_000);
/// A row costs a call of the broker, 7 ms and a commit, and its share of claims and failed calls: about 20 ms. This is for a machine
/// that does other things too.
const CALL_TIME_MAX: Duration = Duration::from_millis(200);
/// The longest time without progress of a key. A killed relay, a lease and a back-off are seconds.
const STALL_MAX: Duration = Duration::from_secs(30);

static TRANSACTIONS: AtomicU64 = AtomicU64::new(0);

/// SplitMix64: the same seed gives the same run, as far as threads and processes allow.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A broker: a table that is written over connections of its own.
struct TablePublisher(PgPool, AtomicU64);

impl Publisher for TablePublisher {
    fn publish<'a>(&'a self, messages: &'a [Message]) -> PublishFuture<'a> {
        Box::pin(async {
            let number = self.1.fetch_add(1, Ordering::Relaxed);
            // A broker takes its time, and some calls fail before anything is published.
            tokio::time::sleep(Duration::from_millis(number * 7 % 15)).await;
            if number % 29 == 28 {
                let down = || Err(PublishError::new(Fault::unreachable(), "no broker"));
                return messages.iter().map(|_| down()).collect();
            }
            let ids: Vec<&str> = messages.iter().map(Message::event_id).collect();
            let insert = "INSERT INTO broker (event_id) SELECT id FROM unnest($1::TEXT[]) WITH ORDINALITY AS sent (id, place) ORDER BY place";
            let done = sqlx::query(insert).bind(ids).execute(&self.0).await;
            let error =
                done.err().map(|error| PublishError::new(seawall_sql::fault_of(&error), error.to_string()));
            messages.iter().map(|_| error.clone().map_or(Ok(()), Err)).collect()
        })
    }
}

/// A relay in a process of its own: does nothing unless it is started as a worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relay_worker() {
    let Some(settings) = worker_settings() else { return };
    let pool = || PgPoolOptions::new().max_connections(10).connect(&settings["POSTGRES"]);
    let mut outbox = PostgresOutbox::new(pool().await.unwrap());
    if settings["WAY"] == "short" {
        outbox = outbox.walk_limit(Duration::ZERO);
    }
    let publisher = TablePublisher(pool().await.unwrap(), AtomicU64::new(0));
    let backoff = seawall::Backoff::constant(Duration::from_millis(50));
    let relay = Relay::builder("chaos", Arc::new(outbox), Arc::new(publisher)).lease(LEASE).backoff(backoff);
    relay.batch_rows(200).build().unwrap().run(std::future::pending()).await;
}

/// A row as its writer saw it.
struct Written {
    key: String,
    transaction: u64,
    place: usize,
    /// Before the row was inserted, and after its transaction had committed.
    began: Instant,
    committed: Instant,
}

type Journal = Arc<Mutex<HashMap<String, Written>>>;

#[expect(clippy::disallowed_methods, reason = "real processes run in real time")]
fn now() -> Instant {
    Instant::now()
}

async fn write(pool: PgPool, journal: Journal, writer: usize, stop: Arc<AtomicBool>) {
    let (outbox, mut state) = (PostgresOutbox::new(pool.clone()), writer as u64);
    while !stop.load(Ordering::Relaxed) {
        let transaction_number = TRANSACTIONS.fetch_add(1, Ordering::Relaxed);
        let chance = random(&mut state);
        let key = match chance % 2 {
            0 => format!("own-{writer}-{}", chance / 2 % OWN_KEYS),
            _ => format!("shared-{}", chance / 2 % SHARED_KEYS),
        };
        let rows = 1 + random(&mut state) % 3;
        let messages: Vec<Message> =
            (0..rows).map(|_| Message::new("Tested", &*key, "{}").with_topic("chaos")).collect();
        let began = now();
        let mut transaction = pool.begin().await.unwrap();
        outbox.enqueue_all(&mut transaction, &messages).await.unwrap();
        tokio::time::sleep(Duration::from_millis(random(&mut state) % 40)).await;
        if random(&mut state) % 10 < 3 {
            transaction.rollback().await.unwrap();
            continue;
        }
        transaction.commit().await.unwrap();
        let committed = now();
        let mut journal = journal.lock().unwrap();
        for (place, message) in messages.iter().enumerate() {
            let row = Written { key: key.clone(), transaction: transaction_number, place, began, committed };
            journal.insert(message.event_id().to_owned(), row);
        }
    }
}

async fn write_for(pool: &PgPool, journal: &Journal, duration: Duration, mut meanwhile: impl FnMut()) {
    let (stop, mut writers) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
    for writer in 0..WRITERS {
        writers.spawn(write(pool.clone(), Arc::clone(journal), writer, Arc::clone(&stop)));
    }
    let end = now() + duration;
    while now() < end {
        tokio::time::sleep(Duration::from_millis(500)).await;
        meanwhile();
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
}

async fn rows_by_key(pool: &PgPool) -> HashMap<String, i64> {
    let query = "SELECT aggregate_id, count(*) FROM seawall_outbox GROUP BY 1";
    sqlx::query_as(query).fetch_all(pool).await.unwrap().into_iter().collect()
}

/// Waits until everything is published. The rows of a key are published one after the other, so that it takes long if a key has
/// thousands; but each key goes on.
async fn drained(pool: &PgPool) {
    let (outbox, began) = (PostgresOutbox::new(pool.clone()), now());
    let (mut before, mut looked_at) = (rows_by_key(pool).await, began);
    let deepest = before.values().max().copied().unwrap_or(0);
    let limit = Duration::from_secs(60) + CALL_TIME_MAX * u32::try_from(deepest).unwrap();
    while began.elapsed() < limit {
        if outbox.stats().await.unwrap().depth == 0 {
            return;
        }
        if looked_at.elapsed() > STALL_MAX {
            let rows = rows_by_key(pool).await;
            for (key, count) in &rows {
                assert!(*count < before[key], "{key} has had {count} rows for {:?}", looked_at.elapsed());
            }
            (before, looked_at) = (rows, now());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the relays have not published everything within {limit:?}: {:?}", outbox.stats().await);
}

async fn published(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("SELECT event_id FROM broker ORDER BY seq").fetch_all(pool).await.unwrap()
}

/// Whether what was published first, second, … of each key was also written in this order: no row before one that had
/// committed before it was inserted.
fn expect_order(journal: &HashMap<String, Written>, published: &[String]) {
    let mut seen = HashSet::new();
    let mut latest: HashMap<&str, Instant> = HashMap::new();
    // Going back from the last one: a row must not have committed before one that was published earlier even began.
    let firsts: Vec<&Written> =
        published.iter().filter(|id| seen.insert(*id)).map(|id| &journal[id]).collect();
    let mut places = HashMap::new();
    for row in &firsts {
        let next = places.entry(row.transaction).or_insert(0);
        assert_eq!(row.place, *next, "rows of one transaction were published out of order");
        *next += 1;
    }
    for row in firsts.iter().rev() {
        if let Some(&committed) = latest.get(row.key.as_str()) {
            assert!(row.began <= committed, "{} was published out of order", row.key);
        }
        let earliest = latest.entry(&row.key).or_insert(row.committed);
        *earliest = (*earliest).min(row.committed);
    }
}

/// CRD-3, issue "Outbox": 32 writers with delays before the commit and 30 % rollbacks, three relays that are killed and stopped
/// again and again. What was committed is what was published; each key keeps its order; and without kills nothing is
/// published twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_3_relays_that_are_killed_publish_all_that_was_committed_in_order() {
    let seconds = if std::env::var_os("SEAWALL_LONG").is_some() { 60 } else { 6 };
    let database = Postgres::shared().database().unwrap();
    let pool =
        PgPoolOptions::new().max_connections(WRITERS as u32 + 4).connect(database.url()).await.unwrap();
    postgres::migrate(&pool).await.unwrap();
    let table = "CREATE TABLE broker (seq BIGINT GENERATED ALWAYS AS IDENTITY, event_id TEXT NOT NULL)";
    sqlx::query(table).execute(&pool).await.unwrap();
    // Two of the three always look for rows the short way, and one does if its walks are slow.
    let spawn = |relay: usize| {
        let way = if relay == 0 { "usual" } else { "short" };
        let settings = [("POSTGRES", database.url()), ("WAY", way)];
        WorkerProcess::spawn("outbox::chaos::relay_worker", &settings).unwrap()
    };
    let mut relays: Vec<WorkerProcess> = (0..RELAYS).map(spawn).collect();
    let journal = Journal::default();

    write_for(&pool, &journal, Duration::from_secs(1), || ()).await;
    drained(&pool).await;
    let calm = published(&pool).await;
    assert_eq!(calm.len(), journal.lock().unwrap().len(), "rows were published twice although no relay died");

    let (mut turn, mut stopped) = (0, None);
    write_for(&pool, &journal, Duration::from_secs(seconds), || {
        turn += 1;
        let victim = turn % RELAYS;
        if turn % 8 == 0 {
            relays[victim].pause().unwrap();
            stopped = Some((victim, turn + 4));
        } else if stopped.is_none_or(|(relay, _)| relay != victim) {
            relays[victim].kill().unwrap();
            relays[victim] = spawn(victim);
        }
        if let Some((relay, until)) = stopped
            && turn >= until
        {
            relays[relay].resume().unwrap();
            stopped = None;
        }
    })
    .await;
    if let Some((relay, _)) = stopped {
        relays[relay].resume().unwrap();
    }
    let (began, left) = (now(), PostgresOutbox::new(pool.clone()).stats().await.unwrap().depth);
    drained(&pool).await;
    println!("{left} rows were left, and drained in {:?}", began.elapsed());

    let published = published(&pool).await;
    let journal = journal.lock().unwrap();
    let (committed, sent): (HashSet<&String>, HashSet<&String>) =
        (journal.keys().collect(), published.iter().collect());
    println!("{} rows committed, {} publications, {turn} kills or stops", committed.len(), published.len());
    assert_eq!(committed.difference(&sent).count(), 0, "rows were lost");
    assert_eq!(
        sent.difference(&committed).count(),
        0,
        "rows of transactions that were rolled back were published"
    );
    expect_order(&journal, &published);
}
