//! Sagas in memory: for tests, and for what need not survive the process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::definition::DefinitionId;
use super::store::{
    ClaimOutcome, CreateOutcome, DueSagas, SagaFilter, SagaLease, SagaRecord, SagaRow, SagaState, SagaStore,
    SagaWrite, WriteOutcome,
};
use crate::work::MemoryClock;
use crate::{Millis, StoreFuture};

/// A store of sagas that ends with its process.
#[derive(Debug, Default)]
pub struct MemorySagaStore {
    clock: MemoryClock,
    sagas: Mutex<BTreeMap<String, SagaRecord>>,
}

impl MemorySagaStore {
    /// Creates a store without sagas.
    #[must_use]
    pub fn new() -> Self {
        MemorySagaStore::default()
    }

    fn sagas(&self) -> MutexGuard<'_, BTreeMap<String, SagaRecord>> {
        self.sagas.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True when no other saga may work on the entity of this one.
fn holds_entity(record: &SagaRecord) -> bool {
    record.state.is_active() || needs_attention(record)
}

fn needs_attention(record: &SagaRecord) -> bool {
    record.state == SagaState::NeedsAttention && record.resolution.is_none()
}

fn is_unclaimed(record: &SagaRecord, age: Duration, now: Millis) -> bool {
    record.state.is_active() && record.lease.until + age <= now
}

fn claim(record: &mut SagaRecord, owner: &str, until: Millis, now: Millis) -> SagaRecord {
    record.lease = SagaLease { owner: owner.to_owned(), fence: record.lease.fence + 1, until };
    record.now = now;
    record.clone()
}

impl SagaStore for MemorySagaStore {
    fn create<'a>(&'a self, row: &'a SagaRow) -> StoreFuture<'a, CreateOutcome> {
        Box::pin(async move {
            let (now, mut sagas) = (self.clock.now(), self.sagas());
            if let Some(record) = sagas.get(&row.id) {
                return Ok(CreateOutcome::Exists(SagaRecord { now, ..record.clone() }));
            }
            let same_entity = |record: &&SagaRecord| record.entity == row.entity && holds_entity(record);
            if row.entity.is_some()
                && let Some(holder) = sagas.values().find(same_entity)
            {
                return Ok(CreateOutcome::EntityBusy { saga: holder.id.clone() });
            }
            let record = SagaRecord {
                id: row.id.clone(),
                definition: row.definition.clone(),
                state: SagaState::Running,
                reason: None,
                entity: row.entity.clone(),
                input: row.input.clone(),
                version: 0,
                lease: SagaLease {
                    owner: row.owner.clone(),
                    fence: row.first_fence(),
                    until: now + row.lease,
                },
                created_at: now,
                updated_at: now,
                deadline_at: now + row.timeout,
                resolution: None,
                now,
                journal: Vec::new(),
            };
            sagas.insert(row.id.clone(), record.clone());
            Ok(CreateOutcome::Created(record))
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<SagaRecord>> {
        Box::pin(async move {
            let now = self.clock.now();
            Ok(self.sagas().get(id).map(|record| SagaRecord { now, ..record.clone() }))
        })
    }

    fn list<'a>(&'a self, filter: &'a SagaFilter) -> StoreFuture<'a, Vec<SagaRecord>> {
        Box::pin(async move {
            let now = self.clock.now();
            let fits = |record: &&SagaRecord| match filter.state {
                Some(SagaState::NeedsAttention) => needs_attention(record),
                Some(state) => record.state == state,
                None => true,
            };
            let sagas = self.sagas();
            let after =
                sagas.values().filter(|record| filter.after.as_ref().is_none_or(|after| record.id > *after));
            let unclaimed =
                |record: &&SagaRecord| filter.unclaimed_for.is_none_or(|age| is_unclaimed(record, age, now));
            let page = after.filter(fits).filter(unclaimed).take(filter.limit as usize);
            Ok(page.map(|record| SagaRecord { now, journal: Vec::new(), ..record.clone() }).collect())
        })
    }

    fn claim<'a>(&'a self, id: &'a str, owner: &'a str, lease: Duration) -> StoreFuture<'a, ClaimOutcome> {
        Box::pin(async move {
            let (now, mut sagas) = (self.clock.now(), self.sagas());
            Ok(match sagas.get_mut(id) {
                None => ClaimOutcome::Missing,
                Some(record) if !holds_entity(record) => {
                    ClaimOutcome::Ended(SagaRecord { now, ..record.clone() })
                }
                Some(record) if record.lease.until > now => ClaimOutcome::Held(record.lease.clone()),
                Some(record) => ClaimOutcome::Claimed(claim(record, owner, now + lease, now)),
            })
        })
    }

    fn claim_due<'a>(&'a self, due: &'a DueSagas) -> StoreFuture<'a, Vec<SagaRecord>> {
        Box::pin(async move {
            let (now, mut sagas) = (self.clock.now(), self.sagas());
            let is_due = |record: &&mut SagaRecord| {
                is_unclaimed(record, Duration::ZERO, now) && due.known.contains(&record.definition)
            };
            let mut found: Vec<&mut SagaRecord> = sagas.values_mut().filter(is_due).collect();
            found.sort_by_key(|record| record.lease.until);
            let taken = found.into_iter().take(due.limit as usize);
            Ok(taken.map(|record| claim(record, &due.owner, now + due.lease, now)).collect())
        })
    }

    fn renew<'a>(&'a self, id: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let (now, mut sagas) = (self.clock.now(), self.sagas());
            let record =
                sagas.get_mut(id).filter(|record| record.lease.fence == fence && holds_entity(record));
            Ok(record.map(|record| record.lease.until = now + lease).is_some())
        })
    }

    fn release<'a>(&'a self, id: &'a str, fence: u64) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let (now, mut sagas) = (self.clock.now(), self.sagas());
            if let Some(record) = sagas.get_mut(id).filter(|record| record.lease.fence == fence) {
                record.lease.until = now;
            }
            Ok(())
        })
    }

    fn write<'a>(&'a self, write: &'a SagaWrite) -> StoreFuture<'a, WriteOutcome> {
        Box::pin(async move {
            let (now, mut sagas) = (self.clock.now(), self.sagas());
            let Some(record) = sagas.get_mut(&write.id) else {
                return Ok(WriteOutcome::Conflict { fence: 0, version: 0 });
            };
            if record.lease.fence != write.fence || record.version != write.version {
                return Ok(WriteOutcome::Conflict { fence: record.lease.fence, version: record.version });
            }
            record.version += 1;
            record.state = write.state;
            record.reason.clone_from(&write.reason);
            record.updated_at = now;
            if let Some(timeout) = write.timeout {
                record.deadline_at = now + timeout;
            }
            record.resolution = write.resolution().map(ToOwned::to_owned);
            if write.ends_lease() {
                record.lease.until = now;
            }
            record.journal.push(super::journal::JournalEntry { at: now, ..write.entry.clone() });
            Ok(WriteOutcome::Written)
        })
    }

    fn count(&self) -> StoreFuture<'_, Vec<(SagaState, u64)>> {
        Box::pin(async move {
            let sagas = self.sagas();
            let number = |state| {
                sagas.values().filter(|record| record.state == state && record.resolution.is_none()).count()
            };
            Ok(SagaState::OPEN.map(|state| (state, number(state) as u64)).to_vec())
        })
    }

    fn unclaimed(&self, age: Duration) -> StoreFuture<'_, Vec<(DefinitionId, u64)>> {
        Box::pin(async move {
            let (now, sagas) = (self.clock.now(), self.sagas());
            let mut counts = BTreeMap::<_, u64>::new();
            for record in sagas.values().filter(|record| is_unclaimed(record, age, now)) {
                *counts.entry(record.definition.clone()).or_default() += 1;
            }
            Ok(counts.into_iter().collect())
        })
    }

    fn clean_up(&self, age: Duration, limit: u32) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let (now, mut sagas) = (self.clock.now(), self.sagas());
            let old = |record: &&SagaRecord| !holds_entity(record) && record.updated_at + age <= now;
            let ids: Vec<String> =
                sagas.values().filter(old).take(limit as usize).map(|record| record.id.clone()).collect();
            ids.iter().for_each(|id| drop(sagas.remove(id)));
            Ok(ids.len() as u64)
        })
    }
}
