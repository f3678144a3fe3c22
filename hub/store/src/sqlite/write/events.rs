//! Changes of events.

use rusqlite::params;
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::port::store::{NewDelivery, StoreError};

use crate::sqlite::engine::writer::translate;
use crate::sqlite::write::UnitApplier;
use crate::sqlite::write::deliveries::DeliveryInsert;

impl UnitApplier<'_> {
    pub(crate) fn add_event(&mut self, event: &Event, deliveries: &[NewDelivery]) -> Result<(), StoreError> {
        let added = self.run(
            "INSERT INTO events (id, kind, source, payload, fingerprint, accepted, trace, considered, filtered)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (id, source) DO NOTHING",
            params![
                event.id,
                event.kind.as_str(),
                event.source,
                &event.payload[..],
                &event.fingerprint[..],
                event.accepted.0,
                event.trace,
                event.considered,
                event.filtered
            ],
        )?;
        if added == 0 {
            return Err(self.existing(event).unwrap_or_else(|error| translate(&error)));
        }
        let number = self.connection.last_insert_rowid();
        for new in deliveries {
            self.add_delivery(&DeliveryInsert { event: number, new, at: event.accepted, replay_of: None })?;
        }
        Ok(())
    }

    /// Returns what is stored of an event that was accepted before.
    fn existing(&self, event: &Event) -> rusqlite::Result<StoreError> {
        let mut find = self
            .connection
            .prepare_cached("SELECT number, fingerprint FROM events WHERE id = ?1 AND source = ?2")?;
        let (number, fingerprint): (i64, [u8; 32]) =
            find.query_row([&event.id, &event.source], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut deliveries = self.connection.prepare_cached(
            "SELECT number FROM deliveries WHERE event = ?1 AND replay_of IS NULL ORDER BY number",
        )?;
        let deliveries =
            deliveries.query_map([number], |row| row.get(0).map(|number| self.delivery_id(number)))?;
        Ok(StoreError::EventExists { fingerprint, deliveries: deliveries.collect::<rusqlite::Result<_>>()? })
    }
}
