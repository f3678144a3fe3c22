//! Rows to domain and back.

use std::sync::LazyLock;
use std::time::Duration;

use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Error, OptionalExtension, Row};
use seawall_dist::deadletter::{Answer, Attempt, SentRequest};
use seawall_hub_core::domain::delivery::{Count, DeliveryId, Progress, Reason, Schedule, State};
use seawall_hub_core::domain::letter::Standing;
use seawall_hub_core::domain::operation::Run;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::port::store::Kept;
use serde_json::{Value, json};

pub(super) const LEASED: i64 = 0;
pub(super) const QUEUED: i64 = 1;
pub(super) const WAITING: i64 = 2;
pub(super) const STALLED: i64 = 3;
pub(super) const BLOCKED: i64 = 4;
pub(super) const HELD: i64 = 5;
/// A dead letter that holds up those behind it in its order.
pub(super) const HOLDING: i64 = 6;
pub(super) const DELIVERED: i64 = 7;
pub(super) const DEAD: i64 = 8;

/// What a question must say to find the index of those that wait: SQLite does not see that `state = 2` says it already.
pub(super) const WAITING_INDEX: &str = "state > 0 AND state < 6";

pub(super) fn state_to_number(state: State) -> i64 {
    match state {
        State::Leased => LEASED,
        State::Queued => QUEUED,
        State::Waiting => WAITING,
        State::Stalled => STALLED,
        State::Blocked => BLOCKED,
        State::Held => HELD,
        State::Delivered => DELIVERED,
        State::DeadLettered => DEAD,
    }
}

pub(super) fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    Ok(match row.get(column)? {
        LEASED => State::Leased,
        QUEUED => State::Queued,
        WAITING => State::Waiting,
        STALLED => State::Stalled,
        BLOCKED => State::Blocked,
        HELD => State::Held,
        DELIVERED => State::Delivered,
        HOLDING | DEAD => State::DeadLettered,
        other => return Err(strange(column, format!("{other} is no state"))),
    })
}

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
    let text = json(row, column)?;
    pairs_of(&text).ok_or_else(|| strange(column, "no pairs of texts"))
}

fn pairs_of(json: &Value) -> Option<Vec<(String, String)>> {
    let pair = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
    json.as_array().and_then(|pairs| pairs.iter().map(pair).collect())
}

fn json(row: &Row<'_>, column: usize) -> rusqlite::Result<Value> {
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|error| strange(column, error))
}

pub(super) fn sent_to_text(sent: &SentRequest) -> String {
    let headers: Vec<Value> = sent.headers.iter().map(|(name, value)| json!([name, value])).collect();
    json!([sent.line, headers]).to_string()
}

/// What is remembered of a try; its columns from the first on.
pub(super) fn attempt(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    let sent = match row.get_ref(4)? {
        ValueRef::Null => None,
        _ => {
            let sent = json(row, 4)?;
            let line = sent[0].as_str().unwrap_or_default().to_owned();
            Some(SentRequest { line, headers: pairs_of(&sent[1]).unwrap_or_default() })
        }
    };
    let headers = if row.get_ref(5)? == ValueRef::Null { Vec::new() } else { pairs(row, 5)? };
    let status: Option<u16> = row.get(2)?;
    let body = row.get::<_, Option<Vec<u8>>>(6)?.unwrap_or_default();
    Ok(Attempt {
        at: Millis(row.get(0)?),
        took: Duration::from_micros(row.get::<_, i64>(1)?.cast_unsigned()),
        sent,
        error: row.get(3)?,
        answer: status.map(|status| Answer { status, headers, body }),
    })
}

pub(super) fn schedule_to_text(schedule: &Schedule) -> String {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let Schedule { attempts, age_max, base, cap, count } = *schedule;
    let (age, base, cap, all) = (millis(age_max), millis(base), millis(cap), count == Count::All);
    json!({"attempts": attempts, "age": age, "base": base, "cap": cap, "all": all}).to_string()
}

pub(super) fn schedule(row: &Row<'_>, column: usize) -> rusqlite::Result<Schedule> {
    let text = json(row, column)?;
    let read = || {
        let time = |name: &str| text[name].as_u64().map(Duration::from_millis);
        Some(Schedule {
            attempts: text["attempts"].as_u64().and_then(|attempts| u32::try_from(attempts).ok()),
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
        Reason::Deleted => 5,
        Reason::Poison => 6,
    }
}

pub(super) fn reason(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Reason>> {
    let Some(number) = row.get::<_, Option<i64>>(column)? else { return Ok(None) };
    let reason = Reason::ALL.into_iter().find(|reason| reason_to_number(*reason) == number);
    reason.map(Some).ok_or_else(|| strange(column, format!("{number} is no reason")))
}

pub(super) const fn standing_to_number(standing: Standing) -> i64 {
    standing as i64
}

pub(super) fn standing(row: &Row<'_>, column: usize) -> rusqlite::Result<Standing> {
    let number = usize::from(row.get::<_, u8>(column)?);
    let standing = Standing::ALL.get(number).copied();
    standing.ok_or_else(|| strange(column, format!("{number} is no place on the desk")))
}

pub(super) const fn run_to_number(run: Run) -> i64 {
    run as i64
}

pub(super) fn run(row: &Row<'_>, column: usize) -> rusqlite::Result<Run> {
    let number = usize::from(row.get::<_, u8>(column)?);
    let run = Run::ALL.get(number).copied();
    run.ok_or_else(|| strange(column, format!("{number} is no state of an operation")))
}

/// The columns of a delivery, but for its request; `e` is its event.
pub(super) const KEPT: &str = "d.number, e.id, e.accepted, d.rule, d.rule_version, d.service, d.state, d.due, d.accepted, \
                               d.counted, d.failures, d.reason, d.ordering, d.replay_of, e.trace, e.source, d.panics, \
                               d.crashes > 0, d.against > 0";
/// Its request, and the event if that is its body.
pub(super) const REQUEST: &str = "r.request, CASE WHEN substr(r.request, 1, 1) = x'01' THEN e.payload END";
/// So many columns has `KEPT`.
pub(super) const KEPT_COLUMNS: usize = 19;

/// `request` is the column of its request, with that of the event's payload behind it, if they were asked for.
pub(super) fn kept_row(row: &Row<'_>, era: u64, request: Option<usize>) -> rusqlite::Result<Kept> {
    let name = |number: i64| DeliveryId { era, number: number.cast_unsigned() };
    Ok(Kept {
        id: name(row.get(0)?),
        event: row.get(1)?,
        source: row.get(15)?,
        event_accepted: Millis(row.get(2)?),
        trace: row.get_ref(14)?.as_str_or_null()?.and_then(TraceId::of),
        rule: (slug(row, 3)?, row.get::<_, i64>(4)?.cast_unsigned()),
        service: slug(row, 5)?,
        state: state(row, 6)?,
        reason: reason(row, 11)?,
        due: Millis(row.get(7)?),
        progress: Progress {
            accepted: Millis(row.get(8)?),
            counted: row.get(9)?,
            failures: row.get(10)?,
            panics: row.get(16)?,
        },
        order: row.get(12)?,
        suspected: row.get(17)?,
        accused: row.get(18)?,
        replay_of: row.get::<_, Option<i64>>(13)?.map(name),
        request: request.map(|column| row.get(column)).transpose()?.unwrap_or_default(),
        payload: request
            .map(|column| row.get::<_, Option<Vec<u8>>>(column + 1))
            .transpose()?
            .flatten()
            .unwrap_or_default()
            .into(),
    })
}

/// A delivery with its request, if it is there.
pub(super) fn kept(connection: &Connection, id: DeliveryId) -> rusqlite::Result<Option<Kept>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {KEPT}, {REQUEST} FROM deliveries d JOIN events e ON e.number = d.event
             JOIN requests r ON r.delivery = d.number WHERE d.number = ?1"
        )
    });
    let mut statement = connection.prepare_cached(&SQL)?;
    let kept = |row: &Row<'_>| kept_row(row, id.era, Some(KEPT_COLUMNS));
    statement.query_row([id.number.cast_signed()], kept).optional()
}
