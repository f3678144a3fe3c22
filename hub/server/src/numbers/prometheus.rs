//! The text that Prometheus reads.

use std::fmt::Write;

use metrics::Unit;

use super::{Cell, Family, Numbers};

impl Numbers {
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
            Cell::Counter(_) => ("counter", "_total"),
            Cell::Gauge(_) => ("gauge", ""),
            Cell::Histogram(_) => ("histogram", ""),
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
        for (labels, cell) in &self.series {
            write_series(&name, labels, cell, out);
        }
    }
}

fn write_series(name: &str, labels: &[(String, String)], cell: &Cell, out: &mut String) {
    let line = |out: &mut String, suffix: &str, more: Option<&str>, value: &str| {
        let own = labels.iter().map(|(name, value)| format!("{}=\"{}\"", plain(name), quoted(value)));
        let all: Vec<String> = own.chain(more.map(|bound| format!("le=\"{bound}\""))).collect();
        let all = if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) };
        let _ = writeln!(out, "{name}{suffix}{all} {value}");
    };
    match cell {
        Cell::Counter(total) => line(out, "", None, &total.get().to_string()),
        Cell::Gauge(level) => line(out, "", None, &level.get().to_string()),
        Cell::Histogram(buckets) => {
            let snapshot = buckets.snapshot();
            let mut below = 0;
            for (at, count) in snapshot.counts.iter().enumerate() {
                below += count;
                let bound = snapshot.bounds.get(at).map_or_else(|| "+Inf".to_owned(), ToString::to_string);
                line(out, "_bucket", Some(&bound), &below.to_string());
            }
            line(out, "_sum", None, &snapshot.sum.to_string());
            line(out, "_count", None, &below.to_string());
        }
    }
}

/// A name as Prometheus has them.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn quoted(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
