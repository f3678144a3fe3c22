//! The documents of alert rules and channels.

use std::time::Duration;

use seawall_hub_core::domain::alert::{AlertRule, Channel, Condition, Mute, Severity};
use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use serde::{Deserialize, Serialize};

use super::text::{Text, texts, values};
use super::{Record, millis};

#[derive(Serialize, Deserialize)]
pub(crate) struct AlertRuleRecord {
    condition: ConditionRecord,
    severity: Text<Severity>,
    #[serde(default)]
    services: Option<Vec<Text<Slug>>>,
    #[serde(default)]
    channels: Option<Vec<Text<Slug>>>,
    holds_ms: u64,
    clears_ms: u64,
    #[serde(default)]
    muted: Option<MuteRecord>,
    changed_ms: i64,
}

/// A condition, with the words of `ConditionKind`.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum ConditionRecord {
    CircuitOpen,
    DeadLetters { more_than: u32, window_ms: u64 },
    OldestDue { older_than_ms: u64 },
    Warnings { more_than: u32, window_ms: u64 },
    Errors { more_than: u32, window_ms: u64 },
    DataLossRisk { free_below: u64 },
}

#[derive(Serialize, Deserialize)]
struct MuteRecord {
    until_ms: i64,
    reason: String,
}

impl Record for AlertRuleRecord {
    const TABLE: &'static str = "alert_rules";
}

impl From<&AlertRule> for AlertRuleRecord {
    fn from(rule: &AlertRule) -> Self {
        let rule = rule.clone();
        AlertRuleRecord {
            condition: rule.condition.into(),
            severity: Text(rule.severity),
            services: texts(rule.services),
            channels: texts(rule.channels),
            holds_ms: millis(rule.holds),
            clears_ms: millis(rule.clears),
            muted: rule.muted.map(|Mute { until, reason }| MuteRecord { until_ms: until.0, reason }),
            changed_ms: rule.changed.0,
        }
    }
}

impl AlertRuleRecord {
    pub(crate) fn into_alert_rule(self, name: Slug, version: u64, enabled: bool) -> AlertRule {
        AlertRule {
            name,
            version,
            condition: self.condition.into(),
            enabled,
            severity: self.severity.0,
            services: values(self.services),
            channels: values(self.channels),
            holds: Duration::from_millis(self.holds_ms),
            clears: Duration::from_millis(self.clears_ms),
            muted: self.muted.map(|MuteRecord { until_ms, reason }| Mute { until: Millis(until_ms), reason }),
            changed: Millis(self.changed_ms),
        }
    }
}

impl From<Condition> for ConditionRecord {
    fn from(condition: Condition) -> Self {
        match condition {
            Condition::CircuitOpen => Self::CircuitOpen,
            Condition::DeadLetters { more_than, window } => {
                Self::DeadLetters { more_than, window_ms: millis(window) }
            }
            Condition::OldestDue { older_than } => Self::OldestDue { older_than_ms: millis(older_than) },
            Condition::Warnings { more_than, window } => {
                Self::Warnings { more_than, window_ms: millis(window) }
            }
            Condition::Errors { more_than, window } => Self::Errors { more_than, window_ms: millis(window) },
            Condition::DataLossRisk { free_below } => Self::DataLossRisk { free_below },
        }
    }
}

impl From<ConditionRecord> for Condition {
    fn from(record: ConditionRecord) -> Self {
        let time = Duration::from_millis;
        match record {
            ConditionRecord::CircuitOpen => Self::CircuitOpen,
            ConditionRecord::DeadLetters { more_than, window_ms } => {
                Self::DeadLetters { more_than, window: time(window_ms) }
            }
            ConditionRecord::OldestDue { older_than_ms } => {
                Self::OldestDue { older_than: time(older_than_ms) }
            }
            ConditionRecord::Warnings { more_than, window_ms } => {
                Self::Warnings { more_than, window: time(window_ms) }
            }
            ConditionRecord::Errors { more_than, window_ms } => {
                Self::Errors { more_than, window: time(window_ms) }
            }
            ConditionRecord::DataLossRisk { free_below } => Self::DataLossRisk { free_below },
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
