//! Deliveries: one, a page of them, the pending ones, and when they are due.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::delivery::{DeliveryId, DeliveryState, StoredState};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    BacklogCounts, DeliveryFilter, DeliverySelector, DueTimes, Page, PageRequest, StoredDelivery,
};

use crate::record::StoredNumber;
use crate::sql::sql;
use crate::sqlite::read::database;
use crate::sqlite::read::events::newest;
use crate::sqlite::read::page::{LOOKED_AT, is_among, page_of};
use crate::sqlite::rows::{self, STORED, WAITING_INDEX};
use crate::sqlite::write::deliveries::stored;
use crate::sqlite::write::set_based::{HELD_BY_RULE, PENDING_OF_SERVICE};

pub(crate) fn pending(
    connection: &Connection,
    selector: &DeliverySelector,
    limit: u32,
) -> rusqlite::Result<u32> {
    let (sql, name) = match selector {
        DeliverySelector::Service(name) => (PENDING_OF_SERVICE, name),
        DeliverySelector::HeldBy(name) => (HELD_BY_RULE, name),
    };
    let sql = format!("SELECT count(*) FROM ({sql} LIMIT ?2)");
    connection.prepare_cached(&sql)?.query_row(params![name.as_str(), limit], |row| row.get(0))
}

pub(crate) fn backlog_counts(
    connection: &Connection,
    services: Vec<Slug>,
    limit: u32,
) -> rusqlite::Result<BacklogCounts> {
    let mut count = connection.prepare_cached(sql!(
        "SELECT count(*) FROM (SELECT 1 FROM deliveries
         WHERE " IS_WAITING " AND state IN " PENDING_UNCLAIMED " AND service = ?1 LIMIT ?2)"
    ))?;
    let waiting = services.into_iter().map(|service| {
        let waiting = count.query_row(params![service.as_str(), limit], |row| row.get(0))?;
        Ok((service, waiting))
    });
    let mut open = connection.prepare_cached(
        "SELECT service, sum(open) FROM letter_groups GROUP BY service HAVING sum(open) > 0",
    )?;
    let open = open.query_map([], |row| Ok((rows::slug(row, 0)?, row.get::<_, i64>(1)?.cast_unsigned())))?;
    Ok(BacklogCounts {
        waiting: waiting.collect::<rusqlite::Result<_>>()?,
        dead_letters: open.collect::<rusqlite::Result<_>>()?,
    })
}

pub(crate) fn delivery(
    connection: &Connection,
    id: DeliveryId,
) -> rusqlite::Result<Option<(StoredDelivery, Vec<Attempt>)>> {
    if database(connection)? != id.database {
        return Ok(None);
    }
    let Some(stored) = stored(connection, id)? else { return Ok(None) };
    Ok(Some((stored, attempts(connection, id)?)))
}

pub(crate) fn attempts(connection: &Connection, id: DeliveryId) -> rusqlite::Result<Vec<Attempt>> {
    // The one that went well is in the row of the delivery itself.
    let mut statement = connection.prepare_cached(
        "SELECT at, took, status, error, sent, headers, answer, number FROM attempts WHERE delivery = ?1
         UNION ALL SELECT touched, took, status, NULL, NULL, NULL, answer, 1 << 40 FROM deliveries
         WHERE number = ?1 AND took IS NOT NULL
         ORDER BY 8",
    )?;
    statement.query_map([id.number.cast_signed()], rows::attempt)?.collect()
}

pub(crate) fn deliveries(
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
    page_of(connection, &sql, page, of, read, |stored| takes(filter, stored))
}

/// Every pending delivery, each by the index of its kind.
pub(crate) const OPEN: &str = sql!(
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

fn takes(filter: &DeliveryFilter, stored: &StoredDelivery) -> bool {
    is_among(filter.sources.as_deref(), &stored.source)
        && filter.service.as_ref().is_none_or(|service| *service == stored.service)
        && filter.rule.as_ref().is_none_or(|rule| *rule == stored.rule.0)
        && filter.event.as_ref().is_none_or(|event| *event == stored.event)
        && (filter.states.is_empty() || filter.states.contains(&stored.state))
        && filter.reason.is_none_or(|reason| Some(reason) == stored.reason)
}

/// Returns when the next delivery of each service is due.
pub(crate) fn next_due(connection: &Connection) -> rusqlite::Result<Vec<DueTimes>> {
    let mut found: BTreeMap<Slug, DueTimes> = BTreeMap::new();
    for state in [StoredState::Queued, StoredState::Waiting, StoredState::Stalled] {
        let number = state.to_number();
        // The index has the services in order, so each step is one look into it, however many wait.
        let mut first = connection.prepare_cached(&format!(
            "SELECT service, due FROM deliveries
             WHERE {WAITING_INDEX} AND state = {number} AND service > ?1 ORDER BY service, due LIMIT 1"
        ))?;
        let mut after = String::new();
        let read = |row: &Row<'_>| Ok((rows::slug(row, 0)?, Millis(row.get(1)?)));
        while let Some((service, due)) = first.query_row([&after], read).optional()? {
            after = service.as_str().to_owned();
            let entry =
                found.entry(service.clone()).or_insert(DueTimes { service, fresh: None, retries: None });
            let earliest = if state == StoredState::Queued { &mut entry.fresh } else { &mut entry.retries };
            *earliest = Some(earliest.map_or(due, |before| before.min(due)));
        }
    }
    Ok(found.into_values().collect())
}
