//! The longest duration there is, which programs mean as "for ever".

use std::time::Duration;

use seawall_dist::Message;
use seawall_dist::Millis;
use seawall_dist::idempotency::{ClaimAnswer, ClaimRequest, IdempotencyKey, IdempotencyStore};
use seawall_dist::lock::{Acquisition, LockKey, LockStore, OwnerId};
use seawall_dist::outbox::{BatchRequest, OutboxStore, OutcomeKind, Retention, RowOutcome};
use seawall_dist::saga::{ClaimOutcome, CreateOutcome, DefinitionId, DueSagas, SagaRow, SagaStore};
use seawall_dist::schedule::{JobStore, RunClaim, RunClaimOutcome};
use seawall_sql::{postgres, sqlite};
use seawall_testkit::servers::Postgres;
use sqlx::PgPool;

const FOREVER: Duration = Duration::MAX;

async fn locks(store: &dyn LockStore) {
    let (key, me, you) =
        (LockKey::new("lock:transaction:user:1").unwrap(), OwnerId::random(), OwnerId::random());
    assert!(matches!(store.acquire(&key, &me, FOREVER).await.unwrap(), Acquisition::Granted(_)));
    assert_eq!(store.acquire(&key, &you, FOREVER).await.unwrap(), Acquisition::Held);
    assert!(store.renew(&key, &me, FOREVER).await.unwrap());
}

async fn jobs(store: &dyn JobStore) {
    let state = store.open("report").await.unwrap();
    let mut claim = RunClaim {
        job: "report".into(),
        after: state.last_tick,
        tick: Millis(state.last_tick.0 + 1),
        missed: 0,
        owner: "me".into(),
        lease: FOREVER,
    };
    let RunClaimOutcome::Claimed { fence } = store.claim(&claim).await.unwrap() else { panic!("it is free") };
    assert!(store.renew("report", fence, FOREVER).await.unwrap());
    assert!(store.open("report").await.unwrap().running_until.is_some());
    (claim.after, claim.tick) = (claim.tick, Millis(claim.tick.0 + 1));
    assert_eq!(store.claim(&claim).await.unwrap(), RunClaimOutcome::Running);
}

async fn sagas(store: &dyn SagaStore) {
    let definition = DefinitionId { name: "transfer".into(), version: 1 };
    let row = SagaRow {
        id: "a".into(),
        definition: definition.clone(),
        entity: None,
        input: Vec::new(),
        timeout: FOREVER,
        owner: "me".into(),
        lease: FOREVER,
    };
    assert!(matches!(store.create(&row).await.unwrap(), CreateOutcome::Created(_)));
    assert!(matches!(store.claim("a", "you", FOREVER).await.unwrap(), ClaimOutcome::Held(_)));
    assert!(store.renew("a", 1, FOREVER).await.unwrap());
    let known = vec![definition];
    let due = DueSagas { owner: "you".into(), lease: FOREVER, known, limit: 10 };
    assert!(store.claim_due(&due).await.unwrap().is_empty());
    store.release("a", 1).await.unwrap();
    assert_eq!(store.claim_due(&due).await.unwrap().len(), 1);
    assert_eq!(store.clean_up(FOREVER, 10).await.unwrap(), 0);
}

async fn outbox(store: &dyn OutboxStore) {
    store.store(&[Message::new("created", "a", "")]).await.unwrap();
    let batch = store.claim(&BatchRequest::new("me", 10, 16, FOREVER)).await.unwrap().unwrap();
    assert!(store.renew(&batch.lease, FOREVER).await.unwrap());
    let kind = OutcomeKind::Returned { delay: FOREVER };
    let outcome = RowOutcome { id: batch.rows[0].id, kind };
    assert_eq!(store.record(&batch.lease, &[outcome], Retention::Delete).await.unwrap().len(), 1);
    assert!(store.claim(&BatchRequest::new("me", 10, 16, FOREVER)).await.unwrap().is_none());
    assert_eq!(store.clean_up(FOREVER, 10).await.unwrap(), 0);
}

async fn keys(store: &dyn IdempotencyStore) {
    let key = IdempotencyKey::new("tenant", "a").unwrap();
    let request = |holder| ClaimRequest { fingerprint: [1; 32], holder, lease: FOREVER, ttl: FOREVER };
    assert!(matches!(store.claim(&key, request(1)).await.unwrap(), ClaimAnswer::Acquired { .. }));
    assert!(matches!(store.claim(&key, request(2)).await.unwrap(), ClaimAnswer::InFlight { .. }));
    assert!(store.renew(&key, 1, FOREVER).await.unwrap());
}

#[tokio::test]
async fn the_longest_duration_is_for_ever_on_postgres() {
    let pool = PgPool::connect(Postgres::shared().database().unwrap().url()).await.unwrap();
    postgres::migrate(&pool).await.unwrap();
    locks(&postgres::lock::PostgresLocks::new(pool.clone())).await;
    jobs(&postgres::job::PostgresJobStore::new(pool.clone())).await;
    sagas(&postgres::saga::PostgresSagaStore::new(pool.clone())).await;
    outbox(&postgres::outbox::PostgresOutbox::new(pool.clone())).await;
    keys(&postgres::idempotency::PostgresIdempotency::new(pool.clone())).await;
    postgres::idempotency::remove_processed(&pool, FOREVER, 10).await.unwrap();
    postgres::saga::clean_up_marks(&pool, FOREVER, 10).await.unwrap();
}

#[tokio::test]
async fn the_longest_duration_is_for_ever_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let pool = sqlite::open(&folder.path().join("test.db")).await.unwrap();
    sqlite::migrate(&pool).await.unwrap();
    locks(&sqlite::lock::SqliteLocks::new(pool.clone())).await;
    jobs(&sqlite::job::SqliteJobStore::new(pool.clone())).await;
    sagas(&sqlite::saga::SqliteSagaStore::new(pool.clone())).await;
    outbox(&sqlite::outbox::SqliteOutbox::new(pool.clone())).await;
    keys(&sqlite::idempotency::SqliteIdempotency::new(pool.clone())).await;
    sqlite::idempotency::remove_processed(&pool, FOREVER, 10).await.unwrap();
    sqlite::saga::clean_up_marks(&pool, FOREVER, 10).await.unwrap();
}
