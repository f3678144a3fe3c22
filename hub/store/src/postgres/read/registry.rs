//! What is registered, the circuits of services, and who has changed what.

use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::circuit::{Circuit, CircuitState};
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{Page, PageRequest, RegistrySnapshot};
use tokio_postgres::Row;

use super::{limit, page_start, read_all};
use crate::postgres::engine::session::Session;
use crate::postgres::rows::{Columns, ReadError};
use crate::record::{
    AlertRuleRecord, ChannelRecord, KeyRecord, Record, RuleRecord, ServiceRecord, SourceRecord, UnreadableRow,
};

/// The query for all that is registered. It is one statement, so that a rule is never seen without its service.
const REGISTERED: &str = "SELECT name, document, kind, version, enabled, service FROM (
     SELECT 0 AS kind, name, document, version, true AS enabled, NULL AS service FROM services
     UNION ALL SELECT 1, name, document, version, enabled, service FROM rules WHERE current
     UNION ALL SELECT 2, name, document, version, enabled, NULL FROM sources
     UNION ALL SELECT 3, name, document, 0, true, NULL FROM keys
     UNION ALL SELECT 4, name, document, version, enabled, NULL FROM alert_rules
     UNION ALL SELECT 5, name, document, version, true, NULL FROM alert_channels) registered
     ORDER BY kind, name";

pub(in crate::postgres) async fn registered(session: &Session) -> Result<RegistrySnapshot, ReadError> {
    let rows = session.rows(REGISTERED, &[]).await?;
    let sql = "SELECT DISTINCT ON (service) service, state, until, trips, reason, changed FROM circuits
               ORDER BY service, number DESC";
    let mut all = RegistrySnapshot {
        circuits: read_all("circuits", &session.rows(sql, &[]).await?, circuit)?,
        ..RegistrySnapshot::default()
    };
    for row in &rows {
        add_registered(&mut all, row)?;
    }
    Ok(all)
}

/// Adds a row of [`REGISTERED`].
fn add_registered(all: &mut RegistrySnapshot, row: &Row) -> Result<(), ReadError> {
    match row.try_get::<_, i32>("kind")? {
        0 => all.services.push(registration(row, |record: ServiceRecord, columns, name| {
            Ok(record.into_service(name, columns.number()?))
        })?),
        1 => all.rules.push(registration(row, |record: RuleRecord, columns, name| {
            let (version, enabled) = (columns.number()?, columns.value()?);
            Ok(record.into_rule(name, version, columns.slug()?, enabled))
        })?),
        2 => all.sources.push(registration(row, |record: SourceRecord, columns, name| {
            Ok(record.into_source(name, columns.number()?, columns.value()?))
        })?),
        3 => all.keys.push(registration(row, |record: KeyRecord, _, name| Ok(record.into_key(name)))?),
        4 => all.alert_rules.push(registration(row, |record: AlertRuleRecord, columns, name| {
            Ok(record.into_alert_rule(name, columns.number()?, columns.value()?))
        })?),
        _ => all.channels.push(registration(row, |record: ChannelRecord, columns, name| {
            Ok(record.into_channel(name, columns.number()?))
        })?),
    }
    Ok(())
}

/// Reads the name and the document of a row of [`REGISTERED`], and then its other columns from the version on.
fn registration<R: Record, T>(
    row: &Row,
    read: impl FnOnce(R, &mut Columns<'_>, Slug) -> Result<T, UnreadableRow>,
) -> Result<T, UnreadableRow> {
    let mut columns = Columns::new(R::TABLE, row);
    let name = columns.slug()?;
    let record = columns.document(name.as_str())?;
    columns.skip();
    read(record, &mut columns, name)
}

pub(in crate::postgres) async fn rule_versions(
    session: &Session,
    name: &Slug,
) -> Result<Vec<Rule>, ReadError> {
    let sql =
        "SELECT name, document, version, service, enabled FROM rules WHERE name = $1 ORDER BY version DESC";
    let rows = session.rows(sql, &[&name.as_str()]).await?;
    read_all(RuleRecord::TABLE, &rows, |columns| {
        let name = columns.slug()?;
        let record: RuleRecord = columns.document(name.as_str())?;
        Ok(record.into_rule(name, columns.number()?, columns.slug()?, columns.value()?))
    })
}

pub(in crate::postgres) async fn circuit_history(
    session: &Session,
    service: &Slug,
    most: usize,
) -> Result<Vec<Circuit>, ReadError> {
    let sql = "SELECT service, state, until, trips, reason, changed FROM circuits WHERE service = $1
               ORDER BY number DESC LIMIT $2";
    read_all("circuits", &session.rows(sql, &[&service.as_str(), &limit(most)]).await?, circuit)
}

pub(in crate::postgres) async fn audit(
    session: &Session,
    page: PageRequest,
) -> Result<Page<AuditEntry>, ReadError> {
    let sql = "SELECT number, at, who, action, target, reason, trace FROM audit WHERE number < $1
               ORDER BY number DESC LIMIT $2";
    let rows = session.rows(sql, &[&page_start(page), &limit(page.size)]).await?;
    let items = read_all("audit", &rows, audit_entry)?;
    let full = rows.last().filter(|_| rows.len() >= page.size);
    let next = full.map(|row| row.try_get::<_, i64>(0)).transpose()?;
    Ok(Page { items, next: next.map(i64::cast_unsigned) })
}

fn circuit(columns: &mut Columns<'_>) -> Result<Circuit, UnreadableRow> {
    Ok(Circuit {
        service: columns.slug()?,
        state: columns.word(CircuitState::from_word)?,
        until: columns.time_or_null()?,
        trips: columns.count()?,
        reason: columns.text_or_null()?,
        changed: columns.time()?,
    })
}

fn audit_entry(columns: &mut Columns<'_>) -> Result<AuditEntry, UnreadableRow> {
    columns.skip();
    Ok(AuditEntry {
        at: columns.time()?,
        who: columns.text()?,
        action: columns.text()?,
        target: columns.text()?,
        reason: columns.text_or_null()?,
        trace: columns.text_or_null()?,
    })
}
