//! The relay: claims rows, publishes them, records what came of them.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use seawall::{Clock, Fault, Tick};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use super::batch::StopFlag;
use super::config::{RelayBuilder, Settings};
use super::retry_rules::RetryRules;
use super::store::{Batch, BatchRequest, OutboxStore};
use super::telemetry::Telemetry;
use super::upkeep::Upkeep;
use crate::{Publisher, StoreError, StoreFuture, random};

/// The longest wait before a store that failed is asked again.
const STORE_BACKOFF_MAX: Duration = Duration::from_secs(2);
/// The wait before a listener that failed listens again.
const HINT_BACKOFF: Duration = Duration::from_secs(1);
/// How long an end waits for the claim that is under way.
const LAST_CLAIM: Duration = Duration::from_secs(1);

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

    /// Works until `shutdown` completes; then ends the calls of the publisher that are under way, records what came of them,
    /// and gives the other rows back. That takes no longer than one call of the publisher and ten seconds, also if the store
    /// does not answer.
    ///
    /// Failures of the store are logged and retried. The future may be dropped at any time: what was under way is then
    /// published by another relay, or by the next run, when the lease has ended.
    pub async fn run(&self, shutdown: impl Future<Output = ()> + Send) {
        let shared = &self.0;
        let mut shutdown = pin!(shutdown);
        let mut batches = Batches { set: JoinSet::new(), stop: StopFlag::default() };
        let mut upkeep = Upkeep::new(shared.clock.now());
        let mut hint = shared.store.hint();
        let mut pace = Pace::new(&shared.settings);
        loop {
            upkeep.start_if_due(shared);
            let is_full = batches.set.len() >= shared.settings.batches_max;
            if !is_full {
                let mut claim = pin!(shared.claim_one());
                let found = tokio::select! {
                    biased;
                    () = &mut shutdown => {
                        batches.stop.store(true, Ordering::Relaxed);
                        // A claim that is dropped leaves rows that nobody can have until its lease ends.
                        if let Ok(Ok(Some(found))) = timeout(LAST_CLAIM, claim).await {
                            batches.start(shared, found);
                        }
                        break;
                    }
                    found = &mut claim => found,
                };
                match found {
                    Ok(Some(found)) => {
                        batches.start(shared, found);
                        pace.worked();
                        // Batches that have ended make room before the next claim.
                        while let Some(ended) = batches.set.try_join_next() {
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
                Some(ended) = batches.set.join_next(), if !batches.set.is_empty() => {
                    shared.ended(ended);
                    if !is_full {
                        pace.worked();
                    }
                }
                () = shared.wake.notified(), if !is_full => {}
                heard = &mut hint, if !is_full => hint = shared.hint_after(heard),
                () = upkeep.changed(shared) => {}
                () = sleep(pace.wait()), if !is_full => {}
            }
        }
        batches.end(shared).await;
    }
}

/// The batches under way in one run.
struct Batches {
    set: JoinSet<()>,
    stop: StopFlag,
}

impl Batches {
    fn start(&mut self, shared: &Arc<Shared>, (batch, claimed_at): (Batch, Tick)) {
        self.set.spawn(Arc::clone(shared).work(batch, claimed_at, StopFlag::clone(&self.stop)));
    }

    /// Lets the batches end after the calls of the publisher that are under way.
    async fn end(mut self, shared: &Shared) {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.set.join_next().await {
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
        // A claim that is answered when its lease has ended is worth nothing.
        let batch = match timeout(settings.lease, self.store.claim(&request)).await {
            Ok(answer) => answer?,
            Err(_) => {
                return Err(StoreError::without_cause("claiming rows in time", Fault::timeout()));
            }
        };
        Ok(batch.map(|batch| (batch, claimed_at)))
    }

    /// Listens for the next hint: at once, or after a pause if listening failed.
    fn hint_after(&self, heard: Result<(), StoreError>) -> StoreFuture<'_, ()> {
        let Err(error) = heard else { return self.store.hint() };
        self.telemetry.store_failed("Listen", &error);
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
