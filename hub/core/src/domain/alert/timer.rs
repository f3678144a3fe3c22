//! For how long something has been bad, or fine.

use std::time::Duration;

use super::incident::NoticeKind;

/// How long a condition has been bad or good. Times are counted from any fixed point of a clock that never jumps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConditionTimer {
    /// Whether an incident is open.
    open: bool,
    /// Since when the condition contradicts `open`; `None` if it does not.
    since: Option<Duration>,
}

impl ConditionTimer {
    /// Creates a timer for an incident that an earlier process opened.
    #[must_use]
    pub fn opened() -> Self {
        ConditionTimer { open: true, since: None }
    }

    /// Whether an incident is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Whether there is nothing to remember.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        *self == ConditionTimer::default()
    }

    /// Records whether the condition is bad now. After `holds` of bad it opens an incident, after `clears` of good it resolves
    /// it, and anything shorter changes nothing.
    pub fn step(
        &mut self,
        bad: bool,
        now: Duration,
        holds: Duration,
        clears: Duration,
    ) -> Option<NoticeKind> {
        if bad == self.open {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(now);
        let (needed, turn) = if bad { (holds, NoticeKind::Opened) } else { (clears, NoticeKind::Resolved) };
        if now.saturating_sub(since) < needed {
            return None;
        }
        *self = ConditionTimer { open: bad, since: None };
        Some(turn)
    }
}
