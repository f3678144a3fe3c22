//! The hub, put together.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use seawall::config::{Format, policy};
use seawall::{Clock, Registry};
use seawall_http::{Egress, HttpClient};
use seawall_hub_core::domain::delivery::{DeliveryId, Progress};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{AttemptRecord, Change, Kept, Store, StoreError, Unit, Urgency};
use seawall_hub_core::service::{
    Accept, Accepted, Deliver, InHand, Incoming, NotAccepted, Rulebook, compile, wall_time,
};
use seawall_hub_store::Sqlite;

use crate::seal::Keyring;
use crate::transport::Http;

/// The hub, put together: what it knows is kept in one folder.
#[derive(Debug)]
pub struct Hub {
    store: Sqlite,
    accept: Accept<Sqlite>,
    deliver: Deliver<Sqlite, Http>,
    registry: Registry,
    keyring: Keyring,
    clock: Clock,
    services: RwLock<HashMap<Slug, Service>>,
    rules: RwLock<HashMap<Slug, Rule>>,
}

/// Why a change is not made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// These fields are wrong, each with its reason.
    Wrong(Vec<(String, String)>),
    /// The store did not take it.
    Store(StoreError),
}

/// Why a hub could not be opened.
#[derive(Debug)]
pub struct CannotOpen(String);

impl fmt::Display for CannotOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotOpen {}

impl Hub {
    /// Opens the hub in this folder. Requests go to public addresses, and to these ranges of private ones.
    pub async fn open(folder: &Path, allow_egress: &[String]) -> Result<Self, CannotOpen> {
        let mut egress = Egress::default();
        for range in allow_egress {
            let parsed = range.parse().map_err(|error| {
                CannotOpen(format!("`{range}` is no range of addresses, like `10.1.0.0/16`: {error}"))
            });
            egress = egress.allow(parsed?);
        }
        let store = Sqlite::open(folder).map_err(|error| CannotOpen(error.to_string()))?;
        let keyring =
            Keyring::open(folder).map_err(|error| CannotOpen(format!("can't read `secret.key`: {error}")))?;
        let client =
            HttpClient::builder().egress(egress).build().map_err(|error| CannotOpen(error.to_string()))?;
        let (registry, clock) = (Registry::new(), Clock::system());
        let transport = Http::new(client, keyring.clone());
        let deliver = Deliver::new(store.clone(), transport, registry.clone(), clock.clone());
        let hub = Hub {
            accept: Accept::new(store.clone(), Rulebook::default()),
            store,
            deliver,
            registry,
            keyring,
            clock,
            services: RwLock::default(),
            rules: RwLock::default(),
        };
        let read = |error: StoreError| CannotOpen(error.to_string());
        for service in hub.store.services().await.map_err(read)? {
            let name = service.name.clone();
            hub.use_service(service)
                .map_err(|refused| CannotOpen(format!("service `{name}`: {refused:?}")))?;
        }
        let rules = hub.store.rules().await.map_err(read)?;
        *hub.rules.write().unwrap_or_else(PoisonError::into_inner) =
            rules.into_iter().map(|rule| (rule.name.clone(), rule)).collect();
        hub.use_rules();
        Ok(hub)
    }

    /// Delivers until the store can't be trusted any more.
    pub async fn run(&self) -> StoreError {
        self.deliver.run().await
    }

    /// Waits until the store can't be trusted any more, also while nothing is delivered.
    pub async fn broken(&self) -> StoreError {
        self.store.broken().await
    }

    /// Keeps an event, and takes in hand what it leads to.
    pub async fn accept(&self, incoming: Incoming) -> Result<Accepted, NotAccepted> {
        let now = self.now();
        let mut accepted = self.accept.accept(incoming, now).await?;
        let begun = std::mem::take(&mut accepted.begun).into_iter().map(|(id, rule, service, request)| {
            let progress = Progress { accepted: now, counted: 0, failures: 0 };
            let schedule = self.deliver.schedule_of(&rule);
            (service, InHand { id, request, schedule, progress })
        });
        self.deliver.offer(begun);
        Ok(accepted)
    }

    /// Keeps a service, new or changed, and uses it from now on.
    pub async fn put_service(&self, service: Service) -> Result<(), Refused> {
        // Checked before it is kept.
        let _ = guard_of(&service)?;
        self.commit(Change::PutService(service.clone())).await?;
        self.use_service(service)
    }

    /// Keeps a rule, new or changed, and goes by it from now on.
    pub async fn put_rule(&self, rule: Rule) -> Result<(), Refused> {
        compile(&rule).map_err(|mistakes| {
            Refused::Wrong(mistakes.into_iter().map(|mistake| (mistake.place, mistake.reason)).collect())
        })?;
        self.commit(Change::PutRule(rule.clone())).await?;
        self.rules.write().unwrap_or_else(PoisonError::into_inner).insert(rule.name.clone(), rule);
        self.use_rules();
        Ok(())
    }

    async fn commit(&self, change: Change) -> Result<(), Refused> {
        let unit = Unit { changes: vec![change] };
        self.store.commit(Urgency::Admin, unit).await.map(drop).map_err(Refused::Store)
    }

    fn use_service(&self, service: Service) -> Result<(), Refused> {
        let wrong = |error: seawall::ConfigError| Refused::Wrong(vec![("policy".into(), error.to_string())]);
        self.deliver.put_service(service.clone(), guard_of(&service)?).map_err(wrong)?;
        self.services.write().unwrap_or_else(PoisonError::into_inner).insert(service.name.clone(), service);
        Ok(())
    }

    fn use_rules(&self) {
        let rules = self.rules();
        self.deliver.put_schedules(rules.iter().map(|rule| (rule.name.clone(), rule.schedule)).collect());
        let (book, _) = Rulebook::new(&rules);
        self.accept.change_rules(book);
    }

    /// All services, in the order of their names.
    #[must_use]
    pub fn services(&self) -> Vec<Service> {
        sorted(&self.services, |service| &service.name)
    }

    /// A service.
    #[must_use]
    pub fn service(&self, name: &Slug) -> Option<Service> {
        self.services.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All rules, in the order of their names.
    #[must_use]
    pub fn rules(&self) -> Vec<Rule> {
        sorted(&self.rules, |rule| &rule.name)
    }

    /// A rule.
    #[must_use]
    pub fn rule(&self, name: &Slug) -> Option<Rule> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// An event that was kept.
    pub async fn event(&self, id: &str) -> Result<Option<Event>, StoreError> {
        self.store.event(id).await
    }

    /// A delivery and its tries.
    pub async fn delivery(&self, id: DeliveryId) -> Result<Option<(Kept, Vec<AttemptRecord>)>, StoreError> {
        self.store.delivery(id).await
    }

    /// Services whose circuit is not closed.
    #[must_use]
    pub fn troubled(&self) -> Vec<(String, String)> {
        self.registry.troubled().into_iter().map(|(name, state)| (name, format!("{state:?}"))).collect()
    }

    pub(crate) fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    pub(crate) fn now(&self) -> Millis {
        wall_time(&self.clock)
    }
}

fn guard_of(service: &Service) -> Result<seawall::GuardBuilder, Refused> {
    let plan = policy(service.name.as_str(), &service.policy, Format::Json);
    plan.map(|plan| plan.builder()).map_err(|error| {
        Refused::Wrong(
            error
                .problems()
                .iter()
                .map(|problem| (format!("policy.{}", problem.path()), problem.reason().to_owned()))
                .collect(),
        )
    })
}

fn sorted<T: Clone>(map: &RwLock<HashMap<Slug, T>>, name: impl Fn(&T) -> &Slug) -> Vec<T> {
    let mut all: Vec<T> = map.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
    all.sort_by(|a, b| name(a).cmp(name(b)));
    all
}
