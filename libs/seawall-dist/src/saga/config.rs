//! Chooses what a process knows of sagas, and its times.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use seawall::{Clock, secs};
use tokio::sync::watch;

use super::definition::{DefinitionError, Saga};
use super::handle::{Sagas, Shared};
use super::store::SagaStore;
use crate::work::random;

/// How long a lease lasts without being renewed: a dead process's sagas are taken over after it.
pub const LEASE: Duration = secs(15);

/// How often the monitor looks for sagas whose lease is over.
pub const MONITOR_PERIOD: Duration = secs(5);

/// How many sagas one monitor drives at a time. A saga that waits between attempts keeps its place, so there are more places than
/// a machine needs for work.
pub const MONITOR_CONCURRENCY: usize = 64;

/// How long a saga waits for a process before it is shown as unclaimed: longer than a deployment takes.
pub const UNCLAIMED_AFTER: Duration = secs(300);

/// How long ended sagas are kept: long enough to answer what happened last month.
pub const RETENTION: Duration = secs(30 * 24 * 3_600);

/// Chooses the definitions and the times of [`Sagas`].
#[must_use = "a handle is made by `build`"]
pub struct SagasBuilder {
    store: Arc<dyn SagaStore>,
    sagas: Vec<Saga>,
    owner: Option<String>,
    lease: Duration,
    period: Duration,
    concurrency: usize,
    unclaimed_after: Duration,
    retention: Duration,
}

impl std::fmt::Debug for SagasBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SagasBuilder")
            .field("sagas", &self.sagas)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

impl SagasBuilder {
    pub(super) fn new(store: Arc<dyn SagaStore>) -> Self {
        SagasBuilder {
            store,
            sagas: Vec::new(),
            owner: None,
            lease: LEASE,
            period: MONITOR_PERIOD,
            concurrency: MONITOR_CONCURRENCY,
            unclaimed_after: UNCLAIMED_AFTER,
            retention: RETENTION,
        }
    }

    /// Registers a definition. New instances take the highest version of a name; older versions drive what was started with
    /// them.
    pub fn register(mut self, saga: Saga) -> Self {
        self.sagas.push(saga);
        self
    }

    /// Sets the name of this process in leases and logs; its id and a random number unless told.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets how long a lease lasts without being renewed; [`LEASE`] unless told.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how often the monitor looks for sagas whose lease is over; [`MONITOR_PERIOD`] unless told.
    pub fn monitor_period(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// Sets how many sagas the monitor drives at a time; [`MONITOR_CONCURRENCY`] unless told.
    pub fn monitor_concurrency(mut self, sagas: usize) -> Self {
        self.concurrency = sagas;
        self
    }

    /// Sets how long a saga may wait for a process before it is shown as [unclaimed](Sagas::unclaimed); [`UNCLAIMED_AFTER`]
    /// unless told.
    pub fn unclaimed_after(mut self, wait: Duration) -> Self {
        self.unclaimed_after = wait;
        self
    }

    /// Sets how long the monitor keeps ended sagas; [`RETENTION`] unless told.
    pub fn retention(mut self, age: Duration) -> Self {
        self.retention = age;
        self
    }

    /// Makes the handle.
    ///
    /// # Errors
    /// Fails with every mistake: a definition twice, a lease below 10 ms, no period, no concurrency.
    pub fn build(self) -> Result<Sagas, DefinitionError> {
        let mut problems = Vec::new();
        let mut sagas = BTreeMap::new();
        for saga in self.sagas {
            let id = saga.id().clone();
            if sagas.insert(id.clone(), saga).is_some() {
                problems.push(format!("`{id}` is registered twice"));
            }
        }
        for (wrong, problem) in [
            (self.lease < Duration::from_millis(10), "the lease is below 10 ms: no store could renew it"),
            (self.period.is_zero(), "the period of the monitor is zero"),
            (self.concurrency == 0, "the monitor may drive no saga at all: its concurrency is zero"),
        ] {
            if wrong {
                problems.push(problem.to_owned());
            }
        }
        if !problems.is_empty() {
            return Err(DefinitionError { definition: "*".to_owned(), problems });
        }
        let owner = self.owner.unwrap_or_else(|| format!("{}-{:08x}", std::process::id(), random() as u32));
        Ok(Sagas {
            shared: Arc::new(Shared {
                store: self.store,
                sagas,
                owner,
                lease: self.lease,
                period: self.period,
                concurrency: self.concurrency,
                unclaimed_after: self.unclaimed_after,
                retention: self.retention,
                clock: Clock::default(),
                never: watch::Sender::new(false),
            }),
        })
    }
}
