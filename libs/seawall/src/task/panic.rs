//! Panics that were caught.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Once};
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// A panic that was caught: its message, and its place in the source if the program called [`keep_backtraces`].
///
/// A program that is built with `panic = "abort"` catches no panics.
#[derive(Clone, Debug)]
pub struct Panic(Arc<Known>);

/// Behind a pointer, so that results which may be a panic are not larger than others.
#[derive(Debug)]
struct Known {
    message: String,
    trace: Option<Trace>,
}

#[derive(Debug)]
struct Trace {
    /// Of which panic: one that somebody else caught may have left its trace behind.
    message: String,
    location: Option<String>,
    backtrace: Backtrace,
}

impl Panic {
    /// Returns the message of the panic. A panic whose value is not text has a message that says so.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns file, line and column, if the program called [`keep_backtraces`].
    #[must_use]
    pub fn location(&self) -> Option<&str> {
        self.0.trace.as_ref()?.location.as_deref()
    }

    /// Returns the backtrace, if the program called [`keep_backtraces`].
    #[must_use]
    pub fn backtrace(&self) -> Option<&Backtrace> {
        Some(&self.0.trace.as_ref()?.backtrace)
    }

    #[cold]
    pub(crate) fn of(payload: &(dyn Any + Send)) -> Self {
        let message = text(payload).unwrap_or(NO_TEXT).to_owned();
        let left_behind = LAST.try_with(|last| last.borrow_mut().take()).ok().flatten();
        let trace = left_behind.filter(|trace| trace.message == message);
        Panic(Arc::new(Known { message, trace }))
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked: {}", self.message())?;
        self.location().map_or(Ok(()), |location| write!(f, " (at {location})"))
    }
}

impl std::error::Error for Panic {}

/// Records place and backtrace in every [`Panic`]. A program calls it once, early in `main`; a second call does nothing.
///
/// Code that catches a panic can't see its backtrace, because the stack is already unwound. Only the panic hook sees it. A
/// process has one panic hook, and it belongs to the program, so this library sets one only on this call. The previous hook
/// stays in force and still prints; a hook that the program sets later replaces both.
///
/// A backtrace costs some microseconds per panic, and is formatted only when it is printed. `RUST_BACKTRACE` has no effect
/// on it.
pub fn keep_backtraces() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            remember(info);
            before(info);
        }));
    });
}

/// Runs it, and turns its panic into a value.
///
/// Whoever calls this drops what has panicked and never runs it again, so no broken state of it is seen. State that it
/// shares with others is theirs to protect, as with a thread or a task that panics.
#[inline]
pub(crate) fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| Panic::of(payload.as_ref()))
}

/// Polls it and turns its panic into a value. When it has ended, it is dropped under the same roof: a drop may panic too.
#[inline]
pub(crate) fn poll<F: Future>(
    mut future: Pin<&mut Option<F>>,
    cx: &mut Context<'_>,
) -> Poll<Result<F::Output, Panic>> {
    caught(future.as_mut(), |future| poll_to_end(future, cx))
}

/// Starts it and polls it once, and turns a panic of either into a value.
#[inline]
pub(crate) fn start<F: Future>(
    mut place: Pin<&mut Option<F>>,
    start: impl FnOnce() -> F,
    cx: &mut Context<'_>,
) -> Poll<Result<F::Output, Panic>> {
    caught(place.as_mut(), |mut place| {
        place.set(Some(start()));
        poll_to_end(place, cx)
    })
}

#[inline]
fn poll_to_end<F: Future>(mut future: Pin<&mut Option<F>>, cx: &mut Context<'_>) -> Poll<F::Output> {
    let poll = future.as_mut().as_pin_mut().map_or(Poll::Pending, |future| future.poll(cx));
    if poll.is_ready() {
        future.set(None);
    }
    poll
}

#[inline]
fn caught<F: Future>(
    mut future: Pin<&mut Option<F>>,
    run: impl FnOnce(Pin<&mut Option<F>>) -> Poll<F::Output>,
) -> Poll<Result<F::Output, Panic>> {
    match catch(|| run(future.as_mut())) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => {
            // What it says on its way out changes nothing: it has panicked.
            let _ = catch(|| future.set(None));
            Poll::Ready(Err(panic))
        }
    }
}

pin_project! {
    /// A future whose panic is a value.
    pub(crate) struct Caught<F> {
        #[pin]
        future: Option<F>,
    }
}

impl<F> Caught<F> {
    pub(crate) fn new(future: F) -> Self {
        Caught { future: Some(future) }
    }
}

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Panic>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll(self.project().future, cx)
    }
}

const NO_TEXT: &str = "(a value that is no text)";

thread_local! {
    /// The last panic of this thread, from the hook until it is caught.
    static LAST: RefCell<Option<Trace>> = const { RefCell::new(None) };
}

fn remember(info: &PanicHookInfo<'_>) {
    let trace = Trace {
        message: text(info.payload()).unwrap_or(NO_TEXT).to_owned(),
        location: info.location().map(ToString::to_string),
        backtrace: Backtrace::force_capture(),
    };
    // A panic while the thread's locals go away has nowhere to be kept.
    let _ = LAST.try_with(|last| last.replace(Some(trace)));
}

fn text(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<&'static str>().copied().or_else(|| Some(payload.downcast_ref::<String>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_says_what_was_given_to_it() {
        let number = 7;
        assert_eq!(catch(|| panic!("plain")).unwrap_err().message(), "plain");
        assert_eq!(catch(|| panic!("number {number}")).unwrap_err().message(), "number 7");
        let odd = catch(|| std::panic::panic_any(number)).unwrap_err();
        assert_eq!(odd.message(), NO_TEXT);
        assert_eq!(catch(|| number).unwrap(), 7);
    }

    /// TSK-5: the one way to a backtrace is the hook, and the program has to ask for it.
    #[test]
    fn tsk_5_a_program_that_asks_for_it_gets_place_and_backtrace() {
        keep_backtraces();
        keep_backtraces();
        let panic = catch(|| panic!("with a trace")).unwrap_err();
        assert!(panic.location().unwrap().contains("panic.rs"), "{panic:?}");
        assert!(panic.backtrace().is_some());
        assert!(panic.to_string().starts_with("panicked: with a trace (at "), "{panic}");

        // What somebody else has caught leaves its trace behind, which belongs to no other panic.
        let _ = catch_unwind(|| panic!("caught by somebody else"));
        let silent = catch(|| std::panic::resume_unwind(Box::new("without a hook"))).unwrap_err();
        assert_eq!((silent.message(), silent.location()), ("without a hook", None));
    }
}
