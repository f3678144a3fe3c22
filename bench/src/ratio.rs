//! Targets as data: a number of one row against the best of other rows, and the bound that it has to keep.

use crate::harness::Measured;
use crate::op::Kind;
use crate::row::BARE_CALL;

/// One target.
pub struct Ratio {
    pub what: &'static str,
    /// The row that has to reach the target.
    pub ours: String,
    /// The rows of which the best one is divided by; none for a number that is a target by itself.
    pub peers: Vec<String>,
    pub column: Column,
    pub bound: Bound,
}

/// The number that is compared.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    /// Nanoseconds above the base of the row.
    Nanoseconds(Kind),
    /// Allocations per call.
    Allocations(Kind),
    /// Million calls a second of two threads together.
    Together(Kind),
    /// Two threads together against one.
    Scaling(Kind),
}

#[derive(Clone, Copy, Debug)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// How a target came out.
pub enum Outcome {
    Value {
        value: f64,
        kept: bool,
        against: Option<String>,
    },
    /// A row that it needs was not measured in this run.
    Missing(String),
}

impl Ratio {
    pub fn evaluate(&self, measured: &[Measured]) -> Outcome {
        let Some(ours) = value(measured, &self.ours, self.column) else {
            return Outcome::Missing(self.ours.clone());
        };
        let mut best: Option<(f64, &String)> = None;
        for peer in &self.peers {
            let Some(value) = value(measured, peer, self.column) else {
                return Outcome::Missing(peer.clone());
            };
            if best.is_none_or(|(other, _)| self.column.better(value, other)) {
                best = Some((value, peer));
            }
        }
        let value = best.map_or(ours, |(best, _)| ours / best);
        let kept = match self.bound {
            Bound::AtMost(limit) => value <= limit,
            Bound::AtLeast(limit) => value >= limit,
        };
        Outcome::Value { value, kept, against: best.map(|(_, name)| name.clone()) }
    }
}

impl Column {
    fn better(self, value: f64, other: f64) -> bool {
        match self {
            Self::Nanoseconds(_) | Self::Allocations(_) => value < other,
            Self::Together(_) | Self::Scaling(_) => value > other,
        }
    }
}

/// Nanoseconds per call above the base of the row's group.
pub fn above_base(measured: &[Measured], row: &Measured, kind: Kind) -> Option<f64> {
    let raw = row.numbers(kind)?.ns();
    let Some(base) = row.group.base() else { return Some(raw) };
    let base_kind = if base == BARE_CALL { kind } else { Kind::Ready };
    Some(raw - find(measured, base)?.numbers(base_kind)?.ns())
}

fn value(measured: &[Measured], name: &str, column: Column) -> Option<f64> {
    let row = find(measured, name)?;
    match column {
        Column::Nanoseconds(kind) => above_base(measured, row, kind),
        Column::Allocations(kind) => row.numbers(kind).map(|numbers| numbers.allocations),
        Column::Together(kind) => Some(row.numbers(kind)?.mops_together()?.0),
        Column::Scaling(kind) => row.numbers(kind)?.scaling(),
    }
}

fn find<'a>(measured: &'a [Measured], name: &str) -> Option<&'a Measured> {
    measured.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Numbers;
    use crate::row::Group;

    fn row(group: Group, name: &str, ns: f64) -> Measured {
        let numbers = Numbers { rounds: vec![ns + 5.0, ns], allocations: 0.0, together: Vec::new() };
        Measured { group, name: name.to_owned(), ready: Some(numbers), suspending: None }
    }

    fn outcome(bound: Bound, peers: &[&str]) -> Result<(f64, bool, Option<String>), String> {
        let measured = [
            row(Group::Bare, BARE_CALL, 2.0),
            row(Group::BreakerCount, "ours", 6.0),
            row(Group::BreakerCount, "slow", 42.0),
            row(Group::BreakerCount, "fast", 18.0),
        ];
        let ratio = Ratio {
            what: "breaker",
            ours: "ours".to_owned(),
            peers: peers.iter().map(ToString::to_string).collect(),
            column: Column::Nanoseconds(Kind::Ready),
            bound,
        };
        match ratio.evaluate(&measured) {
            Outcome::Value { value, kept, against } => Ok((value, kept, against)),
            Outcome::Missing(name) => Err(name),
        }
    }

    #[test]
    fn compares_what_is_above_the_base_with_the_best_peer() {
        assert_eq!(outcome(Bound::AtMost(0.3), &["slow", "fast"]), Ok((0.25, true, Some("fast".to_owned()))));
        assert_eq!(
            outcome(Bound::AtMost(0.2), &["slow", "fast"]),
            Ok((0.25, false, Some("fast".to_owned())))
        );
    }

    #[test]
    fn without_peers_the_number_itself_is_the_target() {
        assert_eq!(outcome(Bound::AtLeast(4.0), &[]), Ok((4.0, true, None)));
    }

    #[test]
    fn a_row_that_was_not_measured_is_named() {
        assert_eq!(outcome(Bound::AtMost(1.0), &["fast", "absent"]), Err("absent".to_owned()));
    }
}
