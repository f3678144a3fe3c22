//! Incidents of alert rules, and their notices.

use rusqlite::params;
use seawall_hub_core::domain::alert::Incident;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::StoreError;

use crate::record;
use crate::sqlite::engine::writer::translate;
use crate::sqlite::read;
use crate::sqlite::write::UnitApplier;

impl UnitApplier<'_> {
    pub(crate) fn put_incident(&self, incident: &Incident) -> Result<(), StoreError> {
        let known =
            read::alerts::incident(self.connection, &incident.id).map_err(|error| translate(&error))?;
        let incident = &known.map_or_else(|| incident.clone(), |known| incident.clone().merged(known));
        let Incident { resolved, acknowledged, muted, .. } = incident;
        self.run(
            "INSERT INTO incidents
             (id, live, rule, kind, severity, service, opened, updated, resolved, because, value, summary, seen_by,
              seen_at, seen_reason, muted_until, muted_reason, told, notices)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
             ON CONFLICT (id) DO UPDATE SET live = ?2, updated = ?8, resolved = ?9, because = ?10, value = ?11,
             summary = ?12, seen_by = ?13, seen_at = ?14, seen_reason = ?15, muted_until = ?16, muted_reason = ?17,
             told = ?18, notices = ?19",
            params![
                incident.id,
                incident.is_live(),
                incident.rule.as_str(),
                incident.kind.word(),
                incident.severity.word(),
                incident.service.as_ref().map(Slug::as_str),
                incident.opened.0,
                incident.updated.0,
                resolved.as_ref().map(|resolved| resolved.at.0),
                resolved.as_ref().map(|resolved| &resolved.because),
                incident.value,
                incident.summary,
                acknowledged.as_ref().map(|seen| &seen.who),
                acknowledged.as_ref().map(|seen| seen.at.0),
                acknowledged.as_ref().and_then(|seen| seen.reason.as_ref()),
                muted.as_ref().map(|mute| mute.until.0),
                muted.as_ref().map(|mute| &mute.reason),
                incident.notified,
                record::notices_to_text(&incident.notices)
            ],
        )?;
        Ok(())
    }
}
