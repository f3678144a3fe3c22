//! Waiting for something that happens in another thread, task or process.
//!
//! A test that waits for a condition says which one, and fails with these words when the time is over. It never sleeps for a
//! while that somebody has guessed.

#![expect(
    clippy::disallowed_methods,
    reason = "what it waits for happens in real time, in a thread or process of its own"
)]

use std::time::{Duration, Instant};

/// The maximum wait of [`until`] and [`until_blocking`]: long enough for a cluster of servers on a busy
/// machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits in a task until a condition holds, for at most [`PATIENCE`].
///
/// # Panics
/// When the time is over, with `what` in the message.
#[cfg(any(feature = "servers", feature = "conformance"))]
#[track_caller]
pub fn until(what: &str, condition: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    until_within(PATIENCE, what, condition)
}

/// Waits in a task until a condition holds, for at most `limit`.
///
/// # Panics
/// When the time is over, with `what` in the message.
#[cfg(any(feature = "servers", feature = "conformance"))]
pub async fn until_within(limit: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let polling = async {
        while !condition().await {
            tokio::time::sleep(PAUSE).await;
        }
    };
    assert!(tokio::time::timeout(limit, polling).await.is_ok(), "not within {limit:?}: {what}");
}

/// Waits in a thread until a condition holds, for at most [`PATIENCE`].
///
/// ```
/// let answer = std::thread::spawn(|| 42);
/// seawall_testkit::until_blocking("the thread ends", || answer.is_finished());
/// ```
///
/// # Panics
/// When the time is over, with `what` in the message.
#[track_caller]
pub fn until_blocking(what: &str, condition: impl FnMut() -> bool) {
    until_blocking_within(PATIENCE, what, condition);
}

/// Waits in a thread until a condition holds, for at most `limit`.
///
/// # Panics
/// When the time is over, with `what` in the message.
#[track_caller]
pub fn until_blocking_within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(PAUSE);
    }
}
