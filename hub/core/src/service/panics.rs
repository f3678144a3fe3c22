//! Panics of the hub's own code, caught where one delivery is handled, so that they end nothing but its attempt.
//!
//! What a panic says may hold anything, a payload too: a text that is cut in the wrong place is in the message as a whole. So what
//! is kept and logged is where it happened, and what it says only if that is written in the source.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::pin::pin;
use std::sync::Once;
use std::task::Poll;

use tracing::error;

/// A panic that was caught.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CaughtPanic {
    /// The file and the line, if [`log_panics`] was called.
    place: Option<String>,
}

impl fmt::Display for CaughtPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the hub's own code has panicked over it")?;
        self.place.as_ref().map_or(Ok(()), |place| write!(f, " at {place}"))
    }
}

thread_local! {
    /// The place of the last panic of this thread, from the hook until it is caught.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Logs panics of this process instead of writing them to stderr. For programs, once.
pub fn log_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(log)));
}

fn log(info: &PanicHookInfo<'_>) {
    let place = info.location().map(|location| format!("{}:{}", location.file(), location.line()));
    let cause = info.payload().downcast_ref::<&'static str>().copied().unwrap_or("(not shown)");
    let thread = std::thread::current();
    let (at, thread) = (place.as_deref(), thread.name());
    error!(target: "seawall", at, thread, cause, action = "ManualReview", "[Hub][Panic] Failed!");
    // A panic while the thread's locals go away has nowhere to be kept.
    let _ = PLACE.try_with(|last| last.replace(place));
}

/// Runs a closure and turns its panic into a value. The caller never uses again what has panicked.
pub(super) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    let _ = PLACE.try_with(RefCell::take);
    catch_unwind(AssertUnwindSafe(run)).map_err(|said| {
        // Dropping it may panic too, which changes nothing.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(said)));
        CaughtPanic { place: PLACE.try_with(RefCell::take).ok().flatten() }
    })
}

/// Runs a future and turns its panic into a value. A future that has panicked is not polled again.
pub(super) async fn caught_in<F: Future>(future: F) -> Result<F::Output, CaughtPanic> {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| match caught(|| future.as_mut().poll(cx)) {
        Ok(poll) => poll.map(Ok),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

/// A mistake on purpose, for the tests of the quarantine: a rule that panics over each event. Only a build with `--cfg
/// seawall_sabotage` has it.
#[cfg(seawall_sabotage)]
#[expect(clippy::panic, reason = "that is the mistake")]
pub(super) fn sabotage(rule: &str) {
    if rule == "panics" {
        panic!("this rule panics on purpose");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PRM-4. Trap "a panic's message holds the payload": what is kept says where, and not what.
    #[test]
    fn prm_4_a_panic_is_a_value_that_says_where_and_not_what() {
        log_panics();
        log_panics();
        let secret = String::from("ünsafe");
        let panicked = caught(|| secret[1..].len()).unwrap_err().to_string();
        assert!(panicked.starts_with("the hub's own code has panicked over it at "), "{panicked}");
        assert!(panicked.contains("panics.rs:") && !panicked.contains("nsafe"), "{panicked}");
        assert_eq!(caught(|| 7), Ok(7));
        let silent = caught(|| std::panic::resume_unwind(Box::new("no hook"))).unwrap_err();
        assert_eq!(silent, CaughtPanic { place: None });
    }
}
