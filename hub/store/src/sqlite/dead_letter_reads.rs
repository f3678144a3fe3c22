//! What the dead letter desk reads.

use rusqlite::{Connection, OptionalExtension, Row, params};
use seawall_hub_core::domain::dead_letter::{
    FailureSignature, Fingerprint, GroupFilter, LetterCounts, LetterFilter, LetterGroup, LetterState,
};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::operation::{Operation, OperationId, OperationProgress};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    DeadLetter, DeadLetterBatch, DeadLetterDetails, DeadLetterPage, MatchCount, Page, PageRequest,
    StoredDelivery,
};

use super::deliveries;
use super::filter::{Search, SortOrder};
use super::index::unindexed;
use super::lists::{attempts, database, event_of};
use super::rows::{self, REQUEST, STORED, STORED_COLUMNS};
use crate::record::{self, StoredNumber, fingerprint_from_number, fingerprint_to_number};
use crate::sql::sql;

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

pub(super) fn dead_letter(
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
        Some(original) => deliveries::stored(connection, original)?.map(|kept| (kept.request, kept.payload)),
        None => None,
    };
    Ok(Some(DeadLetterDetails { attempts: attempts(connection, id)?, dead, event, related, before }))
}

pub(super) fn dead_letters(
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

pub(super) fn count_letters(
    connection: &Connection,
    filter: &LetterFilter,
    most: u64,
) -> rusqlite::Result<MatchCount> {
    let count = Search::new(connection, filter)?.count(connection, most)?;
    let unindexed = if filter.text.is_some() { unindexed(connection)? } else { 0 };
    Ok(MatchCount { count, all: count < most, unindexed })
}

pub(super) fn letters_behind(
    connection: &Connection,
    filter: &LetterFilter,
    behind: u64,
    most: usize,
) -> rusqlite::Result<DeadLetterBatch> {
    let database = database(connection)?;
    let search = Search::new(connection, filter)?;
    let numbers = search.numbers(connection, SortOrder::Oldest, behind.cast_signed(), most)?;
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
    Ok((all, last, numbers.len() >= most))
}

/// Counts replays that were not attempted. Those in progress are few in each group.
pub(super) fn untried_replays(
    connection: &Connection,
    operation: OperationId,
    services: &[Slug],
) -> rusqlite::Result<Vec<(Slug, u64)>> {
    let mut count = connection.prepare_cached(sql!(
        "SELECT count(*) FROM letter_groups g JOIN dead_letters l ON l.grouping = g.number AND l.standing = " LETTER_REPLAYING "
         JOIN deliveries d ON d.number = l.replayed
         WHERE g.service = ?1 AND g.replaying > 0 AND l.operation = ?2 AND d.failures = 0 AND d.state < " HOLDING
    ))?;
    let mut waiting = Vec::new();
    for service in services {
        let found = params![service.as_str(), operation.number.cast_signed()];
        match count.query_row(found, |row| row.get::<_, i64>(0))?.cast_unsigned() {
            0 => {}
            some => waiting.push((service.clone(), some)),
        }
    }
    Ok(waiting)
}

const GROUP: &str = "g.number, g.fingerprint, g.service, g.rule, g.reason, g.status, g.message, g.state, g.note, g.first, \
                     g.last, g.reopened, g.open, g.replaying, g.delivered, g.failed_again, g.parked, g.deleted";

/// Reads a group with its row number.
fn group_row(row: &Row<'_>) -> rusqlite::Result<(i64, LetterGroup)> {
    let mut counts = LetterCounts::default();
    for (place, count) in counts.0.iter_mut().enumerate() {
        *count = row.get::<_, i64>(12 + place)?.cast_unsigned();
    }
    let group = LetterGroup {
        fingerprint: fingerprint_from_number(row.get(1)?),
        failure: FailureSignature {
            service: rows::slug(row, 2)?,
            rule: rows::slug(row, 3)?,
            reason: rows::reason(row, 4)?.ok_or_else(|| rows::strange(4, "no reason"))?,
            status: row.get(5)?,
            message: row.get(6)?,
        },
        state: rows::numbered(row, 7)?,
        note: row.get(8)?,
        first: Millis(row.get(9)?),
        last: Millis(row.get(10)?),
        reopened: row.get(11)?,
        counts,
        sample: None,
    };
    Ok((row.get(0)?, group))
}

/// Returns the newest open dead letter, or else the newest of all.
fn sample(
    connection: &Connection,
    number: i64,
    counts: &LetterCounts,
) -> rusqlite::Result<Option<DeliveryId>> {
    let Some(state) = LetterState::ALL.into_iter().find(|state| counts.of(*state) > 0) else {
        return Ok(None);
    };
    let mut newest = connection
        .prepare_cached("SELECT max(delivery) FROM dead_letters WHERE grouping = ?1 AND standing = ?2")?;
    let newest: Option<i64> = newest.query_row([number, state.to_number()], |row| row.get(0))?;
    let database = database(connection)?;
    Ok(newest.map(|number| DeliveryId::new(database, number.cast_unsigned())))
}

/// Lists groups. There are few, so the position of a page is the number of groups before it.
pub(super) fn groups(
    connection: &Connection,
    filter: &GroupFilter,
    page: PageRequest,
) -> rusqlite::Result<Page<LetterGroup>> {
    let sql = format!(
        "SELECT {GROUP} FROM letter_groups g WHERE (?1 IS NULL OR g.service = ?1) AND (?2 IS NULL OR g.rule = ?2)
         ORDER BY g.last DESC, g.number DESC"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let name = |slug: &Option<Slug>| slug.as_ref().map(|slug| slug.as_str().to_owned());
    let mut rows = statement.query(params![name(&filter.service), name(&filter.rule)])?;
    let from = page.from.and_then(|from| usize::try_from(from).ok()).unwrap_or(0);
    let (mut items, mut place, mut more) = (Vec::new(), 0, false);
    while let Some(row) = rows.next()? {
        let (number, mut group) = group_row(row)?;
        let seen = filter.services.as_ref().is_none_or(|seen| seen.contains(&group.failure.service));
        if !seen || (!filter.states.is_empty() && !filter.states.contains(&group.state)) {
            continue;
        }
        place += 1;
        if place <= from {
            continue;
        }
        if items.len() == page.size {
            more = true;
            break;
        }
        group.sample = sample(connection, number, &group.counts)?;
        items.push(group);
    }
    let next = more.then(|| u64::try_from(from + items.len()).unwrap_or(u64::MAX));
    Ok(Page { items, next })
}

pub(super) fn group(
    connection: &Connection,
    fingerprint: Fingerprint,
) -> rusqlite::Result<Option<LetterGroup>> {
    let sql = format!("SELECT {GROUP} FROM letter_groups g WHERE g.fingerprint = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_row([fingerprint_to_number(fingerprint)], group_row).optional()?;
    let Some((number, mut group)) = found else { return Ok(None) };
    group.sample = sample(connection, number, &group.counts)?;
    Ok(Some(group))
}

pub(super) const OPERATION: &str = "number, task, plan, filter, most, total, run, why, begun, skipped, tried, faltered, delivered, \
                         failed, cursor, looked, who, reason, began, changed, ended, failed_delivery";

pub(super) fn operation_row(row: &Row<'_>, database: u64) -> rusqlite::Result<Operation> {
    let count = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
    let plan = row.get::<_, Option<String>>(2)?;
    let task = record::bulk_action_from_row(row.get(1)?, plan.as_deref());
    Ok(Operation {
        id: OperationId::new(database, count(0)?),
        task: task.map_err(|error| rows::strange(1, error))?,
        filter: rows::parsed(row, 3, record::filter_from_text)?,
        most: row.get::<_, Option<i64>>(4)?.map(i64::cast_unsigned),
        total: count(5)?,
        run: rows::numbered(row, 6)?,
        cause: row.get(7)?,
        failed_delivery: row
            .get::<_, Option<i64>>(21)?
            .map(|number| DeliveryId::new(database, number.cast_unsigned())),
        progress: OperationProgress {
            begun: count(8)?,
            skipped: count(9)?,
            tried: count(10)?,
            faltered: count(11)?,
            delivered: count(12)?,
            failed: count(13)?,
        },
        cursor: count(14)?,
        exhausted: row.get(15)?,
        who: row.get(16)?,
        reason: row.get(17)?,
        began: Millis(row.get(18)?),
        changed: Millis(row.get(19)?),
        ended: row.get::<_, Option<i64>>(20)?.map(Millis),
    })
}

pub(super) fn operations(connection: &Connection, page: PageRequest) -> rusqlite::Result<Page<Operation>> {
    let database = database(connection)?;
    let from = page.from.map_or(i64::MAX, |from| i64::try_from(from).unwrap_or(i64::MAX));
    let sql = format!("SELECT {OPERATION} FROM operations WHERE number < ?1 ORDER BY number DESC LIMIT ?2");
    let items: Vec<Operation> = connection
        .prepare_cached(&sql)?
        .query_map(params![from, i64::try_from(page.size).unwrap_or(i64::MAX)], |row| {
            operation_row(row, database)
        })?
        .collect::<rusqlite::Result<_>>()?;
    let next = items.last().filter(|_| items.len() >= page.size).map(|last| last.id.number);
    Ok(Page { items, next })
}

pub(super) fn operation(connection: &Connection, id: OperationId) -> rusqlite::Result<Option<Operation>> {
    let database = database(connection)?;
    if id.database != database {
        return Ok(None);
    }
    let sql = format!("SELECT {OPERATION} FROM operations WHERE number = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row([id.number.cast_signed()], |row| operation_row(row, database)).optional()
}

pub(super) fn failed_replay(
    connection: &Connection,
    id: OperationId,
    up_to: u64,
) -> rusqlite::Result<Option<DeliveryId>> {
    let sql = "SELECT l.replayed FROM dead_letters l JOIN deliveries d ON d.number = l.replayed
               WHERE l.delivery <= ?2 AND l.operation = ?1 AND d.failures > 0 ORDER BY l.delivery LIMIT 1";
    let up_to = i64::try_from(up_to).unwrap_or(i64::MAX);
    let found = connection
        .prepare_cached(sql)?
        .query_row(params![id.number.cast_signed(), up_to], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(found.map(|number| DeliveryId::new(id.database, number.cast_unsigned())))
}

pub(super) fn running(connection: &Connection) -> rusqlite::Result<Vec<Operation>> {
    let database = database(connection)?;
    let sql = format!("SELECT {OPERATION} FROM operations WHERE run = 0 ORDER BY number");
    connection.prepare_cached(&sql)?.query_map([], |row| operation_row(row, database))?.collect()
}
