//! Keys to the API: making, changing and taking them back.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::hub::{Hub, Refused};
use crate::domain::key::Key;
use crate::domain::slug::Slug;
use crate::port::store::{Change, Store};
use crate::port::transport::Transport;

/// The name of the key that the hub starts with.
pub const ADMIN: &str = "admin";

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Whose key this is, if it is anybody's.
    pub fn key_with(&self, hash: &[u8; 32]) -> Option<Arc<Key>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        // Few, and found by a hash: what is compared tells nothing about the key itself.
        keys.by_hash.get(hash).filter(|key| key.opens(hash, self.now())).cloned()
    }

    /// All keys, those that were taken back too.
    pub fn keys(&self) -> Vec<Key> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Key> = keys.all.values().map(|key| Key::clone(key)).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// A new key.
    pub async fn make_key(&self, mut key: Key) -> Result<Key, Refused> {
        let _one_after_the_other = self.changing.lock().await;
        if self.keys().iter().any(|known| known.name == key.name) {
            return Err(Refused::Conflict(format!("there is a key `{}` already; rotate it", key.name)));
        }
        key.made = self.now();
        self.keep_key(key).await
    }

    /// Another key under the same name. The one before is good for a while, so that both can be changed in their own time.
    pub async fn rotate_key(&self, name: &Slug, hash: [u8; 32], grace: Duration) -> Result<Key, Refused> {
        let _one_after_the_other = self.changing.lock().await;
        let key = self.keys().into_iter().find(|key| key.name == *name && key.revoked.is_none());
        let mut key = key.ok_or(Refused::Missing)?;
        key.former = (!grace.is_zero()).then(|| (key.hash, self.now() + grace));
        key.hash = hash;
        self.keep_key(key).await
    }

    /// Takes a key back, at once.
    pub async fn revoke_key(&self, name: &Slug) -> Result<Key, Refused> {
        let _one_after_the_other = self.changing.lock().await;
        let mut key = self.keys().into_iter().find(|key| key.name == *name).ok_or(Refused::Missing)?;
        if key.name.as_str() == ADMIN {
            let reason = "the admin key is set by SEAWALL_ADMIN_KEY; start with another one";
            return Err(Refused::Conflict(reason.into()));
        }
        if key.revoked.is_none() {
            key.revoked = Some(self.now());
            key = self.keep_key(key).await?;
        }
        Ok(key)
    }

    /// The admin key: the one that is given takes the place of the one before.
    pub async fn set_admin_key(&self, hash: [u8; 32]) -> Result<(), Refused> {
        let _one_after_the_other = self.changing.lock().await;
        let before = self.keys().into_iter().find(|key| key.name.as_str() == ADMIN);
        if before.as_ref().is_some_and(|key| key.hash == hash) {
            return Ok(());
        }
        let name = Slug::new(ADMIN).map_err(|error| Refused::Conflict(error.to_string()))?;
        let scopes = std::iter::once(crate::domain::key::Scope::Admin).collect();
        let made = before.map_or_else(|| self.now(), |key| key.made);
        let (services, sources, former, expires, revoked) = (None, None, None, None, None);
        self.keep_key(Key { name, hash, former, scopes, services, sources, made, expires, revoked }).await?;
        Ok(())
    }

    /// Whether there is an admin key.
    pub fn has_admin_key(&self) -> bool {
        self.keys().iter().any(|key| key.name.as_str() == ADMIN)
    }

    async fn keep_key(&self, key: Key) -> Result<Key, Refused> {
        self.commit(Change::PutKey(key.clone())).await?;
        self.keys.write().unwrap_or_else(PoisonError::into_inner).put(key.clone());
        Ok(key)
    }
}
