//! What the gauge of dead letters shows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use seawall_testkit::poll_once;

/// The value of each gauge, by its labels.
#[derive(Clone, Default)]
struct Gauges(Arc<Mutex<BTreeMap<String, f64>>>);

struct OneGauge(Gauges, String);

impl GaugeFn for OneGauge {
    fn increment(&self, _: f64) {}
    fn decrement(&self, _: f64) {}
    fn set(&self, value: f64) {
        self.0.0.lock().unwrap().insert(self.1.clone(), value);
    }
}

impl Recorder for Gauges {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let labels: Vec<&str> = key.labels().map(metrics::Label::value).collect();
        Gauge::from_arc(Arc::new(OneGauge(self.clone(), format!("{} {}", key.name(), labels.join(" ")))))
    }
    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// OBS-2: a group that is gone shows zero, and not the number that it last had; clones of the handle know of each other.
#[tokio::test]
async fn obs_2_the_gauge_of_a_group_that_is_gone_is_zero() {
    let (letters, gauges) = (super::letters(2).await, Gauges::default());
    let record = || {
        let handle = letters.clone();
        let recorded = with_local_recorder(&gauges, || poll_once(Box::pin(handle.record_gauges()).as_mut()));
        assert!(recorded.is_ready(), "a store in memory answers at once");
        gauges.0.lock().unwrap().clone()
    };
    let waiting = "seawall.dead_letters amqp orders attempts waiting";
    let parked = "seawall.dead_letters amqp orders attempts parked";
    assert_eq!(record(), BTreeMap::from([(waiting.to_owned(), 2.0)]));
    letters.park("000").await.unwrap();
    letters.delete("001").await.unwrap();
    assert_eq!(record(), BTreeMap::from([(waiting.to_owned(), 0.0), (parked.to_owned(), 1.0)]));
    letters.restore("001").await.unwrap();
    letters.delete("000").await.unwrap();
    assert_eq!(record(), BTreeMap::from([(waiting.to_owned(), 1.0), (parked.to_owned(), 0.0)]));
}
