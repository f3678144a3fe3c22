//! The document of a version of a rule.

use std::time::Duration;

use seawall_hub_core::domain::delivery::{FailureCounting, Schedule};
use seawall_hub_core::domain::event_type::Pattern;
use seawall_hub_core::domain::rule::{OrderingRule, Rule};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use serde::{Deserialize, Serialize};

use super::text::Text;
use super::{Record, millis};

#[derive(Serialize, Deserialize)]
pub(crate) struct RuleRecord {
    events: Text<Pattern>,
    #[serde(default)]
    filter: Option<String>,
    method: String,
    path: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    body: Option<String>,
    #[serde(with = "ScheduleRecord")]
    schedule: Schedule,
    #[serde(default)]
    ordering: Option<OrderingRecord>,
    #[serde(default)]
    note: Option<String>,
    changed_ms: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Schedule")]
struct ScheduleRecord {
    #[serde(default)]
    attempts: Option<u32>,
    #[serde(rename = "age_max_ms", with = "millis")]
    age_max: Duration,
    #[serde(rename = "base_ms", with = "millis")]
    base: Duration,
    #[serde(rename = "cap_ms", with = "millis")]
    cap: Duration,
    #[serde(with = "CountingRecord")]
    count: FailureCounting,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FailureCounting", rename_all = "camelCase")]
enum CountingRecord {
    Answered,
    All,
}

#[derive(Serialize, Deserialize)]
struct OrderingRecord {
    key: String,
    hold: bool,
}

impl Record for RuleRecord {
    const TABLE: &'static str = "rules";
}

impl From<&Rule> for RuleRecord {
    fn from(rule: &Rule) -> Self {
        let rule = rule.clone();
        RuleRecord {
            events: Text(rule.events),
            filter: rule.filter,
            method: rule.method,
            path: rule.path,
            headers: rule.headers,
            body: rule.body,
            schedule: rule.schedule,
            ordering: rule.ordering.map(|OrderingRule { key, hold }| OrderingRecord { key, hold }),
            note: rule.note,
            changed_ms: rule.changed.0,
        }
    }
}

impl RuleRecord {
    pub(crate) fn into_rule(self, name: Slug, version: u64, service: Slug, enabled: bool) -> Rule {
        Rule {
            name,
            version,
            events: self.events.0,
            filter: self.filter,
            service,
            method: self.method,
            path: self.path,
            headers: self.headers,
            body: self.body,
            schedule: self.schedule,
            ordering: self.ordering.map(|OrderingRecord { key, hold }| OrderingRule { key, hold }),
            enabled,
            note: self.note,
            changed: Millis(self.changed_ms),
        }
    }
}
