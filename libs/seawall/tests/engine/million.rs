//! The whole guard for a million calls on a manual clock: outages, slow phases, hung calls, and a backend that comes back.

use std::cell::Cell;

use seawall::breaker::State;
use seawall::{Attempt, Backoff, Breaker, Fault, Guard, Kind, Retry, Time, millis, secs};
use seawall_testkit::{ManualClock, run};

/// What the backend does, by the second: five minutes of health, then a minute each of failing half of the calls, failing
/// all of them, and hanging.
fn backend(second: u64, random: u64) -> Behaviour {
    match second % 480 {
        0..300 => Behaviour::Good,
        300..360 if random.is_multiple_of(2) => Behaviour::Good,
        300..420 => Behaviour::Failing,
        _ => Behaviour::Hanging,
    }
}

enum Behaviour {
    Good,
    Failing,
    Hanging,
}

/// What a million calls left behind, counted by the test itself.
#[derive(Default)]
struct Seen {
    sent: Cell<u64>,
    retries: Cell<u64>,
    hung: Cell<u64>,
}

fn add(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

/// ENG-3, ENG-4, ENG-5, ENG-7, PRM-3, PRM-4, PRM-6: a million calls through one guard.
#[test]
fn prm_4_a_million_calls_through_one_guard_keep_every_promise() {
    const CALLS: u64 = 1_000_000;
    let hands = ManualClock::new();
    let guard = Guard::builder("backend")
        .clock(hands.clock())
        .seed(42)
        .call_timeout(secs(10))
        .attempt_timeout(secs(1))
        .retry(Retry::max_attempts(3).backoff(Backoff::exponential(millis(50))))
        .breaker(Breaker::failure_rate(50).over_time(secs(10)).minimum_calls(20).cooldown(secs(5)).seed(7))
        .build()
        .unwrap();
    let start = hands.now();
    let (seen, mut random) = (Seen::default(), 88_172_645_463_325_252_u64);
    let mut outcomes = [0_u64; 6];
    let mut healthy_failures = 0;
    for number in 0..CALLS {
        // Xorshift: the test's own chance, so that it does not lean on the crate's.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let operation = async |attempt: Attempt| {
            add(&seen.sent);
            if attempt.number() > 1 {
                add(&seen.retries);
            }
            assert!(attempt.number() <= 3);
            match backend(hands.now().since(start).as_secs(), random.rotate_left(attempt.number() * 7)) {
                Behaviour::Good => Ok(number),
                Behaviour::Failing => Err(Fault::protocol()),
                Behaviour::Hanging => {
                    add(&seen.hung);
                    hands.sleep_until(hands.now() + secs(100)).await;
                    Err(Fault::io())
                }
            }
        };
        let began = hands.now();
        let result = run(&hands, guard.idempotent().call(operation));
        let took = hands.now().since(began);
        assert!(took <= secs(10), "call {number} outlived its deadline: {took:?}");
        outcomes[match &result {
            Ok(answer) => {
                assert_eq!(*answer, number, "an answer went to the wrong caller");
                0
            }
            Err(error) => match error.kind() {
                Kind::Exhausted => 1,
                Kind::BudgetDenied => 2,
                Kind::TimedOut => 3,
                Kind::Rejected => 4,
                _ => 5,
            },
        }] += 1;
        let second = hands.now().since(start).as_secs() % 480;
        healthy_failures += u64::from(result.is_err() && (20..300).contains(&second));
        hands.advance(millis(2));
    }

    let elapsed = hands.now().since(start).as_secs();
    let [good, exhausted, denied, _, rejected, other] = outcomes;
    assert_eq!(outcomes.iter().sum::<u64>(), CALLS);
    assert!(
        good > CALLS / 2 && exhausted > 0 && denied > 0 && rejected > 10_000,
        "all of it happened: {outcomes:?}"
    );
    assert_eq!(other, 0, "{outcomes:?}");
    // Within 20 s of the backend's return (cooldown, window) nobody fails any more.
    assert_eq!(healthy_failures, 0, "the guard stands in the way of a healthy backend");
    let first_attempts = seen.sent.get() - seen.retries.get();
    let allowed = first_attempts / 10 + 3 * (elapsed + 10);
    assert!(seen.retries.get() <= allowed, "{} retries, {allowed} allowed", seen.retries.get());
    // A circuit that is open lets one probe through each five seconds; a hanging backend sees little more than that.
    let hanging_minutes = elapsed / 480 + 1;
    assert!(seen.hung.get() <= hanging_minutes * 60, "{} calls were left hanging", seen.hung.get());

    let breaker = guard.breaker().unwrap();
    assert_eq!(breaker.probes_under_way(), 0);
    let counts = breaker.counts();
    assert!(
        counts.opened > 2 * hanging_minutes && counts.refused == rejected,
        "{counts:?}, {rejected} rejected"
    );
    assert_eq!((counts.late, counts.panicked), (0, 0), "one call at a time is never late");
    hands.advance(secs(60));
    while !matches!(backend(hands.now().since(start).as_secs(), 1), Behaviour::Good) {
        hands.advance(secs(1));
    }
    assert!(run(&hands, guard.call(async |_| Ok::<_, Fault>(()))).is_ok());
    assert_eq!((breaker.state(), hands.sleepers_waiting()), (State::Closed, 0));
}
