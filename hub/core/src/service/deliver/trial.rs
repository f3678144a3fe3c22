//! Suspects: what was in hand when the process ended, more than once, is tried under supervision.
//!
//! Why and in what company is said in [`poison`](crate::domain::poison). Here is how it goes. Suspects stay in the store until there
//! is a place for them *and* the lane of their service would send: one whose service is paused, or whose circuit is open, takes
//! up no place, and can't be blamed for a crash meanwhile. Taking one marks it in the same commit, before its try begins. It
//! goes first in its lane, and from there on like any other: guard, limits, schedule and order are the same. What came of it
//! takes away the mark with the same commit that writes it down. If it was not sent after all, it goes back and waits anew.
//!
//! Suspects only ever come from a start, or back from a trial that did not take place. So a hub that has none asks the store once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use seawall_dist::deadletter::Attempt;
use tokio::sync::Notify;

use super::Shared;
use super::hand::InHand;
use crate::domain::delivery::{DeliveryId, Reason};
use crate::port::store::{Change, Evidence, Following, Kept, Settlement, Store, StoreError, Unit, Urgency};
use crate::port::transport::Transport;
use crate::service::watch;

/// So often somebody looks for suspects that can be tried, if no place gets free before.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Who is on trial in the whole hub.
#[derive(Debug, Default)]
pub(super) struct Court {
    /// The company of each.
    on_trial: Mutex<Vec<u32>>,
    /// Rung when a place gets free, or a suspect may have come back.
    pub(super) free: Notify,
}

/// A place in the court: as long as it is held, its delivery is on trial.
#[derive(Debug)]
pub(super) struct Seat {
    court: Arc<Court>,
    together: u32,
}

impl Court {
    pub(super) fn seat(self: &Arc<Self>, together: u32) -> Arc<Seat> {
        self.on_trial.lock().unwrap_or_else(PoisonError::into_inner).push(together);
        Arc::new(Seat { court: self.clone(), together })
    }

    fn on_trial(&self) -> Vec<u32> {
        self.on_trial.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut on_trial = self.court.on_trial.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = on_trial.iter().position(|together| *together == self.together) {
            on_trial.swap_remove(at);
        }
        drop(on_trial);
        self.court.free.notify_one();
    }
}

impl<S: Store, T: Transport> Shared<S, T> {
    /// Convicts who is guilty, and tries the suspects until there are none.
    pub(super) async fn hold_court(self: Arc<Self>) -> StoreError {
        let mut judged = false;
        loop {
            // Only a start makes convicts.
            let sat = if judged { self.sit().await } else { self.judge().await.map(|()| true) };
            judged |= sat.is_ok();
            match sat {
                Ok(false) => self.court.free.notified().await,
                Err(error @ StoreError::Fatal(_)) => return error,
                Ok(true) | Err(_) => tokio::select! {
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                    () = self.court.free.notified() => {}
                },
            }
        }
    }

    /// Gives up who was alone on trial when the process ended.
    async fn judge(&self) -> Result<(), StoreError> {
        for (kept, evidence) in self.store.convicts().await? {
            self.convict(&kept, &evidence).await?;
        }
        self.court.free.notify_one();
        Ok(())
    }

    /// Tries whom there is room for. Whether there may be more to do.
    async fn sit(&self) -> Result<bool, StoreError> {
        self.call_off().await?;
        let mut waiting = self.store.suspects().await?;
        let on_trial = self.court.on_trial();
        if waiting.is_empty() {
            return Ok(!on_trial.is_empty());
        }
        let now = self.clock.precise();
        for service in waiting.extract_if(.., |service| self.lane(service).is_none()) {
            self.bury(service, self.now()).await?;
        }
        waiting.retain(|service| self.lane(service).is_some_and(|lane| lane.is_open(now)));
        if !waiting.is_empty() {
            for kept in self.store.take_suspects(waiting, on_trial).await? {
                self.take_kept(kept).await?;
            }
        }
        Ok(true)
    }

    /// The process ended while this one alone was on trial.
    async fn convict(&self, kept: &Kept, evidence: &Evidence) -> Result<(), StoreError> {
        let Evidence { crashes, starts } = evidence;
        let error = format!(
            "the process ended {crashes} times while it was in hand (starts {starts}), the last time while it was alone on trial"
        );
        let (at, mut progress) = (self.now(), kept.progress);
        progress.failures += 1;
        let hold = self.ways(&kept.rule.0).hold && kept.order.is_some();
        watch::quarantined(kept, &error);
        self.write_down(Change::Convict(Settlement {
            delivery: kept.id,
            next: Following::DeadLetter { reason: Reason::Poison, progress, hold },
            ordered: kept.order.is_some(),
            at,
            attempt: Some(Attempt { at, error: Some(error), ..Attempt::default() }),
            number: progress.failures,
            replays: kept.replay_of.is_some(),
        }))
        .await
    }

    /// Those that are marked, and whose lane sends nothing any more, wait in the store.
    async fn call_off(&self) -> Result<(), StoreError> {
        let now = self.clock.precise();
        let idle: Vec<InHand> = self.all_lanes().iter().flat_map(|lane| lane.call_off(now)).collect();
        if idle.is_empty() {
            return Ok(());
        }
        self.give_back(idle.iter().map(|delivery| delivery.id).collect()).await
    }

    /// These were not sent, and wait in the store. A store that can't take them back now is asked by the loader.
    pub(super) async fn give_back(&self, deliveries: Vec<DeliveryId>) -> Result<(), StoreError> {
        let unit = Unit::of(Change::PutBack(deliveries.clone()));
        match self.store.commit(Urgency::Outcomes, unit).await {
            Err(error @ StoreError::Fatal(_)) => Err(error),
            Err(_) => {
                self.overflow.lock().unwrap_or_else(PoisonError::into_inner).extend(deliveries);
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }
}
