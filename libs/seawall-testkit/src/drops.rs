//! Futures that are dropped at every poll.

use std::future::Future;
use std::pin::Pin;

use crate::poll_once;

/// How a run of [`drop_at_every_poll`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dropped {
    /// How often the future was polled before it was dropped.
    pub after_polls: usize,
    /// Whether it had ended by itself.
    pub ended: bool,
}

/// More polls than any scenario needs; one that goes on has no end.
const POLLS_MAX: usize = 10_000;

/// Makes the scenario anew, polls its future k times and drops it, for k = 0, 1, 2, … until it ends by itself.
///
/// `between` runs after each poll that returned `Pending` (advance a clock there); `check` runs after each drop and
/// should find everything given back. Returns how many polls the whole future takes.
///
/// # Panics
/// If the future has not ended after ten thousand polls.
pub fn drop_at_every_poll<S>(
    mut make: impl FnMut() -> S,
    start: impl for<'a> Fn(&'a S) -> Pin<Box<dyn Future<Output = ()> + 'a>>,
    between: impl Fn(&S),
    mut check: impl FnMut(&S, Dropped),
) -> usize {
    for polls in 0..POLLS_MAX {
        let scenario = make();
        let mut future = start(&scenario);
        let mut ended = false;
        for _ in 0..polls {
            if poll_once(future.as_mut()).is_ready() {
                ended = true;
                break;
            }
            between(&scenario);
        }
        drop(future);
        check(&scenario, Dropped { after_polls: polls, ended });
        if ended {
            return polls;
        }
    }
    unreachable!("a scenario ends within {POLLS_MAX} polls")
}
