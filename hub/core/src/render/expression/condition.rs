//! Tests: what `is` and `is not` ask, and `select` with its like.

use std::cmp::Ordering;

use super::compare::{equal, order};
use super::fault::Fault;
use super::filters::text;
use super::meter::Meter;
use super::operate::contains;
use super::value::{EvalResult, Val};

/// A test, like `defined` in `x is defined`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Test {
    Defined,
    Undefined,
    None,
    String,
    Number,
    StartingWith,
    EndingWith,
    In,
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
}

/// All tests by their names.
pub(in crate::render) const TESTS: [&str; 14] = [
    "defined",
    "undefined",
    "none",
    "string",
    "number",
    "startingwith",
    "endingwith",
    "in",
    "eq",
    "ne",
    "gt",
    "ge",
    "lt",
    "le",
];

impl Test {
    const ALL: [Test; 14] = [
        Test::Defined,
        Test::Undefined,
        Test::None,
        Test::String,
        Test::Number,
        Test::StartingWith,
        Test::EndingWith,
        Test::In,
        Test::Eq,
        Test::Ne,
        Test::Gt,
        Test::Ge,
        Test::Lt,
        Test::Le,
    ];

    pub(super) fn named(name: &str) -> Result<Self, String> {
        let at = TESTS.iter().position(|known| *known == name);
        let test = at.and_then(|at| Test::ALL.get(at));
        test.copied().ok_or_else(|| format!("unknown test `{name}`. Known: {}", TESTS.join(", ")))
    }

    pub(super) fn name(self) -> &'static str {
        let at = Test::ALL.iter().position(|test| *test == self);
        at.map_or("is", |at| TESTS[at])
    }

    /// The number of its arguments.
    pub(super) fn arguments(self) -> usize {
        match self {
            Test::Defined | Test::Undefined | Test::None | Test::String | Test::Number => 0,
            _ => 1,
        }
    }

    /// Whether it holds for a value.
    pub(super) fn holds<'e>(self, value: &Val<'e>, placed: &[Val<'e>], meter: &Meter) -> EvalResult<bool> {
        if placed.len() != self.arguments() {
            let (name, needed) = (self.name(), self.arguments());
            return Err(Fault::wrong(format!(
                "the test `{name}` takes {needed} arguments, not {}",
                placed.len()
            )));
        }
        let other = placed.first().unwrap_or(&Val::UNDEFINED);
        self.work(value, other, meter).map_err(|fault| fault.by(self.name(), || other.size()))
    }

    fn work<'e>(self, value: &Val<'e>, other: &Val<'e>, meter: &Meter) -> EvalResult<bool> {
        meter.spend(1)?;
        Ok(match self {
            Test::Defined => !value.is_undefined(),
            Test::Undefined => value.is_undefined(),
            Test::None => matches!(value, Val::None),
            Test::String => matches!(value, Val::Text(_)),
            Test::Number => matches!(value, Val::Int(_) | Val::Float(_) | Val::Bool(_)),
            Test::StartingWith | Test::EndingWith => {
                let (value, other) = (text(value, meter)?, text(other, meter)?);
                meter.copy(other.as_str().len())?;
                match self {
                    Test::StartingWith => value.as_str().starts_with(other.as_str()),
                    _ => value.as_str().ends_with(other.as_str()),
                }
            }
            Test::In => {
                other.defined()?;
                match contains(other, value, meter) {
                    // What has no parts holds nothing.
                    Err(Fault::Wrong(_)) => false,
                    found => return found,
                }
            }
            Test::Eq => equal(value, other, meter)?,
            Test::Ne => !equal(value, other, meter)?,
            Test::Gt => order(value, other, meter)? == Ordering::Greater,
            Test::Ge => order(value, other, meter)? != Ordering::Less,
            Test::Lt => order(value, other, meter)? == Ordering::Less,
            Test::Le => order(value, other, meter)? != Ordering::Greater,
        })
    }
}
