//! The store in memory, for tests: the rules of the domain on plain maps, without a disk, a thread or a wait.
//!
//! A unit works on a copy of the tables, which takes their place if every change of it succeeds: that is what "as a whole or not
//! at all" means here. Opening a place once more is a restart: the epoch goes up over the same tables, and what was claimed is
//! due again.

mod apply;
mod deliveries;
mod letter_reads;
mod letters;
mod operations;
mod prune;
mod reads;
mod table;
mod tables;
mod words;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::delivery::StoredState;
use seawall_hub_core::domain::delivery::suspects::HandlingStep;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    CommitResult, CrashHistory, DueTimes, IdempotencyRecord, LaneCapacity, StepMarks, StoreError,
    StoreHealth, StoredDelivery, UnitOfWork, UnitStore, WritePriority,
};
use seawall_hub_core::sync::Lock;

use self::apply::MemoryApplier;
use self::tables::Tables;

/// The place of a memory store: what is left when its process ends.
#[derive(Clone, Debug)]
pub struct MemoryPlace {
    inner: Arc<PlaceInner>,
}

#[derive(Debug)]
struct PlaceInner {
    tables: Lock<Arc<Tables>>,
    marks: Arc<Marks>,
}

/// The store in memory. A handle: clones share everything.
#[derive(Clone)]
pub struct MemoryStore {
    place: MemoryPlace,
    epoch: u64,
}

/// The marks of steps, by the number of the delivery: the epoch, and the step unless it has ended.
#[derive(Debug, Default)]
struct Marks(Lock<HashMap<u64, (u64, Option<HandlingStep>)>>);

/// The marks as the process of one epoch writes them.
#[derive(Debug)]
struct EpochMarks {
    marks: Arc<Marks>,
    epoch: u64,
}

impl MemoryPlace {
    /// Creates an empty place. The id of the database is the first half of every id in it.
    #[must_use]
    pub fn new(database: u64) -> Self {
        let tables = Lock::new(Arc::new(Tables { database, ..Tables::default() }));
        MemoryPlace { inner: Arc::new(PlaceInner { tables, marks: Arc::default() }) }
    }

    /// Begins a new epoch over what is there, as a process does that starts.
    #[must_use]
    pub fn open(&self) -> MemoryStore {
        let mut tables = self.inner.tables.lock();
        let tables = Arc::make_mut(&mut tables);
        let marks = std::mem::take(&mut *self.inner.marks.0.lock());
        let ended = tables.epoch;
        let mark = |number| marks.get(&number).filter(|(epoch, _)| *epoch == ended).map(|(_, step)| *step);
        deliveries::restart(tables, mark);
        tables.epoch += 1;
        MemoryStore { place: self.clone(), epoch: tables.epoch }
    }
}

impl MemoryStore {
    /// Returns the tables as they are now.
    fn tables(&self) -> Arc<Tables> {
        self.place.inner.tables.lock().clone()
    }

    /// Applies changes to a copy of the tables, which takes their place if they succeed.
    fn apply<T>(
        &self,
        apply: impl FnOnce(MemoryApplier<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut tables = self.place.inner.tables.lock();
        let mut copy = Tables::clone(&tables);
        let made = apply(MemoryApplier::new(&mut copy, self.epoch))?;
        *tables = Arc::new(copy);
        Ok(made)
    }
}

impl UnitStore for MemoryStore {
    async fn commit(&self, _: WritePriority, unit: UnitOfWork) -> Result<CommitResult, StoreError> {
        self.apply(|applier| applier.unit(&unit))
    }

    async fn commit_all(
        &self,
        _: WritePriority,
        units: Vec<UnitOfWork>,
    ) -> Vec<Result<CommitResult, StoreError>> {
        units.iter().map(|unit| self.apply(|applier| applier.unit(unit))).collect()
    }

    async fn claimed(&self, scope: &'static str, key: &str) -> Result<Option<IdempotencyRecord>, StoreError> {
        let tables = self.tables();
        let key = (scope, key.to_owned());
        Ok(tables.once.get(&key).map(|row| {
            let (fingerprint, note, at) = (row.fingerprint, row.note.clone(), row.at);
            IdempotencyRecord { scope, key: key.1.clone(), fingerprint, note, at }
        }))
    }

    async fn take_due(
        &self,
        now: Millis,
        room: Vec<LaneCapacity>,
    ) -> Result<Vec<StoredDelivery>, StoreError> {
        self.apply(|mut applier| Ok(applier.take_due(now, &room)))
    }

    fn step_marks(&self) -> Arc<dyn StepMarks> {
        Arc::new(EpochMarks { marks: self.place.inner.marks.clone(), epoch: self.epoch })
    }

    async fn quarantine_candidates(&self) -> Result<Vec<(StoredDelivery, CrashHistory)>, StoreError> {
        let tables = self.tables();
        let guilty = tables.deliveries.iter().filter(|(_, row)| row.facts.is_guilty(self.epoch));
        let read = guilty.filter_map(|(number, row)| {
            let history = CrashHistory {
                crashes: row.facts.suspicion.crashes,
                starts: row.facts.starts.clone().unwrap_or_default(),
                step: row.facts.suspicion.step?,
            };
            Some((tables.stored(*number, true)?, history))
        });
        Ok(read.collect())
    }

    async fn next_due(&self) -> Result<Vec<DueTimes>, StoreError> {
        let tables = self.tables();
        let mut found = BTreeMap::new();
        for row in tables.deliveries.values() {
            let is_fresh = match row.facts.state {
                StoredState::Queued => true,
                StoredState::Waiting | StoredState::Stalled => false,
                _ => continue,
            };
            let service = row.service.clone();
            let times = DueTimes { service, fresh: None, retries: None };
            let times = found.entry(row.service.clone()).or_insert(times);
            let earliest = if is_fresh { &mut times.fresh } else { &mut times.retries };
            *earliest = Some(earliest.map_or(row.facts.due, |before: Millis| before.min(row.facts.due)));
        }
        Ok(found.into_values().collect())
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::default()
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }

    async fn broken(&self) -> StoreError {
        std::future::pending().await
    }

    fn record_gauges(&self) {}
}

impl StepMarks for EpochMarks {
    fn began(&self, delivery: DeliveryId, step: HandlingStep) {
        self.marks.0.lock().insert(delivery.number, (self.epoch, Some(step)));
    }

    fn ended(&self, delivery: DeliveryId) {
        if let Some((_, step)) = self.marks.0.lock().get_mut(&delivery.number) {
            *step = None;
        }
    }

    fn forget(&self, delivery: DeliveryId) {
        self.marks.0.lock().remove(&delivery.number);
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}
