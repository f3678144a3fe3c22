//! Another key for all secrets, while the hub works.

use std::io;

use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{RegistrySnapshot, SecretOwner};
use seawall_hub_core::service::{ChangeError, Context};
use tracing::{error, info};

use crate::hub::Server;
use crate::seal::key_of;

/// What a rotation has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RotationReport {
    /// The number of the key that seals now.
    pub(crate) key: u32,
    /// How many secrets were sealed anew.
    pub(crate) resealed: usize,
    /// Whose could not be opened. While there are such, the keys before stay.
    pub(crate) unreadable: Vec<String>,
}

/// Whose secret it is, as it is bound into what is sealed: a source and a service may have the same name.
pub(crate) fn bound(owner: &SecretOwner) -> String {
    match owner {
        SecretOwner::Service(name) => name.to_string(),
        SecretOwner::Source(name) => source(name),
        SecretOwner::Channel(name) => channel(name),
    }
}

/// The same of a source.
pub(crate) fn source(name: &Slug) -> String {
    format!("source {name}")
}

/// The same of a channel.
pub(crate) fn channel(name: &Slug) -> String {
    format!("channel {name}")
}

impl Server {
    /// Seals all secrets with a new key, and drops the one before when nothing needs it. Wherever it dies, all can be opened,
    /// and the next start goes on.
    pub(crate) async fn rotate_secrets(&self, cx: &Context) -> Result<RotationReport, ChangeError> {
        let _nobody_registers = self.keyring.changing().await;
        self.registry.note_rotation(cx, &format!("key {}", self.keyring.newest() + 1)).await?;
        let keyring = self.keyring.clone();
        blocking(move || keyring.add_key()).await?;
        self.seal_all(cx).await
    }

    /// Goes on with a rotation that a process before has begun, and says which secrets can't be opened at all.
    pub(crate) async fn finish_rotation_before(&self) -> Result<(), ChangeError> {
        let before = self.keyring.on_disk().map_err(|error| unwritten(&error))?;
        if before.len() > 1 {
            let _nobody_registers = self.keyring.changing().await;
            self.seal_all(&self.own_context()).await?;
        }
        for (owner, sealed) in sealed(&self.registry.stored().await?) {
            if self.keyring.unseal(&sealed, &bound(&owner)).is_none() {
                let cause =
                    "`secret.key` does not open it; bring back the right one, or register the secret again";
                error!(target: "seawall", whose = named(&owner), cause, action = "ManualReview", "[Secrets][Open] Failed!");
            }
        }
        Ok(())
    }

    async fn seal_all(&self, cx: &Context) -> Result<RotationReport, ChangeError> {
        let keyring = self.keyring.clone();
        let key = keyring.newest();
        let resealed =
            self.registry.reseal(cx, |owner, sealed| keyring.reseal(sealed, &bound(owner))).await?;
        // What counts is what is kept.
        let kept = sealed(&self.registry.stored().await?);
        let left = kept.into_iter().filter(|(_, sealed)| key_of(sealed) != Some(key));
        let unreadable: Vec<String> = left.map(|(owner, _)| named(&owner)).collect();
        if unreadable.is_empty() {
            // While the file has both keys, either is the right one.
            let fingerprint = keyring.fingerprint().map_err(|error| unwritten(&error))?;
            self.store().put_secret(&fingerprint).await?;
            blocking(move || keyring.drop_old_keys()).await?;
        }
        info!(target: "seawall", key, resealed, unreadable = unreadable.len(), "[Secrets][Rotate] Success.");
        Ok(RotationReport { key, resealed, unreadable })
    }
}

fn sealed(
    registered: &RegistrySnapshot,
) -> Vec<(SecretOwner, seawall_hub_core::domain::service::SealedSecret)> {
    let services = registered.services.iter().filter_map(|service| {
        service.auth.clone().map(|sealed| (SecretOwner::Service(service.name.clone()), sealed))
    });
    let sources = registered
        .sources
        .iter()
        .map(|source| (SecretOwner::Source(source.name.clone()), source.proof.clone()));
    let channels = registered
        .channels
        .iter()
        .map(|channel| (SecretOwner::Channel(channel.name.clone()), channel.settings.clone()));
    services.chain(sources).chain(channels).collect()
}

fn named(owner: &SecretOwner) -> String {
    match owner {
        SecretOwner::Service(name) => format!("service {name}"),
        SecretOwner::Source(name) => format!("source {name}"),
        SecretOwner::Channel(name) => format!("channel {name}"),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, ChangeError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| unwritten(&error)),
        Err(error) => Err(unwritten(&io::Error::other(error))),
    }
}

/// The keys are as they were.
fn unwritten(error: &io::Error) -> ChangeError {
    use seawall_hub_core::port::store::StoreError;
    ChangeError::Store(match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full,
        _ => StoreError::Failed(format!("`secret.key` can't be written: {error}")),
    })
}
