//! Values as the JSON of protocol buffers writes them.

use std::time::Duration;

use seawall::fault::Grpc;
use serde_json::Value;

use super::fields::kind;

/// The longest duration of protocol buffers: ten thousand years.
const SECONDS_MAX: u64 = 315_576_000_000;

const DURATION: &str = "write seconds with at most nine decimals, such as `\"0.1s\"`";

/// `"1.5s"`. gRPC's own examples write `".1s"`, so the digits before the point may be missing.
pub(super) fn duration(value: &Value) -> Result<Duration, String> {
    let wrong = || format!("{} is not a duration; {DURATION}", kind(value));
    let text = value.as_str().and_then(|text| text.strip_suffix('s')).ok_or_else(wrong)?;
    if text.starts_with('-') {
        return Err(format!("{} is negative; {DURATION}", kind(value)));
    }
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + decimals.len() == 0 || decimals.len() > 9 || !is_number(whole) || !is_number(decimals) {
        return Err(wrong());
    }
    let seconds = if whole.is_empty() { Ok(0) } else { whole.parse::<u64>() };
    let seconds = seconds.ok().filter(|seconds| *seconds <= SECONDS_MAX).ok_or_else(wrong)?;
    let nanos = format!("{decimals:0<9}").parse().map_err(|_| wrong())?;
    Ok(Duration::new(seconds, nanos))
}

/// A duration of more than zero.
pub(super) fn positive_duration(value: &Value) -> Result<Duration, String> {
    match duration(value)? {
        Duration::ZERO => Err(format!("{} is no time at all; write more than zero", kind(value))),
        time => Ok(time),
    }
}

/// `maxAttempts`: two or more.
pub(super) fn attempts(value: &Value) -> Result<u32, String> {
    match whole(value) {
        Some(number @ 2..) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        _ => Err(format!("{} is not a number of attempts; write 2 or more", kind(value))),
    }
}

/// A number of more than zero.
pub(super) fn multiplier(value: &Value) -> Result<f64, String> {
    let number = value.as_f64().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("{} is not a multiplier; write a number of more than zero", kind(value)))
}

/// A number of bytes, which JSON of protocol buffers may write as text.
pub(super) fn bytes(value: &Value) -> Result<u64, String> {
    let number = whole(value).or_else(|| value.as_str()?.parse().ok());
    number.ok_or_else(|| format!("{} is not a number of bytes; write a whole number", kind(value)))
}

pub(super) fn truth(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("{} is neither `true` nor `false`", kind(value)))
}

pub(super) fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("{} is not text", kind(value)))
}

/// `maxTokens`: more than zero and at most 1000, in thousandths.
pub(super) fn tokens(value: &Value) -> Result<u32, String> {
    let tokens = milli(value).filter(|milli| (1..=1_000_000).contains(milli));
    tokens.ok_or_else(|| {
        format!("{} is not a number of tokens; write more than 0 and at most 1000", kind(value))
    })
}

/// `tokenRatio`: more than zero, in thousandths. Further decimals are cut off, as gRPC does.
pub(super) fn ratio(value: &Value) -> Result<u32, String> {
    let ratio = milli(value).filter(|milli| *milli > 0);
    ratio.ok_or_else(|| format!("{} is not a ratio; write 0.001 or more", kind(value)))
}

/// The number of a status code, from its number or its name in any case.
pub(super) fn code(value: &Value) -> Result<i32, String> {
    let named = |text: &str| Grpc::ALL.into_iter().find(|code| code.name().eq_ignore_ascii_case(text));
    let code = match value {
        Value::String(text) if text.eq_ignore_ascii_case("OK") => Some(0),
        Value::String(text) => named(text).map(|code| code as i32),
        number => {
            whole(number).and_then(|number| i32::try_from(number).ok()).filter(|code| (0..=16).contains(code))
        }
    };
    match code {
        Some(0) => Err("`OK` is a success; take it out".to_owned()),
        Some(code) => Ok(code),
        None => Err(format!(
            "{} is not a status code; write a name such as `\"UNAVAILABLE\"`, or a number from 1 to 16",
            kind(value)
        )),
    }
}

/// A whole number, also one that is written `3.0`.
fn whole(value: &Value) -> Option<u64> {
    let whole_float =
        |number: f64| (number >= 0.0 && number.fract() == 0.0 && number < 1e15).then_some(number as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(whole_float))
}

/// Thousandths, without what is smaller. The number is read from its text: 0.3 as a float is a little less than 300 of them.
fn milli(value: &Value) -> Option<u32> {
    let number = value.as_f64().filter(|number| (0.0..4e6).contains(number))?;
    let text = format!("{number}");
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let decimals = format!("{decimals:0<3}");
    format!("{whole}{}", decimals.get(..3)?).parse().ok()
}
