//! Two of a kind.

use std::cell::RefCell;

use seawall::breaker::State;
use seawall::failover::{Failover, Side};
use seawall::fallback::Answer;
use seawall::{Attempt, Breaker, Error, Fault, Guard, Kind, Ran, secs};
use seawall_testkit::{ManualClock, run};

fn failover(hands: &ManualClock) -> Failover {
    let side = |name: &str| {
        let breaker = Breaker::consecutive_failures(3).cooldown(secs(30));
        Guard::builder(name)
            .clock(hands.clock())
            .no_retry()
            .attempt_timeout(secs(1))
            .breaker(breaker)
            .build()
            .unwrap()
    };
    Failover::new(side("primary"), side("secondary")).unwrap()
}

type Outcome = (Result<Answer<&'static str, Fault>, Error<Fault>>, Vec<Side>);

fn ask(
    hands: &ManualClock,
    failover: &Failover,
    once: bool,
    primary: Option<Fault>,
    secondary: Option<Fault>,
) -> Outcome {
    let asked = RefCell::new(Vec::new());
    let operation = |attempt: Attempt| {
        asked.borrow_mut().push(attempt.side());
        let fault = if attempt.side() == Side::PRIMARY { primary } else { secondary };
        std::future::ready(fault.map_or(Ok("answer"), Err))
    };
    let result = if once {
        run(hands, failover.once().call(operation))
    } else {
        run(hands, failover.idempotent().call(operation))
    };
    (result, asked.into_inner())
}

/// ENG-14: primary first, secondary on transient faults, not on what the secondary would say too.
#[test]
fn eng_14_the_secondary_is_asked_on_transient_faults_only() {
    let hands = ManualClock::new();
    let by = |primary| {
        let (result, asked) = ask(&hands, &failover(&hands), false, primary, None);
        (result.ok().map(|served| served.side()), asked.len())
    };
    assert_eq!(by(None), (Some(Side::PRIMARY), 1));
    for fault in [Fault::io(), Fault::timeout(), Fault::protocol(), Fault::throttled(), Fault::unreachable()]
    {
        assert_eq!(by(Some(fault)), (Some(Side::SECONDARY), 2), "{fault}");
    }
    for fault in [Fault::business(), Fault::system(), Fault::of_http(501).unwrap()] {
        assert_eq!(by(Some(fault)), (None, 1), "{fault}");
    }
}

/// ENG-14: what must not run twice goes to the secondary only if the primary certainly did nothing.
#[test]
fn eng_14_a_write_goes_to_the_secondary_only_if_the_primary_did_nothing() {
    let hands = ManualClock::new();
    let by =
        |fault| ask(&hands, &failover(&hands), true, Some(fault), None).0.ok().map(|served| served.side());
    assert_eq!(by(Fault::unreachable()), Some(Side::SECONDARY));
    assert_eq!(by(Fault::io()), None);
    assert_eq!(by(Fault::timeout()), None);
}

/// ENG-14: a dead primary is not tried every time, and is found out to be back.
#[test]
fn eng_14_a_dead_primary_is_not_tried_every_time() {
    let hands = ManualClock::new();
    let failover = failover(&hands);
    let tried = |calls: u32, primary: Option<Fault>| {
        let asked = (0..calls).flat_map(|_| ask(&hands, &failover, false, primary, None).1);
        asked.filter(|side| *side == Side::PRIMARY).count()
    };
    assert_eq!(tried(100, Some(Fault::io())), 3, "until its circuit opens");
    let (served, _) = ask(&hands, &failover, true, None, None);
    assert_eq!(served.unwrap().side(), Side::SECONDARY, "a refusal means that the primary did nothing");
    hands.advance(secs(31));
    assert_eq!(tried(10, None), 10, "it is back");
    assert_eq!(failover.sides()[0].breaker().unwrap().state(), State::Closed);
}

/// ENG-14: both failing reports both causes.
#[test]
fn eng_14_both_failing_reports_both_causes() {
    let hands = ManualClock::new();
    let (result, asked) = ask(&hands, &failover(&hands), false, Some(Fault::timeout()), Some(Fault::io()));
    let error = result.unwrap_err();
    assert_eq!(asked, [Side::PRIMARY, Side::SECONDARY]);
    assert_eq!(error.first().last_fault(), Fault::timeout());
    assert_eq!((error.kind(), error.ran(), error.last_fault()), (Kind::Failed, Ran::Unknown, Fault::io()));
    assert_eq!((error.guard(), error.first().guard(), error.attempts()), ("secondary", "primary", 2));
    assert_eq!(
        error.to_string(),
        "primary: failed after 1 attempt: timeout; secondary: failed after 1 attempt: i/o fault"
    );
}

/// ENG-14, ENG-11: a primary without a breaker is refused.
#[test]
fn eng_14_a_primary_without_a_breaker_is_refused() {
    let bare = |name: &str| Guard::builder(name).build().unwrap();
    let error = Failover::new(bare("a"), bare("b")).unwrap_err().to_string();
    assert!(
        error
            .starts_with("failover over `a`, `b` can't work\n  failover: the guard `a` has no breaker, so a dead primary would"),
        "{error}"
    );
}
