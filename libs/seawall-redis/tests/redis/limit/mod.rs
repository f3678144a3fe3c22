//! CRD-8: a rate limit that several processes share, on a real Redis.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod processes;

use std::sync::Arc;

use seawall_redis::Connection;
use seawall_redis::limit::RedisLimits;
use seawall_testkit::conformance;
use seawall_testkit::servers::Redis;

/// CRD-8: the suite of limits is green on Redis.
#[tokio::test]
async fn crd_8_redis_is_a_store_of_limits() {
    let connection = Connection::new(&Redis::shared().url()).unwrap();
    conformance::limit(Arc::new(RedisLimits::new(connection))).await;
}
