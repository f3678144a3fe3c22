//! Changes of dead letters and their groups.

use seawall_hub_core::domain::dead_letter::{
    FailureSignature, FailureSummary, Fingerprint, GroupChange, GroupFacts, LetterChange, LetterGroup,
    LetterState, ReplayRefusal,
};
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryId, Disposition, StoredState};
use seawall_hub_core::domain::operation::OperationProgress;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{Annotation, LetterMove, ReplayChange, StoreError};

use super::apply::MemoryApplier;
use super::tables::MemoryLetter;

impl MemoryApplier<'_> {
    /// Adds a dead letter to its group. If it replays another dead letter, that one has failed again.
    pub(super) fn add_dead_letter(
        &mut self,
        number: u64,
        at: Millis,
        failure: Option<FailureSummary>,
        attempt_number: u32,
    ) {
        let Some(row) = self.tables.deliveries.get(&number) else { return };
        let (reason, replay_of) = (row.facts.reason.unwrap_or(DeadLetterReason::Impossible), row.replay_of);
        let failure = failure.unwrap_or_default();
        let signature = FailureSignature::new(row.service.clone(), row.rule.0.clone(), reason, &failure);
        let letter = MemoryLetter {
            group: self.join_group(signature, at),
            state: LetterState::Open,
            at,
            status: failure.status,
            error: failure.message,
            indexed: false,
            edited: false,
            replayed: None,
            deleted: None,
            note: None,
            operation: None,
        };
        self.tables.letters.insert(number, letter);
        if let Some(original) = replay_of {
            self.replay_ended(original, number, LetterState::FailedAgain, attempt_number <= 1);
        }
    }

    /// Adds a failure to its group, and returns the number of the group.
    fn join_group(&mut self, mut failure: FailureSignature, at: Millis) -> u64 {
        let find = |applier: &Self, failure: &FailureSignature| {
            let fingerprint = Fingerprint::of(failure);
            applier.tables.groups.keys_of(|_, group| group.fingerprint == fingerprint).pop()
        };
        let mut known = find(self, &failure);
        if known.is_none() {
            let alike = |other: &FailureSignature| {
                let (a, b) = (&failure, other);
                (&a.service, &a.rule, a.reason, a.status) == (&b.service, &b.rule, b.reason, b.status)
            };
            let similar = self.tables.groups.values().filter(|group| alike(&group.failure)).count();
            failure = failure.limited(u32::try_from(similar).unwrap_or(u32::MAX));
            known = find(self, &failure);
        }
        if let Some(number) = known {
            self.change_group(number, |facts| facts.joined());
            if let Some(group) = self.tables.groups.get_mut(&number) {
                group.last = group.last.max(at);
            }
            return number;
        }
        let (number, GroupFacts { state, counts }) = (self.tables.number(), GroupFacts::first());
        let group = LetterGroup {
            fingerprint: Fingerprint::of(&failure),
            failure,
            state,
            note: None,
            first: at,
            last: at,
            reopened: 0,
            counts,
            sample: None,
        };
        self.tables.groups.insert(number, group);
        number
    }

    fn change_group(&mut self, number: u64, change: impl FnOnce(GroupFacts) -> GroupChange) {
        let Some(group) = self.tables.groups.get_mut(&number) else { return };
        let change = change(GroupFacts { state: group.state, counts: group.counts });
        group.counts = group.counts.changed(&change.counts);
        group.state = change.state;
        group.reopened += u32::from(change.reopened);
        if change.removed {
            self.tables.groups.remove(&number);
        }
    }

    /// Returns a dead letter, also a deleted one.
    pub(super) fn letter(&self, id: DeliveryId) -> Result<&MemoryLetter, StoreError> {
        let found = self.tables.letters.get(&id.number).filter(|_| id.database == self.tables.database);
        found.ok_or(StoreError::NotADeadLetter(id))
    }

    /// Changes the state of a dead letter, and the counts of its group.
    pub(super) fn set_letter_state(&mut self, number: u64, to: LetterState) {
        let Some(letter) = self.tables.letters.get_mut(&number) else { return };
        let (from, group) = (std::mem::replace(&mut letter.state, to), letter.group);
        if from != to {
            self.change_group(group, |facts| facts.moved(from, to));
        }
    }

    /// Replays a dead letter as a new delivery that is linked to it.
    pub(super) fn replay(&mut self, replay: &ReplayChange) -> Result<(), StoreError> {
        let letter = self.letter(replay.dead)?;
        if let Err(refusal) = letter.state.may_replay(replay.again) {
            let before = self.tables.replay_of_letter(letter);
            return Err(match (refusal, before) {
                (ReplayRefusal::ReplayedBefore, Some((before, state))) => {
                    StoreError::AlreadyReplayed(self.tables.id(before), state)
                }
                _ => StoreError::WrongState(letter.state.word()),
            });
        }
        self.replay_found(replay, None)
    }

    pub(super) fn replay_found(
        &mut self,
        replay: &ReplayChange,
        operation: Option<u64>,
    ) -> Result<(), StoreError> {
        let ReplayChange { dead, new, at, edited, .. } = replay;
        let number = dead.number;
        let row = self.tables.deliveries.get(&number).ok_or(StoreError::NotADeadLetter(*dead))?;
        let (event, rule, order) = (row.event, row.rule.0.clone(), row.order.clone());
        // If it holds up others, the new one takes its place: it must not wait for itself.
        if row.facts.state == StoredState::HoldingOrder {
            self.tables.set_state(number, StoredState::DeadLettered);
        }
        let made = self.add_delivery(event, new, *at, Some(number));
        if order.is_some() {
            let facts = self.tables.order_of(number);
            let stays = rule == new.rule.0 && order == new.order;
            let next = if stays { facts.next_when_replayed(made) } else { facts.next_when_released() };
            if let Some(next) = next {
                self.tables.set_state(next, StoredState::Queued);
            }
        }
        if let Some(letter) = self.tables.letters.get_mut(&number) {
            letter.operation = letter.state.operation_of_replay(letter.operation, operation);
            (letter.replayed, letter.edited) = (Some((made.0, *at)), *edited);
        }
        self.set_letter_state(number, LetterState::Replaying);
        Ok(())
    }

    /// Records an attempt of a replay in its dead letter and its operation. For a replay that was given up, its own dead letter
    /// has done that.
    pub(super) fn replay_tried(&mut self, replay: u64, attempt_number: u32, disposition: &Disposition) {
        let Some(original) = self.tables.deliveries.get(&replay).and_then(|row| row.replay_of) else {
            return;
        };
        match disposition {
            Disposition::Delivered => {
                self.replay_ended(original, replay, LetterState::Delivered, attempt_number == 1);
            }
            Disposition::Retry { .. } if attempt_number == 1 => {
                self.replay_ended(original, replay, LetterState::Replaying, true);
            }
            _ => {}
        }
    }

    /// Records an attempt of a replay that leads to this state. If the dead letter has been replayed once more since, it stays as
    /// it is.
    fn replay_ended(&mut self, original: u64, replay: u64, becomes: LetterState, is_first: bool) {
        let letter = self.tables.letters.get(&original);
        let of_replay = |letter: &&MemoryLetter| letter.replayed.is_some_and(|(number, _)| number == replay);
        let Some(letter) = letter.filter(of_replay) else { return };
        let (after, operation) = (letter.state.after_replay(becomes), letter.operation);
        if let Some(operation) = operation.and_then(|number| self.tables.operations.get_mut(&number)) {
            operation.progress = operation.progress + OperationProgress::on_attempt(becomes, is_first);
        }
        self.set_letter_state(original, after);
    }

    /// Applies an action to a dead letter.
    pub(super) fn move_letter(&mut self, moved: &LetterMove) -> Result<(), StoreError> {
        let letter = self.letter(moved.dead)?;
        let replay = self.tables.replay_of_letter(letter).map(|(_, state)| state);
        let change =
            letter.state.apply(moved.to, replay).map_err(|state| StoreError::WrongState(state.word()))?;
        self.change_letter(moved.dead.number, change, moved.at);
        Ok(())
    }

    pub(super) fn change_letter(&mut self, number: u64, change: LetterChange, at: Millis) {
        let (state, deleted) = match change {
            LetterChange::State(state) => return self.set_letter_state(number, state),
            LetterChange::Deleted => (LetterState::Deleted, Some(at)),
            LetterChange::Restored(state) => (state, None),
            LetterChange::Purged => {
                self.release_order(number);
                self.forget(number);
                if let Some(row) = self.tables.deliveries.get_mut(&number) {
                    row.attempts.clear();
                    row.request.clear();
                }
                return;
            }
        };
        if let Some(letter) = self.tables.letters.get_mut(&number) {
            letter.deleted = deleted;
        }
        if change == LetterChange::Deleted {
            self.release_order(number);
        }
        self.set_letter_state(number, state);
    }

    /// Removes a dead letter from its group.
    pub(super) fn forget(&mut self, number: u64) {
        if let Some(letter) = self.tables.letters.remove(&number) {
            self.change_group(letter.group, |facts| facts.left(letter.state));
        }
    }

    /// Writes a note or a state.
    pub(super) fn note(&mut self, note: &Annotation) -> Result<(), StoreError> {
        let (Annotation::Group { fingerprint, .. } | Annotation::GroupState { fingerprint, .. }) = note
        else {
            let Annotation::Letter { dead, note } = note else { return Ok(()) };
            self.letter(*dead)?;
            if let Some(letter) = self.tables.letters.get_mut(&dead.number) {
                letter.note.clone_from(note);
            }
            return Ok(());
        };
        let number = self.tables.groups.keys_of(|_, group| group.fingerprint == *fingerprint).pop();
        let group = number.and_then(|number| self.tables.groups.get_mut(&number));
        let group = group.ok_or(StoreError::Stale { found: None })?;
        match note {
            Annotation::Group { note, .. } => group.note.clone_from(note),
            Annotation::GroupState { state, .. } => group.state = *state,
            Annotation::Letter { .. } => {}
        }
        Ok(())
    }

    /// Lets the words of dead letters be found.
    pub(super) fn index(&mut self, limit: u32) {
        let missing = self.tables.letters.keys_of(|_, letter| !letter.indexed);
        for number in missing.into_iter().take(limit as usize) {
            if let Some(letter) = self.tables.letters.get_mut(&number) {
                letter.indexed = true;
                self.committed.touched += 1;
            }
        }
    }
}
