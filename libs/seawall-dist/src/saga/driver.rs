//! Drives one saga, under its lease, to its end.

use std::sync::Arc;
use std::time::Duration;

use seawall::fault::Verdict;
use seawall::{Backoff, Class, Fault, Ran, Tick, millis};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::definition::Saga;
use super::error::SagaError;
use super::handle::Shared;
use super::journal::{EntryKind, JournalEntry};
use super::progress::{NextAction, Progress};
use super::step::{SagaStep, StepContext, StepFailure};
use super::store::{SagaRecord, SagaState, SagaWrite, WriteOutcome};
use super::telemetry;
use crate::bounded::{bounded, stopped};
use crate::saga::{SagaEnd, StepResults};
use crate::work::{CatchPanic, keep_lease, random};

/// The back-off between attempts to write the journal while the store is away; the lease bounds them.
const WRITE_BACKOFF: Backoff = Backoff::exponential(millis(20)).cap(millis(500));

/// A saga that this process drives.
pub(super) struct Driver {
    shared: Arc<Shared>,
    saga: Saga,
    record: SagaRecord,
    progress: Progress,
    /// When the lease was asked for: it lasts from there at least.
    claimed: Tick,
    deadline: Tick,
    /// True when the process stops: the saga is left to another one after the current step.
    stop: watch::Receiver<bool>,
}

impl Driver {
    pub(super) fn new(
        shared: Arc<Shared>,
        saga: Saga,
        record: SagaRecord,
        progress: Progress,
        claimed: Tick,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let left = record.deadline_at.since(record.now);
        let deadline = shared.clock.precise() + left;
        Driver { shared, saga, record, progress, claimed, deadline, stop }
    }

    /// Goes on until the saga has ended, the lease is lost or the process stops.
    pub(super) async fn drive(mut self) -> Result<SagaEnd, SagaError> {
        let shared = self.shared.clone();
        let (id, fence) = (self.record.id.clone(), self.record.lease.fence);
        let claimed = self.claimed;
        tokio::select! {
            // The lease is looked at first: nothing happens under one that is over.
            biased;
            () = keep_saga(&shared, &id, fence, claimed) => {
                telemetry::lease_lost(&id);
                Err(SagaError::LeaseLost { id })
            }
            end = self.advance() => end,
        }
    }

    async fn advance(&mut self) -> Result<SagaEnd, SagaError> {
        loop {
            if *self.stop.borrow() && self.record.state.is_active() {
                // The lease ends by itself if this fails.
                let release = self.shared.store.release(&self.record.id, self.record.lease.fence);
                let _ = bounded("giving back a saga", release).await;
                return Err(SagaError::Stopped { id: self.record.id.clone() });
            }
            match self.saga.next(&self.progress) {
                NextAction::Execute { step, attempt } => self.execute(step, attempt).await?,
                NextAction::Compensate { step, attempt } => self.compensate(step, attempt).await?,
                NextAction::Complete => self.finish(EntryKind::Completed, SagaState::Completed, None).await?,
                NextAction::FinishCompensation => {
                    let reason = self.progress.compensating.clone();
                    self.finish(EntryKind::Compensated, SagaState::Compensated, reason).await?;
                }
                NextAction::AskForAttention { reason } => {
                    self.finish(EntryKind::NeedsAttention, SagaState::NeedsAttention, Some(reason)).await?;
                }
                NextAction::Nothing => return Ok(self.end()),
            }
        }
    }

    async fn execute(&mut self, index: usize, attempt: u32) -> Result<(), SagaError> {
        let step = self.saga.steps()[index].clone();
        let left = self.deadline.since(self.shared.clock.precise());
        if left.is_zero() {
            let reason = format!("the deadline passed before step `{}` was done", step.name);
            let entry = JournalEntry::new(EntryKind::TimedOut).with_text(reason);
            return self.write(entry).await;
        }
        if attempt > step.attempts {
            let text = "its outcome is unknown: the process ended during the last attempt";
            let entry = JournalEntry::of_step(EntryKind::StepUnknown, &step.name, attempt - 1);
            return self.write(entry.with_text(text)).await;
        }
        self.write(JournalEntry::of_step(EntryKind::StepIntent, &step.name, attempt)).await?;
        let action = (step.action)(self.context(&step, attempt));
        match attempt_of(action, step.timeout.min(left)).await {
            Ok(result) => {
                self.write(
                    JournalEntry::of_step(EntryKind::StepDone, &step.name, attempt).with_payload(result),
                )
                .await
            }
            Err(failure) => {
                let again = may_retry(&failure.fault) && attempt < step.attempts;
                let kind = match (may_have_taken_effect(&failure.fault), again) {
                    (false, true) => EntryKind::StepAttemptFailed,
                    (false, false) => EntryKind::StepFailed,
                    (true, true) => EntryKind::StepAttemptUnknown,
                    (true, false) => EntryKind::StepUnknown,
                };
                self.fail(&step, kind, attempt, failure, again).await
            }
        }
    }

    async fn compensate(&mut self, index: usize, attempt: u32) -> Result<(), SagaError> {
        let step = self.saga.steps()[index].clone();
        if attempt > step.compensation_attempts {
            let text = "the process ended during the last attempt";
            let entry = JournalEntry::of_step(EntryKind::CompensationGivenUp, &step.name, attempt - 1);
            return self.write(entry.with_text(text)).await;
        }
        self.write(JournalEntry::of_step(EntryKind::CompensationIntent, &step.name, attempt)).await?;
        let Some(compensation) = &step.compensation else {
            return self.write(JournalEntry::of_step(EntryKind::CompensationDone, &step.name, attempt)).await;
        };
        match attempt_of(compensation(self.context(&step, attempt)), step.timeout).await {
            Ok(_) => {
                self.write(JournalEntry::of_step(EntryKind::CompensationDone, &step.name, attempt)).await
            }
            Err(failure) => {
                // Also after a permanent failure: what must be undone is worth more attempts than what may be refused.
                let again = attempt < step.compensation_attempts;
                let kind =
                    if again { EntryKind::CompensationAttemptFailed } else { EntryKind::CompensationGivenUp };
                self.fail(&step, kind, attempt, failure, again).await
            }
        }
    }

    /// Writes a failed attempt, and waits if another one follows.
    async fn fail(
        &mut self,
        step: &SagaStep,
        kind: EntryKind,
        attempt: u32,
        failure: StepFailure,
        again: bool,
    ) -> Result<(), SagaError> {
        let fault = failure.fault;
        telemetry::attempt_failed(&self.record, &step.name, kind, attempt, &failure.message, again);
        self.write(JournalEntry::of_step(kind, &step.name, attempt).with_text(failure.message)).await?;
        if again {
            let throttled = fault.verdict() == Verdict::Throttled;
            let backoff = match kind {
                EntryKind::CompensationAttemptFailed => step.compensation_backoff,
                _ => step.backoff,
            };
            let previous = backoff.bound(attempt.saturating_sub(2));
            let wait = backoff.wait(attempt - 1, previous, throttled, random());
            self.pause(fault.retry_after().unwrap_or(wait).max(wait)).await;
        }
        Ok(())
    }

    /// Waits, but no longer than until the deadline of a saga that goes forward, and not when the process stops.
    async fn pause(&mut self, wait: Duration) {
        let wait = match self.record.state {
            SagaState::Running => wait.min(self.deadline.since(self.shared.clock.precise())),
            _ => wait,
        };
        tokio::select! {
            () = sleep(wait) => {}
            () = stopped(&self.stop, Duration::ZERO) => {}
        }
    }

    async fn finish(
        &mut self,
        kind: EntryKind,
        state: SagaState,
        reason: Option<String>,
    ) -> Result<(), SagaError> {
        let mut entry = JournalEntry::new(kind);
        entry.text.clone_from(&reason);
        self.record.reason = reason;
        self.write(entry).await?;
        telemetry::ended(&self.record, state);
        Ok(())
    }

    /// Writes one entry, again if the store was away. A write whose outcome was unknown is recognised by its version.
    async fn write(&mut self, entry: JournalEntry) -> Result<(), SagaError> {
        let mut progress = self.progress.clone();
        let applied = progress.apply(&self.saga.outline(), &entry);
        applied.expect("a driver writes only what a replay accepts");
        let state = match entry.kind {
            EntryKind::Completed => SagaState::Completed,
            EntryKind::Compensated => SagaState::Compensated,
            EntryKind::NeedsAttention | EntryKind::Resolved => SagaState::NeedsAttention,
            _ if progress.compensating.is_some() => SagaState::Compensating,
            _ => SagaState::Running,
        };
        let reason =
            if state.is_active() { progress.compensating.clone() } else { self.record.reason.clone() };
        let (id, fence, version) = (self.record.id.clone(), self.record.lease.fence, self.record.version);
        let write = SagaWrite { id, fence, version, entry, state, reason, timeout: None };
        tokio::select! {
            written = write_entry(&self.shared, &write) => written?,
            // The lease may be kept although nothing can be written. A process that stops does not wait for that for ever.
            () = stopped(&self.stop, self.shared.lease) => {
                return Err(SagaError::Stopped { id: self.record.id.clone() });
            }
        }
        self.progress = progress;
        self.record.version += 1;
        self.record.state = state;
        self.record.reason = write.reason;
        Ok(())
    }

    fn context(&self, step: &SagaStep, attempt: u32) -> StepContext {
        let results = self.saga.steps().iter().zip(&self.progress.steps);
        let results =
            results.filter_map(|(step, progress)| Some((step.name.clone(), progress.result.clone()?)));
        StepContext {
            saga_id: self.record.id.as_str().into(),
            step: step.name.clone(),
            key: format!("{}:{}", self.record.id, step.name).into(),
            attempt,
            input: self.record.input.as_slice().into(),
            results: Arc::new(results.collect()),
        }
    }

    fn end(&self) -> SagaEnd {
        let reason = || self.record.reason.clone().unwrap_or_default();
        match self.record.state {
            SagaState::Completed => SagaEnd::Completed(StepResults::of(&self.saga, &self.progress)),
            SagaState::Compensated => SagaEnd::Compensated { reason: reason() },
            _ => SagaEnd::NeedsAttention { reason: reason() },
        }
    }
}

/// Writes one entry until it is written or another process has the saga.
pub(super) async fn write_entry(shared: &Shared, write: &SagaWrite) -> Result<(), SagaError> {
    let mut failures = 0;
    loop {
        match bounded("writing the journal of a saga", shared.store.write(write)).await {
            Ok(WriteOutcome::Written) => return Ok(()),
            // Nobody else has this fence, so the one version more is a write of ours whose answer was lost.
            Ok(WriteOutcome::Conflict { fence, version })
                if failures > 0 && fence == write.fence && version == write.version + 1 =>
            {
                return Ok(());
            }
            Ok(WriteOutcome::Conflict { .. }) => return Err(SagaError::LeaseLost { id: write.id.clone() }),
            Err(error) if error.fault().is_transient() => {
                sleep(WRITE_BACKOFF.wait(failures, Duration::ZERO, false, random())).await;
                failures += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Keeps the lease of a saga, and returns when it is lost.
pub(super) async fn keep_saga(shared: &Shared, id: &str, fence: u64, claimed: Tick) {
    keep_lease(&shared.clock, shared.lease, claimed, || shared.store.renew(id, fence, shared.lease)).await;
}

/// One attempt at an action or a compensation: a panic and a timeout are failures.
async fn attempt_of(
    work: impl Future<Output = Result<Vec<u8>, StepFailure>> + Send,
    limit: Duration,
) -> Result<Vec<u8>, StepFailure> {
    match timeout(limit, CatchPanic::new(work)).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(StepFailure { fault: Fault::system(), message: format!("panicked: {panic}") }),
        Err(_) => {
            Err(StepFailure { fault: Fault::timeout(), message: format!("no result within {limit:?}") })
        }
    }
}

/// A refusal by a guard inside of the step, such as an open circuit, passes as well.
fn may_retry(fault: &Fault) -> bool {
    fault.is_transient() || fault.verdict() == Verdict::Rejected
}

/// True unless the peer said no, or the action did not reach it.
fn may_have_taken_effect(fault: &Fault) -> bool {
    fault.did_run() != Ran::No && fault.class() != Class::Business
}
