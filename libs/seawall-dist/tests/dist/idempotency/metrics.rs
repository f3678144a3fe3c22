use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use metrics::with_local_recorder;
use seawall_dist::idempotency::{Idempotency, OnceError};
use seawall_dist::limit::{MemoryLimits, SharedLimit};

use super::once::Breakable;
use super::{BODY, key};
use crate::observe::numbers;

/// OBS-2, CRD-2: runs, replays, calls in flight, mismatches, refusals and failures are counted, each once.
#[tokio::test]
async fn obs_2_calls_under_a_key_are_counted() {
    let (numbers, store) = (numbers(), Arc::new(Breakable::default()));
    let build = || Idempotency::builder(store.clone()).name("payments").build().unwrap();
    let idempotency = with_local_recorder(&numbers, build);
    let work = async |_| {
        let meanwhile = idempotency.once(&key("a"), BODY, async |_| Ok::<_, io::Error>(Vec::new())).await;
        assert!(matches!(meanwhile, Err(OnceError::InFlight { .. })));
        Ok::<_, io::Error>(Vec::new())
    };
    idempotency.once(&key("a"), BODY, work).await.unwrap();
    idempotency.once(&key("a"), BODY, work).await.unwrap();
    idempotency.once(&key("a"), [9; 32], work).await.unwrap_err();
    idempotency.once(&key("b"), BODY, async |_| Err::<Vec<u8>, _>(io::Error::other("no"))).await.unwrap_err();
    store.away.store(true, Ordering::Relaxed);
    idempotency.once(&key("c"), BODY, work).await.unwrap_err();
    store.away.store(false, Ordering::Relaxed);
    let dropped = key("d");
    let pending = idempotency.once(&dropped, BODY, async |_| {
        std::future::pending::<()>().await;
        Ok::<_, io::Error>(Vec::new())
    });
    assert!(tokio::time::timeout(std::time::Duration::from_millis(1), pending).await.is_err());
    let expected = ["abandoned", "failed", "in_flight", "mismatch", "refused", "replay", "run"]
        .map(|outcome| format!("seawall.idempotency.calls{{name=payments,outcome={outcome}}} 1"));
    assert_eq!(numbers.lines(), expected);
}

/// OBS-2, CRD-8: calls of a shared limit are counted by outcome and limit.
#[tokio::test]
async fn obs_2_calls_of_a_shared_limit_are_counted() {
    let numbers = numbers();
    let build = || SharedLimit::builder(Arc::new(MemoryLimits::default()), "sms", 1).build().unwrap();
    let limit = with_local_recorder(&numbers, build);
    limit.try_acquire().await.unwrap();
    limit.try_acquire().await.unwrap_err();
    assert_eq!(
        numbers.lines(),
        [
            "seawall.limit.calls{name=sms,outcome=admitted,by=shared} 1",
            "seawall.limit.calls{name=sms,outcome=limited,by=shared} 1",
        ]
    );
}
