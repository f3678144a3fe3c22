//! Scripts in, states out: what a circuit does, seen from outside. The machine against a plain model is in
//! `model.rs` beside this file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, SystemTime};

use super::*;
use crate::testing::Hands;
use crate::{Clock, Time, millis, secs};

mod model;

struct Bench {
    hands: Arc<Hands>,
    breaker: CircuitBreaker,
}

fn bench(breaker: Breaker) -> Bench {
    let hands = Hands::new();
    Bench { breaker: breaker.build_with(Clock::custom(hands.clone())).expect("a sound configuration"), hands }
}

impl Bench {
    /// `.` success, `x` failure, `i` ignored, `s` a success that takes 5 s, `-` must be refused, `?` look at it, a number
    /// waits that many seconds. After each of them, where the circuit stands: C, R, O, H, or F, K, D for forced open,
    /// kept closed and disabled.
    fn play(&self, script: &str) -> String {
        script.split_whitespace().map(|word| self.act(word)).collect()
    }

    fn act(&self, word: &str) -> char {
        // A circuit counts time in steps of a millisecond; two transitions in one step would put the later one ahead.
        self.hands.advance(millis(2));
        match word {
            "." | "x" | "i" | "s" => {
                let ticket = self.breaker.admit().expect(word);
                if word == "s" {
                    self.hands.advance(secs(5));
                }
                ticket.finish(match word {
                    "x" => Outcome::Failure,
                    "i" => Outcome::Ignored,
                    _ => Outcome::Success,
                });
            }
            "-" => assert!(self.breaker.admit().is_err(), "it was let through"),
            "?" => {}
            seconds => {
                self.hands.advance(Duration::from_secs_f64(seconds.parse().expect("a number of seconds")));
            }
        }
        match State::from(self.breaker.word().place()) {
            _ if word == "?" => letter(self.breaker.state()),
            state => letter(state),
        }
    }
}

fn letter(state: State) -> char {
    match state {
        State::Closed => 'C',
        State::Ramping => 'R',
        State::Open => 'O',
        State::HalfOpen => 'H',
        State::ForcedOpen => 'F',
        State::ForcedClosed => 'K',
        State::Disabled => 'D',
    }
}

fn play(breaker: Breaker, script: &str) -> String {
    bench(breaker).play(script)
}

fn in_a_row(failures: u32) -> Breaker {
    Breaker::consecutive_failures(failures)
}

/// ENG-5: the life of a circuit.
#[test]
fn eng_5_refuses_until_the_cooldown_ends_then_lets_one_probe_close_it() {
    assert_eq!(play(in_a_row(3), "x x x 29 - 1 . ."), "CCOOOOCC");
}

/// ENG-5: a failed probe opens it again for a whole cooldown.
#[test]
fn eng_5_a_failed_probe_opens_it_again() {
    assert_eq!(play(in_a_row(1), "x 30 x - 29 - 1 ."), "OOOOOOOC");
}

/// ENG-5: only failures in a row count.
#[test]
fn eng_5_a_success_ends_the_row() {
    assert_eq!(play(in_a_row(3), "x x . x x . x x x"), "CCCCCCCCO");
}

/// ENG-5: M successes close it. They need not come without a pause.
#[test]
fn eng_5_closes_after_as_many_successes_as_asked() {
    assert_eq!(play(in_a_row(1).close_after(3), "x 30 . 5 . 5 . x"), "OOHHHHCO");
    assert_eq!(play(in_a_row(1).close_after(3), "x 30 . . x"), "OOHHO");
}

/// ENG-5. Trap "ignored errors counted differently in half-open": the same in every state, it frees the slot and changes
/// nothing.
#[test]
fn eng_5_an_ignored_outcome_neither_heals_nor_harms_in_any_state() {
    assert_eq!(play(in_a_row(2), "x i i x"), "CCCO");
    assert_eq!(play(in_a_row(1), "x 30 i i i ."), "OOHHHC");
    assert_eq!(play(in_a_row(1).close_after(2), "x 30 . i ."), "OOHHC");
    assert_eq!(play(Breaker::failure_rate(50).over_calls(4).minimum_calls(4), "x x . i i i i ."), "CCCCCCCO");
}

/// ENG-5. Trap "sampling instead of counting": it trips on the request that crosses the threshold.
#[test]
fn eng_5_a_rate_trips_on_the_very_call_that_crosses_it() {
    let rate = || Breaker::failure_rate(50).over_calls(10).minimum_calls(4);
    assert_eq!(play(rate(), ". x . x"), "CCCO");
    assert_eq!(play(rate(), ". . . x x x"), "CCCCCO");
    assert_eq!(play(rate(), ". . . . x x x x"), "CCCCCCCO");
}

/// ENG-5. Trap "window with few calls": no trip below the minimum, and the call that reaches it may be a success.
#[test]
fn eng_5_no_rate_counts_below_the_minimum() {
    assert_eq!(play(Breaker::failure_rate(50).over_calls(10).minimum_calls(5), "x x x x ."), "CCCCO");
    let by_time = || Breaker::failure_rate(50).over_time(secs(10)).minimum_calls(5);
    assert_eq!(play(by_time(), "x x x x ."), "CCCCO");
    assert_eq!(play(by_time(), "x x x x 20 . . . . ."), "CCCCCCCCCC");
}

/// ENG-5. Trap "a sliding window that never slides": after 10 000 successes it opens after exactly 50 failures.
#[test]
fn eng_5_the_count_window_really_slides() {
    let bench = bench(Breaker::failure_rate(50).over_calls(100));
    (0..10_000).for_each(|_| assert_eq!(bench.act("."), 'C'));
    (0..49).for_each(|_| assert_eq!(bench.act("x"), 'C'));
    assert_eq!(bench.act("x"), 'O');
}

/// ENG-5: what is older than the time window does not count, however long nobody called.
#[test]
fn eng_5_an_idle_time_window_expires() {
    let by_time = || Breaker::failure_rate(50).over_time(secs(10)).minimum_calls(2);
    assert_eq!(play(by_time(), ". . x 11 . . x"), "CCCCCCC");
    assert_eq!(play(by_time(), "x 10.5 ."), "CCC");
    assert_eq!(play(by_time(), "x 5 x"), "CCO");
    assert_eq!(play(by_time(), "x 31536000 . x"), "CCCO");
}

/// ENG-5: successes from long ago do not hide an outage: the time window forgets them.
#[test]
fn eng_5_the_time_window_slides() {
    let bench = bench(Breaker::failure_rate(50).over_time(secs(10)).minimum_calls(10));
    for _ in 0..1_000 {
        bench.act(".");
        bench.hands.advance(millis(10));
    }
    bench.hands.advance(secs(10));
    let failures = (1..).find(|_| bench.act("x") == 'O').expect("it opens");
    assert_eq!(failures, 10);
}

/// ENG-5: slow calls open it although they succeed, and a slow probe does not close it.
#[test]
fn eng_5_slow_calls_open_it() {
    let slow = || Breaker::failure_rate(100).over_calls(4).minimum_calls(4).slow_after(secs(5)).slow_rate(50);
    assert_eq!(play(slow(), ". s . s"), "CCCO");
    assert_eq!(play(slow(), ". . . s . . . ."), "CCCCCCCC");
    assert_eq!(play(slow(), "s s s s 30 s 30 ."), "CCCOOOOC");
    let by_time =
        Breaker::failure_rate(100).over_time(secs(60)).minimum_calls(4).slow_after(secs(5)).slow_rate(50);
    assert_eq!(play(by_time, ". . s s"), "CCCO");
}

/// ENG-5: as resilience4j, N probes are let through and judged together by the rate.
#[test]
fn eng_5_probes_can_be_judged_together() {
    let judged =
        || Breaker::failure_rate(50).over_calls(2).minimum_calls(2).probes(4).judge_probes_together();
    assert_eq!(play(judged(), "x x 30 . x . ."), "COOHHHC");
    assert_eq!(play(judged(), "x x 30 . . x x"), "COOHHHO");
    assert_eq!(play(judged(), "x x 30 x x"), "COOHO");
    let bench = bench(judged());
    bench.play("x x 30");
    let tickets: Vec<_> = (0..4).map(|_| bench.breaker.admit().expect("four probes")).collect();
    assert!(bench.breaker.admit().is_err(), "a fifth probe");
    tickets.into_iter().for_each(|ticket| ticket.finish(Outcome::Success));
    assert_eq!(bench.breaker.state(), State::Closed);
}

/// ENG-5: a cooldown that grows with each trip, up to a bound, and starts over after health.
#[test]
fn eng_5_the_cooldown_grows_with_each_trip() {
    let growing = || in_a_row(1).cooldown(secs(10)).cooldown_growth(2.0).cooldown_max(secs(30));
    assert_eq!(play(growing(), "x 10 x 19 - 1 x 29 - 1 x 29 - 1 ."), "OOOOOOOOOOOOOOC");
    assert_eq!(play(growing(), "x 10 x 20 . 3600 x 9 - 1 ."), "OOOOCCOOOOC");
    assert_eq!(play(growing(), "x 10 . x 19 - 1 ."), "OOCOOOOC", "a relapse is the same trouble");
}

/// ENG-5: jitter only makes the cooldown longer, differently for each circuit, the same for a seed.
#[test]
fn eng_5_the_cooldown_can_be_jittered() {
    let cooldown = |seed| {
        let bench = bench(in_a_row(1).cooldown(secs(10)).cooldown_jitter(50).seed(seed));
        bench.act("x");
        bench.breaker.admit().expect_err("open").retry_after().expect("it says when")
    };
    let cooldowns: Vec<_> = (0..100).map(cooldown).collect();
    assert!(cooldowns.iter().all(|cooldown| (millis(9_990)..=secs(15)).contains(cooldown)), "{cooldowns:?}");
    assert!(cooldowns.iter().collect::<std::collections::HashSet<_>>().len() > 90);
    assert_eq!(cooldown(7), cooldown(7));
}

/// ENG-5: a refusal says when to come back, and coming back then is in time.
#[test]
fn eng_5_a_refusal_says_when_to_come_back() {
    let bench = bench(in_a_row(1).cooldown(secs(30)));
    bench.play("x 12");
    let refused = bench.breaker.admit().expect_err("open");
    let wait = refused.retry_after().expect("it says when");
    assert!(wait > millis(17_990) && wait <= secs(18), "{wait:?}");
    assert_eq!(refused.to_string(), "the circuit is open, try again in 18s");
    bench.hands.advance(wait);
    assert_eq!(bench.act("."), 'C');
    bench.breaker.force_open("maintenance");
    let refused = bench.breaker.admit().expect_err("forced open");
    assert_eq!((refused.retry_after(), refused.state()), (None, State::ForcedOpen));
}

/// ENG-5: half-open without a call, for those who watch it.
#[test]
fn eng_5_half_open_can_come_by_looking() {
    assert_eq!(play(in_a_row(1), "x 31 ?"), "OOO");
    assert_eq!(play(in_a_row(1).automatic_half_open(), "x 29 ? 1 ? ."), "OOOOHC");
}

/// ENG-5: after closing, the share of calls that pass grows.
#[test]
fn eng_5_a_ramp_lets_a_growing_share_pass() {
    let bench = bench(in_a_row(1).ramp(secs(10)).seed(5));
    assert_eq!(bench.play("x 30 ."), "OOR");
    let mut shares = Vec::new();
    for _ in 0..10 {
        let passed = (0..1_000).filter(|_| {
            bench.hands.advance(millis(1));
            bench.breaker.admit().map(|ticket| ticket.finish(Outcome::Success)).is_ok()
        });
        shares.push(passed.count());
    }
    assert!(shares[0] < 120 && (380..620).contains(&shares[4]) && shares[9] > 880, "{shares:?}");
    assert_eq!(bench.play("1 . ?"), "CCC");
    assert_eq!(
        play(in_a_row(1).ramp(secs(10)), "x 30 . 9.99 x"),
        "OORRO",
        "a failure while ramping opens it"
    );
}

/// ENG-5. Trap "half-open probe never settles": a probe that hangs has failed when its lease ends, and one whose ticket
/// was lost too.
#[test]
fn eng_5_prm_3_a_probe_that_never_comes_back_does_not_wedge_half_open() {
    let bench = bench(in_a_row(1).probe_timeout(secs(60)));
    assert_eq!(bench.play("x 30"), "OO");
    std::mem::forget(bench.breaker.admit().expect("the probe"));
    assert_eq!(bench.play("- 59 - ? 1 ? - 30 ."), "HHHHHOOOC");
    assert_eq!(bench.breaker.counts().abandoned, 0, "it was never dropped");
}

/// ENG-5: a hung probe that comes back after its lease is late, and changes nothing.
#[test]
fn eng_5_a_hung_probe_that_comes_back_is_late() {
    let bench = bench(in_a_row(1));
    bench.play("x 30");
    let hung = bench.breaker.admit().expect("the probe");
    assert_eq!(bench.play("61 ?"), "HO");
    hung.finish(Outcome::Success);
    assert_eq!(bench.breaker.state(), State::Open);
    assert_eq!(bench.breaker.counts().late, 1);
}

/// ENG-5: sparse traffic can't wedge half-open either: what is known is good, so it closes.
#[test]
fn eng_5_prm_3_half_open_ends_when_nobody_calls_any_more() {
    assert_eq!(play(in_a_row(1).close_after(3), "x 30 . 59 ? 1.1 ?"), "OOHHHHC");
    assert_eq!(play(in_a_row(1).close_after(3), "x 30 . 3600 ."), "OOHHC");
    assert_eq!(
        play(in_a_row(1).close_after(3), "x 30 i 3600 ? ."),
        "OOHHHH",
        "nothing is known: the next is a probe"
    );
}

/// ENG-5. Trap "late results": a ticket of an earlier phase is counted and never acted on.
#[test]
fn eng_5_late_tickets_change_nothing() {
    let bench = bench(in_a_row(2));
    let early: Vec<_> = (0..5).map(|_| bench.breaker.admit().expect("closed")).collect();
    assert_eq!(bench.play("x x"), "CO");
    let mut early = early.into_iter();
    early.next().expect("a ticket").finish(Outcome::Success);
    assert_eq!(bench.breaker.state(), State::Open, "a late success closes nothing");
    bench.play("30 .");
    early.by_ref().for_each(|ticket| ticket.finish(Outcome::Failure));
    assert_eq!(bench.play("x"), "C", "late failures are no part of the row");
    assert_eq!(bench.breaker.counts().late, 5);
}

/// ENG-5: dropped early counts as nothing, dropped after the threshold as a failure, in every state. Trap "admission while
/// the call never comes": a place that was reserved and not used is free again.
#[test]
fn eng_5_an_abandoned_call_counts_by_how_long_it_had_run() {
    let abandon_after = |bench: &Bench, ran| {
        let ticket = bench.breaker.admit().expect("admitted");
        bench.hands.advance(ran);
        drop(ticket);
        letter(bench.breaker.state())
    };
    let closed = bench(in_a_row(2).abandoned_after(secs(1)));
    assert_eq!(
        [millis(999), secs(1), millis(1_001), secs(9)].map(|ran| abandon_after(&closed, ran)),
        ['C', 'C', 'C', 'O']
    );
    assert_eq!(closed.breaker.counts().abandoned, 4);

    let probing = bench(in_a_row(1).abandoned_after(secs(1)));
    probing.play("x 30");
    assert_eq!(abandon_after(&probing, millis(10)), 'H', "the probe's place is free again");
    assert_eq!(abandon_after(&probing, secs(2)), 'O');
}

/// ENG-5: the time of a ticket starts when the operation does, not when it was handed out.
#[test]
fn eng_5_time_in_a_waiting_line_is_not_the_peers_fault() {
    let bench = bench(in_a_row(1).abandoned_after(secs(1)));
    let mut ticket = bench.breaker.admit().expect("closed");
    bench.hands.advance(secs(60));
    ticket.start();
    bench.hands.advance(millis(500));
    drop(ticket);
    assert_eq!(bench.breaker.state(), State::Closed);
}

/// ENG-5. Trap "50 panics, none recorded".
#[test]
fn eng_5_fifty_panics_are_fifty_failures() {
    let bench = bench(in_a_row(50));
    for number in 1..=50 {
        assert_eq!(bench.breaker.state(), State::Closed, "after {} panics", number - 1);
        let by_ticket = || {
            let _ticket = bench.breaker.admit().expect("closed");
            panic!("as planned");
        };
        let by_run = || {
            let _ = bench.breaker.run(|_: &Result<(), ()>| Outcome::Success, || panic!("as planned"));
        };
        let panicked = if number % 2 == 0 {
            catch_unwind(AssertUnwindSafe(by_ticket)).is_err()
        } else {
            catch_unwind(AssertUnwindSafe(by_run)).is_err()
        };
        assert!(panicked);
    }
    assert_eq!(bench.breaker.state(), State::Open);
    assert_eq!(bench.breaker.counts().panicked, 50);
}

/// ENG-5: by hand, each with its reason.
#[test]
fn eng_5_a_person_can_move_it_and_says_why() {
    let bench = bench(in_a_row(1));
    bench.breaker.force_open("migration");
    assert_eq!(bench.play("- 3600 -"), "FFF");
    assert_eq!(bench.breaker.reason().as_deref(), Some("migration"));
    bench.breaker.force_closed("we know, let them through");
    assert_eq!(bench.play("x x x"), "KKK");
    let watched = self::bench(Breaker::failure_rate(50).over_calls(4).minimum_calls(1));
    watched.breaker.force_closed("we watch it");
    assert_eq!(
        (watched.play("x x ."), watched.breaker.window().failures),
        ("KKK".into(), 2),
        "it is counted all the same"
    );
    bench.breaker.disable("noise");
    assert_eq!(bench.play("x x ."), "DDD");
    bench.breaker.reset("all is well");
    assert_eq!(bench.play(". x"), "CO");
    bench.breaker.reset("false alarm");
    assert_eq!(bench.play("."), "C");
    assert_eq!(bench.breaker.reason().as_deref(), Some("false alarm"));
}

/// ENG-5: a restart does not forget an open circuit, and wall clocks that jump do not matter.
#[test]
fn eng_5_a_snapshot_survives_a_restart() {
    let old = bench(in_a_row(1).cooldown_growth(2.0).cooldown_max(secs(600)));
    old.play("x 30 x 20");
    let snapshot = old.breaker.snapshot();
    assert_eq!((snapshot.state, snapshot.trips), (State::Open, 2));

    let restored_at = |wall: SystemTime| {
        let new = bench(in_a_row(1).cooldown_growth(2.0).cooldown_max(secs(600)));
        new.hands.set_wall(wall);
        new.breaker.restore(&snapshot);
        new
    };
    let until = snapshot.until.expect("open");
    assert_eq!(restored_at(until - secs(40)).play("39 - 1.01 ."), "OOOC");
    assert_eq!(restored_at(until + secs(3_600)).play("."), "C", "the cooldown is long over");
    assert_eq!(
        restored_at(until - secs(86_400)).play("59 - 1.01 ."),
        "OOOC",
        "never longer than a whole cooldown"
    );

    let forced = bench(in_a_row(1));
    forced.breaker.force_open("freeze");
    let new = bench(in_a_row(1));
    new.breaker.restore(&forced.breaker.snapshot());
    assert_eq!((new.play("-").as_str(), new.breaker.reason().as_deref()), ("F", Some("freeze")));
}

/// ENG-5. Trap "wall clock": a step back of an hour changes nothing.
#[test]
fn eng_5_a_step_of_the_wall_clock_changes_nothing() {
    let bench = bench(in_a_row(1));
    bench.act("x");
    bench.hands.set_wall(bench.hands.wall() - secs(3_600));
    assert_eq!(bench.play("29 - 1 ."), "OOOC");
}

/// ENG-5, PRM-3. Traps "check-then-act" and "a half-open limit of 5 that admitted 200 of 200": with 64 threads, N probes
/// and not one more.
#[test]
fn prm_3_no_more_than_n_probes_with_64_threads() {
    for round in 0..50 {
        let bench = bench(in_a_row(1).probes(5).close_after(5));
        bench.play("x 30");
        let (barrier, admitted) = (Barrier::new(64), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    barrier.wait();
                    let tickets: Vec<_> = (0..4).filter_map(|_| bench.breaker.admit().ok()).collect();
                    admitted.fetch_add(tickets.len() as u32, Ordering::Relaxed);
                    barrier.wait();
                    tickets.into_iter().for_each(|ticket| ticket.finish(Outcome::Ignored));
                });
            }
        });
        assert_eq!(admitted.into_inner(), 5, "round {round}");
        assert_eq!((bench.breaker.state(), bench.breaker.probes_under_way()), (State::HalfOpen, 0));
    }
}

/// ENG-5: settings change while it runs. Trap "live reload forgets the breaker's state": state, row and window stay.
#[test]
fn eng_5_new_settings_keep_the_state() {
    let row = bench(in_a_row(5));
    row.play("x x x");
    row.breaker.reconfigure(&in_a_row(4)).expect("sound");
    assert_eq!(row.play("x"), "O", "three of the row were from before");
    row.breaker.reconfigure(&in_a_row(4).cooldown(secs(10))).expect("sound");
    assert_eq!(row.play("9 - 1 ."), "OOOC", "the running cooldown is the new one");

    let window = bench(Breaker::failure_rate(50).over_calls(10).minimum_calls(10));
    window.play("x x x x . . . . .");
    window.breaker.reconfigure(&Breaker::failure_rate(40).over_calls(10).minimum_calls(10)).expect("sound");
    assert_eq!(window.breaker.window(), Tally { calls: 9, failures: 4, slow: 0 });
    assert_eq!(window.play("."), "O");
    window.breaker.reset("once more");
    window.breaker.reconfigure(&Breaker::failure_rate(50).over_calls(20).minimum_calls(10)).expect("sound");
    assert_eq!(window.breaker.window(), Tally::default(), "a window of another shape starts empty");
    let wrong = window.breaker.reconfigure(&in_a_row(0)).expect_err("zero failures open nothing");
    assert!(wrong.to_string().contains("breaker.consecutive_failures: 0 is not between 1 and"), "{wrong}");
}

/// ENG-5, PRM-4: the async use without a guard: dropped at every poll it loses no probe, and a hang counts.
#[test]
fn prm_4_a_future_dropped_in_the_breakers_own_call_loses_nothing() {
    let bench = bench(in_a_row(1).abandoned_after(secs(1)));
    bench.play("x 30");
    for (ran, expected) in
        [(Duration::ZERO, State::HalfOpen), (millis(900), State::HalfOpen), (secs(2), State::Open)]
    {
        let mut call =
            Box::pin(bench.breaker.call(|_| Outcome::Success, std::future::pending::<Result<(), ()>>()));
        assert!(seawall_testkit::poll_once(call.as_mut()).is_pending());
        assert_eq!(bench.breaker.probes_under_way(), 1);
        bench.hands.advance(ran);
        drop(call);
        assert_eq!((bench.breaker.state(), bench.breaker.probes_under_way()), (expected, 0));
    }
    let never_polled = bench.breaker.call(|_| Outcome::Success, std::future::ready(Ok::<(), ()>(())));
    drop(never_polled);
    assert_eq!(bench.breaker.counts().refused, 0, "nothing happens before the first poll");
}

/// ENG-11: a breaker that can't work is refused with what to do, all mistakes at once.
#[test]
fn eng_11_a_breaker_that_cannot_work_is_refused() {
    let problems = |breaker: Breaker| breaker.build().expect_err("it can't work").to_string();
    let text = problems(
        Breaker::failure_rate(150).over_calls(10).minimum_calls(20).probes(0).cooldown(Duration::ZERO),
    );
    for part in [
        "the breaker can't work\n",
        "breaker.failure_rate: 150 % is not above 0 % and at most 100 %",
        "breaker.minimum_calls: the window never holds more than 10 calls",
        "breaker.probes: 0 probes are not between 1 and 63",
        "breaker.cooldown: 0ns is no time to recover in",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    assert!(
        problems(in_a_row(5).slow_after(secs(1)).slow_rate(50))
            .contains("breaker.slow_after: a share of slow calls needs a window; begin with `failure_rate`")
    );
    assert!(problems(Breaker::failure_rate(50).over_time(millis(1))).contains("too short to count in"));
    assert!(
        problems(in_a_row(1).cooldown_growth(0.5).cooldown_max(secs(60)))
            .contains("is not between 1 and 100")
    );
}

/// ENG-5. Bug: a count window went dead when the phase before had lasted between 6.5 and 13 days.
#[test]
fn eng_5_a_window_counts_however_long_it_was_healthy_before() {
    for days in [1, 5, 6, 7, 10, 12, 13, 14, 20, 60, 100, 1_000] {
        let count = bench(Breaker::failure_rate(50).over_calls(4).minimum_calls(4));
        count.play(". . . .");
        count.hands.advance(secs(days * 86_400));
        assert_eq!(count.play("x x 30 . x x x"), "COOCCCC".to_owned(), "{days} days");
        assert_eq!(count.play("x"), "O", "{days} days");
        let time = bench(Breaker::failure_rate(50).over_time(secs(10)).minimum_calls(4));
        time.hands.advance(secs(days * 86_400));
        assert_eq!(time.play("x x x x"), "CCCO", "{days} days");
    }
}

/// ENG-5. Bug: probes that overlap and answer in time opened the circuit when the lease of the first of them ended.
#[test]
fn eng_5_every_answer_renews_the_lease_of_the_probes_that_are_out() {
    let bench = bench(in_a_row(1).probes(2).close_after(20).probe_timeout(secs(10)));
    bench.play("x 30");
    let mut previous = bench.breaker.admit().expect("the first probe");
    for number in 0..15 {
        bench.hands.advance(secs(1));
        let next = bench.breaker.admit().expect("a second place");
        previous.finish(Outcome::Success);
        assert_eq!(bench.breaker.state(), State::HalfOpen, "after {number} good probes");
        previous = next;
    }
    // The last one hangs: what was renewed ends too.
    assert_eq!(bench.play("13 ?"), "HO");
    drop(previous);
}

/// ENG-5. Bug: a ramp let everybody pass who came in the same millisecond.
#[test]
fn eng_5_a_ramp_limits_at_any_rate() {
    let bench = bench(in_a_row(1).ramp(secs(10)).seed(5));
    assert_eq!(bench.play("x 30 ."), "OOR");
    let mut passed = 0;
    for _ in 0..250 {
        bench.hands.advance(millis(4));
        passed +=
            (0..100).filter(|_| bench.breaker.admit().map(|t| t.finish(Outcome::Success)).is_ok()).count();
    }
    assert!((700..2_000).contains(&passed), "{passed} of 25 000 passed in the first tenth");
    let refused = loop {
        if let Err(refused) = bench.breaker.admit() {
            break refused;
        }
    };
    let wait = refused.retry_after().expect("it says when");
    assert!(wait > millis(8_900) && wait <= secs(9), "until the ramp is over: {wait:?}");
    assert_eq!(bench.play("? 10 ?"), "RRC", "looking ends it when it is over, and not before");
}

/// ENG-5: while it ramps, a window trips it and a success ends a row, as when it is closed.
#[test]
fn eng_5_ramping_is_closed_in_every_other_way() {
    let row = bench(in_a_row(2).ramp(secs(10)).seed(1));
    row.play("x x 30 . 9.9");
    let act = |outcome| loop {
        row.hands.advance(millis(1));
        if let Ok(ticket) = row.breaker.admit() {
            ticket.finish(outcome);
            break row.breaker.state();
        }
    };
    let states = [Outcome::Failure, Outcome::Success, Outcome::Failure].map(act);
    assert!(states.iter().all(|state| matches!(state, State::Ramping | State::Closed)), "{states:?}");
    assert_eq!(act(Outcome::Failure), State::Open);
    let window = bench(Breaker::failure_rate(50).over_calls(4).minimum_calls(2).ramp(secs(10)));
    window.play("x x 30 .");
    window.hands.advance(millis(9_980));
    let tickets: Vec<_> = (0..1_000).filter_map(|_| window.breaker.admit().ok()).take(2).collect();
    tickets.into_iter().for_each(|ticket| ticket.finish(Outcome::Failure));
    assert_eq!(window.breaker.state(), State::Open);
}

/// ENG-5: restoring keeps the rest of a jittered cooldown, and a half-open circuit lets its next call through.
#[test]
fn eng_5_restoring_keeps_what_was_left() {
    for seed in 0..20 {
        let make = || bench(in_a_row(1).cooldown(secs(30)).cooldown_jitter(100).seed(seed));
        let old = make();
        old.play("x 20");
        let left = old.breaker.admit().expect_err("open").retry_after().expect("it says when");
        let new = make();
        new.hands.set_wall(old.hands.wall());
        new.breaker.restore(&old.breaker.snapshot());
        let restored = new.breaker.admit().expect_err("still open").retry_after().expect("it says when");
        assert!(restored.abs_diff(left) < millis(100), "seed {seed}: {restored:?} instead of {left:?}");
    }
    let jittered = bench(in_a_row(1).cooldown(secs(30)).cooldown_jitter(50));
    let until = Some(jittered.hands.wall() + secs(86_400));
    jittered.breaker.restore(&Snapshot { state: State::Open, until, trips: 1, reason: None });
    let wait = jittered.breaker.admit().expect_err("open").retry_after().expect("it says when");
    assert!(wait <= millis(45_100), "never longer than the longest cooldown: {wait:?}");
    let used = bench(in_a_row(1));
    used.play("x 30 .");
    used.breaker.restore(&Snapshot { state: State::HalfOpen, until: None, trips: 1, reason: None });
    assert_eq!(used.play("? ."), "HC");
}

/// ENG-5: each trip draws its jitter anew, over the whole share.
#[test]
fn eng_5_each_trip_draws_its_own_jitter() {
    let bench = bench(in_a_row(1).cooldown(secs(10)).cooldown_jitter(50).seed(3));
    let mut waits = Vec::new();
    for _ in 0..200 {
        bench.act("x");
        let wait = bench.breaker.admit().expect_err("open").retry_after().expect("it says when");
        waits.push(wait);
        bench.hands.advance(wait + millis(2));
    }
    let (least, most) = (waits.iter().min().expect("many"), waits.iter().max().expect("many"));
    assert!(*least < millis(10_300) && *most > millis(14_700), "{least:?} to {most:?}");
}

/// ENG-5: a late success that comes back while the circuit is closed again is late all the same.
#[test]
fn eng_5_late_is_late_also_when_it_is_closed_again() {
    let bench = bench(in_a_row(1));
    let early = bench.breaker.admit().expect("closed");
    bench.play("x 30 .");
    early.finish(Outcome::Success);
    assert_eq!(bench.breaker.counts().late, 1);
}

/// ENG-5: a refusal while half-open says when the lease of the probe ends.
#[test]
fn eng_5_a_refusal_while_half_open_says_when_the_lease_ends() {
    let bench = bench(in_a_row(1).probe_timeout(secs(60)));
    bench.play("x 30");
    let _probe = bench.breaker.admit().expect("the probe");
    bench.hands.advance(secs(20));
    let wait = bench.breaker.admit().expect_err("one at a time").retry_after().expect("it says when");
    assert!(wait > secs(39) && wait <= secs(40), "{wait:?}");
}

/// ENG-5: slow failures are one call each in a time window.
#[test]
fn eng_5_a_slow_failure_is_one_call() {
    let bench = bench(
        Breaker::failure_rate(100).over_time(secs(60)).minimum_calls(50).slow_after(secs(1)).slow_rate(100),
    );
    for _ in 0..3 {
        let ticket = bench.breaker.admit().expect("closed");
        bench.hands.advance(secs(2));
        ticket.finish(Outcome::Failure);
    }
    assert_eq!(bench.breaker.window(), Tally { calls: 3, failures: 3, slow: 3 });
}

/// ENG-5: without a word about it, a call is abandoned after the smaller of what is known.
#[test]
fn eng_5_the_abandonment_threshold_is_the_smallest_that_is_known() {
    let after = |breaker: Breaker, timeout| {
        let defaults = settings::Defaults { abandoned_after: timeout, seed: 1 };
        breaker.settings(&defaults).abandoned_after
    };
    let slow = || Breaker::failure_rate(50).slow_after(secs(1)).slow_rate(50);
    assert_eq!(after(slow(), Some(secs(5))), secs(1));
    assert_eq!(after(slow(), Some(millis(500))), millis(500));
    assert_eq!(after(in_a_row(1), None), ABANDONED_AFTER);
    assert_eq!(after(slow().abandoned_after(secs(9)), Some(secs(5))), secs(9), "what was asked for");
}

/// ENG-5. Bug: a panic elsewhere in the task was blamed on the peer of the circuit's own call.
#[test]
fn eng_5_a_panic_elsewhere_is_not_the_peers_in_the_circuits_own_call() {
    let bench = bench(in_a_row(1));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut call =
            Box::pin(bench.breaker.call(|_| Outcome::Success, std::future::pending::<Result<(), ()>>()));
        let _ = seawall_testkit::poll_once(call.as_mut());
        panic!("in another part of the task");
    }));
    assert!(panicked.is_err());
    assert_eq!((bench.breaker.state(), bench.breaker.counts().panicked), (State::Closed, 0));
    let poll_panics =
        std::future::poll_fn(|_| -> std::task::Poll<Result<(), ()>> { panic!("in the operation") });
    let mut call = Box::pin(bench.breaker.call(|_| Outcome::Success, poll_panics));
    assert!(catch_unwind(AssertUnwindSafe(|| seawall_testkit::poll_once(call.as_mut()).is_ready())).is_err());
    assert_eq!((bench.breaker.state(), bench.breaker.counts().panicked), (State::Open, 1));
}

/// ENG-5: the edges of the machine, one step at a time.
#[test]
fn eng_5_the_edges_of_the_machine() {
    use super::machine::{Effect, Event, Settled, step};
    use super::word::{Place, Word};
    let defaults = settings::Defaults { abandoned_after: None, seed: 1 };
    let ramping = Word::new(Place::Ramping, 1_000);
    let rules = in_a_row(2).ramp(secs(10)).settings(&defaults).rules;
    let admit = |now, chance| step(ramping, Event::Admit { chance }, now, &rules).1;
    assert_eq!(admit(1_000, 0), Effect::Admitted, "the luckiest passes at once");
    assert_eq!(admit(1_000, u64::MAX / rules.ramp * 3), Effect::Refused { until: Some(1_000 + rules.ramp) });
    let last = 1_000 + rules.ramp - 1;
    assert_eq!(
        admit(last, u64::MAX),
        Effect::Refused { until: Some(1_000 + rules.ramp) },
        "the unluckiest waits to the end"
    );
    assert_eq!(admit(last, u64::MAX - u64::MAX / rules.ramp * 3), Effect::Admitted);

    // A circuit that counts in a window takes no failure in a row for a trip.
    let by_rate = Breaker::failure_rate(50).settings(&defaults).rules;
    let closed = Word::new(Place::Closed, 1_000);
    for outcome in [Settled::Good, Settled::Bad, Settled::Nothing] {
        assert_eq!(
            step(closed, Event::Settle { stamp: 1_000, outcome }, 2_000, &by_rate),
            (closed, Effect::None)
        );
    }

    // However little is left of a restored cooldown, the stamp grows, so that tickets from before are late.
    for left in [0, 1, rules.cooldowns[0] / 2] {
        let (reopened, _) =
            step(Word::new(Place::Closed, 1_000), Event::Reopen { left, trips: 1 }, 1_001, &rules);
        assert!(reopened.stamp() > 1_000 && reopened.place() == Place::Open, "{reopened:?}");
    }
}

/// ENG-5: of the millionths that jitter may add all are drawn, the last one too.
#[test]
fn eng_5_the_smallest_jitter_is_drawn_too() {
    use super::machine::opens_until;
    use super::word::{Place, Word};
    let defaults = settings::Defaults { abandoned_after: None, seed: 1 };
    let mut rules = in_a_row(1).cooldown_jitter(0.0001).settings(&defaults).rules;
    rules.cooldowns[0] = 1_000_000;
    let more = |stamp| opens_until(Word::new(Place::Open, stamp).with_trips(1), &rules) - stamp - 1_000_000;
    let drawn: Vec<u64> = (1..100).map(more).collect();
    assert!(drawn.contains(&0) && drawn.contains(&1) && drawn.iter().all(|more| *more <= 1), "{drawn:?}");
}

/// ENG-5: a ramp begins with one share of its time, not with none, and each step adds one.
#[test]
fn eng_5_a_ramp_begins_with_its_first_share() {
    use super::machine::{Effect, Event, step};
    use super::word::{Place, Word};
    let defaults = settings::Defaults { abandoned_after: None, seed: 1 };
    let mut rules = in_a_row(1).ramp(secs(1)).settings(&defaults).rules;
    rules.ramp = 9;
    let passes = |passed: u64, chance| {
        let (_, effect) =
            step(Word::new(Place::Ramping, 1_000), Event::Admit { chance }, 1_000 + passed, &rules);
        effect == Effect::Admitted
    };
    for passed in 0..9 {
        let share = u64::MAX / 10 * (passed + 1);
        assert!(passes(passed, share - 10) && !passes(passed, share + 10), "after {passed}");
    }
}
