//! From the store into the lanes.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tracing::error;
use tracing::field::display;

use super::Shared;
use super::hand::InHand;
use crate::domain::delivery::Reason;
use crate::domain::poison::Step;
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::store::{
    Change, Due, Following, Kept, Room, Settlement, Store, StoreError, Unit, Urgency, Whose,
};
use crate::port::transport::Transport;
use crate::render::Request;
use crate::service::caught::caught;
use crate::service::services::AT_ONCE;
use crate::service::watch;

/// How often the store is asked for what is due, if nobody is hungry before.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// So many are taken from the store at once, as far as that is more than a few for each service.
const TAKEN_MAX: usize = 2_000;
const SHARE_MIN: usize = 4;

impl<S: Store, T: Transport> Shared<S, T> {
    /// Fills lanes that have room from the store.
    pub(super) async fn load_for_ever(self: Arc<Self>) -> StoreError {
        loop {
            if let Err(error @ StoreError::Fatal(_)) = self.load().await {
                return error;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.hungry.notified() => {}
            }
        }
    }

    async fn load(&self) -> Result<(), StoreError> {
        self.follow_clock().await?;
        let now = self.now();
        self.put_back().await?;
        let due = self.store.next_due().await?;
        let mut due: HashMap<Slug, Due> = due.into_iter().map(|due| (due.service.clone(), due)).collect();
        let mut room = Vec::new();
        for lane in self.all_lanes() {
            let (service, space) = (lane.service().name.clone(), lane.space());
            let (fresh, again) = due.remove(&service).map_or((None, None), |due| (due.fresh, due.again));
            let is_due = |at: Option<_>| at.is_some_and(|at| at <= now);
            lane.more(Some(fresh.is_some()), space.forward.filter(|_| again.is_none()));
            let asked = Room {
                fresh: if is_due(fresh) { space.fresh } else { 0 },
                again: if is_due(again) || (again.is_some() && space.forward.is_some()) {
                    space.again
                } else {
                    0
                },
                forward: space.forward,
                service,
            };
            if asked.fresh + asked.again > 0 {
                room.push(asked);
            }
        }
        for service in due.into_keys() {
            self.bury(service, now).await?;
        }
        if room.is_empty() {
            return Ok(());
        }
        // What is taken at once is one unit, and nobody else writes in the meantime: all get their share, and come again.
        let share = (TAKEN_MAX / room.len()).max(SHARE_MIN);
        for Room { fresh, again, .. } in &mut room {
            (*fresh, *again) = ((*fresh).min(share), (*again).min(share));
        }
        let taken = self.store.take_due(now, room.clone()).await?;
        let mut counts: HashMap<Slug, (usize, usize)> = HashMap::new();
        for kept in taken {
            let (fresh, again) = counts.entry(kept.service.clone()).or_default();
            *(if kept.is_again() { again } else { fresh }) += 1;
            self.take_kept(kept).await?;
        }
        for Room { service, fresh, again, forward } in room {
            let (got_fresh, got_again) = counts.get(&service).copied().unwrap_or_default();
            if got_fresh.max(got_again) == share {
                self.hungry.notify_one();
            }
            if let Some(lane) = self.lane(&service) {
                // Whoever did not ask for fresh ones has learned nothing of them. Were they thought to be there, those that come
                // now would take the way through the store, behind what is tried again or replayed.
                let more = (fresh > 0).then_some(got_fresh == fresh);
                lane.more(more, forward.filter(|_| got_again < again));
            }
        }
        Ok(())
    }

    /// Somebody was about to send to a service while it was deleted: nobody would ever take it up.
    pub(super) async fn bury(&self, service: Slug, now: Millis) -> Result<(), StoreError> {
        let bury = Change::Bury { whose: Whose::Service(service.clone()), most: AT_ONCE, at: now };
        let buried = self.store.commit(Urgency::Outcomes, Unit::of(bury)).await?.touched;
        watch::buried(&service, buried);
        Ok(())
    }

    /// Takes a delivery from the store in hand.
    pub(super) async fn take_kept(&self, kept: Kept) -> Result<(), StoreError> {
        let watched = kept.suspected.then(|| self.suspects.watch(kept.id, kept.accused));
        let read = async { caught(|| Request::from_bytes(&kept.request, &kept.payload)) };
        let read = match &watched {
            Some(watched) => watched.step(Step::Load, read).await,
            None => read.await,
        };
        let reason = if read.is_err() { Reason::Poison } else { Reason::Impossible };
        let Some(request) = read.ok().flatten() else {
            let (trace, event, service) = (kept.trace.map(display), &*kept.event, kept.service.as_str());
            error!(
                target: "seawall", traceId = trace, deliveryId = %kept.id, eventId = event, service, rule = kept.rule.0.as_str(),
                ruleVersion = kept.rule.1, cause = "the request that was kept can't be read", action = "ManualReview",
                "[Deliver][Load] Failed!"
            );
            let next = Following::DeadLetter { reason, progress: kept.progress, hold: false };
            let ordered = kept.order.is_some();
            return self
                .settle(Settlement {
                    delivery: kept.id,
                    next,
                    ordered,
                    at: self.now(),
                    attempt: None,
                    cause: None,
                    number: 0,
                    replays: kept.replay_of.is_some(),
                })
                .await;
        };
        let delivery = InHand {
            id: kept.id,
            rule: kept.rule.0,
            rule_version: kept.rule.1,
            request,
            event: kept.event,
            event_accepted: kept.event_accepted,
            trace: kept.trace,
            progress: kept.progress,
            clock_jumps: self.time.jumps(),
            ordered: kept.order.is_some(),
            replay_of: kept.replay_of,
            watched,
        };
        self.take_in_hand(&kept.service, delivery);
        Ok(())
    }

    /// What has no room in hand goes back to the store.
    async fn put_back(&self) -> Result<(), StoreError> {
        let left = std::mem::take(&mut *self.overflow.lock().unwrap_or_else(PoisonError::into_inner));
        if left.is_empty() {
            return Ok(());
        }
        let put = self.store.commit(Urgency::Outcomes, Unit::of(Change::PutBack(left.clone()))).await;
        if put.is_err() {
            // It is still in this process's hand, and goes back the next time.
            self.overflow.lock().unwrap_or_else(PoisonError::into_inner).extend(left);
        }
        put.map(drop)
    }
}
