//! Rows to domain and back.

use std::time::Duration;

use rusqlite::types::{Type, ValueRef};
use rusqlite::{Error, Row};
use seawall_dist::deadletter::{Answer, Attempt};
use seawall_hub_core::domain::delivery::suspects::Suspicion;
use seawall_hub_core::domain::delivery::{
    DeadLetterReason, DeliveryFacts, DeliveryId, DeliveryState, Progress, StoredState,
};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::port::store::StoredDelivery;

use crate::record::{self, StoredNumber, UnreadableValue};
use crate::sql::sql;

/// The condition that a query needs to use the index of waiting deliveries: SQLite does not see that `state = 2` implies it.
pub(crate) const WAITING_INDEX: &str = sql!(IS_WAITING);

/// Reads a value that has a number.
pub(crate) fn numbered<T: StoredNumber>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    T::from_number(row.get(column)?).map_err(|error| strange(column, error))
}

/// Reads a value from its text.
pub(crate) fn parsed<T>(
    row: &Row<'_>,
    column: usize,
    read: impl Fn(&str) -> Result<T, UnreadableValue>,
) -> rusqlite::Result<T> {
    read(row.get_ref(column)?.as_str()?).map_err(|error| strange(column, error))
}

pub(crate) fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<DeliveryState> {
    numbered(row, column).map(StoredState::shown)
}

/// The error for a row that this program has not written.
pub(crate) fn strange(column: usize, what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::FromSqlConversionFailure(column, Type::Text, what.into())
}

pub(crate) fn slug(row: &Row<'_>, column: usize) -> rusqlite::Result<Slug> {
    Slug::new(row.get_ref(column)?.as_str()?).map_err(|error| strange(column, error))
}

/// Reads an attempt from its columns, from the first on.
pub(crate) fn attempt(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    let is_null = |column| Ok::<_, Error>(row.get_ref(column)? == ValueRef::Null);
    let sent = if is_null(4)? { None } else { Some(parsed(row, 4, record::sent_from_text)?) };
    let headers = if is_null(5)? { Vec::new() } else { parsed(row, 5, record::headers_from_text)? };
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

pub(crate) fn reason(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<DeadLetterReason>> {
    if row.get_ref(column)? == ValueRef::Null { Ok(None) } else { numbered(row, column).map(Some) }
}

/// The columns of a delivery, without its request; `e` is its event.
pub(crate) const STORED: &str = "d.number, e.id, e.accepted, d.rule, d.rule_version, d.service, d.state, d.due, d.accepted, \
                               d.counted, d.failures, d.reason, d.ordering, d.replay_of, e.trace, e.source, d.panics, \
                               d.crashes > 0, d.against > 0, d.epoch";
/// The column of the request, and that of the event if that is its body.
pub(crate) const REQUEST: &str = "r.request, CASE WHEN substr(r.request, 1, 1) = x'01' THEN e.payload END";
/// The number of columns in `STORED`.
pub(crate) const STORED_COLUMNS: usize = 20;

/// Reads a delivery. `request` is the column of its request, followed by that of the payload, if they were asked for.
pub(crate) fn stored_row(
    row: &Row<'_>,
    database: u64,
    request: Option<usize>,
) -> rusqlite::Result<StoredDelivery> {
    let name = |number: i64| DeliveryId::new(database, number.cast_unsigned());
    Ok(StoredDelivery {
        id: name(row.get(0)?),
        event: row.get(1)?,
        source: row.get(15)?,
        event_accepted: Millis(row.get(2)?),
        trace: row.get_ref(14)?.as_str_or_null()?.and_then(TraceId::of),
        rule: (slug(row, 3)?, row.get::<_, i64>(4)?.cast_unsigned()),
        service: slug(row, 5)?,
        state: state(row, 6)?,
        epoch: row.get::<_, i64>(19)?.cast_unsigned(),
        reason: reason(row, 11)?,
        due: Millis(row.get(7)?),
        progress: Progress {
            accepted: Millis(row.get(8)?),
            counted: row.get(9)?,
            failures: row.get(10)?,
            panics: row.get(16)?,
        },
        order: row.get(12)?,
        is_suspect: row.get(17)?,
        on_probation: row.get(18)?,
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

/// The columns of a delivery that transitions of the domain read or change.
pub(crate) const FACTS: &str = "state, epoch, due, touched, accepted, counted, failures, panics, reason, ordering IS NOT NULL, \
                              replay_of IS NOT NULL, crashes, against, step, starts";

pub(crate) fn facts(row: &Row<'_>) -> rusqlite::Result<DeliveryFacts> {
    Ok(DeliveryFacts {
        state: numbered(row, 0)?,
        epoch: row.get::<_, i64>(1)?.cast_unsigned(),
        due: Millis(row.get(2)?),
        touched: Millis(row.get(3)?),
        progress: Progress {
            accepted: Millis(row.get(4)?),
            counted: row.get(5)?,
            failures: row.get(6)?,
            panics: row.get(7)?,
        },
        reason: reason(row, 8)?,
        has_order: row.get(9)?,
        is_replay: row.get(10)?,
        crashes: row.get(11)?,
        suspicion: Suspicion { crashes: row.get(12)?, step: record::step_from_number(row.get(13)?) },
        starts: row.get(14)?,
    })
}
