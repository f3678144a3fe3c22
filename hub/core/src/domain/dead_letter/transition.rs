//! What changes a dead letter and its group, as functions of their rows.
//!
//! The facts are the row of the dead letter ([`LetterState`]), the row of its last replay if an action
//! [depends on it](LetterAction::depends_on_replay), and the row of its group ([`GroupFacts`]).

use super::{GroupState, LetterCounts, LetterState};
use crate::domain::delivery::DeliveryState;

/// What can be done to a dead letter without replaying it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LetterAction {
    /// Parks an open dead letter, so that no bulk replay takes it.
    Park,
    /// Reopens a parked dead letter.
    Unpark,
    /// Deletes it. It can be restored until the retention is over.
    Delete,
    /// Restores a deleted dead letter to the state before.
    Restore,
    /// Removes it for good, with its attempts. Its delivery and its event stay until their retention is over.
    Purge,
}

impl LetterAction {
    pub const ALL: [LetterAction; 5] = [
        LetterAction::Park,
        LetterAction::Unpark,
        LetterAction::Delete,
        LetterAction::Restore,
        LetterAction::Purge,
    ];

    /// Whether the last replay of a dead letter in this state decides about the action.
    #[must_use]
    pub const fn depends_on_replay(self, state: LetterState) -> bool {
        match self {
            LetterAction::Restore => matches!(state, LetterState::Deleted),
            LetterAction::Purge => !matches!(state, LetterState::Replaying),
            LetterAction::Park | LetterAction::Unpark | LetterAction::Delete => false,
        }
    }
}

/// What an action does to a dead letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LetterChange {
    /// It gets another state, and nothing else changes.
    State(LetterState),
    /// It is deleted from now on, and no longer holds up its order.
    Deleted,
    /// It is no longer deleted, and gets this state.
    Restored(LetterState),
    /// It leaves its group for good, and no longer holds up its order.
    Purged,
}

/// The reason why a dead letter can't be replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayRefusal {
    /// It is deleted.
    Deleted,
    /// It was replayed before, and nobody asked for another replay.
    ReplayedBefore,
}

impl LetterState {
    /// Returns what an action does to a dead letter in this state; the error is the state that does not allow it. `replay` is the
    /// state of its last replay.
    ///
    /// A replay in progress is left alone until it has ended, but it can be deleted. A deleted dead letter does not show by its
    /// state that its replay is in progress; if it were purged, its operation would never hear of the end.
    pub fn apply(
        self,
        action: LetterAction,
        replay: Option<DeliveryState>,
    ) -> Result<LetterChange, LetterState> {
        let by_replay = LetterState::of_replay(replay);
        match action {
            LetterAction::Park if self == LetterState::Open => Ok(LetterChange::State(LetterState::Parked)),
            LetterAction::Unpark if self == LetterState::Parked => Ok(LetterChange::State(LetterState::Open)),
            LetterAction::Delete if self != LetterState::Deleted => Ok(LetterChange::Deleted),
            LetterAction::Restore if self == LetterState::Deleted => Ok(LetterChange::Restored(by_replay)),
            LetterAction::Purge if self != LetterState::Replaying => match by_replay {
                LetterState::Replaying => Err(by_replay),
                _ => Ok(LetterChange::Purged),
            },
            _ => Err(self),
        }
    }

    /// Whether a dead letter in this state can be replayed. An open or parked one can, one in another state only if the caller
    /// asks for another replay, and a deleted one never.
    pub const fn may_replay(self, again: bool) -> Result<(), ReplayRefusal> {
        match self {
            LetterState::Deleted => Err(ReplayRefusal::Deleted),
            LetterState::Open | LetterState::Parked => Ok(()),
            _ if again => Ok(()),
            _ => Err(ReplayRefusal::ReplayedBefore),
        }
    }

    /// Returns the operation that waits for a new replay of a dead letter in this state. A caller who replays once more what an
    /// operation has under way takes it over for the operation: it waits for the newest replay, or it would wait for ever.
    #[must_use]
    pub fn operation_of_replay<T>(self, before: Option<T>, operation: Option<T>) -> Option<T> {
        operation.or(if self == LetterState::Replaying { before } else { None })
    }

    /// Returns the state after the replay has ended. A dead letter that somebody has deleted meanwhile stays deleted.
    #[must_use]
    pub fn after_replay(self, ended: LetterState) -> LetterState {
        if self == LetterState::Replaying { ended } else { self }
    }
}

/// The columns of a group that decide about its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupFacts {
    pub state: GroupState,
    /// The number of its dead letters in each state.
    pub counts: LetterCounts,
}

/// A change of a group. The counts change by differences, so that several changes of one group add up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupChange {
    /// The differences of the counts, in the order of [`LetterState::ALL`].
    pub counts: [i64; LetterState::ALL.len()],
    /// The state after the change.
    pub state: GroupState,
    /// Whether a failure reopened the group.
    pub reopened: bool,
    /// Whether the group has no dead letters any more, and is deleted.
    pub removed: bool,
}

impl GroupFacts {
    /// The group of a first dead letter, which is open.
    #[must_use]
    pub fn first() -> Self {
        let mut counts = LetterCounts::default();
        counts.0[LetterState::Open as usize] = 1;
        GroupFacts { state: GroupState::Open, counts }
    }

    /// Returns the change when another dead letter joins. A group that was resolved is open again.
    #[must_use]
    pub fn joined(&self) -> GroupChange {
        let reopened = self.state == GroupState::Resolved;
        let state = if reopened { GroupState::Open } else { self.state };
        GroupChange { counts: differences(None, Some(LetterState::Open)), state, reopened, removed: false }
    }

    /// Returns the change when one of its dead letters gets another state. A group that has nothing left to handle is resolved.
    #[must_use]
    pub fn moved(&self, from: LetterState, to: LetterState) -> GroupChange {
        self.changed(differences(Some(from), Some(to)))
    }

    /// Returns the change when a dead letter in this state leaves. A group without dead letters is deleted.
    #[must_use]
    pub fn left(&self, from: LetterState) -> GroupChange {
        self.changed(differences(Some(from), None))
    }

    fn changed(&self, counts: [i64; LetterState::ALL.len()]) -> GroupChange {
        let after = self.counts.changed(&counts);
        let to_handle = [LetterState::Open, LetterState::Replaying, LetterState::Parked];
        let is_done = to_handle.into_iter().all(|state| after.of(state) == 0);
        let state = if is_done { GroupState::Resolved } else { self.state };
        GroupChange { counts, state, reopened: false, removed: after == LetterCounts::default() }
    }
}

impl LetterCounts {
    /// Returns the counts after these differences.
    #[must_use]
    pub fn changed(&self, by: &[i64; LetterState::ALL.len()]) -> Self {
        let mut counts = self.0;
        for (count, by) in counts.iter_mut().zip(by) {
            *count = count.saturating_add_signed(*by);
        }
        LetterCounts(counts)
    }
}

/// Returns the differences of the counts when a dead letter leaves a state and enters another.
fn differences(from: Option<LetterState>, to: Option<LetterState>) -> [i64; LetterState::ALL.len()] {
    let mut counts = [0; LetterState::ALL.len()];
    if let Some(from) = from {
        counts[from as usize] -= 1;
    }
    if let Some(to) = to {
        counts[to as usize] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-6: which action is allowed in which state, for a dead letter that was never replayed.
    #[test]
    fn hub_6_an_action_is_allowed_in_some_states() {
        use LetterAction::{Delete, Park, Purge, Restore, Unpark};
        let allowed = |state| match state {
            LetterState::Open => vec![Park, Delete, Purge],
            LetterState::Replaying => vec![Delete],
            LetterState::Delivered | LetterState::FailedAgain => vec![Delete, Purge],
            LetterState::Parked => vec![Unpark, Delete, Purge],
            LetterState::Deleted => vec![Restore, Purge],
        };
        for state in LetterState::ALL {
            for action in LetterAction::ALL {
                let expected = match action {
                    _ if !allowed(state).contains(&action) => Err(state),
                    Park => Ok(LetterChange::State(LetterState::Parked)),
                    Unpark => Ok(LetterChange::State(LetterState::Open)),
                    Delete => Ok(LetterChange::Deleted),
                    Restore => Ok(LetterChange::Restored(LetterState::Open)),
                    Purge => Ok(LetterChange::Purged),
                };
                assert_eq!(state.apply(action, None), expected, "{state:?} {action:?}");
            }
        }
    }

    /// HUB-6: a restored dead letter stands where its replay says, and one whose replay is in progress is not purged.
    #[test]
    fn hub_6_the_replay_decides_what_is_restored_and_purged() {
        for (replay, state) in [
            (None, LetterState::Open),
            (Some(DeliveryState::Blocked), LetterState::Replaying),
            (Some(DeliveryState::Delivered), LetterState::Delivered),
            (Some(DeliveryState::DeadLettered), LetterState::FailedAgain),
        ] {
            let apply = |action| LetterState::Deleted.apply(action, replay);
            assert_eq!(apply(LetterAction::Restore), Ok(LetterChange::Restored(state)));
            let in_progress = state == LetterState::Replaying;
            let purged = if in_progress { Err(state) } else { Ok(LetterChange::Purged) };
            assert_eq!(apply(LetterAction::Purge), purged);
        }
        let replaying = Some(DeliveryState::Leased);
        for state in LetterState::ALL {
            for action in LetterAction::ALL {
                let differs = state.apply(action, replaying) != state.apply(action, None);
                assert_eq!(differs, action.depends_on_replay(state), "{state:?} {action:?}");
            }
        }
    }

    /// HUB-6: what is open or parked is replayed, what was replayed only once more if asked, and what is deleted never.
    #[test]
    fn hub_6_a_deleted_dead_letter_is_never_replayed() {
        for state in LetterState::ALL {
            let (once, again) = match state {
                LetterState::Open | LetterState::Parked => (Ok(()), Ok(())),
                LetterState::Deleted => (Err(ReplayRefusal::Deleted), Err(ReplayRefusal::Deleted)),
                _ => (Err(ReplayRefusal::ReplayedBefore), Ok(())),
            };
            assert_eq!((state.may_replay(false), state.may_replay(true)), (once, again), "{state:?}");
            let ours = if state == LetterState::Replaying { Some(3) } else { None };
            assert_eq!(state.operation_of_replay(Some(3), None), ours, "{state:?}");
            assert_eq!(state.operation_of_replay(Some(3), Some(4)), Some(4), "{state:?}");
            let after = state.after_replay(LetterState::Delivered);
            let expected = if state == LetterState::Replaying { LetterState::Delivered } else { state };
            assert_eq!(after, expected);
        }
    }

    /// HUB-6: a failure reopens what was resolved, and counts that; more failures do not change what somebody works on.
    #[test]
    fn hub_6_a_failure_reopens_a_resolved_group() {
        for (before, after) in [
            (GroupState::Open, GroupState::Open),
            (GroupState::Acknowledged, GroupState::Acknowledged),
            (GroupState::Resolved, GroupState::Open),
        ] {
            let joined = GroupFacts { state: before, counts: LetterCounts::default() }.joined();
            assert_eq!((joined.state, joined.reopened), (after, before == GroupState::Resolved));
            assert_eq!(joined.counts, [1, 0, 0, 0, 0, 0]);
        }
    }

    /// HUB-6: a group is resolved when nothing of it is open, replaying or parked, and deleted with its last dead letter.
    #[test]
    fn hub_6_a_group_is_resolved_when_nothing_is_left_to_handle() {
        for from in LetterState::ALL {
            let mut counts = LetterCounts::default();
            counts.0[from as usize] = 1;
            let group = GroupFacts { state: GroupState::Acknowledged, counts };
            assert!(group.left(from).removed, "{from:?}");
            for to in LetterState::ALL {
                let moved = group.moved(from, to);
                let to_handle =
                    matches!(to, LetterState::Open | LetterState::Replaying | LetterState::Parked);
                let expected = if to_handle { GroupState::Acknowledged } else { GroupState::Resolved };
                assert_eq!(moved.state, expected, "{from:?} {to:?}");
                assert_eq!(counts.changed(&moved.counts).of(to), 1);
                assert!(!moved.removed);
            }
        }
        let two = GroupFacts { state: GroupState::Open, counts: LetterCounts([2, 0, 0, 0, 0, 0]) };
        assert_eq!(two.left(LetterState::Open).state, GroupState::Open);
        assert!(!two.left(LetterState::Open).removed);
    }
}
