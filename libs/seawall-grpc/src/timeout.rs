//! The header `grpc-timeout`.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

const NAME: HeaderName = HeaderName::from_static("grpc-timeout");

/// The largest number of the header: it has at most eight digits.
const NUMBER_MAX: u128 = 99_999_999;

/// The time that the caller gives the call. A header that is no time is none, as tonic has it.
pub(crate) fn read(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(NAME)?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !(1..=8).contains(&number.len()) || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = number.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

/// Sets the header to the time that is left, in the finest unit that holds it, and rounded up: the server must not give up
/// before its client does.
pub(crate) fn write(headers: &mut HeaderMap, left: Duration) {
    const UNITS: [(u128, &str); 6] = [
        (1, "n"),
        (1_000, "u"),
        (1_000_000, "m"),
        (1_000_000_000, "S"),
        (60_000_000_000, "M"),
        (3_600_000_000_000, "H"),
    ];
    let fitting = UNITS.into_iter().map(|(nanos, unit)| (left.as_nanos().div_ceil(nanos), unit));
    let (number, unit) =
        fitting.clone().find(|(number, _)| *number <= NUMBER_MAX).unwrap_or((NUMBER_MAX, "H"));
    if let Ok(value) = HeaderValue::try_from(format!("{number}{unit}")) {
        headers.insert(NAME, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Duration> {
        read(&HeaderMap::from_iter([(NAME, HeaderValue::try_from(text).unwrap())]))
    }

    /// ADP-1: what is written has at most eight digits, and reads as the same time or a little more.
    #[test]
    fn adp_1_a_timeout_is_written_as_it_is_read() {
        for nanos in [0, 1, 99_999_999, 100_000_001, 1_500_000_000, 86_400_000_000_000, u64::MAX] {
            let left = Duration::from_nanos(nanos);
            let mut headers = HeaderMap::new();
            write(&mut headers, left);
            let text = headers[NAME].to_str().unwrap();
            let read = read(&headers).unwrap();
            assert!(text.len() <= 9 && read >= left && read <= left + left / 10_000, "{text}");
        }
    }

    #[test]
    fn adp_1_what_is_no_timeout_is_none() {
        assert_eq!(of("250m"), Some(Duration::from_millis(250)));
        assert_eq!(of("2H"), Some(Duration::from_secs(7_200)));
        for wrong in ["", "S", "1", "1s", "-1S", "+1S", "123456789S", "1.5S"] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
    }
}
