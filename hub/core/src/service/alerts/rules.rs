//! Rules of alerts: changing them, and being quiet for a while.

use std::time::Duration;

use tracing::info;

use super::super::hub::{Hub, Refused, check_version};
use crate::domain::alert::{AlertRule, Condition, Kind, Mute, Tally};
use crate::domain::slug::Slug;
use crate::port::store::{Change, Store};
use crate::port::transport::Transport;

/// No rule waits longer than this, either way.
const WAIT_MAX: Duration = Duration::from_secs(86_400);

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// All rules of alerts, in the order of their names.
    pub fn alert_rules(&self) -> Vec<AlertRule> {
        self.alerts.rules()
    }

    /// A rule of alerts.
    pub fn alert_rule(&self, name: &Slug) -> Option<AlertRule> {
        self.alerts.rule(name)
    }

    /// Keeps a rule of alerts, new or changed. If it is disabled, or is about something else now, its incidents are over.
    pub async fn put_alert_rule(
        &self,
        mut rule: AlertRule,
        expected: Option<u64>,
    ) -> Result<AlertRule, Refused> {
        let _one_after_the_other = self.changing.lock().await;
        self.check_alert_rule(&rule)?;
        let before = self.alerts.rule(&rule.name);
        let found = before.as_ref().map_or(0, |rule| rule.version);
        check_version(expected, found)?;
        (rule.version, rule.changed) = (found + 1, self.now());
        let ends = match &before {
            _ if !rule.enabled => Some("the rule was disabled"),
            Some(before) if before.kind() != rule.kind() => Some("the rule was changed"),
            _ => None,
        };
        let change = Change::PutAlertRule(rule.clone());
        self.change_alert_rule(&rule.name, Some(change), ends, Some(rule.clone())).await?;
        let AlertRule { name, version, enabled, .. } = &rule;
        info!(target: "seawall", rule = name.as_str(), version, enabled, "[Alerts][PutRule] Success.");
        Ok(rule)
    }

    /// Deletes a rule of alerts. One that came with the hub is as it came.
    pub async fn delete_alert_rule(&self, name: &Slug, expected: Option<u64>) -> Result<(), Refused> {
        let _one_after_the_other = self.changing.lock().await;
        let rule = self.alerts.rule(name).ok_or(Refused::Missing)?;
        check_version(expected, rule.version)?;
        let usual = AlertRule::kind_named(name).map(|kind| AlertRule::usual(name.clone(), kind));
        // One that was never changed is as it came already.
        let change = (rule.version > 0).then(|| Change::DeleteAlertRule(name.clone(), rule.version));
        let ends = usual.is_none().then_some("the rule was deleted");
        self.change_alert_rule(name, change, ends, usual).await?;
        info!(target: "seawall", rule = name.as_str(), "[Alerts][DeleteRule] Success.");
        Ok(())
    }

    /// Nobody is told by this rule for a while, or again from now on.
    pub async fn mute_alert_rule(&self, name: &Slug, muted: Option<Mute>) -> Result<AlertRule, Refused> {
        let rule = self.alerts.rule(name).ok_or(Refused::Missing)?;
        let version = rule.version;
        self.put_alert_rule(AlertRule { muted, ..rule }, Some(version)).await
    }

    /// The change of a rule, and the end of its incidents if it has that consequence, in one unit. Nobody judges by the rule
    /// before meanwhile: it would open what has just been ended.
    async fn change_alert_rule(
        &self,
        rule: &Slug,
        change: Option<Change>,
        ends: Option<&str>,
        next: Option<AlertRule>,
    ) -> Result<(), Refused> {
        let mut live = self.alerts.live.lock().await;
        let mut changes: Vec<Change> = change.into_iter().collect();
        if let Some(because) = ends {
            let wall = self.now();
            for kept in live.incidents.values() {
                let mut incident = kept.incident.clone();
                if incident.rule == *rule && incident.is_open() {
                    incident.resolve(because, wall);
                    changes.push(Change::PutIncident(Box::new(incident)));
                }
            }
            self.commit_all(changes).await?;
            live.end(rule, because, wall);
        } else if !changes.is_empty() {
            self.commit_all(changes).await?;
        }
        self.alerts.use_rule(rule, next);
        drop(live);
        self.alerts.bell.notify_one();
        Ok(())
    }

    fn check_alert_rule(&self, rule: &AlertRule) -> Result<(), Refused> {
        let mut wrong = Vec::new();
        let mut say = |field: &str, reason: String| wrong.push((field.to_owned(), reason));
        if AlertRule::kind_named(&rule.name).is_some_and(|kind| kind != rule.kind()) {
            say(
                "kind",
                "a rule that came with the hub stays of its kind; write one under another name".into(),
            );
        }
        let channels = rule.channels.iter().flatten().filter(|name| name.as_str() != super::LOG);
        for name in channels.filter(|name| self.alerts.channel(name).is_none()) {
            say("channels", format!("there is no channel `{name}`"));
        }
        if rule.services.is_some() && !rule.kind().is_of_services() {
            let kind = rule.kind().word();
            say("services", format!("`{kind}` is about the hub, not about services"));
        }
        for name in rule.services.iter().flatten().filter(|name| self.service(name).is_none()) {
            say("services", format!("there is no service `{name}`"));
        }
        for (field, time) in [("for", rule.holds), ("resolveAfter", rule.clears)] {
            if time > WAIT_MAX {
                say(field, "it is a day at most".into());
            }
        }
        let window = match rule.condition {
            Condition::DeadLetters { window, .. }
            | Condition::Warnings { window, .. }
            | Condition::Errors { window, .. } => Some(window),
            _ => None,
        };
        if window.is_some_and(|window| window.is_zero() || window > Tally::LONGEST) {
            say("window", "it is more than zero, and a day at most".into());
        }
        if rule.kind() == Kind::OldestDue
            && rule.condition == (Condition::OldestDue { older_than: Duration::ZERO })
        {
            say("olderThan", "it is more than zero".into());
        }
        if wrong.is_empty() { Ok(()) } else { Err(Refused::Wrong(wrong)) }
    }
}
