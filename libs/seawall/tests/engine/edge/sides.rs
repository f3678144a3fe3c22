//! Failover over several sides, in combination.

use std::cell::RefCell;
use std::future::pending;

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
