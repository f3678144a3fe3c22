//! Changes of dead letters, and of deliveries in bulk.

use std::collections::BTreeMap;

use rusqlite::{Row, params};
use seawall_hub_core::domain::dead_letter::{LetterState, ReplayRefusal};
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryId};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{DeliverySelector, ReplayChange, StoreError};

use crate::record::StoredNumber;
use crate::sqlite::engine::writer::translate;
use crate::sqlite::rows;
use crate::sqlite::write::UnitApplier;
use crate::sqlite::write::deliveries::DeliveryInsert;
use crate::sqlite::write::orders::STOP_HOLDING;
use crate::sqlite::write::set_based::{DEAD_LETTER, HELD_BY_RULE, PENDING_OF_SERVICE, RELEASE, START_ORDERS};

/// The row of a dead letter.
#[derive(Clone, Copy)]
pub(crate) struct LetterRow {
    pub(crate) number: i64,
    pub(crate) grouping: i64,
    pub(crate) state: LetterState,
    /// The operation that waits for its replay.
    pub(crate) operation: Option<i64>,
}

impl LetterRow {
    /// Reads the columns `grouping`, `standing` and `operation`.
    pub(crate) fn read(number: i64, row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(LetterRow {
            number,
            grouping: row.get(0)?,
            state: rows::numbered(row, 1)?,
            operation: row.get(2)?,
        })
    }
}

impl UnitApplier<'_> {
    /// Returns the row of a dead letter, also of a deleted one.
    pub(crate) fn letter(&self, dead: DeliveryId) -> Result<LetterRow, StoreError> {
        let number = dead.number.cast_signed();
        let sql = "SELECT grouping, standing, operation FROM dead_letters WHERE delivery = ?1";
        let found = self.find(sql, [number], |row| LetterRow::read(number, row))?;
        found.filter(|_| dead.database == self.start.database).ok_or(StoreError::NotADeadLetter(dead))
    }

    /// Inserts a delivery that is linked to the dead letter, and marks the dead letter: both, or none.
    pub(crate) fn replay(&mut self, replay: &ReplayChange) -> Result<(), StoreError> {
        let found = self.letter(replay.dead)?;
        match found.state.may_replay(replay.again) {
            Ok(()) => self.replay_found(found, replay, None),
            Err(ReplayRefusal::Deleted) => Err(StoreError::WrongState(found.state.word())),
            Err(ReplayRefusal::ReplayedBefore) => {
                let before = self.find(
                    "SELECT x.number, x.state FROM dead_letters l JOIN deliveries x ON x.number = l.replayed
                     WHERE l.delivery = ?1",
                    [found.number],
                    |row| Ok((row.get::<_, i64>(0)?, rows::state(row, 1)?)),
                )?;
                let unknown = StoreError::WrongState(found.state.word());
                Err(before.map_or(unknown, |(before, state)| {
                    StoreError::AlreadyReplayed(self.delivery_id(before), state)
                }))
            }
        }
    }

    pub(crate) fn replay_found(
        &mut self,
        found: LetterRow,
        replay: &ReplayChange,
        operation: Option<i64>,
    ) -> Result<(), StoreError> {
        let ReplayChange { dead, new, at, edited, .. } = replay;
        let number = found.number;
        // If it holds up others, the new one takes its place: it must not wait for itself.
        self.run(STOP_HOLDING, [number])?;
        let (event, order) = self
            .find("SELECT event, rule, ordering FROM deliveries WHERE number = ?1", [number], |row| {
                let rule = row.get::<_, String>(1)?;
                Ok((row.get(0)?, row.get::<_, Option<String>>(2)?.map(|order| (rule, order))))
            })?
            .ok_or(StoreError::NotADeadLetter(*dead))?;
        let made = self.add_delivery(&DeliveryInsert { event, new, at: *at, replay_of: Some(number) })?;
        if let Some((rule, order)) = order {
            // The rule may have another ordering key by now; then those behind the dead letter have nothing to wait for.
            let stays = rule == new.rule.0.as_str() && new.order.as_ref() == Some(&order);
            self.start_replayed(number, stays.then_some(made))?;
        }
        self.run(
            "UPDATE dead_letters SET replayed = ?2, replayed_at = ?3, operation = ?4, edited = ?5 WHERE delivery = ?1",
            params![
                number,
                made.0,
                at.0,
                found.state.operation_of_replay(found.operation, operation),
                edited
            ],
        )?;
        self.set_state(found, LetterState::Replaying)
    }

    pub(crate) fn dead_letter_all(
        &mut self,
        selector: &DeliverySelector,
        limit: u32,
        at: Millis,
    ) -> Result<(), StoreError> {
        let (sql, name) = match selector {
            DeliverySelector::Service(name) => (PENDING_OF_SERVICE, name),
            DeliverySelector::HeldBy(name) => (HELD_BY_RULE, name),
        };
        let numbers: Vec<i64> = self
            .prepare(&format!("{sql} LIMIT ?2"))?
            .query_map(params![name.as_str(), limit], |row| row.get(0))
            .and_then(Iterator::collect)
            .map_err(|error| translate(&error))?;
        let mut orders = BTreeMap::new();
        for number in &numbers {
            self.run(DEAD_LETTER, params![number, at.0, DeadLetterReason::Deleted.to_number()])?;
            let sends =
                self.find("SELECT failures FROM deliveries WHERE number = ?1", [number], |row| row.get(0))?;
            // If it was tried before, that was told then.
            self.add_dead_letter(*number, at, None, sends.map_or(0, |failures: u32| failures + 1))?;
            let order = self.find(
                "SELECT rule, ordering FROM deliveries WHERE number = ?1 AND ordering IS NOT NULL",
                [number],
                |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)),
            )?;
            orders.extend(order.map(|order| (order, *number)));
        }
        // Other deliveries of an order may go to another service, or not be held. Each order is read once, because many may wait in it.
        for number in orders.into_values() {
            self.start_next(number)?;
        }
        self.committed.touched += numbers.len();
        Ok(())
    }

    /// Releases the held deliveries of a rule. Of each order only the first is released, and none where a replay is in progress.
    pub(crate) fn release_held(&mut self, rule: &Slug, limit: u32) -> Result<(), StoreError> {
        let released = self.run(RELEASE, params![rule.as_str(), limit])?;
        self.committed.touched += released;
        let left = self.find(&format!("{HELD_BY_RULE} LIMIT 1"), [rule.as_str()], |_| Ok(()))?;
        if released > 0 && left.is_none() {
            self.run(START_ORDERS, [rule.as_str()])?;
        }
        Ok(())
    }
}
