//! Rules: keeping them with all their versions, enabling, rolling back and deleting them.

use std::sync::PoisonError;

use tracing::{info, warn};

use super::call::GATEWAY_RULE;
use super::hub::{Hub, Refused, check_version, sorted};
use super::rulebook::compile;
use super::services::{AT_ONCE, Pending};
use crate::domain::rule::Rule;
use crate::domain::slug::Slug;
use crate::port::store::{Change, Store, StoreError, Whose};
use crate::port::transport::Transport;

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Keeps a rule, new or changed, and goes by it from now on. `expected` is the version that whoever changes it has seen. A rule
    /// that is there already as it is stays as it is, with its version.
    pub async fn put_rule(&self, mut rule: Rule, expected: Option<u64>) -> Result<Rule, Refused> {
        let _one_after_the_other = self.changing.lock().await;
        let program = match compile(&rule) {
            Ok(program) if self.problems_beside_text(&rule).is_empty() => program,
            _ => return Err(Refused::Wrong(self.problems_of(&rule))),
        };
        let before = self.rule(&rule.name);
        let found = before.as_ref().map_or(0, |rule| rule.version);
        check_version(expected, found)?;
        // One that was deleted has left its versions behind: a version never means two things.
        let last = match before {
            Some(_) => found,
            None => self.store.rule_versions(&rule.name).await?.first().map_or(0, |rule| rule.version),
        };
        if !rule.enabled && rule.note.is_none() {
            // Whoever changes something else does not have to know why it is not at work.
            rule.note = before.as_ref().and_then(|before| before.note.clone());
        }
        if let Some(before) = &before {
            (rule.version, rule.changed) = (before.version, before.changed);
            if rule == *before {
                // A rule that says the same is no new version: whoever applies files again and again leaves no trace.
                return Ok(rule);
            }
        }
        (rule.version, rule.changed) = (last + 1, self.now());
        self.commit(Change::PutRule(rule.clone())).await?;
        self.deliver.put_rule(&rule);
        self.accept.rules().put(&rule, program);
        self.rules.write().unwrap_or_else(PoisonError::into_inner).insert(rule.name.clone(), rule.clone());
        let (name, service, note) = (rule.name.as_str(), rule.service.as_str(), rule.note.as_deref());
        let Rule { version, enabled, .. } = rule;
        info!(target: "seawall", rule = name, version, service, enabled, note, "[Registry][PutRule] Success.");
        if rule.enabled && before.is_some_and(|rule| !rule.enabled) {
            self.release(&rule.name).await?;
        }
        Ok(rule)
    }

    /// Everything that is wrong with a rule: each field with its reason.
    pub fn problems_of(&self, rule: &Rule) -> Vec<(String, String)> {
        let mistakes = compile(rule).err().unwrap_or_default();
        let mut problems: Vec<(String, String)> =
            mistakes.into_iter().map(|mistake| (mistake.place, mistake.reason)).collect();
        problems.extend(self.problems_beside_text(rule));
        problems
    }

    /// What is wrong with a rule that can be compiled.
    fn problems_beside_text(&self, rule: &Rule) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        if rule.name.as_str() == GATEWAY_RULE {
            problems.push(("name".into(), "deliveries of calls stand under it; take another one".into()));
        }
        if self.service(&rule.service).is_none() {
            let reason = format!("there is no service `{}`; register it first", rule.service);
            problems.push(("service".into(), reason));
        }
        problems
    }

    /// What was held for a rule goes on.
    async fn release(&self, rule: &Slug) -> Result<(), Refused> {
        while self.commit(Change::Release { rule: rule.clone(), most: AT_ONCE }).await?.touched > 0 {}
        self.deliver.look_again();
        Ok(())
    }

    /// The process before may have ended between enabling a rule and letting go all that it held.
    pub(super) async fn release_enabled(&self) -> Result<(), Refused> {
        for rule in self.rules().into_iter().filter(|rule| rule.enabled) {
            self.release_rest(&rule.name).await?;
        }
        Ok(())
    }

    /// What is left of what a rule that is at work has held.
    async fn release_rest(&self, rule: &Slug) -> Result<(), Refused> {
        let left = self.store.pending(Whose::HeldBy(rule.clone()), 1).await?;
        if left > 0 { self.release(rule).await } else { Ok(()) }
    }

    /// Puts a rule to work, or holds what it matches. One that is at work lets go what is left: the store may have been full when
    /// it was enabled.
    pub async fn enable_rule(
        &self,
        name: &Slug,
        enabled: bool,
        note: Option<String>,
    ) -> Result<Rule, Refused> {
        let rule = self.rule(name).ok_or(Refused::Missing)?;
        if rule.enabled == enabled {
            let _one_after_the_other = self.changing.lock().await;
            if self.rule(name).is_some_and(|rule| rule.enabled) {
                self.release_rest(name).await?;
            }
            return Ok(rule);
        }
        let version = rule.version;
        self.put_rule(Rule { enabled, note, ..rule }, Some(version)).await
    }

    /// A peer says that it is gone for good: its rule is paused, and what comes is held until somebody has looked. Not if the rule
    /// sends elsewhere by now.
    pub(super) async fn pause_gone(&self, name: &Slug, peer: &Slug) {
        let note = "paused by the hub: the peer answered 410, gone for good; enable it when the peer is back";
        while self.rule(name).is_some_and(|rule| rule.enabled && rule.service == *peer) {
            match self.enable_rule(name, false, Some(note.into())).await {
                Ok(rule) => {
                    let service = rule.service.as_str();
                    warn!(
                        target: "seawall", rule = name.as_str(), service, triggerCause = "the peer answered 410, gone for good",
                        action = "ManualReview", "[Deliver][PauseRule] Fallback activated."
                    );
                    return;
                }
                // Somebody changed it at the same moment.
                Err(Refused::Store(StoreError::Stale { .. })) => {}
                // A rule that is gone needs no pausing; a store that does not take it says so elsewhere too.
                _ => return,
            }
        }
    }

    /// A rule as it was at this version, as a new version.
    pub async fn roll_back_rule(
        &self,
        name: &Slug,
        version: u64,
        expected: Option<u64>,
    ) -> Result<Rule, Refused> {
        let versions = self.store.rule_versions(name).await?;
        let Some(before) = versions.into_iter().find(|rule| rule.version == version) else {
            return Err(Refused::Conflict(format!(
                "rule `{name}` has no version {version}; its versions are at `…/versions`"
            )));
        };
        // What it does goes back; whether it is at work is for today.
        let today = self.rule(name).ok_or(Refused::Missing)?;
        self.put_rule(Rule { enabled: today.enabled, note: today.note, ..before }, expected).await
    }

    /// Deletes a rule. Deliveries that it has asked for go on, unless they are held.
    pub async fn delete_rule(
        &self,
        name: &Slug,
        expected: Option<u64>,
        pending: Pending,
    ) -> Result<(), Refused> {
        let _one_after_the_other = self.changing.lock().await;
        let rule = self.rule(name).ok_or(Refused::Missing)?;
        check_version(expected, rule.version)?;
        let held = Whose::HeldBy(name.clone());
        let mut buried = self.bury(held.clone(), &rule.service, pending, || {}).await?;
        // With what has come since: nothing is held by a rule that is gone.
        let delete = Change::DeleteRule(name.clone(), rule.version);
        let rest = Change::Bury { whose: held, most: u32::MAX, at: self.now() };
        buried += self.commit_all(vec![delete, rest]).await?.touched;
        self.rules.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.deliver.remove_rule(name);
        self.accept.rules().remove(name);
        info!(target: "seawall", rule = name.as_str(), deadLettered = buried, "[Registry][DeleteRule] Success.");
        Ok(())
    }

    /// Goes by the rules that were kept.
    pub(super) fn use_rules(&self) {
        let rules = self.rules();
        self.deliver.put_rules(&rules);
        for rule in &rules {
            // One that can't be compiled was written by another version of the hub, and is left out.
            if let Ok(program) = compile(rule) {
                self.accept.rules().put(rule, program);
            }
        }
    }

    /// All rules, in the order of their names.
    pub fn rules(&self) -> Vec<Rule> {
        sorted(&self.rules, |rule| &rule.name)
    }

    /// A rule.
    pub fn rule(&self, name: &Slug) -> Option<Rule> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}
