//! Singleflight and the cache's rules under every interleaving: `cargo xtask loom`.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::SharedWorkError;
use super::cache::shard::{Answer, Entry, Look, Shard};
use super::singleflight::registry::{Joined, Registry};
use super::singleflight::{Flight, Waiting};
use crate::clock::Tick;

/// Wakes a thread that waits.
#[derive(Default)]
struct Bell(Mutex<bool>, Condvar);

impl Wake for Bell {
    fn wake(self: StdArc<Self>) {
        *self.0.lock().expect("nobody panics here") = true;
        self.1.notify_one();
    }
}

/// Waits for a future on this thread. A waker that is never called is a deadlock, which the model checker reports.
fn wait<F: Future>(future: F) -> F::Output {
    let bell = StdArc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut rung = bell.0.lock().expect("nobody panics here");
        while !*rung {
            rung = bell.1.wait(rung).expect("nobody panics here");
        }
        *rung = false;
    }
}

type Flights = StdArc<Registry<u8, Result<u32, SharedWorkError>>>;

/// Joins, leads if nobody else does, and waits for the result.
fn call(registry: &Flights, started: &AtomicUsize) -> Result<u32, SharedWorkError> {
    match Registry::join(registry, &1) {
        Joined::Follower(flight) => wait(Waiting::new(flight)),
        Joined::Leader(landing) => {
            started.fetch_add(1, Ordering::Relaxed);
            let waiting = Waiting::new(landing.flight());
            landing.land(Ok(7));
            wait(waiting)
        }
    }
}

/// TSK-1. Trap "waiter registers after completion": a caller that comes while the work ends sees its result or starts
/// anew; nobody waits for ever, and nothing is left on the registry.
#[test]
fn tsk_1_nobody_waits_for_an_end_that_was() {
    loom::model(|| {
        let (registry, started): (Flights, _) = (StdArc::default(), StdArc::new(AtomicUsize::new(0)));
        let other = {
            let (registry, started) = (registry.clone(), started.clone());
            thread::spawn(move || call(&registry, &started).is_ok())
        };
        assert!(call(&registry, &started).is_ok());
        assert!(other.join().expect("no panic"));
        assert_eq!(registry.len(), 0);
    });
}

/// TSK-1: work that is lost beside a caller that joins leaves nobody waiting.
#[test]
fn tsk_1_lost_work_is_told_to_whoever_joins() {
    loom::model(|| {
        let registry: Flights = StdArc::default();
        let Joined::Leader(landing) = Registry::join(&registry, &1) else {
            unreachable!("nobody is before it")
        };
        let losing = thread::spawn(move || drop(landing));
        match Registry::join(&registry, &1) {
            Joined::Follower(flight) => {
                assert!(matches!(wait(Waiting::new(flight)), Err(SharedWorkError::Lost)))
            }
            Joined::Leader(landing) => landing.land(Ok(1)),
        }
        losing.join().expect("no panic");
        assert_eq!(registry.len(), 0);
    });
}

/// PRM-4: a waiter that gives up while the work ends does no harm to another.
#[test]
fn prm_4_a_waiter_that_gives_up_harms_nobody() {
    loom::model(|| {
        let flight: StdArc<Flight<u32>> = Flight::new();
        let landing = {
            let flight = flight.clone();
            thread::spawn(move || flight.land(7))
        };
        {
            let mut hasty = pin!(Waiting::new(flight.clone()));
            let _ = hasty.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        assert_eq!(wait(Waiting::new(flight)), 7);
        landing.join().expect("no panic");
    });
}

fn entry(value: u32) -> Entry<u32> {
    let late = Tick::from_nanos(0) + Duration::from_secs(60);
    Entry { value: Some(value), version: 0, refresh_at: late, fresh_until: late, dead_at: late }
}

struct Near {
    shard: Mutex<Shard<u32>>,
    /// What the database has now.
    truth: Mutex<u32>,
}

impl Near {
    fn look(&self) -> Look<u32> {
        self.shard.lock().expect("nobody panics here").look("key", 0, Tick::from_nanos(1))
    }

    /// As a caller does it: what is known, or what it loads, or what somebody else loads.
    fn get(&self) -> u32 {
        let flight: StdArc<Flight<Answer<u32>>> = match self.look() {
            Look::Hit(value) | Look::HitAndLoad(value, ..) => return value.expect("it is found"),
            Look::Join(flight) => flight,
            Look::Load(lease, flight) => {
                let value = *self.truth.lock().expect("nobody panics here");
                let now = Tick::from_nanos(2);
                let _ = self.shard.lock().expect("nobody panics here").store("key", lease, entry(value), now);
                flight.land(Ok(Some(value)));
                flight
            }
        };
        wait(Waiting::new(flight)).expect("no load fails").expect("it is found")
    }
}

/// TSK-3. Trap "stale set": whatever a load and an invalidation do at once, who asks after the invalidation sees the new
/// value, and so does everybody after that.
#[test]
fn tsk_3_after_an_invalidation_nobody_sees_the_old_value() {
    loom::model(|| {
        let near = Arc::new(Near { shard: Mutex::new(Shard::new(4)), truth: Mutex::new(1) });
        let reader = {
            let near = near.clone();
            thread::spawn(move || near.get())
        };
        *near.truth.lock().expect("nobody panics here") = 2;
        let _ = near.shard.lock().expect("nobody panics here").invalidate("key");
        assert_eq!(near.get(), 2, "asked after the invalidation");
        reader.join().expect("no panic");
        assert_eq!(near.get(), 2, "what a slow reader brought back was kept");
    });
}

/// TSK-2: two callers at once run one load.
#[test]
fn tsk_2_two_callers_run_one_load() {
    loom::model(|| {
        let near = Arc::new(Near { shard: Mutex::new(Shard::new(4)), truth: Mutex::new(1) });
        let other = {
            let near = near.clone();
            thread::spawn(move || near.get())
        };
        assert_eq!((near.get(), other.join().expect("no panic")), (1, 1));
        assert_eq!(near.shard.lock().expect("nobody panics here").stats.loads, 1);
    });
}
