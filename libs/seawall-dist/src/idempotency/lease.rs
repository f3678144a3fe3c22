//! The lease of an executor, renewed while the work runs.

use std::time::Duration;

use super::key::IdempotencyKey;
use super::once::Shared;
use crate::StoreError;
use crate::lease::{LeaseKeeper, LeaseLoss};

/// The first pause before a result that could not be stored is stored again; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// The lease of one execution.
pub(super) struct Lease<'a> {
    pub(super) shared: &'a Shared,
    pub(super) key: &'a IdempotencyKey,
    pub(super) holder: u64,
    pub(super) keeper: LeaseKeeper<'a>,
}

impl Lease<'_> {
    /// Renews the lease for ever. Ends when the key is lost.
    pub(super) async fn keep(&self) -> LeaseLoss {
        let renew = || self.shared.store.renew(self.key, self.holder, self.shared.lease);
        // What matters is the loss, which the caller reports.
        self.keeper.keep(renew, |_| {}).await
    }

    /// Tries an action of the store until it answers or the lease has run out.
    pub(super) async fn insist<'s, F>(&self, mut action: impl FnMut() -> F) -> Result<bool, StoreError>
    where
        F: Future<Output = Result<bool, StoreError>> + Send + 's,
    {
        let mut pause = FIRST_PAUSE;
        loop {
            // An attempt that hangs leaves time for another one. The first is made whatever the clock says, in the margin that is
            // left then: the store decides.
            let lease = self.shared.lease;
            let time = (self.keeper.left() / 2).clamp(lease / 10, lease / 3);
            let error = match tokio::time::timeout(time, action()).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(_) => StoreError::without_cause("storing a result", seawall::Fault::timeout()),
            };
            if self.keeper.left() <= pause || !error.fault().is_transient() {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }
}
