//! Units that happen once under a key.
//!
//! # Why is the key inserted before anything else?
//! Whoever inserts it first has it: others wait at its row until that transaction has ended, and then find what was done, or take its
//! place if nothing was. A key that is there is locked, so that one of those who find it expired claims it anew.

use seawall_dist::idempotency::{Claim, ClaimDecision, Entry, KEPT, claim};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::port::store::{IdempotencyRecord, StoreError};

use super::applier::{ApplyError, UnitApplier};
use crate::postgres::rows::Columns;
use crate::postgres::text::stored;

/// The number of expired keys that go when another is stored.
const EXPIRED_MAX: i64 = 4;
/// How often a key is claimed that others delete at the same moment.
const CLAIMS_MAX: u32 = 5;

impl UnitApplier<'_> {
    /// Claims a key. Record and effect are one transaction, so nobody ever sees it in flight.
    pub(super) async fn claim_key(&self, record: &IdempotencyRecord) -> Result<(), ApplyError> {
        for _ in 0..CLAIMS_MAX {
            let IdempotencyRecord { scope, key, fingerprint, note, at } = record;
            let added = self
                .run(
                    "INSERT INTO once (scope, key, fingerprint, note, deliveries, at, until)
                     VALUES ($1, $2, $3, $4, '{}', $5, $6) ON CONFLICT DO NOTHING",
                    &[scope, &stored(key), &&fingerprint[..], &stored(note), &at.0, &(*at + KEPT).0],
                )
                .await?;
            if added > 0 {
                return Ok(());
            }
            let found = self
                .find(
                    "SELECT key, fingerprint, until, note, deliveries FROM once WHERE scope = $1 AND key = $2 FOR UPDATE",
                    &[scope, &stored(key)],
                )
                .await?;
            let Some(row) = found else { continue };
            let mut columns = Columns::new("once", &row);
            columns.skip();
            let (fingerprint, until) = (columns.hash()?, columns.integer()?);
            let wanted = Claim { fingerprint: record.fingerprint, token: 0, lease: 0 };
            if let ClaimDecision::Run(_) = claim(Entry::Done { fingerprint, until }, &wanted, at.0) {
                return Ok(());
            }
            let (note, ids) = (columns.text()?, columns.value::<Vec<String>>()?);
            let deliveries = ids.iter().filter_map(|id| DeliveryId::parse(id)).collect();
            return Err(StoreError::AlreadyApplied { fingerprint, note, deliveries }.into());
        }
        Err(StoreError::Failed("its key is claimed and deleted all the time".into()).into())
    }

    /// Stores what was done under a key that this unit has claimed, and deletes some expired ones.
    pub(super) async fn record_key(&self, record: &IdempotencyRecord) -> Result<(), ApplyError> {
        let IdempotencyRecord { scope, key, fingerprint, note, at } = record;
        // The name of what has begun is known only now.
        let operation = self.committed.operation.map(|operation| operation.to_string());
        let ids: Vec<String> = self.committed.deliveries.iter().map(|(id, _)| id.to_string()).collect();
        self.run(
            "UPDATE once SET fingerprint = $3, note = $4, deliveries = $5, at = $6, until = $7 WHERE scope = $1 AND key = $2",
            &[
                scope,
                &stored(key),
                &&fingerprint[..],
                &stored(operation.as_deref().unwrap_or(note)),
                &ids,
                &at.0,
                &(*at + KEPT).0,
            ],
        )
        .await?;
        self.prune_keys(*at, EXPIRED_MAX).await.map(drop)
    }
}
