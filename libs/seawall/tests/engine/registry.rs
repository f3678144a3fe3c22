//! Guards by name, families of guards, and changing them while they run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use seawall::breaker::{Outcome, State};
use seawall::event::Events;
use seawall::{
    Attempt, Backoff, Breaker, Budget, Bulkhead, Chaos, Clock, Fault, Guard, GuardBuilder, Hedge, Kind,
    RateLimit, Registry, Retry, millis, secs,
};
use seawall_testkit::{ManualClock, Script, Step, poll_once, run};

fn names(events: &mut Events) -> Vec<&'static str> {
    std::iter::from_fn(|| events.try_next()).map(|event| event.what.name()).collect()
}

/// ENG-13: guards are found by their names, listed, and forgotten; a name is taken once.
#[test]
fn eng_13_guards_are_found_by_name() {
    let registry = Registry::new();
    let payments = registry.register(Guard::builder("payments").breaker(Breaker::default())).unwrap();
    registry.register(Guard::builder("mail")).unwrap();
    registry.register_keyed(Guard::builder("shops"), 10).unwrap();
    assert_eq!(registry.names(), ["mail", "payments", "shops"]);
    assert!(registry.guard("payment").is_none() && registry.guard("shops").is_none());
    assert!(registry.keyed("mail").is_none());

    let taken = registry.register(Guard::builder("mail")).unwrap_err();
    assert!(taken.to_string().contains("there is one of this name already"), "{taken}");

    // What was found is the same guard, not a copy.
    payments.breaker().unwrap().force_open("maintenance");
    assert_eq!(registry.guard("payments").unwrap().breaker().unwrap().state(), State::ForcedOpen);
    assert_eq!(registry.troubled(), [("payments".to_owned(), State::ForcedOpen)]);
    assert!(registry.remove("payments") && !registry.remove("payments"));
    assert!(registry.troubled().is_empty());
}

fn trip(guard: &Guard) {
    while guard.breaker().unwrap().state() == State::Closed {
        guard.breaker().unwrap().admit().unwrap().finish(Outcome::Failure);
    }
}

/// ENG-13: a family is bounded, gives each key its own circuit, and never lets one go that is not closed.
#[test]
fn eng_13_a_family_is_bounded_and_keeps_open_circuits() {
    let registry = Registry::new();
    let template = Guard::builder("hosts").breaker(Breaker::consecutive_failures(1));
    let hosts = registry.register_keyed(template, 4).unwrap();
    trip(&hosts.guard("down 1"));
    trip(&hosts.guard("down 2"));
    for n in 0..1_000 {
        let guard = hosts.guard(&format!("host {n}"));
        assert_eq!(guard.breaker().unwrap().state(), State::Closed, "circuits are not shared");
        assert_eq!(guard.name(), format!("hosts[host {n}]"));
    }
    assert_eq!((hosts.guards().len(), hosts.evicted(), hosts.overflowed()), (4, 998, 0));
    for down in ["down 1", "down 2"] {
        assert_eq!(hosts.guard(down).breaker().unwrap().state(), State::Open, "{down} was forgotten");
    }
}

/// ENG-13: a guard that somebody holds stays, so that there are never two of one key at work.
#[test]
fn eng_13_a_family_keeps_what_is_in_use() {
    let registry = Registry::new();
    let hosts = registry.register_keyed(Guard::builder("hosts").bulkhead(Bulkhead::max_calls(1)), 2).unwrap();
    let held = hosts.guard("busy");
    let _permit = held.bulkhead().unwrap().try_enter().unwrap();
    for n in 0..100 {
        let _ = hosts.guard(&format!("host {n}"));
    }
    assert_eq!(hosts.guard("busy").bulkhead().unwrap().inside(), 1);
}

/// ENG-13: where no guard can make room, a key gets the shared one: all policies but the breaker.
#[test]
fn eng_13_a_family_of_open_circuits_still_answers() {
    let hands = ManualClock::new();
    let registry = Registry::builder().clock(hands.clock()).build();
    let template = Guard::builder("hosts").attempt_timeout(secs(1)).breaker(Breaker::consecutive_failures(1));
    let hosts = registry.register_keyed(template, 2).unwrap();
    trip(&hosts.guard("down 1"));
    trip(&hosts.guard("down 2"));
    let other = hosts.guard("new");
    assert_eq!((other.name(), other.breaker().is_none(), hosts.overflowed()), ("hosts[*]", true, 1));
    assert!(other.explain().contains("attempt timeout 1s"));
    assert!(run(&hands, other.call(async |_| Ok::<_, Fault>(()))).is_ok());
    // When one has recovered, its place is to be had again, a moment later.
    hosts.guard("down 1").breaker().unwrap().reset("it is back");
    assert_eq!(hosts.guard("new").name(), "hosts[*]");
    hands.advance(millis(10));
    let own = hosts.guard("new");
    assert_eq!(own.name(), "hosts[new]");
    // A host that is gone for good is forgotten on request, open circuit or not.
    assert!(hosts.forget("down 2") && !hosts.forget("down 2"));
    assert_eq!(hosts.guard("newer").name(), "hosts[newer]");
}

/// ENG-13: a family is changed as a whole, those to come included, and a lower bound is reached as others come.
#[test]
fn eng_13_a_family_is_changed_as_a_whole() {
    let registry = Registry::new();
    let breaker = Breaker::consecutive_failures(3);
    let hosts = registry.register_keyed(Guard::builder("hosts").breaker(breaker.clone()), 8).unwrap();
    (0..8).for_each(|n| drop(hosts.guard(&format!("host {n}"))));
    trip(&hosts.guard("host 3"));
    let new = Guard::builder("hosts").breaker(breaker.cooldown(secs(7))).attempt_timeout(secs(2));
    assert!(hosts.reconfigure(new.clone(), 4).unwrap());
    assert!(!hosts.reconfigure(new, 4).unwrap(), "nothing changed");
    assert_eq!(hosts.guard("host 3").breaker().unwrap().state(), State::Open);
    (100..110).for_each(|n| drop(hosts.guard(&format!("host {n}"))));
    assert_eq!(hosts.guards().len(), 4);
    for guard in hosts.guards() {
        let text = guard.explain();
        assert!(text.contains("for 7s") && text.contains("attempt timeout 2s"), "{text}");
    }
    let wrong = hosts.reconfigure(Guard::builder("hosts").attempt_timeout(secs(0)), 4).unwrap_err();
    assert_eq!(wrong.problems()[0].path(), "attempt_timeout");
    assert!(
        hosts.guard("host 3").explain().contains("attempt timeout 2s"),
        "a refused change changes nothing"
    );
}

fn rich(attempts: u32) -> GuardBuilder {
    Guard::builder("peer")
        .attempt_timeout(secs(1))
        .retry(
            Retry::max_attempts(attempts)
                .backoff(Backoff::constant(millis(10)).no_jitter())
                .budget(Budget::share_of_calls(50).floor_per_second(1.0)),
        )
        .breaker(Breaker::consecutive_failures(5).cooldown(secs(30)))
        .rate_limit(RateLimit::calls(100).per(secs(100)))
        .bulkhead(Bulkhead::max_calls(4))
        .hedge(Hedge::after(millis(900)))
        .chaos(Chaos::new().enabled(false))
}

/// ENG-12. Trap "live reload that rebuilds the pipeline and forgets the breaker's state": windows, budgets and permits
/// survive a reload.
#[test]
fn eng_12_a_change_keeps_circuits_budgets_and_permits() {
    let hands = ManualClock::new();
    let guard = rich(3).clock(hands.clock()).seed(1).build().unwrap();
    let script = Script::new(&hands, [Step::Fail(Fault::io()), Step::Fail(Fault::io()), Step::Ok]);
    run(&hands, guard.idempotent().call(|attempt| script.attempt(attempt))).unwrap();
    let hanging = Script::new(&hands, [Step::Hang]);
    let mut under_way = std::pin::pin!(guard.call(|attempt| hanging.attempt(attempt)));
    assert!(poll_once(under_way.as_mut()).is_pending());
    trip(&guard);
    let before = guard.budget().unwrap().in_window();

    let other = rich(5)
        .attempt_timeout(secs(2))
        .breaker(Breaker::consecutive_failures(9).cooldown(secs(60)))
        .bulkhead(Bulkhead::max_calls(2))
        .rate_limit(RateLimit::calls(200).per(secs(100)));
    assert!(guard.reconfigure(other.clone()).unwrap());
    assert!(!guard.reconfigure(other).unwrap(), "the same again changes nothing");
    assert_eq!(guard.breaker().unwrap().state(), State::Open);
    assert_eq!(guard.budget().unwrap().in_window(), before);
    assert_eq!((guard.bulkhead().unwrap().inside(), guard.bulkhead().unwrap().limit()), (1, 2));
    let text = guard.explain();
    for part in
        ["attempt timeout 2s", "5 attempts", "9 failures in a row, for 60s", "2 calls at once", "200 calls"]
    {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    // The call under way keeps the timeout that it began with, and gives its place back.
    hands.advance(millis(1_001));
    assert!(poll_once(under_way.as_mut()).is_ready());
    assert_eq!(guard.bulkhead().unwrap().inside(), 0);
    // The cooldown that is running is measured by the new settings.
    hands.advance(secs(40));
    let refused = run(&hands, guard.call(async |_| Ok::<_, Fault>(()))).unwrap_err();
    assert_eq!(refused.kind(), Kind::Rejected);
}

/// ENG-12: policies come and go while the guard runs.
#[test]
fn eng_12_policies_come_and_go() {
    let hands = ManualClock::new();
    let guard = rich(3).clock(hands.clock()).build().unwrap();
    let permit = guard.bulkhead().unwrap().try_enter().unwrap();
    trip(&guard);
    assert!(guard.reconfigure(Guard::builder("peer").no_retry()).unwrap());
    assert!(guard.breaker().is_none() && guard.bulkhead().is_none() && guard.budget().is_none());
    run(&hands, guard.call(async |_| Ok::<_, Fault>(()))).unwrap();
    drop(permit);
    assert!(guard.reconfigure(rich(2)).unwrap());
    assert_eq!(guard.breaker().unwrap().state(), State::Closed, "a breaker that is new begins anew");
    assert_eq!(guard.bulkhead().unwrap().inside(), 0);
}

/// ENG-12: a change that can't work is refused as a whole.
#[test]
fn eng_12_a_wrong_change_changes_nothing() {
    let guard = rich(3).build().unwrap();
    let before = guard.explain();
    let wrong = rich(0).bulkhead(Bulkhead::max_calls(0)).attempt_timeout(secs(9)).call_timeout(secs(3));
    let error = guard.reconfigure(wrong).unwrap_err();
    let paths: Vec<_> = error.problems().iter().map(seawall::Problem::path).collect();
    assert_eq!(paths.len(), 3, "{error}");
    assert_eq!(guard.explain(), before);
}

/// ENG-12: chaos that was switched by hand stays so, unless the configuration changes its mind; what hedging has learned
/// stays.
#[test]
fn eng_12_what_a_person_switched_stays() {
    let guard = rich(3).chaos(Chaos::new().fault_rate(100)).build().unwrap();
    guard.chaos().unwrap().switch(false);
    guard.reconfigure(rich(3).chaos(Chaos::new().fault_rate(50))).unwrap();
    assert!(!guard.chaos().unwrap().is_on());
    guard.reconfigure(rich(3).chaos(Chaos::new().fault_rate(50).enabled(false))).unwrap();
    guard.reconfigure(rich(3).chaos(Chaos::new().fault_rate(50))).unwrap();
    assert!(guard.chaos().unwrap().is_on());
    guard.reconfigure(rich(3).hedge(Hedge::after(millis(300)))).unwrap();
    assert_eq!(guard.hedger().unwrap().delay(), millis(300));
}

/// ENG-12, PRM-3, PRM-4: a thousand changes during ten million calls on two threads. No call fails because of them, permits
/// balance, and a circuit that is open stays open.
#[test]
fn eng_12_a_thousand_reloads_under_load() {
    let (calls_each, reloads) = (5_000_000, 1_000);
    let variants = [
        rich(3).rate_limit(RateLimit::calls(u32::MAX).per(secs(86_400)).burst(u32::MAX)),
        rich(5)
            .attempt_timeout(secs(2))
            .breaker(Breaker::failure_rate(50).over_time(secs(10)))
            .bulkhead(Bulkhead::max_calls(9).max_wait(secs(1)))
            .rate_limit(RateLimit::calls(u32::MAX).per(secs(86_400)).burst(u32::MAX)),
        Guard::builder("peer").no_retry().bulkhead(Bulkhead::max_calls(3)),
        rich(2)
            .breaker(Breaker::failure_rate(20).over_calls(50))
            .rate_limit(RateLimit::calls(u32::MAX).per(secs(86_400)).burst(u32::MAX / 2)),
    ];
    let guard = variants[0].clone().clock(Clock::system()).build().unwrap();
    let open = rich(3).clock(Clock::system()).build().unwrap();
    trip(&open);
    let (done, made) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                runtime.block_on(async {
                    for n in 0..calls_each {
                        let suspends = n % 64 == 0;
                        let operation = async |_: Attempt| {
                            if suspends {
                                tokio::task::yield_now().await;
                            }
                            Ok::<_, Fault>(n)
                        };
                        let answer = guard.idempotent().call(operation).await;
                        assert!(answer.is_ok(), "call {n} failed because of a reload: {answer:?}");
                        made.fetch_add(1, Ordering::Relaxed);
                    }
                });
            });
        }
        scope.spawn(|| {
            let total = 2 * calls_each;
            for reload in 0..reloads {
                // Spread evenly over the calls.
                while made.load(Ordering::Relaxed) < total * reload / reloads {
                    std::thread::yield_now();
                }
                let next = variants[(reload as usize + 1) % variants.len()].clone();
                assert!(guard.reconfigure(next).unwrap(), "each reload is a change");
                assert!(open.reconfigure(rich(3 + u32::try_from(reload).unwrap() % 2)).is_ok());
                assert_eq!(open.breaker().unwrap().state(), State::Open);
            }
            done.store(true, Ordering::Relaxed);
        });
    });
    assert!(done.into_inner());
    assert_eq!(made.into_inner(), 2 * calls_each);
    assert_eq!(guard.bulkhead().map_or(0, |gate| gate.inside()), 0, "permits balance");
    assert_eq!(guard.breaker().map_or(0, |circuit| circuit.probes_under_way()), 0);
}

/// ENG-12: what was counted of probes under one way of judging them means nothing under another.
#[test]
fn eng_12_probes_that_are_judged_otherwise_begin_anew() {
    let hands = ManualClock::new();
    let each =
        Breaker::consecutive_failures(1).cooldown(secs(10)).probes(4).close_after(4).probe_timeout(secs(60));
    let guard = Guard::builder("peer").no_retry().clock(hands.clock()).breaker(each).build().unwrap();
    let breaker = guard.breaker().unwrap();
    breaker.admit().unwrap().finish(Outcome::Failure);
    hands.advance(secs(11));
    let (one, two) = (breaker.admit().unwrap(), breaker.admit().unwrap());
    hands.advance(secs(45));
    one.finish(Outcome::Success);
    let together = Breaker::consecutive_failures(1)
        .cooldown(secs(10))
        .probes(4)
        .judge_probes_together()
        .probe_timeout(secs(60));
    guard.reconfigure(Guard::builder("peer").no_retry().breaker(together)).unwrap();
    two.finish(Outcome::Success);
    assert_eq!(breaker.state(), State::HalfOpen, "no probe has failed");
}

/// ENG-12, ENG-13: a guard that loses its open breaker says so, and what its calls under way come to opens nothing.
#[test]
fn eng_13_a_circuit_that_is_taken_out_is_open_no_longer() {
    let guard = Guard::builder("peer").breaker(Breaker::consecutive_failures(1)).build().unwrap();
    let mut events = guard.subscribe(10);
    let under_way = guard.breaker().unwrap().admit().unwrap();
    let second = guard.breaker().unwrap().admit().unwrap();
    second.finish(Outcome::Failure);
    guard.reconfigure(Guard::builder("peer")).unwrap();
    assert_eq!(names(&mut events), ["opened", "closed", "reconfigured"]);
    under_way.finish(Outcome::Failure);
    assert_eq!(names(&mut events), ["late"]);
    guard.reconfigure(Guard::builder("peer").breaker(Breaker::consecutive_failures(1))).unwrap();
    let old = guard.breaker().unwrap();
    guard.reconfigure(Guard::builder("peer")).unwrap();
    names(&mut events);
    old.admit().unwrap().finish(Outcome::Failure);
    assert_eq!(names(&mut events), Vec::<&str>::new(), "nobody has this circuit any more");
}

/// ENG-13: a circuit that opens in the very moment in which a place is looked for is not forgotten.
#[test]
fn eng_13_a_circuit_that_opens_while_a_place_is_looked_for_is_kept() {
    let registry = Registry::new();
    let hosts = registry
        .register_keyed(Guard::builder("hosts").breaker(Breaker::consecutive_failures(1)), 2)
        .unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0_u64;
            while !done.load(Ordering::Relaxed) {
                n += 1;
                drop(hosts.guard(&format!("host {n}")));
            }
        });
        let mut forgotten = 0;
        for _ in 0..20_000 {
            let guard = hosts.guard("down");
            if guard.name() == "hosts[*]" {
                continue;
            }
            guard.breaker().unwrap().admit().unwrap().finish(Outcome::Failure);
            drop(guard);
            let guard = hosts.guard("down");
            forgotten += u32::from(guard.breaker().unwrap().state() == State::Closed);
            guard.breaker().unwrap().reset("again");
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(forgotten, 0, "open circuits were forgotten");
    });
}

/// ENG-13: a bound that is lowered far is reached by a few guards at a time, so that no call pays for all of them.
#[test]
fn eng_13_a_bound_that_is_lowered_far_is_reached_in_steps() {
    let registry = Registry::new();
    let hosts = registry.register_keyed(Guard::builder("hosts").no_retry(), 30_000).unwrap();
    (0..30_000).for_each(|n| drop(hosts.guard(&format!("host {n}"))));
    hosts.reconfigure(Guard::builder("hosts").no_retry(), 2).unwrap();
    (0..3_000).for_each(|n| drop(hosts.guard(&format!("other {n}"))));
    assert_eq!(hosts.guards().len(), 2);
    assert_eq!(hosts.evicted(), 30_000 + 3_000 - 2 - hosts.overflowed());
}

/// ENG-12: failures in a row are forgotten where a rate is counted instead, like a window of another shape; when they count
/// again, old ones are not what opens the circuit.
#[test]
fn eng_12_failures_in_a_row_do_not_outlive_a_rate() {
    let row = || Guard::builder("peer").no_retry().breaker(Breaker::consecutive_failures(5));
    let guard = row().build().unwrap();
    let breaker = guard.breaker().unwrap();
    let settle = |outcome| breaker.admit().unwrap().finish(outcome);
    (0..4).for_each(|_| settle(Outcome::Failure));
    guard.reconfigure(row().breaker(Breaker::failure_rate(50).over_calls(100))).unwrap();
    (0..200).for_each(|_| settle(Outcome::Success));
    guard.reconfigure(row()).unwrap();
    settle(Outcome::Failure);
    assert_eq!(breaker.state(), State::Closed, "one failure after two hundred good calls");
}
