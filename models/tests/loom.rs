//! The lock-free shells under every interleaving of two or three threads: `cargo xtask loom`.
//!
//! What the machine decides is proved by its property tests; here is proved that two threads which apply it at once never
//! both get what only one may have, and never lose what one of them reported.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, SystemTime};

use loom::sync::atomic::AtomicU32;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use seawall::breaker::{CircuitBreaker, Outcome, State, Tally, Ticket};
use seawall::bulkhead::{Entry, Gate, Permit};
use seawall::{Breaker, Budget, Bulkhead, Clock, Tick, Time, secs};

/// Time is not what is modelled here: it stands still while the threads run.
#[derive(Default)]
struct Still(AtomicU64);

impl Time for Still {
    fn now(&self) -> Tick {
        Tick::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    fn sleep_until(&self, _: Tick) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        unreachable!("nothing here sleeps")
    }
}

struct Circuit {
    time: StdArc<Still>,
    breaker: CircuitBreaker,
}

impl Circuit {
    fn new(breaker: Breaker) -> Self {
        let time = StdArc::new(Still::default());
        let breaker = breaker.build_with(Clock::custom(time.clone())).expect("a sound configuration");
        Circuit { time, breaker }
    }

    /// A circuit that has opened and whose cooldown is over.
    fn due(breaker: Breaker) -> Self {
        let circuit = Circuit::new(breaker);
        circuit.breaker.admit().expect("closed").finish(Outcome::Failure);
        circuit.wait(secs(31));
        circuit
    }

    fn wait(&self, time: Duration) {
        self.time.0.fetch_add(u64::try_from(time.as_nanos()).expect("short"), Ordering::Relaxed);
    }
}

fn both<T: Send + 'static>(
    circuit: &Arc<Circuit>,
    one: impl FnOnce(&Circuit) -> T + Send + 'static,
    other: impl FnOnce(&Circuit) -> T + Send + 'static,
) -> (T, T) {
    let (first, second) = (circuit.clone(), circuit.clone());
    let first = thread::spawn(move || one(&first));
    let other = other(&second);
    (first.join().expect("no panic"), other)
}

/// PRM-3, ENG-5: of two callers that come when the cooldown is over, one is the probe. Trap "check-then-act".
#[test]
fn prm_3_two_threads_never_both_get_the_only_probe() {
    loom::model(|| {
        let circuit = Arc::new(Circuit::due(Breaker::consecutive_failures(1)));
        let admit = |circuit: &Circuit| circuit.breaker.admit().map(std::mem::forget).is_ok();
        let (one, other) = both(&circuit, admit, admit);
        assert!(one != other, "one and only one is let through");
        assert_eq!(circuit.breaker.probes_under_way(), 1);
    });
}

/// PRM-3: with two places, three threads get two probes.
#[test]
fn prm_3_three_threads_get_two_places() {
    loom::model(|| {
        let circuit = Arc::new(Circuit::due(Breaker::consecutive_failures(1).probes(2).close_after(2)));
        let admit = |circuit: &Circuit| u32::from(circuit.breaker.admit().map(std::mem::forget).is_ok());
        let third = {
            let circuit = circuit.clone();
            thread::spawn(move || admit(&circuit))
        };
        let (one, other) = both(&circuit, admit, admit);
        assert_eq!(one + other + third.join().expect("no panic"), 2);
    });
}

/// PRM-4: a probe that is dropped while another caller asks is never lost: its place is taken or free.
#[test]
fn prm_4_a_probe_dropped_beside_an_admission_is_not_lost() {
    loom::model(|| {
        let circuit = Arc::new(Circuit::due(Breaker::consecutive_failures(1)));
        let admit_and_drop = |circuit: &Circuit| drop(circuit.breaker.admit());
        both(&circuit, admit_and_drop, admit_and_drop);
        assert_eq!((circuit.breaker.state(), circuit.breaker.probes_under_way()), (State::HalfOpen, 0));
        assert!(circuit.breaker.admit().is_ok());
    });
}

/// ENG-5: failures that two threads report at once are both counted, and open the circuit once.
#[test]
fn eng_5_no_failure_in_a_row_is_lost() {
    loom::model(|| {
        let circuit = Arc::new(Circuit::new(Breaker::consecutive_failures(2)));
        let fail =
            |circuit: &Circuit| circuit.breaker.admit().map(|ticket| ticket.finish(Outcome::Failure)).is_ok();
        both(&circuit, fail, fail);
        assert_eq!((circuit.breaker.state(), circuit.breaker.counts().opened), (State::Open, 1));
    });
}

/// ENG-5: the same in a window of calls: both outcomes are in it, whoever came first.
#[test]
fn eng_5_no_outcome_in_the_window_is_lost() {
    loom::model(|| {
        let circuit = Arc::new(Circuit::new(Breaker::failure_rate(60).over_calls(4).minimum_calls(4)));
        let report = |outcome| {
            move |circuit: &Circuit| circuit.breaker.admit().map(|ticket| ticket.finish(outcome)).is_ok()
        };
        both(&circuit, report(Outcome::Failure), report(Outcome::Success));
        let Tally { calls, failures, slow, .. } = circuit.breaker.window();
        assert_eq!((calls, failures, slow), (2, 1, 0));
    });
}

/// ENG-5: a window in which every failure counts opens when two threads fail at once.
#[test]
fn eng_5_two_failures_at_once_open_the_window() {
    loom::model(|| {
        let circuit = Arc::new(Circuit::new(Breaker::failure_rate(100).over_calls(2).minimum_calls(2)));
        let fail =
            |circuit: &Circuit| circuit.breaker.admit().map(|ticket| ticket.finish(Outcome::Failure)).is_ok();
        both(&circuit, fail, fail);
        assert_eq!(circuit.breaker.state(), State::Open);
    });
}

/// ENG-5: a ticket from before a transition is late, even if it comes back in the middle of it.
#[test]
fn eng_5_a_late_ticket_does_not_undo_a_transition() {
    loom::model(|| {
        let circuit = Arc::new(Circuit::new(Breaker::consecutive_failures(1)));
        let (one, other) = both(
            &circuit,
            |circuit| circuit.breaker.admit().map(|ticket| ticket.finish(Outcome::Success)).is_ok(),
            |circuit| circuit.breaker.admit().map(|ticket| ticket.finish(Outcome::Failure)).is_ok(),
        );
        assert!(other && circuit.breaker.state() == State::Open, "a success beside it closes nothing");
        let _ = one;
    });
}

/// PRM-3: the outcome of a probe and a new caller meet: the circuit closes, and nobody is let through beside the probe.
#[test]
fn prm_3_a_probe_that_succeeds_beside_a_caller_closes_the_circuit() {
    loom::model(|| {
        let circuit = Arc::new(Circuit::due(Breaker::consecutive_failures(1)));
        let finish = |result: Result<Ticket<'_>, _>| match result {
            Ok(ticket) => {
                ticket.finish(Outcome::Success);
                true
            }
            Err(_) => false,
        };
        let (one, other) = both(
            &circuit,
            move |circuit| finish(circuit.breaker.admit()),
            move |circuit| finish(circuit.breaker.admit()),
        );
        assert!(one || other);
        assert_eq!(circuit.breaker.state(), State::Closed);
    });
}

/// ENG-4, PRM-6: of two retries that see one token left, one gets it.
#[test]
fn prm_6_two_threads_never_both_get_the_last_token() {
    loom::model(|| {
        let clock = Clock::custom(StdArc::new(Still::default()));
        let budget = Budget::share_of_calls(100).floor_per_second(0.0).build_with(clock).expect("sound");
        budget.first_attempt();
        let budget = Arc::new(budget);
        let spend =
            |budget: &seawall::budget::RetryBudget| budget.try_spend().map(|token| token.spend()).is_some();
        let other = {
            let budget = budget.clone();
            thread::spawn(move || spend(&budget))
        };
        let (one, other) = (spend(&budget), other.join().expect("no panic"));
        assert!(one != other, "one and only one may retry");
    });
}

/// A gate for one, and how many are inside by our own count.
struct Place {
    gate: Gate,
    inside: AtomicU32,
}

impl Place {
    fn new() -> Arc<Self> {
        let clock = Clock::custom(StdArc::new(Still::default()));
        let gate = Bulkhead::max_calls(1).max_wait(secs(1)).max_waiting(2).build_with(clock).expect("sound");
        Arc::new(Place { gate, inside: AtomicU32::new(0) })
    }

    /// Goes in, waits if need be, and comes out. If nobody wakes it, loom finds that all threads sleep.
    fn pass(&self) {
        let permit = match self.gate.enter().expect("there is room in the line") {
            Entry::Inside(permit) => permit,
            Entry::Waiting(mut waiter) => {
                let bell = StdArc::new(Bell::default());
                let waker = Waker::from(bell.clone());
                loop {
                    match waiter.poll_enter(&Context::from_waker(&waker)) {
                        Poll::Ready(permit) => break permit,
                        Poll::Pending => bell.wait(),
                    }
                }
            }
        };
        self.be_inside(permit);
    }

    /// Goes in if that is possible without waiting, or if a place comes before it has given up.
    fn try_to_pass(&self) {
        match self.gate.enter().expect("there is room in the line") {
            Entry::Inside(permit) => self.be_inside(permit),
            Entry::Waiting(waiter) => {
                if let Ok(permit) = waiter.give_up() {
                    self.be_inside(permit);
                }
            }
        }
    }

    fn be_inside(&self, permit: Permit<'_>) {
        assert_eq!(self.inside.fetch_add(1, Ordering::AcqRel), 0, "two are inside");
        self.inside.fetch_sub(1, Ordering::AcqRel);
        drop(permit);
    }

    fn is_empty(&self) -> bool {
        self.gate.inside() == 0 && self.gate.waiting() == 0 && self.gate.try_enter().is_ok()
    }
}

/// Wakes a thread that waits.
#[derive(Default)]
struct Bell(Mutex<bool>, Condvar);

impl Bell {
    fn wait(&self) {
        let mut rung = self.0.lock().expect("nobody panics here");
        while !*rung {
            rung = self.1.wait(rung).expect("nobody panics here");
        }
        *rung = false;
    }
}

impl Wake for Bell {
    fn wake(self: StdArc<Self>) {
        *self.0.lock().expect("nobody panics here") = true;
        self.1.notify_one();
    }
}

/// ENG-6: two that come to a gate for one go through one after the other, and neither is forgotten.
#[test]
fn eng_6_two_threads_are_never_inside_together() {
    loom::model(|| {
        let place = Place::new();
        let other = {
            let place = place.clone();
            thread::spawn(move || place.pass())
        };
        place.pass();
        other.join().expect("no panic");
        assert!(place.is_empty());
    });
}

/// ENG-6: a place that is left while one waits for it and another gives up goes to the one who waits. Three threads with locks
/// have too many interleavings for all of them: these are the ones with four switches at most that no thread asked for.
#[test]
fn eng_6_a_place_is_not_lost_when_another_waiter_gives_up() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(|| {
        let place = Place::new();
        let first = place.gate.try_enter().expect("the first");
        let threads = [Place::pass as fn(&Place), Place::try_to_pass].map(|go| {
            let place = place.clone();
            thread::spawn(move || go(&place))
        });
        drop(first);
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert!(place.is_empty());
    });
}

/// ENG-6: a waiter that is dropped while a place is passed on to it leaves the place free.
#[test]
fn eng_6_a_waiter_dropped_beside_a_leaving_one_loses_no_place() {
    loom::model(|| {
        let place = Place::new();
        let other = {
            let place = place.clone();
            thread::spawn(move || drop(place.gate.enter()))
        };
        place.pass();
        other.join().expect("no panic");
        assert!(place.is_empty());
    });
}

/// ENG-6: whoever stands in line while the limit is raised is let in, whichever comes first.
#[test]
fn eng_6_a_limit_raised_beside_a_waiter_lets_it_in() {
    loom::model(|| {
        let place = Place::new();
        let first = place.gate.try_enter().expect("the first");
        let other = {
            let place = place.clone();
            thread::spawn(move || place.pass())
        };
        let two = Bulkhead::max_calls(2).max_wait(secs(1)).max_waiting(2);
        place.gate.reconfigure(&two).expect("sound");
        other.join().expect("no panic");
        drop(first);
        assert!(place.is_empty());
    });
}

/// ENG-6: a heavy one waits beside two that leave at once: it is let in when both have left, whoever of them was last.
#[test]
fn eng_6_a_heavy_waiter_is_let_in_by_the_last_who_leaves() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(|| {
        let clock = Clock::custom(StdArc::new(Still::default()));
        let gate = Bulkhead::max_calls(2).max_wait(secs(1)).max_waiting(2).build_with(clock).expect("sound");
        let gate = StdArc::new(gate);
        let leaving = [0, 1].map(|_| {
            let permit = gate.try_enter_owned().expect("a place");
            thread::spawn(move || drop(permit))
        });
        let permit = match gate.enter_many(2).expect("there is room in the line") {
            Entry::Inside(permit) => permit,
            Entry::Waiting(mut waiter) => {
                let bell = StdArc::new(Bell::default());
                let waker = Waker::from(bell.clone());
                loop {
                    match waiter.poll_enter(&Context::from_waker(&waker)) {
                        Poll::Ready(permit) => break permit,
                        Poll::Pending => bell.wait(),
                    }
                }
            }
        };
        assert_eq!((permit.weight(), gate.inside(), gate.waiting()), (2, 2, 0));
        drop(permit);
        leaving.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert!(gate.try_enter_many(2).is_ok());
    });
}

/// ENG-6: when a heavy one at the head gives up beside somebody who leaves, the light one behind it is let in.
#[test]
fn eng_6_a_heavy_waiter_that_gives_up_lets_the_next_one_in() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let clock = Clock::custom(StdArc::new(Still::default()));
        let gate = Bulkhead::max_calls(2).max_wait(secs(1)).max_waiting(2).build_with(clock).expect("sound");
        let place = Arc::new(Place { gate, inside: AtomicU32::new(0) });
        let held = [0, 1].map(|_| place.gate.try_enter().expect("a place"));
        let heavy = place.gate.enter_many(2).expect("there is room in the line");
        let light = {
            let place = place.clone();
            thread::spawn(move || place.pass())
        };
        let [one, other] = held;
        drop(one);
        drop(heavy);
        light.join().expect("no panic");
        drop(other);
        assert!(place.is_empty());
    });
}

/// ENG-5: an answer and a caller who leaves early, at once: neither is lost, and no state is torn.
#[test]
fn eng_5_an_abandoned_probe_beside_an_answer_is_weighed() {
    loom::model(|| {
        let circuit = Arc::new(Circuit::due(Breaker::consecutive_failures(1).probes(2).close_after(2)));
        let abandon = |circuit: &Circuit| drop(circuit.breaker.admit());
        let answer =
            |circuit: &Circuit| circuit.breaker.admit().map_or((), |ticket| ticket.finish(Outcome::Success));
        both(&circuit, abandon, answer);
        assert_eq!((circuit.breaker.state(), circuit.breaker.probes_under_way()), (State::HalfOpen, 0));
        assert!(circuit.breaker.admit().is_ok());
    });
}

/// ENG-6: a place that another thread has left and parked is found before anybody is refused, and N stays N.
#[test]
fn eng_6_a_place_parked_by_another_thread_is_found() {
    loom::model(|| {
        let clock = Clock::custom(StdArc::new(Still::default()));
        let gate = Bulkhead::max_calls(1).build_with(clock).expect("sound");
        let place = Arc::new(Place { gate, inside: AtomicU32::new(0) });
        let other = {
            let place = place.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    if let Ok(permit) = place.gate.try_enter() {
                        place.be_inside(permit);
                    }
                }
            })
        };
        if let Ok(permit) = place.gate.try_enter() {
            place.be_inside(permit);
        }
        other.join().expect("no panic");
        assert!(place.is_empty());
    });
}
