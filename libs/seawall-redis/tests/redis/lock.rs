use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use redis::cmd;
use seawall::secs;
use seawall_dist::lock::{Acquisition, LockError, LockKey, LockStore, Locks, LossReason, OwnerId, Wait};
use seawall_redis::Connection;
use seawall_redis::lock::{FENCE_KEY, RedisLocks, TOKENS_KEY, redlock};
use seawall_testkit::conformance;
use seawall_testkit::servers::{FaultProxy, NetworkFault, Redis};

fn locks_on(redis: &Redis) -> RedisLocks {
    RedisLocks::new(Connection::new(&redis.url()).unwrap())
}

fn key(name: &str) -> LockKey {
    LockKey::new(format!("lock:test:{name}:1")).unwrap()
}

async fn take(store: &dyn LockStore, key: &LockKey, lease: Duration) -> (OwnerId, Acquisition) {
    let owner = OwnerId::random();
    let answer = store.acquire(key, &owner, lease).await.unwrap();
    (owner, answer)
}

/// CRD-1: one Redis holds the contract of a store of locks.
#[tokio::test]
async fn crd_1_one_redis_conforms() {
    conformance::lock(Arc::new(locks_on(Redis::shared()))).await;
}

/// CRD-1: Redlock over five nodes holds the same contract, also with two of them paused.
#[tokio::test]
async fn crd_1_redlock_over_five_nodes_conforms() {
    let nodes: Vec<Redis> = (0..5).map(|_| Redis::start().unwrap()).collect();
    let urls: Vec<String> = nodes.iter().map(Redis::url).collect();
    let store = Arc::new(redlock(urls.iter().map(String::as_str)).unwrap());
    conformance::lock(store.clone()).await;
    nodes[1].control().pause().unwrap();
    nodes[3].control().kill().unwrap();
    conformance::lock(store).await;
    nodes[1].control().resume().unwrap();
}

/// CRD-1: tokens grow although the server is killed: with its log, and without it by its clock.
#[tokio::test]
async fn crd_1_tokens_grow_across_restarts_of_one_redis() {
    for redis in [Redis::builder().durable().start().unwrap(), Redis::start().unwrap()] {
        conformance::lock_tokens(&locks_on(&redis), 60, |grant| {
            if grant % 15 == 14 {
                redis.control().kill().unwrap();
                redis.control().start().unwrap();
            }
        })
        .await;
    }
}

/// CRD-1: tokens of one server grow strictly although its clock was set back, also when the last millisecond has no number left.
#[tokio::test]
async fn crd_1_tokens_of_one_server_grow_although_its_clock_is_behind() {
    let redis = Redis::start().unwrap();
    let (store, connection) = (locks_on(&redis), Connection::new(&redis.url()).unwrap());
    let ahead = "4000000000000-2097149";
    let mut add = cmd("XADD");
    add.arg(TOKENS_KEY).arg("MAXLEN").arg(0).arg(ahead).arg("t").arg("");
    connection.query::<()>("a clock that was ahead", &add).await.unwrap();
    let mut last = (4_000_000_000_000_i64 << 21) | 2_097_149;
    for round in 0..20 {
        let key = key(&format!("behind-{round}"));
        let (_, Acquisition::Granted(token)) = take(&store, &key, secs(10)).await else {
            panic!("it is free")
        };
        assert!(token.as_i64() > last, "{token} after {last}");
        last = token.as_i64();
    }
}

/// CRD-1: who waits for a lock writes nothing to the server, apart from its first attempt.
#[tokio::test]
async fn crd_1_attempts_in_vain_draw_no_token() {
    let redis = Redis::start().unwrap();
    let (store, connection) = (locks_on(&redis), Connection::new(&redis.url()).unwrap());
    let key = key("in-vain");
    let (owner, Acquisition::Granted(first)) = take(&store, &key, secs(30)).await else {
        panic!("it is free")
    };
    let mut drawn = Vec::new();
    for _ in 0..20 {
        assert_eq!(take(&store, &key, secs(30)).await.1, Acquisition::Held);
        let info: std::collections::HashMap<String, redis::Value> =
            connection.query("a look", cmd("XINFO").arg("STREAM").arg(TOKENS_KEY)).await.unwrap();
        drawn.push(format!("{:?}", info["entries-added"]));
    }
    drawn.dedup();
    assert_eq!(drawn.len(), 1, "{drawn:?}");
    // A request that is repeated because its answer was lost finds its own lock, with a new token.
    let Acquisition::Granted(second) = store.acquire(&key, &owner, secs(30)).await.unwrap() else {
        panic!("it is its own")
    };
    assert!(second > first);
}

/// CRD-1: tokens of Redlock grow although each node in turn loses its data, and another is away.
#[tokio::test]
async fn crd_1_tokens_of_redlock_grow_although_nodes_lose_their_data() {
    let nodes: Vec<Redis> = (0..5).map(|_| Redis::start().unwrap()).collect();
    let urls: Vec<String> = nodes.iter().map(Redis::url).collect();
    let store = redlock(urls.iter().map(String::as_str)).unwrap();
    conformance::lock_tokens(&store, 300, |grant| {
        let node = &nodes[grant as usize / 30 % 5];
        let next = &nodes[(grant as usize / 30 + 2) % 5];
        match grant % 30 {
            5 => {
                node.control().kill().unwrap();
                node.control().start().unwrap();
            }
            18 => next.control().kill().unwrap(),
            24 => next.control().start().unwrap(),
            _ => {}
        }
    })
    .await;
}

/// CRD-1: a node that lost its data grants nothing until it has learnt the counter of the others.
#[tokio::test]
async fn crd_1_a_node_without_its_counter_does_not_vote() {
    let nodes: Vec<Redis> = (0..3).map(|_| Redis::start().unwrap()).collect();
    let urls: Vec<String> = nodes.iter().map(Redis::url).collect();
    let store = redlock(urls.iter().map(String::as_str)).unwrap();
    let key = key("vote");
    let (owner, Acquisition::Granted(first)) = take(&store, &key, secs(10)).await else {
        panic!("it is free")
    };
    store.release(&key, &owner).await.unwrap();
    let empty = Connection::new(&urls[0]).unwrap();
    empty.query::<()>("a loss", &cmd("FLUSHALL")).await.unwrap();
    // Two nodes are left that know the counter, and one of them is away: nothing can be granted.
    nodes[1].control().kill().unwrap();
    let refused = store.acquire(&key, &OwnerId::random(), secs(10)).await;
    assert!(!matches!(refused, Ok(Acquisition::Granted(_))), "{refused:?}");
    nodes[1].control().start().unwrap();
    nodes[2].control().pause().unwrap();
    // The node that was restarted lost its counter too: still nothing, and not a token that begins anew.
    let refused = store.acquire(&key, &OwnerId::random(), secs(1)).await;
    assert!(!matches!(refused, Ok(Acquisition::Granted(_))), "{refused:?}");
    nodes[2].control().resume().unwrap();
    conformance::lock_tokens(&store, 1, |_| {}).await;
    let counter: i64 = empty.query("a look", cmd("GET").arg(FENCE_KEY)).await.unwrap();
    assert!(counter > first.as_i64());
}

/// PRM-5: nodes that come back with an old counter (a snapshot, or `appendfsync everysec`) do not repeat a token, although the
/// only node that knows it is away.
#[tokio::test]
async fn prm_5_nodes_that_come_back_with_an_old_counter_do_not_repeat_a_token() {
    let nodes: Vec<Redis> = (0..3).map(|_| Redis::start().unwrap()).collect();
    let urls: Vec<String> = nodes.iter().map(Redis::url).collect();
    let store = redlock(urls.iter().map(String::as_str)).unwrap();
    let key = key("rewound");
    let (_, Acquisition::Granted(first)) = take(&store, &key, secs(10)).await else { panic!("it is free") };
    nodes[0].control().pause().unwrap();
    for url in &urls[1..] {
        let node = Connection::new(url).unwrap();
        node.query::<()>("a snapshot", cmd("SET").arg(FENCE_KEY).arg(first.as_i64() - 1)).await.unwrap();
        node.query::<()>("a loss", cmd("DEL").arg(key.as_str())).await.unwrap();
    }
    // The time that a restart takes at least.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let (_, Acquisition::Granted(second)) = take(&store, &key, secs(10)).await else {
        panic!("two are free")
    };
    nodes[0].control().resume().unwrap();
    assert!(second > first, "{second} after {first}");
}

/// TRAPS: a Redis that was restarted without its data inside the lease grants the lock again, and fencing saves the write:
/// the second token is larger. The first holder learns of the loss with its next renewal.
#[tokio::test]
async fn prm_5_a_restart_inside_the_lease_is_saved_by_the_token() {
    let redis = Redis::start().unwrap();
    let store = Arc::new(locks_on(&redis));
    let locks = Locks::builder(store.clone()).lease(secs(3)).build().unwrap();
    let (first, second) = tokio::join!(
        locks.with_lock(key("restart"), |lease| {
            let (redis, fence) = (&redis, lease.fence());
            async move {
                redis.control().kill().unwrap();
                redis.control().start().unwrap();
                println!("restarted with {fence}");
                std::future::pending::<()>().await;
            }
        }),
        async {
            let Some(first) = eventually(|| async {
                let (_, answer) = take(&*store, &key("other"), secs(1)).await;
                matches!(answer, Acquisition::Granted(_)).then_some(answer)
            })
            .await
            else {
                panic!("the server is there")
            };
            let second = eventually(|| async {
                let owner = OwnerId::random();
                let answer = store.acquire(&key("restart"), &owner, secs(3)).await;
                matches!(answer, Ok(Acquisition::Granted(_))).then(|| answer.unwrap())
            })
            .await
            .unwrap();
            (first, second)
        }
    );
    let error = first.unwrap_err();
    assert!(matches!(error, LockError::Lost { reason: LossReason::TakenOver, .. }), "{error}");
    let (Acquisition::Granted(before), Acquisition::Granted(after)) = second else { panic!("{second:?}") };
    assert!(after > before, "the second holder's token is not larger");
}

async fn eventually<T, F: Future<Output = Option<T>>>(mut look: impl FnMut() -> F) -> Option<T> {
    for _ in 0..400 {
        if let Some(found) = look().await {
            return Some(found);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    None
}

/// CRD-1: with the network gone the work is cancelled before the lease ends; when it is back, others get the lock.
#[tokio::test]
async fn crd_1_a_partition_cancels_the_work_before_the_lease_ends() {
    for fault in [NetworkFault::Partition, NetworkFault::LostResponses, NetworkFault::Refuse] {
        let redis = Redis::start().unwrap();
        let proxy = FaultProxy::start(redis.address()).unwrap();
        let store = RedisLocks::new(Connection::new(&format!("redis://{}/", proxy.address())).unwrap());
        let locks = Locks::new(Arc::new(store));
        let mut seen = None;
        let error = locks
            .with_lock(key("partition"), |lease| {
                seen = Some(lease.clone());
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
        let LockError::Lost { reason: LossReason::NotRenewed, .. } = error else { panic!("{error}") };
        assert!(!seen.unwrap().is_valid());
        let (_, answer) = eventually(|| async {
            let (owner, answer) = take(&locks_on(&redis), &key("partition"), secs(1)).await;
            matches!(answer, Acquisition::Granted(_)).then_some((owner, answer))
        })
        .await
        .expect("the lease ended");
        assert!(matches!(answer, Acquisition::Granted(_)));
    }
}

/// PRM-4: a call on a real Redis that is dropped after its first poll, its second, its third, … leaves no lock behind.
#[tokio::test]
async fn prm_4_a_dropped_call_gives_its_lock_back_on_redis() {
    drop_at_every_poll(Arc::new(locks_on(Redis::shared()))).await;
}

/// PRM-4: and so does one over several nodes.
#[tokio::test]
async fn prm_4_a_dropped_call_gives_its_lock_back_on_redlock() {
    let nodes: Vec<Redis> = (0..3).map(|_| Redis::start().unwrap()).collect();
    let urls: Vec<String> = nodes.iter().map(Redis::url).collect();
    drop_at_every_poll(Arc::new(redlock(urls.iter().map(String::as_str)).unwrap())).await;
}

async fn drop_at_every_poll(store: Arc<dyn LockStore>) {
    let locks = Locks::builder(store.clone()).lease(secs(20)).wait(Wait::ONCE).build().unwrap();
    let mut ended = false;
    for polls in 0..100 {
        let work = |_| async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
        };
        let mut call = Box::pin(locks.with_lock(key("dropped"), work));
        for _ in 0..polls {
            ended = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_ready())).await;
            if ended {
                break;
            }
            // The server's answer comes in between.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        drop(call);
        let free = eventually(|| async {
            let (owner, answer) = take(&*store, &key("dropped"), secs(20)).await;
            store.release(&key("dropped"), &owner).await.unwrap();
            matches!(answer, Acquisition::Granted(_)).then_some(())
        });
        assert!(free.await.is_some(), "a call dropped after {polls} polls left its lock behind");
        if ended {
            break;
        }
    }
    assert!(ended, "the call never ended");
}
