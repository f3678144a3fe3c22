//! Cron expressions: five fields, in UTC.

use std::fmt;

use crate::Millis;
use crate::time::date;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A day that an expression names comes within eight years, because that is the longest time without a 29 February.
const DAYS_MAX: i64 = 8 * 366 + 1;

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const SHORTHANDS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// One field: its name, its smallest and largest number, and names that stand for numbers.
struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", min: 0, max: 59, names: &[] },
    Field { name: "hour", min: 0, max: 23, names: &[] },
    Field { name: "day of month", min: 1, max: 31, names: &[] },
    Field { name: "month", min: 1, max: 12, names: &MONTHS },
    Field { name: "day of week", min: 0, max: 7, names: &WEEKDAYS },
];

/// A parsed expression: for each field the set of its numbers as bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Both days are restricted: one of them is enough, as cron has it.
    either_day: bool,
}

/// A schedule that can't be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleError {
    pub(super) reason: String,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for ScheduleError {}

impl Cron {
    pub(crate) fn parse(expression: &str) -> Result<Cron, ScheduleError> {
        let wrong = |reason: String| ScheduleError { reason: format!("`{expression}`: {reason}") };
        let trimmed = expression.trim();
        let text = if trimmed.starts_with('@') {
            let found = SHORTHANDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(trimmed));
            found.map(|(_, text)| *text).ok_or_else(|| {
                let known: Vec<&str> = SHORTHANDS.iter().map(|(name, _)| *name).collect();
                wrong(format!("unknown shorthand; known are {}", known.join(", ")))
            })?
        } else {
            trimmed
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let words: [&str; 5] = words.try_into().map_err(|words: Vec<&str>| {
            wrong(format!(
                "{} fields instead of five: minute, hour, day of month, month, day of week",
                words.len()
            ))
        })?;
        let mut sets = [0; 5];
        for ((set, word), field) in sets.iter_mut().zip(words).zip(&FIELDS) {
            *set = parse_field(word, field).map_err(|reason| wrong(format!("{}: {reason}", field.name)))?;
        }
        let [minutes, hours, days, months, weekdays] = sets;
        // Sunday is 0 and 7.
        let weekdays = (weekdays | (weekdays >> 7)) & 0x7f;
        let either_day = !words[2].starts_with('*') && !words[4].starts_with('*');
        let cron = Cron { minutes, hours, days, months, weekdays, either_day };
        let Some(_) = cron.next_after(Millis(0)) else {
            return Err(wrong("there is no such day: it never comes".to_owned()));
        };
        Ok(cron)
    }

    /// The first tick after this time.
    pub(crate) fn next_after(&self, after: Millis) -> Option<Millis> {
        let start = (after.0.div_euclid(MINUTE) + 1) * MINUTE;
        let (first_day, time) = (start.div_euclid(DAY), start.rem_euclid(DAY));
        let (first_hour, first_minute) = (time / HOUR, time % HOUR / MINUTE);
        for day in first_day..first_day + DAYS_MAX {
            if !self.has_day(day) {
                continue;
            }
            let from = if day == first_day { first_hour } else { 0 };
            for hour in (from..24).filter(|hour| has(self.hours, *hour)) {
                let from = if day == first_day && hour == first_hour { first_minute } else { 0 };
                if let Some(minute) = (from..60).find(|minute| has(self.minutes, *minute)) {
                    return Some(Millis(day * DAY + hour * HOUR + minute * MINUTE));
                }
            }
        }
        None
    }

    fn has_day(&self, day: i64) -> bool {
        let (_, month, day_of_month) = date(day);
        // 1 January 1970 was a Thursday.
        let weekday = (day + 4).rem_euclid(7);
        let (by_month, by_week) = (has(self.days, day_of_month), has(self.weekdays, weekday));
        has(self.months, month) && if self.either_day { by_month || by_week } else { by_month && by_week }
    }
}

fn has(set: u64, number: i64) -> bool {
    set >> number & 1 == 1
}

fn parse_field(word: &str, field: &Field) -> Result<u64, String> {
    let mut set = 0;
    for part in word.split(',') {
        let (range, step) = match part.split_once('/') {
            None => (part, None),
            Some((range, step)) => {
                let number = step.parse().ok().filter(|step| (1..=field.max).contains(step));
                (range, Some(number.ok_or_else(|| format!("`{step}` is no step: write 1 to {}", field.max))?))
            }
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (field.min, if field.name == "day of week" { 6 } else { field.max }),
            Some((from, to)) => (parse_number(from, field)?, parse_number(to, field)?),
            None => {
                let number = parse_number(range, field)?;
                // `5/15` means from 5 on, as most crons have it.
                (number, if step.is_some() { field.max } else { number })
            }
        };
        if from > to {
            return Err(format!("`{range}` runs backwards: write it as two ranges"));
        }
        for number in (from..=to).step_by(step.unwrap_or(1) as usize) {
            set |= 1 << number;
        }
    }
    Ok(set)
}

fn parse_number(text: &str, field: &Field) -> Result<u32, String> {
    if let Some(index) = field.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        return Ok(index as u32 + field.min);
    }
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && (field.min..=field.max).contains(number));
    number.ok_or_else(|| match field.names.first() {
        None => format!("`{text}` is not a number from {} to {}", field.min, field.max),
        Some(first) => format!(
            "`{text}` is neither a number from {} to {} nor a name like {first}",
            field.min, field.max
        ),
    })
}
