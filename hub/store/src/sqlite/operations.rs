//! Changes of work on many dead letters.

use rusqlite::{OptionalExtension, params};
use seawall_hub_core::domain::dead_letter::LetterState;
use seawall_hub_core::domain::operation::{Operation, OperationId, OperationProgress, OperationState};
use seawall_hub_core::port::store::{
    BulkItem, LetterAction, OperationStep, OperationTransition, ReplayChange, StoreError,
};

use super::changes::UnitApplier;
use super::filter;
use super::groups::may_move;
use super::rows;
use super::unit_of_work::translate;

impl UnitApplier<'_> {
    pub(super) fn begin_work(&mut self, operation: &Operation) -> Result<(), StoreError> {
        let OperationProgress { begun, skipped, tried, faltered, delivered, failed } = operation.progress;
        let numbers = [begun, skipped, tried, faltered, delivered, failed, operation.cursor, operation.total];
        let [begun, skipped, tried, faltered, delivered, failed, cursor, total] =
            numbers.map(u64::cast_signed);
        let (task, plan) = filter::task_to_row(&operation.task);
        self.run(
            "INSERT INTO operations (task, plan, filter, most, total, run, why, begun, skipped, tried, faltered, delivered,
              failed, cursor, looked, who, reason, began, changed, ended)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
            params![
                task,
                plan,
                filter::to_text(&operation.filter),
                operation.most.map(u64::cast_signed),
                total,
                rows::run_to_number(operation.run),
                operation.cause,
                begun,
                skipped,
                tried,
                faltered,
                delivered,
                failed,
                cursor,
                operation.exhausted,
                operation.who,
                operation.reason,
                operation.began.0,
                operation.changed.0,
                operation.ended.map(|ended| ended.0)
            ],
        )?;
        let number = self.connection.last_insert_rowid().cast_unsigned();
        self.committed.operation = Some(OperationId::new(self.start.database, number));
        Ok(())
    }

    /// Changes the state of an operation. It reads before it writes.
    pub(super) fn transition(&self, transition: &OperationTransition) -> Result<(), StoreError> {
        let OperationTransition { operation, from, to, cause, failed_delivery, at } = transition;
        let number = self.work(*operation)?;
        let run =
            self.find("SELECT run FROM operations WHERE number = ?1", [number], |row| rows::run(row, 0))?;
        match run {
            None => return Err(StoreError::Stale { found: None }),
            Some(run) if !from.contains(&run) => return Err(StoreError::WrongState(run.word())),
            Some(OperationState::Stopped) if *to == OperationState::Running => {
                // An operator who resumes what the canary has stopped has seen the reason: there is no canary any more.
                let no_canary =
                    "UPDATE operations SET plan = json_set(plan, '$.canary', json('[]')) WHERE number = ?1";
                self.run(no_canary, [number])?;
            }
            Some(_) => {}
        }
        self.run(
            // Why something was skipped is still true at the end.
            "UPDATE operations SET run = ?2, why = CASE ?2 WHEN 0 THEN ?3 ELSE coalesce(?3, why) END, changed = ?4, ended = ?5,
              failed_delivery = CASE ?2 WHEN 0 THEN ?6 ELSE coalesce(?6, failed_delivery) END
             WHERE number = ?1",
            params![
                number,
                rows::run_to_number(*to),
                cause,
                at.0,
                to.has_ended().then_some(at.0),
                failed_delivery.map(|delivery| delivery.number.cast_signed())
            ],
        )
        .map(drop)
    }

    fn work(&self, id: OperationId) -> Result<i64, StoreError> {
        if id.database == self.start.database {
            Ok(id.number.cast_signed())
        } else {
            Err(StoreError::Stale { found: None })
        }
    }

    /// Applies a batch and stores the progress: both, or none. Dead letters that others have changed meanwhile are skipped.
    pub(super) fn step(&mut self, step: &OperationStep) -> Result<(), StoreError> {
        let number = self.work(step.operation)?;
        let found = self
            .prepare("SELECT run, why FROM operations WHERE number = ?1")?
            .query_row([number], |row| Ok((rows::run(row, 0)?, row.get::<_, Option<String>>(1)?)))
            .optional()
            .map_err(|error| translate(&error))?;
        let cause = match found {
            None => return Err(StoreError::Stale { found: None }),
            Some((OperationState::Running, cause)) => cause,
            Some((run, _)) => return Err(StoreError::WrongState(run.word())),
        };
        let mut done = 0;
        for doing in &step.doings {
            done += usize::from(self.do_one(doing, step, number)?);
        }
        self.committed.touched += done;
        // The first that was left as it was is enough to see what is wrong.
        let cause = cause.or_else(|| step.cause.clone());
        self.run(
            "UPDATE operations SET begun = begun + ?2, skipped = skipped + ?3, cursor = ?4, looked = ?5, changed = ?6, why = ?7,
              failed_delivery = coalesce(failed_delivery, ?8)
             WHERE number = ?1",
            params![
                number,
                i64::try_from(done).unwrap_or(i64::MAX),
                step.skipped.cast_signed(),
                step.cursor.cast_signed(),
                step.exhausted,
                step.at.0,
                cause,
                step.failed_delivery.map(|delivery| delivery.number.cast_signed())
            ],
        )
        .map(drop)
    }

    fn do_one(&mut self, doing: &BulkItem, step: &OperationStep, operation: i64) -> Result<bool, StoreError> {
        let (BulkItem::Replay(id, _) | BulkItem::Move(id, _)) = doing;
        let letter = match self.letter(*id) {
            Ok(letter) => letter,
            Err(StoreError::NotADeadLetter(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        match doing {
            BulkItem::Replay(_, _) if !matches!(letter.state, LetterState::Open | LetterState::Parked) => {
                Ok(false)
            }
            BulkItem::Replay(dead, new) => {
                let replay =
                    ReplayChange { dead: *dead, new: new.clone(), at: step.at, again: false, edited: false };
                self.replay_found(letter, &replay, Some(operation)).map(|()| true)
            }
            BulkItem::Move(_, to) if !may_move(letter.state, *to) => Ok(false),
            BulkItem::Move(_, LetterAction::Purge) if self.replay_is_under_way(letter)? => Ok(false),
            BulkItem::Move(_, to) => self.move_found(letter, *to, step.at).map(|()| true),
        }
    }
}
