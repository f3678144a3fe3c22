//! The lease of an executor, renewed while the work runs.

use std::time::Duration;

use seawall::Tick;

use super::key::IdempotencyKey;
use super::once::Shared;
use crate::StoreError;

/// A key is renewed after this part of its lease, so that one renewal may fail.
const RENEWALS_PER_LEASE: u32 = 3;

/// A failed renewal is repeated after this part of the lease.
const RETRIES_PER_LEASE: u32 = 20;

/// The work is cancelled when this part of the lease is left: before another executor may begin.
const MARGIN_PER_LEASE: u32 = 10;

/// The first pause before a result that could not be stored is stored again; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// The lease of one execution.
pub(super) struct Lease<'a> {
    pub(super) shared: &'a Shared,
    pub(super) key: &'a IdempotencyKey,
    pub(super) holder: u64,
    /// When the last successful claim or renewal was *sent*: the store's lease ends no earlier than a lease after it.
    pub(super) valid_from: Tick,
}

/// Why a key was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Loss {
    /// The store says that this executor no longer has the key.
    TakenOver,
    /// The store could not be asked until the lease had nearly run out.
    Unreachable,
}

impl Loss {
    pub(super) fn text(self) -> &'static str {
        match self {
            Loss::TakenOver => "the store gave the key away",
            Loss::Unreachable => "the lease could not be renewed in time",
        }
    }
}

impl Lease<'_> {
    /// Renews the lease for ever. Ends when the key is lost.
    pub(super) async fn keep(&mut self) -> Loss {
        let mut pause = self.shared.lease / RENEWALS_PER_LEASE;
        loop {
            tokio::time::sleep(pause.min(self.left())).await;
            let began = self.shared.clock.precise();
            let left = self.left();
            if left.is_zero() {
                return Loss::Unreachable;
            }
            let renewal = self.shared.store.renew(self.key, self.holder, self.shared.lease);
            pause = match tokio::time::timeout(left, renewal).await {
                Ok(Ok(true)) => {
                    self.valid_from = began;
                    self.shared.lease / RENEWALS_PER_LEASE
                }
                Ok(Ok(false)) => return Loss::TakenOver,
                Ok(Err(_)) => self.shared.lease / RETRIES_PER_LEASE,
                Err(_) => return Loss::Unreachable,
            };
        }
    }

    /// Tries an action of the store until it answers or the lease has run out.
    pub(super) async fn insist<'s, F>(&self, mut action: impl FnMut() -> F) -> Result<bool, StoreError>
    where
        F: Future<Output = Result<bool, StoreError>> + Send + 's,
    {
        let mut pause = FIRST_PAUSE;
        loop {
            // The first attempt is made whatever the clock says: the store decides.
            let time = self.left().max(FIRST_PAUSE);
            let error = match tokio::time::timeout(time, action()).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(_) => StoreError::without_cause("storing a result", seawall::Fault::timeout()),
            };
            if self.left() <= pause || !error.fault().is_transient() {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    /// The time until the work has to be cancelled.
    fn left(&self) -> Duration {
        let lease = self.shared.lease;
        let until = self.valid_from + (lease - lease / MARGIN_PER_LEASE);
        until.since(self.shared.clock.precise())
    }
}
