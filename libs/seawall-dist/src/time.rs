//! Points in time that outlive a process.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// Milliseconds since 1970, by the wall clock: what processes have in common, and what is stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Millis(pub i64);

impl Millis {
    /// Reads a time of RFC 3339, such as `2026-01-31T12:00:00.5+02:00`: a day that exists, a time that a clock can show and an
    /// offset. What is smaller than a millisecond is cut off.
    #[must_use]
    pub fn from_rfc3339(text: &str) -> Option<Millis> {
        parse(text.as_bytes())
    }

    /// How long after `earlier`; zero if it is not.
    #[must_use]
    pub fn since(self, earlier: Millis) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Millis {
    type Output = Millis;

    fn add(self, duration: Duration) -> Millis {
        Millis(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// As RFC 3339 in UTC: `2026-11-15T12:00:00.250Z`.
impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, rest) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        let (year, month, day) = date(days);
        let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
        let (second, milli) = (rest / 1_000 % 60, rest % 1_000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

fn parse(bytes: &[u8]) -> Option<Millis> {
    let (date, rest) = bytes.split_at_checked(10)?;
    let (clock, rest) = rest.split_at_checked(9)?;
    let [y @ .., b'-', m1, m2, b'-', d1, d2] = date else { return None };
    let (year, month, day) = (number(y)?, number(&[*m1, *m2])?, number(&[*d1, *d2])?);
    if !(1..=12).contains(&month) || day == 0 || day > days(year, month) {
        return None;
    }
    let [b'T' | b't', h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let (hour, minute, second) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?, number(&[*s1, *s2])?);
    let (millis, rest) = fraction(rest)?;
    let offset = offset(rest)?;
    let minutes = i64::from(hour) * 60 + i64::from(minute);
    // A leap second comes before midnight in UTC, wherever the clock is.
    let is_leap = second == 60 && (minutes - offset).rem_euclid(24 * 60) == 24 * 60 - 1;
    let seconds = (days_since_1970(year, month, day) * 24 * 60 + minutes - offset) * 60 + i64::from(second);
    (hour < 24 && minute < 60 && (second < 60 || is_leap)).then_some(Millis(seconds * 1_000 + millis))
}

/// The milliseconds of a fraction of a second, if there is one, and what is after it.
fn fraction(rest: &[u8]) -> Option<(i64, &[u8])> {
    let Some(digits) = rest.strip_prefix(b".") else { return Some((0, rest)) };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let places = [100, 10, 1].iter().zip(&digits[..length]);
    let millis = places.map(|(place, digit)| place * i64::from(digit - b'0')).sum();
    (length > 0).then_some((millis, &digits[length..]))
}

fn days_since_1970(year: u32, month: u32, day: u32) -> i64 {
    let before = |year: u32| {
        let year = i64::from(year) - 1;
        year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400)
    };
    let months: u32 = (1..month).map(|month| days(year, month)).sum();
    before(year) - before(1970) + i64::from(months + day) - 1
}

/// Minutes ahead of UTC.
fn offset(rest: &[u8]) -> Option<i64> {
    let (sign, h, m) = match rest {
        b"Z" | b"z" => return Some(0),
        [b'+', h1, h2, b':', m1, m2] => (1, number(&[*h1, *h2])?, number(&[*m1, *m2])?),
        [b'-', h1, h2, b':', m1, m2] => (-1, number(&[*h1, *h2])?, number(&[*m1, *m2])?),
        _ => return None,
    };
    (h < 24 && m < 60).then_some(sign * (i64::from(h) * 60 + i64::from(m)))
}

fn number(digits: &[u8]) -> Option<u32> {
    digits
        .iter()
        .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + u32::from(byte - b'0')))
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The date of a day counted from 1970. Years are counted from March, so that the day that is sometimes missing comes last.
pub(crate) fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_IN_400_YEARS: i64 = 146_097;
    // From the first of March of the year 0.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(DAYS_IN_400_YEARS), days.rem_euclid(DAYS_IN_400_YEARS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_everybody_writes_them() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_794_744_000_250, "2026-11-15T12:00:00.250Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Millis(millis).to_string(), text);
        }
    }

    /// HUB-6: a time is the point that it stands for, in whatever zone it is written, and what the hub writes comes back.
    #[test]
    fn a_time_is_a_point_in_time() {
        let millis = |text| Millis::from_rfc3339(text).map(|point| point.0);
        assert_eq!(millis("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(millis("1970-01-01T01:30:00.25+01:30"), Some(250));
        assert_eq!(millis("1969-12-31T23:59:59.9999-00:00"), Some(-1));
        assert_eq!(millis("2000-03-01T00:00:00Z"), Some(951_868_800_000));
        assert_eq!(millis("2026-11-15"), None);
        for point in [0, 1, 86_399_999, 951_782_400_000, 1_794_000_000_123, -62_135_596_800_000] {
            assert_eq!(
                Millis::from_rfc3339(&Millis(point).to_string()),
                Some(Millis(point)),
                "{}",
                Millis(point)
            );
        }
    }
}
