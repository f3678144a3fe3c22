//! Incidents of alert rules, and their notices.

use seawall_hub_core::domain::alert::Incident;
use seawall_hub_core::domain::slug::Slug;

use super::applier::{ApplyError, UnitApplier};
use crate::postgres::rows::Columns;
use crate::postgres::text::stored;
use crate::record::{self, IncidentRecord};

impl UnitApplier<'_> {
    /// Stores an incident. What others have stored of it meanwhile stays: who has acknowledged it, its end, and what was sent.
    pub(super) async fn put_incident(&self, incident: &Incident) -> Result<(), ApplyError> {
        let added = self.write_incident(ADD, incident).await?;
        if added > 0 {
            return Ok(());
        }
        let sql = "SELECT id, document FROM incidents WHERE id = $1 FOR UPDATE";
        let Some(row) = self.find(sql, &[&stored(&incident.id)]).await? else {
            // It was over, and is deleted by now.
            return self.write_incident(ADD, incident).await.map(drop);
        };
        let mut columns = Columns::new("incidents", &row);
        let id = columns.text()?;
        let known = columns.document::<IncidentRecord>(&id)?.into_incident(id);
        self.write_incident(CHANGE, &incident.clone().merged(known)).await.map(drop)
    }

    async fn write_incident(&self, sql: &str, incident: &Incident) -> Result<u64, ApplyError> {
        let document = record::encode::<IncidentRecord>(incident)?;
        self.run(
            sql,
            &[
                &stored(&incident.id),
                &incident.is_live(),
                &incident.is_open(),
                &incident.rule.as_str(),
                &incident.severity.word(),
                &incident.service.as_ref().map(Slug::as_str),
                &incident.resolved.as_ref().map(|resolved| resolved.at.0),
                &document,
            ],
        )
        .await
    }
}

const ADD: &str = "INSERT INTO incidents (id, live, is_open, rule, severity, service, resolved, document)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING";
const CHANGE: &str =
    "UPDATE incidents SET live = $2, is_open = $3, rule = $4, severity = $5, service = $6, resolved = $7,
    document = $8 WHERE id = $1";
