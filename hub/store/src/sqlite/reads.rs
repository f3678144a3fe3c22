//! What is asked for, on connections that only read.

use rusqlite::{Connection, OptionalExtension, Row};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::event_type::{EventType, Pattern};
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::{Sealed, Service};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{AttemptRecord, Kept};

use super::rows;

pub(super) fn services(connection: &Connection) -> rusqlite::Result<Vec<Service>> {
    let mut statement = connection.prepare_cached(
        "SELECT name, version, address, headers, auth, policy, paused, changed FROM services ORDER BY name",
    )?;
    let service = |row: &Row<'_>| {
        Ok(Service {
            name: rows::slug(row, 0)?,
            version: row.get::<_, i64>(1)?.cast_unsigned(),
            address: row.get(2)?,
            headers: rows::pairs(row, 3)?,
            auth: row.get::<_, Option<Vec<u8>>>(4)?.map(Sealed),
            policy: row.get(5)?,
            paused: row.get(6)?,
            changed: Millis(row.get(7)?),
        })
    };
    statement.query_map([], service)?.collect()
}

pub(super) fn rules(connection: &Connection) -> rusqlite::Result<Vec<Rule>> {
    let mut statement = connection.prepare_cached(
        "SELECT name, version, events, filter, service, method, path, headers, body, schedule, enabled, changed
         FROM rules ORDER BY name",
    )?;
    let rule = |row: &Row<'_>| {
        Ok(Rule {
            name: rows::slug(row, 0)?,
            version: row.get::<_, i64>(1)?.cast_unsigned(),
            events: Pattern::new(row.get_ref(2)?.as_str()?).map_err(|error| rows::strange(2, error))?,
            filter: row.get(3)?,
            service: rows::slug(row, 4)?,
            method: row.get(5)?,
            path: row.get(6)?,
            headers: rows::pairs(row, 7)?,
            body: row.get(8)?,
            schedule: rows::schedule(row, 9)?,
            enabled: row.get(10)?,
            changed: Millis(row.get(11)?),
        })
    };
    statement.query_map([], rule)?.collect()
}

pub(super) fn event(connection: &Connection, id: &str) -> rusqlite::Result<Option<Event>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, kind, source, payload, fingerprint, accepted, trace FROM events WHERE id = ?1",
    )?;
    let event = |row: &Row<'_>| {
        Ok(Event {
            id: row.get(0)?,
            kind: EventType::new(row.get_ref(1)?.as_str()?).map_err(|error| rows::strange(1, error))?,
            source: row.get(2)?,
            payload: row.get(3)?,
            fingerprint: row.get(4)?,
            accepted: Millis(row.get(5)?),
            trace: row.get(6)?,
        })
    };
    statement.query_row([id], event).optional()
}

pub(super) fn delivery(
    connection: &Connection,
    id: DeliveryId,
) -> rusqlite::Result<Option<(Kept, Vec<AttemptRecord>)>> {
    let era: i64 = connection.query_row("SELECT era FROM meta", [], |row| row.get(0))?;
    if era.cast_unsigned() != id.era {
        return Ok(None);
    }
    let Some(kept) = rows::kept(connection, id)? else { return Ok(None) };
    let mut statement = connection.prepare_cached(
        "SELECT at, took, status, error, answer FROM attempts WHERE delivery = ?1 ORDER BY number",
    )?;
    let attempt = |row: &Row<'_>| {
        Ok(AttemptRecord {
            at: Millis(row.get(0)?),
            took_micros: row.get::<_, i64>(1)?.cast_unsigned(),
            status: row.get(2)?,
            error: row.get(3)?,
            answer: row.get(4)?,
        })
    };
    let attempts =
        statement.query_map([id.number.cast_signed()], attempt)?.collect::<rusqlite::Result<_>>()?;
    Ok(Some((kept, attempts)))
}

pub(super) fn next_due(connection: &Connection) -> rusqlite::Result<Vec<(Slug, Millis)>> {
    // The index has the services in order, so each step is one look into it, however many wait.
    let mut first = connection.prepare_cached(
        "SELECT service, due FROM deliveries WHERE state = 1 AND service > ?1 ORDER BY service, due LIMIT 1",
    )?;
    let (mut found, mut after) = (Vec::new(), String::new());
    while let Some((service, due)) =
        first.query_row([&after], |row| Ok((rows::slug(row, 0)?, Millis(row.get(1)?)))).optional()?
    {
        after = service.as_str().to_owned();
        found.push((service, due));
    }
    Ok(found)
}
