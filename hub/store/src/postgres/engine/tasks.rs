//! The tasks that write.
//!
//! # Why two, and why so few?
//! What comes and goes all the time must not wait for a change of many rows that somebody has asked for, so each has a connection.
//! More of them for the same work cost more than they bring: what queues up while one transaction waits for the disk is committed
//! together by the next.

use std::sync::Arc;

use seawall::Tick;
use seawall_hub_core::port::store::{
    Claim, CommitResult, StoreError, StoredDelivery, UnitOfWork, WritePriority,
};
use seawall_hub_core::sync::Lock;
use tokio::sync::oneshot::Sender;

use super::node::HubNode;
use super::writer::{TransactError, Transactor};
use crate::postgres::write::applier::UnitApplier;
use crate::postgres::write::batch::{self, UnitShape};
use crate::queue::{Job, WriteJob, WriteQueue};
use crate::steps::Steps;
use crate::telemetry::CommitTelemetry;

/// The reason why nothing is written any more after another process has taken over.
pub(in crate::postgres) const TAKEN_OVER: &str =
    "another hub has taken over the database, because this one was not heard of; only one may use it";

/// A job with the time since when it waits.
pub(in crate::postgres) struct TimedJob {
    pub(in crate::postgres) job: WriteJob,
    pub(in crate::postgres) since: Tick,
}

impl Job for TimedJob {
    fn refuse(self, error: &StoreError) {
        self.job.refuse(error);
    }
}

/// A unit, and who waits for its result.
struct WaitingUnit {
    unit: UnitOfWork,
    reply: Sender<Result<CommitResult, StoreError>>,
}

/// One of the tasks that write.
pub(in crate::postgres) struct WriteTask {
    pub(in crate::postgres) lanes: [WritePriority; 2],
    pub(in crate::postgres) queue: Arc<WriteQueue<TimedJob>>,
    pub(in crate::postgres) transactor: Transactor,
    pub(in crate::postgres) node: Arc<HubNode>,
    pub(in crate::postgres) steps: Arc<Steps>,
    pub(in crate::postgres) telemetry: CommitTelemetry,
    /// What transactions have claimed whose end is not known. Nobody has it in hand, so it goes back to the store.
    pub(in crate::postgres) stray: Vec<Claim>,
}

/// The shapes of units that are applied many at once, in the sequence in which they lock.
const TOGETHER: [UnitShape; 4] =
    [UnitShape::KeyedEvent, UnitShape::Event, UnitShape::Outcome, UnitShape::Return];

impl WriteTask {
    /// Writes what queues up until the queue is closed and empty.
    pub(in crate::postgres) async fn run(mut self) {
        loop {
            let jobs = self.queue.next_of(self.lanes).await;
            if jobs.is_empty() {
                return;
            }
            // Before anything is claimed again: what this returns must not be in anybody's hand.
            let first = jobs.first().map_or_else(|| self.node.now(), |job| job.since);
            self.return_stray(first).await;
            if !self.stray.is_empty() {
                jobs.into_iter().for_each(|job| job.refuse(&StoreError::Unavailable { sent: false }));
                continue;
            }
            self.commit(jobs).await;
            self.return_stray(self.node.now()).await;
        }
    }

    /// Gives back what was claimed by transactions without an answer. A transaction of the same writer waits for the end of the one
    /// before, so what that one has claimed is there by then, or never will be.
    async fn return_stray(&mut self, since: Tick) {
        if self.stray.is_empty() {
            return;
        }
        let stray = std::mem::take(&mut self.stray);
        let work = async |session: &_, node| UnitApplier::new(session, node).return_to_store(&stray).await;
        if self.transactor.run(since, work).await.is_err() {
            self.stray = stray;
        }
    }

    /// Keeps what a transaction has claimed if nobody knows whether it was committed.
    fn keep_stray<T>(&mut self, made: &Result<T, TransactError>, claimed: &Lock<Vec<Claim>>) {
        if matches!(made, Err(TransactError::Away { sent: true })) {
            self.stray.append(&mut claimed.lock());
        }
    }

    async fn commit(&mut self, jobs: Vec<TimedJob>) {
        let mut groups: [Vec<WaitingUnit>; TOGETHER.len()] = Default::default();
        let (mut singles, mut oldest) = (Vec::new(), None);
        for TimedJob { job, since } in jobs {
            if self.node.is_over(since) {
                job.refuse(&StoreError::Unavailable { sent: false });
                continue;
            }
            match job {
                WriteJob::Commit(unit, reply) => match self.group_of(&unit) {
                    Some(group) => {
                        oldest = Some(oldest.map_or(since, |oldest: Tick| oldest.min(since)));
                        groups[group].push(WaitingUnit { unit, reply });
                    }
                    None => singles.push((WriteJob::Commit(unit, reply), since)),
                },
                take @ WriteJob::Take(..) => singles.push((take, since)),
            }
        }
        if let Some(since) = oldest {
            self.commit_groups(since, groups).await;
        }
        for (job, since) in singles {
            self.commit_single(since, job).await;
        }
    }

    /// Returns the group that a unit is applied with; `None` if it is a transaction of its own. So is the outcome of a suspect:
    /// should the process end over it, nobody else is to blame.
    fn group_of(&self, unit: &UnitOfWork) -> Option<usize> {
        let shape = batch::shape(unit);
        let group = TOGETHER.iter().position(|together| *together == shape)?;
        let is_suspect = self.steps.has_suspects() && self.steps.recording(unit).is_some();
        (!is_suspect).then_some(group)
    }

    /// Applies all groups in one transaction. If that fails, each unit gets its own.
    async fn commit_groups(&mut self, since: Tick, groups: [Vec<WaitingUnit>; TOGETHER.len()]) {
        let units: [Vec<&UnitOfWork>; TOGETHER.len()] =
            groups.each_ref().map(|group| group.iter().map(|waiting| &waiting.unit).collect());
        let (began, claimed) = (self.telemetry.now(), Lock::default());
        let made = self.transactor.run(since, async |session, node| {
            let mut results = Vec::new();
            for (shape, units) in TOGETHER.into_iter().zip(&units).filter(|(_, units)| !units.is_empty()) {
                results.extend(batch::apply_batch(session, node, shape, units).await?);
            }
            *claimed.lock() = results.iter().flatten().flat_map(claims_of).collect();
            Ok(results)
        });
        let made = made.await;
        self.keep_stray(&made, &claimed);
        let count: usize = units.iter().map(Vec::len).sum();
        let waiting = groups.into_iter().flatten();
        self.telemetry.ended(count, began, made.is_ok());
        match made {
            Ok(results) => {
                for (waiting, result) in waiting.zip(results) {
                    // Whoever does not wait any more does not need it.
                    let _ = waiting.reply.send(result);
                }
            }
            Err(TransactError::Failed(StoreError::Failed(_))) if count > 1 => {
                for WaitingUnit { unit, reply } in waiting {
                    self.commit_single(since, WriteJob::Commit(unit, reply)).await;
                }
            }
            Err(error) => {
                let error = self.translate(error);
                waiting.for_each(|waiting| drop(waiting.reply.send(Err(error.clone()))));
            }
        }
    }

    async fn commit_single(&mut self, since: Tick, job: WriteJob) {
        let (began, claimed) = (self.telemetry.now(), Lock::default());
        match job {
            WriteJob::Commit(unit, reply) => {
                let steps = self.steps.clone();
                let _marked = steps.has_suspects().then(|| steps.recording(&unit));
                let work = async |session: &_, node| {
                    let result = UnitApplier::new(session, node).unit(&unit).await?;
                    *claimed.lock() = claims_of(&result);
                    Ok(result)
                };
                let made = self.transactor.run(since, work).await;
                self.keep_stray(&made, &claimed);
                self.telemetry.ended(1, began, is_well(&made));
                let _ = reply.send(made.map_err(|error| self.translate(error)));
            }
            WriteJob::Take(now, room, reply) => {
                let work = async |session: &_, node| {
                    let taken = UnitApplier::new(session, node).take_due(now, &room).await?;
                    *claimed.lock() = taken.iter().map(claim_of).collect();
                    Ok(taken)
                };
                let made = self.transactor.run(since, work).await;
                self.keep_stray(&made, &claimed);
                self.telemetry.ended(1, began, is_well(&made));
                let _ = reply.send(made.map_err(|error| self.translate(error)));
            }
        }
    }

    fn translate(&self, error: TransactError) -> StoreError {
        match error {
            TransactError::Refused(error) | TransactError::Failed(error) => error,
            TransactError::Away { sent } => StoreError::Unavailable { sent },
            TransactError::Lost => {
                self.queue.break_off(TAKEN_OVER);
                StoreError::Broken(TAKEN_OVER.into())
            }
        }
    }
}

fn claim_of(delivery: &StoredDelivery) -> Claim {
    Claim { delivery: delivery.id, epoch: delivery.epoch }
}

/// Returns what a unit may have claimed. What waits is not changed by giving it back.
fn claims_of(result: &CommitResult) -> Vec<Claim> {
    let inserted =
        result.deliveries.iter().map(|(delivery, _)| Claim { delivery: *delivery, epoch: result.epoch });
    inserted.chain(result.ready.iter().map(claim_of)).collect()
}

/// Whether the database has done its part: a unit that it has reason to refuse is no failure of the database.
fn is_well<T>(made: &Result<T, TransactError>) -> bool {
    matches!(made, Ok(_) | Err(TransactError::Refused(_)))
}
