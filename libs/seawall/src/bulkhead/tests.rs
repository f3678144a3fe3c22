//! The gate, its line, and limits that find themselves.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::machine::{Effect, Event, Word, step};
use super::policy::Entry;
use super::*;
use crate::clock::Clock;
use crate::testing::Hands;
use crate::{Time, millis, secs};

fn gate(bulkhead: Bulkhead) -> (Arc<Hands>, Gate) {
    let hands = Hands::new();
    let gate = bulkhead.build_with(Clock::custom(hands.clone())).expect("a sound configuration");
    (hands, gate)
}

fn wait<'a>(gate: &'a Gate) -> Waiter<'a> {
    match gate.enter().expect("there is room in the line") {
        Entry::Waiting(waiter) => waiter,
        Entry::Inside(_) => unreachable!("it was full"),
    }
}

fn poll<'a>(waiter: &mut Waiter<'a>) -> Option<Permit<'a>> {
    match waiter.poll_enter(&Context::from_waker(Waker::noop())) {
        Poll::Ready(permit) => Some(permit),
        Poll::Pending => None,
    }
}

/// ENG-6: a place that is kept stays taken after its call has ended, whoever waits for it, and goes to the first of the line when it
/// is given back.
#[test]
fn eng_6_a_place_that_is_kept_outlives_its_call() {
    let (_, gate) = gate(Bulkhead::max_calls(2).max_waiting(1).max_wait(secs(1)));
    let gate = Arc::new(gate);
    let (other, call) = (gate.try_enter().expect("a place"), gate.try_enter().expect("a place"));
    let mut waiter = wait(&gate);
    let kept = gate.keep_place();
    drop(call);
    assert_eq!((gate.inside(), poll(&mut waiter).is_some()), (2, false), "nobody enters in between");
    drop(kept);
    let admitted = poll(&mut waiter).expect("the place is free");
    assert!(gate.try_enter().is_err());
    drop((other, admitted));
    assert_eq!(gate.inside(), 0);
    let (call, kept) = (gate.try_enter().expect("a place"), gate.keep_place());
    drop(call);
    assert_eq!(gate.inside(), 1);
    let rest = gate.try_enter().expect("the other place");
    assert!(gate.try_enter().is_err(), "the parked place is none");
    drop((rest, kept));
    assert_eq!(gate.inside(), 0);
}

/// ENG-6: at most N at once; full means refused at once.
#[test]
fn eng_6_full_means_refused() {
    let (_, gate) = gate(Bulkhead::max_calls(3));
    let inside: Vec<_> = (0..3).map(|_| gate.try_enter().expect("a place")).collect();
    let full = gate.try_enter().expect_err("full");
    assert_eq!((full.inside(), full.to_string().as_str()), (3, "the bulkhead is full with 3 calls"));
    assert!(gate.enter().is_err(), "there is no line");
    drop(inside);
    assert_eq!((gate.inside(), gate.refused()), (0, 2));
}

/// ENG-6: the line is fair: first come, first served, and nobody overtakes it.
#[test]
fn eng_6_the_line_is_fair_and_nobody_overtakes_it() {
    let (_, gate) = gate(Bulkhead::max_calls(1).max_wait(secs(5)).max_waiting(3));
    let inside = gate.try_enter().expect("a place");
    let (mut first, mut second) = (wait(&gate), wait(&gate));
    assert!(poll(&mut first).is_none() && poll(&mut second).is_none());
    drop(inside);
    assert!(gate.try_enter().is_err(), "the place is the first one's");
    assert!(poll(&mut second).is_none(), "it is not the second one's turn");
    let permit = poll(&mut first).expect("its turn");
    drop(permit);
    drop(poll(&mut second).expect("its turn"));
    assert_eq!((gate.inside(), gate.waiting()), (0, 0));
    assert!(gate.try_enter().is_ok(), "the line is over");
}

/// ENG-6: the line is bounded.
#[test]
fn eng_6_the_line_is_bounded() {
    let (_, gate) = gate(Bulkhead::max_calls(1).max_wait(secs(5)).max_waiting(2));
    let _inside = gate.try_enter().expect("a place");
    let _line = [wait(&gate), wait(&gate)];
    assert!(gate.enter().is_err());
    assert_eq!(gate.waiting(), 2);
}

/// PRM-4, ENG-6: a cancelled waiter never loses its place to nobody: before its turn, and after it was called.
#[test]
fn prm_4_a_cancelled_waiter_passes_its_place_on() {
    let (_, gate) = gate(Bulkhead::max_calls(1).max_wait(secs(5)).max_waiting(5));
    let inside = gate.try_enter().expect("a place");
    let (first, second, mut third) = (wait(&gate), wait(&gate), wait(&gate));
    drop(first);
    assert_eq!(gate.waiting(), 2);
    drop(inside);
    // The second was called and is dropped before it is polled.
    drop(second);
    drop(poll(&mut third).expect("the place went to the next"));
    assert_eq!((gate.inside(), gate.waiting()), (0, 0));
}

/// ENG-6: who waits in vain walks away; a place that comes in the same moment is taken.
#[test]
fn eng_6_waiting_in_vain_is_a_refusal() {
    let (hands, gate) = gate(Bulkhead::max_calls(1).max_wait(secs(5)).max_waiting(5));
    let inside = gate.try_enter().expect("a place");
    let waiter = wait(&gate);
    assert_eq!(waiter.until(), Time::now(&*hands) + secs(5));
    assert!(waiter.give_up().is_err());
    let waiter = wait(&gate);
    drop(inside);
    drop(waiter.give_up().expect("it was just its turn"));
    assert_eq!((gate.inside(), gate.refused()), (0, 1));
}

/// ENG-6: a limit that changes while there is load is safe in both directions.
#[test]
fn eng_6_the_limit_can_change_under_load() {
    let wide = Bulkhead::max_calls(3).max_wait(secs(5)).max_waiting(5);
    let (_, gate) = gate(wide);
    let mut inside: Vec<_> = (0..3).map(|_| gate.try_enter().expect("a place")).collect();
    let mut waiters = [wait(&gate), wait(&gate)];
    gate.reconfigure(&Bulkhead::max_calls(1).max_wait(secs(5)).max_waiting(5)).expect("sound");
    inside.pop();
    inside.pop();
    assert!(poll(&mut waiters[0]).is_none(), "there are still as many inside as may be");
    inside.pop();
    let mut permits: Vec<_> = poll(&mut waiters[0]).into_iter().collect();
    assert_eq!((permits.len(), gate.inside()), (1, 1));
    gate.reconfigure(&wide).expect("sound");
    permits.extend(poll(&mut waiters[1]));
    assert_eq!(
        (permits.len(), gate.inside(), gate.waiting()),
        (2, 2, 0),
        "a higher limit lets in those who wait"
    );
    permits.clear();
    assert_eq!(gate.inside(), 0);
}

proptest! {
    /// ENG-6: the machine never lets more in than the limit says, what leaves is always counted, and the line is served in
    /// its order, whatever the weights.
    #[test]
    fn eng_6_the_machine_keeps_the_limit(
        limit in 3u32..10,
        script in prop::collection::vec((0u8..4, 1u32..4), 0..200),
    ) {
        let (mut word, mut inside, mut line) = (Word::default(), Vec::new(), Vec::new());
        for (act, weight) in script {
            match act {
                0 | 1 => {
                    let (next, effect) = step(word, Event::Enter { weight }, limit);
                    prop_assert!(line.is_empty() || effect == Effect::AskTheLine);
                    word = next;
                    inside.extend((effect == Effect::Entered).then_some(weight));
                }
                2 => {
                    let Some(weight) = inside.pop() else { continue };
                    let (next, effect) = step(word, Event::Leave { weight }, limit);
                    prop_assert_eq!(effect, if line.is_empty() { Effect::Left } else { Effect::AskTheLine });
                    word = next;
                    while let Some(weight) = line.first().copied() {
                        let (next, effect) = step(word, Event::Admit { weight, line_ends: line.len() == 1 }, limit);
                        if effect == Effect::Full {
                            break;
                        }
                        word = next;
                        inside.push(line.remove(0));
                    }
                }
                _ => {
                    let (next, effect) = step(word, Event::Queue { weight }, limit);
                    word = next;
                    if effect == Effect::Entered { inside.push(weight) } else { line.push(weight) }
                }
            }
            prop_assert_eq!((word.inside, word.line), (inside.iter().sum(), !line.is_empty()));
            prop_assert!(word.inside <= limit);
            prop_assert!(line.first().is_none_or(|weight| word.inside + weight > limit), "it would fit");
        }
    }
}

/// ENG-6. Trap "readiness does not transfer to clones": with 64 threads, never more inside than the limit, and at the end
/// nobody is.
#[test]
fn eng_6_never_more_inside_than_the_limit_with_64_threads() {
    let (_, gate) = gate(Bulkhead::max_calls(7).max_wait(secs(5)).max_waiting(20));
    let (barrier, inside, most) = (Barrier::new(64), AtomicU32::new(0), AtomicU32::new(0));
    let served = AtomicU32::new(0);
    let work = |permit: Permit<'_>| {
        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::yield_now();
        inside.fetch_sub(1, Ordering::SeqCst);
        served.fetch_add(1, Ordering::Relaxed);
        drop(permit);
    };
    std::thread::scope(|scope| {
        for number in 0..64 {
            let (gate, barrier, work) = (&gate, &barrier, &work);
            scope.spawn(move || {
                barrier.wait();
                for round in 0..500 {
                    match gate.enter() {
                        Err(_) => std::thread::yield_now(),
                        Ok(Entry::Inside(permit)) => work(permit),
                        Ok(Entry::Waiting(mut waiter)) => {
                            // Every third walks away, whether it was called or not.
                            let patience = if (number + round) % 3 == 0 { 2 } else { u32::MAX };
                            for _ in 0..patience {
                                if let Some(permit) = poll(&mut waiter) {
                                    work(permit);
                                    break;
                                }
                                std::thread::yield_now();
                            }
                        }
                    }
                }
            });
        }
    });
    assert!(most.into_inner() <= 7, "more inside than the limit");
    assert_eq!((gate.inside(), gate.waiting()), (0, 0));
    assert!(served.into_inner() > 1_000);
    assert!(gate.try_enter().is_ok(), "no place was lost");
}

/// A peer with room for `capacity` calls at once, each of which takes 10 ms; beyond that they take longer in proportion,
/// and time out where that is asked for.
fn settle(adapt: Adapt, start: u32, load: u32, capacity: u32, times_out: bool, rounds: u32) -> Vec<u32> {
    let (_, gate) = gate(Bulkhead::max_calls(start).adaptive(adapt));
    let mut limits = Vec::new();
    for _ in 0..rounds {
        let permits: Vec<_> = (0..load).map_while(|_| gate.try_enter().ok()).collect();
        let inside = permits.len() as u32;
        let took = millis(10) * inside.max(capacity) / capacity;
        for permit in permits {
            gate.answered(took, times_out && inside > capacity);
            drop(permit);
        }
        limits.push(gate.limit());
    }
    limits
}

/// ENG-6: the additive limit finds the peer's capacity, and stays there.
#[test]
fn eng_6_aimd_finds_the_capacity() {
    for start in [1, 20, 100] {
        let limits = settle(Adapt::Timeouts { min: 1, max: 200 }, start, 200, 40, true, 2_000);
        assert!(limits[1_000..].iter().all(|limit| (30..=42).contains(limit)), "{:?}", &limits[1_990..]);
    }
}

/// ENG-6: by latency it is found without a single timeout.
#[test]
fn eng_6_the_gradient_finds_the_capacity_by_latency() {
    for start in [1, 20, 100] {
        let limits = settle(Adapt::Latency { min: 1, max: 1_000 }, start, 1_000, 40, false, 2_000);
        let steady = &limits[1_000..];
        assert!(steady.iter().all(|limit| *limit <= 120), "grew to {:?}", steady.iter().max());
        let high = steady.iter().filter(|limit| **limit >= 30).count();
        assert!(
            high > 900,
            "it lets through what the peer can do, but for the rounds in which it probes: {high}"
        );
    }
}

/// ENG-6: neither grows for ever under stable timeouts, nor drifts while nobody calls.
#[test]
fn eng_6_an_adaptive_limit_neither_grows_under_timeouts_nor_drifts_when_idle() {
    for adapt in [Adapt::Timeouts { min: 2, max: 500 }, Adapt::Latency { min: 2, max: 500 }] {
        let overloaded = settle(adapt, 20, 500, 1, true, 1_000);
        assert!(overloaded[500..].iter().all(|limit| *limit <= 5), "{adapt:?}: {:?}", &overloaded[990..]);
        let idle = settle(adapt, 20, 2, 100, false, 5_000);
        assert!(idle.iter().all(|limit| *limit <= 20), "{adapt:?} drifted up to {:?}", idle.iter().max());
    }
}

/// ENG-11. Trap "0 permits = deadlock": refused when it is built.
#[test]
fn eng_11_a_bulkhead_that_cannot_work_is_refused() {
    let wrong = |bulkhead: Bulkhead| bulkhead.build().expect_err("it can't work").to_string();
    assert!(
        wrong(Bulkhead::max_calls(0)).contains("bulkhead.max_calls: 0 calls at once are not between 1 and")
    );
    assert!(
        wrong(Bulkhead::max_calls(5).max_waiting(5))
            .contains("bulkhead.max_wait: a line in which nobody may wait")
    );
    let adapt = Adapt::Timeouts { min: 10, max: 20 };
    assert!(
        wrong(Bulkhead::max_calls(5).adaptive(adapt))
            .contains("it starts at 5 calls, which is not between 10")
    );
}

/// ENG-6: the edges of the machine, one step at a time: what only happens when somebody is between two steps.
#[test]
fn eng_6_the_edges_of_the_machine() {
    let word = |inside, line| Word { inside, line };
    let check = |before, event, limit, after, effect| {
        assert_eq!(step(before, event, limit), (after, effect), "{event:?}");
    };
    let (enter, queue) = (Event::Enter { weight: 1 }, Event::Queue { weight: 1 });
    // The limit was raised, and those who wait are not in yet: nobody overtakes them.
    check(word(1, true), enter, 5, word(1, true), Effect::AskTheLine);
    check(word(1, true), Event::Leave { weight: 1 }, 5, word(0, true), Effect::AskTheLine);
    // Somebody has left between "it is full" and "I stand in line".
    check(word(0, false), queue, 1, word(1, false), Effect::Entered);
    check(word(1, false), queue, 1, word(1, true), Effect::Queued);
    check(word(0, true), queue, 1, word(0, true), Effect::Queued);
    // The first of the line is let in, unless its places are not there any more.
    let admit = |weight, line_ends| Event::Admit { weight, line_ends };
    check(word(1, true), admit(1, false), 2, word(2, true), Effect::Entered);
    check(word(1, true), admit(1, true), 2, word(2, false), Effect::Entered);
    check(word(3, true), admit(1, true), 2, word(3, true), Effect::Full);
    check(word(1, true), admit(2, true), 2, word(1, true), Effect::Full);
    for bits in [0, 1, 2, 3, 40, 41] {
        assert_eq!(Word::from_bits(bits).bits(), bits);
    }
}

/// ENG-6: a permit with a weight takes so many places; a weight that can never fit is refused with a text that says so.
#[test]
fn eng_6_a_weight_takes_so_many_places() {
    let (_, gate) = gate(Bulkhead::max_calls(5).max_wait(secs(5)));
    let heavy = gate.try_enter_many(4).expect("room for it");
    assert_eq!((gate.inside(), heavy.weight()), (4, 4));
    let full = gate.try_enter_many(2).expect_err("only one is left");
    assert!(!full.never_fits());
    let light = gate.try_enter_many(1).expect("the last one");
    drop((heavy, light));
    assert_eq!(gate.inside(), 0);
    for (weight, text) in
        [(0, "a weight of 0 takes no place"), (6, "a weight of 6 is above the bulkhead's limit of 5")]
    {
        for full in [gate.try_enter_many(weight).map(drop), gate.enter_many(weight).map(drop)] {
            let full = full.expect_err("it never fits");
            assert!(full.never_fits() && full.to_string().contains(text), "{full}");
        }
    }
    assert_eq!((gate.inside(), gate.waiting()), (0, 0));
}

/// ENG-6: a heavy one at the head of the line is not overtaken; when it gives up, those behind it are let in.
#[test]
fn eng_6_a_heavy_waiter_is_not_overtaken() {
    let (_, gate) = gate(Bulkhead::max_calls(3).max_wait(secs(5)));
    let waiting = |weight| match gate.enter_many(weight).expect("there is room in the line") {
        Entry::Waiting(waiter) => waiter,
        Entry::Inside(_) => unreachable!("it does not fit, or somebody waits"),
    };
    let inside: Vec<_> = (0..3).map(|_| gate.try_enter().expect("a place")).collect();
    let (mut heavy, mut light) = (waiting(3), waiting(1));
    let mut inside = inside.into_iter();
    drop(inside.next());
    assert!(poll(&mut heavy).is_none() && poll(&mut light).is_none() && gate.try_enter().is_err());
    drop(inside.next());
    drop(inside.next());
    let permit = poll(&mut heavy).expect("its turn");
    assert!(poll(&mut light).is_none());
    drop(permit);
    let first = poll(&mut light).expect("its turn");

    let (heavy, mut light) = (waiting(3), waiting(1));
    assert!(poll(&mut light).is_none());
    drop(heavy);
    let second = poll(&mut light).expect("nobody is before it any more");
    assert_eq!((gate.inside(), gate.waiting()), (2, 0));
    drop((first, second));
    assert_eq!(gate.inside(), 0);
}
