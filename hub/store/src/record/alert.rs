//! The documents of alert rules and channels.

use std::time::Duration;

use seawall_hub_core::domain::alert::{AlertRule, Channel, Condition, Severity};
use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use serde::{Deserialize, Serialize};

use super::incident::MuteRecord;
use super::text::{Text, texts, values};
use super::{Record, millis};

#[derive(Serialize, Deserialize)]
pub(crate) struct AlertRuleRecord {
    #[serde(with = "ConditionRecord")]
    condition: Condition,
    severity: Text<Severity>,
    #[serde(default)]
    services: Option<Vec<Text<Slug>>>,
    #[serde(default)]
    channels: Option<Vec<Text<Slug>>>,
    #[serde(rename = "holds_ms", with = "millis")]
    holds: Duration,
    #[serde(rename = "clears_ms", with = "millis")]
    clears: Duration,
    #[serde(default)]
    muted: Option<MuteRecord>,
    changed_ms: i64,
}

/// A condition, with the words of `ConditionKind`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Condition", tag = "kind", rename_all = "camelCase")]
enum ConditionRecord {
    CircuitOpen,
    DeadLetters {
        more_than: u32,
        #[serde(rename = "window_ms", with = "millis")]
        window: Duration,
    },
    OldestDue {
        #[serde(rename = "older_than_ms", with = "millis")]
        older_than: Duration,
    },
    Warnings {
        more_than: u32,
        #[serde(rename = "window_ms", with = "millis")]
        window: Duration,
    },
    Errors {
        more_than: u32,
        #[serde(rename = "window_ms", with = "millis")]
        window: Duration,
    },
    DataLossRisk {
        free_below: u64,
    },
}

impl Record for AlertRuleRecord {
    const TABLE: &'static str = "alert_rules";
}

impl From<&AlertRule> for AlertRuleRecord {
    fn from(rule: &AlertRule) -> Self {
        let rule = rule.clone();
        AlertRuleRecord {
            condition: rule.condition,
            severity: Text(rule.severity),
            services: texts(rule.services),
            channels: texts(rule.channels),
            holds: rule.holds,
            clears: rule.clears,
            muted: rule.muted.map(Into::into),
            changed_ms: rule.changed.0,
        }
    }
}

impl AlertRuleRecord {
    pub(crate) fn into_alert_rule(self, name: Slug, version: u64, enabled: bool) -> AlertRule {
        AlertRule {
            name,
            version,
            condition: self.condition,
            enabled,
            severity: self.severity.0,
            services: values(self.services),
            channels: values(self.channels),
            holds: self.holds,
            clears: self.clears,
            muted: self.muted.map(Into::into),
            changed: Millis(self.changed_ms),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ChannelRecord {
    settings: Text<SealedSecret>,
    changed_ms: i64,
}

impl Record for ChannelRecord {
    const TABLE: &'static str = "alert_channels";
}

impl From<&Channel> for ChannelRecord {
    fn from(channel: &Channel) -> Self {
        let Channel { name: _, version: _, settings, changed } = channel.clone();
        ChannelRecord { settings: Text(settings), changed_ms: changed.0 }
    }
}

impl ChannelRecord {
    pub(crate) fn into_channel(self, name: Slug, version: u64) -> Channel {
        let ChannelRecord { settings: Text(settings), changed_ms } = self;
        Channel { name, version, settings, changed: Millis(changed_ms) }
    }
}
