//! Gateway calls whose caller waits: through the same guard as the deliveries of the service, with its retries and budget.

use std::sync::Arc;
use std::time::Duration;

use seawall::bulkhead::OwnedPermit;
use seawall::{Deadline, Error, Guard, Key, Safety};

use super::lane::Lane;
use super::{DeliveryDispatcher, is_closed};
use crate::domain::service::Service;
use crate::domain::slug::Slug;
use crate::port::store::UnitStore;
use crate::port::transport::{FullResponse, SendError, Transport};
use crate::service::gateway::call::GatewayCall;

/// The result of a call through a guard.
#[derive(Clone, Debug)]
pub struct CallResult {
    /// The response, or the reason why there is none.
    pub answer: Result<FullResponse, Error<SendError>>,
    /// The number of attempts.
    pub attempts: u32,
    /// The duration of all attempts together.
    pub took: Duration,
    /// The place in the bulkhead, which is held until the response has been read.
    pub place: Option<Arc<OwnedPermit>>,
}

/// A service for callers outside the dispatcher, behind the same guard as its deliveries.
#[derive(Clone)]
pub struct GuardedService {
    /// The service as it is registered.
    pub service: Arc<Service>,
    /// The guard of the service.
    pub guard: Guard,
    /// Whether the circuit was closed when the call began.
    closed: bool,
    lane: Arc<Lane>,
}

impl GuardedService {
    /// Whether a call that has ended may have changed the circuit: it failed, or the circuit was not closed before.
    #[must_use]
    pub fn may_have_moved(&self, failed: bool) -> bool {
        failed || !self.closed
    }

    /// Records that a call has ended after a number of attempts.
    pub fn called(&self, well: bool, attempts: u32) {
        self.lane.telemetry.called(well, attempts);
    }

    /// Remembers a failure that counts for the circuit.
    pub fn note_failure(&self, what: &str) {
        self.lane.note_failure(Some(what));
    }
}

impl<S: UnitStore, T: Transport> DeliveryDispatcher<S, T> {
    /// Calls a service through its guard.
    pub async fn call(&self, call: &GatewayCall) -> Option<CallResult> {
        let lane = self.shared.lane(&call.service)?;
        let (service, began) = (lane.service(), self.shared.clock.precise());
        let mut attempts = 0;
        let gate = lane.guard.bulkhead();
        let send = |attempt: seawall::Attempt| {
            attempts = attempt.number();
            let sent = self.shared.transport.call(&service, &call.request, call.trace.as_deref(), attempt);
            // The call ends here, and its response is in memory until it has been read: until then it keeps its place.
            async move { sent.await.map(|whole| (whole, gate.map(|gate| Arc::new(gate.keep_place())))) }
        };
        let judge = |called: &Result<(FullResponse, Option<Arc<OwnedPermit>>), SendError>| match called {
            Ok((whole, _)) => whole.fault,
            Err(no_answer) => Some(self.shared.pauses.judge(no_answer.fault, began)),
        };
        let mut terms = lane.guard.classify(judge).safety(Safety::of_http_method(&call.request.operation));
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
        lane.telemetry.called(answer.as_ref().is_ok_and(|whole| whole.fault.is_none()), attempts);
        self.shared.observe(&lane).await;
        Some(CallResult { answer, attempts, took, place })
    }

    /// Returns a service for a caller outside the dispatcher.
    #[must_use]
    pub fn target(&self, name: &str) -> Option<GuardedService> {
        let lanes = self.shared.lanes.read();
        let lane: &Arc<Lane> = lanes.get(name)?;
        let closed = lane.guard.breaker().is_none_or(|breaker| is_closed(breaker.state()));
        Some(GuardedService {
            service: lane.service(),
            guard: lane.guard.clone(),
            closed,
            lane: lane.clone(),
        })
    }

    /// Stores the state of circuits that have changed without a delivery.
    pub async fn observe_all(&self) {
        for lane in self.shared.all_lanes() {
            self.shared.observe(&lane).await;
        }
    }

    /// Whether a service is paused; `None` if it does not exist.
    pub(in crate::service) fn is_paused(&self, name: &Slug) -> Option<bool> {
        self.shared.lane(name).map(|lane| lane.service().paused)
    }
}

impl std::fmt::Debug for GuardedService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardedService").field("service", &self.service.name).finish_non_exhaustive()
    }
}
