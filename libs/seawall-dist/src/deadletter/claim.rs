//! The claim of a replay, from the request for it until the outcome is recorded.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seawall::{Clock, Fault, Ran, Tick};
use tokio::runtime::Handle;

use super::{DeadLetterStore, FailedReplay, ReplayRequest, ReplayStart, Status, telemetry};
use crate::StoreError;

/// How long one attempt to record an outcome may take: a store that answers at all answers within it.
const RECORD_TIMEOUT: Duration = Duration::from_secs(5);

/// The first pause before an outcome that could not be recorded is recorded again; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause: the record is made soon after the store is back.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

type Request = Pin<Box<dyn Future<Output = Result<ReplayStart, StoreError>> + Send>>;

/// Claims a letter, and records what became of its replay. A caller that is dropped in between leaves it to a task, so that the
/// letter is not claimed until the lease ends.
///
/// It exists before the claim is asked for, and owns the request: one that nobody waits for any more is brought to its end
/// first, and the claim that it made is given up then.
pub(super) struct ClaimGuard {
    claim: Claim,
    request: Option<Request>,
    armed: bool,
}

/// What is needed to record an outcome.
#[derive(Clone)]
struct Claim {
    store: Arc<dyn DeadLetterStore>,
    clock: Clock,
    id: String,
    key: String,
    /// The store's lease ends no earlier.
    until: Tick,
    number: u64,
    generation: u32,
    /// `None` if the message was sent.
    failure: Option<FailedReplay>,
    began: Tick,
}

impl ClaimGuard {
    pub(super) fn new(
        store: &Arc<dyn DeadLetterStore>,
        clock: &Clock,
        id: &str,
        request: &ReplayRequest,
    ) -> Self {
        let began = clock.precise();
        let claim = Claim {
            store: store.clone(),
            clock: clock.clone(),
            id: id.to_owned(),
            key: request.key.clone(),
            until: began + request.lease,
            number: 0,
            generation: 0,
            failure: Some(cancelled("before the message was sent")),
            began,
        };
        let (store, id, request) = (store.clone(), claim.id.clone(), request.clone());
        let request: Request = Box::pin(async move { store.begin_replay(&id, &request).await });
        ClaimGuard { claim, request: Some(request), armed: true }
    }

    /// Asks the store for the claim.
    pub(super) async fn begin(&mut self) -> Result<ReplayStart, StoreError> {
        let request = self.request.as_mut().expect("a claim is asked for once");
        let start = poll_fn(|cx| request.as_mut().poll(cx)).await;
        self.request = None;
        self.armed = start.as_ref().is_ok_and(|start| self.claim.is_made_by(start));
        self.claim.failure = Some(cancelled("while the message was sent, and may have arrived"));
        self.claim.began = self.claim.clock.precise();
        start
    }

    /// Says how the replay ended, and records it. False if the claim is no longer the newest one.
    pub(super) async fn finish(&mut self, failure: Option<FailedReplay>) -> Result<bool, StoreError> {
        self.claim.failure = failure;
        let recorded = self.claim.record().await;
        self.armed = false;
        recorded
    }
}

fn cancelled(when: &str) -> FailedReplay {
    FailedReplay { took: Duration::ZERO, error: format!("the replay was cancelled {when}") }
}

impl Claim {
    /// Takes the number of the claim from the store's answer; false if there is no claim.
    fn is_made_by(&mut self, start: &ReplayStart) -> bool {
        let ReplayStart::Started { claim, message } = start else { return false };
        (self.number, self.generation) = (*claim, message.generation);
        true
    }

    /// Records the outcome, again and again until the lease has ended: what was sent and is not recorded is sent once more.
    async fn record(&self) -> Result<bool, StoreError> {
        let (mut pause, mut may_be_recorded) = (FIRST_PAUSE, false);
        loop {
            let attempt = self.store.finish_replay(&self.id, self.number, self.failure.as_ref());
            // The first attempt is made whatever the clock says: the store decides.
            let limit = self.left().clamp(FIRST_PAUSE, RECORD_TIMEOUT);
            let error = match tokio::time::timeout(limit, attempt).await {
                Ok(Ok(false)) if may_be_recorded => match self.is_recorded().await {
                    Ok(recorded) => return Ok(recorded),
                    Err(error) => error,
                },
                Ok(Ok(recorded)) => return Ok(recorded),
                Ok(Err(error)) => error,
                Err(_) => StoreError::without_cause("recording a replay", Fault::timeout()),
            };
            may_be_recorded |= error.fault().did_run() != Ran::No;
            if self.left() <= pause || !error.fault().is_transient() {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Whether an attempt whose answer was lost has made the record.
    async fn is_recorded(&self) -> Result<bool, StoreError> {
        let letter = self.store.get(&self.id).await?;
        Ok(letter.is_some_and(|letter| {
            let last = letter.replays.last();
            letter.status == Status::Replayed
                && last.is_some_and(|replay| replay.key == self.key && replay.generation == self.generation)
        }))
    }

    fn left(&self) -> Duration {
        self.until.since(self.clock.precise())
    }
}

/// A destructor can't wait, so a task does. Without a runtime, or in one that shuts down, the lease ends by itself.
impl Drop for ClaimGuard {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };
        if !self.armed {
            return;
        }
        let (mut claim, request) = (self.claim.clone(), self.request.take());
        if let Some(failure) = &mut claim.failure {
            failure.took = claim.clock.precise().since(claim.began);
        }
        runtime.spawn(async move {
            if let Some(request) = request {
                let start = tokio::time::timeout(claim.left(), request).await;
                if !start.is_ok_and(|start| start.is_ok_and(|start| claim.is_made_by(&start))) {
                    return;
                }
            }
            if let Err(error) = claim.record().await {
                telemetry::not_recorded(&claim.id, &error);
            }
        });
    }
}
