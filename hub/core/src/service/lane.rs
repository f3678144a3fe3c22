//! The deliveries of one service that are in hand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use seawall::{Guard, Tick};
use tokio::sync::Notify;

use crate::domain::delivery::{DeliveryId, Progress, Schedule};
use crate::domain::service::Service;
use crate::render::Request;

/// So many deliveries of one service are in hand at most; the rest waits in the store.
pub const IN_HAND_MAX: usize = 1_000;
/// So many of one service are under way at once at most; its bulkhead may say fewer.
pub(super) const UNDER_WAY_MAX: usize = 256;

/// A delivery in hand.
#[derive(Clone, Debug)]
pub struct InHand {
    /// Its name.
    pub id: DeliveryId,
    /// What is sent.
    pub request: Request,
    /// How often and how long it is tried.
    pub schedule: Schedule,
    /// What it has cost so far.
    pub progress: Progress,
}

/// One service and its deliveries in hand.
pub(super) struct Lane {
    service: RwLock<Arc<Service>>,
    pub(super) guard: Guard,
    state: Mutex<State>,
    /// Rung when there may be something to do.
    pub(super) bell: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<InHand>,
    under_way: usize,
    /// Nothing is sent until then: the peer, or the hub's own policy, said so. The rows in the store are left alone.
    parked_until: Option<Tick>,
}

/// What a lane does next.
pub(super) enum Turn {
    Send(Box<InHand>),
    /// Nothing for so long, or until the bell rings.
    Park(Duration),
    /// Nothing until the bell rings.
    Rest,
}

impl Lane {
    pub(super) fn new(service: Service, guard: Guard) -> Arc<Self> {
        let service = RwLock::new(Arc::new(service));
        Arc::new(Lane { service, guard, state: Mutex::default(), bell: Notify::new() })
    }

    pub(super) fn service(&self) -> Arc<Service> {
        self.service.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The service has been changed.
    pub(super) fn change(&self, service: Service) {
        *self.service.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(service);
        self.bell.notify_one();
    }

    /// Takes a delivery in hand; gives it back, if there is no room.
    pub(super) fn offer(&self, delivery: InHand) -> Option<InHand> {
        let mut state = self.lock();
        if state.waiting.len() + state.under_way >= IN_HAND_MAX {
            return Some(delivery);
        }
        state.waiting.push_back(delivery);
        drop(state);
        self.bell.notify_one();
        None
    }

    /// How many more it can take.
    pub(super) fn room(&self) -> usize {
        let state = self.lock();
        IN_HAND_MAX.saturating_sub(state.waiting.len() + state.under_way)
    }

    pub(super) fn turn(&self, now: Tick) -> Turn {
        let paused = self.service().paused;
        let mut state = self.lock();
        if paused || state.waiting.is_empty() || state.under_way >= UNDER_WAY_MAX {
            return Turn::Rest;
        }
        if let Some(until) = state.parked_until.filter(|until| now < *until) {
            return Turn::Park(until.since(now));
        }
        match state.waiting.pop_front() {
            Some(delivery) => {
                state.under_way += 1;
                Turn::Send(Box::new(delivery))
            }
            None => Turn::Rest,
        }
    }

    /// A send has ended. One that went well shows that the gate is open again, whatever others were told before.
    pub(super) fn ended(&self, well: bool) {
        let mut state = self.lock();
        state.under_way -= 1;
        if well {
            state.parked_until = None;
        }
        drop(state);
        self.bell.notify_one();
    }

    /// A send did not take place: the delivery goes back to the front, and nothing is sent until then.
    pub(super) fn park(&self, delivery: InHand, until: Tick) {
        let mut state = self.lock();
        state.under_way -= 1;
        state.waiting.push_front(delivery);
        state.parked_until = Some(until);
        drop(state);
        self.bell.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
