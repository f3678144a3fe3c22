use std::io;
use std::sync::Arc;
use std::time::Duration;

use seawall::Ran;
use seawall_dist::idempotency::{ClaimRequest, Idempotency, IdempotencyStore, OnceError, OnceOutcome};
use seawall_sql::postgres;
use seawall_sql::postgres::idempotency::PostgresIdempotency;
use seawall_sql::sqlite::idempotency::SqliteIdempotency;
use seawall_testkit::servers::Postgres;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use super::{BODY, key, postgres_pool};
use seawall_testkit::poll_at_most;

type Once = Result<OnceOutcome, OnceError<io::Error>>;

/// CRD-2: with the database stopped a keyed call is refused and nothing runs; after its restart results are still there.
#[tokio::test]
async fn crd_2_without_postgres_nothing_runs_and_a_restart_forgets_nothing() {
    let server = Postgres::start().unwrap();
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_secs(2))
        .connect(server.database().unwrap().url())
        .await
        .unwrap();
    postgres::migrate(&pool).await.unwrap();
    let idempotency = Idempotency::new(Arc::new(PostgresIdempotency::new(pool)));
    let work = async |_| Ok::<_, io::Error>(b"done".to_vec());
    idempotency.once(&key("a"), BODY, work).await.unwrap();
    server.control().kill().unwrap();
    let refused: Once = idempotency.once(&key("b"), BODY, async |_| panic!("it ran unprotected")).await;
    assert!(matches!(refused, Err(OnceError::Store(_))), "{refused:?}");
    server.control().start().unwrap();
    let mut again = idempotency.once(&key("a"), BODY, work).await;
    for _ in 0..100 {
        if again.is_ok() {
            break;
        }
        again = idempotency.once(&key("a"), BODY, work).await;
    }
    assert!(again.unwrap().is_replayed(), "the result was lost");
}

/// CRD-2: while no connection is to be had, claims do not queue up behind each other: each of them is refused when the pool's time
/// is over.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the time of paused timers")]
async fn crd_2_claims_do_not_queue_behind_each_other() {
    const WAIT: Duration = Duration::from_secs(2);
    let database = Postgres::shared().database().unwrap();
    let options = PgPoolOptions::new().max_connections(2).acquire_timeout(WAIT);
    let pool = options.connect(database.url()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteConnectOptions::new().filename(folder.path().join("test.db")).create_if_missing(true);
    let options = SqlitePoolOptions::new().max_connections(2).acquire_timeout(WAIT);
    let file = options.connect_with(file).await.unwrap();
    let _all = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    let _all_of_the_file = (file.acquire().await.unwrap(), file.acquire().await.unwrap());
    let stores: [Arc<dyn IdempotencyStore>; 2] =
        [Arc::new(PostgresIdempotency::new(pool.clone())), Arc::new(SqliteIdempotency::new(file.clone()))];
    // From here on only timers run.
    tokio::time::pause();
    for store in stores {
        let started = tokio::time::Instant::now();
        let mut claims = tokio::task::JoinSet::new();
        for holder in 0..20 {
            let store = store.clone();
            claims.spawn(async move {
                let request =
                    ClaimRequest { fingerprint: BODY, holder, lease: Duration::MAX, ttl: Duration::MAX };
                store.claim(&key("a"), request).await.unwrap_err()
            });
        }
        for error in claims.join_all().await {
            assert!(error.fault().is_transient() && error.fault().did_run() == Ran::No, "{error:?}");
        }
        assert!(started.elapsed() < WAIT * 2, "claims waited {:?}", started.elapsed());
    }
}

/// PRM-4: a call on a real database that is dropped after any number of polls leaves its key free or done.
#[tokio::test]
async fn prm_4_a_call_on_postgres_dropped_at_any_poll_blocks_nobody() {
    let idempotency = Idempotency::new(Arc::new(PostgresIdempotency::new(postgres_pool().await)));
    for polls in 0..1_000 {
        let key = key(&format!("k-{polls}"));
        let work = async |_| Ok::<_, io::Error>(b"done".to_vec());
        let ended = poll_at_most(idempotency.once(&key, BODY, work), polls).await.is_some();
        let mut next: Once = Err(OnceError::Unknown);
        for _ in 0..300 {
            next = idempotency.once(&key, BODY, async |_| Ok(b"done".to_vec())).await;
            if next.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The lease is thirty seconds: a key that is free within three was not left to it.
        assert_eq!(next.expect("the key is blocked").bytes(), b"done", "dropped after {polls} polls");
        if ended {
            assert!(polls > 2, "the call never waited for the store");
            return;
        }
    }
    panic!("the call did not end");
}
