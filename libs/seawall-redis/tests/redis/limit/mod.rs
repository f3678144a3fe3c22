//! CRD-8: a rate limit that several processes share, on a real Redis.

mod processes;

use std::sync::Arc;
use std::time::Duration;

use seawall_dist::limit::{DecidedBy, SharedLimit};
use seawall_redis::Connection;
use seawall_redis::limit::RedisLimits;
use seawall_testkit::conformance;
use seawall_testkit::servers::{FaultProxy, NetworkFault, Redis};

/// CRD-8: the suite of limits is green on Redis.
#[tokio::test]
async fn crd_8_redis_is_a_store_of_limits() {
    let connection = Connection::new(&Redis::shared().url()).unwrap();
    conformance::limit(Arc::new(RedisLimits::new(connection))).await;
}

/// CRD-8: behind a partition, where nothing is refused and nothing answers, calls are decided locally within a second; when it
/// ends, they are shared again.
#[tokio::test]
async fn crd_8_a_partition_is_noticed_within_a_second() {
    let proxy = FaultProxy::start(Redis::shared().address()).unwrap();
    let connection = Connection::new(&format!("redis://{}/", proxy.address())).unwrap();
    let limit =
        SharedLimit::builder(Arc::new(RedisLimits::new(connection)), "partition", 1_000).build().unwrap();
    assert_eq!(limit.try_acquire().await.unwrap().decided_by(), DecidedBy::Shared);
    proxy.set(NetworkFault::Partition);
    for _ in 0..20 {
        let call = tokio::time::timeout(Duration::from_secs(1), limit.try_acquire()).await;
        assert_eq!(call.expect("it waits for Redis").unwrap().decided_by(), DecidedBy::Local);
    }
    proxy.set(NetworkFault::None);
    for _ in 0..500 {
        if limit.try_acquire().await.unwrap().decided_by() == DecidedBy::Shared {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the limit stayed local after the partition had ended");
}
