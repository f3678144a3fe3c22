//! Services: registering, changing, pausing, testing and deleting them.

use std::sync::PoisonError;

use seawall::config::{Format, Plan, policy};
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

    /// Deletes a service. Not while a rule names it.
    pub async fn delete_service(
        &self,
        name: &Slug,
        expected: Option<u64>,
        pending: Pending,
    ) -> Result<(), Refused> {
        let _one_after_the_other = self.changing.lock().await;
        let service = self.service(name).ok_or(Refused::Missing)?;
        check_version(expected, service.version)?;
        let rules = self.rules();
        let used: Vec<&str> =
            rules.iter().filter(|rule| rule.service == *name).map(|rule| rule.name.as_str()).collect();
        if !used.is_empty() {
            let used = used.join("`, `");
            return Err(Refused::Conflict(format!("rule `{used}` sends to it; delete or change it first")));
        }
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

/// The guard of a service, and how many attempts its deliveries have.
fn guard_of(service: &Service) -> Result<(GuardBuilder, u32), Refused> {
    let plan = plan_of(service.name.as_str(), &service.policy).map_err(Refused::Wrong)?;
    let said: serde_json::Value = serde_json::from_str(&service.policy).unwrap_or_default();
    let attempts = if said["preset"] == "critical" { ATTEMPTS_CRITICAL } else { ATTEMPTS };
    let guard = plan.builder();
    // Without one, a peer that hangs would hold a delivery for ever.
    let timed = plan.settings().any(|setting| setting.path() == "attempt_timeout");
    Ok((if timed { guard } else { guard.attempt_timeout(ATTEMPT_TIMEOUT) }, attempts))
}
