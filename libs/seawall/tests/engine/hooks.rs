//! Functions that a guard calls in place.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::SystemTime;

use seawall::breaker::State;
use seawall::event::EventKind;
use seawall::{
    Backoff, Breaker, Bulkhead, Clock, Error, Fault, Guard, GuardBuilder, Policy, Registry, Retry, Tick,
    Time, millis, secs,
};
use seawall_testkit::{ManualClock, Script, Step, poll_once, run};

type HookLog = Arc<Mutex<Vec<String>>>;

fn heard() -> (HookLog, impl Fn(String) + Clone + Send + Sync + 'static) {
    let heard = HookLog::default();
    let told = heard.clone();
    (heard, move |text| told.lock().unwrap().push(text))
}

fn take(heard: &HookLog) -> Vec<String> {
    std::mem::take(&mut heard.lock().unwrap())
}

fn builder(hands: &ManualClock) -> GuardBuilder {
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(millis(10)).no_jitter());
    Guard::builder("payments").clock(hands.clock()).retry(retry)
}

fn call(hands: &ManualClock, guard: &Guard, steps: &[Step]) -> Result<u32, Error<Fault>> {
    let script = Script::new(hands, steps.iter().copied());
    let request = guard.idempotent().operation("charge").about("A-7");
    run(hands, request.call(|attempt| script.attempt(attempt))).map(|_| 1)
}

/// ENG-13: a hook hears of each retry before its wait, with the number of the attempt to come, the wait and the fault.
#[test]
fn eng_13_on_retry_hears_of_each_retry_before_its_wait() {
    let (heard, tell) = heard();
    let hands = ManualClock::new();
    let (began, clock) = (hands.now(), hands.clone());
    let guard = builder(&hands)
        .on_retry(move |retry| {
            let at = clock.now().since(began);
            tell(format!(
                "{at:?} {} {:?} {:?} {} {:?} {}",
                retry.guard, retry.operation, retry.about, retry.attempt, retry.wait, retry.fault
            ));
        })
        .build()
        .unwrap();
    call(&hands, &guard, &[Step::Fail(Fault::io()), Step::Fail(Fault::timeout()), Step::Ok]).unwrap();
    assert_eq!(
        take(&heard),
        [
            "0ns payments Some(\"charge\") Some(\"A-7\") 2 10ms i/o fault",
            "10ms payments Some(\"charge\") Some(\"A-7\") 3 10ms timeout",
        ]
    );
    call(&hands, &guard, &[Step::Ok]).unwrap();
    assert_eq!(take(&heard), Vec::<String>::new());
}

/// ENG-13: a hook hears from where to where the circuit moved, for how long, and what a person said.
#[test]
fn eng_13_on_transition_hears_from_where_to_where_the_circuit_moved() {
    let (heard, tell) = heard();
    let hands = ManualClock::new();
    let guard = builder(&hands)
        .no_retry()
        .breaker(Breaker::consecutive_failures(2).cooldown(secs(30)))
        .on_transition(move |it| {
            tell(format!("{} {:?} {:?} {:?} {:?}", it.guard, it.from, it.to, it.cooldown, it.reason));
        })
        .build()
        .unwrap();
    let _ = call(&hands, &guard, &[Step::Fail(Fault::io())]);
    assert_eq!(take(&heard), Vec::<String>::new());
    let _ = call(&hands, &guard, &[Step::Fail(Fault::io())]);
    assert_eq!(take(&heard), ["payments Closed Open Some(30s) None"]);
    hands.advance(secs(31));
    call(&hands, &guard, &[Step::Ok]).unwrap();
    assert_eq!(take(&heard), ["payments Open HalfOpen None None", "payments HalfOpen Closed None None"]);
    let circuit = guard.breaker().unwrap();
    circuit.force_open("maintenance");
    circuit.disable("noise");
    circuit.reset("it is back");
    circuit.reset("again");
    assert_eq!(
        take(&heard),
        [
            "payments Closed ForcedOpen None Some(\"maintenance\")",
            "payments ForcedOpen Disabled None Some(\"noise\")",
            "payments Disabled Closed None Some(\"it is back\")",
        ]
    );
    hands.advance(secs(1));
    let _ = call(&hands, &guard, &[Step::Fail(Fault::io())]);
    let _ = call(&hands, &guard, &[Step::Fail(Fault::io())]);
    assert_eq!(take(&heard), ["payments Closed Open Some(30s) None"], "nobody moved it this time");
    guard.reconfigure(builder(&hands).no_retry()).unwrap();
    assert_eq!(
        take(&heard),
        ["payments Open Closed None None"],
        "a guard without a breaker has no open circuit"
    );
}

/// ENG-13: a hook hears who refused and when to come back.
#[test]
fn eng_13_on_rejection_hears_who_refused() {
    let (heard, tell) = heard();
    let hands = ManualClock::new();
    let guard = builder(&hands)
        .bulkhead(Bulkhead::max_calls(1))
        .breaker(Breaker::default())
        .on_rejection(move |it| tell(format!("{:?} {} {:?}", it.operation, it.by, it.retry_after)))
        .build()
        .unwrap();
    let script = Script::new(&hands, [Step::Hang]);
    let mut first = std::pin::pin!(guard.call(|attempt| script.attempt(attempt)));
    assert!(poll_once(first.as_mut()).is_pending());
    assert!(call(&hands, &guard, &[]).is_err());
    guard.breaker().unwrap().force_open("maintenance");
    assert!(call(&hands, &guard, &[]).is_err());
    assert_eq!(take(&heard), ["Some(\"charge\") bulkhead None", "Some(\"charge\") breaker None"]);
}

/// ENG-13: a hook for everything hears what a subscriber hears.
#[test]
fn eng_13_on_event_hears_everything() {
    let (heard, tell) = heard();
    let hands = ManualClock::new();
    let guard = builder(&hands).on_event(move |event| tell(event.what.name().to_owned())).build().unwrap();
    let mut events = guard.subscribe(100);
    call(&hands, &guard, &[Step::Fail(Fault::io()), Step::Ok]).unwrap();
    let names: Vec<_> =
        std::iter::from_fn(|| events.try_next()).map(|event| event.what.name().to_owned()).collect();
    assert_eq!(names, ["started", "attempt", "failed", "retry", "attempt", "succeeded"]);
    assert_eq!(take(&heard), names);
}

/// ENG-13: a panic in a hook harms neither the call nor the next hook, not even while the call itself panics.
#[test]
fn eng_13_a_panic_in_a_hook_is_caught_and_counted() {
    let (heard, tell) = heard();
    let hands = ManualClock::new();
    let guard = builder(&hands)
        .breaker(Breaker::consecutive_failures(1))
        .on_retry(|_| panic!("in a hook"))
        .on_retry(move |retry| tell(retry.attempt.to_string()))
        .on_transition(|_| panic!("in a hook"))
        .on_rejection(|_| panic!("in a hook"))
        .build()
        .unwrap();
    guard.breaker().unwrap().disable("to see retries");
    assert_eq!(guard.hook_panics(), 1);
    call(&hands, &guard, &[Step::Fail(Fault::io()), Step::Ok]).unwrap();
    assert_eq!((guard.hook_panics(), take(&heard)), (2, vec!["2".to_owned()]));
    guard.breaker().unwrap().force_open("maintenance");
    assert_eq!(call(&hands, &guard, &[]).unwrap_err().decided_by(), Policy::Breaker);
    assert_eq!(guard.hook_panics(), 4);

    let all = builder(&hands)
        .on_event(|event| assert_ne!(event.what, EventKind::Panicked, "in a hook"))
        .build()
        .unwrap();
    let unwound =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call(&hands, &all, &[Step::Panic])));
    assert!(unwound.is_err(), "the operation's own panic goes on");
    assert_eq!(all.hook_panics(), 1);
}

/// ENG-13: hooks of a registry hear of all its guards, families included, after the guard's own.
#[test]
fn eng_13_hooks_of_a_registry_hear_of_all_its_guards() {
    let (heard, tell) = heard();
    let (own, hands) = (tell.clone(), ManualClock::new());
    let registry = Registry::builder()
        .clock(hands.clock())
        .on_retry(move |retry| tell(format!("registry {}", retry.guard)))
        .build();
    let one =
        registry.register(builder(&hands).on_retry(move |it| own(format!("own {}", it.guard)))).unwrap();
    let hosts = registry.register_keyed(Guard::builder("hosts").retry(Retry::max_attempts(2)), 10).unwrap();
    for guard in [&one, &hosts.guard("a"), &hosts.guard("b")] {
        call(&hands, guard, &[Step::Fail(Fault::io()), Step::Ok]).unwrap();
    }
    assert_eq!(take(&heard), ["own payments", "registry payments", "registry hosts[a]", "registry hosts[b]"]);
}

/// A clock that counts how often it is read.
struct Counted(AtomicU64, ManualClock);

impl Time for Counted {
    fn now(&self) -> Tick {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.1.now()
    }

    fn wall(&self) -> SystemTime {
        self.now();
        SystemTime::UNIX_EPOCH
    }

    fn sleep_until(&self, at: Tick) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.1.sleep_until(at))
    }
}

/// ENG-13: hooks for what is rare cost nothing in a call that succeeds: no reading of a clock, no allocation.
#[test]
fn eng_13_hooks_cost_nothing_in_a_call_that_succeeds() {
    let cost = |build: fn(GuardBuilder) -> GuardBuilder| {
        let time = Arc::new(Counted(AtomicU64::new(0), ManualClock::new()));
        let guard =
            build(Guard::builder("peer").clock(Clock::custom(time.clone())).breaker(Breaker::default()));
        let guard = guard.build().unwrap();
        let call = || {
            let call = std::pin::pin!(guard.call(async |_| Ok::<_, Fault>(())));
            assert!(poll_once(call).is_ready());
        };
        call();
        let before = time.0.load(Ordering::Relaxed);
        let allocations = allocation_counter::measure(call).count_total;
        (time.0.load(Ordering::Relaxed) - before, allocations)
    };
    let bare = cost(|builder| builder);
    let hooked = cost(|builder| builder.on_retry(|_| ()).on_transition(|_| ()).on_rejection(|_| ()));
    let watched = cost(|builder| builder.on_event(|_| ()));
    assert_eq!((bare, bare.1), (hooked, 0));
    assert!(watched.0 > bare.0, "this test sees what watching costs: {watched:?}");
}

/// ENG-13: hooks are called by whichever thread it happens on, once for each.
#[test]
fn eng_13_hooks_are_called_from_many_threads() {
    let (retries, opened) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let here = Arc::new(AtomicUsize::new(0));
    let (counts, opens, in_place) = (retries.clone(), opened.clone(), here.clone());
    thread_local!(static INSIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });
    let guard = Guard::builder("peer")
        .retry(Retry::max_attempts(2).backoff(Backoff::constant(millis(0)).no_jitter()).no_budget())
        .breaker(Breaker::consecutive_failures(100_000))
        .on_retry(move |_| {
            counts.fetch_add(1, Ordering::Relaxed);
            in_place.fetch_add(usize::from(INSIDE.get()), Ordering::Relaxed);
        })
        .on_transition(move |it| {
            opens.fetch_add(usize::from(it.to == State::ForcedOpen), Ordering::Relaxed);
        })
        .build()
        .unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                INSIDE.set(true);
                for _ in 0..1_000 {
                    assert!(guard.idempotent().run(|_| Err::<(), _>(Fault::io())).is_err());
                }
            });
        }
    });
    assert_eq!(retries.load(Ordering::Relaxed), 4_000);
    assert_eq!(here.load(Ordering::Relaxed), 4_000, "on the caller's thread");
    thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| guard.breaker().unwrap().force_open("all at once"))));
    });
    assert_eq!(opened.load(Ordering::Relaxed), 1, "it opened once");
    let refused: Error<Fault> = guard.run(|_| Ok::<(), _>(())).unwrap_err();
    assert_eq!(refused.decided_by(), Policy::Breaker);
}
