//! Which deadline has passed.

use crate::clock::Tick;

/// A deadline that has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expired {
    Call,
    Attempt,
}

/// Which of the two has passed at `now`. Where both have, the one that came first; at the same instant the attempt's,
/// which was asked for, and not the call's, which may be the sum of all attempts.
pub(crate) fn expired(call: Tick, attempt: Tick, now: Tick) -> Option<Expired> {
    if now >= attempt && attempt <= call {
        Some(Expired::Attempt)
    } else if now >= call {
        Some(Expired::Call)
    } else {
        None
    }
}
