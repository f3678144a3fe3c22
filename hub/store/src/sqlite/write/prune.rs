//! What is old: finding it beside the one who writes, and taking it out.

use rusqlite::params;
use seawall_hub_core::domain::retention::Limits;
use seawall_hub_core::port::store::{PruneTarget, StoreError};

use crate::sqlite::engine::writer::translate;
use crate::sqlite::write::UnitApplier;
use crate::sqlite::write::set_based::{IS_OLD, PRUNE_KEYS};

/// The number of free pages that are kept for new rows.
const FREE_KEPT: i64 = 1_024;
/// The share of free pages that are kept, as one in this many of all.
const FREE_SHARE: i64 = 4;

impl UnitApplier<'_> {
    pub(crate) fn prune(&mut self, prune: &PruneTarget) -> Result<(), StoreError> {
        self.committed.touched += match prune {
            PruneTarget::Events { numbers, limits } => self.prune_events(numbers, *limits)?,
            // The oldest first, and the newest never: its number must not be given out again. Work that has ended goes with what is
            // remembered of it.
            PruneTarget::Audit { before, limit } => self.run(
                "DELETE FROM operations WHERE number IN (SELECT number FROM operations WHERE ended < ?1 ORDER BY number LIMIT ?2)
                 AND number < (SELECT max(number) FROM operations)",
                params![before.0, limit],
            )? + self.run(
                "DELETE FROM audit WHERE number IN
                 (SELECT number FROM (SELECT number, at FROM audit ORDER BY number LIMIT ?2) WHERE at < ?1)
                 AND number < (SELECT max(number) FROM audit)",
                params![before.0, limit],
            )?,
            PruneTarget::Incidents { before, limit } => self.run(
                "DELETE FROM incidents WHERE number IN
                 (SELECT number FROM incidents WHERE resolved < ?1 AND live = 0 ORDER BY number LIMIT ?2)
                 AND number < (SELECT max(number) FROM incidents)",
                params![before.0, limit],
            )?,
            PruneTarget::Keys { now, limit } => self.run(PRUNE_KEYS, params![now.0, limit])?,
            PruneTarget::Room { limit } => self.give_back(*limit)?,
        };
        Ok(())
    }

    fn prune_events(&self, numbers: &[u64], limits: Limits) -> Result<usize, StoreError> {
        let mut gone = 0;
        for number in numbers.iter().map(|number| number.cast_signed()) {
            let is_old = self.find(
                &format!("SELECT 1 FROM events e WHERE e.number = ?3 AND {IS_OLD}"),
                params![limits.delivered.0, limits.discarded.0, number],
                |_| Ok(()),
            )?;
            if is_old.is_none() {
                continue;
            }
            for of_deliveries in [
                "DELETE FROM requests WHERE delivery IN (SELECT number FROM deliveries WHERE event = ?1)",
                "DELETE FROM attempts WHERE delivery IN (SELECT number FROM deliveries WHERE event = ?1)",
            ] {
                self.run(of_deliveries, [number])?;
            }
            let letters: Vec<i64> = self
                .prepare("SELECT l.delivery FROM dead_letters l JOIN deliveries d ON d.number = l.delivery WHERE d.event = ?1")?
                .query_map([number], |row| row.get(0))
                .and_then(Iterator::collect)
                .map_err(|error| translate(&error))?;
            for letter in letters {
                self.forget(letter)?;
            }
            self.run("DELETE FROM deliveries WHERE event = ?1", [number])?;
            gone += self.run("DELETE FROM events WHERE number = ?1", [number])?;
        }
        Ok(gone)
    }

    /// Returns free pages to the file system that will not be needed again soon.
    fn give_back(&self, limit: u32) -> Result<usize, StoreError> {
        let count = |name: &str| {
            let value = self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            value.map_err(|error| translate(&error))
        };
        let (all, free) = (count("page_count")?, count("freelist_count")?);
        let spare = (free - FREE_KEPT.max(all / FREE_SHARE)).min(i64::from(limit));
        if spare <= 0 {
            return Ok(0);
        }
        // A row for each page, and only who reads them all gives them all back.
        let mut vacuum = self.prepare(&format!("PRAGMA incremental_vacuum({spare})"))?;
        let mut rows = vacuum.raw_query();
        while rows.next().map_err(|error| translate(&error))?.is_some() {}
        // A file that was made before this could be has nothing to give back.
        Ok(usize::try_from(free - count("freelist_count")?).unwrap_or(0))
    }
}
