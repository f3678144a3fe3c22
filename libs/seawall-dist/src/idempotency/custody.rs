//! What happens to a key whose caller goes away.

use std::sync::Arc;
use std::time::Duration;

use super::key::IdempotencyKey;
use super::once::Shared;
use super::options::AbandonedAction;
use super::store::{ResultKind, StoredResult};
use super::telemetry::CallOutcome;

/// How long the task that cleans up behind a dropped call may take. After it the lease frees the key.
const CLEAN_UP_TIME: Duration = Duration::from_secs(5);

/// The first pause between two attempts of that task; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// A key that this call has, or may have. If it is dropped before the work began, a task of its own frees it; while the work
/// runs, the [`AbandonedAction`] decides; if the work had ended, a task stores its result.
pub(super) struct Custody {
    shared: Arc<Shared>,
    key: IdempotencyKey,
    holder: u64,
    on_drop: OnDrop,
    /// True when the call has its answer, and what follows is only for the key.
    answered: bool,
}

enum OnDrop {
    Nothing,
    /// The claim has not been answered: it may still be on its way, and arrive after an attempt to free the key.
    ReleaseLater,
    Release,
    /// The work has begun and may have taken effect.
    Abandon,
    Complete(StoredResult),
}

impl Custody {
    /// Takes custody before the claim is sent: a call that is dropped while it waits for the answer may have the key.
    pub(super) fn new(shared: &Arc<Shared>, key: &IdempotencyKey, holder: u64) -> Self {
        let (shared, key) = (shared.clone(), key.clone());
        Custody { shared, key, holder, on_drop: OnDrop::ReleaseLater, answered: false }
    }

    /// The work begins.
    pub(super) fn begins(&mut self) {
        self.on_drop = OnDrop::Abandon;
    }

    /// The call has the key, and the work did not begin, or failed in a way that frees the key.
    pub(super) fn releases(&mut self) {
        self.on_drop = OnDrop::Release;
    }

    /// The work has ended with this result.
    pub(super) fn completes(&mut self, result: StoredResult) {
        self.on_drop = OnDrop::Complete(result);
    }

    /// The call ends with an error, and what is left to do for the key is done behind it.
    pub(super) fn answers(&mut self) {
        self.answered = true;
    }

    /// The key needs nothing more.
    pub(super) fn ends(&mut self) {
        self.on_drop = OnDrop::Nothing;
    }

    /// The result that is to be stored.
    pub(super) fn result(&self) -> Option<&StoredResult> {
        match &self.on_drop {
            OnDrop::Complete(result) => Some(result),
            _ => None,
        }
    }
}

impl Drop for Custody {
    fn drop(&mut self) {
        let on_drop = std::mem::replace(&mut self.on_drop, OnDrop::Nothing);
        if matches!(on_drop, OnDrop::Nothing) {
            return;
        }
        if !self.answered {
            self.shared.telemetry.count(CallOutcome::Abandoned);
        }
        let on_drop = match (on_drop, self.shared.abandoned) {
            (OnDrop::Abandon, action) => {
                if !self.answered {
                    self.shared.telemetry.abandoned(&self.key, action);
                }
                match action {
                    // As after the death of the process.
                    AbandonedAction::Expire => return,
                    AbandonedAction::Release => OnDrop::Release,
                    AbandonedAction::Block => {
                        OnDrop::Complete(StoredResult { kind: ResultKind::Unknown, bytes: Vec::new() })
                    }
                }
            }
            (on_drop, _) => on_drop,
        };
        // Without a runtime the lease frees the key.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (shared, key, holder) = (self.shared.clone(), self.key.clone(), self.holder);
        let clean_up = async move {
            let mut pause = FIRST_PAUSE;
            while !clean_up(&shared, &key, holder, &on_drop).await {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
        };
        // Nobody is left to wait for it; it ends by itself.
        drop(runtime.spawn(tokio::time::timeout(CLEAN_UP_TIME, clean_up)));
    }
}

/// Makes one attempt. False if another one is needed.
async fn clean_up(shared: &Shared, key: &IdempotencyKey, holder: u64, on_drop: &OnDrop) -> bool {
    match on_drop {
        OnDrop::Complete(result) => shared.store.complete(key, holder, result, shared.ttl).await.is_ok(),
        OnDrop::Release => shared.store.release(key, holder).await.is_ok(),
        OnDrop::ReleaseLater => shared.store.release(key, holder).await.unwrap_or(false),
        OnDrop::Abandon | OnDrop::Nothing => true,
    }
}
