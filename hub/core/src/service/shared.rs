//! The state that all handles of a hub share, and the commits of their changes.
//!
//! What a handle can do is in the files beside this one, a verb each. Handlers call handles and nothing else.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use seawall::{Clock, Registry};

use super::alerts::Alerts;
use super::bridge::telemetry::AcceptTelemetry;
use super::context::Context;
use super::dead_letters::OperationRunner;
use super::observe::Observer;
use super::ops::gauges::BacklogCache;
use super::{DeliveryDispatcher, EventAcceptor, RenderError, RenderPool, audit};
use crate::domain::key::Key;
use crate::domain::retention::Retention;
use crate::domain::rule::Rule;
use crate::domain::service::Service;
use crate::domain::slug::Slug;
use crate::domain::source::Source;
use crate::domain::time::Millis;
use crate::port::store::{Change, CommitResult, Store, StoreError, UnitOfWork, WritePriority};
use crate::port::transport::Transport;
use crate::sync::RwLock;

/// What all handles of a hub share.
#[derive(Debug)]
pub(super) struct Core<S, T> {
    pub(super) store: S,
    pub(super) accept: EventAcceptor<S>,
    pub(super) deliver: DeliveryDispatcher<S, T>,
    pub(super) alerts: Alerts,
    /// Runs rules in evaluations and backtests.
    pub(super) evaluations: RenderPool,
    pub(super) telemetry: AcceptTelemetry,
    pub(super) retention: RwLock<Retention>,
    pub(super) backlog: tokio::sync::Mutex<BacklogCache>,
    pub(super) operations: OperationRunner,
    pub(super) registry: Registry,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) clock: Clock,
    /// When the hub was opened.
    pub(super) began: Millis,
    pub(super) services: RwLock<HashMap<Slug, Service>>,
    pub(super) rules: RwLock<HashMap<Slug, Rule>>,
    pub(super) sources: RwLock<HashMap<Slug, Source>>,
    pub(super) keys: RwLock<KeyIndex>,
    /// Held by those who change the registry, one after the other, so that memory and store agree.
    pub(super) changing: tokio::sync::Mutex<()>,
}

/// The API keys, by name and by hash.
#[derive(Debug, Default)]
pub(super) struct KeyIndex {
    pub(super) all: HashMap<Slug, Arc<Key>>,
    pub(super) by_hash: HashMap<[u8; 32], Arc<Key>>,
}

impl KeyIndex {
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

/// The reason why a change was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeError {
    /// Some fields are invalid, each with its reason.
    Wrong(Vec<(String, String)>),
    /// The thing does not exist.
    Missing,
    /// The current state does not allow it; the reason says what to do first.
    Conflict(String),
    /// It was done before under its idempotency key; the note says how.
    Repeated(String),
    /// Something else was done under its idempotency key.
    OtherContent,
    /// All places are taken.
    Busy,
    /// The store refused or failed.
    Store(StoreError),
}

impl From<RenderError> for ChangeError {
    fn from(_: RenderError) -> Self {
        ChangeError::Busy
    }
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Stale { found: None } => ChangeError::Missing,
            error => ChangeError::Store(error),
        }
    }
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::Wrong(problems) => {
                f.write_str("some fields are wrong")?;
                problems.iter().try_for_each(|(field, reason)| write!(f, "; {field}: {reason}"))
            }
            ChangeError::Missing => f.write_str("not found"),
            ChangeError::Conflict(reason) => f.write_str(reason),
            ChangeError::Repeated(_) => f.write_str("this idempotency key was used before"),
            ChangeError::OtherContent => {
                f.write_str("another request was sent with this idempotency key; use a new one")
            }
            ChangeError::Busy => f.write_str("too many rules are tried at a time; try again in a moment"),
            ChangeError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChangeError {}

impl<S: Store + Clone, T: Transport> Core<S, T> {
    /// Returns the wall time.
    pub(super) fn now(&self) -> Millis {
        self.deliver.now()
    }

    /// Returns the context of a change that the hub makes by itself now.
    pub(super) fn own_context(&self) -> Context {
        Context::of_hub(self.now())
    }

    pub(super) async fn commit(&self, cx: &Context, change: Change) -> Result<CommitResult, ChangeError> {
        self.commit_all(cx, vec![change]).await.map_err(ChangeError::from)
    }

    /// Commits changes with their audit entries.
    pub(super) async fn commit_all(
        &self,
        cx: &Context,
        mut changes: Vec<Change>,
    ) -> Result<CommitResult, StoreError> {
        let entries: Vec<Change> =
            changes.iter().filter_map(|change| audit::audit(change, cx)).map(Change::Audit).collect();
        changes.extend(entries);
        self.store.commit(WritePriority::Admin, UnitOfWork { changes }).await
    }

    /// Lists all services, in the order of their names.
    pub(super) fn services(&self) -> Vec<Service> {
        sorted(&self.services, |service| &service.name)
    }

    /// Returns the service with this name.
    pub(super) fn service(&self, name: &Slug) -> Option<Service> {
        self.services.read().get(name).cloned()
    }

    /// Lists all rules, in the order of their names.
    pub(super) fn rules(&self) -> Vec<Rule> {
        sorted(&self.rules, |rule| &rule.name)
    }

    /// Returns the rule with this name.
    pub(super) fn rule(&self, name: &Slug) -> Option<Rule> {
        self.rules.read().get(name).cloned()
    }
}

pub(super) fn by_name<T>(all: Vec<T>, name: impl Fn(&T) -> &Slug) -> HashMap<Slug, T> {
    all.into_iter().map(|one| (name(&one).clone(), one)).collect()
}

pub(super) fn sorted<T: Clone>(map: &RwLock<HashMap<Slug, T>>, name: impl Fn(&T) -> &Slug) -> Vec<T> {
    let mut all: Vec<T> = map.read().values().cloned().collect();
    all.sort_by(|a, b| name(a).cmp(name(b)));
    all
}

/// Checks the version that the caller has seen; `None` accepts any.
pub(super) fn check_version(expected: Option<u64>, found: u64) -> Result<(), ChangeError> {
    match expected {
        Some(expected) if expected != found => {
            Err(ChangeError::Store(StoreError::Stale { found: Some(found) }))
        }
        _ => Ok(()),
    }
}
