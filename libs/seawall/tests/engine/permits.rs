//! Permits, turns and tickets outside of a guard: awaited, owned, weighted.

use std::sync::Arc;

use seawall::breaker::{CircuitBreaker, Outcome, OwnedTicket, State};
use seawall::bulkhead::{Gate, OwnedPermit};
use seawall::rate::RateLimiter;
use seawall::{Breaker, Bulkhead, Guard, RateLimit, millis, secs};
use seawall_testkit::{ManualClock, drop_at_every_poll, poll_once, run};

fn is_send<T: Send>(value: T) -> T {
    value
}

fn goes_into_a_task<T: Send + 'static>(_: &T) {}

fn gate(hands: &ManualClock, bulkhead: Bulkhead) -> Arc<Gate> {
    Arc::new(bulkhead.build_with(hands.clock()).unwrap())
}

/// ENG-16: every future is `Send`, and what is owned goes into a task.
#[test]
fn eng_16_futures_are_send_and_owned_permits_go_into_tasks() {
    let hands = ManualClock::new();
    let gate = gate(&hands, Bulkhead::max_calls(9));
    let limiter: RateLimiter = RateLimit::calls(9).build_with(hands.clock()).unwrap();
    let circuit: Arc<CircuitBreaker> = Arc::new(Breaker::default().build_with(hands.clock()).unwrap());
    drop(run(&hands, is_send(gate.acquire())).unwrap());
    drop(run(&hands, is_send(gate.acquire_many(2))).unwrap());
    let owned: OwnedPermit = run(&hands, is_send(gate.acquire_owned())).unwrap();
    goes_into_a_task(&owned);
    let heavy = run(&hands, is_send(gate.acquire_many_owned(3))).unwrap();
    goes_into_a_task(&heavy);
    goes_into_a_task(&gate.try_enter_owned().unwrap());
    assert_eq!((gate.inside(), owned.weight(), heavy.weight()), (4, 1, 3));
    run(&hands, is_send(limiter.acquire())).unwrap();
    run(&hands, is_send(limiter.acquire_many(2))).unwrap();
    let ticket: OwnedTicket = circuit.admit_owned().unwrap();
    goes_into_a_task(&ticket);
    ticket.finish(Outcome::Success);
    let inside = Arc::downgrade(&gate);
    drop(gate);
    assert!(inside.upgrade().is_some(), "an owned permit keeps its gate alive");
    std::thread::spawn(move || drop((owned, heavy))).join().unwrap();
    assert!(inside.upgrade().is_none());
}

/// ENG-6, ENG-16: whoever awaits a place stands in the fair line up to the configured time, and is refused without a line.
#[test]
fn eng_6_a_place_is_awaited_in_the_line() {
    let hands = ManualClock::new();
    let gate = gate(&hands, Bulkhead::max_calls(2).max_wait(secs(1)));
    let heavy = run(&hands, gate.acquire_many(2)).unwrap();
    let (mut first, mut second) = (Box::pin(gate.acquire_many(2)), Box::pin(gate.acquire()));
    assert!(poll_once(first.as_mut()).is_pending() && poll_once(second.as_mut()).is_pending());
    drop(heavy);
    assert!(poll_once(second.as_mut()).is_pending(), "a heavy one is not overtaken");
    let permit = run(&hands, first).unwrap();
    drop(permit);
    drop(run(&hands, second).unwrap());

    let _inside = run(&hands, gate.acquire_many(2)).unwrap();
    let before = hands.clock().now();
    let full = run(&hands, gate.acquire()).unwrap_err();
    assert_eq!((hands.clock().now().since(before), full.inside(), gate.waiting()), (secs(1), 2, 0));
    gate.reconfigure(&Bulkhead::max_calls(2)).unwrap();
    let mut at_once = Box::pin(gate.acquire());
    assert!(poll_once(at_once.as_mut()).is_ready(), "without a line it is refused at once");
    assert!(run(&hands, gate.acquire_many(0)).unwrap_err().never_fits());
    assert!(run(&hands, gate.acquire_many(3)).unwrap_err().never_fits());
}

/// ENG-8, ENG-16: a turn is awaited up to the configured wait; several calls take several turns at once.
#[test]
fn eng_8_a_turn_is_awaited() {
    let hands = ManualClock::new();
    let limit = RateLimit::calls(10).burst(4).max_wait(millis(400));
    let limiter = limit.build_with(hands.clock()).unwrap();
    let began = hands.clock().precise();
    let after = || hands.clock().precise().since(began);
    limiter.try_acquire_many(3).unwrap();
    assert!(limiter.try_acquire_many(2).is_err(), "one is left");
    run(&hands, limiter.acquire()).unwrap();
    assert_eq!(after(), millis(0));
    run(&hands, limiter.acquire_many(2)).unwrap();
    assert!((millis(199)..=millis(201)).contains(&after()), "{:?}", after());
    run(&hands, limiter.acquire_many(4)).unwrap();
    assert!((millis(599)..=millis(601)).contains(&after()), "{:?}", after());

    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let mut turn = Box::pin(limiter.acquire());
            assert!(poll_once(turn.as_mut()).is_pending());
            turn
        })
        .collect();
    let limited = limiter.try_acquire().unwrap_err();
    assert!(run(&hands, limiter.acquire()).is_err(), "its turn would come too late");
    drop(waiting);
    assert!(limited.retry_after() > millis(400) && limiter.reserve().is_ok(), "the turns were given back");
    for (calls, text) in [(0, "0 calls take nothing"), (5, "5 calls at once are above the burst of 4")] {
        let limited = run(&hands, limiter.acquire_many(calls)).unwrap_err();
        assert!(limited.never_fits() && limited.to_string().contains(text), "{limited}");
        assert_eq!(limiter.try_acquire_many(calls).unwrap_err(), limited);
    }
}

/// PRM-4, ENG-6: a future that waits for a place may be dropped at every poll, and no place is lost.
#[test]
fn prm_4_waiting_for_a_place_may_be_dropped_at_every_poll() {
    for leaves_after in [0, 1, 2, 9] {
        let polls = drop_at_every_poll(
            || {
                let hands = ManualClock::new();
                let gate = gate(&hands, Bulkhead::max_calls(3).max_wait(secs(1)));
                let held = gate.try_enter_owned().unwrap();
                (hands, gate, std::cell::RefCell::new((Some(held), 0)))
            },
            |(_, gate, _)| {
                Box::pin(async move {
                    let first = gate.acquire_many(3).await;
                    assert_eq!(first.is_ok(), leaves_after < 3);
                    drop(first);
                    drop(gate.acquire_owned().await);
                })
            },
            |(hands, _, held)| {
                let mut held = held.borrow_mut();
                held.1 += 1;
                if held.1 > leaves_after {
                    held.0 = None;
                }
                hands.advance(millis(300));
            },
            |(_, gate, held), dropped| {
                held.borrow_mut().0 = None;
                assert_eq!((gate.inside(), gate.waiting()), (0, 0), "{dropped:?}");
                assert!(gate.try_enter_many(3).is_ok());
            },
        );
        assert!(polls > 1);
    }
}

/// PRM-4, ENG-8: a future that waits for its turn may be dropped at every poll, and gives its turn back.
#[test]
fn prm_4_waiting_for_a_turn_may_be_dropped_at_every_poll() {
    let polls = drop_at_every_poll(
        || {
            let hands = ManualClock::new();
            let limiter = RateLimit::calls(10).burst(2).max_wait(secs(1)).build_with(hands.clock()).unwrap();
            limiter.try_acquire_many(2).unwrap();
            (hands, limiter)
        },
        |(_, limiter)| Box::pin(async move { limiter.acquire_many(2).await.unwrap() }),
        |(hands, _)| hands.advance(millis(50)),
        |(hands, limiter), dropped| {
            hands.advance(millis(200));
            assert!(limiter.try_acquire_many(2).is_ok(), "{dropped:?}");
        },
    );
    assert!(polls > 2);
}

/// ENG-5, ENG-16: an owned ticket follows the same rules as one that borrows.
#[test]
fn eng_5_an_owned_ticket_is_settled_or_abandoned() {
    let hands = ManualClock::new();
    let breaker = Breaker::consecutive_failures(1).abandoned_after(secs(1)).cooldown(secs(10));
    let circuit = Arc::new(breaker.build_with(hands.clock()).unwrap());
    circuit.admit_owned().unwrap().finish(Outcome::Success);
    drop(circuit.admit_owned().unwrap());
    assert_eq!((circuit.state(), circuit.counts().abandoned), (State::Closed, 1));
    let mut ticket = circuit.admit_owned().unwrap();
    hands.advance(secs(2));
    ticket.start();
    drop(ticket);
    assert_eq!(circuit.state(), State::Closed, "its time had just begun");
    let ticket = circuit.admit_owned().unwrap();
    hands.advance(secs(2));
    drop(ticket);
    assert_eq!(circuit.state(), State::Open, "it had run for long");
    assert!(circuit.admit_owned().is_err());
    hands.advance(secs(10));
    let probe = circuit.admit_owned().unwrap();
    assert!(probe.is_probe() && circuit.admit_owned().is_err());
    probe.finish(Outcome::Success);
    assert_eq!(circuit.state(), State::Closed);
    let ticket = circuit.admit_owned().unwrap();
    let panicked = std::thread::spawn(move || {
        let _ticket = ticket;
        panic!("as planned");
    });
    assert!(panicked.join().is_err());
    assert_eq!((circuit.state(), circuit.counts().panicked), (State::Open, 1));
}

/// ENG-16: what a guard has can be cloned into a task, and is the guard's own.
#[test]
fn eng_16_a_guards_policies_can_be_shared_with_a_task() {
    let guard = Guard::builder("peer")
        .clock(ManualClock::new().clock())
        .breaker(Breaker::default())
        .bulkhead(Bulkhead::max_calls(1))
        .rate_limit(RateLimit::calls(1))
        .build()
        .unwrap();
    let gate = Arc::clone(guard.bulkhead().unwrap());
    let permit = std::thread::spawn(move || gate.try_enter_owned().unwrap()).join().unwrap();
    assert_eq!(guard.bulkhead().unwrap().inside(), 1);
    drop(permit);
    goes_into_a_task(guard.breaker().unwrap());
    goes_into_a_task(guard.rate_limiter().unwrap());
    goes_into_a_task(guard.budget().unwrap());
}
