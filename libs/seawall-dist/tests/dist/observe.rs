//! What the tests of sagas and jobs read: log lines and the values of metrics, of the thread of one test.

#![cfg(all(feature = "metrics", feature = "tracing"))]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, Once, PoisonError};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

/// The lines of this thread since it began to keep them, each as `LEVEL message key=value …`.
pub(crate) struct Lines(());

thread_local! {
    static LINES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Writes into the lines of its thread. It serves the whole process: with one subscriber per thread, `tracing` may remember of a
/// thread without one that nobody wants a line, and leave it out in the others.
struct ThreadLines;

impl Lines {
    /// Keeps the lines of this thread from now on.
    pub(crate) fn keep() -> Lines {
        static SUBSCRIBER: Once = Once::new();
        SUBSCRIBER.call_once(|| tracing::subscriber::set_global_default(ThreadLines).unwrap());
        LINES.set(Some(Vec::new()));
        Lines(())
    }

    /// The lines that begin like this.
    pub(crate) fn of(&self, begin: &str) -> Vec<String> {
        let starts = |line: &&String| line.starts_with(begin);
        LINES.with_borrow(|lines| lines.iter().flatten().filter(starts).cloned().collect())
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        LINES.set(None);
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    rest: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            let _ = write!(self.rest, " {}={value:?}", field.name());
        }
    }
}

impl Subscriber for ThreadLines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "seawall"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = format!("{} {}{}", event.metadata().level(), fields.message, fields.rest);
        LINES.with_borrow_mut(|lines| lines.as_mut().map(|lines| lines.push(line)));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The values of metrics by name and labels: counters and histograms add up, gauges keep the last value.
#[derive(Clone, Default)]
pub(crate) struct Numbers(Arc<Mutex<BTreeMap<String, f64>>>);

impl Numbers {
    /// The value of `name{label=value,…}`.
    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    fn number(&self, key: &Key) -> Arc<Number> {
        let known = seawall_dist::telemetry::metrics().find(|(name, ..)| *name == key.name());
        let (name, _, labels, _) = known.unwrap_or_else(|| panic!("{} is not in the list", key.name()));
        let given: Vec<&str> = key.labels().map(metrics::Label::key).collect();
        assert_eq!(given, **labels, "the labels of {name} are not those of the list");
        let labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(Number { all: self.clone(), name: format!("{name}{{{}}}", labels.join(",")) })
    }
}

struct Number {
    all: Numbers,
    name: String,
}

impl Number {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = all.entry(self.name.clone()).or_default();
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
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
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
