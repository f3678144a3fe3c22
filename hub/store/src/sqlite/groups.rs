//! Changes of dead letters: their states, their groups and their notes.

use rusqlite::params;
use seawall_hub_core::domain::dead_letter::{
    FailureSignature, FailureSummary, Fingerprint, GroupState, LetterState,
};
use seawall_hub_core::domain::delivery::{DeadLetterReason, Disposition};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{Annotation, LetterAction, LetterMove, StoreError};

use super::changes::UnitApplier;
use super::letters::LetterRow;
use super::rows;

/// The number of messages that are told apart for otherwise equal failures. A service with a different message each time would
/// make as many groups as dead letters; the rest is one group without a message.
const MESSAGES_MAX: u32 = 100;

/// Returns the column of a group that counts the dead letters in a state.
const fn column(state: LetterState) -> &'static str {
    match state {
        LetterState::Open => "open",
        LetterState::Replaying => "replaying",
        LetterState::Delivered => "delivered",
        LetterState::FailedAgain => "failed_again",
        LetterState::Parked => "parked",
        LetterState::Deleted => "deleted",
    }
}

impl UnitApplier<'_> {
    /// Adds a dead letter to its group. If it replays another dead letter, that one has failed again.
    pub(super) fn add_dead_letter(
        &mut self,
        delivery: i64,
        at: Millis,
        failure: Option<&FailureSummary>,
        attempt_number: u32,
    ) -> Result<(), StoreError> {
        let row = self.find(
            "SELECT service, rule, reason, replay_of FROM deliveries WHERE number = ?1",
            [delivery],
            |row| {
                let reason = rows::reason(row, 2)?.unwrap_or(DeadLetterReason::Impossible);
                let names = (rows::slug(row, 0)?, rows::slug(row, 1)?);
                Ok((names, reason, row.get::<_, Option<i64>>(3)?))
            },
        )?;
        let Some(((service, rule), reason, replay_of)) = row else {
            return Err(StoreError::Failed(format!("delivery {delivery} is not there")));
        };
        let unknown = FailureSummary::default();
        let failure = failure.unwrap_or(&unknown);
        let grouping = self.join_group(service, rule, reason, failure, at)?;
        self.run(
            "INSERT INTO dead_letters (delivery, grouping, standing, at, status, error, indexed, edited)
             VALUES (?1, ?2, 0, ?3, ?4, ?5, 0, 0)",
            params![delivery, grouping, at.0, failure.status, failure.message],
        )?;
        match replay_of {
            Some(original) => {
                self.replay_ended(original, delivery, LetterState::FailedAgain, attempt_number <= 1)
            }
            None => Ok(()),
        }
    }

    /// Adds a failure to its group, and returns the row number of the group.
    fn join_group(
        &self,
        service: Slug,
        rule: Slug,
        reason: DeadLetterReason,
        failure: &FailureSummary,
        at: Millis,
    ) -> Result<i64, StoreError> {
        let mut failure = FailureSignature::new(service, rule, reason, failure);
        let find = |fingerprint: Fingerprint| {
            let sql = "SELECT number, message FROM letter_groups WHERE fingerprint = ?1";
            self.find(sql, [fingerprint.0.cast_signed()], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            })
        };
        let mut fingerprint = Fingerprint::of(&failure);
        let mut known = find(fingerprint)?;
        if known.is_none() && self.says_too_much(&failure)? {
            failure.message.clear();
            fingerprint = Fingerprint::of(&failure);
            known = find(fingerprint)?;
        }
        if let Some((number, _)) = known {
            // One that was done with is not, after all.
            self.run(
                "UPDATE letter_groups SET open = open + 1, last = max(last, ?2), reopened = reopened + (state = 2),
                 state = CASE state WHEN 2 THEN 0 ELSE state END WHERE number = ?1",
                params![number, at.0],
            )?;
            return Ok(number);
        }
        self.run(
            "INSERT INTO letter_groups (fingerprint, service, rule, reason, status, message, state, first, last, reopened,
              open, replaying, delivered, failed_again, parked, deleted)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?7, 0, 1, 0, 0, 0, 0, 0)",
            params![
                fingerprint.0.cast_signed(),
                failure.service.as_str(),
                failure.rule.as_str(),
                rows::reason_to_number(failure.reason),
                failure.status,
                failure.message,
                at.0
            ],
        )?;
        Ok(self.connection.last_insert_rowid())
    }

    fn says_too_much(&self, failure: &FailureSignature) -> Result<bool, StoreError> {
        let count = self.find(
            "SELECT count(*) FROM letter_groups WHERE service = ?1 AND rule = ?2 AND reason = ?3 AND status IS ?4",
            params![
                failure.service.as_str(),
                failure.rule.as_str(),
                rows::reason_to_number(failure.reason),
                failure.status
            ],
            |row| row.get::<_, u32>(0),
        )?;
        Ok(count.unwrap_or(0) >= MESSAGES_MAX)
    }

    /// Changes the state of a dead letter, and the counts of its group.
    pub(super) fn set_state(&self, letter: LetterRow, to: LetterState) -> Result<(), StoreError> {
        let LetterRow { number, grouping, state: from } = letter;
        if from == to {
            return Ok(());
        }
        self.run(
            "UPDATE dead_letters SET standing = ?2 WHERE delivery = ?1",
            params![number, rows::letter_state_to_number(to)],
        )?;
        let (from, to) = (column(from), column(to));
        self.run(
            &format!("UPDATE letter_groups SET {from} = {from} - 1, {to} = {to} + 1 WHERE number = ?1"),
            [grouping],
        )?;
        self.resolve_if_done(grouping)
    }

    /// Resolves a group that has nothing left to handle.
    fn resolve_if_done(&self, grouping: i64) -> Result<(), StoreError> {
        self.run(
            "UPDATE letter_groups SET state = 2
             WHERE number = ?1 AND open = 0 AND replaying = 0 AND parked = 0 AND state <> 2",
            [grouping],
        )
        .map(drop)
    }

    /// Records an attempt of a replay in its dead letter and its operation. For a replay that was given up, its own dead letter
    /// has done that.
    pub(super) fn replay_tried(
        &self,
        replay: i64,
        attempt_number: u32,
        disposition: &Disposition,
    ) -> Result<(), StoreError> {
        let original = "SELECT replay_of FROM deliveries WHERE number = ?1";
        let Some(original) = self.find(original, [replay], |row| row.get::<_, i64>(0))? else {
            return Ok(());
        };
        match disposition {
            Disposition::Delivered => {
                self.replay_ended(original, replay, LetterState::Delivered, attempt_number == 1)
            }
            Disposition::Retry { .. } if attempt_number == 1 => self
                .run(
                    "UPDATE operations SET tried = tried + 1, faltered = faltered + 1
                     WHERE number = (SELECT operation FROM dead_letters WHERE delivery = ?1 AND replayed = ?2)",
                    [original, replay],
                )
                .map(drop),
            _ => Ok(()),
        }
    }

    /// Records the end of a replay. If the dead letter has been replayed once more since, it stays as it is.
    fn replay_ended(
        &self,
        original: i64,
        replay: i64,
        becomes: LetterState,
        first_try: bool,
    ) -> Result<(), StoreError> {
        let found = self.find(
            "SELECT grouping, standing, operation FROM dead_letters WHERE delivery = ?1 AND replayed = ?2",
            [original, replay],
            |row| Ok((row.get(0)?, rows::letter_state(row, 1)?, row.get::<_, Option<i64>>(2)?)),
        )?;
        let Some((grouping, state, operation)) = found else { return Ok(()) };
        if let Some(operation) = operation {
            let well = becomes == LetterState::Delivered;
            self.run(
                "UPDATE operations SET delivered = delivered + ?2, failed = failed + ?3, tried = tried + ?4,
                 faltered = faltered + ?5 WHERE number = ?1",
                params![operation, well, !well, first_try, first_try && !well],
            )?;
        }
        // Unless somebody has deleted it in the meantime.
        if state == LetterState::Replaying {
            self.set_state(LetterRow { number: original, grouping, state }, becomes)?;
        }
        Ok(())
    }

    /// Applies an action to a dead letter. It reads before it writes.
    pub(super) fn move_letter(&mut self, moved: &LetterMove) -> Result<(), StoreError> {
        let letter = self.letter(moved.dead)?;
        if !may_move(letter.state, moved.to) {
            return Err(StoreError::WrongState(letter.state.word()));
        }
        if moved.to == LetterAction::Purge && self.replay_is_under_way(letter)? {
            return Err(StoreError::WrongState(LetterState::Replaying.word()));
        }
        self.move_found(letter, moved.to, moved.at)
    }

    /// Whether its replay is in progress. A deleted dead letter does not show that by its state; but if it were purged, its
    /// operation would never hear of the end.
    pub(super) fn replay_is_under_way(&self, letter: LetterRow) -> Result<bool, StoreError> {
        Ok(self.state_by_replay(letter.number)? == LetterState::Replaying)
    }

    /// Returns the state of a dead letter from its replay.
    fn state_by_replay(&self, number: i64) -> Result<LetterState, StoreError> {
        let replayed = self.find(
            "SELECT x.state FROM dead_letters l JOIN deliveries x ON x.number = l.replayed WHERE l.delivery = ?1",
            [number],
            |row| rows::state(row, 0),
        )?;
        Ok(LetterState::of_replay(replayed))
    }

    pub(super) fn move_found(
        &mut self,
        letter: LetterRow,
        to: LetterAction,
        at: Millis,
    ) -> Result<(), StoreError> {
        let discarded = "UPDATE dead_letters SET discarded = ?2 WHERE delivery = ?1 AND discarded IS NOT ?2";
        match to {
            LetterAction::Park => self.set_state(letter, LetterState::Parked),
            LetterAction::Unpark => self.set_state(letter, LetterState::Open),
            LetterAction::Delete => {
                self.run(discarded, params![letter.number, at.0])?;
                self.release_order(letter.number)?;
                self.set_state(letter, LetterState::Deleted)
            }
            LetterAction::Restore => {
                self.run(discarded, params![letter.number, None::<i64>])?;
                self.set_state(letter, self.state_by_replay(letter.number)?)
            }
            LetterAction::Purge => {
                self.release_order(letter.number)?;
                self.forget(letter.number)?;
                for evidence in [
                    "DELETE FROM attempts WHERE delivery = ?1",
                    "UPDATE requests SET request = x'' WHERE delivery = ?1",
                ] {
                    self.run(evidence, [letter.number])?;
                }
                Ok(())
            }
        }
    }

    /// Removes a dead letter from the index and from its group. A group without dead letters is deleted.
    pub(super) fn forget(&self, number: i64) -> Result<(), StoreError> {
        let found = self.find(
            "DELETE FROM dead_letters WHERE delivery = ?1 RETURNING grouping, standing, indexed",
            [number],
            |row| Ok((row.get::<_, i64>(0)?, rows::letter_state(row, 1)?, row.get::<_, bool>(2)?)),
        )?;
        let Some((grouping, state, indexed)) = found else { return Ok(()) };
        if indexed {
            self.run("DELETE FROM letter_words WHERE rowid = ?1", [number])?;
        }
        let column = column(state);
        self.run(&format!("UPDATE letter_groups SET {column} = {column} - 1 WHERE number = ?1"), [grouping])?;
        self.run(
            "DELETE FROM letter_groups WHERE number = ?1
             AND open + replaying + delivered + failed_again + parked + deleted = 0",
            [grouping],
        )?;
        self.resolve_if_done(grouping)
    }

    /// Writes a note or a state. Each is one statement: a missing row is not changed.
    pub(super) fn note(&self, note: &Annotation) -> Result<(), StoreError> {
        let changed = match note {
            Annotation::Letter { dead, note } => {
                self.letter(*dead)?;
                self.run(
                    "UPDATE dead_letters SET note = ?2 WHERE delivery = ?1",
                    params![dead.number.cast_signed(), note],
                )?
            }
            Annotation::Group { fingerprint, note } => self.run(
                "UPDATE letter_groups SET note = ?2 WHERE fingerprint = ?1",
                params![fingerprint.0.cast_signed(), note],
            )?,
            Annotation::Stands { fingerprint, state } => self.run(
                "UPDATE letter_groups SET state = ?2 WHERE fingerprint = ?1",
                params![fingerprint.0.cast_signed(), group_state_to_number(*state)],
            )?,
        };
        if changed == 0 { Err(StoreError::Stale { found: None }) } else { Ok(()) }
    }
}

/// Whether an action is allowed in a state. A replay in progress is left alone until it has ended, but it can be deleted.
pub(super) fn may_move(from: LetterState, to: LetterAction) -> bool {
    match to {
        LetterAction::Park => from == LetterState::Open,
        LetterAction::Unpark => from == LetterState::Parked,
        LetterAction::Delete => from != LetterState::Deleted,
        LetterAction::Restore => from == LetterState::Deleted,
        LetterAction::Purge => from != LetterState::Replaying,
    }
}

pub(super) const fn group_state_to_number(state: GroupState) -> i64 {
    match state {
        GroupState::Open => 0,
        GroupState::Acknowledged => 1,
        GroupState::Resolved => 2,
    }
}
