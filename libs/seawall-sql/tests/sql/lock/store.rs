use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use seawall::{millis, secs};
use seawall_dist::lock::{
    Acquisition, FencingSource, LockError, LockKey, LockStore, Locks, LossReason, OwnerId, Wait,
};
use seawall_sql::postgres::{self, lock::PostgresLocks};
use seawall_testkit::conformance;
use seawall_testkit::servers::{FaultProxy, NetworkFault, Postgres};
use sqlx::PgPool;

async fn locks() -> (PostgresLocks, PgPool) {
    let pool = PgPool::connect(Postgres::shared().database().unwrap().url()).await.unwrap();
    postgres::migrate(&pool).await.unwrap();
    (PostgresLocks::new(pool.clone()), pool)
}

fn key(name: &str) -> LockKey {
    LockKey::new(format!("lock:test:{name}:1")).unwrap()
}

/// CRD-1: PostgreSQL holds the contract of a store of locks.
#[tokio::test]
async fn crd_1_postgres_conforms() {
    let (store, _) = locks().await;
    conformance::lock(Arc::new(store)).await;
}

/// CRD-1: tokens grow although the server is killed.
#[tokio::test]
async fn crd_1_tokens_grow_across_crashes_of_postgres() {
    let server = Postgres::start().unwrap();
    let pool = PgPool::connect(server.database().unwrap().url()).await.unwrap();
    postgres::migrate(&pool).await.unwrap();
    let store = PostgresLocks::new(pool);
    conformance::lock_tokens(&store, 60, |grant| {
        if grant % 25 == 24 {
            server.control().kill().unwrap();
            server.control().start().unwrap();
        }
    })
    .await;
}

/// CRD-1: rows of locks that nobody uses are deleted, and the next token is larger all the same.
#[tokio::test]
async fn crd_1_tokens_grow_although_unused_rows_are_deleted() {
    let (store, pool) = locks().await;
    let (key, owner) = (key("unused"), OwnerId::random());
    let Acquisition::Granted(first) = store.acquire(&key, &owner, secs(5)).await.unwrap() else {
        panic!("it is free")
    };
    assert_eq!(store.delete_unused().await.unwrap(), 0, "a lock that is held was deleted");
    store.release(&key, &owner).await.unwrap();
    assert_eq!(store.delete_unused().await.unwrap(), 0, "a lock of today was deleted");
    sqlx::query("UPDATE seawall_locks SET expires_at = expires_at - interval '2 days'")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(store.delete_unused().await.unwrap(), 1);
    let Acquisition::Granted(second) = store.acquire(&key, &owner, secs(5)).await.unwrap() else {
        panic!("it is free")
    };
    assert!(second > first, "{second} after {first}");
}

/// CRD-1: PostgreSQL as the source of tokens of another store: it draws growing tokens, and takes no lock by it.
#[tokio::test]
async fn crd_1_postgres_is_a_source_of_tokens() {
    let (store, _) = locks().await;
    let key = key("source");
    let mut last = store.next_token(&key).await.unwrap();
    for _ in 0..50 {
        let next = store.next_token(&key).await.unwrap();
        assert!(next > last);
        last = next;
    }
    let memory = Arc::new(seawall_dist::lock::MemoryLocks::new());
    let locks = Locks::builder(memory).fencing(Arc::new(store.clone())).build().unwrap();
    let token = locks.with_lock(&key, |lease| async move { lease.fence() }).await.unwrap();
    assert!(token > last);
    let owner = OwnerId::random();
    assert!(
        matches!(store.acquire(&key, &owner, secs(5)).await, Ok(Acquisition::Granted(next)) if next > token)
    );
}

/// CRD-1: with the network gone the work is cancelled before the lease ends.
#[tokio::test]
async fn crd_1_a_partition_from_postgres_cancels_the_work_before_the_lease_ends() {
    let database = Postgres::shared().database().unwrap();
    let proxy = FaultProxy::start(Postgres::shared().address()).unwrap();
    let pool = PgPool::connect(&database.url_through(proxy.address())).await.unwrap();
    postgres::migrate(&pool).await.unwrap();
    let locks = Locks::new(Arc::new(PostgresLocks::new(pool)));
    for fault in [NetworkFault::Partition, NetworkFault::LostResponses, NetworkFault::Refuse] {
        let error = locks
            .key(key("partition"))
            .wait(Wait::UntilLocked)
            .with(|lease| {
                let proxy = &proxy;
                async move {
                    proxy.set(fault);
                    loop {
                        assert!(lease.is_valid(), "the work took a step without a lease");
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
            })
            .await
            .unwrap_err();
        assert!(matches!(error, LockError::Lost { reason: LossReason::NotRenewed, .. }), "{error}");
        proxy.set(NetworkFault::None);
    }
}

/// PRM-5: a register that is written with the token refuses who comes after a newer holder; the same grant may write again.
#[tokio::test]
async fn prm_5_a_fenced_register_refuses_older_tokens() {
    let (store, pool) = locks().await;
    sqlx::query("CREATE TABLE accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT NOT NULL)")
        .execute(&pool)
        .await
        .unwrap();
    sqlx::query("INSERT INTO accounts VALUES (1, 100, 0)").execute(&pool).await.unwrap();
    let key = key("account");
    let write = async |balance: i64, fence: i64| {
        let update = "UPDATE accounts SET balance = $1, fence = $2 WHERE id = 1 AND fence <= $2";
        let query = sqlx::query(update).bind(balance).bind(fence);
        query.execute(&pool).await.unwrap().rows_affected() == 1
    };
    let late = OwnerId::random();
    let Ok(Acquisition::Granted(old)) = store.acquire(&key, &late, Duration::from_millis(50)).await else {
        panic!("it is free")
    };
    assert!(write(90, old.as_i64()).await && write(80, old.as_i64()).await);
    let new = loop {
        let answer = store.acquire(&key, &OwnerId::random(), secs(5)).await.unwrap();
        if let Acquisition::Granted(token) = answer {
            break token;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert!(write(70, new.as_i64()).await);
    assert!(!write(60, old.as_i64()).await, "a late holder's write was accepted");
    let balance: i64 = sqlx::query_scalar("SELECT balance FROM accounts").fetch_one(&pool).await.unwrap();
    assert_eq!(balance, 70);
}

/// PRM-4: a call on PostgreSQL that is dropped after its first poll, its second, its third, … leaves no lock behind.
#[tokio::test]
async fn prm_4_a_dropped_call_gives_its_lock_back_on_postgres() {
    let (store, _) = locks().await;
    let locks = Locks::builder(Arc::new(store.clone())).lease(secs(60)).wait(Wait::ONCE).build().unwrap();
    let mut ended = false;
    for polls in 0..100 {
        let mut call = Box::pin(locks.with_lock(key("dropped"), |_| tokio::task::yield_now()));
        for _ in 0..polls {
            ended = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_ready())).await;
            if ended {
                break;
            }
            // The server's answer comes in between.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(call);
        let mut is_free = false;
        for _ in 0..500 {
            let owner = OwnerId::random();
            let answer = store.acquire(&key("dropped"), &owner, secs(60)).await.unwrap();
            store.release(&key("dropped"), &owner).await.unwrap();
            is_free = matches!(answer, Acquisition::Granted(_));
            if is_free {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(is_free, "a call dropped after {polls} polls left its lock behind");
        if ended {
            return;
        }
    }
    panic!("the call never ended");
}

/// CRD-1: a lock that is renewed all the time writes to no index and leaves nothing behind that only a vacuum removes.
#[tokio::test]
async fn crd_1_renewals_write_to_no_index() {
    const RENEWALS: i64 = 200;
    let database = Postgres::shared().database().unwrap();
    let pool = PgPool::connect(database.url()).await.unwrap();
    postgres::migrate(&pool).await.unwrap();
    let store = PostgresLocks::new(pool.clone());
    let (key, owner) = (LockKey::new("lock:transaction:user:1").unwrap(), OwnerId::random());
    store.acquire(&key, &owner, secs(60)).await.unwrap();
    for _ in 0..RENEWALS {
        assert!(store.renew(&key, &owner, secs(60)).await.unwrap());
    }
    // A session tells its numbers when it ends.
    pool.close().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let numbers = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'seawall_locks'";
    let (all, hot) = loop {
        let (all, hot): (i64, i64) = sqlx::query_as(numbers).fetch_one(&pool).await.unwrap();
        if all >= RENEWALS {
            break (all, hot);
        }
        tokio::time::sleep(millis(20)).await;
    };
    assert!(hot * 10 >= all * 9, "{hot} of {all} updates kept off the index");
}
