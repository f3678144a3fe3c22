//! Secrets, encrypted with another key. Nothing here can read what is in them.

use crate::domain::service::SealedSecret;
use crate::port::store::{Change, SecretOwner, SecretRotation, Store};
use crate::port::transport::Transport;
use crate::service::audit;
use crate::service::context::Context;
use crate::service::handles::RegistryHandle;
use crate::service::shared::ChangeError;

/// The maximum number of secrets in a unit.
const TOGETHER: usize = 64;

impl<S: Store + Clone, T: Transport> RegistryHandle<S, T> {
    /// Records in the audit log that the encryption key is rotated.
    pub async fn note_rotation(&self, cx: &Context, key: &str) -> Result<(), ChangeError> {
        let entry = audit::entry("secrets.rotate", key.to_owned(), cx);
        self.core.commit(cx, Change::Audit(entry)).await.map(drop)
    }

    /// Encrypts all secrets with another key. `reseal` returns the new value of those that need one. Versions stay, because nothing
    /// has changed for a reader. Returns the number of secrets.
    pub async fn reseal(
        &self,
        cx: &Context,
        reseal: impl Fn(&SecretOwner, &SealedSecret) -> Option<SealedSecret>,
    ) -> Result<usize, ChangeError> {
        let _one_after_the_other = self.core.changing.lock().await;
        // From the store and not from memory: an earlier rotation may have been interrupted between the two.
        let stored = self.core.store.registered().await?;
        let of_services = stored.services.into_iter().filter_map(|service| {
            let owner = SecretOwner::Service(service.name);
            service.auth.map(|sealed| (owner, sealed))
        });
        let of_sources =
            stored.sources.into_iter().map(|source| (SecretOwner::Source(source.name), source.proof));
        let of_channels =
            stored.channels.into_iter().map(|channel| (SecretOwner::Channel(channel.name), channel.settings));
        let changes: Vec<SecretRotation> = of_services
            .chain(of_sources)
            .chain(of_channels)
            .filter_map(|(owner, was)| reseal(&owner, &was).map(|now| SecretRotation { owner, was, now }))
            .collect();
        for together in changes.chunks(TOGETHER) {
            let unit = together.iter().cloned().map(Change::Reseal).collect();
            self.core.commit_all(cx, unit).await?;
            for change in together {
                self.use_sealed(change)?;
            }
        }
        Ok(changes.len())
    }

    fn use_sealed(&self, SecretRotation { owner, now, .. }: &SecretRotation) -> Result<(), ChangeError> {
        match owner {
            SecretOwner::Service(name) => {
                let Some(mut service) = self.core.service(name) else { return Ok(()) };
                service.auth = Some(now.clone());
                self.use_service(service)
            }
            SecretOwner::Channel(name) => {
                self.core.alerts.use_sealed(name, now);
                Ok(())
            }
            SecretOwner::Source(name) => {
                let mut sources = self.core.sources.write();
                if let Some(source) = sources.get_mut(name) {
                    source.proof = now.clone();
                }
                Ok(())
            }
        }
    }
}
