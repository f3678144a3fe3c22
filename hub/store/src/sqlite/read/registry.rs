//! What is registered, the circuits of services, and who has changed what.

use rusqlite::{Connection, Row, params};
use seawall_hub_core::domain::alert::{AlertRule, Channel};
use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::circuit::{Circuit, CircuitState};
use seawall_hub_core::domain::key::Key;
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::source::Source;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{Page, PageRequest, RegistrySnapshot};

use crate::record::{
    self, AlertRuleRecord, ChannelRecord, KeyRecord, Record, RuleRecord, ServiceRecord, SourceRecord,
};
use crate::sqlite::read::page::page_of;
use crate::sqlite::rows;

pub(crate) fn registered(connection: &Connection) -> rusqlite::Result<RegistrySnapshot> {
    Ok(RegistrySnapshot {
        services: all(connection, "SELECT name, document, version FROM services ORDER BY name", service)?,
        rules: all(
            connection,
            "SELECT name, document, version, service, enabled FROM rules WHERE current = 1 ORDER BY name",
            rule,
        )?,
        sources: all(
            connection,
            "SELECT name, document, version, enabled FROM sources ORDER BY name",
            source,
        )?,
        circuits: all(
            connection,
            "SELECT service, state, until, trips, reason, changed FROM circuits
             WHERE number IN (SELECT max(number) FROM circuits GROUP BY service)",
            circuit,
        )?,
        keys: all(connection, "SELECT name, document FROM keys ORDER BY name", key)?,
        alert_rules: all(
            connection,
            "SELECT name, document, version, enabled FROM alert_rules ORDER BY name",
            alert_rule,
        )?,
        channels: all(
            connection,
            "SELECT name, document, version FROM alert_channels ORDER BY name",
            channel,
        )?,
    })
}

pub(crate) fn rule_versions(connection: &Connection, name: &Slug) -> rusqlite::Result<Vec<Rule>> {
    let sql =
        "SELECT name, document, version, service, enabled FROM rules WHERE name = ?1 ORDER BY version DESC";
    connection.prepare_cached(sql)?.query_map([name.as_str()], rule)?.collect()
}

pub(crate) fn circuit_history(
    connection: &Connection,
    service: &Slug,
    limit: usize,
) -> rusqlite::Result<Vec<Circuit>> {
    let sql = "SELECT service, state, until, trips, reason, changed FROM circuits WHERE service = ?1
               ORDER BY number DESC LIMIT ?2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection.prepare_cached(sql)?.query_map(params![service.as_str(), limit], circuit)?.collect()
}

pub(crate) fn audit(connection: &Connection, page: PageRequest) -> rusqlite::Result<Page<AuditEntry>> {
    let sql = "SELECT number, at, who, action, target, reason, trace FROM audit WHERE number < ?1
               ORDER BY number DESC LIMIT ?2";
    page_of(connection, sql, page, None, audit_entry, |_| true)
}

fn all<T>(
    connection: &Connection,
    sql: &str,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map([], read)?.collect()
}

/// Reads the document in the second column. The first has the name.
fn document<R: Record>(row: &Row<'_>) -> rusqlite::Result<R> {
    let (name, document) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
    record::decode(name, document).map_err(|error| rows::strange(1, error))
}

fn version(row: &Row<'_>) -> rusqlite::Result<u64> {
    row.get::<_, i64>(2).map(i64::cast_unsigned)
}

fn service(row: &Row<'_>) -> rusqlite::Result<Service> {
    Ok(document::<ServiceRecord>(row)?.into_service(rows::slug(row, 0)?, version(row)?))
}

fn rule(row: &Row<'_>) -> rusqlite::Result<Rule> {
    let (name, service) = (rows::slug(row, 0)?, rows::slug(row, 3)?);
    Ok(document::<RuleRecord>(row)?.into_rule(name, version(row)?, service, row.get(4)?))
}

fn source(row: &Row<'_>) -> rusqlite::Result<Source> {
    Ok(document::<SourceRecord>(row)?.into_source(rows::slug(row, 0)?, version(row)?, row.get(3)?))
}

fn key(row: &Row<'_>) -> rusqlite::Result<Key> {
    Ok(document::<KeyRecord>(row)?.into_key(rows::slug(row, 0)?))
}

fn alert_rule(row: &Row<'_>) -> rusqlite::Result<AlertRule> {
    Ok(document::<AlertRuleRecord>(row)?.into_alert_rule(rows::slug(row, 0)?, version(row)?, row.get(3)?))
}

fn channel(row: &Row<'_>) -> rusqlite::Result<Channel> {
    Ok(document::<ChannelRecord>(row)?.into_channel(rows::slug(row, 0)?, version(row)?))
}

fn circuit(row: &Row<'_>) -> rusqlite::Result<Circuit> {
    let word = row.get_ref(1)?.as_str()?;
    Ok(Circuit {
        service: rows::slug(row, 0)?,
        state: CircuitState::from_word(word)
            .ok_or_else(|| rows::strange(1, format!("`{word}` is no state")))?,
        until: row.get::<_, Option<i64>>(2)?.map(Millis),
        trips: row.get(3)?,
        reason: row.get(4)?,
        changed: Millis(row.get(5)?),
    })
}

fn audit_entry(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    Ok(AuditEntry {
        at: Millis(row.get(1)?),
        who: row.get(2)?,
        action: row.get(3)?,
        target: row.get(4)?,
        reason: row.get(5)?,
        trace: row.get(6)?,
    })
}
