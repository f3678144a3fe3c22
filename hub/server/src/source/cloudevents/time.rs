//! Times of RFC 3339.

use seawall_hub_core::domain::time::Millis;

/// `2026-01-31T12:00:00.5+02:00`: a day that exists, a time that a clock can show, an offset.
pub(crate) fn is_time(text: &str) -> bool {
    parse(text.as_bytes()).is_some()
}

/// The time that is meant, to the second.
pub(crate) fn time(text: &str) -> Option<Millis> {
    parse(text.as_bytes()).map(|seconds| Millis(seconds * 1_000))
}

/// Seconds since 1970.
fn parse(bytes: &[u8]) -> Option<i64> {
    let (date, rest) = bytes.split_at_checked(10)?;
    let (clock, rest) = rest.split_at_checked(9)?;
    let [y @ .., b'-', m1, m2, b'-', d1, d2] = date else { return None };
    let (year, month, day) = (number(y)?, number(&[*m1, *m2])?, number(&[*d1, *d2])?);
    if !(1..=12).contains(&month) || day == 0 || day > days(year, month) {
        return None;
    }
    let [b'T' | b't', h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let (hour, minute, second) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?, number(&[*s1, *s2])?);
    let offset = offset(fraction(rest)?)?;
    let minutes = i64::from(hour) * 60 + i64::from(minute);
    // A leap second comes before midnight in UTC, wherever the clock is.
    let is_leap = second == 60 && (minutes - offset).rem_euclid(24 * 60) == 24 * 60 - 1;
    let since = days_since_1970(year, month, day) * 86_400 + (minutes - offset) * 60 + i64::from(second);
    (hour < 24 && minute < 60 && (second < 60 || is_leap)).then_some(since)
}

/// Years are counted from March, so that the day that is sometimes missing comes last.
fn days_since_1970(year: u32, month: u32, day: u32) -> i64 {
    let (year, month) = (i64::from(year) - i64::from(month <= 2), i64::from((month + 9) % 12));
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leaps + (month * 153 + 2) / 5 + i64::from(day) - 1 - 719_468
}

/// What is after a fraction of a second, if there is one.
fn fraction(rest: &[u8]) -> Option<&[u8]> {
    let Some(digits) = rest.strip_prefix(b".") else { return Some(rest) };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (length > 0).then_some(&digits[length..])
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

    /// API-1: a time that was written by us, or by anybody else, is the time that it says.
    #[test]
    fn api_1_a_time_is_the_one_that_it_says() {
        for millis in [0, 951_782_400_000, 951_868_799_000, 4_107_542_400_000, 1_794_744_000_000, -1_000] {
            assert_eq!(time(&Millis(millis).to_string()), Some(Millis(millis)));
        }
        assert_eq!(time("2026-11-15T14:00:00+02:00"), time("2026-11-15T12:00:00Z"));
        assert_eq!(time("2026-02-29T14:00:00Z"), None);
    }
}
