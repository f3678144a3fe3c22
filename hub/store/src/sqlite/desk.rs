//! Changes on the dead letter desk: where dead letters stand, their groups, and what is said of them.

use rusqlite::params;
use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::delivery::{DeliveryId, Reason};
use seawall_hub_core::domain::letter::{Failure, Fingerprint, GroupState, Standing};
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{Following, Move, Note, StoreError, Tray};
use seawall_hub_core::service::{failure, last_word};

use super::changes::Changes;
use super::rows;

/// So many different messages are told apart of what is the same otherwise. A peer that says something else each time would
/// make as many groups as dead letters; the rest is one group without a message.
const MESSAGES_MAX: u32 = 100;

/// The row of a dead letter.
#[derive(Clone, Copy)]
pub(super) struct Letter {
    pub(super) number: i64,
    pub(super) grouping: i64,
    pub(super) standing: Standing,
}

/// The column of a group that counts those that stand there.
const fn column(standing: Standing) -> &'static str {
    match standing {
        Standing::Open => "open",
        Standing::Replaying => "replaying",
        Standing::Delivered => "delivered",
        Standing::FailedAgain => "failed_again",
        Standing::Parked => "parked",
        Standing::Deleted => "deleted",
    }
}

impl Changes<'_> {
    /// A delivery has been given up after so many sends: it joins those that have failed alike. If it replays another dead letter,
    /// that one has failed again.
    pub(super) fn add_dead_letter(
        &mut self,
        delivery: i64,
        at: Millis,
        attempt: Option<&Attempt>,
        sends: u32,
    ) -> Result<(), StoreError> {
        let row = self.find(
            "SELECT service, rule, reason, replay_of FROM deliveries WHERE number = ?1",
            [delivery],
            |row| {
                let reason = rows::reason(row, 2)?.unwrap_or(Reason::Impossible);
                let names = (rows::slug(row, 0)?, rows::slug(row, 1)?);
                Ok((names, reason, row.get::<_, Option<i64>>(3)?))
            },
        )?;
        let Some(((service, rule), reason, replay_of)) = row else {
            return Err(StoreError::Failed(format!("delivery {delivery} is not there")));
        };
        let failure = failure(service, rule, reason, attempt);
        let (status, error) = (failure.status, last_word(attempt));
        let grouping = self.join_group(failure, at)?;
        self.run(
            "INSERT INTO dead_letters (delivery, grouping, standing, at, status, error, indexed, edited)
             VALUES (?1, ?2, 0, ?3, ?4, ?5, 0, 0)",
            params![delivery, grouping, at.0, status, error],
        )?;
        match replay_of {
            Some(original) => self.replay_ended(original, delivery, Standing::FailedAgain, sends <= 1),
            None => Ok(()),
        }
    }

    /// One more has failed like this. Says the row of the group.
    fn join_group(&self, mut failure: Failure, at: Millis) -> Result<i64, StoreError> {
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

    fn says_too_much(&self, failure: &Failure) -> Result<bool, StoreError> {
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

    /// The row of a dead letter, also of one that was deleted.
    pub(super) fn letter(&self, dead: DeliveryId) -> Result<Letter, StoreError> {
        let number = dead.number.cast_signed();
        let found =
            self.find("SELECT grouping, standing FROM dead_letters WHERE delivery = ?1", [number], |row| {
                Ok(Letter { number, grouping: row.get(0)?, standing: rows::standing(row, 1)? })
            })?;
        found.filter(|_| dead.era == self.start.era).ok_or(StoreError::NotDead(dead))
    }

    /// A dead letter stands somewhere else, and its group counts it there.
    pub(super) fn stand(&self, letter: Letter, to: Standing) -> Result<(), StoreError> {
        let Letter { number, grouping, standing: from } = letter;
        if from == to {
            return Ok(());
        }
        self.run(
            "UPDATE dead_letters SET standing = ?2 WHERE delivery = ?1",
            params![number, rows::standing_to_number(to)],
        )?;
        let (from, to) = (column(from), column(to));
        self.run(
            &format!("UPDATE letter_groups SET {from} = {from} - 1, {to} = {to} + 1 WHERE number = ?1"),
            [grouping],
        )?;
        self.resolve_if_done(grouping)
    }

    /// A group in which nothing is left to deal with is done with.
    fn resolve_if_done(&self, grouping: i64) -> Result<(), StoreError> {
        self.run(
            "UPDATE letter_groups SET state = 2
             WHERE number = ?1 AND open = 0 AND replaying = 0 AND parked = 0 AND state <> 2",
            [grouping],
        )
        .map(drop)
    }

    /// A try of a replay has ended: the dead letter hears of it, and the work that it belongs to. One that was given up has
    /// been told already, with its own dead letter.
    pub(super) fn replay_tried(&self, replay: i64, sends: u32, next: &Following) -> Result<(), StoreError> {
        let original = "SELECT replay_of FROM deliveries WHERE number = ?1";
        let Some(original) = self.find(original, [replay], |row| row.get::<_, i64>(0))? else {
            return Ok(());
        };
        match next {
            Following::Delivered => self.replay_ended(original, replay, Standing::Delivered, sends == 1),
            Following::Waits { .. } if sends == 1 => self
                .run(
                    "UPDATE operations SET tried = tried + 1, faltered = faltered + 1
                     WHERE number = (SELECT operation FROM dead_letters WHERE delivery = ?1 AND replayed = ?2)",
                    [original, replay],
                )
                .map(drop),
            Following::Waits { .. } | Following::Held | Following::DeadLetter { .. } => Ok(()),
        }
    }

    /// A replay has ended. If the dead letter has been replayed once more since, this one says nothing about it any more.
    fn replay_ended(
        &self,
        original: i64,
        replay: i64,
        becomes: Standing,
        first_try: bool,
    ) -> Result<(), StoreError> {
        let found = self.find(
            "SELECT grouping, standing, operation FROM dead_letters WHERE delivery = ?1 AND replayed = ?2",
            [original, replay],
            |row| Ok((row.get(0)?, rows::standing(row, 1)?, row.get::<_, Option<i64>>(2)?)),
        )?;
        let Some((grouping, standing, operation)) = found else { return Ok(()) };
        if let Some(operation) = operation {
            let well = becomes == Standing::Delivered;
            self.run(
                "UPDATE operations SET delivered = delivered + ?2, failed = failed + ?3, tried = tried + ?4,
                 faltered = faltered + ?5 WHERE number = ?1",
                params![operation, well, !well, first_try, first_try && !well],
            )?;
        }
        // Unless somebody has deleted it in the meantime.
        if standing == Standing::Replaying {
            self.stand(Letter { number: original, grouping, standing }, becomes)?;
        }
        Ok(())
    }

    /// Looks before it writes.
    pub(super) fn move_letter(&mut self, moved: &Move) -> Result<(), StoreError> {
        let letter = self.letter(moved.dead)?;
        if !may_move(letter.standing, moved.to) {
            return Err(StoreError::Elsewhere(letter.standing.word()));
        }
        if moved.to == Tray::Nowhere && self.replay_is_under_way(letter)? {
            return Err(StoreError::Elsewhere(Standing::Replaying.word()));
        }
        self.move_found(letter, moved.to, moved.at)
    }

    /// Whether its replay has not ended. One that was deleted does not say so by where it stands; but were it gone for good, the
    /// work that has begun the replay would never hear of its end.
    pub(super) fn replay_is_under_way(&self, letter: Letter) -> Result<bool, StoreError> {
        Ok(self.replay_stands(letter.number)? == Standing::Replaying)
    }

    /// Where it stands, going by its replay.
    fn replay_stands(&self, number: i64) -> Result<Standing, StoreError> {
        let replayed = self.find(
            "SELECT x.state FROM dead_letters l JOIN deliveries x ON x.number = l.replayed WHERE l.delivery = ?1",
            [number],
            |row| rows::state(row, 0),
        )?;
        Ok(Standing::of_replay(replayed))
    }

    pub(super) fn move_found(&mut self, letter: Letter, to: Tray, at: Millis) -> Result<(), StoreError> {
        let discarded = "UPDATE dead_letters SET discarded = ?2 WHERE delivery = ?1 AND discarded IS NOT ?2";
        match to {
            Tray::Aside => self.stand(letter, Standing::Parked),
            Tray::Back => self.stand(letter, Standing::Open),
            Tray::Bin => {
                self.run(discarded, params![letter.number, at.0])?;
                self.let_go(letter.number)?;
                self.stand(letter, Standing::Deleted)
            }
            Tray::OutOfBin => {
                self.run(discarded, params![letter.number, None::<i64>])?;
                self.stand(letter, self.replay_stands(letter.number)?)
            }
            Tray::Nowhere => {
                self.let_go(letter.number)?;
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

    /// A dead letter is no dead letter any more: it can't be found, and its group does not count it. A group that counts nothing
    /// goes as well.
    pub(super) fn forget(&self, number: i64) -> Result<(), StoreError> {
        let found = self.find(
            "DELETE FROM dead_letters WHERE delivery = ?1 RETURNING grouping, standing, indexed",
            [number],
            |row| Ok((row.get::<_, i64>(0)?, rows::standing(row, 1)?, row.get::<_, bool>(2)?)),
        )?;
        let Some((grouping, standing, indexed)) = found else { return Ok(()) };
        if indexed {
            self.run("DELETE FROM letter_words WHERE rowid = ?1", [number])?;
        }
        let column = column(standing);
        self.run(&format!("UPDATE letter_groups SET {column} = {column} - 1 WHERE number = ?1"), [grouping])?;
        self.run(
            "DELETE FROM letter_groups WHERE number = ?1
             AND open + replaying + delivered + failed_again + parked + deleted = 0",
            [grouping],
        )?;
        self.resolve_if_done(grouping)
    }

    /// Each is one statement: what is not there is not changed.
    pub(super) fn note(&self, note: &Note) -> Result<(), StoreError> {
        let changed = match note {
            Note::Letter { dead, note } => {
                self.letter(*dead)?;
                self.run(
                    "UPDATE dead_letters SET note = ?2 WHERE delivery = ?1",
                    params![dead.number.cast_signed(), note],
                )?
            }
            Note::Group { fingerprint, note } => self.run(
                "UPDATE letter_groups SET note = ?2 WHERE fingerprint = ?1",
                params![fingerprint.0.cast_signed(), note],
            )?,
            Note::Stands { fingerprint, state } => self.run(
                "UPDATE letter_groups SET state = ?2 WHERE fingerprint = ?1",
                params![fingerprint.0.cast_signed(), group_state_to_number(*state)],
            )?,
        };
        if changed == 0 { Err(StoreError::Stale { found: None }) } else { Ok(()) }
    }
}

/// Whether a dead letter that stands there can be put there. What is under way is left alone until it has ended, but for the
/// bin: somebody may not want to see it any more.
pub(super) fn may_move(from: Standing, to: Tray) -> bool {
    match to {
        Tray::Aside => from == Standing::Open,
        Tray::Back => from == Standing::Parked,
        Tray::Bin => from != Standing::Deleted,
        Tray::OutOfBin => from == Standing::Deleted,
        Tray::Nowhere => from != Standing::Replaying,
    }
}

pub(super) const fn group_state_to_number(state: GroupState) -> i64 {
    match state {
        GroupState::Open => 0,
        GroupState::Acknowledged => 1,
        GroupState::Resolved => 2,
    }
}
