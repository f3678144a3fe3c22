//! Failover over several sides, in combination.

use std::cell::RefCell;
use std::future::pending;

use seawall::breaker::State;
use seawall::failover::{Failover, Side};
use seawall::fallback::LastGood;
use seawall::{Attempt, Backoff, Breaker, Deadline, Error, Fault, Guard, Hedge, Kind, Retry, millis, secs};
use seawall_testkit::{ManualClock, run};

fn side(hands: &ManualClock, name: &str) -> Guard {
    Guard::builder(name)
        .clock(hands.clock())
        .attempt_timeout(secs(1))
        .retry(Retry::max_attempts(3).backoff(Backoff::constant(secs(1)).no_jitter()).no_budget())
        .breaker(Breaker::consecutive_failures(100))
        .hedge(Hedge::after(millis(300)))
        .build()
        .unwrap()
}

fn three(hands: &ManualClock) -> Failover {
    Failover::of(["eu", "us", "ap"].map(|name| side(hands, name))).unwrap()
}

/// ENG-14: three sides are asked in their order, and if all fail all causes are told.
#[test]
fn eng_14_more_than_two_sides() {
    let hands = ManualClock::new();
    let regions = three(&hands);
    let asked = RefCell::new(Vec::new());
    let ask = |good: usize| {
        let operation = |attempt: Attempt| {
            asked.borrow_mut().push(attempt.side().index());
            let ok = attempt.side().index() == good;
            let fault = if good == 9 { Fault::io() } else { Fault::throttled().after(secs(5)) };
            std::future::ready(if ok { Ok("stock") } else { Err(fault) })
        };
        run(&hands, regions.idempotent().call(operation))
    };
    let began = hands.now();
    let answer = ask(2).unwrap();
    assert_eq!(
        (*answer, answer.side().index(), answer.side().to_string()),
        ("stock", 2, "side 3".to_owned())
    );
    assert_eq!(asked.take(), [0, 1, 2]);
    assert_eq!(hands.now(), began, "nobody waits as long as the primary asks for while another can be asked");
    let error = ask(9).unwrap_err();
    assert_eq!(asked.take(), [0, 1, 2, 2, 2], "only the last one retries");
    assert_eq!((error.guard(), error.first().guard(), error.attempts()), ("ap", "eu", 5));
    assert_eq!(
        error.to_string(),
        "eu: failed after 1 attempt: i/o fault; us: failed after 1 attempt: i/o fault; \
         ap: gave up after 3 attempts: i/o fault"
    );
    let patient = three(&hands).retry_each_side();
    let all = |attempt: Attempt| {
        asked.borrow_mut().push(attempt.side().index());
        std::future::ready(Err::<u32, _>(Fault::io()))
    };
    let _ = run(&hands, patient.idempotent().call(all));
    assert_eq!(asked.take(), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
}

/// ENG-14: one deadline for all sides, from the failover itself or from the caller.
#[test]
fn eng_14_one_deadline_for_all_sides() {
    let hands = ManualClock::new();
    let hang = |_: Attempt| pending::<Result<u32, Fault>>();
    let timed = |regions: Failover, deadline: Option<Deadline>| {
        let began = hands.now();
        let mut request = regions.idempotent();
        if let Some(deadline) = deadline {
            request = request.deadline(deadline);
        }
        let error = run(&hands, request.call(hang)).unwrap_err();
        (hands.now().since(began), error.kind(), error.attempts())
    };
    assert_eq!(timed(three(&hands).call_timeout(millis(1_500)), None), (millis(1_500), Kind::TimedOut, 2));
    let deadline = Deadline::within_on(&hands.clock(), millis(500));
    assert_eq!(
        timed(three(&hands), Some(deadline)),
        (millis(500), Kind::TimedOut, 1),
        "nobody else is asked then"
    );
}

/// ENG-16: failover with hedges, a fallback, the last good value, a dead-letter place, and in blocking code.
#[test]
fn eng_16_failover_combines_with_everything() {
    let hands = ManualClock::new();
    let (regions, last, letters) = (three(&hands), LastGood::new(), RefCell::new(Vec::new()));
    let keep = |error: &Error<Fault>| letters.borrow_mut().push(error.to_string());
    let request = || regions.idempotent().hedged().or_last_good(&last).or_value(0).dead_letter(keep);
    let by_hedge = |attempt: Attempt| async move {
        if attempt.side() == Side::SECONDARY && attempt.hedge() == 1 {
            Ok::<u32, Fault>(7)
        } else {
            pending().await
        }
    };
    let answer = run(&hands, request().call(by_hedge)).unwrap();
    assert_eq!((*answer, answer.side(), last.get()), (7, Side::SECONDARY, Some(7)));
    assert!(letters.borrow().is_empty());
    let failing = |_: Attempt| std::future::ready(Err(Fault::io()));
    let answer = run(&hands, request().call(failing)).unwrap();
    assert_eq!((*answer, answer.is_fallback()), (7, true));
    assert_eq!(letters.borrow().len(), 1);
    let blocking =
        |attempt: Attempt| if attempt.side().index() == 2 { Ok(8) } else { Err(Fault::unreachable()) };
    let answer = regions.once().or_value(0).run(blocking).unwrap();
    assert_eq!((*answer, answer.side().index()), (8, 2), "it certainly did not run on the others");
    let unknown = |attempt: Attempt| if attempt.side().index() == 2 { Ok(8) } else { Err(Fault::io()) };
    assert_eq!(*regions.once().or_value(0).run(unknown).unwrap(), 0, "it may have run");
}

/// Answers at once, except where `slow` says so.
fn answering(
    slow: impl Fn(Attempt) -> bool,
) -> impl FnMut(Attempt) -> std::pin::Pin<Box<dyn Future<Output = Result<Side, Fault>>>> {
    move |attempt| {
        if slow(attempt) { Box::pin(pending()) } else { Box::pin(std::future::ready(Ok(attempt.side()))) }
    }
}

/// ENG-14, ENG-9: a hedge asks the next side, through the guard of that side.
#[test]
fn eng_14_a_hedge_asks_the_next_side() {
    let hands = ManualClock::new();
    let regions = three(&hands);
    let [eu, us, ap] = regions.sides() else { unreachable!("three") };
    let began = hands.now();
    let answer =
        run(&hands, regions.idempotent().hedged().call(answering(|attempt| attempt.hedge() == 0))).unwrap();
    assert_eq!((*answer, answer.side()), (Side::SECONDARY, Side::SECONDARY));
    assert_eq!(hands.now().since(began), millis(300), "after the delay, not after the timeout of the first");
    assert_eq!((eu.hedger().unwrap().started(), eu.hedger().unwrap().won()), (1, 1));

    // Where the next side is known to be down, the one behind it is asked; where all are, the same one again.
    us.breaker().unwrap().force_open("maintenance");
    let answer =
        run(&hands, regions.idempotent().hedged().call(answering(|attempt| attempt.hedge() == 0))).unwrap();
    assert_eq!(answer.side().index(), 2);
    ap.breaker().unwrap().force_open("maintenance");
    let answer =
        run(&hands, regions.idempotent().hedged().call(answering(|attempt| attempt.hedge() == 0))).unwrap();
    assert_eq!(answer.side(), Side::PRIMARY);
}

/// ENG-14, ENG-5: hedges to the next side answer every call, and the side that hangs is found all the same.
#[test]
fn eng_14_hedges_do_not_hide_a_side_that_hangs() {
    let hands = ManualClock::new();
    let regions = two(&hands);
    let [eu, us] = regions.sides() else { unreachable!("two") };
    let (mut slow, mut calls) = (0, 0);
    while eu.breaker().unwrap().state() == State::Closed {
        calls += 1;
        assert!(calls <= 60, "{:?}", eu.breaker().unwrap());
        hands.advance(secs(1));
        let began = hands.now();
        let hang = answering(|attempt| attempt.side() == Side::PRIMARY);
        assert_eq!(*run(&hands, regions.idempotent().hedged().call(hang)).unwrap(), Side::SECONDARY);
        slow += u32::from(hands.now().since(began) > millis(300));
    }
    assert_eq!(slow, 0, "no caller has waited longer than the delay of the hedge");
    assert_eq!(us.breaker().unwrap().state(), State::Closed);
    let began = hands.now();
    let hang = answering(|attempt| attempt.side() == Side::PRIMARY);
    assert_eq!(*run(&hands, regions.idempotent().hedged().call(hang)).unwrap(), Side::SECONDARY);
    assert_eq!(hands.now(), began, "nobody waits for it any more");
}

/// ENG-14, ENG-5: a side that is slow now and then is not taken for one that hangs.
#[test]
fn eng_14_a_side_that_is_overtaken_now_and_then_stays_in_use() {
    let hands = ManualClock::new();
    let regions = two(&hands);
    for call in 0..400 {
        hands.advance(secs(1));
        let some = answering(move |attempt| attempt.side() == Side::PRIMARY && call % 4 == 0);
        run(&hands, regions.idempotent().hedged().call(some)).unwrap();
    }
    assert_eq!(regions.sides()[0].breaker().unwrap().state(), State::Closed);
}

/// Two sides with the default breaker.
fn two(hands: &ManualClock) -> Failover {
    let side = |name: &str| {
        let side =
            Guard::builder(name).clock(hands.clock()).attempt_timeout(secs(1)).breaker(Breaker::default());
        side.hedge(Hedge::after(millis(300))).build().unwrap()
    };
    Failover::new(side("eu"), side("us")).unwrap()
}

/// ENG-11: a failover that can't work is refused.
#[test]
fn eng_14_a_failover_needs_two_sides_and_breakers() {
    let hands = ManualClock::new();
    let one = Failover::of([side(&hands, "a")]).unwrap_err().to_string();
    assert!(one.contains("leave nobody to fail over to"), "{one}");
    let bare = || Guard::builder("bare").build().unwrap();
    let error = Failover::of([side(&hands, "a"), bare(), bare()]).unwrap_err().to_string();
    assert!(error.contains("so a dead secondary would be waited for every time"), "{error}");
    assert!(Failover::of([side(&hands, "a"), side(&hands, "b"), bare()]).is_ok());
}
