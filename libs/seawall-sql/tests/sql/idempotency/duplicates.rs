use std::io;
use std::sync::Arc;

use seawall_dist::idempotency::Idempotency;
use seawall_sql::postgres;
use seawall_sql::postgres::idempotency::PostgresIdempotency;
use seawall_testkit::conformance::duplicates::{DuplicatesPlan, Effect, LEASE, Look, run, work};
use seawall_testkit::servers::{Postgres, worker_settings};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{Executor, Row};

/// A fenced effect: an executor with an older token changes nothing.
const EFFECT: &str = "INSERT INTO effects AS e (key, token, attempts) VALUES ($1, $2, 1)
    ON CONFLICT (key) DO UPDATE SET token = excluded.token, attempts = e.attempts + 1
    WHERE e.token < excluded.token";

fn plan() -> DuplicatesPlan {
    if std::env::var_os("SEAWALL_LONG").is_some() {
        return DuplicatesPlan { keys: 10_000, duplicates: 64, kills: 48, block: 20 };
    }
    DuplicatesPlan { keys: 80, duplicates: 64, kills: 8, block: 10 }
}

/// CRD-2: 64 duplicates of every request in four processes that are killed with -9 or stopped past their lease: one
/// effect per request, and the same answer for all. `SEAWALL_LONG=1` sends 10 000 requests.
#[tokio::test(flavor = "multi_thread")]
async fn crd_2_duplicates_have_one_effect_although_processes_are_killed() {
    let database = Postgres::shared().database().unwrap();
    let pool = PgPool::connect(database.url()).await.unwrap();
    postgres::migrate(&pool).await.unwrap();
    pool.execute("CREATE TABLE effects (key TEXT PRIMARY KEY, token BIGINT NOT NULL, attempts INT NOT NULL)")
        .await
        .unwrap();
    let (url, plan) = (database.url().to_owned(), plan());
    let worker = "idempotency::duplicates::duplicates_worker";
    let parent = move || run(worker, &[("DATABASE", &url)], plan);
    let report = tokio::task::spawn_blocking(parent).await.unwrap();
    let sums = "SELECT count(*), COALESCE(sum(attempts), 0)::BIGINT FROM effects";
    let row = sqlx::query(sums).fetch_one(&pool).await.unwrap();
    let (effects, attempts): (i64, i64) = (row.get(0), row.get(1));
    println!("{plan:?}: {report:?}, {effects} effects, {attempts} executions");
    assert_eq!(effects, i64::from(plan.keys));
    assert!(report.stops > 1, "nobody was killed");
    assert!(attempts <= report.executions_max(plan), "work ran again without a reason");
    let wrong = "SELECT count(*) FROM effects e JOIN seawall_idempotency_keys k ON k.key = e.key
        WHERE k.state <> 1 OR k.fencing_token <> e.token OR convert_from(k.result, 'UTF8') <> e.token::text";
    let wrong: i64 = sqlx::query_scalar(wrong).fetch_one(&pool).await.unwrap();
    assert_eq!(wrong, 0, "stored answers that are not what was done");
}

/// The worker of the test above.
#[tokio::test(flavor = "multi_thread")]
async fn duplicates_worker() {
    let Some(settings) = worker_settings() else { return };
    let pool = PgPoolOptions::new().max_connections(8).connect(&settings["DATABASE"]).await.unwrap();
    let store = Arc::new(PostgresIdempotency::new(pool));
    let idempotency = Idempotency::builder(store).lease(LEASE).build().unwrap();
    // The effects have connections of their own, as the work of a service would.
    let effects = PgPoolOptions::new().max_connections(4).connect(&settings["DATABASE"]).await.unwrap();
    let answers = effects.clone();
    let effect: Effect = Arc::new(move |key, token| {
        let pool = effects.clone();
        Box::pin(async move {
            let query = sqlx::query(EFFECT).bind(key).bind(token.cast_signed());
            let done = query.execute(&pool).await.map_err(io::Error::other)?;
            Ok(done.rows_affected() == 1)
        })
    });
    let look: Look = Arc::new(move |key| {
        let pool = answers.clone();
        Box::pin(async move {
            let query = sqlx::query_scalar::<_, i64>("SELECT token FROM effects WHERE key = $1").bind(key);
            query.fetch_one(&pool).await.map(i64::cast_unsigned).map_err(io::Error::other)
        })
    });
    work(idempotency, &settings, effect, look).await;
}
