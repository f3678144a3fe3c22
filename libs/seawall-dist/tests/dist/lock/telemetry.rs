#![cfg(feature = "metrics")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use seawall::{millis, secs};
use seawall_dist::telemetry::metrics;
use seawall_testkit::{ManualClock, run};

use super::support::{Behaviour, KEY, ScriptedLocks, builder, sleep};

/// Adds up what is recorded, by name and labels.
#[derive(Clone, Default)]
struct Sums(Arc<Mutex<BTreeMap<String, f64>>>);

struct Sum(Sums, String);

impl Sum {
    fn add(&self, value: f64) {
        *self.0.0.lock().unwrap().entry(self.1.clone()).or_default() += value;
    }
}

impl CounterFn for Sum {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }
    fn absolute(&self, _: u64) {}
}

impl GaugeFn for Sum {
    fn increment(&self, value: f64) {
        self.add(value);
    }
    fn decrement(&self, value: f64) {
        self.add(-value);
    }
    fn set(&self, _: f64) {}
}

impl HistogramFn for Sum {
    fn record(&self, value: f64) {
        self.add(value);
    }
}

impl Sums {
    fn sum(&self, key: &Key) -> Arc<Sum> {
        let labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let (name, labels) = (key.name(), labels.join(","));
        assert!(metrics().any(|(known, ..)| *known == name), "{name} is not in the list");
        Arc::new(Sum(self.clone(), format!("{name} {labels}")))
    }
}

impl Recorder for Sums {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.sum(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.sum(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.sum(key))
    }
}

/// OBS-2: how long callers wait, what they wait for in vain, and what they lose.
#[test]
fn obs_2_lock_waits_contention_and_losses_are_counted() {
    let sums = Sums::default();
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).name("payments").build().unwrap();
    metrics::with_local_recorder(&sums, || {
        store.acquires.lock().unwrap().extend([Behaviour::Refuses, Behaviour::Refuses, Behaviour::Works]);
        run(&clock, locks.with_lock(KEY, |_| sleep(&clock, millis(500)))).unwrap();
        store.renewals.lock().unwrap().push_back(Behaviour::Refuses);
        run(&clock, locks.with_lock(KEY, |_| sleep(&clock, secs(5)))).unwrap_err();
        // There is no runtime that could give the lost lock back.
        clock.advance(secs(1));
        store.releases.lock().unwrap().push_back(Behaviour::Fails);
        run(&clock, locks.with_lock(KEY, |_| async {})).unwrap();
    });
    let sums = sums.0.lock().unwrap();
    let of = |name: &str| sums.get(name).copied();
    assert_eq!(of("seawall.lock.contentions locks=payments"), Some(2.0), "{sums:?}");
    assert_eq!(of("seawall.lock.waiting locks=payments"), Some(0.0), "{sums:?}");
    assert_eq!(of("seawall.lock.losses locks=payments,reason=taken_over"), Some(1.0), "{sums:?}");
    assert_eq!(of("seawall.lock.releases.failed locks=payments"), Some(1.0), "{sums:?}");
    let waited = of("seawall.lock.wait.duration locks=payments,outcome=acquired").unwrap();
    assert!((0.2..=0.4).contains(&waited), "{waited}");
    let held = of("seawall.lock.hold.duration locks=payments").unwrap();
    assert!((0.8..0.9).contains(&held), "{held}");
}
