//! How long what has ended is kept.

use std::time::Duration;

use super::time::Millis;

/// How long what has ended is kept. What has not ended, and dead letters that nobody has discarded, stay for as long as it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// An event whose deliveries are delivered, from the last of them on; for ever, if nothing.
    pub delivered: Option<Duration>,
    /// A dead letter that was discarded, from then on.
    pub discarded: Option<Duration>,
    /// Who has changed what.
    pub audit: Option<Duration>,
}

/// An event's row is what its repetition is recognised by, so it stays for at least as long as anybody may repeat it.
pub const KEPT_AT_LEAST: Duration = seawall_dist::idempotency::KEPT;

const DAY: Duration = Duration::from_secs(86_400);

impl Default for Retention {
    /// A week to look at what was delivered, a month to regret what was discarded, a year to ask who did it.
    fn default() -> Self {
        Retention { delivered: Some(DAY * 7), discarded: Some(DAY * 30), audit: Some(DAY * 365) }
    }
}

/// The same as points in time: what is from before may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// What is dated later was dated by a clock that was wrong.
    pub now: Millis,
    /// Of what was delivered.
    pub delivered: Millis,
    /// Of dead letters that were discarded.
    pub discarded: Millis,
    /// Of who has changed what.
    pub audit: Millis,
}

impl Retention {
    /// What may go now.
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
