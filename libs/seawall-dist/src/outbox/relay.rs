//! The relay: claims rows, publishes them, records what came of them.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use seawall::{Clock, Tick};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use super::config::{RelayBuilder, Settings};
use super::retry_rules::RetryRules;
use super::store::{Batch, BatchRequest, OutboxStore, Retention};
use super::telemetry::Telemetry;
use crate::{Publisher, StoreError, random};

/// The longest wait before a store that failed is asked again.
const STORE_BACKOFF_MAX: Duration = Duration::from_secs(2);
/// The wait before a listener that failed listens again.
const HINT_BACKOFF: Duration = Duration::from_secs(1);
/// How long an end waits for the claim that is under way.
const LAST_CLAIM: Duration = Duration::from_secs(1);
/// The number of published rows that are deleted at once.
const CLEAN_UP_ROWS: u32 = 1_000;

/// Publishes the rows of an outbox. Any number of relays may run, in one process or in several.
///
/// A relay is a handle: clones are the same relay.
#[derive(Clone)]
pub struct Relay(pub(super) Arc<Shared>);

pub(super) struct Shared {
    /// Who this is, for people who look into the table.
    pub(super) owner: String,
    pub(super) store: Arc<dyn OutboxStore>,
    pub(super) publisher: Arc<dyn Publisher>,
    pub(super) settings: Settings,
    pub(super) rules: RetryRules,
    pub(super) clock: Clock,
    pub(super) wake: Notify,
    pub(super) telemetry: Telemetry,
}

impl Relay {
    /// Chooses how a relay of this name works. The name is the label of its metrics.
    pub fn builder(name: &str, store: Arc<dyn OutboxStore>, publisher: Arc<dyn Publisher>) -> RelayBuilder {
        RelayBuilder::new(name, store, publisher)
    }

    /// Makes the relay poll at once. Call it after the commit of a transaction in the same process; it costs nothing, and
    /// many calls are one poll.
    pub fn wake(&self) {
        self.0.wake.notify_one();
    }

    /// Works until `shutdown` completes; then finishes the batches under way, and starts no more.
    ///
    /// Failures of the store are logged and retried. The future may be dropped at any time: what was under way is then
    /// published by another relay, or by the next run, when the lease has ended.
    pub async fn run(&self, shutdown: impl Future<Output = ()> + Send) {
        let shared = &self.0;
        let mut shutdown = pin!(shutdown);
        let mut batches: JoinSet<()> = JoinSet::new();
        let mut hint = shared.store.hint();
        let mut pace = Pace::new(&shared.settings);
        let mut upkeep_at = shared.clock.now();
        loop {
            if shared.clock.now() >= upkeep_at {
                upkeep_at = shared.clock.now() + shared.settings.upkeep_interval;
                batches.spawn(Arc::clone(shared).upkeep());
            }
            let is_full = batches.len() >= shared.settings.batches_max;
            if !is_full {
                let mut claim = pin!(shared.claim_one());
                let found = tokio::select! {
                    biased;
                    () = &mut shutdown => {
                        // A claim that is dropped leaves rows that nobody can have until its lease ends.
                        if let Ok(Ok(Some((batch, claimed_at)))) = timeout(LAST_CLAIM, claim).await {
                            batches.spawn(Arc::clone(shared).work(batch, claimed_at));
                        }
                        break;
                    }
                    found = &mut claim => found,
                };
                match found {
                    Ok(Some((batch, claimed_at))) => {
                        batches.spawn(Arc::clone(shared).work(batch, claimed_at));
                        pace.worked();
                        // Batches that have ended make room before the next claim.
                        while let Some(ended) = batches.try_join_next() {
                            shared.ended(ended);
                        }
                        continue;
                    }
                    Ok(None) => pace.idle(),
                    Err(error) => {
                        shared.telemetry.store_failed("Claim", &error);
                        pace.failed();
                    }
                }
            }
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(ended) = batches.join_next(), if !batches.is_empty() => {
                    shared.ended(ended);
                    if !is_full {
                        pace.worked();
                    }
                }
                () = shared.wake.notified(), if !is_full => {}
                heard = &mut hint, if !is_full => {
                    hint = match heard {
                        Ok(()) => shared.store.hint(),
                        Err(error) => {
                            shared.telemetry.store_failed("Listen", &error);
                            shared.hint_later()
                        }
                    };
                }
                () = sleep(pace.wait()), if !is_full => {}
            }
        }
        while let Some(ended) = batches.join_next().await {
            shared.ended(ended);
        }
    }
}

impl Shared {
    /// A batch, and when its lease began at the latest.
    async fn claim_one(&self) -> Result<Option<(Batch, Tick)>, StoreError> {
        let settings = &self.settings;
        let request =
            BatchRequest::new(&self.owner, settings.batch_rows, settings.batch_lanes, settings.lease);
        let claimed_at = self.clock.precise();
        Ok(self.store.claim(&request).await?.map(|batch| (batch, claimed_at)))
    }

    fn hint_later(&self) -> crate::StoreFuture<'_, ()> {
        Box::pin(async {
            sleep(HINT_BACKOFF).await;
            self.store.hint().await
        })
    }

    fn ended(&self, ended: Result<(), JoinError>) {
        if let Err(error) = ended
            && error.is_panic()
        {
            self.telemetry.panicked(&error);
        }
    }

    /// Measures depth and lag, and deletes what was published long enough ago.
    async fn upkeep(self: Arc<Self>) {
        match self.store.stats().await {
            Ok(stats) => self.telemetry.measured(&stats),
            Err(error) => self.telemetry.store_failed("Stats", &error),
        }
        let Retention::Keep(age) = self.settings.retention else { return };
        loop {
            match self.store.clean_up(age, CLEAN_UP_ROWS).await {
                // The rest is left for the next time, so that an orderly end does not wait for it.
                Ok(count) if count < u64::from(CLEAN_UP_ROWS) => return,
                Ok(_) => tokio::task::yield_now().await,
                Err(error) => return self.telemetry.store_failed("CleanUp", &error),
            }
        }
    }
}

/// How long to wait for the next poll.
struct Pace {
    next: Duration,
    min: Duration,
    max: Duration,
}

impl Pace {
    fn new(settings: &Settings) -> Self {
        Pace { next: settings.poll_min, min: settings.poll_min, max: settings.poll_max }
    }

    fn worked(&mut self) {
        self.next = self.min;
    }

    fn idle(&mut self) {
        self.next = (self.next * 2).min(self.max);
    }

    fn failed(&mut self) {
        self.next = (self.next * 2).min(STORE_BACKOFF_MAX.max(self.max));
    }

    fn wait(&self) -> Duration {
        // Relays that started together do not poll together.
        self.next.mul_f64(0.75 + 0.25 * random::fraction())
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("owner", &self.0.owner)
            .field("settings", &self.0.settings)
            .finish_non_exhaustive()
    }
}
