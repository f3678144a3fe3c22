//! Changes of bulk operations.

use std::collections::BTreeMap;

use seawall_hub_core::domain::operation::{Operation, OperationId, OperationProgress, OperationState};
use seawall_hub_core::port::store::{BulkItem, OperationStep, OperationTransition, ReplayChange, StoreError};

use super::applier::{ApplyError, UnitApplier};
use super::letters::LockedLetter;
use crate::postgres::rows::{Columns, OPERATION, operation, small};
use crate::postgres::text::stored;
use crate::record::{bulk_action_to_row, filter_to_text};

impl UnitApplier<'_> {
    pub(super) async fn start_operation(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        let OperationProgress { begun, skipped, tried, faltered, delivered, failed } = operation.progress;
        let numbers = [begun, skipped, tried, faltered, delivered, failed, operation.cursor, operation.total];
        let [begun, skipped, tried, faltered, delivered, failed, cursor, total] =
            numbers.map(u64::cast_signed);
        let (task, plan) = action_to_row(operation);
        let row = self
            .find(
                "INSERT INTO operations (era, task, plan, filter, most, total, run, why, failed_delivery, begun, skipped, tried,
                  faltered, delivered, failed, cursor, looked, who, reason, began, changed, ended)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
                 RETURNING number",
                &[
                    &self.node.era.cast_signed(),
                    &task,
                    &plan,
                    &filter_to_text(&operation.filter),
                    &operation.limit.map(u64::cast_signed),
                    &total,
                    &small(operation.run),
                    &operation.cause.as_deref().map(stored),
                    &operation.failed_delivery.map(|delivery| delivery.to_string()),
                    &begun,
                    &skipped,
                    &tried,
                    &faltered,
                    &delivered,
                    &failed,
                    &cursor,
                    &operation.exhausted,
                    &stored(&operation.who),
                    &operation.reason.as_deref().map(stored),
                    &operation.began.0,
                    &operation.changed.0,
                    &operation.ended.map(|ended| ended.0),
                ],
            )
            .await?;
        let number = row.map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or_default();
        self.committed.operation = Some(OperationId::new(self.node.era, number.cast_unsigned()));
        Ok(())
    }

    /// Changes the state of an operation.
    pub(super) async fn transition(&mut self, change: &OperationTransition) -> Result<(), ApplyError> {
        let operation = self.operation(change.operation).await?;
        let operation = operation.transition(change).map_err(refused)?;
        let (_, plan) = action_to_row(&operation);
        self.run(
            "UPDATE operations SET plan = $2, run = $3, why = $4, failed_delivery = $5, changed = $6, ended = $7
             WHERE number = $1",
            &[
                &operation.id.number.cast_signed(),
                &plan,
                &small(operation.run),
                &operation.cause.as_deref().map(stored),
                &operation.failed_delivery.map(|delivery| delivery.to_string()),
                &operation.changed.0,
                &operation.ended.map(|ended| ended.0),
            ],
        )
        .await
        .map(drop)
    }

    /// Returns the row of an operation, and locks it.
    async fn operation(&self, id: OperationId) -> Result<Operation, ApplyError> {
        let sql = format!("SELECT {OPERATION} FROM operations WHERE number = $1 AND era = $2 FOR UPDATE");
        let found = self.find(&sql, &[&id.number.cast_signed(), &id.database.cast_signed()]).await?;
        let row = found.ok_or(StoreError::Stale { found: None })?;
        Ok(operation(&mut Columns::new("operations", &row))?)
    }

    /// Applies a batch and stores the progress: both, or none. Dead letters that others have changed meanwhile are skipped. All that
    /// it changes is locked first, the operation last: a replay that ends counts in it while it holds its dead letter.
    pub(super) async fn advance(&mut self, step: &OperationStep) -> Result<(), ApplyError> {
        let (mut dead, mut new) = (Vec::new(), Vec::new());
        for item in &step.items {
            match item {
                BulkItem::Replay(id, replay) => {
                    dead.push(*id);
                    new.push(replay);
                }
                BulkItem::Move(id, _) => dead.push(*id),
            }
        }
        self.lock_orders_of(&dead, &new).await?;
        let letters = self.letters(&dead).await?;
        let mut letters: BTreeMap<i64, LockedLetter> =
            letters.into_iter().map(|letter| (letter.number, letter)).collect();
        let operation = self.operation(step.operation).await?;
        if operation.run != OperationState::Running {
            return Err(refused(operation.run).into());
        }
        if operation.cursor != step.from_cursor {
            // Somebody else runs it too, and was first.
            return Err(StoreError::Stale { found: Some(operation.cursor) }.into());
        }
        let (number, mut begun) = (operation.id.number.cast_signed(), 0);
        for item in &step.items {
            let (BulkItem::Replay(id, _) | BulkItem::Move(id, _)) = item;
            if let Some(letter) = letters.remove(&id.number.cast_signed()) {
                begun += u32::from(self.apply_item(letter, item, step, number).await?);
            }
        }
        self.committed.touched += begun as usize;
        let operation = operation.advance(step.result(u64::from(begun))).map_err(refused)?;
        // The other counters may have changed in this unit: a replay can be a dead letter at once.
        self.run(
            "UPDATE operations SET begun = $2, skipped = $3, cursor = $4, looked = $5, changed = $6, why = $7,
              failed_delivery = $8 WHERE number = $1",
            &[
                &number,
                &operation.progress.begun.cast_signed(),
                &operation.progress.skipped.cast_signed(),
                &operation.cursor.cast_signed(),
                &operation.exhausted,
                &operation.changed.0,
                &operation.cause.as_deref().map(stored),
                &operation.failed_delivery.map(|delivery| delivery.to_string()),
            ],
        )
        .await
        .map(drop)
    }

    /// Applies one item. Returns false if somebody else has changed its dead letter.
    async fn apply_item(
        &mut self,
        letter: LockedLetter,
        item: &BulkItem,
        step: &OperationStep,
        operation: i64,
    ) -> Result<bool, ApplyError> {
        match item {
            BulkItem::Replay(..) if letter.state.may_replay(false).is_err() => Ok(false),
            BulkItem::Replay(dead, new) => {
                let replay =
                    ReplayChange { dead: *dead, new: new.clone(), at: step.at, again: false, edited: false };
                self.replay_found(letter, &replay, Some(operation)).await.map(|()| true)
            }
            BulkItem::Move(_, action) => match self.change_of(letter, *action).await? {
                Ok(change) => self.change_letter(letter, change, step.at).await.map(|()| true),
                Err(_) => Ok(false),
            },
        }
    }
}

fn refused(run: OperationState) -> StoreError {
    StoreError::WrongState(run.word())
}

/// Returns the columns `task` and `plan`.
fn action_to_row(operation: &Operation) -> (i16, Option<String>) {
    let (task, plan) = bulk_action_to_row(&operation.task);
    (i16::try_from(task).unwrap_or(i16::MAX), plan)
}
