//! Bounds on what waits for a store: one that never answers hangs neither its caller nor an orderly stop.

use std::time::Duration;

use seawall::{Fault, secs};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::{StoreError, StoreFuture};

/// How long sagas and jobs wait for one call of their store. A store that is up answers within milliseconds; one that took
/// longer may have acted all the same, which every caller has to expect of any failure.
pub(crate) const STORE_TIMEOUT: Duration = secs(5);

/// Waits for a call of a store, but no longer than [`STORE_TIMEOUT`].
pub(crate) async fn bounded<T>(action: &'static str, call: StoreFuture<'_, T>) -> Result<T, StoreError> {
    match timeout(STORE_TIMEOUT, call).await {
        Ok(result) => result,
        Err(_) => {
            Err(StoreError::new(action, Fault::timeout(), format!("no answer within {STORE_TIMEOUT:?}")))
        }
    }
}

/// Completes when the process was told to stop, and that much time has passed since.
pub(crate) async fn stopped(stop: &watch::Receiver<bool>, since: Duration) {
    let mut stop = stop.clone();
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
    sleep(since).await;
}
