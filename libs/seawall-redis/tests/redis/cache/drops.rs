//! PRM-4: every future of the caches, dropped at every poll.

use std::time::Duration;

use seawall::breaker::State;
use seawall::task::cache::{Invalidation, RemoteCache, RemoteEntry, RemoteLookup};
use seawall_redis::Connection;
use seawall_redis::cache::{RedisCache, RedisRemoteCache};
use seawall_testkit::servers::Redis;

use crate::connection::drop_at_every_poll;

const TTL: Duration = Duration::from_secs(60);

/// PRM-4: a read, a write or a deletion that is dropped at any poll leaves the connection and the circuit as they were. Each
/// begins once with a connection and once without.
#[tokio::test]
async fn prm_4_operations_of_the_cache_are_dropped_at_every_poll() {
    let url = Redis::shared().url();
    for connected in [false, true] {
        let cache = || async {
            let connection = Connection::new(&url).unwrap();
            let cache = RedisCache::builder(connection).prefix("dropped:").build().unwrap();
            if connected {
                let _ = cache.get::<String>("key").await;
            }
            cache
        };
        let check = async |cache: RedisCache| {
            assert!(cache.put("other", &"value".to_owned(), TTL).await.unwrap());
            assert_eq!(cache.get::<String>("other").await.unwrap().as_deref(), Some("value"));
            assert_eq!(cache.guard().breaker().unwrap().state(), State::Closed);
        };
        let value = "x".to_owned();
        let polls = [
            drop_at_every_poll(cache, async |cache| drop(cache.get::<String>("key").await), check).await,
            drop_at_every_poll(cache, async |cache| drop(cache.put("key", &value, TTL).await), check).await,
            drop_at_every_poll(
                cache,
                async |cache| {
                    let _ = cache.delete("key").await;
                },
                check,
            )
            .await,
        ];
        assert!(polls.iter().all(|polls| *polls >= 2), "each waits for Redis: {polls:?}");
    }
}

/// PRM-4: an operation of the remote cache that is dropped at any poll leaves no lease that keeps others from storing.
#[tokio::test]
async fn prm_4_operations_of_the_remote_cache_are_dropped_at_every_poll() {
    let url = Redis::shared().url();
    let remote = || async {
        let connection = Connection::new(&url).unwrap();
        RedisRemoteCache::builder("dropped", connection).prefix("dropped:remote:").build().unwrap()
    };
    let check = async |remote: RedisRemoteCache| {
        let RemoteLookup::Miss(lease) = remote.get("key", u64::MAX).await.unwrap() else { panic!("a hit") };
        let entry = RemoteEntry::new(Some(b"value".to_vec()), 0);
        assert!(remote.set("key", entry.clone(), TTL, lease).await.unwrap());
        let found = remote.get("key", 0).await.unwrap();
        assert!(matches!(&found, RemoteLookup::Hit(found, _) if *found == entry), "{found:?}");
        assert_eq!(remote.guard().breaker().unwrap().state(), State::Closed);
    };
    let entry = || RemoteEntry::new(None, 0);
    let polls = [
        drop_at_every_poll(remote, async |remote| drop(remote.get("key", 0).await), check).await,
        drop_at_every_poll(remote, async |remote| drop(remote.set("key", entry(), TTL, 1).await), check)
            .await,
        drop_at_every_poll(remote, async |remote| drop(remote.delete("key").await), check).await,
    ];
    assert!(polls.iter().all(|polls| *polls >= 2), "each waits for Redis: {polls:?}");
}

/// PRM-4: whoever gives up waiting for the next deletion has lost none.
#[tokio::test]
async fn prm_4_a_listener_is_dropped_at_every_poll() {
    let connection = Connection::new(&Redis::shared().url()).unwrap();
    let remote =
        RedisRemoteCache::builder("listened", connection).prefix("dropped:listener:").build().unwrap();
    for polls in 0..20 {
        let mut listener = remote.listen();
        let mut next = Box::pin(listener.next());
        let subscribed = seawall_testkit::poll_at_most(next.as_mut(), polls).await.is_some();
        drop(next);
        if !subscribed {
            assert_eq!(listener.next().await.unwrap(), Invalidation::All);
        }
        remote.delete("key").await.unwrap();
        for more in 0..3 {
            let mut next = Box::pin(listener.next());
            let heard = seawall_testkit::poll_at_most(next.as_mut(), more).await;
            drop(next);
            if let Some(heard) = heard {
                assert_eq!(heard.unwrap(), Invalidation::Key("key".into()));
                remote.delete("key").await.unwrap();
            }
        }
        assert_eq!(listener.next().await.unwrap(), Invalidation::Key("key".into()), "after {polls} polls");
    }
}
