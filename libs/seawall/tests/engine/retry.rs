//! What is tried again, and what the caller is told.

use std::cell::{Cell, RefCell};
use std::io;

use seawall::{
    Attempt, Backoff, Breaker, Budget, Classify, Error, Fault, Guard, GuardBuilder, Key, Kind, Policy, Ran,
    Retry, Safety, fault, millis, secs,
};
use seawall_testkit::{ManualClock, Script, Step, run};

fn guard(hands: &ManualClock, builder: impl Fn(GuardBuilder) -> GuardBuilder) -> Guard {
    builder(Guard::builder("peer").clock(hands.clock()).seed(1)).build().unwrap()
}

fn quick(attempts: u32) -> Retry {
    Retry::max_attempts(attempts).backoff(Backoff::constant(millis(10)).no_jitter())
}

fn call(hands: &ManualClock, guard: &Guard, safety: Safety, script: &Script) -> Result<(), Error<Fault>> {
    let request = guard.classify(fault::Causes).safety(safety);
    run(hands, request.call(|attempt| script.attempt(attempt)))
}

/// ENG-3: a transient fault is never seen by the caller.
#[test]
fn eng_3_a_transient_fault_is_hidden() {
    let hands = ManualClock::new();
    let script = Script::new(&hands, [Step::Fail(Fault::io()), Step::Fail(Fault::timeout()), Step::Ok]);
    assert!(call(&hands, &guard(&hands, |b| b.retry(quick(3))), Safety::Idempotent, &script).is_ok());
    assert_eq!(script.attempts(), 3);
}

/// ENG-3: every attempt has its number and its depth, and all have one key.
#[test]
fn eng_3_attempts_are_numbered_and_share_a_key() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.retry(quick(3)));
    let script = Script::new(&hands, [Step::Fail(Fault::io()), Step::Fail(Fault::io()), Step::Ok, Step::Ok]);
    call(&hands, &guard, Safety::Keyed, &script).unwrap();
    call(&hands, &guard, Safety::Keyed, &script).unwrap();
    let told = script.told();
    assert_eq!(told.iter().map(Attempt::number).collect::<Vec<_>>(), [1, 2, 3, 1]);
    assert_eq!(told.iter().map(Attempt::depth).collect::<Vec<_>>(), [0, 1, 2, 0]);
    assert!(told[0].key() == told[1].key() && told[1].key() == told[2].key());
    assert_ne!(told[2].key(), told[3].key());
    let given = Key::from_u128(42);
    let seen = run(&hands, guard.key(given).call(async |attempt: Attempt| Ok::<_, Fault>(attempt.key())));
    assert_eq!(seen.unwrap(), given);
}

/// ENG-3. Trap "timeout = unknown outcome": what may have run is not sent again unless that is declared safe.
#[test]
fn eng_3_a_call_that_must_not_run_twice_is_sent_again_only_if_it_did_not_run() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.retry(quick(3)));
    let refused = Script::new(&hands, [Step::Fail(Fault::unreachable()), Step::Ok]);
    assert!(call(&hands, &guard, Safety::Once, &refused).is_ok());
    let reset = Script::new(&hands, [Step::Fail(Fault::io()), Step::Ok]);
    let error = call(&hands, &guard, Safety::Once, &reset).unwrap_err();
    assert_eq!(reset.attempts(), 1);
    assert_eq!((error.kind(), error.decided_by(), error.ran()), (Kind::Failed, Policy::Retry, Ran::Unknown));
    assert_eq!(error.to_string(), "peer: failed, and repeating it is not declared safe: i/o fault");
}

/// ENG-3: exhausted retries carry the number of attempts and the last fault; of all attempts the most doubtful decides
/// whether it ran.
#[test]
fn eng_3_exhausted_retries_say_what_happened() {
    let hands = ManualClock::new();
    let steps = [Step::Fail(Fault::io()), Step::Fail(Fault::unreachable()), Step::Fail(Fault::unreachable())];
    let script = Script::new(&hands, steps);
    let error = call(&hands, &guard(&hands, |b| b.retry(quick(3))), Safety::Idempotent, &script).unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (Kind::Exhausted, 3));
    assert_eq!((error.last_fault(), error.ran()), (Fault::unreachable(), Ran::Unknown));
    assert_eq!(error.to_string(), "peer: gave up after 3 attempts: i/o fault");
    assert_eq!(error.into_last(), Some(Fault::unreachable()));
}

/// ENG-4: an exhausted budget means no retry, and the error and a counter say so.
#[test]
fn eng_4_a_denied_retry_says_so() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.retry(quick(3).budget(Budget::share_of_calls(1).floor_per_second(0.0))));
    let script = Script::new(&hands, [Step::Fail(Fault::io())]);
    let error = call(&hands, &guard, Safety::Idempotent, &script).unwrap_err();
    assert_eq!((error.kind(), error.decided_by(), error.attempts()), (Kind::BudgetDenied, Policy::Budget, 1));
    assert_eq!(error.to_string(), "peer: gave up after 1 attempt, the retry budget is spent: i/o fault");
    assert_eq!(guard.budget().unwrap().denied(), 1);
}

/// ENG-3: `Retry-After` is waited for, up to the cap, and never past the deadline.
#[test]
fn eng_3_the_wait_that_the_peer_asks_for_is_honoured() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.call_timeout(secs(100)).retry(quick(2)));
    let took = |seconds| {
        let script = Script::new(&hands, [Step::Fail(Fault::throttled().after(secs(seconds))), Step::Ok]);
        let start = hands.now();
        let result = call(&hands, &guard, Safety::Once, &script);
        (result.is_ok(), hands.now().since(start))
    };
    let (ok, waited) = took(7);
    assert!(ok && waited >= secs(7) && waited <= millis(7_700), "{waited:?}");
    assert_eq!(took(3_600), (true, secs(60)));
    let short =
        Guard::builder("short").call_timeout(secs(5)).clock(hands.clock()).retry(quick(2)).build().unwrap();
    let script = Script::new(&hands, [Step::Fail(Fault::throttled().after(secs(7)))]);
    let error = call(&hands, &short, Safety::Once, &script).unwrap_err();
    assert_eq!((error.kind(), error.retry_after()), (Kind::TimedOut, Some(secs(7))));
}

/// ENG-3: a refusal by the circuit is not retried by default; if asked for, it waits until the circuit says.
#[test]
fn eng_3_a_local_rejection_is_not_retried_unless_asked_for() {
    let hands = ManualClock::new();
    let make = |retry: Retry| {
        let breaker = Breaker::consecutive_failures(1).cooldown(secs(5));
        guard(&hands, |b| b.call_timeout(secs(60)).retry(retry.clone()).breaker(breaker.clone()))
    };
    let opened = make(quick(3));
    let script = Script::new(&hands, [Step::Fail(Fault::io())]);
    let error = call(&hands, &opened, Safety::Idempotent, &script).unwrap_err();
    assert_eq!((error.kind(), error.decided_by(), error.attempts()), (Kind::Rejected, Policy::Breaker, 1));
    assert_eq!(
        (error.ran(), error.last()),
        (Ran::Unknown, Some(&Fault::io())),
        "the first attempt is not forgotten"
    );
    let error = call(&hands, &opened, Safety::Idempotent, &script).unwrap_err();
    assert_eq!((error.kind(), error.attempts(), error.ran()), (Kind::Rejected, 0, Ran::No));
    assert!(error.retry_after().unwrap() > secs(4));
    assert!(
        error.to_string().starts_with("peer: rejected by the breaker after no attempt; try again in 5s"),
        "{error}"
    );

    let patient = make(quick(3).on_rejection());
    let script = Script::new(&hands, [Step::Fail(Fault::io()), Step::Ok]);
    let start = hands.now();
    assert!(call(&hands, &patient, Safety::Idempotent, &script).is_ok());
    assert!(hands.now().since(start) >= secs(5) - millis(5));
    assert_eq!(patient.budget().unwrap().in_window(), (1, 1), "a refusal costs no token of its own");
}

/// ENG-3. Trap "retries at several layers multiply": what a guard further in has spent its retries on is not retried again,
/// and a layer can leave retrying to the one around it altogether.
#[test]
fn eng_3_nested_guards_do_not_multiply() {
    let hands = ManualClock::new();
    let attempts = |inner: Retry| {
        let outer = guard(&hands, |b| b.call_timeout(secs(60)).retry(quick(3)));
        let inner = guard(&hands, |b| b.call_timeout(secs(60)).retry(inner.clone()));
        let (sent, depths) = (Cell::new(0), RefCell::new(Vec::new()));
        let operation = async |_| {
            let leaf = async |attempt: Attempt| {
                sent.set(sent.get() + 1);
                depths.borrow_mut().push(attempt.depth());
                Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionReset))
            };
            inner.idempotent().call(leaf).await
        };
        let error = run(&hands, outer.idempotent().call(operation)).unwrap_err();
        (sent.get(), error.attempts(), depths.into_inner())
    };
    assert_eq!(
        attempts(quick(3)),
        (3, 1, vec![0, 1, 2]),
        "the inner guard retries, the outer does not repeat it"
    );
    assert_eq!(
        attempts(quick(3).leave_to_outer()),
        (3, 3, vec![0, 1, 2]),
        "the inner guard leaves it to the outer"
    );
}

/// ENG-1, ENG-5: what a guard further in refused says nothing about the peer of this one.
#[test]
fn eng_5_a_rejection_further_in_is_ignored_and_frees_the_probe() {
    let hands = ManualClock::new();
    let outer = guard(&hands, |b| b.no_retry().breaker(Breaker::consecutive_failures(1).cooldown(secs(1))));
    let inner = guard(&hands, |b| b.no_retry().breaker(Breaker::consecutive_failures(1)));
    inner.breaker().unwrap().force_open("down");
    let through_both = || {
        let operation = async |_| inner.call(async |_| Ok::<_, Fault>(())).await;
        run(&hands, outer.call(operation)).unwrap_err()
    };
    for _ in 0..10 {
        assert_eq!(through_both().last_fault(), Fault::rejected());
    }
    let breaker = outer.breaker().unwrap();
    assert_eq!(breaker.state(), seawall::breaker::State::Closed);
    breaker.admit().unwrap().finish(seawall::breaker::Outcome::Failure);
    hands.advance(secs(1));
    through_both();
    assert_eq!((breaker.state(), breaker.probes_under_way()), (seawall::breaker::State::HalfOpen, 0));
}

/// ENG-3: an answer may be a fault too: it is retried, and what the peer answered last is what the caller gets.
#[test]
fn eng_3_answers_can_be_retried_and_the_last_one_is_returned() {
    let hands = ManualClock::new();
    let guard =
        guard(&hands, |b| b.call_timeout(secs(60)).retry(quick(3)).breaker(Breaker::consecutive_failures(3)));
    let by_status =
        |result: &Result<u16, io::Error>| result.as_ref().map_or(Some(Fault::io()), |s| Fault::of_http(*s));
    let answers = |statuses: Vec<u16>| {
        let statuses = RefCell::new(statuses.into_iter());
        let operation = async |_| {
            Ok::<_, io::Error>(statuses.borrow_mut().next().expect("no more attempts than answers"))
        };
        run(&hands, guard.classify(by_status).idempotent().call(operation))
    };
    assert_eq!(answers(vec![500, 502, 200]).unwrap(), 200);
    assert_eq!(answers(vec![404]).unwrap(), 404);
    assert_eq!(answers(vec![500, 500, 500]).unwrap(), 500);
    assert_eq!(guard.breaker().unwrap().state(), seawall::breaker::State::Open, "they counted all the same");
}

/// ENG-1: an error that the classifier takes for no fault is passed on, and harms nobody.
#[test]
fn eng_1_an_error_can_be_no_fault() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.retry(quick(3)).breaker(Breaker::consecutive_failures(1)));
    struct NeverAFault;
    impl<T, E> Classify<T, E> for NeverAFault {
        fn classify(&self, _: &Result<T, E>) -> Option<Fault> {
            None
        }
    }
    let result = run(&hands, guard.classify(NeverAFault).call(async |_| Err::<(), _>("end of stream")));
    assert_eq!(result.unwrap_err().into_last(), Some("end of stream"));
    assert_eq!(guard.breaker().unwrap().state(), seawall::breaker::State::Closed);
}

/// ENG-11: errors of any type go through, `anyhow` and strings too.
#[test]
fn eng_11_operations_may_fail_with_anything() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.retry(quick(2)));
    let tries = Cell::new(0);
    let operation = async |_| {
        tries.set(tries.get() + 1);
        Err::<(), _>(
            anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing the order"),
        )
    };
    let error = run(&hands, guard.classify(fault::Dynamic).idempotent().call(operation)).unwrap_err();
    assert_eq!((error.kind(), tries.get()), (Kind::Exhausted, 2));
    assert_eq!(error.last().unwrap().to_string(), "writing the order");
    let text = |_: &Result<(), String>| Some(Fault::business());
    let error =
        run(&hands, guard.classify(text).call(async |_| Err("no such order".to_owned()))).unwrap_err();
    assert_eq!(error.into_last().as_deref(), Some("no such order"));
}

/// ENG-3: what a guard further in decided is inherited whole: its class, whether it ran, when to come back.
#[test]
fn eng_3_a_decision_further_in_is_inherited_whole() {
    let hands = ManualClock::new();
    let outer = guard(&hands, |b| b.call_timeout(secs(60)).retry(quick(3)));
    let slow = guard(&hands, |b| b.call_timeout(secs(1)).no_retry());
    let tries = Cell::new(0);
    let operation = async |_| {
        tries.set(tries.get() + 1);
        slow.idempotent().call(async |_| std::future::pending::<Result<(), Fault>>().await).await
    };
    let error = run(&hands, outer.idempotent().call(operation)).unwrap_err();
    assert_eq!(
        (tries.get(), error.last_fault()),
        (3, Fault::timeout()),
        "a timeout further in is a timeout, and retried"
    );

    let breaker = Breaker::consecutive_failures(1).cooldown(secs(30));
    let opening = guard(&hands, |b| b.call_timeout(secs(60)).retry(quick(3)).breaker(breaker.clone()));
    let script = Script::new(&hands, [Step::Fail(Fault::io())]);
    let operation = async |_| opening.idempotent().call(|attempt| script.attempt(attempt)).await;
    let error = run(&hands, outer.call(operation)).unwrap_err();
    assert_eq!((error.kind(), error.ran()), (Kind::Failed, Ran::Unknown), "its first attempt may have run");
    assert!(error.retry_after().is_some_and(|wait| wait > secs(29)));
}

/// ENG-3, ENG-5: a rejection that the operation swallowed does not explain the failure that came after it.
#[test]
fn eng_5_a_swallowed_rejection_explains_nothing() {
    let hands = ManualClock::new();
    let outer = guard(&hands, |b| b.no_retry().breaker(Breaker::consecutive_failures(3)));
    let cache = guard(&hands, |b| b.no_retry().breaker(Breaker::default()));
    cache.breaker().unwrap().force_open("no cache today");
    let script = Script::new(&hands, [Step::FailAfter(millis(1), Fault::io()); 3]);
    for _ in 0..3 {
        let operation = async |attempt: Attempt| {
            let _ = cache.call(async |_| Ok::<_, Fault>(())).await;
            script.attempt(attempt).await
        };
        assert_eq!(run(&hands, outer.call(operation)).unwrap_err().last_fault(), Fault::io());
    }
    assert_eq!(outer.breaker().unwrap().state(), seawall::breaker::State::Open);
}

/// ENG-3, ENG-7. Bug: a guard further in that gave up because a wait did not fit was taken for a timeout of the outer one,
/// whose clock was then set into the future.
#[test]
fn eng_7_giving_up_early_further_in_is_no_timeout_further_out() {
    let hands = ManualClock::new();
    let breaker = Breaker::consecutive_failures(1).cooldown(secs(10));
    let outer = guard(&hands, |b| b.attempt_timeout(secs(3)).no_retry().breaker(breaker.clone()));
    let inner = guard(&hands, |b| b.call_timeout(secs(60)).retry(quick(3)));
    let script = Script::new(&hands, [Step::Fail(Fault::throttled().after(secs(7)))]);
    let error =
        run(&hands, outer.call(async |_| inner.call(|attempt| script.attempt(attempt)).await)).unwrap_err();
    assert_ne!(error.decided_by(), Policy::AttemptTimeout, "{error}");
    assert_eq!((error.ran(), error.retry_after()), (Ran::No, Some(secs(7))));
    let until = outer.breaker().unwrap().admit().unwrap_err().retry_after().unwrap();
    assert!(until <= secs(10), "a cooldown of 10 s refuses for {until:?}");
}

/// ENG-1, ENG-3. Bug: what a guard further in decided, and the operation swallowed, replaced the fault that came in the same
/// poll, or the word of the classifier.
#[test]
fn eng_1_a_decision_that_was_swallowed_replaces_nothing() {
    let hands = ManualClock::new();
    let cache = guard(&hands, |b| b.no_retry().breaker(Breaker::default()));
    cache.breaker().unwrap().force_open("no cache today");
    let outer = guard(&hands, |b| b.retry(quick(3)).breaker(Breaker::consecutive_failures(3)));
    let refused = io::ErrorKind::ConnectionRefused;
    let operation = async |_: Attempt| {
        let _ = cache.call(async |_| Ok::<_, Fault>(())).await;
        Err::<(), _>(io::Error::from(refused))
    };
    let error = run(&hands, outer.idempotent().call(operation)).unwrap_err();
    assert_eq!((error.attempts(), error.last_fault()), (3, Fault::of_io(refused)));
    assert_eq!(outer.breaker().unwrap().state(), seawall::breaker::State::Open);

    // An answer further in, although it was judged a fault there, explains nothing either.
    let outer = guard(&hands, GuardBuilder::no_retry);
    let by_status =
        |result: &Result<u16, Fault>| result.as_ref().map_or(None, |status| Fault::of_http(*status));
    let asking = guard(&hands, GuardBuilder::no_retry);
    let operation = async |_: Attempt| {
        assert_eq!(asking.classify(by_status).call(async |_| Ok::<_, Fault>(404)).await.unwrap(), 404);
        Err::<(), _>(SomethingElse)
    };
    let error = run(&hands, outer.call(operation)).unwrap_err();
    assert_eq!(error.last_fault(), Fault::system());

    // Nor is a classifier of one's own overruled.
    let business = |_: &Result<(), String>| Some(Fault::business());
    let operation = async |_: Attempt| {
        let _ = cache.call(async |_| Ok::<_, Fault>(())).await;
        Err::<(), _>("declined".to_owned())
    };
    assert_eq!(
        run(&hands, outer.classify(business).call(operation)).unwrap_err().last_fault(),
        Fault::business()
    );
}

#[derive(Debug)]
struct SomethingElse;

impl std::fmt::Display for SomethingElse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("something else")
    }
}

impl std::error::Error for SomethingElse {}

/// ENG-3: retries are left to a guard further out only if that one may retry this call.
#[test]
fn eng_3_retries_are_not_left_to_somebody_who_may_not() {
    let hands = ManualClock::new();
    let sent = |outer: &Guard, idempotent: bool| {
        let inner = guard(&hands, |b| b.call_timeout(secs(60)).retry(quick(3).leave_to_outer()));
        let script = Script::new(&hands, [Step::Fail(Fault::io()), Step::Ok]);
        let operation = async |_| inner.idempotent().call(|attempt| script.attempt(attempt)).await;
        let request = if idempotent { outer.idempotent() } else { outer.once() };
        let _ = run(&hands, request.call(operation));
        script.told().iter().map(Attempt::depth).collect::<Vec<_>>()
    };
    let retries = guard(&hands, |b| b.call_timeout(secs(60)).retry(quick(3)));
    let bare = guard(&hands, GuardBuilder::no_retry);
    assert_eq!(sent(&retries, false), [0, 1], "the outer call must not run twice, so the inner one retries");
    assert_eq!(sent(&bare, true), [0, 1], "the outer guard does not retry");
    assert_eq!(sent(&retries, true), [0, 1], "the outer guard retries");
}

/// ENG-3: the depth that a caller in another process sent along goes on here.
#[test]
fn eng_3_depth_comes_in_from_elsewhere() {
    let hands = ManualClock::new();
    let script = || Script::new(&hands, [Step::Fail(Fault::io()), Step::Ok]);
    let depths = |script: &Script| script.told().iter().map(Attempt::depth).collect::<Vec<_>>();
    let (retrying, told) = (guard(&hands, |b| b.retry(quick(3))), script());
    run(&hands, retrying.idempotent().retries_above(2).call(|attempt| told.attempt(attempt))).unwrap();
    assert_eq!(depths(&told), [2, 3]);
    let (leaving, told) = (guard(&hands, |b| b.retry(quick(3).leave_to_outer())), script());
    assert!(
        run(&hands, leaving.idempotent().retries_above(0).call(|attempt| told.attempt(attempt))).is_err()
    );
    assert_eq!(depths(&told), [0], "the caller elsewhere retries");
}

/// ENG-2, ENG-3: a wait is counted from the end of the attempt that failed, and is longer for a throttled one.
#[test]
fn eng_2_a_back_off_begins_when_the_attempt_ends() {
    let hands = ManualClock::new();
    let retry = Retry::max_attempts(2).backoff(Backoff::constant(secs(2)).no_jitter());
    let guard = guard(&hands, |b| b.call_timeout(secs(60)).retry(retry.clone()));
    let took = |step| {
        let (script, began) = (Script::new(&hands, [step, Step::Ok]), hands.now());
        call(&hands, &guard, Safety::Idempotent, &script).unwrap();
        hands.now().since(began)
    };
    assert_eq!(took(Step::FailAfter(secs(3), Fault::io())), secs(5));
    assert_eq!(took(Step::Fail(Fault::throttled())), secs(10));
}

/// ENG-4: in a guard, gRPC's tokens are earned by first attempts and paid for what could be retried.
#[test]
fn eng_4_tokens_in_a_guard() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.retry(quick(3).budget(Budget::tokens(4.0).token_ratio(1.0))));
    let business = Script::new(&hands, [Step::Fail(Fault::business()); 10]);
    (0..10).for_each(|_| assert!(call(&hands, &guard, Safety::Idempotent, &business).is_err()));
    let failing = Script::new(&hands, [Step::Fail(Fault::io()), Step::Ok]);
    call(&hands, &guard, Safety::Idempotent, &failing).unwrap();
    let failing = Script::new(&hands, [Step::Fail(Fault::io()); 3]);
    let error = call(&hands, &guard, Safety::Idempotent, &failing).unwrap_err();
    assert_eq!(
        (error.kind(), error.attempts()),
        (Kind::BudgetDenied, 1),
        "a retry that succeeded has earned nothing"
    );
}

/// ENG-3: rejections cost tries; the token of a retry is taken once, and given back when the call is over.
#[test]
fn eng_3_rejections_cost_tries_and_no_tokens() {
    let hands = ManualClock::new();
    let retry = quick(3).on_rejection().budget(Budget::share_of_calls(100).floor_per_second(0.0));
    let guard = guard(&hands, |b| b.call_timeout(secs(60)).retry(retry.clone()).breaker(Breaker::default()));
    guard.breaker().unwrap().force_open("down");
    let script = Script::new(&hands, []);
    let mut rejected = Box::pin(guard.idempotent().call(|attempt| script.attempt(attempt)));
    let mut polls = 0;
    let error = loop {
        polls += 1;
        match seawall_testkit::poll_once(rejected.as_mut()) {
            std::task::Poll::Ready(result) => break result.unwrap_err(),
            std::task::Poll::Pending => assert!(hands.advance_to_next()),
        }
    };
    assert_eq!((polls, error.kind(), error.attempts()), (3, Kind::Rejected, 0));
    assert_eq!((guard.breaker().unwrap().counts().refused, guard.budget().unwrap().in_window()), (3, (0, 0)));
}
