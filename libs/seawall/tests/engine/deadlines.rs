//! Nobody waits for ever: timeouts and deadlines on tokio's paused time.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use seawall::{Attempt, Backoff, Deadline, Error, Fault, Guard, Kind, Policy, Ran, Retry, millis, secs};
use tokio::time::Instant;

type Result<T = ()> = std::result::Result<T, Error<Fault>>;

async fn hang(_: Attempt) -> std::result::Result<(), Fault> {
    pending().await
}

/// Runs a call and says how long it took on paused time.
async fn timed<T>(call: impl Future<Output = T>) -> (T, Duration) {
    #[expect(clippy::disallowed_methods, reason = "the test's own stopwatch on paused time")]
    let start = Instant::now();
    let output = call.await;
    (output, start.elapsed())
}

fn close_to(took: Duration, expected: Duration) {
    // Tokio's timers fire up to a millisecond late.
    assert!(took >= expected && took <= expected + millis(2), "took {took:?}, expected {expected:?}");
}

/// ENG-7: a call ends at its deadline, whatever its attempts do, and the error says how far it came.
#[tokio::test(start_paused = true)]
async fn eng_7_a_call_never_outlives_its_deadline() {
    let guard = Guard::builder("slow").call_timeout(secs(5)).no_retry().build().unwrap();
    let (result, took) = timed(guard.call(hang)).await;
    close_to(took, secs(5));
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.decided_by()), (Kind::TimedOut, Policy::CallTimeout));
    assert_eq!((error.ran(), error.attempts()), (Ran::Unknown, 1));
    assert_eq!(error.to_string(), "slow: call timeout ran out after 1 attempt, last: timeout");
}

/// ENG-7: an attempt that hangs is given up in time for another one.
#[tokio::test(start_paused = true)]
async fn eng_7_a_hung_attempt_is_followed_by_another() {
    let guard = Guard::builder("flaky")
        .attempt_timeout(secs(1))
        .retry(Retry::max_attempts(3).backoff(Backoff::constant(millis(500)).no_jitter()))
        .build()
        .unwrap();
    let operation =
        async |attempt: Attempt| if attempt.number() < 3 { pending().await } else { Ok::<_, Fault>("there") };
    let (result, took) = timed(guard.idempotent().call(operation)).await;
    assert_eq!(result.unwrap(), "there");
    close_to(took, secs(3));
}

/// ENG-7: a timeout of the attempt is an unknown outcome; a call that is not declared safe stops there.
#[tokio::test(start_paused = true)]
async fn eng_7_an_attempt_timeout_of_an_unsafe_call_is_its_end() {
    let guard = Guard::builder("unsafe").attempt_timeout(secs(1)).build().unwrap();
    let (result, took) = timed(guard.call(hang)).await;
    close_to(took, secs(1));
    let error = result.unwrap_err();
    assert_eq!(
        (error.kind(), error.decided_by(), error.ran()),
        (Kind::TimedOut, Policy::AttemptTimeout, Ran::Unknown)
    );
}

/// ENG-3, ENG-7: no back-off sleeps past the deadline: what can't be in time is given up at once.
#[tokio::test(start_paused = true)]
async fn eng_3_no_back_off_sleeps_past_the_deadline() {
    let guard = Guard::builder("patient")
        .call_timeout(secs(10))
        .retry(Retry::max_attempts(5).backoff(Backoff::exponential(secs(4)).no_jitter()))
        .build()
        .unwrap();
    let (result, took): (Result, _) = timed(guard.idempotent().call(async |_| Err(Fault::protocol()))).await;
    // 4 s, and then 8 s would end at 12 s.
    close_to(took, secs(4));
    let error = result.unwrap_err();
    assert_eq!(
        (error.kind(), error.decided_by(), error.attempts()),
        (Kind::TimedOut, Policy::CallTimeout, 2)
    );
    assert_eq!((error.last_fault(), error.last()), (Fault::protocol(), Some(&Fault::protocol())));
}

/// ENG-7: a derived call timeout never takes away what was asked for.
#[tokio::test(start_paused = true)]
async fn eng_7_a_derived_call_timeout_leaves_room_for_every_attempt() {
    let guard = Guard::builder("derived")
        .attempt_timeout(secs(2))
        .retry(Retry::max_attempts(3).backoff(Backoff::exponential(secs(1)).no_jitter()))
        .build()
        .unwrap();
    let (result, took) = timed(guard.idempotent().call(hang)).await;
    // Three attempts of 2 s, waits of 1 s and 2 s.
    assert!(took >= secs(9) && took <= millis(9_010), "{took:?}");
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.attempts(), error.ran()), (Kind::Exhausted, 3, Ran::Unknown));
}

/// ENG-7: deadlines pass down: a guard inside never outlives the one around it.
#[tokio::test(start_paused = true)]
async fn eng_7_a_nested_guard_inherits_the_deadline() {
    let outer =
        Guard::builder("outer").call_timeout(secs(10)).attempt_timeout(secs(3)).no_retry().build().unwrap();
    let inner = Guard::builder("inner").call_timeout(secs(60)).no_retry().build().unwrap();
    let seen = AtomicU32::new(0);
    let operation = async |attempt: Attempt| {
        assert_eq!(attempt.time_allowed(), Some(secs(3)));
        assert_eq!(Deadline::current(), attempt.deadline());
        let nested = inner.call(async |attempt: Attempt| {
            assert_eq!(attempt.time_allowed(), Some(secs(3)), "what is left to the one around it");
            seen.fetch_add(1, Ordering::Relaxed);
            hang(attempt).await
        });
        nested.await.map_err(|error| error.fault())
    };
    let (result, took) = timed(outer.call(operation)).await;
    close_to(took, secs(3));
    assert_eq!(seen.into_inner(), 1);
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.decided_by()), (Kind::TimedOut, Policy::AttemptTimeout), "{error}");
    assert_eq!(Deadline::current(), None, "outside of a guard there is no deadline");
}

/// ENG-7: the second attempt of a nested call has what is left, also after the first has suspended.
#[tokio::test(start_paused = true)]
async fn eng_7_an_inherited_deadline_shrinks_as_time_passes() {
    let outer = Guard::builder("outer").call_timeout(secs(5)).no_retry().build().unwrap();
    let inner = Guard::builder("inner").call_timeout(secs(60)).no_retry().build().unwrap();
    let operation = async |_| {
        tokio::time::sleep(secs(4)).await;
        let nested = inner.call(async |attempt: Attempt| Ok::<_, Fault>(attempt.time_allowed()));
        nested.await.map_err(|error| error.fault())
    };
    let left = outer.call(operation).await.unwrap().expect("it is bounded");
    assert!(left <= secs(1) && left >= millis(998), "{left:?}");
}

/// ENG-7: a spawned task takes the deadline along by hand.
#[tokio::test(start_paused = true)]
async fn eng_7_a_deadline_can_be_taken_into_another_task() {
    let outer = Guard::builder("outer").call_timeout(secs(5)).no_retry().build().unwrap();
    let inner = Arc::new(Guard::builder("inner").call_timeout(secs(60)).no_retry().build().unwrap());
    let operation = async |_| {
        let (deadline, inner) = (Deadline::current().expect("we are inside a guard"), inner.clone());
        assert!(deadline.remaining() <= secs(5));
        #[expect(clippy::disallowed_methods, reason = "another task is what this test is about")]
        let task = tokio::spawn(async move { inner.deadline(deadline).call(hang).await.unwrap_err().kind() });
        Ok::<_, Fault>(task.await.expect("it did not panic"))
    };
    let (result, took) = timed(outer.call(operation)).await;
    // Both end at the same instant; whoever is polled first, nobody is later.
    close_to(took, secs(5));
    assert!(result.is_err() || result.unwrap() == Kind::TimedOut);
}

/// ENG-7: a deadline that has passed means that nothing is sent at all.
#[tokio::test(start_paused = true)]
async fn eng_7_nothing_is_sent_after_the_deadline() {
    let guard = Guard::builder("late").build().unwrap();
    let deadline = Deadline::within(secs(1));
    tokio::time::advance(secs(2)).await;
    let result: Result = guard.deadline(deadline).call(async |_| panic!("it was sent")).await;
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.attempts(), error.ran()), (Kind::TimedOut, 0, Ran::No));
}

/// ENG-7: a call without any timeout waits as long as it takes.
#[tokio::test(start_paused = true)]
async fn eng_7_without_timeouts_a_call_takes_its_time() {
    let guard = Guard::builder("endless").no_call_timeout().no_retry().build().unwrap();
    let operation = async |attempt: Attempt| {
        assert_eq!((attempt.deadline(), Deadline::current()), (None, None));
        tokio::time::sleep(secs(86_400 * 365)).await;
        Ok::<_, Fault>(())
    };
    let (result, took) = timed(guard.call(operation)).await;
    assert!(result.is_ok() && took >= secs(86_400 * 365));
}

/// PRM-6, ENG-7. Bug: an operation that uses up what tokio lets a task do in one go was never timed out.
#[tokio::test]
async fn prm_6_a_busy_operation_is_timed_out() {
    let guard =
        Guard::builder("busy").clock(seawall::Clock::system()).call_timeout(millis(50)).build().unwrap();
    let busy = async |_: Attempt| -> std::result::Result<(), Fault> {
        loop {
            tokio::task::consume_budget().await;
        }
    };
    assert_eq!(guard.call(busy).await.unwrap_err().decided_by(), Policy::CallTimeout);
}

/// ENG-7, PRM-4. Bug: a call that was woken late out of its back-off forgot its last fault, and kept its probe.
#[test]
fn eng_7_a_call_woken_too_late_keeps_its_fault_and_no_probe() {
    use seawall_testkit::{ManualClock, Script, Step, poll_once};
    let hands = ManualClock::new();
    let breaker =
        seawall::Breaker::consecutive_failures(1).scope(seawall::breaker::Scope::Call).cooldown(secs(10));
    let guard = Guard::builder("late")
        .clock(hands.clock())
        .call_timeout(secs(5))
        .retry(Retry::max_attempts(3).backoff(Backoff::constant(secs(4)).no_jitter()))
        .breaker(breaker)
        .build()
        .unwrap();
    guard.breaker().unwrap().admit().unwrap().finish(seawall::breaker::Outcome::Failure);
    hands.advance(secs(10));
    let failed = Fault::of_http(500).unwrap();
    let script = Script::new(&hands, [Step::Fail(failed)]);
    let mut call = Box::pin(guard.idempotent().call(|attempt| script.attempt(attempt)));
    assert!(poll_once(call.as_mut()).is_pending());
    hands.advance(secs(6));
    let std::task::Poll::Ready(Err(error)) = poll_once(call.as_mut()) else {
        panic!("it is past its deadline")
    };
    assert_eq!((error.kind(), error.last_fault(), error.ran()), (Kind::TimedOut, failed, Ran::Yes));
    assert_eq!(guard.breaker().unwrap().probes_under_way(), 0, "the future is still there, its probe is not");
    drop(call);
}
