//! Dead letters as the desk sees them: where each one stands, and which of them have failed alike.

mod fingerprint;
mod message;

use super::delivery::{DeliveryId, Reason, State};
use super::slug::Slug;
use super::time::Millis;

pub use self::fingerprint::{Failure, Fingerprint};
pub use self::message::{MESSAGE_MAX, normalised};

/// Where a dead letter stands.
///
/// # Why is one that has failed again no longer open?
/// A replay that is given up is a dead letter itself, and that one is open. Were the first still open too, a replay of a group
/// would send the same event twice. So of everything that has failed, exactly one dead letter is open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Standing {
    /// Somebody has to deal with it.
    Open,
    /// Its replay is under way.
    Replaying,
    /// Its replay was delivered.
    Delivered,
    /// Its replay has failed too, and is open in its place.
    FailedAgain,
    /// Somebody has put it aside. No replay of many takes it.
    Parked,
    /// It was deleted, and can be restored for a while.
    Deleted,
}

impl Standing {
    /// All of them.
    pub const ALL: [Standing; 6] = [
        Standing::Open,
        Standing::Replaying,
        Standing::Delivered,
        Standing::FailedAgain,
        Standing::Parked,
        Standing::Deleted,
    ];

    /// In one word that does not change.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Standing::Open => "open",
            Standing::Replaying => "replaying",
            Standing::Delivered => "delivered",
            Standing::FailedAgain => "failedAgain",
            Standing::Parked => "parked",
            Standing::Deleted => "deleted",
        }
    }

    /// Where one stands that nobody has put aside or deleted, going by what it was last replayed as.
    #[must_use]
    pub fn of_replay(replayed: Option<State>) -> Self {
        match replayed {
            None => Standing::Open,
            Some(State::Delivered) => Standing::Delivered,
            Some(State::DeadLettered) => Standing::FailedAgain,
            Some(_) => Standing::Replaying,
        }
    }
}

/// How many dead letters stand where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts(pub [u64; Standing::ALL.len()]);

impl Counts {
    /// How many stand there.
    #[must_use]
    pub const fn of(&self, standing: Standing) -> u64 {
        self.0[standing as usize]
    }
}

/// Dead letters that have failed alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Its name.
    pub fingerprint: Fingerprint,
    /// What they have in common.
    pub failure: Failure,
    /// Where it stands.
    pub state: GroupState,
    /// What somebody wrote down about it.
    pub note: Option<String>,
    /// When the first of them failed,
    pub first: Millis,
    /// and the last.
    pub last: Millis,
    /// How often it was resolved, and then one more failed.
    pub reopened: u32,
    /// How many there are.
    pub counts: Counts,
    /// The newest of them that is open, or the newest of all.
    pub sample: Option<DeliveryId>,
}

/// Where a group stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupState {
    /// Nobody has said anything about it.
    Open,
    /// Somebody is at it. More failures do not change that.
    Acknowledged,
    /// It is done with: somebody has said so, or nothing in it is left to deal with. One more failure opens it again.
    Resolved,
}

impl GroupState {
    /// All of them.
    pub const ALL: [GroupState; 3] = [GroupState::Open, GroupState::Acknowledged, GroupState::Resolved];

    /// In one word that does not change.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            GroupState::Open => "open",
            GroupState::Acknowledged => "acknowledged",
            GroupState::Resolved => "resolved",
        }
    }
}

/// Which dead letters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LetterFilter {
    /// To this service.
    pub service: Option<Slug>,
    /// Of this rule.
    pub rule: Option<Slug>,
    /// About this event.
    pub event: Option<String>,
    /// Given up for this reason.
    pub reason: Option<Reason>,
    /// With this last status.
    pub status: Option<u16>,
    /// Of this group.
    pub group: Option<Fingerprint>,
    /// That stand there; anywhere but deleted, if there are none.
    pub standings: Vec<Standing>,
    /// Given up then or later,
    pub since: Option<Millis>,
    /// and before.
    pub before: Option<Millis>,
    /// With these words in the event, the errors, the answers or the names.
    pub text: Option<String>,
    /// These, and no others; any, if there are none.
    pub ids: Vec<DeliveryId>,
    /// Not to these services. For a look that leaves some out, and never kept.
    pub except: Vec<Slug>,
    /// Only what whoever asks may see.
    pub within: Within,
}

/// What somebody may see.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Within {
    /// Only what is for these services; all, if nothing.
    pub services: Option<Vec<Slug>>,
    /// Only what came from these sources; all, if nothing.
    pub sources: Option<Vec<String>>,
}

/// Which groups.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupFilter {
    /// To this service.
    pub service: Option<Slug>,
    /// Of this rule.
    pub rule: Option<Slug>,
    /// That stand there; anywhere, if there are none.
    pub states: Vec<GroupState>,
    /// Only what is for these services; all, if nothing.
    pub services: Option<Vec<Slug>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-6: of everything that has failed one dead letter is open: the one whose replay was never tried.
    #[test]
    fn hub_6_what_was_replayed_is_not_open() {
        assert_eq!(Standing::of_replay(None), Standing::Open);
        assert_eq!(Standing::of_replay(Some(State::Waiting)), Standing::Replaying);
        assert_eq!(Standing::of_replay(Some(State::Delivered)), Standing::Delivered);
        assert_eq!(Standing::of_replay(Some(State::DeadLettered)), Standing::FailedAgain);
        for (place, standing) in Standing::ALL.into_iter().enumerate() {
            let mut counts = Counts::default();
            counts.0[place] = 7;
            assert_eq!(counts.of(standing), 7, "{}", standing.word());
        }
    }
}
