//! Services: registering, changing, pausing, testing and deleting them.

use std::sync::PoisonError;

use seawall::config::{Format, Origin, Plan, Setting, policy};
use seawall::{Error, GuardBuilder};
use tracing::info;

use super::hub::{Hub, Refused, check_version, sorted};
use super::watch;
use crate::domain::delivery::{ATTEMPTS, ATTEMPTS_CRITICAL};
use crate::domain::service::Service;
use crate::domain::slug::Slug;
use crate::port::store::{Change, Store, Whose};
use crate::port::transport::{Answer, NoAnswer, Transport};
use crate::render::Request;

/// What to do with deliveries that have not ended, when their service or rule is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pending {
    /// Not to delete it.
    #[default]
    Refuse,
    /// To make them dead letters.
    DeadLetter,
}

/// An attempt has so long, if the policy of its service does not say.
const ATTEMPT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// A service that is deleted has so long for what is under way. What has no answer by then becomes a dead letter like the rest.
const DRAIN_MAX: std::time::Duration = std::time::Duration::from_secs(60);

/// So many deliveries are buried or released in one unit, so that others get their turn in between.
pub(super) const AT_ONCE: u32 = 500;

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Keeps a service, new or changed, and uses it from now on. `expected` is the version that whoever changes it has seen.
    pub async fn put_service(&self, mut service: Service, expected: Option<u64>) -> Result<Service, Refused> {
        // Checked before it is kept.
        let _ = guard_of(&service)?;
        let _one_after_the_other = self.changing.lock().await;
        let found = self.service(&service.name).map_or(0, |service| service.version);
        check_version(expected, found)?;
        (service.version, service.changed) = (found + 1, self.now());
        self.commit(Change::PutService(service.clone())).await?;
        self.use_service(service.clone())?;
        let Service { name, version, paused, .. } = &service;
        info!(target: "seawall", service = name.as_str(), version, paused, "[Registry][PutService] Success.");
        Ok(service)
    }

    /// Holds the deliveries of a service, or lets them go on.
    pub async fn pause_service(&self, name: &Slug, paused: bool) -> Result<Service, Refused> {
        let service = self.service(name).ok_or(Refused::Missing)?;
        if service.paused == paused {
            return Ok(service);
        }
        let version = service.version;
        self.put_service(Service { paused, ..service }, Some(version)).await
    }

    /// Deletes a service. Not while a rule names it. What is under way is waited for: a delivery that the peer has taken is
    /// delivered, and no dead letter.
    pub async fn delete_service(
        &self,
        name: &Slug,
        expected: Option<u64>,
        pending: Pending,
    ) -> Result<(), Refused> {
        if pending == Pending::DeadLetter {
            let _one_after_the_other = self.changing.lock().await;
            self.may_delete(name, expected)?;
            self.deliver.stop_service(name);
        }
        // Whoever changes something else does not wait for it.
        self.deliver.wait_until_idle(name, DRAIN_MAX).await;
        let deleted = self.delete_idle_service(name, expected, pending).await;
        if deleted.is_err() {
            self.deliver.resume_service(name);
        }
        deleted
    }

    async fn delete_idle_service(
        &self,
        name: &Slug,
        expected: Option<u64>,
        pending: Pending,
    ) -> Result<(), Refused> {
        let _one_after_the_other = self.changing.lock().await;
        let service = self.may_delete(name, expected)?;
        let whose = Whose::Service(name.clone());
        let deleted = async {
            let buried = self.bury(whose, name, pending, || self.deliver.remove_service(name)).await?;
            self.commit(Change::DeleteService(name.clone(), service.version)).await?;
            Ok(buried)
        };
        let buried = match deleted.await {
            Ok(buried) => buried,
            Err(refused) => {
                // It is there still, and so are its rules' deliveries.
                self.use_service(service)?;
                return Err(refused);
            }
        };
        self.deliver.remove_service(name);
        self.services.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        info!(target: "seawall", service = name.as_str(), deadLettered = buried, "[Registry][DeleteService] Success.");
        Ok(())
    }

    /// The service, if it is the one that was seen and no rule names it.
    fn may_delete(&self, name: &Slug, expected: Option<u64>) -> Result<Service, Refused> {
        let service = self.service(name).ok_or(Refused::Missing)?;
        check_version(expected, service.version)?;
        let rules = self.rules();
        let used: Vec<&str> =
            rules.iter().filter(|rule| rule.service == *name).map(|rule| rule.name.as_str()).collect();
        if used.is_empty() {
            return Ok(service);
        }
        let used = used.join("`, `");
        Err(Refused::Conflict(format!("rule `{used}` sends to it; delete or change it first")))
    }

    /// Makes dead letters of what has not ended, or refuses if there is such. `stop` is called before. Says how many.
    pub(super) async fn bury(
        &self,
        whose: Whose,
        service: &Slug,
        pending: Pending,
        stop: impl FnOnce(),
    ) -> Result<usize, Refused> {
        let waiting = self.store.pending(whose.clone(), 10_000).await?;
        if waiting == 0 {
            return Ok(0);
        }
        if pending == Pending::Refuse {
            let count = match waiting {
                1 => "1 delivery has".to_owned(),
                10_000 => "10000 or more deliveries have".to_owned(),
                more => format!("{more} deliveries have"),
            };
            return Err(Refused::Conflict(format!(
                "{count} not ended; with `pending=deadLetter` they become dead letters"
            )));
        }
        stop();
        let mut buried = 0;
        loop {
            let bury = Change::Bury { whose: whose.clone(), most: AT_ONCE, at: self.now() };
            let touched = self.commit(bury).await?.touched;
            if touched == 0 {
                watch::buried(service, buried);
                return Ok(buried);
            }
            buried += touched;
        }
    }

    /// One request to a service through its guard, to see whether it answers.
    pub async fn test_service(
        &self,
        name: &Slug,
        request: &Request,
    ) -> Result<Result<Answer, Error<NoAnswer>>, Refused> {
        self.deliver.test(name, request).await.ok_or(Refused::Missing)
    }

    pub(super) fn use_service(&self, service: Service) -> Result<(), Refused> {
        let wrong = |error: seawall::ConfigError| Refused::Wrong(vec![("policy".into(), error.to_string())]);
        let (guard, attempts) = guard_of(&service)?;
        self.deliver.put_service(service.clone(), guard, attempts).map_err(wrong)?;
        self.services.write().unwrap_or_else(PoisonError::into_inner).insert(service.name.clone(), service);
        Ok(())
    }

    /// All services, in the order of their names.
    pub fn services(&self) -> Vec<Service> {
        sorted(&self.services, |service| &service.name)
    }

    /// A service.
    pub fn service(&self, name: &Slug) -> Option<Service> {
        self.services.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

/// All that is wrong with a policy: each field with its reason.
#[must_use]
pub fn problems_of_policy(text: &str) -> Vec<(String, String)> {
    plan_of("policy", text).err().unwrap_or_default()
}

fn plan_of(name: &str, text: &str) -> Result<Plan, Vec<(String, String)>> {
    policy(name, text, Format::Json).map_err(|error| {
        let place = |path: &str| if path.is_empty() { "policy".to_owned() } else { format!("policy.{path}") };
        error.problems().iter().map(|one| (place(one.path()), one.reason().to_owned())).collect()
    })
}

/// So many calls more than the rate may come at once, if the policy does not say: a tenth of the calls of a period, and at least
/// one. Whoever agreed to 20 a second gets 22 in the worst second.
const BURST_SHARE: u64 = 10;

/// The policy with a burst, if it has a rate limit and does not say which.
fn with_burst(name: &str, text: &str) -> Result<Plan, Vec<(String, String)>> {
    let plan = plan_of(name, text)?;
    let said = |path: &str| plan.settings().any(|setting| setting.path() == path && is_said(&setting));
    let mut policy: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let calls = plan.settings().find(|setting| setting.path() == "rate_limit.calls");
    let calls = calls.and_then(|setting| setting.value().parse::<u64>().ok());
    let Some(limit) = section(&mut policy, "rate_limit").filter(|_| !said("rate_limit.burst")) else {
        return Ok(plan);
    };
    limit.insert("burst".into(), calls.unwrap_or(1).div_ceil(BURST_SHARE).max(1).into());
    plan_of(name, &policy.to_string())
}

/// Whether somebody wrote it, and it is no default.
fn is_said(setting: &Setting<'_>) -> bool {
    !matches!(setting.from(), Origin::Default)
}

/// A section of a policy, however its name is spelt.
fn section<'p>(
    policy: &'p mut serde_json::Value,
    name: &str,
) -> Option<&'p mut serde_json::Map<String, serde_json::Value>> {
    let plain = |key: &str| key.replace(['_', '-'], "").to_ascii_lowercase();
    let fields = policy.as_object_mut()?;
    fields.iter_mut().find(|(key, _)| plain(key) == plain(name))?.1.as_object_mut()
}

/// The guard of a service, and how many attempts its deliveries have.
fn guard_of(service: &Service) -> Result<(GuardBuilder, u32), Refused> {
    let plan = with_burst(service.name.as_str(), &service.policy).map_err(Refused::Wrong)?;
    let said: serde_json::Value = serde_json::from_str(&service.policy).unwrap_or_default();
    let attempts = if said["preset"] == "critical" { ATTEMPTS_CRITICAL } else { ATTEMPTS };
    let guard = plan.builder();
    // Without one, a peer that hangs would hold a delivery for ever.
    let timed = plan.settings().any(|setting| setting.path() == "attempt_timeout");
    Ok((if timed { guard } else { guard.attempt_timeout(ATTEMPT_TIMEOUT) }, attempts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(policy: &str) -> String {
        let plan = with_burst("billing", policy).unwrap();
        plan.builder().build().unwrap().explain()
    }

    /// HUB-1: a rate of 20 a second lets at most 20 and its burst into any second, and the burst is small unless somebody says
    /// otherwise.
    #[test]
    fn hub_1_a_rate_limit_has_a_small_burst_and_says_so() {
        for (policy, expected) in [
            (r#"{"rate_limit": {"calls": 20}}"#, "20 calls per 1s, 2 at once"),
            (r#"{"rateLimit": {"calls": 5, "per": "1s"}}"#, "5 calls per 1s, 1 at once"),
            (r#"{"rate-limit": {"calls": 20, "burst": 20}}"#, "20 calls per 1s, 20 at once"),
        ] {
            let explained = explained(policy);
            assert!(explained.contains(expected), "{policy}: {explained}");
        }
        assert!(!explained(r#"{"breaker": {}}"#).contains("calls per"));
    }
}
