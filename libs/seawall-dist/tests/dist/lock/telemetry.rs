#![cfg(feature = "metrics")]

use seawall::{millis, secs};
use seawall_testkit::{ManualClock, run};

use super::support::{Behaviour, KEY, ScriptedLocks, builder, sleep};
use crate::observe::numbers;

/// OBS-2: how long callers wait, what they wait for in vain, and what they lose.
#[test]
fn obs_2_lock_waits_contention_and_losses_are_counted() {
    let numbers = numbers();
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).name("payments").build().unwrap();
    metrics::with_local_recorder(&numbers, || {
        store.acquires.lock().unwrap().extend([Behaviour::Refuses, Behaviour::Refuses, Behaviour::Works]);
        run(&clock, locks.with_lock(KEY, |_| sleep(&clock, millis(500)))).unwrap();
        store.renewals.lock().unwrap().push_back(Behaviour::Refuses);
        run(&clock, locks.with_lock(KEY, |_| sleep(&clock, secs(5)))).unwrap_err();
        // There is no runtime that could give the lost lock back.
        clock.advance(secs(1));
        store.releases.lock().unwrap().push_back(Behaviour::Fails);
        run(&clock, locks.with_lock(KEY, |_| async {})).unwrap();
    });
    let of = |name: &str| numbers.get(name);
    assert_eq!(of("seawall.lock.contentions{locks=payments}"), Some(2.0), "{numbers:?}");
    assert_eq!(of("seawall.lock.waiting{locks=payments}"), Some(0.0), "{numbers:?}");
    assert_eq!(of("seawall.lock.losses{locks=payments,reason=taken_over}"), Some(1.0), "{numbers:?}");
    assert_eq!(of("seawall.lock.releases.failed{locks=payments}"), Some(1.0), "{numbers:?}");
    let waited = of("seawall.lock.wait.duration{locks=payments,outcome=acquired}").unwrap();
    assert!((0.2..=0.4).contains(&waited), "{waited}");
    let held = of("seawall.lock.hold.duration{locks=payments}").unwrap();
    assert!((0.8..0.9).contains(&held), "{held}");
}
