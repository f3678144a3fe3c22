//! The table on stdout, and the same as JSON.

use std::fmt::{self, Display, Formatter};

use serde_json::{Value, json};

use super::load::Measured;
use super::proxies::Kind;

/// A small request through the hub costs at most so much of the processor's time.
const CPU_US_MOST: f64 = 30.0;

/// One proxy with so many clients.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    pub clients: usize,
    pub measured: Measured,
    /// The same without a proxy.
    pub direct: Option<Measured>,
}

impl Row {
    /// What the proxy adds to an exchange, at the median and at the 99th percentile.
    pub fn added(&self) -> Option<(f64, f64)> {
        let Measured { p50_us, p99_us, .. } = self.measured;
        self.direct.map(|direct| (p50_us - direct.p50_us, p99_us - direct.p99_us))
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Measured { requests, rate, cpu_us, p50_us, p99_us } = self.measured;
        let added = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"));
        let (added_p50, added_p99) = (self.added().map(|added| added.0), self.added().map(|added| added.1));
        let cpu = if self.direct.is_some() { format!("{cpu_us:.1}") } else { "-".into() };
        write!(
            f,
            "  {:8} | {:>7} | {requests:>8} | {rate:>8.0} | {cpu:>6} | {p50_us:>7.0} | {p99_us:>7.0} | {:>9} | {:>9} |",
            self.name,
            self.clients,
            added(added_p50),
            added(added_p99)
        )
    }
}

/// Everything that a run found out.
pub struct Report<'a> {
    pub rows: &'a [Row],
}

const HEAD: &str =
    "  proxy    | clients | requests |   rate/s | CPU µs |  p50 µs |  p99 µs | added p50 | added p99 |";

impl Report<'_> {
    fn find(&self, kind: Kind, clients: usize) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == kind.name() && row.clients == clients)
    }

    /// What is to be reached, what was reached, and the limit.
    fn targets(&self) -> Vec<(String, Option<f64>, Option<f64>)> {
        let cpu = |kind, clients| self.find(kind, clients).map(|row| row.measured.cpu_us);
        let added = |kind| self.find(kind, 1).and_then(Row::added).map(|added| added.0);
        vec![
            ("CPU µs of a small request, 16 clients".into(), cpu(Kind::Seawall, 16), Some(CPU_US_MOST)),
            ("CPU µs of a small request, 64 clients".into(), cpu(Kind::Seawall, 64), Some(CPU_US_MOST)),
            (
                "added p50 µs on one connection, beside HAProxy's".into(),
                added(Kind::Seawall),
                added(Kind::Haproxy),
            ),
        ]
    }

    /// All numbers, for `--json`.
    pub fn document(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let Measured { requests, rate, cpu_us, p50_us, p99_us } = row.measured;
            json!({
                "proxy": row.name, "clients": row.clients, "requests": requests, "rate_per_second": rate, "cpu_us": cpu_us,
                "p50_us": p50_us, "p99_us": p99_us, "added_p50_us": row.added().map(|added| added.0),
                "added_p99_us": row.added().map(|added| added.1),
            })
        });
        let targets = self
            .targets()
            .into_iter()
            .map(|(what, value, most)| json!({"what": what, "value": value, "at_most": most}));
        json!({"rows": rows.collect::<Vec<_>>(), "targets": targets.collect::<Vec<_>>()})
    }
}

impl Display for Report<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}")?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))?;
        for (what, value, most) in self.targets() {
            let (Some(value), Some(most)) = (value, most) else {
                writeln!(f, "  {what}: not in this run")?;
                continue;
            };
            let verdict = if value <= most { "ok" } else { "short" };
            writeln!(f, "  {what}: {value:.1}, at most {most:.1}: {verdict}")?;
        }
        Ok(())
    }
}
