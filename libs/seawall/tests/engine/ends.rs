//! Every call that has started ends exactly once, and as its caller sees it: calls of all kinds through guards of all kinds,
//! dropped at any poll, with operations and classifiers that panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

use seawall::breaker::Scope;
use seawall::event::{EventKind, Events};
use seawall::{
    Attempt, Backoff, Breaker, Budget, Bulkhead, Chaos, Fault, Guard, Hedge, RateLimit, Retry, millis,
};
use seawall_testkit::{ManualClock, Script, Step, poll_once};

/// xorshift: the same calls in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from(self.0 % u64::from(bound)).unwrap()
    }

    fn one_in(&mut self, bound: u32) -> bool {
        self.below(bound) == 0
    }
}

/// A guard with some of everything; `None` if that can't work together.
fn guard(chance: &mut Chance, hands: &ManualClock) -> Option<Guard> {
    let mut builder = Guard::builder("peer").clock(hands.clock()).seed(chance.0).no_retry();
    if chance.one_in(2) {
        let wait = millis(u64::from(chance.below(3)) * 10 + 1);
        let mut retry = Retry::max_attempts(2 + chance.below(3)).backoff(Backoff::constant(wait).no_jitter());
        if chance.one_in(2) {
            retry = retry.on_rejection();
        }
        if chance.one_in(3) {
            retry = retry.budget(Budget::share_of_calls(0).floor_per_second(0.12));
        }
        builder = builder.retry(retry);
    }
    if chance.one_in(2) {
        builder = builder.attempt_timeout(millis(50));
    }
    if chance.one_in(2) {
        builder = builder.call_timeout(millis(130));
    }
    if chance.one_in(2) {
        let scope = if chance.one_in(2) { Scope::Call } else { Scope::Attempt };
        let breaker = Breaker::consecutive_failures(1 + chance.below(3)).cooldown(millis(40));
        builder = builder.breaker(breaker.scope(scope));
    }
    if chance.one_in(3) {
        builder = builder.bulkhead(Bulkhead::max_calls(1).max_wait(millis(30)));
    }
    if chance.one_in(3) {
        builder = builder.rate_limit(RateLimit::calls(1).per(millis(20)).max_wait(millis(40)));
    }
    if chance.one_in(4) {
        builder = builder.chaos(Chaos::new().fault_rate(50));
    }
    builder.hedge(Hedge::after(millis(20))).build().ok()
}

fn step(chance: &mut Chance) -> Step {
    match chance.below(9) {
        0 => Step::Ok,
        1 => Step::OkAfter(millis(30)),
        2 => Step::Fail(Fault::io()),
        3 => Step::FailAfter(millis(25), Fault::io()),
        4 => Step::Fail(Fault::business()),
        5 => Step::Hang,
        6 => Step::Panic,
        7 => Step::Yield,
        _ => Step::FailAfter(millis(60), Fault::of_http(503).unwrap()),
    }
}

/// What its caller sees of a call.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Seen {
    Answer,
    Error,
    /// It was dropped.
    Nothing,
    Panic,
}

/// Makes one call of some kind, and drops it at some poll or never. Says whether answers were judged faults, too.
#[expect(clippy::panic, reason = "classifiers may panic")]
fn call(chance: &mut Chance, hands: &ManualClock, guard: &Guard) -> (Seen, bool) {
    let script = Script::new(hands, (0..6).map(|_| step(chance)).collect::<Vec<_>>());
    let (kind, judge, dropped_at) = (chance.below(4), chance.below(5), chance.below(8));
    let judged = |result: &Result<u32, Fault>| match (judge, result) {
        (0, Err(_)) => None,
        (1, Ok(_)) => Fault::of_http(503),
        (2, Ok(_)) => panic!("the classifier panics"),
        (_, result) => result.as_ref().err().copied(),
    };
    let operation = |attempt: Attempt| {
        let answer = script.attempt(attempt);
        async { answer.await.map(|()| 1) }
    };
    let work = || {
        let request = guard.idempotent().classify(judged);
        let mut call: Pin<Box<dyn Future<Output = bool>>> = match kind {
            0 => Box::pin(async {
                request.or_value(7).call(operation).await.is_ok_and(|it| !it.is_fallback())
            }),
            1 => Box::pin(async { request.call(operation).await.is_ok() }),
            _ => Box::pin(async { request.hedged().call(operation).await.is_ok() }),
        };
        // Somebody else may be inside.
        let _inside = (kind == 3).then(|| guard.bulkhead().and_then(|gate| gate.try_enter().ok()));
        for poll in 0..100 {
            if dropped_at < 5 && poll == dropped_at {
                break;
            }
            match poll_once(call.as_mut()) {
                Poll::Ready(true) => return Seen::Answer,
                Poll::Ready(false) => return Seen::Error,
                Poll::Pending if hands.advance_to_next() => {}
                Poll::Pending => hands.advance(millis(10)),
            }
        }
        Seen::Nothing
    };
    (catch_unwind(AssertUnwindSafe(work)).unwrap_or(Seen::Panic), judge == 1)
}

fn told(events: &mut Events) -> Vec<EventKind> {
    std::iter::from_fn(|| events.try_next()).map(|event| event.what).collect()
}

/// ENG-13: every call that has `started` ends in exactly one of `succeeded`, `given_up` and `abandoned`, and in the one that
/// its caller sees; nothing is left inside.
#[test]
fn eng_13_every_call_ends_once_and_as_its_caller_sees_it() {
    for seed in 1..2_000_u64 {
        let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let hands = ManualClock::new();
        let Some(guard) = guard(&mut chance, &hands) else { continue };
        let mut events = guard.subscribe(1_000);
        for _ in 0..4 {
            let (seen, judged_a_fault) = call(&mut chance, &hands, &guard);
            let told = told(&mut events);
            let ends: Vec<&str> = told
                .iter()
                .map(EventKind::name)
                .filter(|name| matches!(*name, "succeeded" | "given_up" | "abandoned"))
                .collect();
            let expected: &[&str] = match seen {
                Seen::Answer if judged_a_fault => &["given_up"],
                Seen::Answer => &["succeeded"],
                Seen::Error => &["given_up"],
                Seen::Nothing if told.is_empty() => &[],
                Seen::Nothing | Seen::Panic => &["abandoned"],
            };
            assert_eq!(ends, expected, "seed {seed}: {seen:?} {told:?}");
            assert_eq!(told.contains(&EventKind::Started), !expected.is_empty(), "seed {seed}: {told:?}");
            assert_eq!(told.contains(&EventKind::Panicked), seen == Seen::Panic, "seed {seed}: {told:?}");
            let left = guard.bulkhead().map_or((0, 0), |gate| (gate.inside(), gate.waiting()));
            assert_eq!(left, (0, 0), "seed {seed}");
        }
    }
}
