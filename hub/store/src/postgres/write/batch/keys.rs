//! New events under idempotency keys, in batches.

use std::borrow::Cow;
use std::collections::HashSet;

use seawall_dist::idempotency::KEPT;
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::port::store::{IdempotencyRecord, StoreError};

use super::{ApplyError, Batch, NewEvent, ROUNDS_MAX, UnitResult, finished, pending};
use crate::postgres::rows::Columns;
use crate::postgres::text::stored;
use crate::postgres::write::applier::UnitApplier;
use crate::postgres::write::set_based::CLAIM_KEYS;

/// What was done under these keys.
const KNOWN_KEYS: &str =
    "SELECT o.key, u.place, o.fingerprint, o.note, o.deliveries FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (scope, key, place)
     JOIN once o ON o.scope = u.scope AND o.key = u.key";

/// Writes what was done under keys that this transaction has claimed.
const RECORD_KEYS: &str =
    "UPDATE once o SET deliveries = string_to_array(u.deliveries, ' ') FROM unnest($1::text[], $2::text[], $3::text[]) AS u (scope, key, deliveries)
     WHERE o.scope = u.scope AND o.key = u.key";

/// Gives back keys that this transaction has claimed, because nothing was done.
const FORGET_KEYS: &str = "DELETE FROM once o USING unnest($1::text[], $2::text[]) AS u (scope, key)
     WHERE o.scope = u.scope AND o.key = u.key";

/// The number of expired keys that go for each one that is stored.
const EXPIRED_MAX: i64 = 4;

/// Keys by their columns.
#[derive(Default)]
struct KeyColumns<'u> {
    scopes: Vec<&'u str>,
    keys: Vec<Cow<'u, str>>,
}

impl<'u> KeyColumns<'u> {
    fn of(records: impl IntoIterator<Item = &'u IdempotencyRecord>) -> Self {
        let mut columns = KeyColumns::default();
        for record in records {
            columns.scopes.push(record.scope);
            columns.keys.push(stored(&record.key));
        }
        columns
    }
}

impl Batch<'_> {
    /// Inserts events with their deliveries, each under a key that was not claimed before.
    pub(super) async fn add_keyed_events(
        &self,
        units: &[(&IdempotencyRecord, NewEvent<'_>)],
    ) -> Result<Vec<UnitResult>, ApplyError> {
        let mut results: Vec<Option<UnitResult>> = vec![None; units.len()];
        for _ in 0..ROUNDS_MAX.max(units.len()) {
            let open = pending(&results);
            if open.is_empty() {
                break;
            }
            let claimed = self.claim_keys(units, &open).await?;
            let events: Vec<NewEvent<'_>> = claimed.iter().map(|place| units[*place].1).collect();
            let made = self.add_events(&events).await?;
            self.record_keys(units, &claimed, &made).await?;
            for (place, result) in claimed.into_iter().zip(made) {
                results[place] = Some(result);
            }
            let refused: Vec<usize> = open.into_iter().filter(|place| results[*place].is_none()).collect();
            self.find_keys(units, &refused, &mut results).await?;
        }
        let newest = units.iter().map(|(record, _)| record.at).max();
        if let Some(at) = newest {
            let expired = EXPIRED_MAX.saturating_mul(units.len() as i64);
            UnitApplier::new(self.session, self.node).prune_keys(at, expired).await?;
        }
        Ok(finished(results))
    }

    /// Claims the key of the first unit of each key, and returns the places of those that were free, in their order.
    async fn claim_keys(
        &self,
        units: &[(&IdempotencyRecord, NewEvent<'_>)],
        open: &[usize],
    ) -> Result<Vec<usize>, ApplyError> {
        let (mut seen, mut first) = (HashSet::new(), Vec::new());
        for place in open {
            let record = units[*place].0;
            if seen.insert((record.scope, &record.key)) {
                first.push(*place);
            }
        }
        // Sorted by the key of the index, so that no two transactions wait for each other.
        let record = |place: &usize| units[*place].0;
        first.sort_unstable_by(|a, b| {
            (record(a).scope, &record(a).key).cmp(&(record(b).scope, &record(b).key))
        });
        let columns = KeyColumns::of(first.iter().map(record));
        let fingerprints: Vec<&[u8]> = first.iter().map(|place| &record(place).fingerprint[..]).collect();
        let notes: Vec<Cow<'_, str>> = first.iter().map(|place| stored(&record(place).note)).collect();
        let at: Vec<i64> = first.iter().map(|place| record(place).at.0).collect();
        let until: Vec<i64> = first.iter().map(|place| (record(place).at + KEPT).0).collect();
        let rows = self
            .session
            .rows(CLAIM_KEYS, &[&columns.scopes, &columns.keys, &fingerprints, &notes, &at, &until])
            .await?;
        let mut claimed = HashSet::with_capacity(rows.len());
        for row in &rows {
            claimed.insert((row.try_get::<_, &str>(0)?, row.try_get::<_, &str>(1)?));
        }
        let is_claimed =
            |place: &usize| claimed.contains(&(record(place).scope, &*stored(&record(place).key)));
        first.retain(is_claimed);
        first.sort_unstable();
        Ok(first)
    }

    async fn record_keys(
        &self,
        units: &[(&IdempotencyRecord, NewEvent<'_>)],
        claimed: &[usize],
        made: &[UnitResult],
    ) -> Result<(), ApplyError> {
        let records = || claimed.iter().map(|place| units[*place].0).zip(made);
        let refused = KeyColumns::of(records().filter(|(_, made)| made.is_err()).map(|(record, _)| record));
        if !refused.keys.is_empty() {
            self.session.run(FORGET_KEYS, &[&refused.scopes, &refused.keys]).await?;
        }
        let applied = KeyColumns::of(records().filter(|(_, made)| made.is_ok()).map(|(record, _)| record));
        let deliveries: Vec<String> = made
            .iter()
            .flatten()
            .map(|result| {
                result.deliveries.iter().map(|(id, _)| id.to_string()).collect::<Vec<_>>().join(" ")
            })
            .collect();
        if !applied.keys.is_empty() {
            self.session.run(RECORD_KEYS, &[&applied.scopes, &applied.keys, &deliveries]).await?;
        }
        Ok(())
    }

    /// Writes the results of units whose key was claimed before. One whose key has been given back meanwhile stays without.
    async fn find_keys(
        &self,
        units: &[(&IdempotencyRecord, NewEvent<'_>)],
        refused: &[usize],
        results: &mut [Option<UnitResult>],
    ) -> Result<(), ApplyError> {
        if refused.is_empty() {
            return Ok(());
        }
        let columns = KeyColumns::of(refused.iter().map(|place| units[*place].0));
        for row in self.session.rows(KNOWN_KEYS, &[&columns.scopes, &columns.keys]).await? {
            let mut columns = Columns::new("once", &row);
            columns.skip();
            let (place, fingerprint, note) = (columns.integer()?, columns.hash()?, columns.text()?);
            let ids: Vec<String> = columns.value()?;
            let deliveries = ids.iter().filter_map(|id| DeliveryId::parse(id)).collect();
            let place = usize::try_from(place - 1).ok().and_then(|place| refused.get(place));
            if let Some(result) = place.and_then(|place| results.get_mut(*place)) {
                *result = Some(Err(StoreError::AlreadyApplied { fingerprint, note, deliveries }));
            }
        }
        Ok(())
    }
}
