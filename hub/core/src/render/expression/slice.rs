//! Parts of texts and lists: `data.items[1:3]`.

use super::fault::Fault;
use super::meter::Meter;
use super::value::{EvalResult, VALUE_BYTES, Val};

/// A part of a text or a list, by where it starts, where it stops, and the step between its items.
pub(super) fn slice<'e>(value: &Val<'e>, bounds: &[Val<'e>; 3], meter: &Meter) -> EvalResult<Val<'e>> {
    value.defined()?;
    let [start, stop, step] = bounds;
    let (start, stop, step) = (bound(start)?, bound(stop)?, bound(step)?.unwrap_or(1));
    if step == 0 {
        return Err(Fault::wrong("invalid operation: cannot slice by step size of 0"));
    }
    match value {
        Val::Undefined { .. } | Val::None => Ok(Val::list(Vec::new())),
        Val::Text(text) => {
            let whole = text.as_str();
            meter.read(whole.len())?;
            // Each character is looked up by its place, so the places are listed first.
            let length = whole.chars().count();
            meter.spend(length)?;
            meter.hold(length * size_of::<char>() + whole.len())?;
            let chars: Vec<char> = whole.chars().collect();
            let part: String = places(start, stop, step, length).filter_map(|at| chars.get(at)).collect();
            Ok(Val::made(part))
        }
        Val::List(items) => {
            let places = places(start, stop, step, items.len());
            meter.spend(items.len())?;
            meter.hold(items.len() * VALUE_BYTES)?;
            Ok(Val::list(places.filter_map(|at| items.get(at)).collect()))
        }
        _ => Err(Fault::wrong(format!("invalid operation: value of type {} cannot be sliced", value.kind()))),
    }
}

fn bound(value: &Val<'_>) -> EvalResult<Option<i64>> {
    match value {
        Val::None => Ok(None),
        value => match value.as_int().and_then(|bound| i64::try_from(bound).ok()) {
            Some(bound) => Ok(Some(bound)),
            None => Err(Fault::wrong(format!("invalid operation: cannot convert {} to i64", value.kind()))),
        },
    }
}

/// The places of a part, all within the length.
fn places(start: Option<i64>, stop: Option<i64>, step: i64, length: usize) -> impl Iterator<Item = usize> {
    let stride = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
    let (forward, backward) = if step > 0 {
        let start = start.map_or(0, |start| from_end(start, length));
        let stop = stop.map_or(length, |stop| from_end(stop, length)).min(length);
        (Some((start..stop.max(start)).step_by(stride)), None)
    } else {
        (None, backwards(start, stop, stride, length))
    };
    forward.into_iter().flatten().chain(backward.into_iter().flatten())
}

/// From the last place down to the one after `stop`. A stop of 0 includes the first place, as it always has.
fn backwards(
    start: Option<i64>,
    stop: Option<i64>,
    stride: usize,
    length: usize,
) -> Option<impl Iterator<Item = usize>> {
    let last = length.checked_sub(1)?;
    let start = start.map_or(last, |start| from_end(start, length).min(last));
    let stop = stop.map_or(0, |stop| from_end(stop, length));
    let count = match stop {
        0 => start / stride + 1,
        stop => start.checked_sub(stop)?.div_ceil(stride),
    };
    Some((stop..=start).rev().step_by(stride).take(count))
}

/// A place that may be counted from the end.
fn from_end(place: i64, length: usize) -> usize {
    let distance = usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX);
    if place < 0 { length.saturating_sub(distance) } else { distance }
}
