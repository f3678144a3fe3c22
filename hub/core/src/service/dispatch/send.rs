//! One attempt: outcome, decision, settlement.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use seawall::{Error, Fault, Kind, Policy, Ran, Tick};
use seawall_dist::deadletter::{Answer, Attempt};

use super::lane::Lane;
use super::load::PendingDelivery;
use super::{DispatcherInner, is_closed};
use crate::domain::dead_letter::FailureSummary;
use crate::domain::delivery::suspects::HandlingStep;
use crate::domain::delivery::{
    DeadLetterReason, Decision, DeliveryId, DeliveryPolicy, Disposition, Moment, Outcome, decide,
    is_stale_token,
};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::store::{
    Change, Claim, Settlement, StoreError, StoredDelivery, UnitOfWork, UnitStore, WritePriority,
};
use crate::port::transport::{PeerResponse, SendError, Transport};
use crate::service::panics::{CaughtPanic, caught_in};

/// The shortest wait of a lane after its guard refused.
const PARKED_MIN: Duration = Duration::from_millis(50);
/// The longest wait of a lane after its guard refused. A half-open circuit says "when the probe's time is over", and is mostly
/// closed long before.
const PARKED_MAX: Duration = Duration::from_secs(1);
/// The wait before a full store is asked again.
const STORE_AGAIN: Duration = Duration::from_millis(100);

impl<S: UnitStore, T: Transport> DispatcherInner<S, T> {
    /// Makes one attempt, decides what happens next, and stores that. An error means that the store is broken.
    pub(super) async fn send(&self, lane: Arc<Lane>, delivery: PendingDelivery) -> Result<(), StoreError> {
        let mut policy = self.policy_of(&delivery.rule, delivery.ordered);
        policy.schedule.attempts = policy.schedule.attempts.or_else(|| Some(lane.attempts()));
        let (began, tick) = (self.now(), self.clock.precise());
        let (outcome, mut attempt) = if policy.enabled {
            self.attempt(&lane, &delivery, tick).await
        } else {
            (Outcome::RuleDisabled, Attempt::default())
        };
        let ended = self.clock.precise();
        (attempt.at, attempt.took) = (began, ended.since(tick));
        lane.telemetry.attempted(&outcome, &attempt);
        if outcome.counts_for_circuit() {
            lane.note_failure(attempt.error.as_deref());
        }
        self.observe(&lane).await;

        let mut progress = delivery.progress;
        progress.accepted.0 = progress.accepted.0.saturating_add(self.time.moved_since(delivery.clock_jumps));
        let now = self.now();
        let circuit_closed = outcome.meaning().and_then(|_| lane.circuit_closed());
        let moment = Moment { now, began, circuit_closed, random: random(delivery.id, now) };
        let decision = decide(&outcome, progress, &policy, &moment);

        if let Disposition::Defer { retry_after } = decision.disposition {
            let until = ended + retry_after.unwrap_or_default().clamp(PARKED_MIN, PARKED_MAX);
            let gate_closed = lane.guard.breaker().is_some_and(|breaker| !is_closed(breaker.state()));
            lane.telemetry.deferred();
            lane.park(delivery, until, gate_closed);
            return Ok(());
        }
        if let Disposition::DeadLetter { reason: DeadLetterReason::Gone, .. } = decision.disposition {
            self.gone.lock().push((delivery.rule.clone(), delivery.service.clone()));
            self.gone_added.notify_one();
        }
        lane.apply(&decision, ended);
        lane.telemetry.decided(&delivery, &decision, &attempt, ended);
        let settlement = settlement((&delivery).into(), decision, attempt, now, || lane.last_failure());
        let done = self.commit_outcome(Change::Settle(settlement)).await;
        lane.settled(delivery.id);
        done
    }

    /// Returns the policy for a delivery of a rule; the default if the rule was deleted.
    fn policy_of(&self, rule: &Slug, ordered: bool) -> DeliveryPolicy {
        let mut policy = self.rules.read().get(rule).copied().unwrap_or_default();
        policy.holds_order &= ordered;
        policy
    }

    /// Sends the request of a delivery through the guard of its service, and returns the outcome with its record.
    async fn attempt(&self, lane: &Lane, delivery: &PendingDelivery, began: Tick) -> (Outcome, Attempt) {
        let service = lane.service();
        // An attempt that passes a circuit that is not closed is a probe.
        let probe = lane.guard.breaker().is_some_and(|breaker| !is_closed(breaker.state()));
        // A panic is caught within the guard too, so that the circuit of the service is not charged with it.
        let panicked = OnceLock::new();
        let send = async |attempt| {
            let headers = Some(delivery.headers());
            let sending = caught_in(self.transport.send(&service, &delivery.request, headers, attempt));
            let sent = match &delivery.watched {
                Some(watched) => watched.step(HandlingStep::Send, sending).await,
                None => sending.await,
            };
            sent.unwrap_or_else(|panic| Err(of_panic(panicked.get_or_init(|| panic))))
        };
        let judge = |sent: &_| self.fault_of(sent, began);
        let sent = caught_in(lane.guard.classify(judge).single_attempt().call(send)).await;
        match (sent, panicked.into_inner()) {
            (Err(panic), _) | (_, Some(panic)) => (Outcome::Panicked, failed_with(panic.to_string())),
            (Ok(Ok(response)), None) => of_response(response, probe),
            (Ok(Err(error)), None) => of_error(&error, probe, || self.pauses.has_paused_since(began)),
        }
    }

    /// Dead-letters a stored delivery that can't be sent, with the error as its attempt.
    pub(super) async fn settle_unsent(
        &self,
        stored: &StoredDelivery,
        outcome: Outcome,
        error: String,
    ) -> Result<(), StoreError> {
        let now = self.now();
        let policy = self.policy_of(&stored.rule.0, stored.order.is_some());
        let moment = Moment { now, began: now, circuit_closed: None, random: random(stored.id, now) };
        let decision = decide(&outcome, stored.progress, &policy, &moment);
        let attempt = Attempt { at: now, ..failed_with(error) };
        let settlement = settlement(stored.into(), decision, attempt, now, || None);
        self.commit_outcome(Change::Settle(settlement)).await
    }

    /// Stores the outcome of an attempt and starts deliveries that waited behind it. It retries while the store is busy, full or
    /// unavailable, because the attempt has taken place.
    async fn commit_outcome(&self, change: Change) -> Result<(), StoreError> {
        let mut probe = None;
        loop {
            let unit = UnitOfWork::of(change.clone());
            match self.store.commit(WritePriority::Outcomes, unit).await {
                Ok(committed) => {
                    for stored in committed.ready {
                        // Boxed, because enqueuing one may end in settling it.
                        Box::pin(self.enqueue_stored(stored)).await?;
                    }
                    return Ok(());
                }
                // Another process has claimed it, and its outcome counts; or the store did not answer and has stored it.
                Err(StoreError::LeaseLost(_)) => return Ok(()),
                Err(error @ StoreError::Broken(_)) => return Err(error),
                // One of them asks again and again; the others wait until it has an answer.
                Err(StoreError::Unavailable { .. }) => {
                    probe = probe.or_else(|| self.store_probe.try_lock().ok());
                    match probe {
                        Some(_) => tokio::time::sleep(STORE_AGAIN).await,
                        None => drop(self.store_probe.lock().await),
                    }
                }
                Err(_) => {
                    probe = None;
                    tokio::time::sleep(STORE_AGAIN).await;
                }
            }
        }
    }

    /// Returns the fault of an attempt. The service is not charged for a token of the hub that has expired, or for what happened
    /// while the process was paused.
    pub(super) fn fault_of(&self, sent: &Result<PeerResponse, SendError>, began: Tick) -> Option<Fault> {
        match sent {
            Ok(response) if response.fault.is_some_and(|fault| is_stale_token(&fault)) => {
                Some(Fault::business())
            }
            Ok(response) => response.fault,
            Err(error) => Some(self.pauses.judge(error.fault, began)),
        }
    }
}

/// Returns the outcome of an attempt with a response.
fn of_response(response: PeerResponse, probe: bool) -> (Outcome, Attempt) {
    let PeerResponse { code, fault, attributes, body, sent } = response;
    let answer = code.map(|status| Answer { status, headers: attributes, body });
    let error = fault.map(|fault| {
        if is_stale_token(&fault) {
            "the token was refused; the next attempt has another".to_owned()
        } else {
            fault.to_string()
        }
    });
    let outcome = fault.map_or(Outcome::Delivered, |fault| Outcome::Failed { fault, probe });
    (outcome, Attempt { answer, sent, error, ..Attempt::default() })
}

/// Returns the outcome of an attempt without a response. A request that was in progress while the process was paused is
/// deferred: its service may have responded in time.
fn of_error(error: &Error<SendError>, probe: bool, paused: impl FnOnce() -> bool) -> (Outcome, Attempt) {
    let last = error.last();
    let timed_out = error.kind() == Kind::TimedOut;
    let outcome = match error.kind() {
        Kind::Rejected => Outcome::Deferred { retry_after: error.retry_after() },
        _ if !timed_out && last.is_some_and(|last| last.impossible) => Outcome::Unsendable,
        _ if paused() => Outcome::Deferred { retry_after: None },
        _ if timed_out || error.decided_by() == Policy::AttemptTimeout => {
            Outcome::Failed { fault: Fault::timeout(), probe }
        }
        // Without a response the service is unreachable, whatever else the transport says about it.
        _ => Outcome::Failed { fault: Fault::io(), probe },
    };
    let text = last.map_or_else(|| error.to_string(), |last| last.error.clone());
    (outcome, Attempt { sent: last.and_then(|last| last.sent.clone()), ..failed_with(text) })
}

fn failed_with(error: String) -> Attempt {
    Attempt { error: Some(error), ..Attempt::default() }
}

/// Turns a panic into an error that does not count for the circuit, because nobody knows how far the request came.
fn of_panic(panic: &CaughtPanic) -> SendError {
    SendError {
        fault: Fault::business().ran(Ran::Unknown),
        error: panic.to_string(),
        impossible: false,
        too_large: false,
        no_memory: false,
        sent: None,
    }
}

/// Returns a number that is spread evenly over deliveries and times.
fn random(delivery: DeliveryId, now: Millis) -> u64 {
    delivery.number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ now.0.cast_unsigned().rotate_left(32)
}

/// The parts of a claimed delivery that its settlement needs.
#[derive(Clone, Copy)]
struct ClaimedDelivery {
    claim: Claim,
    ordered: bool,
    is_replay: bool,
}

impl From<&PendingDelivery> for ClaimedDelivery {
    fn from(delivery: &PendingDelivery) -> Self {
        let (ordered, is_replay) = (delivery.ordered, delivery.replay_of.is_some());
        ClaimedDelivery { claim: delivery.claim(), ordered, is_replay }
    }
}

impl From<&StoredDelivery> for ClaimedDelivery {
    fn from(stored: &StoredDelivery) -> Self {
        let claim = Claim { delivery: stored.id, epoch: stored.epoch };
        ClaimedDelivery { claim, ordered: stored.order.is_some(), is_replay: stored.replay_of.is_some() }
    }
}

/// Builds the settlement of a decision, for every way on which a delivery can end. `last_failure` is the last failure of the
/// service, for a delivery that expires while nothing may be sent.
fn settlement(
    claimed: ClaimedDelivery,
    decision: Decision,
    attempt: Attempt,
    at: Millis,
    last_failure: impl FnOnce() -> Option<String>,
) -> Settlement {
    let ClaimedDelivery { claim, ordered, is_replay } = claimed;
    let failure = match decision.disposition {
        Disposition::DeadLetter { .. } if decision.attempted => Some(FailureSummary::of_attempt(&attempt)),
        Disposition::DeadLetter { .. } => {
            last_failure().map(|message| FailureSummary { status: None, message: Some(message) })
        }
        _ => None,
    };
    let attempt = decision.attempted.then_some(attempt);
    Settlement { claim, decision, attempt, failure, at, ordered, is_replay }
}
