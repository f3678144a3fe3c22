//! A deadline of one clock means the same on another.

use std::future::pending;

use seawall::{Attempt, Clock, Deadline, Fault, Guard, Kind, millis, secs};
use seawall_testkit::{ManualClock, run};

/// ENG-7: a deadline is translated when a guard on another clock gets it.
#[test]
fn eng_7_a_deadline_of_another_clock_is_translated() {
    let (hands, elsewhere) = (ManualClock::new(), ManualClock::new());
    elsewhere.advance(secs(1_000_000));
    let guard = Guard::builder("peer").clock(hands.clock()).no_retry().no_call_timeout().build().unwrap();
    let deadline = Deadline::within_on(&elsewhere.clock(), secs(5));
    assert_eq!(deadline.remaining(), secs(5));
    elsewhere.advance(secs(2));
    assert_eq!(deadline.remaining(), secs(3), "on its own clock");
    let began = hands.now();
    let error = run(&hands, guard.idempotent().deadline(deadline).call(|_| pending::<Result<u32, Fault>>()))
        .unwrap_err();
    assert_eq!((error.kind(), hands.now().since(began)), (Kind::TimedOut, secs(3)));
}

/// ENG-7: so is the deadline of a guard around, and what the operation is told is of its own guard's clock.
#[test]
fn eng_7_a_nested_guard_on_another_clock_inherits_the_deadline() {
    let (hands, elsewhere) = (ManualClock::new(), ManualClock::new());
    elsewhere.advance(secs(500));
    let outer =
        Guard::builder("outer").clock(hands.clock()).attempt_timeout(secs(2)).no_retry().build().unwrap();
    let inner = Guard::builder("inner").clock(elsewhere.clock()).no_retry().build().unwrap();
    let seen = run(
        &hands,
        outer.idempotent().call(async |attempt: Attempt| {
            let around = Deadline::current();
            assert_eq!(around, attempt.deadline());
            let allowed = inner.idempotent().call(|attempt| {
                let current = Deadline::current();
                std::future::ready(Ok::<_, Fault>((attempt.time_allowed(), current == attempt.deadline())))
            });
            Ok::<_, Fault>(allowed.await.unwrap())
        }),
    );
    assert_eq!(seen.unwrap(), (Some(secs(2)), true));
}

/// ENG-7: a clock that nobody has any more was another handle of the guard's own.
#[test]
fn eng_7_a_deadline_outlives_the_handle_it_was_read_on() {
    struct Handle(ManualClock);
    impl seawall::Time for Handle {
        fn now(&self) -> seawall::Tick {
            self.0.now()
        }
        fn wall(&self) -> std::time::SystemTime {
            self.0.wall()
        }
        fn sleep_until(&self, at: seawall::Tick) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
            seawall::Time::sleep_until(&self.0, at)
        }
    }
    let hands = ManualClock::new();
    let clock = || Clock::custom(std::sync::Arc::new(Handle(hands.clone())));
    let guard = Guard::builder("peer").clock(clock()).no_retry().build().unwrap();
    let deadline = Deadline::within_on(&clock(), millis(700));
    let began = hands.now();
    let _ = run(&hands, guard.idempotent().deadline(deadline).call(|_| pending::<Result<u32, Fault>>()));
    assert_eq!(hands.now().since(began), millis(700));
    assert_eq!(deadline.earlier(Deadline::within(secs(3))), deadline);
}
