//! Units that happen once under a key.

use rusqlite::params;
use seawall_dist::idempotency::{Claim, ClaimDecision, Entry, KEPT, claim};
use seawall_hub_core::port::store::{IdempotencyRecord, StoreError};
use serde_json::Value;

use crate::sqlite::write::UnitApplier;
use crate::sqlite::write::set_based::PRUNE_KEYS;

/// The number of expired keys that go when another is stored.
const EXPIRED_MAX: u32 = 4;

impl UnitApplier<'_> {
    /// Checks whether a key is unused. Record and effect are one transaction, so it is never in flight.
    pub(crate) fn claim_key(&self, record: &IdempotencyRecord) -> Result<(), StoreError> {
        let found = self.find(
            "SELECT fingerprint, until, note, deliveries FROM once WHERE scope = ?1 AND key = ?2",
            [record.scope, &record.key],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )?;
        let Some((fingerprint, until, note, deliveries)): Option<([u8; 32], i64, String, String)> = found
        else {
            return Ok(());
        };
        let wanted = Claim { fingerprint: record.fingerprint, token: 0, lease: 0 };
        match claim(Entry::Done { fingerprint, until }, &wanted, record.at.0) {
            ClaimDecision::Run(_) => Ok(()),
            _ => Err(StoreError::AlreadyApplied { fingerprint, note, deliveries: self.named(&deliveries) }),
        }
    }

    /// Stores the key of an applied unit, and deletes some expired ones.
    pub(crate) fn record_key(&self, record: &IdempotencyRecord) -> Result<(), StoreError> {
        let numbers: Value = self.committed.deliveries.iter().map(|(id, _)| Value::from(id.number)).collect();
        self.run(PRUNE_KEYS, params![record.at.0, EXPIRED_MAX])?;
        // The name of what has begun is known only now.
        let operation = self.committed.operation.map(|operation| operation.to_string());
        self.run(
            "INSERT OR REPLACE INTO once (scope, key, fingerprint, note, deliveries, until)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                record.scope,
                record.key,
                &record.fingerprint[..],
                operation.as_ref().unwrap_or(&record.note),
                numbers.to_string(),
                (record.at + KEPT).0
            ],
        )?;
        Ok(())
    }

    fn named(&self, numbers: &str) -> Vec<seawall_hub_core::domain::delivery::DeliveryId> {
        let numbers: Value = serde_json::from_str(numbers).unwrap_or_default();
        let numbers = numbers.as_array().into_iter().flatten().filter_map(Value::as_i64);
        numbers.map(|number| self.delivery_id(number)).collect()
    }
}
