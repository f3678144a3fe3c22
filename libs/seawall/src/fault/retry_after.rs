//! The wait that a peer asks for.

use std::time::{Duration, SystemTime};

/// Reads the value of a `Retry-After` header: whole seconds, or an HTTP date, which is compared with `now`.
///
/// A date that has passed is a wait of zero. What can't be read is `None`: the back-off decides then.
///
/// ```
/// # use std::time::{Duration, SystemTime};
/// # use seawall::fault::parse_retry_after;
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
/// assert_eq!(parse_retry_after("120", now), Some(Duration::from_secs(120)));
/// assert_eq!(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Duration::from_secs(7)));
/// assert_eq!(parse_retry_after("soon", now), None);
/// ```
#[must_use]
pub fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than a u64 holds is still "much later"; the cap decides.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

/// Reads gRPC's `grpc-retry-pushback-ms`: `Ok(wait)`, or `Err(())` where the server says not to retry, which
/// it also does by sending something that is no number.
///
/// ```
/// # use std::time::Duration;
/// # use seawall::fault::parse_pushback;
/// assert_eq!(parse_pushback("250"), Ok(Duration::from_millis(250)));
/// assert_eq!(parse_pushback("-1"), Err(()));
/// ```
#[expect(clippy::result_unit_err, reason = "there is nothing more to say than `do not`")]
pub fn parse_pushback(value: &str) -> Result<Duration, ()> {
    value.trim().parse().map(Duration::from_millis).map_err(|_| ())
}
