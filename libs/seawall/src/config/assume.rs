//! What a setting whose value can't be read may have been meant to be.
//!
//! A mistake that may follow from such a setting is not worth a report; one that is there whatever was meant is. So a guard
//! with unreadable settings is checked three times: without them, with small values and with large ones. What is wrong each
//! time is reported.

use std::time::Duration;

use super::schema::{Kind, Section};
use super::value::Value;
use crate::fault::StatusSet;

/// What stands in for values that can't be read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Assumed {
    /// The setting is not there.
    Absent,
    Small,
    Large,
}

impl Assumed {
    pub(super) const ALL: [Assumed; 3] = [Assumed::Absent, Assumed::Small, Assumed::Large];

    /// The index of its guesses, where there are any.
    pub(super) fn index(self) -> Option<usize> {
        match self {
            Assumed::Absent => None,
            Assumed::Small => Some(0),
            Assumed::Large => Some(1),
        }
    }
}

/// More than any count that makes sense, and small enough to be tried out.
const COUNT: u32 = 100_000;
const SMALL: Duration = Duration::from_millis(1);
const LARGE: Duration = Duration::from_secs(365 * 86_400);

pub(super) const TIMES: [Value; 2] = [Value::Time(SMALL), Value::Time(LARGE)];
pub(super) const SHARES: [Value; 2] = [Value::Share(1.0), Value::Share(100.0)];
pub(super) const COUNTS: [Value; 2] = [Value::Count(1), Value::Count(COUNT)];
pub(super) const NUMBERS: [Value; 2] = [Value::Number(1.0), Value::Number(1_000.0)];
pub(super) const SWITCHES: [Value; 2] = [Value::Switch(false), Value::Switch(true)];

pub(super) fn words(words: &[&'static str]) -> Option<[Value; 2]> {
    Some([Value::Word(words.first()?), Value::Word(words.last()?)])
}

/// A small and a large value of a kind, if it has any.
pub(super) fn guesses(kind: Kind) -> Option<[Value; 2]> {
    Some(match kind {
        Kind::Section(Section::Part) | Kind::Bases | Kind::Names => return None,
        Kind::Section(_) => [Value::Off, Value::On],
        Kind::Time => TIMES,
        Kind::TimeOrNone => [Value::Time(SMALL), Value::None],
        Kind::Share => SHARES,
        Kind::Count => COUNTS,
        Kind::Number => NUMBERS,
        Kind::Switch => SWITCHES,
        Kind::Word(known) => return words(known),
        Kind::Words(known) => {
            [Value::Words(known.first().into_iter().copied().collect()), Value::Words(known.to_vec())]
        }
        Kind::Statuses => [Value::Statuses(StatusSet::none()), "100-599".parse().map(Value::Statuses).ok()?],
    })
}
