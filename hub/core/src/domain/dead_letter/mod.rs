//! Dead letters: the state of each, and groups of those that failed in the same way.

mod signature;
mod transition;

use super::delivery::{DeadLetterReason, DeliveryId, DeliveryState};
use super::slug::Slug;
use super::time::Millis;

pub use self::signature::{
    FailureSignature, FailureSummary, Fingerprint, MESSAGE_MAX, MESSAGES_MAX, normalised,
};
pub use self::transition::{GroupChange, GroupFacts, LetterAction, LetterChange, ReplayRefusal};

crate::words! {
    /// The state of a dead letter.
    ///
    /// # Why is one that has failed again no longer open?
    ///
    /// A replay that is given up is a dead letter itself, and that one is open. If the first were still open too, a replay of a group
    /// would send the same event twice. So of everything that has failed, exactly one dead letter is open.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum LetterState {
        /// Somebody has to handle it.
        Open = "open",
        /// Its replay is in progress.
        Replaying = "replaying",
        /// Its replay was delivered.
        Delivered = "delivered",
        /// Its replay has failed too, and is open in its place.
        FailedAgain = "failedAgain",
        /// Somebody has parked it. Bulk replays skip it.
        Parked = "parked",
        /// Somebody has deleted it. It can be restored until it is purged.
        Deleted = "deleted",
    }
}

impl LetterState {
    /// Returns the state of a dead letter that is neither parked nor deleted, from the state of its last replay.
    #[must_use]
    pub fn of_replay(replayed: Option<DeliveryState>) -> Self {
        match replayed {
            None => LetterState::Open,
            Some(DeliveryState::Delivered) => LetterState::Delivered,
            Some(DeliveryState::DeadLettered) => LetterState::FailedAgain,
            Some(_) => LetterState::Replaying,
        }
    }
}

/// The number of dead letters in each state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LetterCounts(pub [u64; LetterState::ALL.len()]);

impl LetterCounts {
    /// Returns the number of dead letters in a state.
    #[must_use]
    pub const fn of(&self, state: LetterState) -> u64 {
        self.0[state as usize]
    }
}

/// A group of dead letters that failed in the same way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LetterGroup {
    pub fingerprint: Fingerprint,
    pub failure: FailureSignature,
    pub state: GroupState,
    /// A note that somebody wrote.
    pub note: Option<String>,
    /// When the first of them failed.
    pub first: Millis,
    /// When the last of them failed.
    pub last: Millis,
    /// How often a failure reopened it after it was resolved.
    pub reopened: u32,
    /// The number of its dead letters in each state.
    pub counts: LetterCounts,
    /// The newest open dead letter, or the newest of all if none is open.
    pub sample: Option<DeliveryId>,
}

crate::words! {
    /// The state of a group.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum GroupState {
        /// Nobody has handled it yet.
        Open = "open",
        /// Somebody works on it. More failures do not change that.
        Acknowledged = "acknowledged",
        /// It is handled: somebody said so, or none of its dead letters is open. Another failure reopens it.
        Resolved = "resolved",
    }
}

/// A filter for dead letters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LetterFilter {
    /// The service that received the request.
    pub service: Option<Slug>,
    /// The rule that made the delivery.
    pub rule: Option<Slug>,
    /// The id of the event.
    pub event: Option<String>,
    /// The reason of the dead letter.
    pub reason: Option<DeadLetterReason>,
    /// The status of the last response.
    pub status: Option<u16>,
    /// The group of the dead letter.
    pub group: Option<Fingerprint>,
    /// The states; an empty list matches all but deleted ones.
    pub states: Vec<LetterState>,
    /// The earliest time of the dead letter.
    pub since: Option<Millis>,
    /// The time before which the dead letter was created.
    pub before: Option<Millis>,
    /// The highest number of a dead letter; `None` means no bound. A bulk operation takes none that came after its start.
    pub up_to: Option<u64>,
    /// Words that occur in the event, the errors, the responses or the names.
    pub text: Option<String>,
    /// The ids; an empty list matches all.
    pub ids: Vec<DeliveryId>,
    /// Services to leave out. Used by a running scan and never stored.
    pub except: Vec<Slug>,
    /// The part that the caller may see.
    pub within: Visibility,
}

/// The services and sources that a caller may see.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Visibility {
    /// The services; `None` means all.
    pub services: Option<Vec<Slug>>,
    /// The sources; `None` means all.
    pub sources: Option<Vec<String>>,
}

/// A filter for groups.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupFilter {
    /// The service that received the requests.
    pub service: Option<Slug>,
    /// The rule that made the deliveries.
    pub rule: Option<Slug>,
    /// The states; an empty list matches all.
    pub states: Vec<GroupState>,
    /// The services that the caller may see; `None` means all.
    pub services: Option<Vec<Slug>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-6: of everything that has failed one dead letter is open: the one whose replay was never tried.
    #[test]
    fn hub_6_what_was_replayed_is_not_open() {
        assert_eq!(LetterState::of_replay(None), LetterState::Open);
        assert_eq!(LetterState::of_replay(Some(DeliveryState::Waiting)), LetterState::Replaying);
        assert_eq!(LetterState::of_replay(Some(DeliveryState::Delivered)), LetterState::Delivered);
        assert_eq!(LetterState::of_replay(Some(DeliveryState::DeadLettered)), LetterState::FailedAgain);
        for (place, state) in LetterState::ALL.into_iter().enumerate() {
            let mut counts = LetterCounts::default();
            counts.0[place] = 7;
            assert_eq!(counts.of(state), 7, "{}", state.word());
        }
    }
}
