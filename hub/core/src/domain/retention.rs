//! How long what has ended is kept.

use std::time::Duration;

use super::time::Millis;

/// How long completed things are stored. Pending deliveries and dead letters that nobody deleted stay without limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// The time for delivered events, counted from the last delivery; `None` means forever.
    pub delivered: Option<Duration>,
    /// The time for deleted dead letters, counted from the deletion; `None` means forever.
    pub discarded: Option<Duration>,
    /// The time for entries of the audit log; `None` means forever.
    pub audit: Option<Duration>,
}

/// The shortest time that an event is stored. Its row recognises a repeated event, so it stays for as long as a sender may repeat
/// it.
pub const KEPT_AT_LEAST: Duration = seawall_dist::idempotency::KEPT;

const DAY: Duration = Duration::from_secs(86_400);

impl Default for Retention {
    /// A week to look at what was delivered, a month to regret what was discarded, a year to ask who did it.
    fn default() -> Self {
        Retention { delivered: Some(DAY * 7), discarded: Some(DAY * 30), audit: Some(DAY * 365) }
    }
}

/// The retention as points in time: anything older can be pruned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The current time. A row with a later time was dated by a wrong clock.
    pub now: Millis,
    /// The limit for delivered events.
    pub delivered: Millis,
    /// The limit for deleted dead letters.
    pub discarded: Millis,
    /// The limit for entries of the audit log.
    pub audit: Millis,
}

impl Retention {
    /// Computes the limits at a time.
    #[must_use]
    pub fn limits(&self, now: Millis) -> Limits {
        let before = |kept: Option<Duration>| {
            let kept = kept.map(|kept| i64::try_from(kept.as_millis()).unwrap_or(i64::MAX));
            Millis(kept.map_or(i64::MIN, |kept| now.0.saturating_sub(kept)))
        };
        Limits {
            now,
            delivered: before(self.delivered),
            discarded: before(self.discarded),
            audit: before(self.audit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-9: what is kept for ever is never old, however late it is.
    #[test]
    fn hub_9_what_is_kept_for_ever_is_never_old() {
        let retention = Retention { delivered: None, ..Retention::default() };
        let limits = retention.limits(Millis(i64::MAX));
        assert_eq!(limits.delivered, Millis(i64::MIN));
        assert_eq!(retention.limits(Millis(0)).audit, Millis(-365 * 86_400_000));
        let eternal = Retention { audit: Some(Duration::MAX), ..retention };
        assert!(eternal.limits(Millis(0)).audit < Millis(i64::MIN / 2));
    }
}
