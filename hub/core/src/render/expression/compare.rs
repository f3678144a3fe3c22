//! Comparing and ordering values. Each comparison pays for what it looks at.

use std::cmp::Ordering;

use super::meter::Meter;
use super::value::{EvalResult, ListValue, Map, Val};

/// Whether two values are equal. Numbers are compared by what they are worth, and a truth value is worth 0 or 1.
pub(super) fn equal(one: &Val<'_>, other: &Val<'_>, meter: &Meter) -> EvalResult<bool> {
    meter.spend(1)?;
    Ok(match (one, other) {
        (Val::None, Val::None) | (Val::Undefined { .. }, Val::Undefined { .. }) => true,
        (Val::Text(one), Val::Text(other)) => {
            let (one, other) = (one.as_str(), other.as_str());
            if one.len() != other.len() {
                return Ok(false);
            }
            meter.copy(one.len())?;
            one == other
        }
        (Val::List(one), Val::List(other)) => return equal_lists(one, other, meter),
        (Val::Map(one), Val::Map(other)) => return equal_maps(one, other, meter),
        (Val::Float(one), other) | (other, Val::Float(one)) =>
        {
            #[expect(clippy::float_cmp, reason = "equal is what is asked")]
            exact_float(other).is_some_and(|other| *one == other)
        }
        (Val::Int(_) | Val::Bool(_), Val::Int(_) | Val::Bool(_)) => one.as_int() == other.as_int(),
        _ => false,
    })
}

fn equal_lists(one: &ListValue<'_>, other: &ListValue<'_>, meter: &Meter) -> EvalResult<bool> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for (one, other) in one.iter().zip(other.iter()) {
        if !equal(&one, &other, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Both are sorted by their keys.
fn equal_maps(one: &Map<'_>, other: &Map<'_>, meter: &Meter) -> EvalResult<bool> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for ((key, value), (other_key, other)) in one.pairs().zip(other.pairs()) {
        if order(&key, &other_key, meter)? != Ordering::Equal || !equal(&value, &other, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The order of two values: by their kinds, and within a kind by what they are.
pub(super) fn order(one: &Val<'_>, other: &Val<'_>, meter: &Meter) -> EvalResult<Ordering> {
    meter.spend(1)?;
    Ok(match (one, other) {
        (Val::Bool(one), Val::Bool(other)) => one.cmp(other),
        (Val::Int(one), Val::Int(other)) => one.cmp(other),
        (Val::Float(one), Val::Float(other)) => floats(*one, *other),
        (Val::Float(one), Val::Int(other)) => float_to_int(*one, *other),
        (Val::Int(one), Val::Float(other)) => float_to_int(*other, *one).reverse(),
        (Val::Text(one), Val::Text(other)) => {
            let (one, other) = (one.as_str(), other.as_str());
            meter.copy(one.len().min(other.len()))?;
            one.cmp(other)
        }
        (Val::List(one), Val::List(other)) => {
            for (one, other) in one.iter().zip(other.iter()) {
                let ordering = order(&one, &other, meter)?;
                if ordering != Ordering::Equal {
                    return Ok(ordering);
                }
            }
            one.len().cmp(&other.len())
        }
        (Val::Map(one), Val::Map(other)) => {
            for ((key, value), (other_key, other)) in one.pairs().zip(other.pairs()) {
                let ordering = match order(&key, &other_key, meter)? {
                    Ordering::Equal => order(&value, &other, meter)?,
                    ordering => ordering,
                };
                if ordering != Ordering::Equal {
                    return Ok(ordering);
                }
            }
            one.len().cmp(&other.len())
        }
        (one, other) => rank(one).cmp(&rank(other)),
    })
}

/// The place of texts among the kinds.
pub(super) const TEXT_RANK: u8 = 4;

/// The place of a kind among the kinds.
pub(super) fn rank(value: &Val<'_>) -> u8 {
    match value {
        Val::Undefined { .. } => 0,
        Val::None => 1,
        Val::Bool(_) => 2,
        Val::Int(_) | Val::Float(_) => 3,
        Val::Text(_) => TEXT_RANK,
        Val::List(_) => 5,
        Val::Map(_) => 6,
    }
}

/// A number as a fraction, if it is one without loss.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "the loss is looked for")]
fn exact_float(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Bool(yes) => Some(f64::from(u8::from(*yes))),
        Val::Int(whole) => Some(*whole as f64).filter(|float| *float as i128 == *whole),
        Val::Float(number) => Some(*number),
        _ => None,
    }
}

#[expect(clippy::float_cmp, reason = "zero and minus zero are equal, and what is no number has a place")]
fn floats(one: f64, other: f64) -> Ordering {
    if one == other { Ordering::Equal } else { one.total_cmp(&other) }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "what is lost is compared next"
)]
fn float_to_int(float: f64, whole: i128) -> Ordering {
    match floats(float, whole as f64) {
        Ordering::Equal if float >= i128::MAX as f64 => Ordering::Greater,
        Ordering::Equal if float.is_finite() => (float.trunc() as i128).cmp(&whole),
        ordering => ordering,
    }
}

/// Sorts by keys. Equal ones keep their order.
///
/// The library's sort can't be stopped halfway, and panics over keys without a total order.
pub(super) fn sort(
    length: usize,
    meter: &Meter,
    compare: impl Fn(usize, usize) -> EvalResult<Ordering>,
) -> EvalResult<Vec<usize>> {
    meter.hold(2 * length * size_of::<usize>())?;
    meter.spend(1 + length)?;
    let (mut from, mut to): (Vec<usize>, Vec<usize>) = ((0..length).collect(), Vec::with_capacity(length));
    let mut run = 1;
    while run < length {
        to.clear();
        for start in (0..length).step_by(2 * run) {
            let (middle, end) = ((start + run).min(length), (start + 2 * run).min(length));
            let (mut left, mut right) = (start, middle);
            while left < middle && right < end {
                let first = compare(from[left], from[right])? != Ordering::Greater;
                let at = if first { &mut left } else { &mut right };
                to.push(from[*at]);
                *at += 1;
            }
            to.extend_from_slice(&from[left..middle]);
            to.extend_from_slice(&from[right..end]);
        }
        std::mem::swap(&mut from, &mut to);
        run *= 2;
    }
    Ok(from)
}
