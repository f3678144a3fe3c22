//! Changes of dead letters and their groups, and what is said of them.

use rusqlite::{Row, params};
use seawall_hub_core::domain::dead_letter::{
    FailureSignature, FailureSummary, Fingerprint, GroupChange, GroupFacts, LetterChange, LetterCounts,
    LetterState,
};
use seawall_hub_core::domain::delivery::{DeadLetterReason, Disposition};
use seawall_hub_core::domain::operation::OperationProgress;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{Annotation, LetterAction, LetterMove, StoreError};

use crate::record::{StoredNumber, fingerprint_to_number};
use crate::sql::sql;
use crate::sqlite::rows;
use crate::sqlite::write::UnitApplier;
use crate::sqlite::write::letters::LetterRow;

impl UnitApplier<'_> {
    /// Adds a dead letter to its group. If it replays another dead letter, that one has failed again.
    pub(crate) fn add_dead_letter(
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
            return Err(StoreError::Failed(format!("delivery {delivery} does not exist")));
        };
        let unknown = FailureSummary::default();
        let failure = failure.unwrap_or(&unknown);
        let signature = FailureSignature::new(service, rule, reason, failure);
        let fingerprint = Fingerprint::of(&signature);
        let grouping = self.join_group(signature, fingerprint, at)?;
        self.run(
            "INSERT INTO dead_letters (delivery, grouping, standing, at, status, error, indexed, edited)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0)",
            params![delivery, grouping, LetterState::Open.to_number(), at.0, failure.status, failure.message],
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
        mut signature: FailureSignature,
        mut fingerprint: Fingerprint,
        at: Millis,
    ) -> Result<i64, StoreError> {
        let mut group = self.group_with(fingerprint)?;
        if group.is_none() {
            let limited = signature.clone().limited(self.groups_alike(&signature)?);
            if limited != signature {
                (signature, fingerprint) = (limited.clone(), Fingerprint::of(&limited));
                group = self.group_with(fingerprint)?;
            }
        }
        if let Some((number, facts)) = group {
            self.change_group(number, &facts.joined(), Some(at))?;
            return Ok(number);
        }
        let GroupFacts { state, counts } = GroupFacts::first();
        let [open, replaying, delivered, failed_again, parked, deleted] = counts.0.map(u64::cast_signed);
        self.run(
            "INSERT INTO letter_groups (fingerprint, service, rule, reason, status, message, state, first, last, reopened,
              open, replaying, delivered, failed_again, parked, deleted)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, 0, ?9, ?10, ?11, ?12, ?13, ?14)",
            params![
                fingerprint_to_number(fingerprint),
                signature.service.as_str(),
                signature.rule.as_str(),
                signature.reason.to_number(),
                signature.status,
                signature.message,
                state.to_number(),
                at.0,
                open,
                replaying,
                delivered,
                failed_again,
                parked,
                deleted
            ],
        )?;
        Ok(self.connection.last_insert_rowid())
    }

    fn group_with(&self, fingerprint: Fingerprint) -> Result<Option<(i64, GroupFacts)>, StoreError> {
        let sql = sql!("SELECT " GROUP_FACTS ", number FROM letter_groups WHERE fingerprint = ?1");
        self.find(sql, [fingerprint_to_number(fingerprint)], |row| Ok((row.get(7)?, group_facts(row)?)))
    }

    /// Returns the number of groups that differ from a failure in the message only.
    fn groups_alike(&self, failure: &FailureSignature) -> Result<u32, StoreError> {
        let count = self.find(
            "SELECT count(*) FROM letter_groups WHERE service = ?1 AND rule = ?2 AND reason = ?3 AND status IS ?4",
            params![
                failure.service.as_str(),
                failure.rule.as_str(),
                failure.reason.to_number(),
                failure.status
            ],
            |row| row.get(0),
        )?;
        Ok(count.unwrap_or(0))
    }

    /// Writes the change of a group; `failed` is when a dead letter joined it.
    fn change_group(
        &self,
        number: i64,
        change: &GroupChange,
        failed: Option<Millis>,
    ) -> Result<(), StoreError> {
        if change.removed {
            return self.run("DELETE FROM letter_groups WHERE number = ?1", [number]).map(drop);
        }
        let [open, replaying, delivered, failed_again, parked, deleted] = change.counts;
        self.run(
            "UPDATE letter_groups SET state = ?2, reopened = reopened + ?3, last = max(last, coalesce(?4, last)), open = open + ?5,
              replaying = replaying + ?6, delivered = delivered + ?7, failed_again = failed_again + ?8, parked = parked + ?9,
              deleted = deleted + ?10 WHERE number = ?1",
            params![
                number,
                change.state.to_number(),
                change.reopened,
                failed.map(|failed| failed.0),
                open,
                replaying,
                delivered,
                failed_again,
                parked,
                deleted
            ],
        )
        .map(drop)
    }

    /// Changes the group of a dead letter as a function of its present row.
    fn update_group(
        &self,
        number: i64,
        change: impl FnOnce(&GroupFacts) -> GroupChange,
    ) -> Result<(), StoreError> {
        let sql = sql!("SELECT " GROUP_FACTS " FROM letter_groups WHERE number = ?1");
        match self.find(sql, [number], group_facts)? {
            Some(facts) => self.change_group(number, &change(&facts), None),
            None => Ok(()),
        }
    }

    /// Changes the state of a dead letter, and the counts of its group.
    pub(crate) fn set_state(&self, letter: LetterRow, to: LetterState) -> Result<(), StoreError> {
        let LetterRow { number, grouping, state: from, .. } = letter;
        if from == to {
            return Ok(());
        }
        self.run(
            "UPDATE dead_letters SET standing = ?2 WHERE delivery = ?1",
            params![number, to.to_number()],
        )?;
        self.update_group(grouping, |group| group.moved(from, to))
    }

    /// Records an attempt of a replay in its dead letter and its operation. For a replay that was given up, its own dead letter
    /// has done that.
    pub(crate) fn replay_tried(
        &self,
        replay: i64,
        attempt_number: u32,
        disposition: &Disposition,
    ) -> Result<(), StoreError> {
        let original = "SELECT replay_of FROM deliveries WHERE number = ?1";
        let Some(original) = self.find(original, [replay], |row| row.get::<_, i64>(0))? else {
            return Ok(());
        };
        let is_first = attempt_number <= 1;
        match disposition {
            Disposition::Delivered => self.replay_ended(original, replay, LetterState::Delivered, is_first),
            Disposition::Retry { .. } if is_first => self
                .find(
                    "SELECT operation FROM dead_letters WHERE delivery = ?1 AND replayed = ?2",
                    [original, replay],
                    |row| row.get::<_, Option<i64>>(0),
                )?
                .flatten()
                .map_or(Ok(()), |operation| self.count_attempt(operation, LetterState::Replaying, is_first)),
            _ => Ok(()),
        }
    }

    /// Adds an attempt of a replay to the counters of its operation.
    fn count_attempt(&self, operation: i64, becomes: LetterState, is_first: bool) -> Result<(), StoreError> {
        let OperationProgress { tried, faltered, delivered, failed, .. } =
            OperationProgress::on_attempt(becomes, is_first);
        let [tried, faltered, delivered, failed] = [tried, faltered, delivered, failed].map(u64::cast_signed);
        self.run(
            "UPDATE operations SET tried = tried + ?2, faltered = faltered + ?3, delivered = delivered + ?4,
              failed = failed + ?5 WHERE number = ?1",
            [operation, tried, faltered, delivered, failed],
        )
        .map(drop)
    }

    /// Records the end of a replay. If the dead letter has been replayed once more since, it stays as it is.
    fn replay_ended(
        &self,
        original: i64,
        replay: i64,
        becomes: LetterState,
        is_first: bool,
    ) -> Result<(), StoreError> {
        let found = self.find(
            "SELECT grouping, standing, operation FROM dead_letters WHERE delivery = ?1 AND replayed = ?2",
            [original, replay],
            |row| LetterRow::read(original, row),
        )?;
        let Some(letter) = found else { return Ok(()) };
        if let Some(operation) = letter.operation {
            self.count_attempt(operation, becomes, is_first)?;
        }
        self.set_state(letter, letter.state.after_replay(becomes))
    }

    /// Applies an action to a dead letter. It reads before it writes.
    pub(crate) fn move_letter(&mut self, moved: &LetterMove) -> Result<(), StoreError> {
        let letter = self.letter(moved.dead)?;
        let change = self.change_of(letter, moved.to)?;
        let change = change.map_err(|state| StoreError::WrongState(state.word()))?;
        self.change_letter(letter, change, moved.at)
    }

    /// Returns what an action does to a dead letter, or the state that does not allow it.
    pub(crate) fn change_of(
        &self,
        letter: LetterRow,
        action: LetterAction,
    ) -> Result<Result<LetterChange, LetterState>, StoreError> {
        let replay = if action.depends_on_replay(letter.state) {
            self.find(
                "SELECT x.state FROM dead_letters l JOIN deliveries x ON x.number = l.replayed WHERE l.delivery = ?1",
                [letter.number],
                |row| rows::state(row, 0),
            )?
        } else {
            None
        };
        Ok(letter.state.apply(action, replay))
    }

    pub(crate) fn change_letter(
        &mut self,
        letter: LetterRow,
        change: LetterChange,
        at: Millis,
    ) -> Result<(), StoreError> {
        let discarded = "UPDATE dead_letters SET discarded = ?2 WHERE delivery = ?1 AND discarded IS NOT ?2";
        match change {
            LetterChange::State(to) => self.set_state(letter, to),
            LetterChange::Deleted => {
                self.run(discarded, params![letter.number, at.0])?;
                self.release_order(letter.number)?;
                self.set_state(letter, LetterState::Deleted)
            }
            LetterChange::Restored(to) => {
                self.run(discarded, params![letter.number, None::<i64>])?;
                self.set_state(letter, to)
            }
            LetterChange::Purged => {
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

    /// Removes a dead letter from the index and from its group.
    pub(crate) fn forget(&self, number: i64) -> Result<(), StoreError> {
        let found = self.find(
            "DELETE FROM dead_letters WHERE delivery = ?1 RETURNING grouping, standing, indexed",
            [number],
            |row| Ok((row.get::<_, i64>(0)?, rows::numbered(row, 1)?, row.get::<_, bool>(2)?)),
        )?;
        let Some((grouping, state, indexed)) = found else { return Ok(()) };
        if indexed {
            self.run("DELETE FROM letter_words WHERE rowid = ?1", [number])?;
        }
        self.update_group(grouping, |group| group.left(state))
    }

    /// Writes a note or a state. Each is one statement: a missing row is not changed.
    pub(crate) fn note(&self, note: &Annotation) -> Result<(), StoreError> {
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
                params![fingerprint_to_number(*fingerprint), note],
            )?,
            Annotation::GroupState { fingerprint, state } => self.run(
                "UPDATE letter_groups SET state = ?2 WHERE fingerprint = ?1",
                params![fingerprint_to_number(*fingerprint), state.to_number()],
            )?,
        };
        if changed == 0 { Err(StoreError::Stale { found: None }) } else { Ok(()) }
    }
}

/// Reads `GROUP_FACTS`: the state, and the counts in the order of `LetterState::ALL`.
fn group_facts(row: &Row<'_>) -> rusqlite::Result<GroupFacts> {
    let mut counts = LetterCounts::default();
    for (column, count) in (1..).zip(&mut counts.0) {
        *count = row.get::<_, i64>(column)?.cast_unsigned();
    }
    Ok(GroupFacts { state: rows::numbered(row, 0)?, counts })
}
