//! Times of RFC 3339.

use seawall_hub_core::domain::time::Millis;

/// `2026-01-31T12:00:00.5+02:00`: a day that exists, a time that a clock can show, an offset.
pub(crate) fn is_time(text: &str) -> bool {
    moment(text).is_some()
}

/// The same as a point in time. What is smaller than a millisecond is cut off.
pub(crate) fn moment(text: &str) -> Option<Millis> {
    parse(text.as_bytes())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-6: a time is the point that it stands for, in whatever zone it is written, and what the hub writes comes back.
    #[test]
    fn hub_6_a_time_is_a_point_in_time() {
        let millis = |text| moment(text).map(|moment| moment.0);
        assert_eq!(millis("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(millis("1970-01-01T01:30:00.25+01:30"), Some(250));
        assert_eq!(millis("1969-12-31T23:59:59.9999-00:00"), Some(-1));
        assert_eq!(millis("2000-03-01T00:00:00Z"), Some(951_868_800_000));
        assert_eq!(millis("2026-11-15"), None);
        for point in [0, 1, 86_399_999, 951_782_400_000, 1_794_000_000_123, -62_135_596_800_000] {
            assert_eq!(moment(&Millis(point).to_string()), Some(Millis(point)), "{}", Millis(point));
        }
    }
}
