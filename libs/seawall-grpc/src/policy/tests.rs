use std::time::Duration;

use super::machine::{Due, Failure, Machine, Pushback, Reach, Reason, Step};
use super::{CallPolicy, HedgingPolicy, RetryPolicy, StatusCodes};

const UNAVAILABLE: i32 = 14;
const INTERNAL: i32 = 13;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn codes(codes: &[i32]) -> StatusCodes {
    let mut set = StatusCodes::default();
    codes.iter().for_each(|code| set.insert(*code));
    set
}

fn retry(max_attempts: u32) -> CallPolicy {
    CallPolicy::Retry(RetryPolicy {
        max_attempts,
        initial_backoff: ms(100),
        max_backoff: ms(1_000),
        backoff_multiplier: 2.0,
        retryable: codes(&[UNAVAILABLE]),
    })
}

fn hedging(max_attempts: u32, delay: u64) -> CallPolicy {
    CallPolicy::Hedging(HedgingPolicy { max_attempts, delay: ms(delay), non_fatal: codes(&[UNAVAILABLE]) })
}

fn seen(code: i32, pushback: Pushback) -> Failure {
    Failure { code, reach: Reach::Seen, pushback }
}

/// Fails as the script says, with the middle of the jitter, and returns the pauses.
fn pauses(policy: &CallPolicy, script: &[Pushback]) -> (Vec<Duration>, Step) {
    let mut machine = Machine::start(policy);
    let (mut now, mut pauses) = (Duration::ZERO, Vec::new());
    for pushback in script {
        match machine.failed(policy, seen(UNAVAILABLE, *pushback), now, true, 0.5) {
            Step::Wait => {
                let at = machine.wakes_at().unwrap();
                pauses.push(at - now);
                now = at;
                assert_eq!(machine.due(policy, now, true), Due::Send);
                assert_eq!(machine.due(policy, now, true), Due::Nothing);
            }
            step => return (pauses, step),
        }
    }
    (pauses, Step::Wait)
}

/// A6: "the n-th attempt will occur at min(initialBackoff*backoffMultiplier**(n-1), maxBackoff)", with a jitter of 20 %.
#[test]
fn adp_2_the_backoff_grows_up_to_its_maximum_with_a_jitter_of_a_fifth() {
    let (waits, end) = pauses(&retry(7), &[Pushback::Nothing; 7]);
    assert_eq!(waits, [100, 200, 400, 800, 1_000, 1_000].map(ms));
    assert_eq!(end, Step::Return(Reason::Exhausted));
    for (chance, expected) in [(0.0, 80), (0.5, 100), (1.0, 120)] {
        let mut machine = Machine::start(&retry(2));
        machine.failed(&retry(2), seen(UNAVAILABLE, Pushback::Nothing), Duration::ZERO, true, chance);
        assert_eq!(machine.wakes_at(), Some(ms(expected)));
    }
}

/// A6: "Retry in n ms. If this attempt also fails, retry delay will reset to initial backoff for the following retry".
#[test]
fn adp_2_a_pushback_resets_the_backoff() {
    let none = Pushback::Nothing;
    let (waits, _) = pauses(&retry(7), &[none, none, Pushback::After(ms(7)), none, none]);
    assert_eq!(waits, [100, 200, 7, 100, 200].map(ms));
    assert_eq!(pauses(&retry(7), &[none, Pushback::Stop]).1, Step::Return(Reason::Pushback));
}

/// A backoff that grows for ever stays at its maximum.
#[test]
fn adp_2_a_backoff_never_overflows() {
    let mut policy = retry(u32::MAX);
    if let CallPolicy::Retry(retry) = &mut policy {
        retry.backoff_multiplier = f64::MAX;
        retry.max_backoff = Duration::from_secs(315_576_000_000);
    }
    let mut machine = Machine::start(&policy);
    for _ in 0..3 {
        assert_eq!(
            machine.failed(&policy, seen(UNAVAILABLE, Pushback::Nothing), Duration::ZERO, true, 1.0),
            Step::Wait
        );
        machine.due(&policy, machine.wakes_at().unwrap(), true);
    }
}

/// A6: "after 1ms there would be one outstanding RPC (the original), after 501ms there would be two outstanding RPCs, after
/// 1001ms there would be three outstanding RPCs, and after 1501ms there would be four".
#[test]
fn adp_2_hedges_are_sent_a_delay_apart() {
    let policy = hedging(4, 500);
    let mut machine = Machine::start(&policy);
    let mut outstanding = Vec::new();
    for now in [1, 501, 1_001, 1_501, 2_001] {
        while machine.due(&policy, ms(now), true) == Due::Send {}
        outstanding.push(machine.attempts());
    }
    assert_eq!(outstanding, [1, 2, 3, 4, 4]);
}

/// A6: `"hedgingDelay": "0s"` "issues four RPCs simultaneously".
#[test]
fn adp_2_without_a_delay_all_hedges_are_sent_at_once() {
    let policy = hedging(4, 0);
    let mut machine = Machine::start(&policy);
    while machine.due(&policy, Duration::ZERO, true) == Due::Send {}
    assert_eq!(machine.attempts(), 4);
}

/// A6: "Immediately send next scheduled hedged request, if any. Subsequent hedged requests will resume at hedgingDelay".
#[test]
fn adp_2_a_failure_that_is_not_fatal_sends_the_next_hedge_at_once() {
    let policy = hedging(3, 500);
    let mut machine = Machine::start(&policy);
    assert_eq!(machine.failed(&policy, seen(UNAVAILABLE, Pushback::Nothing), ms(200), true, 0.5), Step::Send);
    assert_eq!((machine.attempts(), machine.wakes_at()), (2, Some(ms(700))));
    assert_eq!(machine.due(&policy, ms(700), true), Due::Send);
    assert_eq!(machine.failed(&policy, seen(UNAVAILABLE, Pushback::Nothing), ms(800), true, 0.5), Step::Wait);
    assert_eq!(
        machine.failed(&policy, seen(UNAVAILABLE, Pushback::Nothing), ms(900), true, 0.5),
        Step::Return(Reason::Exhausted),
        "the last one of all"
    );
}

/// A6: "Send next hedged request in n ms. Subsequent hedged requests will resume at n + hedgingDelay", and "Don't send any more
/// hedged requests".
#[test]
fn adp_2_a_pushback_moves_or_stops_the_next_hedge() {
    let policy = hedging(4, 500);
    let mut machine = Machine::start(&policy);
    assert_eq!(
        machine.failed(&policy, seen(UNAVAILABLE, Pushback::After(ms(50))), ms(100), true, 0.5),
        Step::Wait
    );
    assert_eq!(machine.wakes_at(), Some(ms(150)));
    assert_eq!(machine.due(&policy, ms(150), true), Due::Send);
    assert_eq!(machine.wakes_at(), Some(ms(650)));
    assert_eq!(machine.due(&policy, ms(650), true), Due::Send);
    assert_eq!(machine.failed(&policy, seen(UNAVAILABLE, Pushback::Stop), ms(700), true, 0.5), Step::Wait);
    assert_eq!(machine.wakes_at(), None, "one is in flight, and none follows");
    assert_eq!(
        machine.failed(&policy, seen(UNAVAILABLE, Pushback::Nothing), ms(800), true, 0.5),
        Step::Return(Reason::Pushback)
    );
}

/// A6: "If any other status code is received, all outstanding RPCs are canceled and the error is returned".
#[test]
fn adp_2_a_fatal_status_ends_all_hedges() {
    let policy = hedging(4, 0);
    let mut machine = Machine::start(&policy);
    while machine.due(&policy, Duration::ZERO, true) == Due::Send {}
    let step = machine.failed(&policy, seen(INTERNAL, Pushback::Nothing), ms(1), true, 0.5);
    assert_eq!(step, Step::Return(Reason::Fatal));
}

/// A6: "subsequent hedged RPCs will only be sent if token_count is greater than the threshold".
#[test]
fn adp_2_a_hedge_without_tokens_is_not_sent() {
    let policy = hedging(4, 500);
    let mut machine = Machine::start(&policy);
    assert_eq!(machine.due(&policy, ms(500), false), Due::Throttled);
    assert_eq!(machine.wakes_at(), None);
    let step = machine.failed(&policy, seen(UNAVAILABLE, Pushback::Nothing), ms(600), false, 0.5);
    assert_eq!(step, Step::Return(Reason::Throttled));
}

/// A6: "the client library will immediately retry it once. If this fails, then the RPC will be handled by the configured retry
/// policy", and "transparent retries do not count toward the limit of configured RPC attempts (maxAttempts)".
#[test]
fn adp_2_what_the_server_refused_is_sent_again_once_and_not_counted() {
    let policy = retry(2);
    let refused = Failure { code: UNAVAILABLE, reach: Reach::Refused, pushback: Pushback::Nothing };
    let mut machine = Machine::start(&policy);
    assert_eq!(machine.resend(refused, ms(1), false, 0.5), Some(Step::Resend));
    assert_eq!((machine.attempts(), machine.resend(refused, ms(2), false, 0.5)), (1, None));
    assert_eq!(machine.failed(&policy, refused, ms(2), true, 0.5), Step::Wait);
    assert_eq!(machine.due(&policy, ms(102), true), Due::Send);
    assert_eq!(machine.failed(&policy, refused, ms(103), true, 0.5), Step::Return(Reason::Exhausted));
}

/// A6: "in which the RPC never leaves the client, the client library can transparently retry until a success occurs, or the RPC's
/// deadline passes".
#[test]
fn adp_2_what_never_left_is_sent_again_with_growing_pauses() {
    let unsent = Failure { code: UNAVAILABLE, reach: Reach::Unsent, pushback: Pushback::Nothing };
    let pauses = |waits: bool| {
        let mut machine = Machine::start(&CallPolicy::None);
        let (mut now, mut pauses) = (Duration::ZERO, Vec::new());
        while let Some(step) = machine.resend(unsent, now, waits, 0.5).filter(|_| pauses.len() < 50) {
            let at = if step == Step::Wait { machine.wakes_at().unwrap() } else { now };
            pauses.push(u64::try_from((at - now).as_millis()).unwrap());
            now = at;
            assert_eq!(
                machine.due(&CallPolicy::None, now, true),
                if step == Step::Wait { Due::Resend } else { Due::Nothing }
            );
        }
        (pauses, machine.attempts())
    };
    assert_eq!(pauses(false), (vec![0, 100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000, 1_000], 1));
    assert_eq!(
        pauses(true).0.len(),
        50,
        "a method that waits for a connection has no limit but its deadline"
    );
}

/// A6: "when an RPC becomes committed, the client will continue with the currently in-flight attempt but will not make any
/// subsequent attempts".
#[test]
fn adp_2_a_committed_call_is_not_repeated() {
    let policy = retry(5);
    let mut machine = Machine::start(&policy);
    machine.commit();
    let refused = Failure { code: UNAVAILABLE, reach: Reach::Refused, pushback: Pushback::Nothing };
    assert_eq!(machine.resend(refused, ms(1), true, 0.5), None);
    assert_eq!(machine.failed(&policy, refused, ms(1), true, 0.5), Step::Return(Reason::Committed));
}
