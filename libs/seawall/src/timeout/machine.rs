//! Which deadline has passed.

use crate::clock::Tick;

/// A deadline that has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expired {
    Call,
    Attempt,
}

/// Which of the two has passed at `now`. Where both have, the call's: there is no time for another attempt.
pub(crate) fn expired(call: Tick, attempt: Tick, now: Tick) -> Option<Expired> {
    if now >= call {
        Some(Expired::Call)
    } else if now >= attempt {
        Some(Expired::Attempt)
    } else {
        None
    }
}
