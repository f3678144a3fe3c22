//! The table on stdout, and the same as JSON.

use std::fmt::{self, Display, Formatter};

use serde_json::{Value, json};

use super::targets::Target;
use crate::ratio::Bound;

/// What was measured in one go.
#[derive(Clone, Debug)]
pub struct Row {
    pub scene: &'static str,
    pub name: String,
    pub events: u64,
    pub rate: Option<f64>,
    /// Of the hub's process.
    pub cpu_us: Option<f64>,
    /// Of the process that sends and receives.
    pub driver_us: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub rss_mb: Option<f64>,
    pub peak_mb: Option<f64>,
    pub notes: Vec<String>,
}

impl Row {
    /// With one more remark, if there is one.
    #[must_use]
    pub fn and(mut self, note: Option<String>) -> Self {
        self.notes.extend(note);
        self
    }
}

/// Everything that a run found out.
pub struct Report<'a> {
    pub rows: &'a [Row],
    pub targets: &'a [Target],
}

/// Wide enough for the longest name with its indentation.
const NAME: usize = 46;

impl Display for Report<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}")?;
        let mut scenes: Vec<&str> = Vec::new();
        for row in self.rows {
            if !scenes.contains(&row.scene) {
                scenes.push(row.scene);
            }
        }
        for scene in scenes {
            writeln!(f, "\n{scene}")?;
            for row in self.rows.iter().filter(|row| row.scene == scene) {
                writeln!(f, "{row}")?;
            }
        }
        writeln!(f, "\n{:72} | {:>10} | {:>14} |", "targets", "value", "target")?;
        for Target { what, value, bound } in self.targets {
            let (target, kept) = match bound {
                Some(Bound::AtMost(limit)) => {
                    (format!("at most {limit:.2}"), value.is_none_or(|value| value <= *limit))
                }
                Some(Bound::AtLeast(limit)) => {
                    (format!("at least {limit:.0}"), value.is_none_or(|value| value >= *limit))
                }
                None => ("-".to_owned(), true),
            };
            let verdict = match (value, bound, kept) {
                (None, ..) => "not in this run",
                (Some(_), None, _) => "",
                (Some(_), Some(_), true) => "ok",
                (Some(_), Some(_), false) => "short",
            };
            let value = shown(*value, 2);
            writeln!(f, "  {what:70} | {value:>10} | {target:>14} | {verdict}")?;
        }
        Ok(())
    }
}

/// The line above all rows.
pub const HEAD: &str = "row                                            |  events |   rate/s | hub CPU µs | driver µs | \
                        p50 ms | p95 ms | p99 ms | RSS MB | peak MB |";

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "  {:width$} | {:>7} |", self.name, self.events, width = NAME - 2)?;
        write!(
            f,
            " {:>8} | {:>10} | {:>9} |",
            shown(self.rate, 0),
            shown(self.cpu_us, 1),
            shown(self.driver_us, 1)
        )?;
        for time in [self.p50_ms, self.p95_ms, self.p99_ms] {
            write!(f, " {:>6} |", shown(time, 2))?;
        }
        write!(f, " {:>6} | {:>7} | ", shown(self.rss_mb, 1), shown(self.peak_mb, 1))?;
        f.write_str(&self.notes.join("; "))
    }
}

fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// All numbers of a run, for `--json`.
pub fn document(report: &Report<'_>) -> Value {
    let rows = report.rows.iter().map(|row| {
        json!({
            "scene": row.scene, "name": row.name, "events": row.events, "rate_per_second": row.rate,
            "hub_cpu_us": row.cpu_us, "driver_cpu_us": row.driver_us, "p50_ms": row.p50_ms,
            "p95_ms": row.p95_ms, "p99_ms": row.p99_ms, "rss_mb": row.rss_mb, "peak_mb": row.peak_mb,
            "notes": row.notes,
        })
    });
    let targets = report.targets.iter().map(|Target { what, value, bound }| {
        let (most, least) = match bound {
            Some(Bound::AtMost(limit)) => (Some(limit), None),
            Some(Bound::AtLeast(limit)) => (None, Some(limit)),
            None => (None, None),
        };
        json!({"what": what, "value": value, "at_most": most, "at_least": least})
    });
    json!({"rows": rows.collect::<Vec<_>>(), "targets": targets.collect::<Vec<_>>()})
}
