//! The monitor: takes over sagas whose process is gone.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use seawall::secs;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::definition::DefinitionId;
use super::error::SagaError;
use super::handle::Sagas;
use super::store::{DueSagas, SagaRecord};
use super::telemetry;
use crate::bounded::bounded;
use crate::work::{CatchPanic, random};

/// How often ended sagas are deleted, and how many at once, so that no statement takes long.
const CLEAN_UP_PERIOD: Duration = secs(60);
const CLEAN_UP_LIMIT: u32 = 500;

impl Sagas {
    /// Takes over sagas whose lease is over, and drives them, until `stopping` completes. Then it lets the current steps end,
    /// gives the sagas back, and returns. A store that hangs does not keep it from that.
    ///
    /// Run it in every process: for each saga only one of them acts.
    pub async fn run(&self, stopping: impl Future<Output = ()> + Send) {
        let stop = watch::Sender::new(false);
        let stopped = async {
            tokio::select! {
                biased;
                () = stopping => {}
                () = self.keep_house() => {}
            }
            stop.send_replace(true);
        };
        tokio::join!(stopped, self.take_over_until(&stop));
    }

    /// Claims and drives sagas until the process stops. A claim in progress is waited for, so that what it takes can be given
    /// back.
    async fn take_over_until(&self, stop: &watch::Sender<bool>) {
        let mut driven: JoinSet<()> = JoinSet::new();
        let mut stopped = stop.subscribe();
        while !*stop.borrow() {
            let free = self.shared.concurrency - driven.len();
            // There may be more than there is room for: the next free place is filled at once.
            let full = free == 0 || self.take_over(free, stop, &mut driven).await == free;
            let mut pause = pin!(sleep(self.period()));
            loop {
                tokio::select! {
                    _ = stopped.wait_for(|stop| *stop) => break,
                    () = &mut pause => break,
                    Some(_) = driven.join_next() => if full { break },
                }
            }
        }
        while driven.join_next().await.is_some() {}
    }

    /// Shows what there is and deletes what is old, for ever. It is no part of the loop that claims: neither waits for the other.
    async fn keep_house(&self) {
        let mut shown = BTreeMap::new();
        let mut cleaned = None;
        loop {
            self.observe(&mut shown).await;
            let now = self.shared.clock.now();
            if cleaned.is_none_or(|at| now.since(at) >= CLEAN_UP_PERIOD) {
                cleaned = Some(now);
                self.clean_up().await;
            }
            sleep(self.period()).await;
        }
    }

    /// Deletes old sagas, batch after batch while there are full ones: the table must not grow faster than it is cleaned.
    async fn clean_up(&self) {
        loop {
            let call = self.shared.store.clean_up(self.shared.retention, CLEAN_UP_LIMIT);
            match bounded("deleting old sagas", call).await {
                Ok(deleted) if deleted >= u64::from(CLEAN_UP_LIMIT) => tokio::task::yield_now().await,
                Ok(_) => return,
                Err(error) => return telemetry::store_failed("CleanUp", error),
            }
        }
    }

    /// Half a period to a whole one, so that processes that started together do not ask together.
    fn period(&self) -> Duration {
        self.shared.period / 2 + self.shared.period.mul_f64((random() >> 33) as f64 / f64::from(u32::MAX))
    }

    /// Takes over the sagas that are due now, drives them to their ends, and returns how many there were. For programs that
    /// call it from a schedule of their own instead of [`run`](Sagas::run).
    ///
    /// # Errors
    /// Fails if the store does.
    pub async fn run_due(&self) -> Result<usize, SagaError> {
        let stop = watch::Sender::new(false);
        let mut driven = JoinSet::new();
        let count = self
            .claim_due(self.shared.concurrency)
            .await
            .map(|records| self.spawn(records, &stop, &mut driven))?;
        while driven.join_next().await.is_some() {}
        Ok(count)
    }

    async fn take_over(&self, limit: usize, stop: &watch::Sender<bool>, driven: &mut JoinSet<()>) -> usize {
        match self.claim_due(limit).await {
            Ok(records) => self.spawn(records, stop, driven),
            Err(error) => {
                telemetry::failed("Monitor", "", &error);
                0
            }
        }
    }

    async fn claim_due(&self, limit: usize) -> Result<Vec<(SagaRecord, seawall::Tick)>, SagaError> {
        let due = DueSagas {
            owner: self.shared.owner.clone(),
            lease: self.shared.lease,
            known: self.shared.sagas.keys().cloned().collect(),
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
        };
        let claimed = self.shared.clock.precise();
        let records = bounded("claiming due sagas", self.shared.store.claim_due(&due)).await?;
        Ok(records.into_iter().map(|record| (record, claimed)).collect())
    }

    fn spawn(
        &self,
        records: Vec<(SagaRecord, seawall::Tick)>,
        stop: &watch::Sender<bool>,
        driven: &mut JoinSet<()>,
    ) -> usize {
        let count = records.len();
        for (record, claimed) in records {
            telemetry::claimed(&record);
            let (sagas, stop) = (self.clone(), stop.subscribe());
            driven.spawn(async move {
                let id = record.id.clone();
                // Not only steps panic: a store may too. The lease ends, and a monitor goes on.
                match CatchPanic::new(sagas.drive(record, claimed, stop)).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => telemetry::failed("Drive", &id, &error),
                    Err(panic) => telemetry::panicked(&id, &panic),
                }
            });
        }
        count
    }

    /// Records the number of sagas by state, and of those that nobody drives; `shown` keeps what was recorded of these.
    async fn observe(&self, shown: &mut BTreeMap<DefinitionId, u64>) {
        if telemetry::COUNTS_STATES {
            match bounded("counting sagas", self.shared.store.count()).await {
                Ok(counts) => telemetry::states(&counts),
                Err(error) => telemetry::store_failed("Count", error),
            }
        }
        if telemetry::SHOWS_UNCLAIMED {
            let call = self.shared.store.unclaimed(self.shared.unclaimed_after);
            match bounded("counting unclaimed sagas", call).await {
                Ok(counts) => telemetry::unclaimed(&counts, shown),
                Err(error) => telemetry::store_failed("Unclaimed", error),
            }
        }
    }
}
