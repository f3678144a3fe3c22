use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::once::handle;
use super::{BODY, key};

/// CRD-2: one renewal that is never answered does not cost the key: it is given up after a third of the lease.
#[tokio::test(start_paused = true)]
async fn crd_2_one_renewal_that_hangs_does_not_cost_the_key() {
    let (store, idempotency) = handle();
    store.renewals_hang.store(1, Ordering::Relaxed);
    let slow = async |_| {
        tokio::time::sleep(Duration::from_secs(300)).await;
        Ok::<_, io::Error>(b"slow".to_vec())
    };
    let done = idempotency.once(&key("a"), BODY, slow).await;
    assert_eq!(done.expect("the key was lost").bytes(), b"slow");
    assert_eq!(store.renewals_hang.load(Ordering::Relaxed), 0, "no renewal hung");
}

/// CRD-2: one answer that never comes does not cost the result: it is stored again while the lease lasts.
#[tokio::test(start_paused = true)]
async fn crd_2_a_result_whose_store_hangs_once_is_stored() {
    let (store, idempotency) = handle();
    store.completes_hang.store(1, Ordering::Relaxed);
    let work = async |_| {
        tokio::time::sleep(Duration::from_secs(9)).await;
        Ok::<_, io::Error>(b"done".to_vec())
    };
    let done = idempotency.once(&key("a"), BODY, work).await;
    assert_eq!(done.expect("the result was not stored").bytes(), b"done");
}
