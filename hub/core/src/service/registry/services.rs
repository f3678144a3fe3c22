//! Services: registering, changing, pausing, testing and deleting them.

use seawall::GuardBuilder;
use seawall::config::{Format, Origin, Plan, Setting, policy};
use tracing::info;

use super::change_key::{ChangeKey, note_of};
use crate::domain::delivery::{ATTEMPTS, ATTEMPTS_CRITICAL};
use crate::domain::service::Service;
use crate::domain::slug::Slug;
use crate::port::store::{Change, DeliverySelector, Store};
use crate::port::transport::Transport;
use crate::service::context::Context;
use crate::service::dispatch::telemetry;
use crate::service::handles::RegistryHandle;
use crate::service::shared::{ChangeError, check_version};

/// What happens to pending deliveries when their service or rule is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PendingPolicy {
    /// The deletion is refused.
    #[default]
    Refuse,
    /// The pending deliveries become dead letters.
    DeadLetter,
}

/// The timeout of an attempt, if the policy of its service has none.
const ATTEMPT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// The policy of a service that has none of its own.
pub const DEFAULT_POLICY: &str = r#"{"attempt_timeout":"3s","retry":{"max_attempts":3},"breaker":{"consecutive_failures":5,"cooldown":"30s"},"bulkhead":{"max_calls":20}}"#;

/// The time that a deleted service has for attempts in progress. Those without a response by then become dead letters like the
/// rest.
const DRAIN_MAX: std::time::Duration = std::time::Duration::from_secs(60);

/// The maximum number of deliveries that are dead-lettered or released in a unit, so that others get their turn in between.
pub(in crate::service) const AT_ONCE: u32 = 500;

impl<S: Store + Clone, T: Transport> RegistryHandle<S, T> {
    /// Creates or changes a service, and uses it from now on. `expected` is the version that the caller has seen.
    pub async fn put_service(
        &self,
        cx: &Context,
        service: Service,
        expected: Option<u64>,
    ) -> Result<Service, ChangeError> {
        self.put_service_once(cx, service, expected, None).await
    }

    /// Creates or changes a service, once under an idempotency key.
    pub async fn put_service_once(
        &self,
        cx: &Context,
        mut service: Service,
        expected: Option<u64>,
        once: Option<ChangeKey>,
    ) -> Result<Service, ChangeError> {
        // It is checked before it is stored.
        let _ = guard_of(&service)?;
        let _one_after_the_other = self.core.changing.lock().await;
        self.core.check_repeated(cx, once.as_ref()).await?;
        let found = self.core.service(&service.name).map_or(0, |service| service.version);
        check_version(expected, found)?;
        (service.version, service.changed) = (found + 1, cx.now);
        self.core.commit_once(cx, once, note_of(found), Change::PutService(service.clone())).await?;
        self.use_service(service.clone())?;
        let Service { name, version, paused, .. } = &service;
        info!(target: "seawall", service = name.as_str(), version, paused, "[Registry][PutService] Success.");
        Ok(service)
    }

    /// Pauses or resumes the deliveries of a service.
    pub async fn pause_service(
        &self,
        cx: &Context,
        name: &Slug,
        paused: bool,
    ) -> Result<Service, ChangeError> {
        let service = self.core.service(name).ok_or(ChangeError::Missing)?;
        if service.paused == paused {
            return Ok(service);
        }
        let version = service.version;
        self.put_service(cx, Service { paused, ..service }, Some(version)).await
    }

    /// Deletes a service that no rule names. It waits for attempts in progress: a delivery that the service has accepted is
    /// delivered, and no dead letter.
    pub async fn delete_service(
        &self,
        cx: &Context,
        name: &Slug,
        expected: Option<u64>,
        pending: PendingPolicy,
    ) -> Result<(), ChangeError> {
        if pending == PendingPolicy::DeadLetter {
            let _one_after_the_other = self.core.changing.lock().await;
            self.may_delete(name, expected)?;
            self.core.deliver.stop_service(name);
        }
        // Other changes do not wait for it.
        self.core.deliver.wait_until_idle(name, DRAIN_MAX).await;
        let deleted = self.delete_idle_service(&cx.at(self.core.now()), name, expected, pending).await;
        if deleted.is_err() {
            self.core.deliver.resume_service(name);
        }
        deleted
    }

    async fn delete_idle_service(
        &self,
        cx: &Context,
        name: &Slug,
        expected: Option<u64>,
        pending: PendingPolicy,
    ) -> Result<(), ChangeError> {
        let _one_after_the_other = self.core.changing.lock().await;
        let service = self.may_delete(name, expected)?;
        let selector = DeliverySelector::Service(name.clone());
        let deleted = async {
            let dead_lettered = self
                .dead_letter_pending(cx, selector, name, pending, || self.core.deliver.remove_service(name))
                .await?;
            self.core.commit(cx, Change::DeleteService(name.clone(), service.version)).await?;
            Ok(dead_lettered)
        };
        let dead_lettered = match deleted.await {
            Ok(dead_lettered) => dead_lettered,
            Err(refused) => {
                // It is there still, and so are its rules' deliveries.
                self.use_service(service)?;
                return Err(refused);
            }
        };
        self.core.deliver.remove_service(name);
        self.core.services.write().remove(name);
        info!(target: "seawall", service = name.as_str(), deadLettered = dead_lettered, "[Registry][DeleteService] Success.");
        Ok(())
    }

    /// Returns the service, if it has the expected version and no rule names it.
    fn may_delete(&self, name: &Slug, expected: Option<u64>) -> Result<Service, ChangeError> {
        let service = self.core.service(name).ok_or(ChangeError::Missing)?;
        check_version(expected, service.version)?;
        let rules = self.core.rules();
        let used: Vec<&str> =
            rules.iter().filter(|rule| rule.service == *name).map(|rule| rule.name.as_str()).collect();
        if used.is_empty() {
            return Ok(service);
        }
        let used = used.join("`, `");
        Err(ChangeError::Conflict(format!("rule `{used}` sends to it; delete or change it first")))
    }

    /// Dead-letters pending deliveries, or refuses if there are any. `stop` is called before. Returns their number.
    pub(in crate::service) async fn dead_letter_pending(
        &self,
        cx: &Context,
        selector: DeliverySelector,
        service: &Slug,
        pending: PendingPolicy,
        stop: impl FnOnce(),
    ) -> Result<usize, ChangeError> {
        let waiting = self.core.store.pending(selector.clone(), 10_000).await?;
        if waiting == 0 {
            return Ok(0);
        }
        if pending == PendingPolicy::Refuse {
            let count = match waiting {
                1 => "1 delivery has".to_owned(),
                10_000 => "10000 or more deliveries have".to_owned(),
                more => format!("{more} deliveries have"),
            };
            return Err(ChangeError::Conflict(format!(
                "{count} not ended; with `pending=deadLetter` they become dead letters"
            )));
        }
        stop();
        let mut dead_lettered = 0;
        loop {
            let change = Change::DeadLetterAll { selector: selector.clone(), limit: AT_ONCE, at: cx.now };
            let touched = self.core.commit(cx, change).await?.touched;
            if touched == 0 {
                telemetry::dead_lettered(service, dead_lettered);
                return Ok(dead_lettered);
            }
            dead_lettered += touched;
        }
    }

    pub(in crate::service) fn use_service(&self, service: Service) -> Result<(), ChangeError> {
        let wrong =
            |error: seawall::ConfigError| ChangeError::Wrong(vec![("policy".into(), error.to_string())]);
        let (guard, attempts) = guard_of(&service)?;
        self.core.deliver.put_service(service.clone(), guard, attempts).map_err(wrong)?;
        self.core.services.write().insert(service.name.clone(), service);
        Ok(())
    }

    /// Lists all services, in the order of their names.
    #[must_use]
    pub fn services(&self) -> Vec<Service> {
        self.core.services()
    }

    /// Returns the service with this name.
    #[must_use]
    pub fn service(&self, name: &Slug) -> Option<Service> {
        self.core.service(name)
    }
}

/// Returns everything that is wrong with a policy: each field with its reason.
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

/// The default burst, as a share of the calls of a period: a tenth of them, and at least one. A service that agreed to 20 a
/// second gets 22 in the worst second.
const BURST_SHARE: u64 = 10;

/// Adds the default burst to a policy that has a rate limit without one.
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

/// Whether a setting was written explicitly.
fn is_said(setting: &Setting<'_>) -> bool {
    !matches!(setting.from(), Origin::Default)
}

/// Returns a section of a policy, however its name is spelt.
fn section<'p>(
    policy: &'p mut serde_json::Value,
    name: &str,
) -> Option<&'p mut serde_json::Map<String, serde_json::Value>> {
    let plain = |key: &str| key.replace(['_', '-'], "").to_ascii_lowercase();
    let fields = policy.as_object_mut()?;
    fields.iter_mut().find(|(key, _)| plain(key) == plain(name))?.1.as_object_mut()
}

/// Returns the guard of a service, and the maximum number of attempts of its deliveries.
fn guard_of(service: &Service) -> Result<(GuardBuilder, u32), ChangeError> {
    let plan = with_burst(service.name.as_str(), &service.policy).map_err(ChangeError::Wrong)?;
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
