//! Processes that replay dead letters, and somebody who kills them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use seawall_dist::deadletter::{
    BulkReplay, DeadLetter, DeadLetters, Filter, ReplayError, ReplayMessage, ReplayRequest, Status,
};
use seawall_sql::postgres::{self, dead_letter::PostgresDeadLetters};
use seawall_testkit::servers::{Postgres, WorkerProcess, worker_settings};
use sqlx::postgres::{PgPool, PgPoolOptions};

const WORKERS: usize = 3;

/// The time for one replay. The lease is twice as long, and ends soon after the last kill.
const TIMEOUT: Duration = Duration::from_millis(1_500);

async fn pool(url: &str) -> PgPool {
    PgPoolOptions::new().max_connections(8).connect(url).await.unwrap()
}

/// Replays what waits, under one key. The receiver is a table that also says whether the letter had been recorded as replayed
/// when it was sent.
async fn replay_all(letters: &DeadLetters, receiver: &PgPool, calls: &Arc<AtomicU64>) {
    let (receiver, calls) = (receiver.clone(), calls.clone());
    let replayer = move |message: ReplayMessage| {
        let (receiver, number) = (receiver.clone(), calls.fetch_add(1, Ordering::Relaxed));
        async move {
            // A receiver takes its time before and after, and some calls fail.
            tokio::time::sleep(Duration::from_millis(number * 7 % 8)).await;
            if number % 29 == 28 {
                return Err(ReplayError::from("connection refused"));
            }
            let insert = "INSERT INTO sent (letter, generation, was_recorded) \
                SELECT id, $2, status = 'replayed' FROM seawall_dead_letters WHERE id = $1";
            let generation = i64::from(message.generation);
            sqlx::query(insert).bind(&message.letter_id).bind(generation).execute(&receiver).await?;
            tokio::time::sleep(Duration::from_millis(number * 5 % 8)).await;
            Ok(())
        }
    };
    let bulk = BulkReplay::new(ReplayRequest::new("night").timeout(TIMEOUT), 1_000).unwrap();
    letters.replay_many(&Filter::default(), &bulk, &replayer).await.unwrap();
}

/// Replays letters in a process of its own until it is killed: does nothing unless it is started as a worker.
#[tokio::test]
async fn replay_worker() {
    let Some(settings) = worker_settings() else { return };
    let (store, receiver) = (pool(&settings["POSTGRES"]).await, pool(&settings["POSTGRES"]).await);
    let letters = DeadLetters::new(Arc::new(PostgresDeadLetters::new(store)));
    let calls = Arc::default();
    loop {
        replay_all(&letters, &receiver, &calls).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn every_letter(letters: &DeadLetters) -> Vec<DeadLetter> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = letters.list(&Filter::default(), after.as_ref(), 1_000).await.unwrap();
        all.extend(page.letters);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

/// The claims of a letter that ended neither in a replay nor in a failed attempt: the process was killed.
fn abandoned(letter: &DeadLetter) -> u64 {
    let ended = letter.replays.len() + letter.record.attempts.iter().filter(|it| it.error.is_some()).count();
    letter.claims - u64::try_from(ended).unwrap()
}

/// CRD-7: three processes replay letters and are killed again and again in the midst of it. Every letter is sent, a letter that is
/// recorded as replayed is not sent again, and no letter stays claimed. Long: 200 kills.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_7_replays_whose_processes_are_killed_send_every_letter() {
    let (kills, count) = if std::env::var_os("SEAWALL_LONG").is_some() { (200, 4_000) } else { (15, 300) };
    let database = Postgres::shared().database().unwrap();
    let pool = pool(database.url()).await;
    postgres::migrate(&pool).await.unwrap();
    let table =
        "CREATE TABLE sent (letter TEXT NOT NULL, generation BIGINT NOT NULL, was_recorded BOOLEAN NOT NULL)";
    sqlx::query(table).execute(&pool).await.unwrap();
    let letters = DeadLetters::new(Arc::new(PostgresDeadLetters::new(pool.clone())));
    let mut transaction = pool.begin().await.unwrap();
    for number in 0..count {
        let record = super::record(&format!("{number:06}"));
        PostgresDeadLetters::put_in(&mut transaction, &record).await.unwrap();
    }
    transaction.commit().await.unwrap();

    let settings = [("POSTGRES", database.url())];
    let spawn = || WorkerProcess::spawn("dead_letter::kill::replay_worker", &settings).unwrap();
    let mut workers: Vec<WorkerProcess> = (0..WORKERS).map(|_| spawn()).collect();
    let sent = || async {
        sqlx::query_scalar::<_, i64>("SELECT count(*) FROM sent").fetch_one(&pool).await.unwrap()
    };
    for kill in 0..kills {
        // Each kill comes while letters are sent, however slow the machine is.
        let (before, mut waits) = (sent().await, 0);
        while sent().await < before + 3 && waits < 300 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            waits += 1;
        }
        workers[kill % WORKERS].kill().unwrap();
        workers[kill % WORKERS] = spawn();
    }
    for mut worker in workers {
        worker.kill().unwrap();
    }

    let calls = Arc::default();
    for _ in 0..600 {
        replay_all(&letters, &pool, &calls).await;
        let waiting = letters.list(&Filter::default().status(Status::Waiting), None, 1).await.unwrap();
        if waiting.letters.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let all = every_letter(&letters).await;
    assert_eq!(all.len(), count, "a letter is lost");
    let left: Vec<&str> = all
        .iter()
        .filter(|it| it.status != Status::Replayed || it.claim.is_some())
        .map(DeadLetter::id)
        .collect();
    assert!(left.is_empty(), "letters stay claimed or wait: {left:?}");
    let abandoned: u64 = all.iter().map(abandoned).sum();
    assert!(abandoned > 0, "no process was killed in the midst of a replay");

    let number = |sql: &'static str| {
        let pool = pool.clone();
        async move { sqlx::query_scalar::<_, i64>(sql).fetch_one(&pool).await.unwrap() }
    };
    let once = number("SELECT count(DISTINCT letter) FROM sent").await;
    assert_eq!(once, i64::try_from(count).unwrap(), "a letter is recorded as replayed and was never sent");
    let again = number("SELECT count(*) FROM sent WHERE was_recorded").await;
    assert_eq!(again, 0, "a letter that was recorded as replayed was sent again");
    let others = number("SELECT count(*) FROM sent WHERE generation <> 1").await;
    assert_eq!(others, 0, "a replay that is repeated after a kill has the same generation");
    let twice = number("SELECT count(*) FROM sent").await - once;
    println!("{kills} kills, {count} letters, {abandoned} claims left behind, {twice} letters sent again");
}
