//! Filters over numbers.

use super::super::fault::Fault;
use super::super::meter::Meter;
use super::super::value::{EvalResult, Val};
use super::FilterArguments;

/// Without its sign.
pub(super) fn abs<'e>(value: &Val<'e>) -> EvalResult<Val<'e>> {
    match value {
        Val::Float(number) => Ok(Val::Float(number.abs())),
        Val::Int(whole) => whole
            .checked_abs()
            .map(Val::Int)
            .ok_or_else(|| Fault::wrong("invalid operation: overflow on abs")),
        _ => Err(Fault::wrong("invalid operation: cannot get absolute value")),
    }
}

/// Digits after which a fraction has no more.
const DIGITS_MAX: i32 = 1074;
/// A step of ten above which there is no number.
const EXPONENT_MAX: i32 = 309;

/// Rounded: to the nearest with halves to the even number, up or down.
pub(super) fn round<'e>(
    value: &Val<'e>,
    given: &FilterArguments<'_, 'e>,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    let precision = given.whole(0, "precision")?.unwrap_or(0);
    let precision =
        i32::try_from(precision).map_err(|_| Fault::wrong("`precision` is too large a number"))?;
    let method = given.text(1, "method")?.unwrap_or("common");
    if !matches!(method, "common" | "ceil" | "floor") {
        return Err(Fault::wrong("invalid operation: method must be common, ceil or floor"));
    }
    // A fraction is rounded by writing its digits, of which there may be as many as its exponent.
    let digits = usize::try_from(precision.unsigned_abs().min(DIGITS_MAX.unsigned_abs())).unwrap_or(0);
    meter.spend(64 + digits)?;
    match value {
        Val::Int(whole) if precision >= 0 => Ok(Val::Int(*whole)),
        Val::Int(whole) => round_whole(*whole, precision, method).map(Val::Int),
        Val::Float(number) if method != "common" => {
            round_directed(*number, precision, method == "ceil").map(Val::Float)
        }
        Val::Float(number) if !number.is_finite() || precision > DIGITS_MAX => Ok(Val::Float(*number)),
        Val::Float(number) if precision >= 0 => {
            Ok(Val::Float(format!("{number:.digits$}").parse().unwrap_or(*number)))
        }
        Val::Float(number) => round_tens(*number, -precision).map(Val::Float),
        other => Err(Fault::wrong(format!("invalid operation: cannot round value ({})", other.kind()))),
    }
}

fn too_large() -> Fault {
    Fault::wrong("invalid operation: rounded value is too large to represent")
}

/// A fraction rounded to a multiple of a power of ten.
fn round_tens(number: f64, power: i32) -> EvalResult<f64> {
    let zero = 0.0_f64.copysign(number);
    if power >= EXPONENT_MAX || number == 0.0 {
        return Ok(zero);
    }
    let exponent =
        format!("{number:e}").split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    let parsed = |text: String| text.parse::<f64>().unwrap_or(zero);
    let rounded = match exponent.unwrap_or(0) - power {
        kept if kept < -1 => zero,
        // Nothing of it is kept, unless it is more than half of the step.
        -1 if number.abs() > parsed(format!("5e{}", power - 1)) => {
            parsed(format!("1e{power}")).copysign(number)
        }
        -1 => zero,
        kept => parsed(format!("{number:.*e}", usize::try_from(kept).unwrap_or(0))),
    };
    if rounded.is_infinite() { Err(too_large()) } else { Ok(rounded) }
}

fn round_directed(number: f64, precision: i32, up: bool) -> EvalResult<f64> {
    let factor = format!("1e{precision}").parse::<f64>().unwrap_or(1.0);
    let scaled = number * factor;
    if !scaled.is_finite() {
        return Ok(number);
    }
    let rounded = (if up { scaled.ceil() } else { scaled.floor() } + 0.0) / factor;
    if rounded.is_finite() { Ok(rounded) } else { Err(too_large()) }
}

fn round_whole(whole: i128, precision: i32, method: &str) -> EvalResult<i128> {
    let Some(factor) = 10_i128.checked_pow(precision.unsigned_abs()) else {
        return match method {
            "ceil" if whole > 0 => Err(too_large()),
            "floor" if whole < 0 => Err(too_large()),
            _ => Ok(0),
        };
    };
    let (quotient, remainder) = (whole.div_euclid(factor), whole.rem_euclid(factor));
    let up = match method {
        "ceil" => remainder > 0,
        "floor" => false,
        _ => remainder > factor - remainder || (remainder == factor - remainder && quotient % 2 != 0),
    };
    (quotient + i128::from(up)).checked_mul(factor).ok_or_else(too_large)
}

/// As a whole number.
#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
pub(super) fn int<'e>(
    value: &Val<'e>,
    given: &FilterArguments<'_, 'e>,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    value.defined()?;
    let default = given.get(0, "default");
    let base = given.whole(1, "base")?.unwrap_or(10);
    let made = match value {
        Val::Undefined { .. } | Val::None => return Ok(default.cloned().unwrap_or(Val::Int(0))),
        Val::Bool(yes) => return Ok(Val::Int(i128::from(*yes))),
        Val::Int(whole) => return Ok(Val::Int(*whole)),
        Val::Float(number) => return Ok(Val::Int(*number as i128)),
        Val::Text(text) => {
            let text = text.as_str();
            meter.spend(8 + text.len())?;
            match parse_int(text, base) {
                Some(whole) => Ok(Val::Int(whole)),
                None => match text.parse::<f64>() {
                    Ok(number) => Ok(Val::Int(number as i128)),
                    Err(error) => Err(format!("invalid operation: {error}")),
                },
            }
        }
        other => Err(format!("invalid operation: cannot convert {} to integer", other.kind())),
    };
    made.or_else(|reason| default.cloned().ok_or(Fault::Wrong(reason)))
}

fn parse_int(text: &str, base: i128) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        3..=36 => "",
        _ => return None,
    };
    let digits = match digits.get(..prefix.len()) {
        Some(start) if !prefix.is_empty() && start.eq_ignore_ascii_case(prefix) => &digits[prefix.len()..],
        _ => digits,
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let whole = i128::from_str_radix(digits, u32::try_from(base).ok()?).ok()?;
    if negative { whole.checked_neg() } else { Some(whole) }
}

/// As a fraction.
#[expect(clippy::cast_precision_loss, reason = "a fraction is what is asked for")]
pub(super) fn float<'e>(
    value: &Val<'e>,
    given: &FilterArguments<'_, 'e>,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    value.defined()?;
    let default = given.get(0, "default");
    let made = match value {
        Val::Undefined { .. } | Val::None => return Ok(default.cloned().unwrap_or(Val::Float(0.0))),
        Val::Bool(yes) => Ok(f64::from(u8::from(*yes))),
        Val::Int(whole) => Ok(*whole as f64),
        Val::Float(number) => Ok(*number),
        Val::Text(text) => {
            meter.spend(8 + text.as_str().len())?;
            text.as_str().parse::<f64>().map_err(|error| format!("invalid operation: {error}"))
        }
        other => Err(format!("invalid operation: cannot convert {} to float", other.kind())),
    };
    made.map(Val::Float).or_else(|reason| default.cloned().ok_or(Fault::Wrong(reason)))
}
