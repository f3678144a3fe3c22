//! Gauges: the current backlog of each service, for metrics and the status page.

use std::collections::HashMap;
use std::time::Duration;

use metrics::gauge;
use seawall::Tick;
use tokio::sync::MutexGuard;

use crate::domain::delivery::DeliveryState;
use crate::domain::delivery::waiting::Wait;
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::metric_names;
use crate::port::store::{BacklogCounts, DueTimes, Store, StoreError, StoredDelivery};
use crate::port::transport::Transport;
use crate::service::dispatch::LaneLoad;
use crate::service::handles::{AlertHandle, OpsHandle};

/// The shortest time between two counts of the store, however often somebody asks.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The shortest time between two counts, as a multiple of the duration of the last one: many services with much to count cost no
/// more than a twentieth of a reader.
const LOOK_PAUSE: u32 = 20;
/// The number up to which the deliveries of a service are counted, so that a backlog of a million costs no more.
const COUNT_MAX: u32 = 100_000;

/// The backlog in the store, as of the last count.
#[derive(Debug, Default)]
pub(in crate::service) struct BacklogCache {
    /// When the next count is allowed.
    next_look: Option<Tick>,
    /// The counts of each service; `None` if the store did not answer.
    known: Option<HashMap<Slug, Depth>>,
}

/// The counts of one service in the store.
#[derive(Clone, Copy, Debug, Default)]
struct Depth {
    waiting: u32,
    dead_letters: u64,
    /// When the next delivery is due.
    next_due: Option<Millis>,
}

/// Returns for how long the oldest delivery of a service has been due, in memory or in the store. What an earlier process had
/// claimed counts from the start of this one.
fn age(
    service: &Slug,
    due: &[DueTimes],
    in_hand: Option<Millis>,
    (began, now): (Millis, Millis),
) -> Duration {
    let due = due.iter().find(|due| due.service == *service);
    let due = due.and_then(|due| due.fresh.into_iter().chain(due.retries).min());
    let due = due.map(|due| if due.0 > 0 { due } else { began });
    let oldest = in_hand.into_iter().chain(due).min();
    oldest.map_or(Duration::ZERO, |oldest| now.since(oldest))
}

/// The deliveries of a service in the store and in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceBacklog {
    pub service: Slug,
    /// The deliveries that have not ended and are not being sent, in memory and in the store. Those in the store are counted up
    /// to 100 000.
    pub waiting: u64,
    /// The deliveries that are being sent, or whose outcome is being stored.
    pub in_flight: usize,
    /// What the waiting deliveries wait for; `None` if there are none.
    pub wait: Option<Wait>,
    /// The counts of the store; `None` if it did not answer.
    pub kept: Option<StoredBacklog>,
}

/// The deliveries of a service in the store, as of the last count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoredBacklog {
    /// The number of open dead letters.
    pub dead_letters: u64,
    /// Since when the oldest delivery has been due; `None` if none is.
    pub due_since: Option<Millis>,
}

impl<S: Store + Clone, T: Transport> OpsHandle<S, T> {
    /// Records the gauges: the store's own, waiting and active deliveries, dead letters, circuits, bulkheads. If the store does not answer, its
    /// part is left out: the rest is needed all the more.
    pub async fn record_gauges(&self) {
        self.core.store.record_gauges();
        self.core.registry.record_gauges();
        AlertHandle::over(&self.core).record_alerts().await;
        let now = self.core.now();
        for ServiceBacklog { service, waiting, in_flight, kept, .. } in self.backlogs().await {
            let name = || service.as_str().to_owned();
            gauge!(metric_names::IN_FLIGHT, "service" => name()).set(in_flight as f64);
            let Some(StoredBacklog { dead_letters, due_since }) = kept else { continue };
            gauge!(metric_names::WAITING, "service" => name()).set(waiting as f64);
            gauge!(metric_names::DEAD_LETTERS_OPEN, "service" => name()).set(dead_letters as f64);
            gauge!(metric_names::OLDEST_DUE, "service" => name())
                .set(due_since.map_or(0.0, |since| now.since(since).as_secs_f64()));
        }
    }

    /// Returns the backlog of each service. The store is counted a few times a second at most.
    pub async fn backlogs(&self) -> Vec<ServiceBacklog> {
        let depths = self.depths().await;
        let loads = self.core.deliver.loads().into_iter();
        loads.map(|(service, load)| self.standing_by(service, load, depths.known.as_ref())).collect()
    }

    /// Returns the backlog of one service.
    pub async fn backlog(&self, service: &Slug) -> ServiceBacklog {
        let depths = self.depths().await;
        self.standing_by(service.clone(), self.core.deliver.load(service), depths.known.as_ref())
    }

    /// Returns the number of deliveries of a service in memory.
    #[must_use]
    pub fn claimed(&self, service: &Slug) -> usize {
        self.core.deliver.claimed(service)
    }

    /// Returns what a delivery waits for; `None` if it does not wait.
    pub fn wait_of(&self, delivery: &StoredDelivery) -> Option<Wait> {
        if delivery.state == DeliveryState::Leased
            && self.core.deliver.is_in_flight(&delivery.service, delivery.id)
        {
            return None;
        }
        Wait::of_delivery(
            delivery.state,
            delivery.due,
            &self.core.deliver.gate(&delivery.service),
            self.core.now(),
        )
    }

    fn standing_by(
        &self,
        service: Slug,
        load: LaneLoad,
        known: Option<&HashMap<Slug, Depth>>,
    ) -> ServiceBacklog {
        let (now, LaneLoad { queued, in_flight, oldest }) = (self.core.now(), load);
        let depth = known.map(|known| known.get(&service).copied().unwrap_or_default());
        let (stored, next_due) = depth.map_or((0, None), |depth| (depth.waiting, depth.next_due));
        let waiting = u64::from(stored) + queued as u64;
        let wait = (waiting > 0).then(|| {
            let disabled = || self.core.rules().iter().any(|rule| !rule.enabled && rule.service == service);
            let rule_disabled = queued == 0 && next_due.is_none() && disabled();
            self.core.deliver.gate(&service).of_service(queued, next_due, rule_disabled, now)
        });
        let kept = depth.map(|depth| StoredBacklog {
            dead_letters: depth.dead_letters,
            due_since: oldest.into_iter().chain(depth.next_due).min().filter(|oldest| *oldest < now),
        });
        ServiceBacklog { service, waiting, in_flight, wait, kept }
    }

    async fn depths(&self) -> MutexGuard<'_, BacklogCache> {
        let mut depths = self.core.backlog.lock().await;
        let began = self.core.clock.precise();
        if depths.next_look.is_none_or(|next| began >= next) {
            depths.known = self.look().await.ok();
            let ended = self.core.clock.precise();
            depths.next_look = Some(ended + LOOK_EVERY.max(ended.since(began) * LOOK_PAUSE));
        }
        depths
    }

    /// Returns for how long the oldest delivery of each service has been due, from the due times of the store.
    pub(in crate::service) fn oldest_due(&self, due: &[DueTimes]) -> HashMap<Slug, Duration> {
        let now = self.core.now();
        let age = |(service, load): (Slug, LaneLoad)| {
            let age = age(&service, due, load.oldest, (self.core.began, now));
            (service, age)
        };
        self.core.deliver.loads().into_iter().map(age).collect()
    }

    async fn look(&self) -> Result<HashMap<Slug, Depth>, StoreError> {
        let names = self.core.services().into_iter().map(|service| service.name).collect();
        let BacklogCounts { waiting, dead_letters } =
            self.core.store.backlog_counts(names, COUNT_MAX).await?;
        let mut known: HashMap<Slug, Depth> = HashMap::new();
        for (service, count) in waiting {
            known.entry(service).or_default().waiting = count;
        }
        for (service, count) in dead_letters {
            known.entry(service).or_default().dead_letters = count;
        }
        for DueTimes { service, fresh, retries } in self.core.store.next_due().await? {
            let due = fresh.into_iter().chain(retries).min();
            // What an earlier process had claimed is due since this one began.
            let due = due.map(|due| if due.0 > 0 { due } else { self.core.began });
            known.entry(service).or_default().next_due = due;
        }
        Ok(known)
    }
}
