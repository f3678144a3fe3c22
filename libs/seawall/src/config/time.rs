//! Durations: `30s`, `1m30s`, `1.5h`.

use std::time::Duration;

use super::tree::shortened;
use super::value::{Wrong, plain_number};

/// What a number without a unit means.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Bare {
    Refused,
    Millis,
    Seconds,
}

/// Longer than this is a slip of the hand.
const TIME_MAX: Duration = Duration::from_secs(366 * 86_400);

const UNITS: &str = "write a number and a unit: ns, us, ms, s, m, h or d, like `30s` or `1m30s`";

/// Reads a duration as it is written in a configuration: `30s`, `1m30s`, `1.5 h`. A wrong one says what to write instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    read(text, Bare::Refused).map_err(|Wrong { reason, remedy }| format!("{reason}; {remedy}"))
}

/// `30s`, `1m30s`, `1.5 h`.
pub(super) fn read(text: &str, bare: Bare) -> Result<Duration, Wrong> {
    let shown = shortened(text);
    if text.starts_with('-') {
        return Err(Wrong::new(format!("`{shown}` is negative"), "write zero or more"));
    }
    if let Some(number) = plain_number(text) {
        let unit = match bare {
            Bare::Millis => 1e6,
            Bare::Seconds => 1e9,
            Bare::Refused => {
                let remedy = format!("write `{shown}s` or `{shown}ms`");
                return Err(Wrong::new("a duration needs a unit", remedy));
            }
        };
        return bounded(number * unit, &shown);
    }
    let (mut rest, mut nanos) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let tail = tail.trim_start();
        let letters = tail.find(|c: char| !c.is_alphabetic()).unwrap_or(tail.len());
        let (unit, next) = tail.split_at(letters);
        let Some(number) = plain_number(number) else {
            return Err(Wrong::new(format!("`{shown}` is not a duration"), UNITS));
        };
        let Some(unit) = nanos_of(unit) else { return Err(no_unit(unit, text)) };
        nanos += number * unit;
        rest = next.trim_start();
    }
    if text.is_empty() { Err(Wrong::new("a duration is missing", UNITS)) } else { bounded(nanos, &shown) }
}

/// What to say about a unit that there is not, with what was probably meant.
fn no_unit(unit: &str, text: &str) -> Wrong {
    let meant = match unit.to_lowercase().as_str() {
        "" => return Wrong::new(format!("`{}` ends without a unit", shortened(text)), UNITS),
        "nanosecond" | "nanoseconds" | "nanos" | "nsec" => Some("ns"),
        "microsecond" | "microseconds" | "micros" | "usec" => Some("us"),
        "millisecond" | "milliseconds" | "millis" | "msec" | "ms" => Some("ms"),
        "second" | "seconds" | "sec" | "secs" | "s" => Some("s"),
        "minute" | "minutes" | "min" | "mins" => Some("m"),
        "hour" | "hours" | "hr" | "hrs" | "h" => Some("h"),
        "day" | "days" | "d" => Some("d"),
        _ => None,
    };
    let remedy = match meant {
        Some(meant) => format!("write `{}`", shortened(&text.replace(unit, meant).replace(' ', ""))),
        None => UNITS.into(),
    };
    Wrong::new(format!("`{}` is not a unit of time", shortened(unit)), remedy)
}

fn nanos_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3_600e9,
        "d" => 86_400e9,
        _ => return None,
    })
}

/// In whole nanoseconds: what `1.1s` says is not what a float says.
pub(super) fn bounded(nanos: f64, shown: &str) -> Result<Duration, Wrong> {
    if nanos <= TIME_MAX.as_nanos() as f64 {
        return Ok(Duration::from_nanos(nanos.round() as u64));
    }
    Err(Wrong::new(format!("`{shown}` is longer than a year"), "write a shorter time"))
}

/// The shortest exact way to write it: `90s`, `1500ms`, `10m`.
pub(super) fn written(time: Duration) -> String {
    const BY_SIZE: [(u128, &str); 7] = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let nanos = time.as_nanos();
    if nanos == 0 {
        return "0s".into();
    }
    // A minute and two minutes are written `60s` and `120s`, as people do; ten minutes are `10m`.
    let fits = |unit: u128| nanos.is_multiple_of(unit) && (nanos / unit >= 5 || unit <= 1_000_000_000);
    let (unit, name) = BY_SIZE.into_iter().find(|(unit, _)| fits(*unit)).unwrap_or((1, "ns"));
    format!("{}{name}", nanos / unit)
}
