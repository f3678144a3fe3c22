//! Events, deliveries and dead letters, one or a page of them.
//!
//! # Why a page may be short
//! A page looks at a bounded number of rows, however few of them the filter takes, so that no question can hold up the
//! machine. It then says where the next one begins, and whoever asks goes on. What has not ended is found by an index, unless
//! there are more of these than a page looks at: then they are among the newest rows anyway.

use rusqlite::{Connection, OptionalExtension, Row, params};
use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::delivery::{DeliveryId, DeliveryState};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::event_type::EventType;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{DeliveryFilter, EventFilter, Page, PageRequest, StoredDelivery};

use super::deliveries;
use super::rows::{self, STORED};
use crate::sql::sql;

/// The maximum number of rows that a page reads.
const LOOKED_AT: usize = 10_000;

/// The maximum size of the events of a page, which is in memory more than once.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

const EVENT: &str = "number, id, kind, source, payload, fingerprint, accepted, trace, considered, filtered";

fn event_row(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        id: row.get(1)?,
        kind: EventType::new(row.get_ref(2)?.as_str()?).map_err(|error| rows::strange(2, error))?,
        source: row.get(3)?,
        payload: row.get::<_, Vec<u8>>(4)?.into(),
        fingerprint: row.get(5)?,
        accepted: Millis(row.get(6)?),
        trace: row.get(7)?,
        considered: row.get(8)?,
        filtered: row.get(9)?,
    })
}

pub(super) fn event(
    connection: &Connection,
    id: &str,
    source: Option<&str>,
) -> rusqlite::Result<Option<Event>> {
    let sql = format!(
        "SELECT {EVENT} FROM events WHERE id = ?1 AND (?2 IS NULL OR source = ?2) ORDER BY number DESC LIMIT 1"
    );
    connection.prepare_cached(&sql)?.query_row(params![id, source], event_row).optional()
}

pub(super) fn event_of(connection: &Connection, delivery: DeliveryId) -> rusqlite::Result<Option<Event>> {
    let sql =
        format!("SELECT {EVENT} FROM events WHERE number = (SELECT event FROM deliveries WHERE number = ?1)");
    connection.prepare_cached(&sql)?.query_row([delivery.number.cast_signed()], event_row).optional()
}

pub(super) fn events(
    connection: &Connection,
    filter: &EventFilter,
    page: PageRequest,
) -> rusqlite::Result<Page<Event>> {
    // Payloads are large, and are read only of those that the filter takes.
    let sql =
        "SELECT number, kind, source, considered FROM events WHERE number < ?1 ORDER BY number DESC LIMIT ?2";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let takes = |(_, of, from, considered): &(i64, String, String, u32)| {
        filter.kind.as_ref().is_none_or(|kind| kind.matches(of))
            && is_among(filter.sources.as_deref(), from)
            && (!filter.unmatched || *considered == 0)
    };
    let found = page_of(connection, sql, page, None, read, takes)?;
    let mut whole = connection.prepare_cached(&format!("SELECT {EVENT} FROM events WHERE number = ?1"))?;
    let (mut items, mut bytes) = (Vec::new(), 0);
    for (number, ..) in found.items {
        if let Some(event) = whole.query_row([number], event_row).optional()? {
            bytes += event.payload.len();
            items.push(event);
        }
        if bytes >= PAGE_BYTES_MAX {
            return Ok(Page { items, next: Some(number.cast_unsigned()) });
        }
    }
    Ok(Page { items, next: found.next })
}

pub(super) fn delivery(
    connection: &Connection,
    id: DeliveryId,
) -> rusqlite::Result<Option<(StoredDelivery, Vec<Attempt>)>> {
    if database(connection)? != id.database {
        return Ok(None);
    }
    let Some(kept) = deliveries::stored(connection, id)? else { return Ok(None) };
    Ok(Some((kept, attempts(connection, id)?)))
}

pub(super) fn attempts(connection: &Connection, id: DeliveryId) -> rusqlite::Result<Vec<Attempt>> {
    // The one that went well is in the row of the delivery itself.
    let mut statement = connection.prepare_cached(
        "SELECT at, took, status, error, sent, headers, answer, number FROM attempts WHERE delivery = ?1
         UNION ALL SELECT touched, took, status, NULL, NULL, NULL, answer, 1 << 40 FROM deliveries
         WHERE number = ?1 AND took IS NOT NULL
         ORDER BY 8",
    )?;
    statement.query_map([id.number.cast_signed()], rows::attempt)?.collect()
}

pub(super) fn deliveries(
    connection: &Connection,
    filter: &DeliveryFilter,
    page: PageRequest,
) -> rusqlite::Result<Page<StoredDelivery>> {
    let database = database(connection)?;
    let read = |row: &Row<'_>| rows::stored_row(row, database, None);
    let select = |condition: &str| {
        format!(
            "SELECT {STORED} FROM deliveries d JOIN events e ON e.number = d.event
             WHERE {condition} ORDER BY d.number DESC LIMIT ?2"
        )
    };
    // Those of one event are few, and have an index.
    let (sql, of) = match &filter.event {
        None if are_few(connection, filter)? => {
            (select(&format!("d.number < ?1 AND d.number IN ({OPEN})")), None)
        }
        None => (select("d.number < ?1"), None),
        Some(id) => {
            // The newest, if several sources use the same id.
            let Some(event) = newest(connection, id, filter.sources.as_deref())? else {
                return Ok(Page { items: Vec::new(), next: None });
            };
            (select("d.number < ?1 AND d.event = ?3"), Some(event))
        }
    };
    page_of(connection, &sql, page, of, read, |kept| takes(filter, kept))
}

/// Every pending delivery, each by the index of its kind.
pub(super) const OPEN: &str = sql!(
    "SELECT number FROM deliveries WHERE " IS_LEASED "
     UNION ALL SELECT number FROM deliveries WHERE " IS_WAITING
);

/// Whether only pending deliveries are asked for, and they are so few that a page can read all of them. They may be far behind
/// many completed ones, and a caller who asks what waits must not get an empty page.
fn are_few(connection: &Connection, filter: &DeliveryFilter) -> rusqlite::Result<bool> {
    let ended =
        |state: &DeliveryState| matches!(state, DeliveryState::Delivered | DeliveryState::DeadLettered);
    if filter.states.is_empty() || filter.states.iter().any(ended) {
        return Ok(false);
    }
    let sql = format!("SELECT count(*) FROM ({OPEN} LIMIT ?1)");
    let count: i64 = connection.prepare_cached(&sql)?.query_row([LOOKED_AT as i64], |row| row.get(0))?;
    Ok(count < LOOKED_AT as i64)
}

/// Returns the row number of the newest event with this id, among those from these sources.
fn newest(connection: &Connection, id: &str, sources: Option<&[String]>) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT number, source FROM events WHERE id = ?1 ORDER BY number DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        if is_among(sources, row.get_ref(1)?.as_str()?) {
            return row.get(0).map(Some);
        }
    }
    Ok(None)
}

fn is_among(sources: Option<&[String]>, source: &str) -> bool {
    sources.is_none_or(|sources| sources.iter().any(|known| known == source))
}

fn takes(filter: &DeliveryFilter, kept: &StoredDelivery) -> bool {
    is_among(filter.sources.as_deref(), &kept.source)
        && filter.service.as_ref().is_none_or(|service| *service == kept.service)
        && filter.rule.as_ref().is_none_or(|rule| *rule == kept.rule.0)
        && filter.event.as_ref().is_none_or(|event| *event == kept.event)
        && (filter.states.is_empty() || filter.states.contains(&kept.state))
        && filter.reason.is_none_or(|reason| Some(reason) == kept.reason)
}

pub(super) fn database(connection: &Connection) -> rusqlite::Result<u64> {
    let mut database = connection.prepare_cached("SELECT era FROM meta")?;
    database.query_row([], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
}

/// Returns a page of a query. Its first column is the number, `?1` the number that it has to be below, `?2` the limit, and `?3`
/// an optional parameter.
pub(super) fn page_of<T>(
    connection: &Connection,
    sql: &str,
    page: PageRequest,
    what_else: Option<i64>,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    takes: impl Fn(&T) -> bool,
) -> rusqlite::Result<Page<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let from = page.from.map_or(i64::MAX, |from| i64::try_from(from).unwrap_or(i64::MAX));
    let most = i64::try_from(LOOKED_AT).unwrap_or(i64::MAX);
    let mut rows = match what_else {
        Some(what_else) => statement.query(params![from, most, what_else])?,
        None => statement.query(params![from, most])?,
    };
    let (mut items, mut looked_at, mut last) = (Vec::new(), 0, None);
    while items.len() < page.size {
        let Some(row) = rows.next()? else { break };
        looked_at += 1;
        last = Some(row.get::<_, i64>(0)?.cast_unsigned());
        let item = read(row)?;
        if takes(&item) {
            items.push(item);
        }
    }
    let full = items.len() >= page.size || looked_at >= LOOKED_AT;
    Ok(Page { items, next: last.filter(|_| full) })
}
