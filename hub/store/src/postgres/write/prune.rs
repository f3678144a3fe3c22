//! What is old, and is deleted.
//!
//! # What if something comes between?
//! Events that were found to be old are looked at once more, with their dead letters locked: whoever replays one of them locks it too.
//! So either the replay is there when the facts are read, and the event stays, or the dead letter is gone when the replay looks for it.

use std::collections::BTreeMap;

use seawall_hub_core::domain::retention::{EndedDelivery, Limits, PruneFacts};
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::PruneTarget;

use super::applier::{ApplyError, UnitApplier};
use crate::postgres::rows::Columns;

/// The dead letters of events, in the order in which everybody locks them.
const LOCK_LETTERS: &str = "SELECT l.delivery, l.grouping FROM dead_letters l
    WHERE l.delivery IN (SELECT number FROM deliveries WHERE event = ANY ($1)) ORDER BY l.delivery FOR UPDATE";
/// The rows that decide, one for each delivery of an event, or one without a delivery.
const FACTS: &str = "SELECT e.number, e.accepted, d.number, p.state, p.touched, l.standing, l.discarded,
        d.number = (SELECT max(number) FROM deliveries)
    FROM events e LEFT JOIN deliveries d ON d.event = e.number LEFT JOIN progress p ON p.number = d.number
    LEFT JOIN dead_letters l ON l.delivery = d.number WHERE e.number = ANY ($1)";
const DELETE: [&str; 4] = [
    "DELETE FROM attempts WHERE delivery IN (SELECT number FROM deliveries WHERE event = ANY ($1))",
    "DELETE FROM outcomes WHERE number IN (SELECT number FROM deliveries WHERE event = ANY ($1))",
    "DELETE FROM deliveries WHERE event = ANY ($1)",
    "DELETE FROM events WHERE number = ANY ($1)",
];
/// The newest of all stays, as in every store.
const PRUNE_OPERATIONS: &str = "DELETE FROM operations WHERE number IN
    (SELECT number FROM operations WHERE ended < $1 ORDER BY number LIMIT $2)
    AND number < (SELECT max(number) FROM operations)";
const PRUNE_AUDIT: &str = "DELETE FROM audit WHERE number IN
    (SELECT number FROM (SELECT number, at FROM audit ORDER BY number LIMIT $2) oldest WHERE at < $1)
    AND number < (SELECT max(number) FROM audit)";
const PRUNE_INCIDENTS: &str = "DELETE FROM incidents WHERE number IN
    (SELECT number FROM incidents WHERE resolved < $1 AND NOT live ORDER BY number LIMIT $2)
    AND number < (SELECT max(number) FROM incidents)";
const PRUNE_KEYS: &str = "WITH expired AS MATERIALIZED (
        SELECT scope, key FROM once WHERE until <= $1 ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED)
    DELETE FROM once USING expired WHERE once.scope = expired.scope AND once.key = expired.key";

impl UnitApplier<'_> {
    pub(super) async fn prune(&mut self, target: &PruneTarget) -> Result<(), ApplyError> {
        let gone = match target {
            PruneTarget::Events { numbers, limits } => self.prune_events(numbers, *limits).await?,
            // Work that has ended goes with what is remembered of it.
            PruneTarget::Audit { before, limit: most } => {
                let (before, most) = (before.0, i64::from(*most));
                self.run(PRUNE_OPERATIONS, &[&before, &most]).await?
                    + self.run(PRUNE_AUDIT, &[&before, &most]).await?
            }
            PruneTarget::Incidents { before, limit: most } => {
                self.run(PRUNE_INCIDENTS, &[&before.0, &i64::from(*most)]).await?
            }
            PruneTarget::Keys { now, limit } => self.prune_keys(*now, i64::from(*limit)).await?,
            // The server keeps its files itself: what autovacuum has freed is used for new rows.
            PruneTarget::Room { .. } => 0,
        };
        self.committed.touched += usize::try_from(gone).unwrap_or(usize::MAX);
        Ok(())
    }

    /// Deletes expired idempotency keys that nobody claims at the moment.
    pub(super) async fn prune_keys(&self, now: Millis, most: i64) -> Result<u64, ApplyError> {
        self.run(PRUNE_KEYS, &[&now.0, &most]).await
    }

    async fn prune_events(&mut self, numbers: &[u64], limits: Limits) -> Result<u64, ApplyError> {
        let numbers: Vec<i64> = numbers.iter().map(|number| number.cast_signed()).collect();
        let letters = self.lock_letters_of(&numbers).await?;
        let facts = self.prune_facts(&numbers).await?;
        let is_old = |(_, (facts, _)): &(i64, (PruneFacts, Vec<i64>))| facts.is_prunable(&limits);
        let (events, deliveries): (Vec<i64>, Vec<Vec<i64>>) =
            facts.into_iter().filter(is_old).map(|(event, (_, deliveries))| (event, deliveries)).unzip();
        let groups: Vec<i64> =
            deliveries.iter().flatten().filter_map(|delivery| letters.get(delivery).copied()).collect();
        self.lock_groups(&groups).await?;
        for delivery in deliveries.iter().flatten().filter(|delivery| letters.contains_key(delivery)) {
            self.forget(*delivery).await?;
        }
        let mut gone = 0;
        for sql in DELETE {
            gone = self.run(sql, &[&events]).await?;
        }
        Ok(gone)
    }

    /// Locks the dead letters of events, and returns their groups.
    async fn lock_letters_of(&self, events: &[i64]) -> Result<BTreeMap<i64, i64>, ApplyError> {
        let mut letters = BTreeMap::new();
        for row in self.rows(LOCK_LETTERS, &[&events]).await? {
            letters.insert(row.try_get(0)?, row.try_get(1)?);
        }
        Ok(letters)
    }

    /// Returns what decides about each event, with the numbers of its deliveries.
    async fn prune_facts(&self, events: &[i64]) -> Result<BTreeMap<i64, (PruneFacts, Vec<i64>)>, ApplyError> {
        let mut facts: BTreeMap<i64, (PruneFacts, Vec<i64>)> = BTreeMap::new();
        for row in self.rows(FACTS, &[&events]).await? {
            let mut columns = Columns::new("events", &row);
            let (event, accepted) = (columns.integer()?, columns.time()?);
            let (of_event, numbers) = facts
                .entry(event)
                .or_insert_with(|| (PruneFacts { accepted, deliveries: Vec::new() }, Vec::new()));
            let Some(number) = columns.integer_or_null()? else { continue };
            let (state, touched) = (columns.numbered()?, columns.time()?);
            let (standing, discarded) = (columns.numbered_or_null()?, columns.time_or_null()?);
            numbers.push(number);
            of_event.deliveries.push(EndedDelivery {
                state,
                touched,
                is_newest: columns.value()?,
                letter: standing.map(|standing| (standing, discarded)),
            });
        }
        Ok(facts)
    }
}
