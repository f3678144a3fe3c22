//! What is old: finding it, and taking it out.

use seawall_hub_core::domain::operation::Operation;
use seawall_hub_core::domain::retention::{EndedDelivery, Limits, PruneFacts};
use seawall_hub_core::port::store::{PrunableEvents, PruneTarget};

use super::apply::MemoryApplier;
use super::table::CowTable;
use super::tables::Tables;

impl MemoryApplier<'_> {
    /// Deletes old rows, and returns their number.
    pub(super) fn prune(&mut self, target: &PruneTarget) -> usize {
        match target {
            PruneTarget::Events { numbers, limits } => {
                let old: Vec<u64> =
                    numbers.iter().copied().filter(|number| is_old(self.tables, *number, *limits)).collect();
                for event in &old {
                    self.prune_event(*event);
                }
                old.len()
            }
            PruneTarget::Audit { before, limit } => {
                let ended = |operation: &Operation| operation.ended.is_some_and(|ended| ended < *before);
                remove_oldest(&mut self.tables.operations, *limit, ended)
                    + remove_oldest(&mut self.tables.audit, *limit, |entry| entry.at < *before)
            }
            PruneTarget::Incidents { before, limit } => {
                remove_oldest(&mut self.tables.incidents, *limit, |incident| {
                    let resolved = incident.resolved.as_ref();
                    !incident.is_live() && resolved.is_some_and(|resolved| resolved.at < *before)
                })
            }
            PruneTarget::Keys { now, limit } => {
                let old = self.tables.once.keys_of(|_, row| row.until <= *now);
                let old = &old[..old.len().min(*limit as usize)];
                for key in old {
                    self.tables.once.remove(key);
                }
                old.len()
            }
            // It has no file.
            PruneTarget::Room { .. } => 0,
        }
    }

    fn prune_event(&mut self, event: u64) {
        for number in self.tables.deliveries.keys_of(|_, row| row.event == event) {
            self.forget(number);
            self.tables.deliveries.remove(&number);
        }
        if let Some(event) = self.tables.events.remove(&event) {
            self.tables.event_ids.remove(&(event.id, event.source));
        }
    }
}

/// Removes the oldest rows that match. The newest row of all stays, as in every store.
fn remove_oldest<V: Clone>(table: &mut CowTable<u64, V>, limit: u32, is_old: impl Fn(&V) -> bool) -> usize {
    let last = table.last_key().copied();
    let old = table.keys_of(|number, row| Some(*number) != last && is_old(row));
    let old = &old[..old.len().min(limit as usize)];
    for number in old {
        table.remove(number);
    }
    old.len()
}

fn is_old(tables: &Tables, number: u64, limits: Limits) -> bool {
    let Some(event) = tables.events.get(&number) else { return false };
    let newest = tables.deliveries.last_key();
    let rows = tables.deliveries.iter().filter(|(_, row)| row.event == number);
    let ended = rows.map(|(number, row)| EndedDelivery {
        state: row.facts.state,
        touched: row.facts.touched,
        letter: tables.letters.get(number).map(|letter| (letter.state, letter.deleted)),
        is_newest: Some(number) == newest,
    });
    PruneFacts { accepted: event.accepted, deliveries: ended.collect() }.is_prunable(&limits)
}

/// Returns old events behind a position. It stops at the first young one: those behind it are young too.
pub(super) fn old_events(tables: &Tables, limits: Limits, behind: u64) -> PrunableEvents {
    let young = limits.delivered.max(limits.discarded)..=limits.now;
    let events = tables.events.iter().filter(|(number, _)| **number > behind);
    let events = events.take_while(|(_, event)| !young.contains(&event.accepted));
    let old = events.filter(|(number, _)| is_old(tables, **number, limits));
    PrunableEvents {
        found: old.map(|(number, event)| (*number, event.payload.len() as u64)).collect(),
        next: None,
    }
}
