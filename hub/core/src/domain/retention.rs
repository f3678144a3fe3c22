//! How long what has ended is kept.

use std::time::Duration;

use super::dead_letter::LetterState;
use super::delivery::StoredState;
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
        let before = |stored: Option<Duration>| {
            let stored = stored.map(|stored| i64::try_from(stored.as_millis()).unwrap_or(i64::MAX));
            Millis(stored.map_or(i64::MIN, |stored| now.0.saturating_sub(stored)))
        };
        Limits {
            now,
            delivered: before(self.delivered),
            discarded: before(self.discarded),
            audit: before(self.audit),
        }
    }
}

/// The rows that decide whether an event can be pruned: its own, those of its deliveries and those of their dead letters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PruneFacts {
    /// When the event was accepted.
    pub accepted: Millis,
    pub deliveries: Vec<EndedDelivery>,
}

/// A delivery of an event that may be pruned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndedDelivery {
    pub state: StoredState,
    /// When it last changed.
    pub touched: Millis,
    /// Whether it is the newest of all deliveries. Its number must not be used again, so it stays.
    pub is_newest: bool,
    /// The state of its dead letter and when that was deleted; `None` if there is no dead letter, or no longer.
    pub letter: Option<(LetterState, Option<Millis>)>,
}

impl PruneFacts {
    /// Whether everything about the event has ended and is old. A dead letter that was purged or whose replay has ended counts
    /// as ended, one that was deleted counts from then on, and any other stays.
    #[must_use]
    pub fn is_prunable(&self, limits: &Limits) -> bool {
        let is_old = |delivery: &EndedDelivery| match (delivery.state, delivery.letter) {
            _ if delivery.is_newest => false,
            (StoredState::Delivered, _)
            | (
                StoredState::DeadLettered,
                None | Some((LetterState::Delivered | LetterState::FailedAgain, _)),
            ) => delivery.touched < limits.delivered,
            (StoredState::DeadLettered, Some((LetterState::Deleted, Some(deleted)))) => {
                deleted < limits.discarded
            }
            _ => false,
        };
        let has_deliveries = !self.deliveries.is_empty();
        self.deliveries.iter().all(is_old) && (has_deliveries || self.accepted < limits.delivered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-9: an event goes when all of its deliveries have ended and are old, and the newest delivery never.
    #[test]
    fn hub_9_an_event_goes_with_the_last_of_its_deliveries() {
        let (old, young) = (Millis(9), Millis(10));
        let limits = Limits { now: Millis(100), delivered: young, discarded: Millis(5), audit: young };
        let delivered = |touched| EndedDelivery {
            state: StoredState::Delivered,
            touched,
            is_newest: false,
            letter: None,
        };
        let dead = |letter| EndedDelivery { state: StoredState::DeadLettered, letter, ..delivered(old) };
        let is_prunable = |deliveries: &[EndedDelivery]| {
            PruneFacts { accepted: old, deliveries: deliveries.to_vec() }.is_prunable(&limits)
        };
        assert!(is_prunable(&[delivered(old), dead(None)]));
        assert!(!is_prunable(&[delivered(old), delivered(young)]));
        assert!(!is_prunable(&[EndedDelivery { is_newest: true, ..delivered(old) }]));
        assert!(is_prunable(&[dead(Some((LetterState::Deleted, Some(Millis(4)))))]));
        assert!(!is_prunable(&[dead(Some((LetterState::Deleted, Some(Millis(5)))))]));
        for state in LetterState::ALL {
            let ended = matches!(state, LetterState::Delivered | LetterState::FailedAgain);
            assert_eq!(is_prunable(&[dead(Some((state, None)))]), ended, "{state:?}");
        }
        for state in StoredState::ALL {
            let ended = matches!(state, StoredState::Delivered | StoredState::DeadLettered);
            assert_eq!(is_prunable(&[EndedDelivery { state, ..delivered(old) }]), ended, "{state:?}");
        }
        assert!(is_prunable(&[]), "an event that no rule wanted");
        assert!(!PruneFacts { accepted: young, deliveries: Vec::new() }.is_prunable(&limits));
    }

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
