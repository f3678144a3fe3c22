//! Rows to domain and back.

use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Connection, Error, OptionalExtension, Row};
use seawall_hub_core::domain::delivery::{Count, DeliveryId, Progress, Reason, Schedule, State};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::Kept;
use serde_json::{Value, json};

pub(super) const LEASED: i64 = 0;
pub(super) const WAITING: i64 = 1;
pub(super) const DELIVERED: i64 = 2;
pub(super) const DEAD: i64 = 3;

/// A row that this program has not written.
pub(super) fn strange(column: usize, what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::FromSqlConversionFailure(column, Type::Text, what.into())
}

pub(super) fn slug(row: &Row<'_>, column: usize) -> rusqlite::Result<Slug> {
    Slug::new(row.get_ref(column)?.as_str()?).map_err(|error| strange(column, error))
}

pub(super) fn pairs_to_text(pairs: &[(String, String)]) -> String {
    Value::from(pairs.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>()).to_string()
}

pub(super) fn pairs(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<(String, String)>> {
    let text: Value =
        serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|error| strange(column, error))?;
    let pair = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
    let pairs = text.as_array().and_then(|pairs| pairs.iter().map(pair).collect());
    pairs.ok_or_else(|| strange(column, "no pairs of texts"))
}

pub(super) fn schedule_to_text(schedule: &Schedule) -> String {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let Schedule { attempts, age_max, base, cap, count } = *schedule;
    let (age, base, cap, all) = (millis(age_max), millis(base), millis(cap), count == Count::All);
    json!({"attempts": attempts, "age": age, "base": base, "cap": cap, "all": all}).to_string()
}

pub(super) fn schedule(row: &Row<'_>, column: usize) -> rusqlite::Result<Schedule> {
    let text: Value =
        serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|error| strange(column, error))?;
    let read = || {
        let time = |name: &str| text[name].as_u64().map(Duration::from_millis);
        Some(Schedule {
            attempts: u32::try_from(text["attempts"].as_u64()?).ok()?,
            age_max: time("age")?,
            base: time("base")?,
            cap: time("cap")?,
            count: if text["all"].as_bool()? { Count::All } else { Count::Answered },
        })
    };
    read().ok_or_else(|| strange(column, "no schedule"))
}

pub(super) fn reason_to_number(reason: Reason) -> i64 {
    match reason {
        Reason::Refused => 0,
        Reason::Gone => 1,
        Reason::Impossible => 2,
        Reason::Attempts => 3,
        Reason::Age => 4,
    }
}

fn reason(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Reason>> {
    Ok(Some(match row.get::<_, Option<i64>>(column)? {
        None => return Ok(None),
        Some(0) => Reason::Refused,
        Some(1) => Reason::Gone,
        Some(2) => Reason::Impossible,
        Some(3) => Reason::Attempts,
        Some(4) => Reason::Age,
        Some(other) => return Err(strange(column, format!("{other} is no reason"))),
    }))
}

/// A delivery, if it is there.
pub(super) fn kept(connection: &Connection, id: DeliveryId) -> rusqlite::Result<Option<Kept>> {
    let mut statement = connection.prepare_cached(
        "SELECT e.id, d.rule, d.rule_version, d.service, d.state, d.due, d.accepted, d.counted, d.failures, r.request, d.reason
         FROM deliveries d JOIN events e ON e.number = d.event JOIN requests r ON r.delivery = d.number
         WHERE d.number = ?1",
    )?;
    let kept = |row: &Row<'_>| {
        Ok(Kept {
            id,
            event: row.get(0)?,
            rule: (slug(row, 1)?, row.get::<_, i64>(2)?.cast_unsigned()),
            service: slug(row, 3)?,
            state: match row.get(4)? {
                LEASED => State::Leased,
                WAITING => State::Waiting,
                DELIVERED => State::Delivered,
                DEAD => State::DeadLettered,
                other => return Err(strange(4, format!("{other} is no state"))),
            },
            reason: reason(row, 10)?,
            due: Millis(row.get(5)?),
            progress: Progress { accepted: Millis(row.get(6)?), counted: row.get(7)?, failures: row.get(8)? },
            request: row.get(9)?,
        })
    };
    statement.query_row([id.number.cast_signed()], kept).optional()
}
