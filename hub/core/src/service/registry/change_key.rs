//! Changes of the registry that happen once under an idempotency key.

use seawall_dist::idempotency::KEPT;

use crate::port::store::{Change, CommitResult, IdempotencyRecord, Store};
use crate::port::transport::Transport;
use crate::service::context::Context;
use crate::service::shared::{ChangeError, Core};

/// The scope of idempotency keys in the registry.
const REGISTRY_SCOPE: &str = "registry";

/// The notes of changes that were made under an idempotency key.
pub const CREATED: &str = "created";
/// Something of the name was there before.
pub const REPLACED: &str = "replaced";

/// The note of a change: whether it created something, by the version that was there before.
pub(in crate::service) fn note_of(found: u64) -> &'static str {
    if found == 0 { CREATED } else { REPLACED }
}

/// An idempotency key of a change in the registry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeKey {
    /// The key with the name of its sender.
    pub key: String,
    /// A hash of what was sent.
    pub fingerprint: [u8; 32],
    /// The note that a repeated request gets; `None` means whether something was created.
    pub note: Option<String>,
}

impl<S: Store + Clone, T: Transport> Core<S, T> {
    /// Looks whether a change was made before under its idempotency key.
    pub(in crate::service) async fn check_repeated(
        &self,
        cx: &Context,
        once: Option<&ChangeKey>,
    ) -> Result<(), ChangeError> {
        let Some(once) = once else { return Ok(()) };
        let found = self.store.claimed(REGISTRY_SCOPE, &once.key).await?;
        match found.filter(|found| found.at + KEPT > cx.now) {
            None => Ok(()),
            Some(found) if found.fingerprint == once.fingerprint => Err(ChangeError::Repeated(found.note)),
            Some(_) => Err(ChangeError::OtherContent),
        }
    }

    /// Commits a change, once under its idempotency key. A repeated request gets the note.
    pub(in crate::service) async fn commit_once(
        &self,
        cx: &Context,
        once: Option<ChangeKey>,
        note: &str,
        change: Change,
    ) -> Result<CommitResult, ChangeError> {
        let claim = once.map(|ChangeKey { key, fingerprint, note: own }| {
            let note = own.unwrap_or_else(|| note.to_owned());
            Change::ClaimKey(IdempotencyRecord { scope: REGISTRY_SCOPE, key, fingerprint, note, at: cx.now })
        });
        Ok(self.commit_all(cx, claim.into_iter().chain([change]).collect()).await?)
    }
}
