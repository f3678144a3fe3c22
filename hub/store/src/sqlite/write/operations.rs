//! Changes of work on many dead letters.

use std::sync::LazyLock;

use rusqlite::params;
use seawall_hub_core::domain::operation::{Operation, OperationId, OperationProgress, OperationState};
use seawall_hub_core::port::store::{BulkItem, OperationStep, OperationTransition, ReplayChange, StoreError};

use crate::record::{self, StoredNumber};
use crate::sqlite::read::operations::{OPERATION, operation_row};
use crate::sqlite::write::UnitApplier;

impl UnitApplier<'_> {
    pub(crate) fn start_operation(&mut self, operation: &Operation) -> Result<(), StoreError> {
        let OperationProgress { begun, skipped, tried, faltered, delivered, failed } = operation.progress;
        let numbers = [begun, skipped, tried, faltered, delivered, failed, operation.cursor, operation.total];
        let [begun, skipped, tried, faltered, delivered, failed, cursor, total] =
            numbers.map(u64::cast_signed);
        let (task, plan) = record::bulk_action_to_row(&operation.task);
        self.run(
            "INSERT INTO operations (task, plan, filter, most, total, run, why, begun, skipped, tried, faltered, delivered,
              failed, cursor, looked, who, reason, began, changed, ended)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
            params![
                task,
                plan,
                record::filter_to_text(&operation.filter),
                operation.limit.map(u64::cast_signed),
                total,
                operation.run.to_number(),
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
    pub(crate) fn transition(&self, change: &OperationTransition) -> Result<(), StoreError> {
        let operation = self.operation(change.operation)?;
        let operation = operation.transition(change).map_err(|run| StoreError::WrongState(run.word()))?;
        let (_, plan) = record::bulk_action_to_row(&operation.task);
        self.run(
            "UPDATE operations SET plan = ?2, run = ?3, why = ?4, failed_delivery = ?5, changed = ?6, ended = ?7
             WHERE number = ?1",
            params![
                operation.id.number.cast_signed(),
                plan,
                operation.run.to_number(),
                operation.cause,
                operation.failed_delivery.map(|delivery| delivery.number.cast_signed()),
                operation.changed.0,
                operation.ended.map(|ended| ended.0)
            ],
        )
        .map(drop)
    }

    fn operation(&self, id: OperationId) -> Result<Operation, StoreError> {
        static SQL: LazyLock<String> =
            LazyLock::new(|| format!("SELECT {OPERATION} FROM operations WHERE number = ?1"));
        let database = self.start.database;
        let found = self.find(&SQL, [id.number.cast_signed()], |row| operation_row(row, database))?;
        found.filter(|_| id.database == database).ok_or(StoreError::Stale { found: None })
    }

    /// Applies a batch and stores the progress: both, or none. Dead letters that others have changed meanwhile are skipped.
    pub(crate) fn advance(&mut self, step: &OperationStep) -> Result<(), StoreError> {
        let operation = self.operation(step.operation)?;
        let refused = |run: OperationState| StoreError::WrongState(run.word());
        if operation.run != OperationState::Running {
            return Err(refused(operation.run));
        }
        if operation.cursor != step.from_cursor {
            return Err(StoreError::Stale { found: Some(operation.cursor) });
        }
        let (number, mut begun) = (operation.id.number.cast_signed(), 0);
        for item in &step.items {
            begun += u32::from(self.apply_item(item, step, number)?);
        }
        self.committed.touched += begun as usize;
        let operation = operation.advance(step.result(u64::from(begun))).map_err(refused)?;
        // The other counters may have changed in this unit: a replay can be a dead letter at once.
        self.run(
            "UPDATE operations SET begun = ?2, skipped = ?3, cursor = ?4, looked = ?5, changed = ?6, why = ?7,
              failed_delivery = ?8 WHERE number = ?1",
            params![
                number,
                operation.progress.begun.cast_signed(),
                operation.progress.skipped.cast_signed(),
                operation.cursor.cast_signed(),
                operation.exhausted,
                operation.changed.0,
                operation.cause,
                operation.failed_delivery.map(|delivery| delivery.number.cast_signed())
            ],
        )
        .map(drop)
    }

    fn apply_item(
        &mut self,
        item: &BulkItem,
        step: &OperationStep,
        operation: i64,
    ) -> Result<bool, StoreError> {
        let (BulkItem::Replay(id, _) | BulkItem::Move(id, _)) = item;
        let letter = match self.letter(*id) {
            Ok(letter) => letter,
            Err(StoreError::NotADeadLetter(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        match item {
            BulkItem::Replay(..) if letter.state.may_replay(false).is_err() => Ok(false),
            BulkItem::Replay(dead, new) => {
                let replay =
                    ReplayChange { dead: *dead, new: new.clone(), at: step.at, again: false, edited: false };
                self.replay_found(letter, &replay, Some(operation)).map(|()| true)
            }
            BulkItem::Move(_, action) => match self.change_of(letter, *action)? {
                Ok(change) => self.change_letter(letter, change, step.at).map(|()| true),
                Err(_) => Ok(false),
            },
        }
    }
}
