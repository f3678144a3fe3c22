//! The metrics of the process: one registry behind the `metrics` facade, read in two forms.
//!
//! # Why not an exporter from a library?
//! The same numbers are asked for as Prometheus text and as the actuator's JSON, with quantiles; an exporter keeps them to
//! itself. What is needed is small: counters, gauges and histograms with fixed bounds, each one atomic addition. And labels
//! are bounded here, in one place, whoever registers.

mod actuator;
mod cell;
mod prometheus;
mod totals;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, MutexGuard};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use seawall_hub_core::sync::Lock;

use self::cell::{Buckets, Level, Total};
pub(crate) use self::totals::{CLASSES, Totals};

/// A label of a metric has so many values at most; whatever comes later is counted together, as [`OTHER`].
pub const VALUES_MAX: usize = 1_000;
/// In the text for Prometheus a histogram has more than twenty lines for each value. There the first so many values of a label
/// have their own, and the others are added up as [`OTHER`]; which ones does not change while the process runs.
pub const HISTOGRAM_VALUES_MAX: usize = 100;
/// What stands for the values for which there is no room.
pub const OTHER: &str = "other";

/// The numbers of the process. A handle: clones share everything.
#[derive(Clone, Debug, Default)]
pub struct MetricStore {
    families: Arc<Lock<BTreeMap<String, Family>>>,
    /// Held while the gauges are cleared and set again, so that nobody reads them in between.
    reading: Arc<tokio::sync::Mutex<()>>,
}

/// All series of one name.
#[derive(Debug, Default)]
struct Family {
    meaning: Option<String>,
    unit: Option<Unit>,
    /// By their labels, in the order of the names of the labels.
    series: BTreeMap<Vec<(String, String)>, MetricCell>,
    /// The values that each label has, in the order in which they came.
    values: BTreeMap<String, BTreeMap<String, usize>>,
}

/// The value of one series.
#[derive(Clone, Debug)]
enum MetricCell {
    Counter(Arc<Total>),
    Gauge(Arc<Level>),
    Histogram(Arc<Buckets>),
}

impl MetricStore {
    /// Those of this process, installed when they are first asked for. Whoever counts must come later.
    #[must_use]
    pub fn of_process() -> &'static Self {
        static NUMBERS: LazyLock<MetricStore> = LazyLock::new(|| {
            use seawall_hub_core::metric_names;
            let of_process = MetricStore::default();
            // A program that has a recorder of its own keeps it; then there is nothing to see here.
            if metrics::set_global_recorder(of_process.clone()).is_ok() {
                seawall::telemetry::describe();
                metric_names::describe();
                metrics::counter!(metric_names::LOG_DROPPED).increment(0);
                metrics::counter!(metric_names::CLIENTS_CUT_OFF).increment(0);
                for level in ["warn", "error"] {
                    metrics::counter!(metric_names::LOG_LINES, "level" => level).increment(0);
                }
                for outcome in ["sent", "failed"] {
                    metrics::counter!(metric_names::NOTIFICATIONS, "channel" => "log", "outcome" => outcome)
                        .increment(0);
                }
            }
            of_process
        });
        &NUMBERS
    }

    /// Waits until nobody else clears and reads the gauges.
    pub(crate) async fn lock_gauges(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.reading.lock().await
    }

    /// Forgets what there was, so that what is gone is not shown for ever: gauges are set anew by whoever asks for them.
    pub(crate) fn clear_gauges(&self) {
        for family in self.lock().values_mut() {
            family.series.retain(|_, cell| !matches!(cell, MetricCell::Gauge(_)));
        }
    }

    fn describe(&self, name: &KeyName, unit: Option<Unit>, meaning: &SharedString) {
        let mut families = self.lock();
        let family = families.entry(name.as_str().to_owned()).or_default();
        (family.unit, family.meaning) = (unit, Some(meaning.to_string()));
    }

    /// The series of a key, made if there is none.
    fn cell(&self, key: &Key, make: impl FnOnce(Option<Unit>) -> MetricCell) -> MetricCell {
        let mut families = self.lock();
        let family = families.entry(key.name().to_owned()).or_default();
        let labels = family.bounded(key);
        let unit = family.unit;
        family.series.entry(labels).or_insert_with(|| make(unit)).clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Family>> {
        self.families.lock()
    }
}

impl Family {
    fn bounded(&mut self, key: &Key) -> Vec<(String, String)> {
        let mut labels: Vec<(String, String)> = key
            .labels()
            .map(|label| {
                let known = self.values.entry(label.key().to_owned()).or_default();
                let room = known.len() < VALUES_MAX || known.contains_key(label.value());
                let value = if room { label.value() } else { OTHER };
                let number = known.len();
                known.entry(value.to_owned()).or_insert(number);
                (label.key().to_owned(), value.to_owned())
            })
            .collect();
        labels.sort();
        labels
    }
}

impl Recorder for MetricStore {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, meaning: SharedString) {
        self.describe(&name, unit, &meaning);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, meaning: SharedString) {
        self.describe(&name, unit, &meaning);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, meaning: SharedString) {
        self.describe(&name, unit, &meaning);
    }

    // A name that is of another kind already is a mistake in the program; it costs the number, and nothing else.
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        match self.cell(key, |_| MetricCell::Counter(Arc::default())) {
            MetricCell::Counter(cell) => Counter::from_arc(cell),
            _ => Counter::noop(),
        }
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        match self.cell(key, |_| MetricCell::Gauge(Arc::default())) {
            MetricCell::Gauge(cell) => Gauge::from_arc(cell),
            _ => Gauge::noop(),
        }
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        match self.cell(key, |unit| MetricCell::Histogram(Arc::new(Buckets::of(unit)))) {
            MetricCell::Histogram(cell) => Histogram::from_arc(cell),
            _ => Histogram::noop(),
        }
    }
}

#[cfg(test)]
mod tests;
