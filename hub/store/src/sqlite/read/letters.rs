//! What the dead letter desk reads.

use rusqlite::{Connection, OptionalExtension, Row, params};
use seawall_hub_core::domain::dead_letter::LetterFilter;
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::operation::OperationId;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    DeadLetter, DeadLetterBatch, DeadLetterDetails, DeadLetterPage, MatchCount, Page, PageRequest,
    StoredDelivery,
};

use crate::record::fingerprint_from_number;
use crate::sqlite::filter::{Search, SortOrder};
use crate::sqlite::read::database;
use crate::sqlite::read::deliveries::attempts;
use crate::sqlite::read::events::event_of;
use crate::sqlite::read::index::unindexed;
use crate::sqlite::rows::{self, REQUEST, STORED, STORED_COLUMNS};
use crate::sqlite::write::deliveries::stored;

/// The maximum number of related deliveries of an event.
const RELATED: usize = 100;

/// The maximum number of bytes of events that a bulk operation reads at once.
const TOGETHER_BYTES: usize = 8 * 1024 * 1024;

/// The columns of a dead letter besides its delivery; `x` is its last replay.
const DEAD: &str = "l.at, l.error, l.status, x.number, x.state, l.replayed_at, l.standing, g.fingerprint, l.discarded, \
                    l.note, l.operation, l.edited, e.source";
const DEAD_COLUMNS: usize = 13;
const DEAD_FROM: &str =
    "dead_letters l JOIN deliveries d ON d.number = l.delivery JOIN events e ON e.number = d.event
         JOIN letter_groups g ON g.number = l.grouping LEFT JOIN deliveries x ON x.number = l.replayed";

fn dead_row(row: &Row<'_>, database: u64, request: Option<usize>) -> rusqlite::Result<DeadLetter> {
    let at = |column| STORED_COLUMNS + column;
    let replayed = match row.get::<_, Option<i64>>(at(3))? {
        None => None,
        Some(number) => {
            let id = DeliveryId::new(database, number.cast_unsigned());
            Some((id, rows::state(row, at(4))?, Millis(row.get(at(5))?)))
        }
    };
    let operation = row.get::<_, Option<i64>>(at(10))?;
    Ok(DeadLetter {
        delivery: rows::stored_row(row, database, request)?,
        at: Millis(row.get(at(0))?),
        error: row.get(at(1))?,
        status: row.get(at(2))?,
        replayed,
        state: rows::numbered(row, at(6))?,
        group: fingerprint_from_number(row.get(at(7))?),
        deleted: row.get::<_, Option<i64>>(at(8))?.map(Millis),
        note: row.get(at(9))?,
        operation: operation.map(|number| OperationId::new(database, number.cast_unsigned())),
        edited: row.get(at(11))?,
        source: row.get(at(12))?,
    })
}

fn dead_with_request(
    connection: &Connection,
    database: u64,
    number: i64,
) -> rusqlite::Result<Option<DeadLetter>> {
    let sql = format!(
        "SELECT {STORED}, {DEAD}, {REQUEST} FROM {DEAD_FROM} JOIN requests r ON r.delivery = l.delivery WHERE l.delivery = ?1"
    );
    let read = |row: &Row<'_>| dead_row(row, database, Some(STORED_COLUMNS + DEAD_COLUMNS));
    connection.prepare_cached(&sql)?.query_row([number], read).optional()
}

pub(crate) fn dead_letter(
    connection: &Connection,
    id: DeliveryId,
) -> rusqlite::Result<Option<DeadLetterDetails>> {
    let database = database(connection)?;
    if database != id.database {
        return Ok(None);
    }
    let Some(dead) = dead_with_request(connection, database, id.number.cast_signed())? else {
        return Ok(None);
    };
    let Some(event) = event_of(connection, id)? else { return Ok(None) };
    let sql = format!(
        "SELECT {STORED} FROM deliveries d JOIN events e ON e.number = d.event
         WHERE d.event = (SELECT event FROM deliveries WHERE number = ?1) AND d.number <> ?1 ORDER BY d.number DESC LIMIT ?2"
    );
    let read = |row: &Row<'_>| rows::stored_row(row, database, None);
    let related: Vec<StoredDelivery> = connection
        .prepare_cached(&sql)?
        .query_map(params![id.number.cast_signed(), i64::try_from(RELATED).unwrap_or(i64::MAX)], read)?
        .collect::<rusqlite::Result<_>>()?;
    let before = match dead.delivery.replay_of {
        Some(original) => stored(connection, original)?.map(|stored| (stored.request, stored.payload)),
        None => None,
    };
    Ok(Some(DeadLetterDetails { attempts: attempts(connection, id)?, dead, event, related, before }))
}

pub(crate) fn dead_letters(
    connection: &Connection,
    filter: &LetterFilter,
    page: PageRequest,
) -> rusqlite::Result<DeadLetterPage> {
    let database = database(connection)?;
    let from = page.from.map_or(i64::MAX, |from| i64::try_from(from).unwrap_or(i64::MAX));
    let numbers = Search::new(connection, filter)?.numbers(connection, SortOrder::Newest, from, page.size)?;
    let sql = format!("SELECT {STORED}, {DEAD} FROM {DEAD_FROM} WHERE l.delivery = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut items = Vec::with_capacity(numbers.len());
    for number in &numbers {
        items.extend(statement.query_row([number], |row| dead_row(row, database, None)).optional()?);
    }
    let next = numbers.last().filter(|_| numbers.len() >= page.size).map(|last| last.cast_unsigned());
    let unindexed = if filter.text.is_some() { unindexed(connection)? } else { 0 };
    Ok(DeadLetterPage { page: Page { items, next }, unindexed })
}

pub(crate) fn count_letters(
    connection: &Connection,
    filter: &LetterFilter,
    limit: u64,
) -> rusqlite::Result<MatchCount> {
    let count = Search::new(connection, filter)?.count(connection, limit)?;
    let unindexed = if filter.text.is_some() { unindexed(connection)? } else { 0 };
    Ok(MatchCount { count, all: count < limit, unindexed })
}

pub(crate) fn letters_behind(
    connection: &Connection,
    filter: &LetterFilter,
    behind: u64,
    limit: usize,
) -> rusqlite::Result<DeadLetterBatch> {
    let database = database(connection)?;
    let search = Search::new(connection, filter)?;
    let numbers = search.numbers(connection, SortOrder::Oldest, behind.cast_signed(), limit)?;
    let (mut all, mut bytes, mut last) = (Vec::with_capacity(numbers.len()), 0, behind);
    for number in &numbers {
        if bytes > TOGETHER_BYTES {
            return Ok((all, last, true));
        }
        last = number.cast_unsigned();
        let dead = dead_with_request(connection, database, *number)?;
        let event = event_of(connection, DeliveryId::new(database, last))?;
        if let (Some(dead), Some(event)) = (dead, event) {
            bytes += event.payload.len() + dead.delivery.request.len();
            all.push((dead, event));
        }
    }
    Ok((all, last, numbers.len() >= limit))
}
