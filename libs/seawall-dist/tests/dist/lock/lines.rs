#![cfg(feature = "tracing")]

use seawall::{millis, secs};
use seawall_testkit::observe::Lines;
use seawall_testkit::{ManualClock, run};

use super::support::{Behaviour, KEY, ScriptedLocks, builder, sleep};

/// OBS-1: what locks do is written in the common format, with the key, the token and the cause.
#[test]
fn obs_1_locks_write_lines_in_the_common_format() {
    let lines = Lines::collect();
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).wait(seawall_dist::lock::Wait::ONCE).build().unwrap();
    store.renewals.lock().unwrap().extend([Behaviour::Works, Behaviour::Fails]);
    store.releases.lock().unwrap().push_back(Behaviour::Fails);
    run(&clock, locks.with_lock(KEY, |_| sleep(&clock, millis(10)))).unwrap();
    clock.advance(secs(2));
    run(&clock, locks.with_lock(KEY, |_| sleep(&clock, secs(9)))).unwrap_err();
    store.acquires.lock().unwrap().push_back(Behaviour::Refuses);
    run(&clock, locks.with_lock(KEY, |_| async {})).unwrap_err();
    let lines = lines.take();
    let has = |begin: &str, fields: &[&str]| {
        let found = lines
            .iter()
            .any(|line| line.starts_with(begin) && fields.iter().all(|field| line.contains(field)));
        assert!(found, "no `{begin}` with {fields:?} in {lines:#?}");
    };
    has(
        "INFO [Lock][Acquire] Success.",
        &[" key=lock:order:create:buyer:456", " fence=1", " attempts=1", " duration=0ms"],
    );
    has("WARN [Lock][Release] Failed!", &[" key=lock:order:create:buyer:456", " cause=release failed"]);
    has("WARN [Lock][Renew] Failed!", &[" key=lock:order:create:buyer:456", " cause=renew failed"]);
    has("WARN [Lock][Hold] Failed!", &[" fence=2", " cause=`lock:order:create:buyer:456` was lost"]);
    has("WARN [Lock][Acquire] Failed!", &[" attempts=1", " cause=`lock:order:create:buyer:456` is held"]);
}
