//! Panics of the hub's own code, caught where one delivery is handled, so that they end nothing but its try.
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
pub(super) struct Panicked {
    /// File and line, if [`log_panics`] was called.
    place: Option<String>,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the hub's own code has panicked over it")?;
        self.place.as_ref().map_or(Ok(()), |place| write!(f, " at {place}"))
    }
}

thread_local! {
    /// Where the last panic of this thread happened, from the hook until it is caught.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on a panic is a line in the log of this process instead of one on stderr. For programs, once.
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

/// Runs it, and turns its panic into a value. Whoever calls this never uses what has panicked again.
pub(super) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Panicked> {
    let _ = PLACE.try_with(RefCell::take);
    catch_unwind(AssertUnwindSafe(run)).map_err(|said| {
        // Dropping it may panic too, which changes nothing.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(said)));
        Panicked { place: PLACE.try_with(RefCell::take).ok().flatten() }
    })
}

/// The same of a future. One that has panicked is not polled again, and is dropped with whoever waits for it.
pub(super) async fn caught_in<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| match caught(|| future.as_mut().poll(cx)) {
        Ok(poll) => poll.map(Ok),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

/// A mistake on purpose, for the tests that quarantine has to pass: a rule that panics over each event. Only a build with
/// `--cfg seawall_sabotage` has it.
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
        assert!(panicked.contains("caught.rs:") && !panicked.contains("nsafe"), "{panicked}");
        assert_eq!(caught(|| 7), Ok(7));
        let silent = caught(|| std::panic::resume_unwind(Box::new("no hook"))).unwrap_err();
        assert_eq!(silent, Panicked { place: None });
    }
}
