//! A guard around code that blocks, and single attempts.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use seawall::breaker::State;
use seawall::{
    Attempt, Backoff, Breaker, Bulkhead, Clock, Fault, Guard, GuardBuilder, Kind, Policy, RateLimit, Retry,
    millis, secs,
};
use seawall_testkit::{ManualClock, Script, Step, run};

fn real(builder: impl Fn(GuardBuilder) -> GuardBuilder) -> Guard {
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(millis(5)).no_jitter());
    builder(Guard::builder("disk").clock(Clock::system()).retry(retry)).build().unwrap()
}

fn reset() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

/// ENG-11: blocking code has retries, numbers, keys, the breaker and the one error.
#[test]
fn eng_11_a_blocking_operation_is_retried() {
    let guard = real(|b| b.breaker(Breaker::consecutive_failures(3)));
    let (numbers, keys) = (Cell::new(0), Cell::new(None));
    let operation = |attempt: Attempt| {
        numbers.set(numbers.get() * 10 + attempt.number());
        assert!(keys.replace(Some(attempt.key())).is_none_or(|key| key == attempt.key()));
        if attempt.number() < 3 { Err(reset()) } else { Ok("there") }
    };
    let began = Clock::system().precise();
    assert_eq!(guard.idempotent().run(operation).unwrap(), "there");
    assert_eq!(numbers.get(), 123);
    assert!(Clock::system().precise().since(began) >= millis(10), "it slept between attempts");
    let error = guard.idempotent().run(|_| Err::<(), _>(reset())).unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (Kind::Exhausted, 3));
    assert_eq!(guard.breaker().unwrap().state(), State::Open);
    assert_eq!(guard.run(|_| Ok::<_, io::Error>(())).unwrap_err().decided_by(), Policy::Breaker);
}

/// PRM-4, ENG-5: a panic in blocking code gives everything back and is a failure.
#[test]
fn prm_4_a_panic_in_blocking_code_gives_everything_back() {
    let guard = real(|b| b.breaker(Breaker::consecutive_failures(1)).bulkhead(Bulkhead::max_calls(1)));
    let panicked =
        catch_unwind(AssertUnwindSafe(|| guard.run(|_| -> io::Result<()> { panic!("as planned") })));
    assert!(panicked.is_err());
    assert_eq!(guard.bulkhead().unwrap().inside(), 0);
    assert_eq!(
        (guard.breaker().unwrap().state(), guard.breaker().unwrap().counts().panicked),
        (State::Open, 1)
    );
}

/// ENG-6, ENG-8: threads wait for their place and their turn, and all are served.
#[test]
fn eng_6_blocking_threads_wait_in_line() {
    let guard = real(|b| {
        b.call_timeout(secs(30))
            .bulkhead(Bulkhead::max_calls(2).max_wait(secs(20)).max_waiting(16))
            .rate_limit(RateLimit::calls(1_000).burst(4).max_wait(secs(20)))
    });
    let (barrier, inside, most, served) =
        (Barrier::new(8), AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                for _ in 0..20 {
                    let operation = |_| {
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        Ok::<_, io::Error>(())
                    };
                    guard.run(operation).unwrap();
                    served.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!((served.into_inner(), guard.bulkhead().unwrap().inside()), (160, 0));
    assert!(most.into_inner() <= 2);
}

/// ENG-11: a single attempt has everything but retries, and neither earns nor spends of their budget.
#[test]
fn eng_11_a_single_attempt_leaves_retries_alone() {
    let hands = ManualClock::new();
    let guard = Guard::builder("peer")
        .clock(hands.clock())
        .breaker(Breaker::consecutive_failures(2))
        .build()
        .unwrap();
    let script =
        Script::new(&hands, [Step::Fail(Fault::unreachable()), Step::Fail(Fault::unreachable()), Step::Ok]);
    for _ in 0..2 {
        let error = run(&hands, guard.attempt(|attempt| script.attempt(attempt))).unwrap_err();
        assert_eq!((error.kind(), error.attempts()), (Kind::Failed, 1));
    }
    assert_eq!(
        run(&hands, guard.attempt(|attempt| script.attempt(attempt))).unwrap_err().kind(),
        Kind::Rejected
    );
    assert_eq!((script.attempts(), guard.budget().unwrap().in_window()), (2, (0, 0)));
    let timed = Guard::builder("slow").clock(hands.clock()).attempt_timeout(secs(1)).build().unwrap();
    let hang = Script::new(&hands, [Step::Hang]);
    let error = run(&hands, timed.attempt(|attempt| hang.attempt(attempt))).unwrap_err();
    assert_eq!((error.kind(), error.decided_by()), (Kind::TimedOut, Policy::AttemptTimeout));
}
