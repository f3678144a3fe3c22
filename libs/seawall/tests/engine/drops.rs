//! Futures that are dropped or panic at every point: nothing is lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

use seawall::breaker::{Scope, State};
use seawall::{Backoff, Breaker, Budget, Fault, Guard, GuardBuilder, Retry, millis, secs};
use seawall_testkit::{Dropped, ManualClock, Script, Step, drop_at_every_poll, run};

struct Scene {
    hands: ManualClock,
    guard: Guard,
    script: Script,
}

fn scene(builder: impl Fn(GuardBuilder) -> GuardBuilder, steps: &[Step]) -> Scene {
    let hands = ManualClock::new();
    let guard = builder(Guard::builder("scene").clock(hands.clock()).seed(3)).build().unwrap();
    let script = Script::new(&hands, steps.iter().copied());
    Scene { hands, guard, script }
}

impl Scene {
    fn call(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async { drop(self.guard.idempotent().call(|attempt| self.script.attempt(attempt)).await) })
    }

    fn at_rest(&self, dropped: Dropped) {
        assert_eq!(self.script.under_way(), 0, "{dropped:?}: an attempt goes on");
        assert_eq!(self.hands.sleepers_waiting(), 0, "{dropped:?}: a timer goes on");
        if let Some(breaker) = self.guard.breaker() {
            assert_eq!(breaker.probes_under_way(), 0, "{dropped:?}: a probe is lost");
        }
        if let Some(budget) = self.guard.budget() {
            let retries = (self.script.attempts() as u64).saturating_sub(1);
            assert!(budget.in_window().1 <= retries, "{dropped:?}: a token is lost");
        }
    }
}

fn everything(builder: GuardBuilder) -> GuardBuilder {
    builder
        .call_timeout(secs(30))
        .attempt_timeout(secs(3))
        .retry(Retry::max_attempts(4).backoff(Backoff::exponential(millis(100)).no_jitter()))
        .breaker(Breaker::consecutive_failures(100))
}

/// PRM-4, ENG-4: through success, retries, back-off and timeouts: dropped after each poll, all is given back.
#[test]
fn prm_4_a_call_dropped_at_any_poll_gives_everything_back() {
    let steps = [
        Step::FailAfter(millis(10), Fault::io()),
        Step::Fail(Fault::unreachable()),
        Step::Hang,
        Step::OkAfter(millis(20)),
    ];
    let polls = drop_at_every_poll(
        || scene(everything, &steps),
        |scene| scene.call(),
        |scene| {
            scene.hands.advance_to_next();
        },
        Scene::at_rest,
    );
    assert!(polls >= 6, "the scenario suspends often enough to mean something: {polls} polls");
}

/// PRM-4, PRM-3: the only probe of a half-open circuit is never lost, wherever its call is dropped.
#[test]
fn prm_4_a_dropped_probe_frees_its_place() {
    for scope in [Scope::Attempt, Scope::Call] {
        let make = || {
            let scene = scene(
                |builder| {
                    let breaker = Breaker::consecutive_failures(1).cooldown(secs(10)).scope(scope);
                    let retry = Retry::max_attempts(2)
                        .backoff(Backoff::constant(secs(11)).no_jitter())
                        .budget(Budget::default());
                    builder.retry(retry).attempt_timeout(secs(3)).breaker(breaker)
                },
                &[Step::Fail(Fault::io()), Step::OkAfter(secs(1)), Step::FailAfter(millis(1), Fault::io())],
            );
            scene.guard.breaker().unwrap().admit().unwrap().finish(seawall::breaker::Outcome::Failure);
            scene.hands.advance(secs(10));
            scene
        };
        drop_at_every_poll(
            make,
            |scene| scene.call(),
            |scene| {
                scene.hands.advance_to_next();
            },
            |scene, dropped| {
                scene.at_rest(dropped);
                let breaker = scene.guard.breaker().unwrap();
                assert!(
                    breaker.state() != State::HalfOpen || breaker.admit().is_ok(),
                    "{dropped:?}: wedged half-open"
                );
            },
        );
    }
}

/// PRM-4, ENG-4: a token goes back if the retry never starts: dropped in the back-off, refused by the breaker, out of time.
#[test]
fn eng_4_a_retry_that_never_starts_costs_no_token() {
    let scene = scene(everything, &[Step::Fail(Fault::io()), Step::Fail(Fault::io())]);
    let mut call = scene.call();
    assert!(seawall_testkit::poll_once(call.as_mut()).is_pending());
    assert_eq!(scene.guard.budget().unwrap().in_window(), (1, 1), "the token is taken during the back-off");
    drop(call);
    assert_eq!(scene.guard.budget().unwrap().in_window(), (1, 0));

    let mut call = scene.call();
    assert!(seawall_testkit::poll_once(call.as_mut()).is_pending());
    scene.guard.breaker().unwrap().force_open("in the middle of a back-off");
    run(&scene.hands, call);
    assert_eq!(scene.guard.budget().unwrap().in_window(), (2, 0));
}

/// PRM-4, ENG-5: a panic in the operation, at its start or in a later poll, frees the probe and is a failure.
#[test]
fn prm_4_a_panic_gives_everything_back_and_counts_as_a_failure() {
    for steps in [vec![Step::Panic], vec![Step::Fail(Fault::io()), Step::Panic]] {
        let scene = scene(everything, &steps);
        let panicked = catch_unwind(AssertUnwindSafe(|| run(&scene.hands, scene.call())));
        assert!(panicked.is_err());
        scene.at_rest(Dropped { after_polls: 0, ended: false });
        assert_eq!(scene.guard.breaker().unwrap().counts().panicked, 1);
        assert!(seawall::Deadline::current().is_none(), "the ambient deadline of the panicked call is gone");
    }
    let scene = scene(|builder| builder.breaker(Breaker::consecutive_failures(1)), &[]);
    let start_panics = || {
        let operation = |_| -> std::future::Ready<Result<(), Fault>> { panic!("before there is a future") };
        run(&scene.hands, scene.guard.call(operation))
    };
    assert!(catch_unwind(AssertUnwindSafe(start_panics)).is_err());
    assert_eq!(scene.guard.breaker().unwrap().state(), State::Open);
}

/// ENG-5: a panic elsewhere in the task, which drops the call on its way, is not blamed on the peer.
#[test]
fn eng_5_a_panic_elsewhere_is_no_failure_of_the_peer() {
    let scene = scene(|builder| builder.breaker(Breaker::consecutive_failures(1)), &[Step::Hang]);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut call = scene.call();
        let _ = seawall_testkit::poll_once(call.as_mut());
        panic!("in another part of the task");
    }));
    assert!(panicked.is_err());
    let breaker = scene.guard.breaker().unwrap();
    assert_eq!((breaker.state(), breaker.counts().panicked), (State::Closed, 0));
}

/// PRM-4: a future that is never polled does nothing.
#[test]
fn prm_4_nothing_happens_before_the_first_poll() {
    let scene = scene(everything, &[]);
    drop(scene.call());
    assert_eq!((scene.script.attempts(), scene.guard.budget().unwrap().in_window()), (0, (0, 0)));
    assert_eq!(scene.hands.sleepers_waiting(), 0);
}

/// ENG-11: a guard is shared between threads, and its calls move between them.
#[test]
fn eng_11_guards_are_shared_and_calls_are_sent() {
    fn shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    fn sent<T: Send>(_: &T) {}
    let guard = Guard::builder("shared").breaker(Breaker::default()).build().unwrap();
    shared(&guard);
    sent(&guard.idempotent().call(async |_| Ok::<_, Fault>(1)));
    sent(
        &guard.breaker().unwrap().call(|_| seawall::breaker::Outcome::Success, async { Ok::<_, Fault>(()) }),
    );
}

/// PRM-4, PRM-3: the circuit's own `call`, dropped after each poll, keeps no probe.
#[test]
fn prm_4_a_circuits_own_call_dropped_at_any_poll_gives_its_place_back() {
    let polls = drop_at_every_poll(
        || {
            let scene = scene(|builder| builder.breaker(Breaker::consecutive_failures(1)), &[]);
            scene.guard.breaker().unwrap().admit().unwrap().finish(seawall::breaker::Outcome::Failure);
            scene.hands.advance(secs(30));
            scene
        },
        |scene| {
            let three_yields = async {
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
                Ok::<_, Fault>(())
            };
            let call =
                scene.guard.breaker().unwrap().call(|_| seawall::breaker::Outcome::Success, three_yields);
            Box::pin(async {
                let _ = call.await;
            })
        },
        |_| {},
        |scene, dropped| {
            let breaker = scene.guard.breaker().unwrap();
            let expected = match dropped {
                Dropped { after_polls: 0, .. } => State::Open,
                Dropped { ended: true, .. } => State::Closed,
                _ => State::HalfOpen,
            };
            assert_eq!((breaker.state(), breaker.probes_under_way()), (expected, 0), "{dropped:?}");
        },
    );
    assert_eq!(polls, 4);
}
