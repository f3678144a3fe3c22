//! The registry: services, rules, sources and keys, and what changes of them do to the deliveries that are waiting.

mod change_key;
mod keys;
mod rules;
mod secrets;
pub(in crate::service) mod services;
mod sources;

pub use change_key::{CREATED, ChangeKey, REPLACED};
pub use keys::ADMIN;
pub use services::{DEFAULT_POLICY, PendingPolicy, problems_of_policy};

use super::handles::RegistryHandle;
use crate::domain::rule::Rule;
use crate::domain::slug::Slug;
use crate::port::store::{RegistrySnapshot, Store, StoreError};

impl<S: Store, T> RegistryHandle<S, T> {
    /// Lists the versions of a rule, the newest first.
    pub async fn rule_versions(&self, name: &Slug) -> Result<Vec<Rule>, StoreError> {
        self.core.store.rule_versions(name).await
    }

    /// Returns the registry as it is stored.
    pub async fn stored(&self) -> Result<RegistrySnapshot, StoreError> {
        self.core.store.registered().await
    }
}
