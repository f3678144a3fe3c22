//! The metrics of a test.

#![expect(clippy::panic, reason = "a test fails with a sentence")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Label, Metadata, Recorder,
    SharedString, Unit,
};

/// Keeps the values of metrics, by `name{label=value,…}`: counters and histograms add up, gauges have their last value. It is
/// a handle: clones are the same numbers.
///
/// Give it to `metrics::with_local_recorder` or `metrics::set_default_local_recorder`.
#[derive(Clone, Default, Debug)]
pub struct Numbers(Arc<Shared>);

#[derive(Default, Debug)]
struct Shared {
    values: Mutex<BTreeMap<String, f64>>,
    described: Mutex<BTreeSet<String>>,
    /// The labels of each known metric; empty if any is accepted.
    known: BTreeMap<&'static str, Vec<&'static str>>,
}

impl Numbers {
    /// Numbers that accept no metrics but these, each with its labels in this order.
    pub fn known<'a>(metrics: impl IntoIterator<Item = (&'static str, &'a [&'static str])>) -> Self {
        let known = metrics.into_iter().map(|(name, labels)| (name, labels.to_vec())).collect();
        Numbers(Arc::new(Shared { known, ..Shared::default() }))
    }

    /// The value of `name{label=value,…}`, if there ever was one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values().get(name).copied()
    }

    /// All values.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, f64> {
        self.values().clone()
    }

    /// The values that are not zero, as `name{label=value,…} value`.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let changed = |(_, value): &(&String, &f64)| **value != 0.0;
        self.values().iter().filter(changed).map(|(name, value)| format!("{name} {value}")).collect()
    }

    /// The names that were described.
    #[must_use]
    pub fn described(&self) -> BTreeSet<String> {
        self.0.described.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn values(&self) -> MutexGuard<'_, BTreeMap<String, f64>> {
        self.0.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(&self, name: &KeyName) {
        self.0.described.lock().unwrap_or_else(PoisonError::into_inner).insert(name.as_str().to_owned());
    }

    fn number(&self, key: &Key) -> Arc<Number> {
        let name = key.name();
        if !self.0.known.is_empty() {
            let labels =
                self.0.known.get(name).unwrap_or_else(|| panic!("{name} is not in the list of metrics"));
            let given: Vec<&str> = key.labels().map(Label::key).collect();
            assert_eq!(&given, labels, "the labels of {name} are not those of the list");
        }
        let labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(Number { numbers: self.clone(), name: format!("{name}{{{}}}", labels.join(",")) })
    }
}

struct Number {
    numbers: Numbers,
    name: String,
}

impl Number {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut values = self.numbers.values();
        let value = values.entry(self.name.clone()).or_default();
        *value = change(*value);
    }
}

impl CounterFn for Number {
    fn increment(&self, value: u64) {
        self.change(|old| old + value as f64);
    }

    fn absolute(&self, value: u64) {
        self.change(|_| value as f64);
    }
}

impl GaugeFn for Number {
    fn increment(&self, value: f64) {
        self.change(|old| old + value);
    }

    fn decrement(&self, value: f64) {
        self.change(|old| old - value);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl HistogramFn for Number {
    fn record(&self, value: f64) {
        self.change(|old| old + value);
    }
}

impl Recorder for Numbers {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.number(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.number(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.number(key))
    }
}
