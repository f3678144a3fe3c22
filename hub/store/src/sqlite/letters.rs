//! Changes of dead letters, and of deliveries in bulk.

use std::collections::BTreeMap;

use rusqlite::params;
use seawall_hub_core::domain::dead_letter::LetterState;
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryId};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{DeliverySelector, ReplayChange, StoreError};

use super::changes::UnitApplier;
use super::deliveries::DeliveryInsert;
use super::rows::{self, BLOCKED, DEAD, HELD, HOLDING, QUEUED};
use super::unit_of_work::translate;

/// The row of a dead letter.
#[derive(Clone, Copy)]
pub(super) struct LetterRow {
    pub(super) number: i64,
    pub(super) grouping: i64,
    pub(super) state: LetterState,
}

impl UnitApplier<'_> {
    /// Inserts a delivery that is linked to the dead letter, and marks the dead letter: both, or none. An open or parked one can
    /// be replayed; one in another state only if `again` is set, and a deleted one never.
    pub(super) fn replay(&mut self, replay: &ReplayChange) -> Result<(), StoreError> {
        let found = self.letter(replay.dead)?;
        if found.state == LetterState::Deleted {
            return Err(StoreError::WrongState(found.state.word()));
        }
        if !replay.again && !matches!(found.state, LetterState::Open | LetterState::Parked) {
            let before = self.find(
                "SELECT x.number, x.state FROM dead_letters l JOIN deliveries x ON x.number = l.replayed
                 WHERE l.delivery = ?1",
                [found.number],
                |row| Ok((row.get::<_, i64>(0)?, rows::state(row, 1)?)),
            )?;
            let Some((before, state)) = before else {
                return Err(StoreError::WrongState(found.state.word()));
            };
            return Err(StoreError::AlreadyReplayed(self.name(before), state));
        }
        self.replay_found(found, replay, None)
    }

    /// Returns the row of a dead letter, also of a deleted one.
    pub(super) fn letter(&self, dead: DeliveryId) -> Result<LetterRow, StoreError> {
        let number = dead.number.cast_signed();
        let found =
            self.find("SELECT grouping, standing FROM dead_letters WHERE delivery = ?1", [number], |row| {
                Ok(LetterRow { number, grouping: row.get(0)?, state: rows::letter_state(row, 1)? })
            })?;
        found.filter(|_| dead.database == self.start.database).ok_or(StoreError::NotADeadLetter(dead))
    }

    pub(super) fn replay_found(
        &mut self,
        found: LetterRow,
        replay: &ReplayChange,
        operation: Option<i64>,
    ) -> Result<(), StoreError> {
        let ReplayChange { dead, new, at, edited, .. } = replay;
        let number = found.number;
        // If it holds up others, the new one takes its place: it must not wait for itself.
        self.run(
            "UPDATE deliveries SET state = ?2 WHERE number = ?1 AND state = ?3",
            params![number, DEAD, HOLDING],
        )?;
        let (event, held_up): (i64, bool) = self
            .find("SELECT event, ordering IS NOT NULL FROM deliveries WHERE number = ?1", [number], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .ok_or(StoreError::NotADeadLetter(*dead))?;
        self.add_delivery(&DeliveryInsert { event, new, at: *at, replay_of: Some(number) })?;
        let made = self.committed.deliveries.last().map_or(0, |(id, _)| id.number.cast_signed());
        if held_up {
            self.start_order(made)?;
        }
        // A second replay of what an operation has in progress takes it over: the operation waits for the newest, or it would
        // wait forever.
        self.run(
            "UPDATE dead_letters SET replayed = ?2, replayed_at = ?3, edited = ?5,
             operation = CASE WHEN ?4 IS NULL AND standing = ?6 THEN operation ELSE ?4 END WHERE delivery = ?1",
            params![number, made, at.0, operation, edited, rows::letter_state_to_number(LetterState::Replaying)],
        )?;
        self.set_state(found, LetterState::Replaying)
    }

    /// Starts a delivery that was inserted as blocked, if nothing but blocked deliveries are before it.
    fn start_order(&mut self, number: i64) -> Result<(), StoreError> {
        if self.order_is_idle(number)? {
            self.run("UPDATE deliveries SET state = ?2 WHERE number = ?1", params![number, QUEUED])?;
        }
        Ok(())
    }

    /// Whether no delivery in the order of this one is active, held, or holds up the others.
    fn order_is_idle(&self, number: i64) -> Result<bool, StoreError> {
        let active = self.find(
            "SELECT 1 FROM deliveries a JOIN deliveries b ON b.rule = a.rule AND b.ordering = a.ordering
             WHERE a.number = ?1 AND b.ordering IS NOT NULL AND b.state < 7 AND b.state <> 4 LIMIT 1",
            [number],
            |_| Ok(()),
        )?;
        Ok(active.is_none())
    }

    /// Releases the order that a dead letter holds up.
    pub(super) fn release_order(&mut self, number: i64) -> Result<(), StoreError> {
        let held_up = self.run(
            "UPDATE deliveries SET state = ?2 WHERE number = ?1 AND state = ?3",
            params![number, DEAD, HOLDING],
        )?;
        if held_up > 0 && self.order_is_idle(number)? {
            self.unblock(number, QUEUED)?;
        }
        Ok(())
    }

    pub(super) fn dead_letter_all(
        &mut self,
        whose: &DeliverySelector,
        most: u32,
        at: Millis,
    ) -> Result<(), StoreError> {
        let (sql, name) = match whose {
            DeliverySelector::Service(name) => (PENDING_OF_SERVICE, name),
            DeliverySelector::HeldBy(name) => (HELD_BY_RULE, name),
        };
        let numbers: Vec<i64> = self
            .prepare(&format!("{sql} LIMIT ?2"))?
            .query_map(params![name.as_str(), most], |row| row.get(0))
            .and_then(Iterator::collect)
            .map_err(|error| translate(&error))?;
        let mut orders = BTreeMap::new();
        for number in &numbers {
            self.run(
                "UPDATE deliveries SET state = ?2, touched = ?3, reason = ?4 WHERE number = ?1",
                params![number, DEAD, at.0, rows::reason_to_number(DeadLetterReason::Deleted)],
            )?;
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
        // Others of an order may go elsewhere, or be held by nobody. Looked at once for each, because many may wait in it.
        for number in orders.into_values() {
            if self.order_is_idle(number)? {
                self.unblock(number, QUEUED)?;
            }
        }
        self.committed.touched += numbers.len();
        Ok(())
    }

    /// Releases the held deliveries of a rule. Of each order only the first is released, and none where a replay is in progress.
    pub(super) fn release_held(&mut self, rule: &Slug, most: u32) -> Result<(), StoreError> {
        let released = self.run(
            "UPDATE deliveries SET state = CASE WHEN ordering IS NULL THEN ?2 ELSE ?3 END WHERE number IN
             (SELECT number FROM deliveries WHERE rule = ?1 AND state = 5 ORDER BY number LIMIT ?4)",
            params![rule.as_str(), QUEUED, BLOCKED, most],
        )?;
        self.committed.touched += released;
        let left = self.find(
            "SELECT 1 FROM deliveries WHERE rule = ?1 AND state = 5 LIMIT 1",
            [rule.as_str()],
            |_| Ok(()),
        )?;
        if released > 0 && left.is_none() {
            self.run(
                "UPDATE deliveries SET state = ?2 WHERE state = ?3 AND number IN
                 (SELECT min(number) FROM deliveries WHERE rule = ?1 AND ordering IS NOT NULL AND state < 7
                  GROUP BY ordering HAVING max(state < 4) = 0)",
                params![rule.as_str(), QUEUED, BLOCKED],
            )?;
        }
        const { assert!(HELD == 5, "the numbers in the texts above") };
        Ok(())
    }
}

/// Every pending delivery to a service: the claimed ones, which are few, and those that wait.
pub(super) const PENDING_OF_SERVICE: &str = "SELECT number FROM (
     SELECT number FROM deliveries WHERE state = 0 AND service = ?1
     UNION ALL SELECT number FROM deliveries WHERE state > 0 AND state < 6 AND state IN (1, 2, 3, 4, 5) AND service = ?1)";

/// Every delivery that a rule holds.
pub(super) const HELD_BY_RULE: &str = "SELECT number FROM deliveries WHERE rule = ?1 AND state = 5";
