//! For how long something has been bad, or fine.

use std::time::Duration;

use super::incident::Turn;

/// What is remembered of one thing that a rule is about. Times are counted from any fixed point of a clock that never jumps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Track {
    /// Whether there is an incident.
    open: bool,
    /// Since when it is the other way round than the incident says.
    since: Option<Duration>,
}

impl Track {
    /// Of something that has an incident already: what a start before has opened.
    #[must_use]
    pub fn opened() -> Self {
        Track { open: true, since: None }
    }

    /// Whether there is an incident.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Whether there is nothing to remember.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        *self == Track::default()
    }

    /// It is bad now, or it is not. What has been bad for `holds` opens an incident, what has been fine for `clears` resolves
    /// it, and anything shorter changes nothing.
    pub fn step(&mut self, bad: bool, now: Duration, holds: Duration, clears: Duration) -> Option<Turn> {
        if bad == self.open {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(now);
        let (needed, turn) = if bad { (holds, Turn::Opened) } else { (clears, Turn::Resolved) };
        if now.saturating_sub(since) < needed {
            return None;
        }
        *self = Track { open: bad, since: None };
        Some(turn)
    }
}
