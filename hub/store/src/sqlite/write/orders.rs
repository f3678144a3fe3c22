//! Deliveries with the same ordering key: reading what decides, and starting the next.

use rusqlite::params;
use seawall_hub_core::domain::delivery::{OrderFacts, StoredState};
use seawall_hub_core::port::store::{NewDelivery, StoreError};

use crate::record::StoredNumber;
use crate::sql::sql;
use crate::sqlite::engine::writer::translate;
use crate::sqlite::rows;
use crate::sqlite::write::UnitApplier;

/// Turns a dead letter that holds its order into one that does not.
pub(crate) const STOP_HOLDING: &str =
    sql!("UPDATE deliveries SET state = " DEAD " WHERE number = ?1 AND state = " HOLDING);

impl UnitApplier<'_> {
    /// Whether a delivery of the order occupies it.
    pub(crate) fn is_order_busy(&self, new: &NewDelivery) -> Result<bool, StoreError> {
        let Some(order) = &new.order else { return Ok(false) };
        let sql =
            sql!("SELECT 1 FROM deliveries WHERE rule = ?1 AND ordering = ?2 AND " OCCUPIES_ORDER " LIMIT 1");
        Ok(self.find(sql, [new.rule.0.as_str(), order], |_| Ok(()))?.is_some())
    }

    /// Returns what waits in the order of a delivery that has just ended. It was the active one, so no other is.
    pub(crate) fn order_behind(&self, ended: i64) -> Result<OrderFacts, StoreError> {
        let first_waiting = self.find(
            sql!(
                "SELECT b.number, b.state FROM deliveries a JOIN deliveries b ON b.rule = a.rule AND b.ordering = a.ordering
                 WHERE a.number = ?1 AND a.ordering IS NOT NULL AND b.ordering IS NOT NULL AND b." OCCUPIES_ORDER "
                 AND b.state IN (" BLOCKED ", " HOLDING ") ORDER BY b.number LIMIT 1"
            ),
            [ended],
            order_row,
        )?;
        Ok(OrderFacts { first_waiting, ..OrderFacts::default() })
    }

    /// Returns what is in the order of a delivery.
    fn order_of(&self, number: i64) -> Result<OrderFacts, StoreError> {
        let mut statement = self.prepare(sql!(
            "SELECT b.number, b.state FROM deliveries a JOIN deliveries b ON b.rule = a.rule AND b.ordering = a.ordering
             WHERE a.number = ?1 AND a.ordering IS NOT NULL AND b.ordering IS NOT NULL AND b." OCCUPIES_ORDER "
             ORDER BY b.number"
        ))?;
        let rows = statement.query_map([number], order_row).map_err(|error| translate(&error))?;
        rows.collect::<rusqlite::Result<Vec<_>>>().map(OrderFacts::of).map_err(|error| translate(&error))
    }

    /// Starts a blocked delivery whose turn has come.
    pub(crate) fn start_in_order(&self, number: u64, becomes: StoredState) -> Result<(), StoreError> {
        self.run(
            "UPDATE deliveries SET state = ?2, epoch = ?3 WHERE number = ?1",
            params![number.cast_signed(), becomes.to_number(), self.start.epoch.cast_signed()],
        )
        .map(drop)
    }

    /// Releases the order that a dead letter holds up.
    pub(crate) fn release_order(&mut self, number: i64) -> Result<(), StoreError> {
        if self.run(STOP_HOLDING, [number])? > 0 { self.start_next(number) } else { Ok(()) }
    }

    /// Starts the next delivery in the order of this one, unless another is active or a dead letter holds it up.
    pub(crate) fn start_next(&self, number: i64) -> Result<(), StoreError> {
        self.start_replayed(number, None)
    }

    /// Starts the next delivery in the order of a dead letter that was replayed: the replay, if it is in the same order.
    pub(crate) fn start_replayed(
        &self,
        dead: i64,
        replay: Option<(i64, StoredState)>,
    ) -> Result<(), StoreError> {
        let facts = self.order_of(dead)?;
        let next = match replay {
            Some((replay, state)) => facts.next_when_replayed((replay.cast_unsigned(), state)),
            None => facts.next_when_released(),
        };
        next.map_or(Ok(()), |next| self.start_in_order(next, StoredState::Queued))
    }
}

fn order_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<(u64, StoredState)> {
    Ok((row.get::<_, i64>(0)?.cast_unsigned(), rows::numbered(row, 1)?))
}
