//! Hooks that run after the commit.

use std::fmt::Display;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

/// What a hook says when it fails.
pub type HookError = String;

/// What a hook may return: nothing, or a `Result` whose error is logged.
pub trait HookResult {
    /// The failure in words.
    fn into_failure(self) -> Option<HookError>;
}

impl HookResult for () {
    fn into_failure(self) -> Option<HookError> {
        None
    }
}

impl<E: Display> HookResult for Result<(), E> {
    fn into_failure(self) -> Option<HookError> {
        self.err().map(|error| format!("{error:#}"))
    }
}

type HookFuture = Pin<Box<dyn Future<Output = Option<HookError>> + Send>>;

/// A hook that waits for the commit.
pub(super) struct Hook(Box<dyn FnOnce() -> HookFuture + Send>);

impl Hook {
    pub(super) fn new<F, Fut>(hook: F) -> Self
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output: HookResult> + Send + 'static,
    {
        Hook(Box::new(move || Box::pin(async move { hook().await.into_failure() })))
    }
}

/// Runs hooks one after the other. One that fails or panics is logged and does not keep the others from running.
pub(super) async fn run(hooks: Vec<Hook>) {
    for (index, Hook(hook)) in hooks.into_iter().enumerate() {
        let failure = match catch_unwind(AssertUnwindSafe(hook)) {
            Ok(future) => unwound(future).await,
            Err(panic) => Some(panic_text(panic.as_ref())),
        };
        if let Some(cause) = failure {
            tell(index + 1, &cause);
        }
    }
}

/// Polls the hook to its end, and makes a failure of a panic. Nothing of the hook is used after it panicked.
async fn unwound(mut hook: HookFuture) -> Option<HookError> {
    std::future::poll_fn(|cx| {
        catch_unwind(AssertUnwindSafe(|| hook.as_mut().poll(cx)))
            .unwrap_or_else(|panic| std::task::Poll::Ready(Some(panic_text(panic.as_ref()))))
    })
    .await
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("with something that is no text"))
}

/// The data is committed and the hook did not run to its end: somebody has to look.
fn tell(hook: usize, cause: &str) {
    let _ = (hook, cause);
    #[cfg(feature = "tracing")]
    tracing::error!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), hook, cause, action = "ManualReview", "[Transaction][AfterCommit] Failed!");
    #[cfg(feature = "metrics")]
    metrics::counter!("seawall.sql.hooks.failed").increment(1);
}
