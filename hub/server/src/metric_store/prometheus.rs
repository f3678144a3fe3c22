//! The text that Prometheus reads.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write;

use metrics::Unit;

use super::cell::Snapshot;
use super::{Family, HISTOGRAM_VALUES_MAX, MetricCell, MetricStore, OTHER};

impl MetricStore {
    /// All numbers, in the text format of Prometheus.
    #[must_use]
    pub fn prometheus(&self) -> String {
        let mut out = String::new();
        for (name, family) in self.lock().iter() {
            family.write(name, &mut out);
        }
        out
    }
}

impl Family {
    fn write(&self, name: &str, out: &mut String) {
        let Some(first) = self.series.values().next() else { return };
        let (kind, last) = match first {
            MetricCell::Counter(_) => ("counter", "_total"),
            MetricCell::Gauge(_) => ("gauge", ""),
            MetricCell::Histogram(_) => ("histogram", ""),
        };
        let unit = match self.unit {
            Some(Unit::Seconds) => "_seconds",
            Some(Unit::Bytes) => "_bytes",
            _ => "",
        };
        let name = format!("{}{unit}{last}", plain(name));
        if let Some(meaning) = &self.meaning {
            let _ = writeln!(out, "# HELP {name} {}", meaning.replace('\\', "\\\\").replace('\n', "\\n"));
        }
        let _ = writeln!(out, "# TYPE {name} {kind}");
        if kind == "histogram" {
            return self.write_histograms(&name, out);
        }
        for (labels, cell) in &self.series {
            let value = match cell {
                MetricCell::Counter(total) => total.get().to_string(),
                MetricCell::Gauge(level) => level.get().to_string(),
                MetricCell::Histogram(_) => continue,
            };
            write_line((&name, ""), labels, None, &value, out);
        }
    }

    /// Those of the first values of each label, and the others added up.
    fn write_histograms(&self, name: &str, out: &mut String) {
        let mut folded: BTreeMap<Vec<(&str, &str)>, Snapshot> = BTreeMap::new();
        for (labels, cell) in &self.series {
            let MetricCell::Histogram(buckets) = cell else { continue };
            let snapshot = buckets.snapshot();
            let labels = labels.iter().map(|(name, value)| (name.as_str(), self.shown(name, value)));
            match folded.entry(labels.collect()) {
                Entry::Vacant(place) => drop(place.insert(snapshot)),
                Entry::Occupied(mut there) => there.get_mut().add(&snapshot),
            }
        }
        for (labels, snapshot) in &folded {
            let mut below = 0;
            for (at, count) in snapshot.counts.iter().enumerate() {
                below += count;
                let bound = snapshot.bounds.get(at).map_or_else(|| "+Inf".to_owned(), ToString::to_string);
                write_line((name, "_bucket"), labels, Some(&bound), &below.to_string(), out);
            }
            write_line((name, "_sum"), labels, None, &snapshot.sum.to_string(), out);
            write_line((name, "_count"), labels, None, &below.to_string(), out);
        }
    }

    fn shown<'v>(&self, label: &str, value: &'v str) -> &'v str {
        let number = self.values.get(label).and_then(|values| values.get(value));
        if number.is_some_and(|number| *number < HISTOGRAM_VALUES_MAX) { value } else { OTHER }
    }
}

fn write_line<L: AsRef<str>>(
    (name, suffix): (&str, &str),
    labels: &[(L, L)],
    bound: Option<&str>,
    value: &str,
    out: &mut String,
) {
    let own =
        labels.iter().map(|(name, value)| format!("{}=\"{}\"", plain(name.as_ref()), quoted(value.as_ref())));
    let all: Vec<String> = own.chain(bound.map(|bound| format!("le=\"{bound}\""))).collect();
    let all = if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) };
    let _ = writeln!(out, "{name}{suffix}{all} {value}");
}

/// A name as Prometheus has them.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn quoted(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
