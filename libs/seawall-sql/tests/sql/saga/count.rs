use seawall_dist::saga::SagaState;
use seawall_dist::saga::SagaStore as _;
use seawall_sql::postgres::saga::PostgresSagaStore;
use sqlx::PgPool;

use super::bank::Bank;

/// How often the whole table was read. A session tells its numbers when it ends.
async fn full_reads(address: &str) -> i64 {
    let pool = PgPool::connect(address).await.unwrap();
    let reads = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'seawall_sagas'";
    let reads = sqlx::query_scalar(reads).fetch_one(&pool).await.unwrap();
    pool.close().await;
    reads
}

/// CRD-5: the number of open sagas is found without a look at all that have ended.
#[tokio::test]
async fn crd_5_counting_does_not_read_the_whole_table() {
    let bank = Bank::postgres().await;
    bank.execute(
        "INSERT INTO seawall_sagas (id, name, definition_version, state, input, owner, fence, lease_until, deadline_at) \
         SELECT 's' || n, 'transfer', 1, CASE n WHEN 1 THEN 'running' WHEN 2 THEN 'needs_attention' ELSE 'completed' END, \
         '', 'me', 1, now(), now() FROM generate_series(1, 20000) n",
    )
    .await;
    bank.execute("ANALYZE seawall_sagas").await;
    let before = full_reads(&bank.address).await;
    let pool = PgPool::connect(&bank.address).await.unwrap();
    let counts = PostgresSagaStore::new(pool.clone()).count().await.unwrap();
    pool.close().await;
    assert_eq!(counts, [(SagaState::Running, 1), (SagaState::NeedsAttention, 1)]);
    assert_eq!(full_reads(&bank.address).await, before, "the whole table was read");
}
