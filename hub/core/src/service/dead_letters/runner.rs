//! Doing work on many dead letters, a few at a time.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use seawall::Tick;
use tokio::sync::Notify;
use tracing::{info, warn};

use super::rebuild::rebuild;
use super::scan::ScanPosition;
use crate::domain::dead_letter::{LetterFilter, LetterState};
use crate::domain::delivery::DeliveryId;
use crate::domain::operation::{
    AHEAD, BulkAction, Operation, OperationDecision, OperationId, OperationState, ReplayPacer,
};
use crate::domain::slug::Slug;
use crate::port::store::{
    BulkItem, Change, DeadLetter, LetterAction, NewDelivery, OperationStep, OperationTransition, Store,
    StoreError, UnitOfWork, WritePriority,
};
use crate::port::transport::Transport;
use crate::service::handles::DeadLetterHandle;
use crate::service::shared::ChangeError;

/// The time between two batches while there is work.
const TICK: Duration = Duration::from_millis(20);
/// The time between two checks while everything waits.
const WAIT: Duration = Duration::from_millis(100);
/// The longest time without a check, because an earlier process may have left work.
const IDLE: Duration = Duration::from_secs(5);
/// The wait before a store that does not answer is asked again.
const STORE_AGAIN: Duration = Duration::from_secs(1);
/// The maximum size of a batch, so that the writer is blocked only for some milliseconds.
const TOGETHER: u64 = 200;
/// The number of replays waiting for services that are down, from which on these services are left out.
const AWAY_MIN: u64 = AHEAD / 2;
/// The time that counts as lately.
const LATELY: Duration = Duration::from_millis(500);
/// The number of dead letters that are added to the full-text index at once.
const INDEXED_TOGETHER: u32 = 32;
/// The rest between two batches of the index.
const INDEX_REST: Duration = Duration::from_millis(5);
/// How often the index is checked for dead letters to add.
const INDEX_EVERY: Duration = Duration::from_millis(500);

/// Runs the bulk operations of this process.
#[derive(Debug, Default)]
pub(in crate::service) struct OperationRunner {
    /// Wakes the runner when an operation is started, resumed or cancelled.
    pub(in crate::service) wake: Notify,
}

/// What the runner remembers of one operation.
struct RunState {
    passes: ScanPosition,
    pace: ReplayPacer,
    last: Tick,
    /// The number of attempted replays at several times.
    tried: VecDeque<(Tick, u64)>,
}

impl RunState {
    fn new(operation: &Operation, now: Tick) -> Self {
        let rate = if let BulkAction::Replay(plan) = &operation.task { plan.rate } else { 1 };
        let passes = ScanPosition::new(operation.cursor);
        RunState { passes, pace: ReplayPacer::new(rate), last: now, tried: VecDeque::new() }
    }

    /// Returns how many replays were attempted lately.
    fn lately(&mut self, tried: u64, now: Tick) -> u64 {
        self.tried.push_back((now, tried));
        while self.tried.len() > 1 && now.since(self.tried[0].0) > LATELY {
            self.tried.pop_front();
        }
        tried.saturating_sub(self.tried[0].1)
    }
}

impl<S: Store + Clone, T: Transport> DeadLetterHandle<S, T> {
    /// Runs bulk operations, for as long as the process lives.
    pub(in crate::service) async fn run_operations(&self) {
        let mut runs: HashMap<OperationId, RunState> = HashMap::new();
        loop {
            let wait = match self.core.store.running().await {
                Ok(running) => {
                    runs.retain(|id, _| running.iter().any(|operation| operation.id == *id));
                    self.turn(running, &mut runs).await
                }
                Err(_) => STORE_AGAIN,
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.core.operations.wake.notified() => {}
            }
        }
    }

    /// Runs a batch of each operation. Returns how long nothing can happen.
    async fn turn(&self, running: Vec<Operation>, runs: &mut HashMap<OperationId, RunState>) -> Duration {
        let mut wait = if running.is_empty() { IDLE } else { WAIT };
        for operation in running {
            let now = self.core.clock.precise();
            let run = runs.entry(operation.id).or_insert_with(|| RunState::new(&operation, now));
            match self.step(&operation, run, now).await {
                Ok(true) => wait = TICK,
                Ok(false) => {}
                Err(error) => {
                    // What was not committed is taken again: the scan goes on from what is stored.
                    runs.remove(&operation.id);
                    if matches!(error, StoreError::WrongState(_)) {
                        // Somebody has halted or ended it.
                        continue;
                    }
                    warn!(target: "seawall", operationId = %operation.id, cause = %error, "[DeadLetters][Work] Retry triggered.");
                    // What the store has of it decides where it goes on: nobody knows whether the batch is stored.
                    runs.remove(&operation.id);
                    wait = wait.min(STORE_AGAIN);
                }
            }
        }
        wait
    }

    /// Runs one batch. Returns whether more may start soon.
    async fn step(&self, operation: &Operation, run: &mut RunState, now: Tick) -> Result<bool, StoreError> {
        let lately = run.lately(operation.progress.tried, now);
        let paced = run.pace.after(now.since(run.last));
        run.last = now;
        let (away, waiting) = self.away_from(operation).await?;
        let count = match operation.next_beside(lately, waiting) {
            OperationDecision::Begin(count) => count.min(TOGETHER),
            OperationDecision::Wait => return Ok(false),
            OperationDecision::Finish => return self.end_work(operation, OperationState::Done, None).await,
            OperationDecision::Stop(cause) => {
                let (failure, failed_delivery) = self.first_failure(operation).await.unzip();
                let cause = failure.map_or(cause.clone(), |failure| format!("{cause}; {failure}"));
                return self
                    .end_work(operation, OperationState::Stopped, Some((cause, failed_delivery)))
                    .await;
            }
        };
        let replays = matches!(operation.task, BulkAction::Replay(_));
        let count = if replays { count.min(paced) } else { count };
        if count == 0 {
            return Ok(true);
        }
        let Some(position) = run.passes.look(&away) else { return Ok(false) };
        let limit = usize::try_from(count).unwrap_or(usize::MAX);
        let filter = LetterFilter { except: away, ..operation.filter.clone() };
        let (letters, position, more) = self.core.store.letters_behind(filter, position, limit).await?;
        let (cursor, exhausted) = run.passes.came(position, more);
        let mut step = OperationStep {
            operation: operation.id,
            items: Vec::with_capacity(letters.len()),
            skipped: 0,
            cause: None,
            failed_delivery: None,
            from_cursor: operation.cursor,
            cursor,
            exhausted,
            at: self.core.now(),
        };
        for (dead, event) in &letters {
            let made = match &operation.task {
                BulkAction::Replay(plan) => Some(rebuild(&self.core, &dead.delivery, event, plan.mode).await),
                _ => None,
            };
            let made =
                made.transpose().and_then(|new| new.map(|new| within(&operation.filter, new)).transpose());
            match made.and_then(|new| item(&operation.task, dead, new)) {
                Ok(item) => step.items.push(item),
                Err(_) if !run.passes.leave(dead.delivery.id) => {}
                Err(refused) => {
                    step.skipped += 1;
                    step.cause = Some(failure_text(dead.delivery.id, &refused.to_string()));
                    step.failed_delivery = Some(dead.delivery.id);
                }
            }
        }
        let committed = self
            .core
            .store
            .commit(WritePriority::Admin, UnitOfWork::of(Change::AdvanceOperation(step)))
            .await?;
        run.pace.used(committed.touched as u64);
        self.core.deliver.wake_all();
        Ok(true)
    }

    /// Returns the services that an operation leaves out because they are down, and how many of its replays wait for them. An
    /// operation on a single service leaves out none.
    async fn away_from(&self, operation: &Operation) -> Result<(Vec<Slug>, u64), StoreError> {
        let several = matches!(operation.task, BulkAction::Replay(_)) && operation.filter.service.is_none();
        if !several || operation.progress.untried() < AWAY_MIN {
            return Ok((Vec::new(), 0));
        }
        let (away, waiting) = self.waiting_for_away(operation).await?;
        match passes_over(&waiting) {
            true => Ok((away, waiting.iter().map(|(_, count)| count).sum())),
            false => Ok((Vec::new(), 0)),
        }
    }

    /// Returns all services that are down, and those of them that replays of this operation wait for.
    async fn waiting_for_away(
        &self,
        operation: &Operation,
    ) -> Result<(Vec<Slug>, Vec<(Slug, u64)>), StoreError> {
        let away = self.core.deliver.away();
        let waiting = match &away[..] {
            [] => Vec::new(),
            _ => self.core.store.untried_replays(operation.id, away.clone()).await?,
        };
        Ok((away, waiting))
    }

    /// Returns the services that are down and that an operation on several services has replays or dead letters for.
    pub(super) async fn waited_for(&self, operation: &Operation) -> Result<Vec<Slug>, StoreError> {
        let (away, waiting) = self.waiting_for_away(operation).await?;
        let mut named: Vec<Slug> = waiting.iter().map(|(service, _)| service.clone()).collect();
        if passes_over(&waiting) {
            for service in away.iter().filter(|service| !waiting.iter().any(|(waits, _)| waits == *service)) {
                let filter = LetterFilter { service: Some(service.clone()), ..operation.filter.clone() };
                if self.core.store.count_letters(filter, 1).await?.count > 0 {
                    named.push(service.clone());
                }
            }
        }
        named.sort();
        Ok(named)
    }

    /// Returns the delivery that has stopped an operation with its failure: the first thing that an operator wants to know.
    async fn first_failure(&self, operation: &Operation) -> Option<(String, DeliveryId)> {
        if operation.progress.skipped > 0 {
            return operation.cause.clone().zip(operation.failed_delivery);
        }
        let id = self.core.store.failed_replay(operation.id, operation.cursor).await.ok().flatten()?;
        let (_, attempts) = self.core.store.delivery(id).await.ok().flatten()?;
        let reason = attempts.last().map_or("no attempt is recorded".to_owned(), |last| match &last.answer {
            Some(answer) => format!("status {}", answer.status),
            None => last.error.clone().unwrap_or_else(|| "no response".into()),
        });
        Some((failure_text(id, &reason), id))
    }

    async fn end_work(
        &self,
        operation: &Operation,
        to: OperationState,
        cause: Option<(String, Option<DeliveryId>)>,
    ) -> Result<bool, StoreError> {
        let progress = operation.progress;
        let (task, begun, skipped) = (operation.task.word(), progress.begun, progress.skipped);
        let (delivered, failed) = (progress.delivered, progress.failed);
        let (cause, failed_delivery) =
            cause.map_or((None, None), |(cause, delivery)| (Some(cause), delivery));
        let (operation_id, from) = (operation.id, &[OperationState::Running]);
        let cx = self.core.own_context();
        let at = cx.now;
        let transition = OperationTransition {
            operation: operation_id,
            from,
            to,
            cause: cause.clone(),
            failed_delivery,
            at,
        };
        self.core.commit_all(&cx, vec![Change::TransitionOperation(transition)]).await?;
        match cause {
            None => {
                info!(target: "seawall", operationId = %operation.id, task, begun, skipped, delivered, failed, "[DeadLetters][Work] Success.");
            }
            Some(cause) => {
                warn!(target: "seawall", operationId = %operation.id, task, begun, skipped, delivered, failed, cause, action = "ManualReview", "[DeadLetters][Work] Failed!");
            }
        }
        Ok(false)
    }

    /// Adds dead letters to the full-text index, for as long as the process lives.
    pub(in crate::service) async fn index_letters(&self) {
        loop {
            let unit = UnitOfWork::of(Change::Index { limit: INDEXED_TOGETHER });
            let done = self.core.store.commit(WritePriority::Retention, unit).await;
            let full = done.is_ok_and(|done| done.touched >= INDEXED_TOGETHER as usize);
            tokio::time::sleep(if full { INDEX_REST } else { INDEX_EVERY }).await;
        }
    }
}

/// Whether services that are down are left out while these replays wait for them. Some replays may wait there, so that recovery
/// is noticed.
fn passes_over(waiting: &[(Slug, u64)]) -> bool {
    waiting.iter().map(|(_, count)| count).sum::<u64>() >= AWAY_MIN
}

/// Describes a delivery that has failed, or was skipped, as an operation shows it.
fn failure_text(id: DeliveryId, reason: &str) -> String {
    format!("{id}: {reason}")
}

/// Checks the service of a rebuilt request: the current rule may send to one that the author of the operation may not use.
fn within(filter: &LetterFilter, new: NewDelivery) -> Result<NewDelivery, ChangeError> {
    match &filter.within.services {
        Some(services) if !services.contains(&new.service) => Err(ChangeError::Conflict(
            "its rule sends to a service that the key of this operation may not use".into(),
        )),
        _ => Ok(new),
    }
}

fn item(task: &BulkAction, dead: &DeadLetter, new: Option<NewDelivery>) -> Result<BulkItem, ChangeError> {
    let id = dead.delivery.id;
    Ok(match (task, new) {
        (BulkAction::Replay(_), Some(new)) => BulkItem::Replay(id, new),
        (BulkAction::Replay(_), None) => return Err(ChangeError::Missing),
        (BulkAction::Delete, _) => BulkItem::Move(id, LetterAction::Delete),
        (BulkAction::Restore, _) => BulkItem::Move(id, LetterAction::Restore),
        (BulkAction::Park, _) => BulkItem::Move(id, LetterAction::Park),
        (BulkAction::Unpark, _) => BulkItem::Move(id, LetterAction::Unpark),
        (BulkAction::Purge, _) if dead.state == LetterState::Replaying => {
            return Err(ChangeError::Conflict("its replay is in progress".into()));
        }
        (BulkAction::Purge, _) => BulkItem::Move(id, LetterAction::Purge),
    })
}
