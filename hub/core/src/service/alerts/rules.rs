//! Rules of alerts: changing them, and being quiet for a while.

use std::time::Duration;

use tracing::info;

use crate::domain::alert::{AlertRule, Condition, ConditionKind, GrowthWindow, Mute};
use crate::domain::slug::Slug;
use crate::port::store::{Change, Store};
use crate::port::transport::Transport;
use crate::service::context::Context;
use crate::service::handles::AlertHandle;
use crate::service::shared::{ChangeError, check_version};

/// The longest time after which a rule may open or resolve.
const WAIT_MAX: Duration = Duration::from_secs(86_400);

impl<S: Store + Clone, T: Transport> AlertHandle<S, T> {
    /// Lists all alert rules, in the order of their names.
    #[must_use]
    pub fn alert_rules(&self) -> Vec<AlertRule> {
        self.core.alerts.rules()
    }

    /// Returns the alert rule with this name.
    #[must_use]
    pub fn alert_rule(&self, name: &Slug) -> Option<AlertRule> {
        self.core.alerts.rule(name)
    }

    /// Creates or changes an alert rule. If it is disabled or has another condition, its incidents are resolved.
    pub async fn put_alert_rule(
        &self,
        cx: &Context,
        mut rule: AlertRule,
        expected: Option<u64>,
    ) -> Result<AlertRule, ChangeError> {
        let _one_after_the_other = self.core.changing.lock().await;
        self.check_alert_rule(&rule)?;
        let before = self.core.alerts.rule(&rule.name);
        let found = before.as_ref().map_or(0, |rule| rule.version);
        check_version(expected, found)?;
        (rule.version, rule.changed) = (found + 1, cx.now);
        let ends = match &before {
            _ if !rule.enabled => Some("the rule was disabled"),
            Some(before) if before.kind() != rule.kind() => Some("the rule was changed"),
            _ => None,
        };
        let change = Change::PutAlertRule(rule.clone());
        self.change_alert_rule(cx, &rule.name, Some(change), ends, Some(rule.clone())).await?;
        let AlertRule { name, version, enabled, .. } = &rule;
        info!(target: "seawall", rule = name.as_str(), version, enabled, "[Alerts][PutRule] Success.");
        Ok(rule)
    }

    /// Deletes an alert rule. A built-in one is reset.
    pub async fn delete_alert_rule(
        &self,
        cx: &Context,
        name: &Slug,
        expected: Option<u64>,
    ) -> Result<(), ChangeError> {
        let _one_after_the_other = self.core.changing.lock().await;
        let rule = self.core.alerts.rule(name).ok_or(ChangeError::Missing)?;
        check_version(expected, rule.version)?;
        let usual = AlertRule::kind_named(name).map(|kind| AlertRule::usual(name.clone(), kind));
        // One that was never changed is as it came already.
        let change = (rule.version > 0).then(|| Change::DeleteAlertRule(name.clone(), rule.version));
        let ends = usual.is_none().then_some("the rule was deleted");
        self.change_alert_rule(cx, name, change, ends, usual).await?;
        info!(target: "seawall", rule = name.as_str(), "[Alerts][DeleteRule] Success.");
        Ok(())
    }

    /// Mutes or unmutes an alert rule.
    pub async fn mute_alert_rule(
        &self,
        cx: &Context,
        name: &Slug,
        muted: Option<Mute>,
    ) -> Result<AlertRule, ChangeError> {
        let rule = self.core.alerts.rule(name).ok_or(ChangeError::Missing)?;
        let version = rule.version;
        self.put_alert_rule(cx, AlertRule { muted, ..rule }, Some(version)).await
    }

    /// Commits the change of a rule, and the end of its incidents if that is a consequence, in one unit. The old rule is not
    /// evaluated meanwhile: it would open what has just ended.
    async fn change_alert_rule(
        &self,
        cx: &Context,
        rule: &Slug,
        change: Option<Change>,
        ends: Option<&str>,
        next: Option<AlertRule>,
    ) -> Result<(), ChangeError> {
        let mut live = self.core.alerts.live.lock().await;
        let mut changes: Vec<Change> = change.into_iter().collect();
        if let Some(because) = ends {
            let wall = cx.now;
            for tracked in live.incidents.values() {
                let mut incident = tracked.incident.clone();
                if incident.rule == *rule && incident.is_open() {
                    incident.resolve(because, wall);
                    changes.push(Change::PutIncident(Box::new(incident)));
                }
            }
            self.core.commit_all(cx, changes).await?;
            live.end(rule, because, wall);
        } else if !changes.is_empty() {
            self.core.commit_all(cx, changes).await?;
        }
        self.core.alerts.use_rule(rule, next);
        drop(live);
        self.core.alerts.wake.notify_one();
        Ok(())
    }

    fn check_alert_rule(&self, rule: &AlertRule) -> Result<(), ChangeError> {
        let mut wrong = Vec::new();
        let mut say = |field: &str, reason: String| wrong.push((field.to_owned(), reason));
        if AlertRule::kind_named(&rule.name).is_some_and(|kind| kind != rule.kind()) {
            say(
                "kind",
                "the kind of a built-in rule can't be changed; create a rule with another name".into(),
            );
        }
        let channels = rule.channels.iter().flatten().filter(|name| name.as_str() != super::LOG);
        for name in channels.filter(|name| self.core.alerts.channel(name).is_none()) {
            say("channels", format!("there is no channel `{name}`"));
        }
        if rule.services.is_some() && !rule.kind().is_of_services() {
            let kind = rule.kind().word();
            say("services", format!("`{kind}` is about the hub, not about services"));
        }
        for name in rule.services.iter().flatten().filter(|name| self.core.service(name).is_none()) {
            say("services", format!("there is no service `{name}`"));
        }
        for (field, time) in [("for", rule.holds), ("resolveAfter", rule.clears)] {
            if time > WAIT_MAX {
                say(field, "must be at most one day".into());
            }
        }
        let window = match rule.condition {
            Condition::DeadLetters { window, .. }
            | Condition::Warnings { window, .. }
            | Condition::Errors { window, .. } => Some(window),
            _ => None,
        };
        if window.is_some_and(|window| window.is_zero() || window > GrowthWindow::LONGEST) {
            say("window", "must be more than zero and at most one day".into());
        }
        if rule.kind() == ConditionKind::OldestDue
            && rule.condition == (Condition::OldestDue { older_than: Duration::ZERO })
        {
            say("olderThan", "must be more than zero".into());
        }
        if wrong.is_empty() { Ok(()) } else { Err(ChangeError::Wrong(wrong)) }
    }
}
