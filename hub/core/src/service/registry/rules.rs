//! Rules: keeping them with all their versions, enabling, rolling back and deleting them.

use std::time::Duration;

use tracing::{info, warn};

use super::change_key::{ChangeKey, note_of};
use super::services::{AT_ONCE, PendingPolicy};
use crate::domain::rule::Rule;
use crate::domain::slug::Slug;
use crate::port::store::{Change, DeliverySelector, Store, StoreError};
use crate::port::transport::Transport;
use crate::service::bridge::rule_set::compile;
use crate::service::context::Context;
use crate::service::gateway::call::GATEWAY_RULE;
use crate::service::handles::RegistryHandle;
use crate::service::shared::{ChangeError, check_version};

/// The wait before a store that could not be reached is asked again.
const STORE_AGAIN: Duration = Duration::from_secs(1);

impl<S: Store + Clone, T: Transport> RegistryHandle<S, T> {
    /// Creates or changes a rule, and applies it from now on. `expected` is the version that the caller has seen. A rule without
    /// a difference keeps its version.
    pub async fn put_rule(
        &self,
        cx: &Context,
        rule: Rule,
        expected: Option<u64>,
    ) -> Result<Rule, ChangeError> {
        self.put_rule_once(cx, rule, expected, None).await
    }

    /// Creates or changes a rule, once under an idempotency key.
    pub async fn put_rule_once(
        &self,
        cx: &Context,
        mut rule: Rule,
        expected: Option<u64>,
        once: Option<ChangeKey>,
    ) -> Result<Rule, ChangeError> {
        let _one_after_the_other = self.core.changing.lock().await;
        self.core.check_repeated(cx, once.as_ref()).await?;
        let program = match compile(&rule) {
            Ok(program) if self.problems_of_names(Some(&rule.name), Some(&rule.service)).is_empty() => {
                program
            }
            _ => return Err(ChangeError::Wrong(self.problems_of(&rule))),
        };
        let before = self.core.rule(&rule.name);
        let found = before.as_ref().map_or(0, |rule| rule.version);
        check_version(expected, found)?;
        // One that was deleted has left its versions behind: a version never means two things.
        let last = match before {
            Some(_) => found,
            None => self.core.store.rule_versions(&rule.name).await?.first().map_or(0, |rule| rule.version),
        };
        if !rule.enabled && rule.note.is_none() {
            // A change of other fields does not have to repeat whether the rule is enabled.
            rule.note = before.as_ref().and_then(|before| before.note.clone());
        }
        if let Some(before) = &before {
            (rule.version, rule.changed) = (before.version, before.changed);
            if rule == *before {
                // A rule that says the same is no new version: files that are applied again and again leave no trace.
                return Ok(rule);
            }
        }
        (rule.version, rule.changed) = (last + 1, cx.now);
        self.core.commit_once(cx, once, note_of(found), Change::PutRule(rule.clone())).await?;
        self.core.deliver.put_rule(&rule);
        self.core.accept.rules().put(&rule, program);
        self.core.rules.write().insert(rule.name.clone(), rule.clone());
        let (name, service, note) = (rule.name.as_str(), rule.service.as_str(), rule.note.as_deref());
        let Rule { version, enabled, .. } = rule;
        info!(target: "seawall", rule = name, version, service, enabled, note, "[Registry][PutRule] Success.");
        if rule.enabled && before.is_some_and(|rule| !rule.enabled) {
            self.release(cx, &rule.name).await?;
        }
        Ok(rule)
    }

    /// Returns everything that is wrong with a rule: each field with its reason.
    fn problems_of(&self, rule: &Rule) -> Vec<(String, String)> {
        let mistakes = compile(rule).err().unwrap_or_default();
        let mut problems: Vec<(String, String)> =
            mistakes.into_iter().map(|mistake| (mistake.place, mistake.reason)).collect();
        problems.extend(self.problems_of_names(Some(&rule.name), Some(&rule.service)));
        problems
    }

    /// Returns what is wrong with the name and the service of a rule, as far as they are known.
    #[must_use]
    pub fn problems_of_names(&self, name: Option<&Slug>, service: Option<&Slug>) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        if name.is_some_and(|name| name.as_str() == GATEWAY_RULE) {
            problems.push(("name".into(), "deliveries of calls stand under it; take another one".into()));
        }
        if let Some(service) = service.filter(|service| self.core.service(service).is_none()) {
            problems.push(("service".into(), format!("there is no service `{service}`; register it first")));
        }
        problems
    }

    /// Releases the deliveries that a rule holds.
    async fn release(&self, cx: &Context, rule: &Slug) -> Result<(), ChangeError> {
        while self.core.commit(cx, Change::ReleaseHeld { rule: rule.clone(), limit: AT_ONCE }).await?.touched
            > 0
        {}
        self.core.deliver.wake_all();
        Ok(())
    }

    /// Releases held deliveries of enabled rules, because the process before may have ended in between.
    pub(in crate::service) async fn release_enabled(&self, cx: &Context) -> Result<(), ChangeError> {
        for rule in self.core.rules().into_iter().filter(|rule| rule.enabled) {
            self.release_rest(cx, &rule.name).await?;
        }
        Ok(())
    }

    /// Releases the rest of the deliveries that an enabled rule still holds.
    async fn release_rest(&self, cx: &Context, rule: &Slug) -> Result<(), ChangeError> {
        let left = self.core.store.pending(DeliverySelector::HeldBy(rule.clone()), 1).await?;
        if left > 0 { self.release(cx, rule).await } else { Ok(()) }
    }

    /// Enables or disables a rule. A rule that is enabled already releases the rest: the store may have been full when it was
    /// enabled.
    pub async fn enable_rule(
        &self,
        cx: &Context,
        name: &Slug,
        enabled: bool,
        note: Option<String>,
    ) -> Result<Rule, ChangeError> {
        let rule = self.core.rule(name).ok_or(ChangeError::Missing)?;
        if rule.enabled == enabled {
            let _one_after_the_other = self.core.changing.lock().await;
            if self.core.rule(name).is_some_and(|rule| rule.enabled) {
                self.release_rest(cx, name).await?;
            }
            return Ok(rule);
        }
        let version = rule.version;
        self.put_rule(cx, Rule { enabled, note, ..rule }, Some(version)).await
    }

    /// Disables a rule whose service answered 410 Gone: its deliveries are held until somebody has looked. Not if the rule has
    /// another service by now.
    pub(in crate::service) async fn pause_gone(&self, name: &Slug, peer: &Slug) {
        let note = "disabled by the hub: the service answered 410 Gone; enable it when the service is back";
        while self.core.rule(name).is_some_and(|rule| rule.enabled && rule.service == *peer) {
            match self.enable_rule(&self.core.own_context(), name, false, Some(note.into())).await {
                Ok(rule) => {
                    let service = rule.service.as_str();
                    warn!(
                        target: "seawall", rule = name.as_str(), service, triggerCause = "the service answered 410 Gone",
                        action = "ManualReview", "[Deliver][PauseRule] Fallback activated."
                    );
                    return;
                }
                // Somebody changed it at the same moment.
                Err(ChangeError::Store(StoreError::Stale { .. })) => {}
                Err(ChangeError::Store(StoreError::Unavailable { .. })) => {
                    tokio::time::sleep(STORE_AGAIN).await;
                }
                // A rule that is gone needs no pausing; a store that does not take it says so elsewhere too.
                _ => return,
            }
        }
    }

    /// Restores an earlier version of a rule as a new version.
    pub async fn roll_back_rule(
        &self,
        cx: &Context,
        name: &Slug,
        version: u64,
        expected: Option<u64>,
    ) -> Result<Rule, ChangeError> {
        let versions = self.core.store.rule_versions(name).await?;
        let Some(before) = versions.into_iter().find(|rule| rule.version == version) else {
            return Err(ChangeError::Conflict(format!(
                "rule `{name}` has no version {version}; its versions are at `…/versions`"
            )));
        };
        // What it does goes back; whether it is at work is for today.
        let today = self.core.rule(name).ok_or(ChangeError::Missing)?;
        self.put_rule(cx, Rule { enabled: today.enabled, note: today.note, ..before }, expected).await
    }

    /// Deletes a rule. Its deliveries continue, unless they are held.
    pub async fn delete_rule(
        &self,
        cx: &Context,
        name: &Slug,
        expected: Option<u64>,
        pending: PendingPolicy,
    ) -> Result<(), ChangeError> {
        let _one_after_the_other = self.core.changing.lock().await;
        let rule = self.core.rule(name).ok_or(ChangeError::Missing)?;
        check_version(expected, rule.version)?;
        let held = DeliverySelector::HeldBy(name.clone());
        let mut dead_lettered =
            self.dead_letter_pending(cx, held.clone(), &rule.service, pending, || {}).await?;
        // With what has come since: nothing is held by a rule that is gone.
        let delete = Change::DeleteRule(name.clone(), rule.version);
        let rest = Change::DeadLetterAll { selector: held, limit: u32::MAX, at: cx.now };
        dead_lettered += self.core.commit_all(cx, vec![delete, rest]).await?.touched;
        self.core.rules.write().remove(name);
        self.core.deliver.remove_rule(name);
        self.core.accept.rules().remove(name);
        info!(target: "seawall", rule = name.as_str(), deadLettered = dead_lettered, "[Registry][DeleteRule] Success.");
        Ok(())
    }

    /// Applies the stored rules.
    pub(in crate::service) fn use_rules(&self) {
        let rules = self.core.rules();
        self.core.deliver.put_rules(&rules);
        for rule in &rules {
            // One that can't be compiled was written by another version of the hub, and is left out.
            if let Ok(program) = compile(rule) {
                self.core.accept.rules().put(rule, program);
            }
        }
    }

    /// Lists all rules, in the order of their names.
    #[must_use]
    pub fn rules(&self) -> Vec<Rule> {
        self.core.rules()
    }

    /// Returns the rule with this name.
    #[must_use]
    pub fn rule(&self, name: &Slug) -> Option<Rule> {
        self.core.rule(name)
    }
}
