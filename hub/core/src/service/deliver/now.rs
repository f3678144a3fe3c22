//! Calls that somebody waits for: through the same guard as the deliveries of the service, with its retries and budget.

use std::sync::Arc;
use std::time::Duration;

use seawall::bulkhead::OwnedPermit;
use seawall::{Deadline, Error, Guard, Key, Safety};

use super::lane::Lane;
use super::{Deliver, is_closed};
use crate::domain::service::Service;
use crate::domain::slug::Slug;
use crate::port::store::Store;
use crate::port::transport::{NoAnswer, Transport, Whole};
use crate::service::call::Call;

/// What came of a call.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The answer, or why there is none.
    pub answer: Result<Whole, Error<NoAnswer>>,
    /// How often it was tried.
    pub attempts: u32,
    /// How long it took in all.
    pub took: Duration,
    /// The place in the bulkhead, for as long as the answer is held. Whoever shows the answer keeps it until that is read.
    pub place: Option<Arc<OwnedPermit>>,
}

/// A service that is called by somebody else than the hub's core, through the guard that its deliveries have.
#[derive(Clone)]
pub struct Target {
    /// As it is registered.
    pub service: Arc<Service>,
    /// What it is called through.
    pub guard: Guard,
    /// Whether its circuit was closed when the call began.
    closed: bool,
    lane: Arc<Lane>,
}

impl Target {
    /// Whether its circuit may have moved by a call that has ended: by a failure, or because it was not closed before.
    #[must_use]
    pub fn may_have_moved(&self, failed: bool) -> bool {
        failed || !self.closed
    }

    /// A call has ended after so many attempts.
    pub fn called(&self, well: bool, attempts: u32) {
        self.lane.watch.called(well, attempts);
    }

    /// The peer did something that a circuit opens for.
    pub fn note_failure(&self, what: &str) {
        self.lane.note_failure(Some(what));
    }
}

impl<S: Store, T: Transport> Deliver<S, T> {
    /// Calls a service through its guard.
    pub async fn call(&self, call: &Call) -> Option<Answered> {
        let lane = self.shared.lane(&call.service)?;
        let (service, began) = (lane.service(), self.shared.clock.precise());
        let mut attempts = 0;
        let gate = lane.guard.bulkhead();
        let send = |attempt: seawall::Attempt| {
            attempts = attempt.number();
            let sent = self.shared.transport.call(&service, &call.request, call.trace.as_deref(), attempt);
            // The call ends here, and its answer is in memory until somebody has read it: so long it has the call's place.
            async move { sent.await.map(|whole| (whole, gate.map(|gate| Arc::new(gate.keep_place())))) }
        };
        let judge = |called: &Result<(Whole, Option<Arc<OwnedPermit>>), NoAnswer>| match called {
            Ok((whole, _)) => whole.fault,
            Err(no_answer) => Some(self.shared.pauses.judge(no_answer.fault, began)),
        };
        let mut terms = lane.guard.classify(judge).safety(Safety::of_http_method(&call.request.method));
        if let Some(key) = &call.key {
            terms = terms.key(Key::named(key));
        }
        if let Some(time) = call.timeout {
            terms = terms.deadline(Deadline::within_on(&self.shared.clock, time));
        }
        if let Some(depth) = call.retries_above {
            terms = terms.retries_above(depth);
        }
        let (answer, place) = match terms.call(send).await {
            Ok((whole, place)) => (Ok(whole), place),
            Err(error) => (Err(error), None),
        };
        let took = self.shared.clock.precise().since(began);
        lane.note_call(&answer, |whole| whole.fault);
        lane.watch.called(answer.as_ref().is_ok_and(|whole| whole.fault.is_none()), attempts);
        self.shared.observe(&lane).await;
        Some(Answered { answer, attempts, took, place })
    }

    /// A service, for whoever calls it without the help of the core.
    #[must_use]
    pub fn target(&self, name: &str) -> Option<Target> {
        let lanes = self.shared.lanes.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let lane: &Arc<Lane> = lanes.get(name)?;
        let closed = lane.guard.breaker().is_none_or(|breaker| is_closed(breaker.state()));
        Some(Target { service: lane.service(), guard: lane.guard.clone(), closed, lane: lane.clone() })
    }

    /// Writes down where circuits stand that have moved without a delivery.
    pub async fn observe_all(&self) {
        for lane in self.shared.all_lanes() {
            self.shared.observe(&lane).await;
        }
    }

    /// Whether a service is there, and whether it is paused.
    pub(in crate::service) fn is_paused(&self, name: &Slug) -> Option<bool> {
        self.shared.lane(name).map(|lane| lane.service().paused)
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("service", &self.service.name).finish_non_exhaustive()
    }
}
