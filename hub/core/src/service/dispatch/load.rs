//! Deliveries in memory, and how they come from the store into the lanes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tracing::error;
use tracing::field::display;

use super::suspects::WatchedDelivery;
use super::telemetry;
use super::{DeliveryDispatcher, DispatcherInner};
use crate::domain::delivery::suspects::HandlingStep;
use crate::domain::delivery::{DeliveryId, Outcome, Progress};
use crate::domain::event::Event;
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::domain::trace::TraceId;
use crate::port::store::{
    Change, Claim, DeliverySelector, DueTimes, LaneCapacity, StoreError, StoredDelivery, UnitOfWork,
    UnitStore, WritePriority,
};
use crate::port::transport::{DeliveryHeaders, Transport};
use crate::render::RenderedRequest;
use crate::service::bridge::rule_set::RenderedDelivery;
use crate::service::panics::caught;
use crate::service::registry::services::AT_ONCE;

/// How often the store is asked for due deliveries, unless a lane asks before.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The maximum number of deliveries that are claimed at once, apart from a few for each service.
const TAKEN_MAX: usize = 2_000;
const SHARE_MIN: usize = 4;

/// A claimed delivery in memory.
#[derive(Clone, Debug)]
pub struct PendingDelivery {
    pub id: DeliveryId,
    /// The epoch under which it was claimed.
    pub epoch: u64,
    /// The rule that made it.
    pub rule: Slug,
    /// The version of the rule.
    pub rule_version: u64,
    /// The service that receives the request.
    pub service: Slug,
    /// The request to send.
    pub request: RenderedRequest,
    /// The id of the event.
    pub event: String,
    /// When the event was accepted.
    pub event_accepted: Millis,
    /// The trace of the event; `None` if it named none.
    pub trace: Option<TraceId>,
    /// The failures so far.
    pub progress: Progress,
    /// The number of clock jumps when `progress` was stored.
    pub(super) clock_jumps: usize,
    /// Whether others wait behind it in its order.
    pub ordered: bool,
    /// The dead letter that it replays; `None` if it is no replay.
    pub replay_of: Option<DeliveryId>,
    /// Whether it queues behind fresh deliveries.
    pub(super) is_retry: bool,
    /// The probation, if it was claimed at a crash.
    pub(super) watched: Option<Arc<WatchedDelivery>>,
}

impl PendingDelivery {
    /// Returns the delivery that a rule has just rendered and a unit has inserted; `None` if it has no request.
    pub(in crate::service) fn new(claim: Claim, rendered: RenderedDelivery, event: &Event) -> Option<Self> {
        let RenderedDelivery { rule: (rule, rule_version), service, request, order, .. } = rendered;
        Some(PendingDelivery {
            id: claim.delivery,
            epoch: claim.epoch,
            rule,
            rule_version,
            service,
            request: request.ok()?,
            event: event.id.clone(),
            event_accepted: event.accepted,
            trace: event.trace.as_deref().and_then(TraceId::of),
            progress: Progress { accepted: event.accepted, counted: 0, failures: 0, panics: 0 },
            clock_jumps: 0,
            ordered: order.is_some(),
            replay_of: None,
            is_retry: false,
            watched: None,
        })
    }

    /// Returns a delivery from the store with its decoded request.
    fn from_stored(stored: StoredDelivery, request: RenderedRequest) -> Self {
        PendingDelivery {
            is_retry: stored.is_retry(),
            id: stored.id,
            epoch: stored.epoch,
            rule: stored.rule.0,
            rule_version: stored.rule.1,
            service: stored.service,
            request,
            event: stored.event,
            event_accepted: stored.event_accepted,
            trace: stored.trace,
            progress: stored.progress,
            clock_jumps: 0,
            ordered: stored.order.is_some(),
            replay_of: stored.replay_of,
            watched: None,
        }
    }

    pub(super) fn claim(&self) -> Claim {
        Claim { delivery: self.id, epoch: self.epoch }
    }

    /// Returns what the headers of its request say about it.
    pub(super) fn headers(&self) -> DeliveryHeaders<'_> {
        DeliveryHeaders {
            delivery: self.id,
            event: &self.event,
            event_accepted: self.event_accepted,
            number: self.progress.failures + 1,
            replay_of: self.replay_of,
            trace: self.trace,
        }
    }
}

impl<S: UnitStore, T: Transport> DeliveryDispatcher<S, T> {
    /// Adds deliveries that this process has just accepted. Those without room go back to the store and are claimed again later.
    pub fn begin(&self, started: Vec<PendingDelivery>) {
        for delivery in started {
            self.shared.enqueue(delivery);
        }
    }
}

impl<S: UnitStore, T: Transport> DispatcherInner<S, T> {
    /// Adds a claimed delivery to its lane, or to the returned queue: a claimed delivery must never be lost.
    fn enqueue(&self, mut delivery: PendingDelivery) {
        delivery.clock_jumps = self.time.jumps();
        let left = match self.lane(&delivery.service) {
            Some(lane) => lane.offer(delivery),
            // Nobody to send it to yet.
            None => Some(delivery),
        };
        let left = left.map(|delivery| delivery.claim());
        self.returned.lock().extend(left);
    }

    /// Refills lanes from the store.
    pub(super) async fn refill_lanes(self: Arc<Self>) -> StoreError {
        loop {
            if let Err(error @ StoreError::Broken(_)) = self.load().await {
                return error;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.refill.notified() => {}
            }
        }
    }

    async fn load(&self) -> Result<(), StoreError> {
        self.return_to_store().await?;
        self.follow_clock().await?;
        let now = self.now();
        let due = self.store.next_due().await?;
        let mut due: HashMap<Slug, DueTimes> =
            due.into_iter().map(|due| (due.service.clone(), due)).collect();
        let mut room = Vec::new();
        for lane in self.all_lanes() {
            let mut asked = lane.capacity();
            let (fresh, retries) =
                due.remove(&asked.service).map_or((None, None), |due| (due.fresh, due.retries));
            let is_due = |at: Option<_>| at.is_some_and(|at| at <= now);
            lane.refilled(Some(fresh.is_some()), asked.resume_before.filter(|_| retries.is_none()));
            if !is_due(fresh) {
                asked.fresh = 0;
            }
            if !is_due(retries) && (retries.is_none() || asked.resume_before.is_none()) {
                asked.retries = 0;
            }
            if asked.fresh + asked.retries > 0 {
                room.push(asked);
            }
        }
        for service in due.into_keys() {
            self.dead_letter_all(service, now).await?;
        }
        if room.is_empty() {
            return Ok(());
        }
        // One claim is one unit, and nothing else is written meanwhile: each lane gets its share, and asks again.
        let share = (TAKEN_MAX / room.len()).max(SHARE_MIN);
        for LaneCapacity { fresh, retries, .. } in &mut room {
            (*fresh, *retries) = ((*fresh).min(share), (*retries).min(share));
        }
        let taken = self.store.take_due(now, room.clone()).await?;
        let mut counts: HashMap<Slug, (usize, usize)> = HashMap::new();
        for stored in taken {
            let (fresh, retries) = counts.entry(stored.service.clone()).or_default();
            *(if stored.is_retry() { retries } else { fresh }) += 1;
            self.enqueue_stored(stored).await?;
        }
        for LaneCapacity { service, fresh, retries, resume_before } in room {
            let (got_fresh, got_retries) = counts.get(&service).copied().unwrap_or_default();
            if got_fresh.max(got_retries) == share {
                self.refill.notify_one();
            }
            if let Some(lane) = self.lane(&service) {
                // A refill that did not ask for fresh ones has learned nothing of them. If they were assumed, new deliveries
                // would go through the store, behind retries and replays.
                let has_backlog = (fresh > 0).then_some(got_fresh == fresh);
                lane.refilled(has_backlog, resume_before.filter(|_| got_retries < retries));
            }
        }
        Ok(())
    }

    /// Dead-letters the deliveries of a service that was deleted while it was being sent to: nobody would ever claim them.
    pub(super) async fn dead_letter_all(&self, service: Slug, now: Millis) -> Result<(), StoreError> {
        let change = Change::DeadLetterAll {
            selector: DeliverySelector::Service(service.clone()),
            limit: AT_ONCE,
            at: now,
        };
        let count = self.store.commit(WritePriority::Outcomes, UnitOfWork::of(change)).await?.touched;
        telemetry::dead_lettered(&service, count);
        Ok(())
    }

    /// Adds a delivery from the store to its lane. One whose request can't be read is dead-lettered.
    pub(super) async fn enqueue_stored(&self, stored: StoredDelivery) -> Result<(), StoreError> {
        let watched = stored.is_suspect.then(|| self.suspects.watch(stored.id, stored.on_probation));
        let read = async { caught(|| RenderedRequest::from_bytes(&stored.request, &stored.payload)) };
        let read = match &watched {
            Some(watched) => watched.step(HandlingStep::Load, read).await,
            None => read.await,
        };
        let (outcome, cause) = match read {
            Ok(Some(request)) => {
                self.enqueue(PendingDelivery { watched, ..PendingDelivery::from_stored(stored, request) });
                return Ok(());
            }
            Ok(None) => (Outcome::Unsendable, "the stored request can't be read".to_owned()),
            Err(panic) => (Outcome::Crashed, panic.to_string()),
        };
        let (trace, event, service) = (stored.trace.map(display), &*stored.event, stored.service.as_str());
        error!(
            target: "seawall", traceId = trace, deliveryId = %stored.id, eventId = event, service, rule = stored.rule.0.as_str(),
            ruleVersion = stored.rule.1, cause, action = "ManualReview", "[Deliver][Load] Failed!"
        );
        self.settle_unsent(&stored, outcome, cause).await
    }

    /// Returns deliveries to the store that have no room in memory.
    async fn return_to_store(&self) -> Result<(), StoreError> {
        let left = std::mem::take(&mut *self.returned.lock());
        if left.is_empty() {
            return Ok(());
        }
        let put = self
            .store
            .commit(WritePriority::Outcomes, UnitOfWork::of(Change::ReturnToStore(left.clone())))
            .await;
        if put.is_err() {
            // It is still claimed, and goes back the next time.
            self.returned.lock().extend(left);
        }
        put.map(drop)
    }
}
