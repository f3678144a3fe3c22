//! How fast the outbox is on PostgreSQL, beside the plain rates of the same server: all of it, or the parts that are named
//! (`rates`, `drain`, `wake`, `writers`, `dead`). See README.md.

use std::error::Error;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use seawall_bench::postgres::Server;
use seawall_dist::outbox::{BatchRequest, OutboxStore, OutcomeKind, Relay, Retention, RowOutcome};
use seawall_dist::{Message, PublishFuture, Publisher};
use seawall_sql::postgres::{self, outbox::PostgresOutbox};
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::task::JoinSet;
use tokio::time::sleep;

type Outcomes<T> = Result<T, Box<dyn Error + Send + Sync>>;

const BACKLOG: u64 = 200_000;
const WRITERS: usize = 32;
const MEASURED: Duration = Duration::from_secs(5);
const WAKE_UPS: usize = 250;
const DEAD_ROWS: u64 = 100_000;
const CLAIMS: usize = 1_000;
const PARTS: [&str; 5] = ["rates", "drain", "wake", "writers", "dead"];

#[tokio::main]
async fn main() -> Outcomes<()> {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
        return Err(format!("there is no part {unknown}; there are {}", PARTS.join(", ")).into());
    }
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let server = Server::start()?;
    let databases = AtomicU64::new(0);
    let pool = async |name: &str| -> Outcomes<PgPool> {
        println!("\n## {name}");
        let database = format!("bench_{}", databases.fetch_add(1, Ordering::Relaxed));
        let admin = PgPool::connect(&server.url("postgres")).await?;
        sqlx::query(sqlx::AssertSqlSafe(format!("CREATE DATABASE {database}"))).execute(&admin).await?;
        let pool = PgPoolOptions::new().max_connections(64).connect(&server.url(&database)).await?;
        postgres::migrate(&pool).await?;
        Ok(pool)
    };
    if wanted("rates") {
        plain_rates(&pool("plain rates of this server").await?).await?;
    }
    if wanted("drain") {
        for retention in [Retention::Delete, Retention::Keep(Duration::from_secs(3_600))] {
            drain(&pool(&format!("one relay, {BACKLOG} rows, {retention:?}")).await?, retention).await?;
        }
    }
    for notify in [false, true].into_iter().filter(|_| wanted("wake")) {
        wake_up(&pool(&format!("wake-up, notify {notify}")).await?, notify).await?;
    }
    for notify in [false, true].into_iter().filter(|_| wanted("writers")) {
        writers(&pool(&format!("{WRITERS} writers, notify {notify}")).await?, notify).await?;
    }
    if wanted("dead") {
        claims_among_dead_rows(&pool("claims among dead rows, a transaction held open").await?).await?;
    }
    Ok(())
}

fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    format!("p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms", at(0.5), at(0.99), at(1.0))
}

fn message(number: u64) -> Message {
    Message::new("OrderPaid", format!("order-{}", number % 20_000), vec![b'x'; 200]).with_topic("orders")
}

/// Runs `step` in so many tasks for a while; returns how many steps there were in a second.
async fn rate<F: Future<Output = Outcomes<u64>> + Send + 'static>(
    tasks: usize,
    step: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> Outcomes<f64> {
    let (began, done) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let mut set: JoinSet<Outcomes<()>> = JoinSet::new();
    for _ in 0..tasks {
        let (step, done) = (step.clone(), Arc::clone(&done));
        set.spawn(async move {
            while began.elapsed() < MEASURED {
                done.fetch_add(step().await?, Ordering::Relaxed);
            }
            Ok(())
        });
    }
    while let Some(ended) = set.join_next().await {
        ended??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}

async fn plain_rates(pool: &PgPool) -> Outcomes<()> {
    sqlx::query("CREATE TABLE plain (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload BYTEA, state INT NOT NULL DEFAULT 0, attempt INT NOT NULL DEFAULT 0)")
        .execute(pool)
        .await?;
    sqlx::query("CREATE INDEX plain_ready ON plain (id) WHERE state = 0").execute(pool).await?;
    let insert = |pool: PgPool, rows: i64| async move {
        sqlx::query("INSERT INTO plain (payload) SELECT $1 FROM generate_series(1, $2)")
            .bind(vec![b'x'; 200])
            .bind(rows)
            .execute(&pool)
            .await?;
        Ok(rows as u64)
    };
    for (tasks, rows) in [(1, 1), (WRITERS, 1), (1, 500)] {
        let pool = pool.clone();
        let per_second = rate(tasks, move || insert(pool.clone(), rows)).await?;
        println!("{tasks} writers, {rows} rows per commit: {per_second:.0} rows/s");
    }
    let pool = pool.clone();
    let claim = move || {
        let pool = pool.clone();
        async move {
            let claim = "UPDATE plain SET state = 1, attempt = attempt + 1 WHERE id IN (SELECT id FROM plain WHERE state = 0 ORDER BY id LIMIT 50 FOR UPDATE SKIP LOCKED) RETURNING id, payload";
            Ok(sqlx::query(claim).fetch_all(&pool).await?.len() as u64)
        }
    };
    println!("claims of 50: {:.0} rows/s", rate(4, claim).await?);
    Ok(())
}

/// Publishes nowhere, and remembers how many.
#[derive(Default)]
struct NoOp {
    count: AtomicU64,
    times: Mutex<Vec<(String, Instant)>>,
    is_timed: AtomicBool,
}

impl Publisher for NoOp {
    fn publish<'a>(&'a self, messages: &'a [Message]) -> PublishFuture<'a> {
        if self.is_timed.load(Ordering::Relaxed) {
            let now = Instant::now();
            let ids = messages.iter().map(|message| (message.event_id().to_owned(), now));
            self.times.lock().expect("nobody panicked").extend(ids);
        }
        self.count.fetch_add(messages.len() as u64, Ordering::Relaxed);
        Box::pin(async { messages.iter().map(|_| Ok(())).collect() })
    }
}

async fn fill(outbox: &PostgresOutbox, rows: u64) -> Outcomes<()> {
    for first in (0..rows).step_by(1_000) {
        let messages: Vec<Message> = (first..first + 1_000).map(message).collect();
        outbox.store(&messages).await?;
    }
    Ok(())
}

/// Runs a relay until `work` is done.
async fn with_relay<T>(
    outbox: &PostgresOutbox,
    publisher: &Arc<NoOp>,
    retention: Retention,
    work: impl Future<Output = Outcomes<T>>,
) -> Outcomes<T> {
    let relay =
        Relay::builder("bench", Arc::new(outbox.clone()), publisher.clone()).retention(retention).build()?;
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let (result, ()) = tokio::join!(
        async {
            let result = work.await;
            let _ = end.send(());
            result
        },
        relay.run(async { drop(ended.await) })
    );
    result
}

async fn drain(pool: &PgPool, retention: Retention) -> Outcomes<()> {
    let (outbox, publisher) = (PostgresOutbox::new(pool.clone()), Arc::new(NoOp::default()));
    fill(&outbox, BACKLOG).await?;
    let began = Instant::now();
    with_relay(&outbox, &publisher, retention, async {
        while outbox.stats().await?.depth > 0 {
            sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    })
    .await?;
    let (took, count) = (began.elapsed(), publisher.count.load(Ordering::Relaxed));
    println!("{count} published in {took:.1?}: {:.0} rows/s", BACKLOG as f64 / took.as_secs_f64());
    Ok(())
}

fn outbox_of(pool: &PgPool, notify: bool) -> PostgresOutbox {
    let outbox = PostgresOutbox::new(pool.clone());
    if notify { outbox.with_notify() } else { outbox }
}

/// From the commit to the call of the publisher, one row at a time.
async fn wake_up(pool: &PgPool, notify: bool) -> Outcomes<()> {
    let (outbox, publisher) = (outbox_of(pool, notify), Arc::new(NoOp::default()));
    publisher.is_timed.store(true, Ordering::Relaxed);
    let times = with_relay(&outbox, &publisher, Retention::Delete, async {
        sleep(Duration::from_secs(1)).await;
        let mut times = Vec::new();
        for number in 0..WAKE_UPS as u64 {
            let message = message(number);
            let mut transaction = pool.begin().await?;
            outbox.enqueue(&mut transaction, &message).await?;
            transaction.commit().await?;
            let committed = Instant::now();
            let published = loop {
                let found = publisher
                    .times
                    .lock()
                    .expect("nobody panicked")
                    .iter()
                    .find(|(id, _)| id == message.event_id())
                    .map(|(_, at)| *at);
                match found {
                    Some(at) => break at,
                    None => sleep(Duration::from_millis(1)).await,
                }
            };
            times.push(published.saturating_duration_since(committed));
            publisher.times.lock().expect("nobody panicked").clear();
            // Long enough for polls to be at their slowest, and never in step with them.
            sleep(Duration::from_millis(300 + number * 37 % 150)).await;
        }
        Ok(times)
    })
    .await?;
    println!("from commit to publisher: {}", percentiles(times));
    Ok(())
}

async fn writers(pool: &PgPool, notify: bool) -> Outcomes<()> {
    let (outbox, publisher) = (outbox_of(pool, notify), Arc::new(NoOp::default()));
    let times = Arc::new(Mutex::new(Vec::new()));
    let number = Arc::new(AtomicU64::new(0));
    let per_second = with_relay(&outbox, &publisher, Retention::Delete, async {
        let step = {
            let (pool, outbox, times, number) = (pool.clone(), outbox.clone(), times.clone(), number.clone());
            move || {
                let (pool, outbox, times, number) =
                    (pool.clone(), outbox.clone(), times.clone(), number.clone());
                async move {
                    let began = Instant::now();
                    let mut transaction = pool.begin().await?;
                    outbox
                        .enqueue(&mut transaction, &message(number.fetch_add(1, Ordering::Relaxed)))
                        .await?;
                    transaction.commit().await?;
                    times.lock().expect("nobody panicked").push(began.elapsed());
                    Ok(1)
                }
            }
        };
        rate(WRITERS, step).await
    })
    .await?;
    let times = std::mem::take(&mut *times.lock().expect("nobody panicked"));
    let behind = outbox.stats().await?.depth;
    println!("{per_second:.0} transactions/s, each {}; {behind} rows behind at the end", percentiles(times));
    Ok(())
}

async fn claims_among_dead_rows(pool: &PgPool) -> Outcomes<()> {
    let (outbox, publisher) =
        (PostgresOutbox::new(pool.clone()).walk_limit(Duration::from_millis(20)), Arc::new(NoOp::default()));
    let mut held_open = pool.begin().await?;
    sqlx::query("SELECT txid_current()").execute(&mut *held_open).await?;
    fill(&outbox, DEAD_ROWS).await?;
    with_relay(&outbox, &publisher, Retention::Delete, async {
        while outbox.stats().await?.depth > 0 {
            sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    })
    .await?;
    let (mut times, mut polls_in_vain) = (Vec::new(), 0);
    for number in 0..CLAIMS as u64 {
        outbox.store(&[message(number)]).await?;
        // A claim may find nothing while somebody notes what to skip; a relay then polls again.
        let batch = loop {
            let began = Instant::now();
            let batch = outbox.claim(&BatchRequest::new("bench", 500, 4, Duration::from_secs(60))).await?;
            times.push(began.elapsed());
            match batch {
                Some(batch) => break batch,
                None => polls_in_vain += 1,
            }
        };
        let outcomes: Vec<RowOutcome> =
            batch.rows.iter().map(|row| RowOutcome { id: row.id, kind: OutcomeKind::Published }).collect();
        outbox.record(&batch.lease, &outcomes, Retention::Delete).await?;
    }
    let dead: i64 =
        sqlx::query_scalar("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'seawall_outbox'")
            .fetch_one(pool)
            .await?;
    println!("claims with {dead} dead rows, {polls_in_vain} in vain: {}", percentiles(times));
    held_open.rollback().await?;
    Ok(())
}
