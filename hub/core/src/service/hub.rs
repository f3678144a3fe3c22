//! The hub as one thing: what is registered, and who does what with it.
//!
//! What it can do is in the files beside this one, a verb each. Handlers call it and nothing else; it owns the units of work.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use seawall::{Clock, Registry};

use super::alerts::Alerts;
use super::desk::RunningWork;
use super::gauges::Depths;
use super::watch::Watch;
use super::{
    Accept, Accepted, Deliver, Incoming, NotAccepted, NotRendered, RenderPool, Rulebook, audit, wall_time,
};
use crate::domain::key::Key;
use crate::domain::retention::Retention;
use crate::domain::rule::Rule;
use crate::domain::service::Service;
use crate::domain::slug::Slug;
use crate::domain::source::Source;
use crate::domain::time::Millis;
use crate::port::store::{Change, Committed, Registered, Store, StoreError, Unit, Urgency};
use crate::port::transport::Transport;

/// What happens all the time has a line in the log so often.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// The hub: takes events in, and delivers what they lead to.
#[derive(Debug)]
pub struct Hub<S, T> {
    pub(super) store: S,
    pub(super) accept: Accept<S>,
    pub(super) deliver: Deliver<S, T>,
    pub(super) alerts: Alerts,
    /// Where rules are tried out.
    pub(super) trials: RenderPool,
    watch: Watch,
    pub(super) retention: RwLock<Retention>,
    pub(super) depths: tokio::sync::Mutex<Depths>,
    pub(super) work: RunningWork,
    registry: Registry,
    pub(super) clock: Clock,
    /// When it was opened.
    pub(super) began: Millis,
    pub(super) services: RwLock<HashMap<Slug, Service>>,
    pub(super) rules: RwLock<HashMap<Slug, Rule>>,
    pub(super) sources: RwLock<HashMap<Slug, Source>>,
    pub(super) keys: RwLock<Keys>,
    /// Those who change what is registered do so one after the other, so that what is in memory is what is kept.
    pub(super) changing: tokio::sync::Mutex<()>,
}

/// The keys, by name and by what opens.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) all: HashMap<Slug, Arc<Key>>,
    pub(super) by_hash: HashMap<[u8; 32], Arc<Key>>,
}

impl Keys {
    pub(super) fn put(&mut self, key: Key) {
        let key = Arc::new(key);
        self.all.insert(key.name.clone(), key);
        let hashes = |key: &Arc<Key>| [Some(key.hash), key.former.map(|(hash, _)| hash)];
        let pairs = self
            .all
            .values()
            .flat_map(|key| hashes(key).into_iter().flatten().map(|hash| (hash, key.clone())));
        self.by_hash = pairs.collect();
    }
}

/// Why a change is not made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// These fields are wrong, each with its reason.
    Wrong(Vec<(String, String)>),
    /// There is no such thing.
    Missing,
    /// It can't be done as things are; the reason says what to do first.
    Conflict(String),
    /// There is no place for it now.
    Busy,
    /// The store did not take it.
    Store(StoreError),
}

impl From<NotRendered> for Refused {
    fn from(_: NotRendered) -> Self {
        Refused::Busy
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Stale { found: None } => Refused::Missing,
            error => Refused::Store(error),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Wrong(problems) => {
                f.write_str("some fields are wrong")?;
                problems.iter().try_for_each(|(field, reason)| write!(f, "; {field}: {reason}"))
            }
            Refused::Missing => f.write_str("it is not there"),
            Refused::Conflict(reason) => f.write_str(reason),
            Refused::Busy => f.write_str("too many rules are tried at a time; try again in a moment"),
            Refused::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Goes on with what is in this store.
    pub async fn open(store: S, transport: T, registry: Registry, clock: Clock) -> Result<Self, Refused> {
        let Registered { services, rules, sources, circuits, keys, alert_rules, channels } =
            store.registered().await?;
        let live = store.live_incidents().await?;
        let hub = Hub {
            accept: Accept::new(store.clone(), Rulebook::default()),
            deliver: Deliver::new(store.clone(), transport, registry.clone(), clock.clone()),
            alerts: Alerts::new(alert_rules, channels, live),
            trials: RenderPool::for_trials(),
            watch: Watch::new(clock.clone()),
            retention: RwLock::default(),
            depths: tokio::sync::Mutex::default(),
            work: RunningWork::default(),
            store,
            registry,
            began: wall_time(&clock),
            clock,
            services: RwLock::default(),
            rules: RwLock::new(by_name(rules, |rule| &rule.name)),
            sources: RwLock::new(by_name(sources, |source| &source.name)),
            keys: RwLock::default(),
            changing: tokio::sync::Mutex::new(()),
        };
        for key in keys {
            hub.keys.write().unwrap_or_else(PoisonError::into_inner).put(key);
        }
        for service in services {
            hub.use_service(service)?;
        }
        for circuit in circuits {
            hub.deliver.restore(&circuit);
        }
        hub.use_rules();
        hub.release_enabled().await?;
        Ok(hub)
    }

    /// From now on says how long the rules look at each event.
    pub fn time_rules(&mut self) {
        self.accept.time_rules(self.clock.clone());
    }

    /// Delivers until the store can't be trusted any more.
    pub async fn run(&self) -> StoreError {
        let pausing = async {
            loop {
                let (rule, service) = self.deliver.gone().await;
                self.pause_gone(&rule, &service).await;
            }
        };
        let telling = async {
            loop {
                tokio::time::sleep(TELL_EVERY).await;
                self.tell();
            }
        };
        tokio::select! {
            error = self.deliver.run() => error,
            () = telling => unreachable!("it has no end"),
            () = pausing => unreachable!("it has no end"),
            () = self.retain() => unreachable!("it has no end"),
            () = self.work_for_ever() => unreachable!("it has no end"),
            () = self.index_for_ever() => unreachable!("it has no end"),
        }
    }

    /// Writes into the log what happened since the last time, a line for each service.
    pub fn tell(&self) {
        self.watch.tell();
        self.deliver.tell();
    }

    /// Begins no delivery any more, and returns when those that were under way have ended.
    pub async fn finish(&self) {
        self.deliver.finish().await;
    }

    /// The process ends in order: what is still in hand is no suspect for that.
    pub async fn stopped(&self) -> Result<(), StoreError> {
        self.store.commit(Urgency::Outcomes, Unit::of(Change::Stopped)).await.map(drop)
    }

    /// Where renderings go that take long.
    pub fn render_pool(&self) -> &RenderPool {
        self.accept.pool()
    }

    /// Keeps an event, and takes in hand what it leads to.
    pub async fn accept(&self, incoming: Incoming) -> Result<Accepted, NotAccepted> {
        let coming = self.watch.comes(&incoming);
        let accepted =
            self.accept.accept(incoming, self.now(), |service| self.deliver.has_room(service)).await;
        self.watch.ended(&coming, &accepted);
        let mut accepted = accepted?;
        self.deliver.begin(std::mem::take(&mut accepted.begun));
        Ok(accepted)
    }

    /// Keeps several events, each for itself.
    pub async fn accept_all(&self, incoming: Vec<Incoming>) -> Vec<Result<Accepted, NotAccepted>> {
        let coming: Vec<_> = incoming.iter().map(|event| self.watch.comes(event)).collect();
        let mut all =
            self.accept.accept_all(incoming, self.now(), |service| self.deliver.has_room(service)).await;
        coming.iter().zip(&all).for_each(|(coming, answer)| self.watch.ended(coming, answer));
        for accepted in all.iter_mut().flatten() {
            self.deliver.begin(std::mem::take(&mut accepted.begun));
        }
        all
    }

    /// What is kept, for whoever only reads.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The guards of the services.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The wall time now.
    pub fn now(&self) -> Millis {
        self.deliver.now()
    }

    /// How many deliveries of a service are in hand.
    pub fn in_hand(&self, service: &Slug) -> usize {
        self.deliver.in_hand(service)
    }

    pub(super) async fn commit(&self, change: Change) -> Result<Committed, Refused> {
        self.commit_all(vec![change]).await.map_err(Refused::from)
    }

    /// With what is remembered of who did it.
    pub(super) async fn commit_all(&self, mut changes: Vec<Change>) -> Result<Committed, StoreError> {
        let entries: Vec<Change> =
            changes.iter().filter_map(|change| audit::entry(change, self.now())).map(Change::Audit).collect();
        changes.extend(entries);
        self.store.commit(Urgency::Admin, Unit { changes }).await
    }
}

pub(super) fn by_name<T>(all: Vec<T>, name: impl Fn(&T) -> &Slug) -> HashMap<Slug, T> {
    all.into_iter().map(|one| (name(&one).clone(), one)).collect()
}

pub(super) fn sorted<T: Clone>(map: &RwLock<HashMap<Slug, T>>, name: impl Fn(&T) -> &Slug) -> Vec<T> {
    let mut all: Vec<T> = map.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
    all.sort_by(|a, b| name(a).cmp(name(b)));
    all
}

/// Whoever changes something says which version they have seen, or does not care.
pub(super) fn check_version(expected: Option<u64>, found: u64) -> Result<(), Refused> {
    match expected {
        Some(expected) if expected != found => Err(Refused::Store(StoreError::Stale { found: Some(found) })),
        _ => Ok(()),
    }
}
