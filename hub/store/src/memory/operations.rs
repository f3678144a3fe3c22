//! Changes of bulk operations.

use seawall_hub_core::domain::operation::{BatchResult, Operation, OperationId, OperationState};
use seawall_hub_core::port::store::{BulkItem, OperationStep, OperationTransition, ReplayChange, StoreError};

use super::apply::MemoryApplier;

impl MemoryApplier<'_> {
    fn operation(&mut self, id: OperationId) -> Result<&mut Operation, StoreError> {
        let ours = id.database == self.tables.database;
        let found = self.tables.operations.get_mut(&id.number).filter(|_| ours);
        found.ok_or(StoreError::Stale { found: None })
    }

    pub(super) fn transition(&mut self, transition: &OperationTransition) -> Result<(), StoreError> {
        let operation = self.operation(transition.operation)?;
        let changed = operation.clone().transition(transition);
        *operation = changed.map_err(|run| StoreError::WrongState(run.word()))?;
        Ok(())
    }

    /// Applies a batch and stores the progress. Dead letters that others have changed meanwhile are skipped.
    pub(super) fn advance(&mut self, step: &OperationStep) -> Result<(), StoreError> {
        let operation = self.operation(step.operation)?;
        if operation.run == OperationState::Running && operation.cursor != step.from_cursor {
            return Err(StoreError::Stale { found: Some(operation.cursor) });
        }
        let mut done = 0;
        for item in &step.items {
            done += usize::from(self.apply_item(item, step)?);
        }
        let OperationStep { skipped, cause, failed_delivery, cursor, exhausted, at, .. } = step;
        let batch = BatchResult {
            begun: done as u64,
            skipped: *skipped,
            cause: cause.clone(),
            failed_delivery: *failed_delivery,
            cursor: *cursor,
            exhausted: *exhausted,
            at: *at,
        };
        // A batch that is refused takes its items back with it, as the whole unit is refused.
        let operation = self.operation(step.operation)?;
        let advanced = operation.clone().advance(batch);
        *operation = advanced.map_err(|run| StoreError::WrongState(run.word()))?;
        self.committed.touched += done;
        Ok(())
    }

    /// Applies one item. Returns false if somebody else has changed its dead letter.
    fn apply_item(&mut self, item: &BulkItem, step: &OperationStep) -> Result<bool, StoreError> {
        let (BulkItem::Replay(id, _) | BulkItem::Move(id, _)) = item;
        let Ok(letter) = self.letter(*id) else { return Ok(false) };
        let replay = self.tables.replay_of_letter(letter).map(|(_, state)| state);
        let state = letter.state;
        match item {
            BulkItem::Replay(dead, new) if state.may_replay(false).is_ok() => {
                let replay =
                    ReplayChange { dead: *dead, new: new.clone(), at: step.at, again: false, edited: false };
                self.replay_found(&replay, Some(step.operation.number))?;
            }
            BulkItem::Replay(_, _) => return Ok(false),
            BulkItem::Move(_, action) => match state.apply(*action, replay) {
                Ok(change) => self.change_letter(id.number, change, step.at),
                Err(_) => return Ok(false),
            },
        }
        Ok(true)
    }
}
