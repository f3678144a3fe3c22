//! Incidents of alert rules.

use seawall_hub_core::domain::alert::{Incident, Severity};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{IncidentFilter, Page, PageRequest};

use super::scan::{RESERVED, Scan};
use super::values::Conditions;
use super::{read_all, read_one};
use crate::postgres::engine::session::Session;
use crate::postgres::rows::{Columns, ReadError};
use crate::postgres::text::stored;
use crate::record::{IncidentRecord, Record, UnreadableRow};

pub(in crate::postgres) async fn live_incidents(session: &Session) -> Result<Vec<Incident>, ReadError> {
    let sql = "SELECT number, id, document FROM incidents WHERE live ORDER BY number";
    read_all(IncidentRecord::TABLE, &session.rows(sql, &[]).await?, incident_row)
}

pub(in crate::postgres) async fn incident(
    session: &Session,
    id: &str,
) -> Result<Option<Incident>, ReadError> {
    let found =
        session.find("SELECT number, id, document FROM incidents WHERE id = $1", &[&stored(id)]).await?;
    read_one(IncidentRecord::TABLE, found.as_ref(), incident_row)
}

pub(in crate::postgres) async fn incidents(
    session: &Session,
    filter: &IncidentFilter,
    page: PageRequest,
) -> Result<Page<Incident>, ReadError> {
    let mut conditions = Conditions::behind(RESERVED);
    let name = |slug: &Option<Slug>| slug.as_ref().map(Slug::to_string);
    conditions.ask("is_open = ?", filter.open);
    conditions.ask("severity = ?", filter.severity.map(Severity::word));
    conditions.ask("service = ?", name(&filter.service));
    conditions.ask("rule = ?", name(&filter.rule));
    let only = filter.only.as_ref().map(|only| only.iter().map(Slug::to_string).collect::<Vec<_>>());
    conditions.ask("service = ANY (?)", only);
    let scan = Scan {
        table: IncidentRecord::TABLE,
        walk: "SELECT * FROM incidents WHERE number < $1".to_owned(),
        matches: format!("SELECT number, id, document FROM chunk WHERE true{}", conditions.sql()),
        conditions,
    };
    scan.page(session, page, incident_row).await
}

pub(in crate::postgres) async fn dead_since(
    session: &Session,
    since: Millis,
    most: u32,
) -> Result<Vec<(Slug, u32)>, ReadError> {
    let sql =
        "SELECT d.service, count(*) FROM (SELECT delivery FROM dead_letters WHERE at >= $1 ORDER BY at DESC LIMIT $2) l
         JOIN deliveries d ON d.number = l.delivery GROUP BY d.service ORDER BY d.service";
    let rows = session.rows(sql, &[&since.0, &i64::from(most)]).await?;
    read_all("dead_letters", &rows, |columns| Ok((columns.slug()?, columns.count()?)))
}

fn incident_row(columns: &mut Columns<'_>) -> Result<Incident, UnreadableRow> {
    columns.skip();
    let id = columns.text()?;
    let record: IncidentRecord = columns.document(&id)?;
    Ok(record.into_incident(id))
}
