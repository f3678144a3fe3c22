//! The table on stdout.

use std::fmt::{self, Display, Formatter};

use crate::footprint::{CALLS, Footprint};
use crate::harness::{Measured, Numbers};
use crate::op::{Kind, MEASURED};
use crate::ratio::{Bound, Outcome, Ratio, above_base};
use crate::row::Group;

/// Everything that a run found out.
pub struct Report<'a> {
    pub measured: &'a [Measured],
    pub footprints: &'a [Footprint],
    pub ratios: &'a [Ratio],
}

/// Wide enough for the longest name with its indentation.
const NAME: usize = 54;

impl Display for Report<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.costs(f)?;
        self.bytes(f)?;
        self.targets(f)
    }
}

impl Report<'_> {
    fn costs(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (ready, suspending) = ("ready at once", "suspending once");
        let throughput = "Mops/s on 1 thread, on 2, 2T/1T";
        writeln!(f, "{:NAME$} | {ready:^16} | {suspending:^16} | {ready:^22} | {suspending:^22}", "")?;
        writeln!(
            f,
            "{:NAME$} | {:>9} {:>6} | {:>9} {:>6} | {throughput:^47}",
            "row", "ns", "allocs", "ns", "allocs"
        )?;
        for group in Group::ALL {
            let mut rows = self.measured.iter().filter(|row| row.group == group).peekable();
            if rows.peek().is_some() {
                writeln!(f, "\n{group}")?;
            }
            for row in rows {
                write!(f, "  {:width$}", row.name, width = NAME - 2)?;
                for kind in MEASURED {
                    let above = above_base(self.measured, row, kind).map(|ns| format!("{ns:.1}"));
                    let allocations = row.numbers(kind).map(|numbers| count(numbers.allocations));
                    write!(f, " | {:>9} {:>6}", or_dash(above), or_dash(allocations))?;
                }
                for kind in MEASURED {
                    write!(f, " | {}", throughput_of(row.numbers(kind)))?;
                }
                writeln!(f)?;
            }
        }
        writeln!(f, "\n  ~ no round in which both threads had a core: the median of all rounds")
    }

    fn bytes(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.footprints.is_empty() {
            return Ok(());
        }
        let used = format!("heap after {CALLS} calls");
        writeln!(
            f,
            "\n{:NAME$} | {:>8} | {:>10} | {used:>22}",
            "bytes per instance", "size_of", "heap built"
        )?;
        for one in self.footprints {
            let Footprint { name, inline_bytes, built_bytes, used_bytes } = one;
            writeln!(
                f,
                "  {name:width$} | {inline_bytes:>8} | {built_bytes:>10} | {used_bytes:>22}",
                width = NAME - 2
            )?;
        }
        Ok(())
    }

    fn targets(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.ratios.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{:62} | {:>8} | {:>13} |", "ratios", "value", "target")?;
        for ratio in self.ratios {
            let target = match ratio.bound {
                Bound::AtMost(limit) => format!("at most {limit}"),
                Bound::AtLeast(limit) => format!("at least {limit}"),
            };
            let (value, verdict) = match ratio.evaluate(self.measured) {
                Outcome::Value { value, kept, against } => {
                    let verdict = if kept { "ok" } else { "short" };
                    let against = against.map_or(String::new(), |name| format!(" (against {name})"));
                    (format!("{value:.2}"), format!("{verdict}{against}"))
                }
                Outcome::Missing(name) => ("-".to_owned(), format!("no row `{name}` in this run")),
            };
            writeln!(f, "  {:60} | {value:>8} | {target:>13} | {verdict}", ratio.what)?;
        }
        Ok(())
    }
}

fn throughput_of(numbers: Option<&Numbers>) -> String {
    let Some(numbers) = numbers else { return format!("{:>7} {:>7} {:>6}", "-", "-", "-") };
    let one = numbers.mops();
    match numbers.mops_together().zip(numbers.scaling()) {
        None => format!("{one:>7.2} {:>7} {:>6}", "-", "-"),
        Some(((two, on_cores), scaling)) => {
            let mark = if on_cores { "" } else { "~" };
            format!("{one:>7.2} {:>7} {:>6.2}", format!("{mark}{two:.2}"), scaling)
        }
    }
}

fn count(allocations: f64) -> String {
    if allocations.fract() == 0.0 { format!("{allocations:.0}") } else { format!("{allocations:.2}") }
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// The word that the JSON uses for a kind.
pub fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Ready => "ready",
        Kind::Suspending => "suspending",
        Kind::Failing => "failing",
    }
}
