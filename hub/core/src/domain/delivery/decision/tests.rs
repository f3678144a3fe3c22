//! Every row of the decision.

use proptest::prelude::*;

use super::*;

const START: Millis = Millis(1_000_000);
const FRESH: Progress = Progress { accepted: START, counted: 0, failures: 0, panics: 0 };
const DAY: Duration = Duration::from_secs(86_400);
const MOMENT: Moment = Moment { now: START, began: START, circuit_closed: None, random: 1 << 63 };

fn failed(fault: Fault) -> Outcome {
    Outcome::Failed { fault, probe: false }
}

fn answered(status: u16) -> Outcome {
    let redirect = Fault::business().code(Code::Http(status));
    failed(Fault::of_http(status).unwrap_or(redirect))
}

fn probe(status: u16) -> Outcome {
    Outcome::Failed { fault: Fault::of_http(status).unwrap(), probe: true }
}

fn asks(status: u16, seconds: u64) -> Outcome {
    failed(Fault::of_http(status).unwrap().after(Duration::from_secs(seconds)))
}

/// A token that was refused and discarded, as the HTTP client reports it.
fn stale_token() -> Fault {
    Fault::unreachable().code(Code::Http(401))
}

fn policy(schedule: Schedule) -> DeliveryPolicy {
    DeliveryPolicy { schedule, ..DeliveryPolicy::default() }
}

fn decided(outcome: &Outcome, progress: Progress, now: Millis) -> Decision {
    decide(outcome, progress, &DeliveryPolicy::default(), &Moment { now, began: now, ..MOMENT })
}

/// Plays the same outcome until the end, and returns the number of attempts and the reason of the dead letter.
fn play(outcome: Outcome, schedule: Schedule) -> (u32, DeadLetterReason) {
    let (mut progress, mut now) = (FRESH, START);
    for attempts in 1.. {
        let decision = decide(&outcome, progress, &policy(schedule), &Moment { now, began: now, ..MOMENT });
        match decision.disposition {
            Disposition::Retry { due, .. } => (now, progress) = (due, decision.progress),
            Disposition::DeadLetter { reason, .. } => return (attempts, reason),
            other => unreachable!("{other:?}"),
        }
    }
    unreachable!("it ends")
}

/// HUB-5: what each fault means, for a first attempt and for a probe.
#[test]
fn hub_5_each_fault_has_one_meaning() {
    use FaultMeaning::{Answered, Gone, Outage, Rejected, Throttled};
    let http = |status| Fault::of_http(status).unwrap();
    let redirect = Fault::business().code(Code::Http(302));
    let table = [
        (http(400), Rejected, Rejected),
        (http(401), Rejected, Rejected),
        (http(404), Rejected, Rejected),
        (http(408), Answered, Outage),
        (http(410), Gone, Gone),
        (http(422), Rejected, Rejected),
        (http(425), Answered, Outage),
        (http(429), Throttled, Outage),
        (http(500), Answered, Outage),
        (http(501), Rejected, Rejected),
        (http(502), Outage, Outage),
        (http(503), Outage, Outage),
        (http(504), Outage, Outage),
        (http(505), Rejected, Rejected),
        (http(507), Answered, Outage),
        (redirect, Rejected, Rejected),
        (stale_token(), Answered, Answered),
        (Fault::io(), Outage, Outage),
        (Fault::unreachable(), Outage, Outage),
        (Fault::timeout(), Outage, Outage),
        // Of protocols without a status: a broker that throttles, one that is not ready, one that rejects.
        (Fault::throttled(), Throttled, Outage),
        (Fault::protocol(), Answered, Outage),
        (Fault::business(), Rejected, Rejected),
        (Fault::system(), Rejected, Rejected),
    ];
    for (fault, first, of_probe) in table {
        assert_eq!(
            (FaultMeaning::of(&fault, false), FaultMeaning::of(&fault, true)),
            (first, of_probe),
            "{fault}"
        );
    }
}

/// HUB-5: every row of the decision after the first attempt: what happens next, the failures, those that count, whether an
/// attempt is recorded.
#[test]
fn hub_5_every_row_of_the_decision() {
    use DeadLetterReason::{Age, Gone, Impossible, Poison, Refused};
    let retry = |stalled| Disposition::Retry { due: START + Duration::from_millis(750), stalled };
    let dead = |reason| Disposition::DeadLetter { reason, holds_order: false };
    let wait = Some(Duration::from_secs(30));
    let (young, old) = (START, START + 4 * DAY);
    let table = [
        (Outcome::Delivered, young, Disposition::Delivered, (0, 0, true)),
        (Outcome::Delivered, old, Disposition::Delivered, (0, 0, true)),
        (Outcome::RuleDisabled, young, Disposition::Hold, (0, 0, false)),
        (Outcome::Unsendable, young, dead(Impossible), (1, 0, true)),
        (Outcome::Crashed, young, dead(Poison), (1, 0, true)),
        (Outcome::Panicked, young, retry(false), (1, 0, true)),
        (
            Outcome::Deferred { retry_after: wait },
            young,
            Disposition::Defer { retry_after: wait },
            (0, 0, false),
        ),
        (Outcome::Deferred { retry_after: None }, old, dead(Age), (0, 0, false)),
        (answered(410), young, dead(Gone), (1, 1, true)),
        (answered(302), young, dead(Refused), (1, 1, true)),
        (answered(422), young, dead(Refused), (1, 1, true)),
        (answered(500), young, retry(false), (1, 1, true)),
        (answered(500), old, dead(Age), (1, 1, true)),
        (answered(429), young, retry(false), (1, 0, true)),
        (answered(503), young, retry(true), (1, 0, true)),
        (failed(stale_token()), young, retry(false), (1, 1, true)),
        (failed(Fault::unreachable()), young, retry(true), (1, 0, true)),
        (failed(Fault::timeout()), young, retry(true), (1, 0, true)),
        (failed(Fault::timeout()), old, dead(Age), (1, 0, true)),
        (probe(500), young, retry(true), (1, 0, true)),
        (probe(422), young, dead(Refused), (1, 1, true)),
    ];
    for (outcome, now, disposition, (failures, counted, attempted)) in table {
        let decision = decided(&outcome, FRESH, now);
        let Progress { failures: all, counted: count, .. } = decision.progress;
        assert_eq!(decision.disposition, disposition, "{outcome:?}");
        assert_eq!((all, count, decision.attempted), (failures, counted, attempted), "{outcome:?}");
        assert_eq!(decision.attempt_number(), 1, "{outcome:?}");
    }
}

/// HUB-5: with `count: all` every failed attempt counts, and nothing else does.
#[test]
fn hub_5_all_failures_count_if_the_rule_says_so() {
    let all = policy(Schedule { count: FailureCounting::All, ..Schedule::default() });
    let counted = |outcome| decide(&outcome, FRESH, &all, &MOMENT).progress.counted;
    for outcome in [
        answered(429),
        answered(503),
        failed(Fault::io()),
        probe(500),
        Outcome::Panicked,
        Outcome::Unsendable,
        Outcome::Crashed,
    ] {
        assert_eq!(counted(outcome), 1, "{outcome:?}");
    }
    for outcome in [Outcome::Delivered, Outcome::RuleDisabled, Outcome::Deferred { retry_after: None }] {
        assert_eq!(counted(outcome), 0, "{outcome:?}");
    }
}

/// HUB-5: five answered failures are the end; a permanent one is the end at once; 410 says so.
#[test]
fn hub_5_answers_cost_attempts_and_permanent_ones_end_it() {
    let usual = Schedule::default();
    assert_eq!(play(answered(500), usual), (5, DeadLetterReason::Attempts));
    for status in [400, 401, 403, 404, 409, 422, 501, 505] {
        assert_eq!(play(answered(status), usual), (1, DeadLetterReason::Refused), "{status}");
    }
    assert_eq!(play(answered(410), usual), (1, DeadLetterReason::Gone));
    assert_eq!(play(Outcome::Unsendable, usual), (1, DeadLetterReason::Impossible));
}

/// HUB-5, PRM-7: an outage costs age and no attempts: it is attempted for three days, at most once an hour at the end.
#[test]
fn prm_7_an_outage_costs_age_and_not_attempts() {
    for outcome in [
        failed(Fault::unreachable()),
        failed(Fault::timeout()),
        answered(429),
        answered(502),
        answered(503),
        answered(504),
    ] {
        let (attempts, reason) = play(outcome, Schedule::default());
        assert_eq!(reason, DeadLetterReason::Age, "{outcome:?}");
        assert!((72..150).contains(&attempts), "{attempts} attempts in three days");
    }
    let all = Schedule { count: FailureCounting::All, ..Schedule::default() };
    assert_eq!(play(failed(Fault::unreachable()), all), (5, DeadLetterReason::Attempts));
}

/// HUB-5. Trap "poison": the third panic is the end, whatever the schedule says, also with other failures in between.
#[test]
fn hub_5_the_third_panic_is_the_end() {
    let usual = Schedule::default();
    assert_eq!(play(Outcome::Panicked, usual), (3, DeadLetterReason::Poison));
    let patient = Schedule { attempts: Some(1_000), ..usual };
    assert_eq!(play(Outcome::Panicked, patient), (3, DeadLetterReason::Poison));
    let strict = Schedule { attempts: Some(2), count: FailureCounting::All, ..usual };
    assert_eq!(play(Outcome::Panicked, strict), (2, DeadLetterReason::Attempts));
    let others = [failed(Fault::io()), answered(503), failed(Fault::timeout())];
    let [first, second, third] = others;
    let mut progress = FRESH;
    for outcome in [Outcome::Panicked, first, Outcome::Panicked, second, third] {
        let decision = decided(&outcome, progress, START);
        assert!(matches!(decision.disposition, Disposition::Retry { .. }), "two panics are no end");
        progress = decision.progress;
    }
    assert_eq!((progress.panics, progress.failures), (2, 5));
    let end = decided(&Outcome::Panicked, progress, START).disposition;
    assert!(matches!(end, Disposition::DeadLetter { reason: DeadLetterReason::Poison, .. }));
}

/// HUB-5. Trap "an open circuit burns the event's five attempts": a deferral costs no attempt, only age, and its end by age
/// is no attempt either.
#[test]
fn hub_5_deferrals_cost_no_attempt() {
    let progress = Progress { counted: 4, failures: 4, ..FRESH };
    let deferred = Outcome::Deferred { retry_after: None };
    for now in [START, START + 4 * DAY] {
        let decision = decided(&deferred, progress, now);
        assert_eq!((decision.progress, decision.attempted, decision.attempt_number()), (progress, false, 5));
    }
}

/// HUB-5: the wait that the service asks for is honoured, up to an hour, and throttling holds up its other deliveries too.
#[test]
fn hub_5_the_service_may_ask_for_a_wait() {
    let due = |outcome| match decided(&outcome, FRESH, START).disposition {
        Disposition::Retry { due, stalled } => (due.since(START).as_secs(), stalled),
        other => unreachable!("{other:?}"),
    };
    assert_eq!((due(asks(503, 7)), due(asks(429, 100_000))), ((7, false), (3_600, false)));
    let throttle = |outcome| decided(&outcome, FRESH, START).throttle.map(|wait| wait.as_secs());
    assert_eq!((throttle(asks(503, 7)), throttle(asks(429, 8))), (Some(7), Some(8)));
    assert_eq!((throttle(asks(500, 7)), throttle(answered(429))), (None, None));
    let of_probe = Outcome::Failed { fault: Fault::throttled().after(DAY), probe: true };
    assert_eq!(throttle(of_probe), None);
}

/// HUB-5: an attempt that began before the circuit closed resumes at once, like all that waited for recovery.
#[test]
fn hub_5_a_failure_from_before_the_recovery_resumes_at_once() {
    let due = |outcome: Outcome, closed| {
        let moment = Moment { now: START + DAY, began: START, circuit_closed: Some(closed), random: 0 };
        match decide(&outcome, FRESH, &DeliveryPolicy::default(), &moment).disposition {
            Disposition::Retry { due, .. } => due.since(START + DAY),
            other => unreachable!("{other:?}"),
        }
    };
    assert_eq!(due(answered(503), START + Duration::from_secs(1)), Duration::ZERO);
    assert_eq!(due(answered(503), Millis(START.0 - 1)), Duration::from_millis(500));
    assert_eq!(due(answered(500), START + Duration::from_secs(1)), Duration::from_millis(500));
}

/// HUB-5: a dead letter holds up its order if the rule says so.
#[test]
fn hub_5_a_dead_letter_holds_its_order_if_the_rule_says_so() {
    let holding = DeliveryPolicy { holds_order: true, ..DeliveryPolicy::default() };
    for outcome in [answered(422), Outcome::Unsendable, Outcome::Crashed] {
        let decision = decide(&outcome, FRESH, &holding, &MOMENT);
        assert!(
            matches!(decision.disposition, Disposition::DeadLetter { holds_order: true, .. }),
            "{outcome:?}"
        );
    }
}

/// HUB-5: a success and a refusal show that the service is up; a failure and an end by age do not.
#[test]
fn hub_5_a_refusal_proves_that_the_service_is_up() {
    let proves = |outcome, now| decided(&outcome, FRESH, now).proves_service_up();
    assert!(
        proves(Outcome::Delivered, START) && proves(answered(422), START) && proves(answered(410), START)
    );
    assert!(!proves(answered(500), START) && !proves(answered(503), START + 4 * DAY));
    assert!(!proves(Outcome::Unsendable, START) && !proves(Outcome::Crashed, START));
}

/// OPS-2: the label `error.type` of each outcome.
#[test]
fn ops_2_each_outcome_has_an_error_type() {
    let word = |outcome: Outcome| outcome.error_type().map(ErrorType::word);
    let table = [
        (Outcome::Delivered, Some("none")),
        (answered(302), Some("3xx")),
        (answered(429), Some("4xx")),
        (failed(stale_token()), Some("4xx")),
        (answered(503), Some("5xx")),
        (failed(Fault::timeout()), Some("timeout")),
        (failed(Fault::io()), Some("unreachable")),
        (failed(Fault::protocol()), Some("other")),
        (Outcome::Unsendable, Some("impossible")),
        (Outcome::Panicked, Some("panic")),
        (Outcome::Deferred { retry_after: None }, None),
        (Outcome::RuleDisabled, None),
    ];
    for (outcome, expected) in table {
        assert_eq!(word(outcome), expected, "{outcome:?}");
    }
}

/// HUB-5: the waits after 1, 2, 5, 13 and `u32::MAX` failures in microseconds, for three random numbers. The docs promise them.
#[test]
fn hub_5_the_waits_stay_as_they_are() {
    let short = Schedule {
        base: Duration::from_millis(50),
        cap: Duration::from_millis(1_300),
        ..Schedule::default()
    };
    let golden = [
        (Schedule::default(), 0, [500_000, 1_000_000, 8_000_000, 1_800_000_000, 1_800_000_000]),
        (Schedule::default(), 1 << 63, [750_000, 1_500_000, 12_000_000, 2_700_000_000, 2_700_000_000]),
        (
            Schedule::default(),
            0x1234_5678_9abc_def0,
            [535_556, 1_071_111, 8_568_889, 1_928_000_000, 1_928_000_000],
        ),
        (short, 0, [25_000, 50_000, 400_000, 650_000, 650_000]),
        (short, 1 << 63, [37_500, 75_000, 600_000, 975_000, 975_000]),
        (short, 0x1234_5678_9abc_def0, [26_778, 53_556, 428_444, 696_222, 696_222]),
    ];
    for (schedule, random, expected) in golden {
        let rounded = |wait: Duration| (wait.as_nanos() + 500) / 1_000;
        let waits = [1, 2, 5, 13, u32::MAX].map(|failures| rounded(back_off(&schedule, failures, random)));
        assert_eq!(waits, expected, "{random:x}");
    }
}

proptest! {
    /// HUB-5: whatever is answered in which order, it ends; counted never passes the attempts; time never runs back.
    #[test]
    fn hub_5_every_delivery_ends(
        outcomes in proptest::collection::vec(0_u8..6, 1..50), attempts in 1_u32..8, random: u64,
    ) {
        let schedule = Schedule { attempts: Some(attempts), ..Schedule::default() };
        let (mut progress, mut now) = (FRESH, START);
        for turn in outcomes.iter().cycle().take(100_000) {
            let outcome = match turn {
                0 => answered(500),
                1 => answered(503),
                2 => failed(Fault::io()),
                3 => failed(Fault::timeout()),
                4 => Outcome::Deferred { retry_after: None },
                _ => Outcome::Deferred { retry_after: Some(Duration::from_secs(60)) },
            };
            let moment = Moment { now, began: now, circuit_closed: None, random };
            let decision = decide(&outcome, progress, &policy(schedule), &moment);
            let due = match decision.disposition {
                Disposition::Retry { due, .. } => due,
                Disposition::Defer { retry_after } => now + retry_after.unwrap_or(Duration::from_secs(1)),
                Disposition::DeadLetter { .. } => return Ok(()),
                Disposition::Delivered | Disposition::Hold => unreachable!("it never succeeds"),
            };
            let next = decision.progress;
            prop_assert!(due > now, "time stands still");
            prop_assert!(next.counted < attempts && next.counted <= next.failures);
            (now, progress) = (due, next);
        }
        // Only deferrals of a second each can go on for so long, and they end by age.
        prop_assert!(now.since(START) < schedule.age_max);
    }
}
