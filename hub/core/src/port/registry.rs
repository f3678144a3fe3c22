//! The queries for registered things and their history.

use std::future::Future;

use super::store::{Page, PageRequest, StoreError};
use crate::domain::alert::{AlertRule, Channel};
use crate::domain::audit::AuditEntry;
use crate::domain::circuit::Circuit;
use crate::domain::key::Key;
use crate::domain::rule::Rule;
use crate::domain::service::Service;
use crate::domain::slug::Slug;
use crate::domain::source::Source;

/// The queries for registered things and their history.
pub trait RegistryReads: Send + Sync + 'static {
    /// Returns all registered things.
    fn registered(&self) -> impl Future<Output = Result<RegistrySnapshot, StoreError>> + Send;

    /// Lists all versions of a rule, the newest first.
    fn rule_versions(&self, name: &Slug) -> impl Future<Output = Result<Vec<Rule>, StoreError>> + Send;

    /// Lists the changes of a circuit, the newest first, up to a limit.
    fn circuit_history(
        &self,
        service: &Slug,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Circuit>, StoreError>> + Send;

    /// Lists the entries of the audit log.
    fn audit(&self, page: PageRequest) -> impl Future<Output = Result<Page<AuditEntry>, StoreError>> + Send;
}

/// All registered things.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RegistrySnapshot {
    pub services: Vec<Service>,
    /// The current version of all rules.
    pub rules: Vec<Rule>,
    pub sources: Vec<Source>,
    /// All circuits that ever changed.
    pub circuits: Vec<Circuit>,
    /// All API keys.
    pub keys: Vec<Key>,
    /// The alert rules that were created or changed; built-in ones are not stored.
    pub alert_rules: Vec<AlertRule>,
    /// All channels of alerts.
    pub channels: Vec<Channel>,
}
