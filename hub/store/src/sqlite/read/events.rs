//! Events, one or a page of them.

use rusqlite::{Connection, OptionalExtension, Row, params};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::event_type::EventType;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{EventFilter, Page, PageRequest};

use crate::sqlite::read::page::{is_among, page_of};
use crate::sqlite::rows;

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

pub(crate) fn event(
    connection: &Connection,
    id: &str,
    source: Option<&str>,
) -> rusqlite::Result<Option<Event>> {
    let sql = format!(
        "SELECT {EVENT} FROM events WHERE id = ?1 AND (?2 IS NULL OR source = ?2) ORDER BY number DESC LIMIT 1"
    );
    connection.prepare_cached(&sql)?.query_row(params![id, source], event_row).optional()
}

pub(crate) fn event_of(connection: &Connection, delivery: DeliveryId) -> rusqlite::Result<Option<Event>> {
    let sql =
        format!("SELECT {EVENT} FROM events WHERE number = (SELECT event FROM deliveries WHERE number = ?1)");
    connection.prepare_cached(&sql)?.query_row([delivery.number.cast_signed()], event_row).optional()
}

pub(crate) fn events(
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

/// Returns the row number of the newest event with this id, among those from these sources.
pub(crate) fn newest(
    connection: &Connection,
    id: &str,
    sources: Option<&[String]>,
) -> rusqlite::Result<Option<i64>> {
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
