//! Incidents of alert rules, and what rules observe.

use rusqlite::{Connection, OptionalExtension, Row, params};
use seawall_hub_core::domain::alert::{Acknowledgement, ConditionKind, Incident, Mute, Resolution, Severity};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{IncidentFilter, Page, PageRequest};

use crate::record;
use crate::sqlite::read::page::page_of;
use crate::sqlite::rows;

const INCIDENT: &str = "number, id, rule, kind, severity, service, opened, updated, resolved, because, value, summary, seen_by, \
                        seen_at, seen_reason, muted_until, muted_reason, told, notices";

pub(crate) fn live_incidents(connection: &Connection) -> rusqlite::Result<Vec<Incident>> {
    let sql = format!("SELECT {INCIDENT} FROM incidents WHERE live = 1 ORDER BY number");
    connection.prepare_cached(&sql)?.query_map([], incident_row)?.collect()
}

pub(crate) fn incident(connection: &Connection, id: &str) -> rusqlite::Result<Option<Incident>> {
    let sql = format!("SELECT {INCIDENT} FROM incidents WHERE id = ?1");
    connection.prepare_cached(&sql)?.query_row([id], incident_row).optional()
}

pub(crate) fn incidents(
    connection: &Connection,
    filter: &IncidentFilter,
    page: PageRequest,
) -> rusqlite::Result<Page<Incident>> {
    // An open incident is live, and there are few of those: their index is read instead of all incidents that there ever were.
    let live = if filter.open == Some(true) { "live = 1 AND " } else { "" };
    let sql =
        format!("SELECT {INCIDENT} FROM incidents WHERE {live}number < ?1 ORDER BY number DESC LIMIT ?2");
    page_of(connection, &sql, page, None, incident_row, |incident| filter.takes(incident))
}

pub(crate) fn dead_since(
    connection: &Connection,
    since: Millis,
    limit: u32,
) -> rusqlite::Result<Vec<(Slug, u32)>> {
    let mut statement = connection.prepare_cached(
        "SELECT d.service, count(*) FROM (SELECT delivery FROM dead_letters WHERE at >= ?1 ORDER BY at DESC LIMIT ?2) l
         JOIN deliveries d ON d.number = l.delivery GROUP BY d.service",
    )?;
    statement.query_map(params![since.0, limit], |row| Ok((rows::slug(row, 0)?, row.get(1)?)))?.collect()
}

fn incident_row(row: &Row<'_>) -> rusqlite::Result<Incident> {
    let at = |column| row.get::<_, Option<i64>>(column);
    let resolved = match at(8)? {
        Some(when) => Some(Resolution { at: Millis(when), because: row.get(9)? }),
        None => None,
    };
    let acknowledged = match at(13)? {
        Some(when) => Some(Acknowledgement { who: row.get(12)?, at: Millis(when), reason: row.get(14)? }),
        None => None,
    };
    let service = if at_text(row, 5)?.is_some() { Some(rows::slug(row, 5)?) } else { None };
    Ok(Incident {
        id: row.get(1)?,
        rule: rows::slug(row, 2)?,
        kind: word(row, 3, ConditionKind::from_word)?,
        severity: word(row, 4, Severity::from_word)?,
        service,
        opened: Millis(row.get(6)?),
        updated: Millis(row.get(7)?),
        resolved,
        value: row.get(10)?,
        summary: row.get(11)?,
        acknowledged,
        muted: mute(row, 15)?,
        notified: row.get(17)?,
        notices: rows::parsed(row, 18, record::notices_from_text)?,
    })
}

fn at_text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    row.get(column)
}

fn mute(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Mute>> {
    Ok(match row.get::<_, Option<i64>>(column)? {
        Some(until) => Some(Mute { until: Millis(until), reason: row.get(column + 1)? }),
        None => None,
    })
}

fn word<T>(row: &Row<'_>, column: usize, read: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let word = row.get_ref(column)?.as_str()?;
    read(word).ok_or_else(|| rows::strange(column, format!("`{word}` is not known")))
}
