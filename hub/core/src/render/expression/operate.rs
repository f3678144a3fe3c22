//! The operators of expressions.

use super::compare::{equal, order};
use super::fault::Fault;
use super::meter::Meter;
use super::show::{TextBuilder, show};
use super::value::{EvalResult, ListValue, VALUE_BYTES, Val};

/// An operator with two sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    DivideWhole,
    Remainder,
    Power,
    Join,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

impl Operator {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::DivideWhole => "//",
            Operator::Remainder => "%",
            Operator::Power => "**",
            Operator::Join => "~",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::In => "in",
            Operator::NotIn => "not in",
        }
    }

    /// What it makes of two values.
    pub(super) fn apply<'e>(self, one: &Val<'e>, other: &Val<'e>, meter: &Meter) -> EvalResult<Val<'e>> {
        self.work(one, other, meter)
            .map_err(|fault| fault.by(self.sign(), || format!("{} and {}", one.size(), other.size())))
    }

    fn work<'e>(self, one: &Val<'e>, other: &Val<'e>, meter: &Meter) -> EvalResult<Val<'e>> {
        use std::cmp::Ordering::{Equal, Greater, Less};
        meter.spend(1)?;
        let compared = || {
            one.defined()?;
            other.defined()?;
            order(one, other, meter)
        };
        Ok(Val::Bool(match self {
            Operator::Join => return join(one, other, meter),
            Operator::Add => return add(one, other, meter),
            Operator::Multiply => return multiply(one, other, meter),
            Operator::Subtract
            | Operator::Divide
            | Operator::DivideWhole
            | Operator::Remainder
            | Operator::Power => return self.calculate(one, other),
            Operator::Equal | Operator::NotEqual => {
                one.defined()?;
                other.defined()?;
                equal(one, other, meter)? == (self == Operator::Equal)
            }
            Operator::Less => compared()? == Less,
            Operator::LessOrEqual => compared()? != Greater,
            Operator::Greater => compared()? == Greater,
            Operator::GreaterOrEqual => matches!(compared()?, Equal | Greater),
            Operator::In | Operator::NotIn => {
                other.defined()?;
                one.defined()?;
                contains(other, one, meter)? == (self == Operator::In)
            }
        }))
    }

    fn calculate<'e>(self, one: &Val<'e>, other: &Val<'e>) -> EvalResult<Val<'e>> {
        match pair(one, other) {
            Some(Pair::Whole(a, b)) => self.whole(a, b),
            Some(Pair::Fraction(a, b)) => self.fraction(a, b),
            None => None,
        }
        .ok_or_else(|| self.impossible(one, other))
    }

    fn impossible(self, one: &Val<'_>, other: &Val<'_>) -> Fault {
        if pair(one, other).is_none() {
            let (sign, one, other) = (self.sign(), one.kind(), other.kind());
            return Fault::wrong(format!(
                "invalid operation: tried to use {sign} operator on unsupported types {one} and {other}"
            ));
        }
        let shown = |value: &Val<'_>| {
            let mut text = TextBuilder::default();
            let shown = show(value, &mut text, &Meter::default());
            shown.map_or_else(|_| "…".into(), |()| text.into_string())
        };
        let (one, other) = (shown(one), shown(other));
        Fault::wrong(format!("invalid operation: unable to calculate {one} {} {other}", self.sign()))
    }

    #[expect(clippy::cast_precision_loss, reason = "a quotient is a fraction, as everywhere")]
    fn whole<'e>(self, a: i128, b: i128) -> Option<Val<'e>> {
        Some(Val::Int(match self {
            Operator::Add => a.checked_add(b)?,
            Operator::Subtract => a.checked_sub(b)?,
            Operator::Multiply => a.checked_mul(b)?,
            Operator::Divide if b != 0 => return Some(Val::Float(a as f64 / b as f64)),
            Operator::DivideWhole if b != 0 => floor_whole(a, b)?.0,
            Operator::Remainder if b == -1 => 0,
            Operator::Remainder if b != 0 => floor_whole(a, b)?.1,
            Operator::Power if b < 0 && a != 0 => return Some(Val::Float((a as f64).powf(b as f64))),
            Operator::Power => a.checked_pow(u32::try_from(b).ok()?)?,
            _ => return None,
        }))
    }

    fn fraction<'e>(self, a: f64, b: f64) -> Option<Val<'e>> {
        Some(Val::Float(match self {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide if b != 0.0 => a / b,
            Operator::DivideWhole if b != 0.0 => floor_fraction(a, b).0,
            Operator::Remainder if b != 0.0 => floor_fraction(a, b).1,
            Operator::Power if a == 0.0 && b < 0.0 => return None,
            Operator::Power => a.powf(b),
            _ => return None,
        }))
    }
}

enum Pair {
    Whole(i128, i128),
    Fraction(f64, f64),
}

/// Two numbers of one kind.
#[expect(clippy::cast_precision_loss, reason = "a sum with a fraction is a fraction, as everywhere")]
fn pair(one: &Val<'_>, other: &Val<'_>) -> Option<Pair> {
    let whole = |value: &Val<'_>| match value {
        Val::Int(whole) => Some(*whole),
        Val::Bool(yes) => Some(i128::from(*yes)),
        _ => None,
    };
    match (one, other) {
        (Val::Float(a), Val::Float(b)) => Some(Pair::Fraction(*a, *b)),
        (Val::Float(a), b) => Some(Pair::Fraction(*a, whole(b)? as f64)),
        (a, Val::Float(b)) => Some(Pair::Fraction(whole(a)? as f64, *b)),
        (a, b) => Some(Pair::Whole(whole(a)?, whole(b)?)),
    }
}

fn floor_whole(a: i128, b: i128) -> Option<(i128, i128)> {
    let (quotient, remainder) = (a.checked_div(b)?, a.checked_rem(b)?);
    if remainder != 0 && (remainder < 0) != (b < 0) {
        Some((quotient.checked_sub(1)?, remainder.checked_add(b)?))
    } else {
        Some((quotient, remainder))
    }
}

/// Division that rounds down, as Python does it.
fn floor_fraction(a: f64, b: f64) -> (f64, f64) {
    let mut remainder = a % b;
    let mut quotient = (a - remainder) / b;
    if remainder == 0.0 {
        remainder = 0.0_f64.copysign(b);
    } else if (remainder < 0.0) != (b < 0.0) {
        remainder += b;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        quotient = 0.0_f64.copysign(a / b);
    } else {
        let floored = quotient.floor();
        quotient = if quotient - floored > 0.5 { floored + 1.0 } else { floored };
    }
    (quotient, remainder)
}

/// Negates a number.
pub(super) fn negate<'e>(value: &Val<'e>) -> EvalResult<Val<'e>> {
    match value {
        Val::Float(number) => Ok(Val::Float(-number)),
        Val::Int(whole) => {
            whole.checked_neg().map(Val::Int).ok_or_else(|| Fault::wrong("invalid operation: overflow"))
        }
        _ => Err(Fault::wrong(format!(
            "invalid operation: there is no minus of a value of type {}",
            value.kind()
        ))),
    }
}

fn join<'e>(one: &Val<'e>, other: &Val<'e>, meter: &Meter) -> EvalResult<Val<'e>> {
    one.defined()?;
    other.defined()?;
    let mut text = TextBuilder::default();
    show(one, &mut text, meter)?;
    show(other, &mut text, meter)?;
    Ok(text.into_value())
}

/// A sum of numbers, two texts or two lists one after the other.
pub(super) fn add<'e>(one: &Val<'e>, other: &Val<'e>, meter: &Meter) -> EvalResult<Val<'e>> {
    match (one, other) {
        (Val::Text(_), Val::Text(_)) => join(one, other, meter),
        (Val::List(one), Val::List(other)) => {
            let length = one.len() + other.len();
            meter.spend(length)?;
            meter.hold(length * VALUE_BYTES)?;
            let mut items = Vec::with_capacity(length);
            items.extend(one.iter().chain(other.iter()));
            Ok(Val::list(items))
        }
        _ => Operator::Add.calculate(one, other),
    }
}

/// A product of numbers, or a text or a list several times.
fn multiply<'e>(one: &Val<'e>, other: &Val<'e>, meter: &Meter) -> EvalResult<Val<'e>> {
    let times = |number: &Val<'_>, what: &str| {
        let times = number.as_int().and_then(|times| usize::try_from(times).ok());
        times.ok_or_else(|| {
            Fault::wrong(format!("invalid operation: {what} can only be multiplied with integers"))
        })
    };
    match (one, other) {
        (Val::Text(text), number) | (number, Val::Text(text)) => {
            let (text, times) = (text.as_str(), times(number, "strings")?);
            let bytes = text.len().saturating_mul(times);
            meter.copy(bytes)?;
            meter.spend(if text.len() < 64 { times.min(bytes) / 8 } else { 0 })?;
            meter.hold(bytes)?;
            Ok(Val::made(text.repeat(if text.is_empty() { 0 } else { times })))
        }
        (Val::List(items), number) | (number, Val::List(items)) => {
            let times = times(number, "sequences and iterables")?;
            let length = items.len().saturating_mul(times);
            meter.spend(length)?;
            meter.hold(length.saturating_mul(VALUE_BYTES))?;
            let mut many = Vec::with_capacity(length);
            for _ in 0..if items.len() == 0 { 0 } else { times } {
                many.extend(items.iter());
            }
            Ok(Val::list(many))
        }
        _ => Operator::Multiply.calculate(one, other),
    }
}

/// Whether a value is in another: a part of a text, an item of a list, a key of an object.
pub(super) fn contains(container: &Val<'_>, value: &Val<'_>, meter: &Meter) -> EvalResult<bool> {
    match container {
        Val::Undefined { .. } => Ok(false),
        Val::Text(text) => {
            let mut shown = TextBuilder::default();
            let part = match value {
                Val::Text(part) => part.as_str(),
                other => {
                    show(other, &mut shown, meter)?;
                    shown.as_str()
                }
            };
            meter.read(text.as_str().len() + part.len())?;
            Ok(text.as_str().contains(part))
        }
        Val::List(items) => is_item(items, value, meter),
        Val::Map(fields) => fields.has(value, meter),
        _ => Err(Fault::wrong("invalid operation: cannot perform a containment check on this value")),
    }
}

fn is_item(items: &ListValue<'_>, value: &Val<'_>, meter: &Meter) -> EvalResult<bool> {
    for item in items.iter() {
        if equal(&item, value, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}
