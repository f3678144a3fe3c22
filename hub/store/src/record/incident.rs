//! The documents of incidents.

use seawall_hub_core::domain::alert::{
    Acknowledgement, ConditionKind, Incident, Mute, Notice, Resolution, Severity,
};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Record;
use super::notice::{notice_from_json, notice_to_json};
use super::text::Text;

/// An incident without its id.
#[derive(Serialize, Deserialize)]
pub(crate) struct IncidentRecord {
    rule: Text<Slug>,
    kind: Text<ConditionKind>,
    severity: Text<Severity>,
    #[serde(default)]
    service: Option<Text<Slug>>,
    opened_ms: i64,
    updated_ms: i64,
    #[serde(default)]
    resolved: Option<ResolutionRecord>,
    value: Text<f64>,
    summary: String,
    #[serde(default)]
    acknowledged: Option<AcknowledgementRecord>,
    #[serde(default)]
    muted: Option<MuteRecord>,
    notified: bool,
    notices: Vec<NoticeRecord>,
}

#[derive(Serialize, Deserialize)]
struct ResolutionRecord {
    at_ms: i64,
    because: String,
}

#[derive(Serialize, Deserialize)]
struct AcknowledgementRecord {
    who: String,
    at_ms: i64,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct MuteRecord {
    until_ms: i64,
    reason: String,
}

impl From<Mute> for MuteRecord {
    fn from(mute: Mute) -> Self {
        MuteRecord { until_ms: mute.until.0, reason: mute.reason }
    }
}

impl From<MuteRecord> for Mute {
    fn from(record: MuteRecord) -> Self {
        Mute { until: Millis(record.until_ms), reason: record.reason }
    }
}

/// A notice, as the list of its values.
struct NoticeRecord(Notice);

impl Serialize for NoticeRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        notice_to_json(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for NoticeRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let notice = notice_from_json(&Value::deserialize(deserializer)?);
        notice.map(NoticeRecord).ok_or_else(|| D::Error::custom("a notice is not known"))
    }
}

impl Record for IncidentRecord {
    const TABLE: &'static str = "incidents";
}

impl From<&Incident> for IncidentRecord {
    fn from(incident: &Incident) -> Self {
        let incident = incident.clone();
        IncidentRecord {
            rule: Text(incident.rule),
            kind: Text(incident.kind),
            severity: Text(incident.severity),
            service: incident.service.map(Text),
            opened_ms: incident.opened.0,
            updated_ms: incident.updated.0,
            resolved: incident
                .resolved
                .map(|Resolution { at, because }| ResolutionRecord { at_ms: at.0, because }),
            value: Text(incident.value),
            summary: incident.summary,
            acknowledged: incident.acknowledged.map(|Acknowledgement { who, at, reason }| {
                AcknowledgementRecord { who, at_ms: at.0, reason }
            }),
            muted: incident.muted.map(Into::into),
            notified: incident.notified,
            notices: incident.notices.into_iter().map(NoticeRecord).collect(),
        }
    }
}

impl IncidentRecord {
    pub(crate) fn into_incident(self, id: String) -> Incident {
        Incident {
            id,
            rule: self.rule.0,
            kind: self.kind.0,
            severity: self.severity.0,
            service: self.service.map(|service| service.0),
            opened: Millis(self.opened_ms),
            updated: Millis(self.updated_ms),
            resolved: self
                .resolved
                .map(|ResolutionRecord { at_ms, because }| Resolution { at: Millis(at_ms), because }),
            value: self.value.0,
            summary: self.summary,
            acknowledged: self.acknowledged.map(|AcknowledgementRecord { who, at_ms, reason }| {
                Acknowledgement { who, at: Millis(at_ms), reason }
            }),
            muted: self.muted.map(Into::into),
            notified: self.notified,
            notices: self.notices.into_iter().map(|NoticeRecord(notice)| notice).collect(),
        }
    }
}
