//! Keys to the API: making, changing and taking them back.

use std::sync::Arc;
use std::time::Duration;

use super::change_key::{CREATED, ChangeKey};
use crate::domain::key::Key;
use crate::domain::slug::Slug;
use crate::port::store::{Change, Store};
use crate::port::transport::Transport;
use crate::service::context::Context;
use crate::service::handles::RegistryHandle;
use crate::service::shared::ChangeError;

/// The name of the key that the hub starts with.
pub const ADMIN: &str = "admin";

impl<S: Store + Clone, T: Transport> RegistryHandle<S, T> {
    /// Returns the valid key with this hash.
    #[must_use]
    pub fn key_with(&self, hash: &[u8; 32]) -> Option<Arc<Key>> {
        let keys = self.core.keys.read();
        // Few, and found by a hash: what is compared tells nothing about the key itself.
        keys.by_hash.get(hash).filter(|key| key.opens(hash, self.core.now())).cloned()
    }

    /// Lists all keys, including revoked ones.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let keys = self.core.keys.read();
        let mut all: Vec<Key> = keys.all.values().map(|key| Key::clone(key)).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Creates a key.
    pub async fn make_key(
        &self,
        cx: &Context,
        mut key: Key,
        once: Option<ChangeKey>,
    ) -> Result<Key, ChangeError> {
        let _one_after_the_other = self.core.changing.lock().await;
        self.core.check_repeated(cx, once.as_ref()).await?;
        if self.keys().iter().any(|known| known.name == key.name) {
            return Err(ChangeError::Conflict(format!("there is a key `{}` already; rotate it", key.name)));
        }
        key.made = cx.now;
        self.core.commit_once(cx, once, CREATED, Change::PutKey(key.clone())).await?;
        self.use_key(key.clone());
        Ok(key)
    }

    /// Replaces a key under the same name. The previous one stays valid for a while, so that callers can be changed one by one.
    pub async fn rotate_key(
        &self,
        cx: &Context,
        name: &Slug,
        hash: [u8; 32],
        grace: Duration,
    ) -> Result<Key, ChangeError> {
        let _one_after_the_other = self.core.changing.lock().await;
        let key = self.keys().into_iter().find(|key| key.name == *name && key.revoked.is_none());
        let mut key = key.ok_or(ChangeError::Missing)?;
        key.former = (!grace.is_zero()).then(|| (key.hash, cx.now + grace));
        key.hash = hash;
        self.keep_key(cx, key).await
    }

    /// Revokes a key at once.
    pub async fn revoke_key(&self, cx: &Context, name: &Slug) -> Result<Key, ChangeError> {
        let _one_after_the_other = self.core.changing.lock().await;
        let mut key = self.keys().into_iter().find(|key| key.name == *name).ok_or(ChangeError::Missing)?;
        if key.name.as_str() == ADMIN {
            let reason = "the admin key is set by SEAWALL_ADMIN_KEY; start with another one";
            return Err(ChangeError::Conflict(reason.into()));
        }
        if key.revoked.is_none() {
            key.revoked = Some(cx.now);
            key = self.keep_key(cx, key).await?;
        }
        Ok(key)
    }

    /// Sets the admin key, in place of the one before.
    pub async fn set_admin_key(&self, cx: &Context, hash: [u8; 32]) -> Result<(), ChangeError> {
        let _one_after_the_other = self.core.changing.lock().await;
        let before = self.keys().into_iter().find(|key| key.name.as_str() == ADMIN);
        if before.as_ref().is_some_and(|key| key.hash == hash) {
            return Ok(());
        }
        let name = Slug::new(ADMIN).map_err(|error| ChangeError::Conflict(error.to_string()))?;
        let scopes = std::iter::once(crate::domain::key::Scope::Admin).collect();
        let made = before.map_or_else(|| cx.now, |key| key.made);
        let (services, sources, former, expires, revoked) = (None, None, None, None, None);
        self.keep_key(cx, Key { name, hash, former, scopes, services, sources, made, expires, revoked })
            .await?;
        Ok(())
    }

    /// Whether there is an admin key.
    #[must_use]
    pub fn has_admin_key(&self) -> bool {
        self.keys().iter().any(|key| key.name.as_str() == ADMIN)
    }

    async fn keep_key(&self, cx: &Context, key: Key) -> Result<Key, ChangeError> {
        self.core.commit(cx, Change::PutKey(key.clone())).await?;
        self.use_key(key.clone());
        Ok(key)
    }

    fn use_key(&self, key: Key) {
        self.core.keys.write().put(key);
    }
}
