//! tokio's `timeout` and `Semaphore`.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{ATTEMPT_TIMEOUT, CALL_TIMEOUT, PERMITS};
use crate::op::op;
use crate::row::{Group, Rows};

pub(super) fn add(rows: &mut Rows) {
    rows.calls(Group::Timeouts, "tokio timeout", || async |kind| timeout(ATTEMPT_TIMEOUT, op(kind)).await);
    rows.calls(Group::Timeouts, "tokio timeout within a timeout", || {
        async |kind| timeout(CALL_TIMEOUT, timeout(ATTEMPT_TIMEOUT, op(kind))).await
    });

    let semaphore = Arc::new(Semaphore::new(PERMITS));
    rows.calls(Group::Admission, "tokio Semaphore::acquire", move || {
        let semaphore = Arc::clone(&semaphore);
        async move |kind| {
            let _permit = semaphore.acquire().await.expect("it is never closed");
            op(kind).await
        }
    });
    let semaphore = Arc::new(Semaphore::new(PERMITS));
    rows.calls(Group::Admission, "tokio Semaphore::try_acquire", move || {
        let semaphore = Arc::clone(&semaphore);
        async move |kind| {
            let _permit = semaphore.try_acquire().expect("two callers never take 20 permits");
            op(kind).await
        }
    });
    rows.footprint(
        "tokio Semaphore",
        || Semaphore::new(PERMITS),
        async |semaphore, kind| {
            let _permit = semaphore.acquire().await.expect("it is never closed");
            op(kind).await
        },
    );
}
