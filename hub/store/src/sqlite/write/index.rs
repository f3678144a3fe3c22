//! The words of dead letters.
//!
//! They are put into the index in a lane that waits for all others, so that a wave of failures costs those who send events
//! nothing. Until then a dead letter is found by everything but its words, and a search says how many are missing.

use rusqlite::params;
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::port::store::StoreError;

use crate::search_text::{ANSWER_MAX, ATTEMPTS_MAX, IndexedText, TEXT_MAX};
use crate::sqlite::engine::writer::translate;
use crate::sqlite::write::UnitApplier;

impl UnitApplier<'_> {
    pub(crate) fn index(&mut self, limit: u32) -> Result<(), StoreError> {
        let numbers: Vec<i64> = self
            .prepare("SELECT delivery FROM dead_letters WHERE indexed = 0 LIMIT ?1")?
            .query_map([limit], |row| row.get(0))
            .and_then(Iterator::collect)
            .map_err(|error| translate(&error))?;
        for number in &numbers {
            let words = self.words(*number).map_err(|error| translate(&error))?;
            self.run("INSERT INTO letter_words (rowid, words) VALUES (?1, ?2)", params![number, words])?;
            self.run("UPDATE dead_letters SET indexed = 1 WHERE delivery = ?1", [number])?;
        }
        self.committed.touched += numbers.len();
        Ok(())
    }

    /// Returns the text to index. Names come first, so that they are in it however large the rest is.
    fn words(&self, number: i64) -> rusqlite::Result<String> {
        let id = DeliveryId::new(self.start.database, number.cast_unsigned());
        let mut words = IndexedText::new(id);
        let mut event = self.connection.prepare_cached(
            "SELECT e.id, e.kind, e.source, e.trace, e.payload, d.replay_of FROM deliveries d
             JOIN events e ON e.number = d.event WHERE d.number = ?1",
        )?;
        let mut payload = Vec::new();
        event.query_row([number], |row| {
            for column in 0..4 {
                words.add(row.get::<_, Option<String>>(column)?.unwrap_or_default().as_bytes(), TEXT_MAX);
            }
            if let Some(original) = row.get::<_, Option<i64>>(5)? {
                let original = DeliveryId::new(id.database, original.cast_unsigned());
                words.add(original.to_string().as_bytes(), TEXT_MAX);
            }
            payload = row.get(4)?;
            Ok(())
        })?;
        let mut attempts = self.connection.prepare_cached(
            "SELECT error, answer FROM attempts WHERE delivery = ?1 ORDER BY number DESC LIMIT ?2",
        )?;
        let mut rows = attempts.query(params![number, ATTEMPTS_MAX])?;
        while let Some(row) = rows.next()? {
            words.add(row.get::<_, Option<String>>(0)?.unwrap_or_default().as_bytes(), ANSWER_MAX);
            words.add(&row.get::<_, Option<Vec<u8>>>(1)?.unwrap_or_default(), ANSWER_MAX);
        }
        words.add(&payload, TEXT_MAX);
        Ok(words.into_text())
    }
}
