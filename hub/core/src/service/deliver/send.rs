//! One send, and what came of it.

use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use seawall::{Error, Fault, Kind, Policy, Ran, Tick};
use seawall_dist::deadletter::{Answer as Said, Attempt};
use tokio::task::JoinSet;

use super::hand::InHand;
use super::lane::{Lane, Turn};
use super::{Shared, is_closed};
use crate::domain::circuit::CircuitState;
use crate::domain::delivery::{Next, Outcome, Reason, after, counts, may_pass};
use crate::domain::poison::Step;
use crate::port::store::{Change, Following, Settlement, Store, StoreError, Unit, Urgency};
use crate::port::transport::{Answer, Letter, NoAnswer, Transport};
use crate::service::caught::{Panicked, caught_in};
use crate::service::watch::circuit_moved;

/// A lane that was refused looks again after this long at the soonest,
const PARKED_MIN: Duration = Duration::from_millis(50);
/// and at the latest: a half-open circuit says "when the probe's time is over", and is mostly closed long before.
const PARKED_MAX: Duration = Duration::from_secs(1);
/// A peer that is asked too much holds up all that is for it for so long at most; the delivery that it said it of, as long as
/// it asked for.
const THROTTLED_MAX: Duration = Duration::from_secs(30);
/// A store that has no room is asked again after this long.
const STORE_AGAIN: Duration = Duration::from_millis(100);

impl<S: Store, T: Transport> Shared<S, T> {
    /// Sends what is in a lane, as much at once as its guard allows. Nothing, when its service was deleted.
    pub(super) async fn run_lane(self: Arc<Self>, lane: Arc<Lane>) -> Option<StoreError> {
        let mut sends = JoinSet::new();
        loop {
            let (turn, hungry) = lane.turn(self.clock.precise());
            if hungry {
                self.hungry.notify_one();
            }
            let parked = match turn {
                Turn::Send(delivery) => {
                    let (shared, lane) = (self.clone(), lane.clone());
                    sends.spawn(async move { shared.send(lane, *delivery).await });
                    continue;
                }
                Turn::Park(time) => Some(time),
                Turn::Rest => None,
                Turn::End => return None,
            };
            let wait = async {
                match parked {
                    Some(time) => tokio::time::sleep(time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = lane.bell.notified() => {}
                () = wait => {}
                Some(ended) = sends.join_next() => match ended {
                    Ok(Ok(())) => self.send_ended.notify_one(),
                    Ok(Err(error)) => return Some(error),
                    Err(error) => return Some(StoreError::Fatal(format!("a send has ended: {error}"))),
                },
            }
        }
    }

    /// One send, and what came of it. An error means that the store can't be trusted.
    async fn send(&self, lane: Arc<Lane>, delivery: InHand) -> Result<(), StoreError> {
        let ways = self.ways(&delivery.rule);
        if !ways.enabled {
            lane.sent(false);
            lane.watch.held();
            let done = self.settle(settlement(&delivery, Following::Held, self.now(), None)).await;
            lane.settled(delivery.id);
            return done;
        }
        let (service, began) = (lane.service(), self.clock.precise());
        let at = self.now();
        let letter = Letter {
            delivery: delivery.id,
            event: &delivery.event,
            event_accepted: delivery.event_accepted,
            number: delivery.progress.failures + 1,
            replay_of: delivery.replay_of,
            trace: delivery.trace,
        };
        // If it goes out all the same, it is a probe.
        let not_closed = lane.guard.breaker().is_some_and(|breaker| !is_closed(breaker.state()));
        // Caught within the guard too, so that the peer's circuit is not charged with it.
        let panicked = OnceLock::new();
        let send = async |attempt| {
            let sending = self.transport.send(&service, &delivery.request, Some(letter), attempt);
            let sending = caught_in(sending);
            let sent = match &delivery.watched {
                Some(watched) => watched.step(Step::Send, sending).await,
                None => sending.await,
            };
            sent.unwrap_or_else(|panic| Err(no_answer(panicked.get_or_init(|| panic))))
        };
        let judge = |sent: &_| self.fault_of(sent, began);
        let sent = caught_in(lane.guard.classify(judge).single_attempt().call(send)).await;
        let (outcome, mut attempt) = match (sent, panicked.into_inner()) {
            (Err(panic), _) | (_, Some(panic)) => over(&panic),
            (Ok(sent), None) => outcome_of(sent),
        };
        let outcome = if not_closed { outcome.of_probe() } else { outcome };
        let outcome = self.unless_paused(outcome, began);
        (attempt.at, attempt.took) = (at, self.clock.precise().since(began));
        lane.watch.sent(outcome, &attempt);
        if trips(outcome) {
            lane.note_failure(attempt.error.as_deref());
        }
        self.observe(&lane).await;

        let now = self.now();
        let chance =
            delivery.id.number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ now.0.cast_unsigned().rotate_left(32);
        let mut schedule = ways.schedule;
        schedule.attempts = schedule.attempts.or_else(|| Some(lane.attempts()));
        let was_deferred = matches!(outcome, Outcome::Deferred { .. });
        let mut progress = delivery.progress;
        progress.accepted.0 = progress.accepted.0.saturating_add(self.time.moved_since(delivery.clock_jumps));
        let next = match after(outcome, progress, &schedule, now, chance) {
            Next::Later { .. } if let Outcome::Deferred { retry_after } = outcome => {
                // Nothing was sent, so nothing is written: it stays in hand.
                let until =
                    self.clock.precise() + retry_after.unwrap_or_default().clamp(PARKED_MIN, PARKED_MAX);
                let gate = lane.guard.breaker().is_some_and(|breaker| !is_closed(breaker.state()));
                lane.watch.deferred();
                lane.park(delivery, until, gate);
                return Ok(());
            }
            Next::Done => Following::Delivered,
            // What began before the circuit closed belongs to the outage, and comes forward as well.
            Next::Later { progress, stalled: true, .. } if lane.closed_since(at) => {
                Following::Waits { until: now, progress, stalled: true }
            }
            Next::Later { at, progress, stalled } => Following::Waits { until: at, progress, stalled },
            Next::GiveUp(reason) => {
                if reason == Reason::Gone {
                    let gone = (delivery.rule.clone(), service.name.clone());
                    self.gone.lock().unwrap_or_else(PoisonError::into_inner).push(gone);
                    self.gone_bell.notify_one();
                }
                let mut progress = delivery.progress;
                // Nothing was sent of what was deferred until it was too old.
                progress.failures += u32::from(!was_deferred);
                let ends_by_count = matches!(reason, Reason::Attempts | Reason::Age);
                progress.counted += u32::from(ends_by_count && counts(outcome, &schedule));
                progress.panics += u32::from(outcome == Outcome::Panicked);
                Following::DeadLetter { reason, progress, hold: ways.hold && delivery.ordered }
            }
        };
        if let Outcome::Answered { status: 429 | 503, retry_after: Some(wait) } = outcome {
            lane.throttle(self.clock.precise() + wait.min(THROTTLED_MAX));
        }
        // Who says no is there as well.
        let refused = matches!(next, Following::DeadLetter { reason: Reason::Refused | Reason::Gone, .. });
        lane.sent(refused || next == Following::Delivered);
        lane.watch.follows(&delivery, &next, &attempt, self.clock.now());
        let mut settlement = settlement(&delivery, next, now, None);
        if was_deferred {
            settlement.cause = lane.last_failure();
        } else {
            settlement.attempt = Some(attempt);
        }
        let done = self.settle(settlement).await;
        lane.settled(delivery.id);
        done
    }

    /// Writes down what came of a delivery, and takes up what has waited behind it. A store that is busy or full is asked
    /// again: what happened has happened.
    pub(super) async fn settle(&self, settlement: Settlement) -> Result<(), StoreError> {
        self.write_down(Change::Settle(settlement)).await
    }

    pub(super) async fn write_down(&self, change: Change) -> Result<(), StoreError> {
        loop {
            let unit = Unit::of(change.clone());
            match self.store.commit(Urgency::Outcomes, unit).await {
                Ok(committed) => {
                    for kept in committed.ready {
                        // Boxed, because taking one up may end in settling it.
                        Box::pin(self.take_kept(kept)).await?;
                    }
                    return Ok(());
                }
                // In other hands: a restart has taken it up, and what it finds out counts.
                Err(StoreError::NotOurs(_)) => return Ok(()),
                Err(error @ StoreError::Fatal(_)) => return Err(error),
                Err(_) => tokio::time::sleep(STORE_AGAIN).await,
            }
        }
    }

    /// The transport has judged already; what the hub has slept through is no fault of the peer.
    pub(super) fn fault_of(&self, sent: &Result<Answer, NoAnswer>, began: Tick) -> Option<Fault> {
        match sent {
            // Nor is a token of the hub that has had its day.
            Ok(answer) if is_stale_token(answer.status, answer.fault) => Some(Fault::business()),
            Ok(answer) => answer.fault,
            Err(no_answer) => Some(self.pauses.judge(no_answer.fault, began)),
        }
    }

    /// A request that was under way while the process did not run, and has no answer, was as good as not sent.
    fn unless_paused(&self, outcome: Outcome, began: Tick) -> Outcome {
        let no_answer = matches!(outcome, Outcome::TimedOut | Outcome::Unreachable);
        if no_answer && self.pauses.has_paused_since(began) {
            return Outcome::Deferred { retry_after: None };
        }
        outcome
    }

    /// Writes down where a circuit stands, if it has moved by itself. If that fails, the next move is written; what is lost is how
    /// long it has been so.
    pub(super) async fn observe(&self, lane: &Lane) {
        if let Some(change) = self.look_at_circuit(lane, None) {
            let _ = self.store.commit(Urgency::Admin, Unit::of(change)).await;
        }
    }

    /// Writes down that a person has moved a circuit, and who, for this reason.
    pub(super) async fn moved_by_person(&self, lane: &Lane, reason: &str) {
        let target = format!("{} {}", lane.service().name, lane.state_word());
        let entry = Change::Audit(crate::service::audit::noted("circuit.move", target, self.now()));
        let changes = self.look_at_circuit(lane, Some(reason)).into_iter().chain([entry]).collect();
        let _ = self.store.commit(Urgency::Admin, Unit { changes }).await;
    }

    /// What is to be written of a circuit. A probe that is under way is part of the outage, and nothing to be written.
    fn look_at_circuit(&self, lane: &Lane, by_person: Option<&str>) -> Option<Change> {
        let (circuit, closes) = lane.moved(self.now(), by_person)?;
        circuit_moved(&circuit);
        if closes {
            self.hungry.notify_one();
        }
        (circuit.state != CircuitState::HalfOpen).then_some(Change::PutCircuit(circuit))
    }
}

fn settlement(
    delivery: &InHand,
    next: Following,
    at: crate::domain::time::Millis,
    attempt: Option<Attempt>,
) -> Settlement {
    let number = delivery.progress.failures + 1;
    let replays = delivery.replay_of.is_some();
    let (delivery, ordered) = (delivery.id, delivery.ordered);
    Settlement { delivery, next, ordered, at, attempt, cause: None, number, replays }
}

/// Says nothing about the peer, whose circuit it would count against, and nobody knows how far it came.
fn no_answer(panic: &Panicked) -> NoAnswer {
    NoAnswer {
        fault: Fault::business().ran(Ran::Unknown),
        error: panic.to_string(),
        impossible: false,
        too_large: false,
        no_memory: false,
        sent: None,
    }
}

/// What a panic means for the delivery that it was over.
fn over(panic: &Panicked) -> (Outcome, Attempt) {
    (Outcome::Panicked, Attempt { error: Some(panic.to_string()), ..Attempt::default() })
}

/// Whether the peer refused a token that was at hand: another one may be welcome.
fn is_stale_token(status: u16, fault: Option<Fault>) -> bool {
    status == 401 && fault.is_some_and(|fault| fault.is_transient())
}

/// Whether a circuit may have opened by it.
fn trips(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Answered { status, .. } => may_pass(status),
        Outcome::FailedProbe { .. } | Outcome::Unreachable | Outcome::TimedOut => true,
        _ => false,
    }
}

/// What a send means for its delivery.
fn outcome_of(sent: Result<Answer, Error<NoAnswer>>) -> (Outcome, Attempt) {
    let mut record = Attempt::default();
    let outcome = match sent {
        Ok(Answer { status, fault, headers, body, sent }) => {
            (record.answer, record.sent) = (Some(Said { status, headers, body }), sent);
            match fault {
                None => Outcome::Delivered,
                Some(_) if is_stale_token(status, fault) => {
                    record.error = Some("the token was refused; the next attempt has another".into());
                    Outcome::TokenRefused
                }
                Some(fault) => {
                    record.error = Some(fault.to_string());
                    Outcome::Answered { status, retry_after: fault.retry_after() }
                }
            }
        }
        Err(error) => {
            let impossible = error.last().is_some_and(|last| last.impossible);
            let outcome = match error.kind() {
                Kind::Rejected => Outcome::Deferred { retry_after: error.retry_after() },
                Kind::TimedOut => Outcome::TimedOut,
                _ if impossible => Outcome::Impossible,
                _ if error.decided_by() == Policy::AttemptTimeout => Outcome::TimedOut,
                _ => Outcome::Unreachable,
            };
            record.error = Some(error.last().map_or_else(|| error.to_string(), |last| last.error.clone()));
            record.sent = error.last().and_then(|last| last.sent.clone());
            outcome
        }
    };
    (outcome, record)
}
