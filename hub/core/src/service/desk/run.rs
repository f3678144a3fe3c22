//! Doing work on many dead letters, a few at a time.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use seawall::Tick;
use tokio::sync::Notify;
use tracing::{info, warn};

use super::super::hub::{Hub, Refused};
use super::passes::Passes;
use super::remake::Remaker;
use crate::domain::delivery::DeliveryId;
use crate::domain::letter::{LetterFilter, Standing};
use crate::domain::operation::{AHEAD, Operation, OperationId, Pace, Run, Step, Task};
use crate::domain::slug::Slug;
use crate::port::store::{
    Change, Dead, Doing, NewDelivery, Steer, Store, StoreError, Tray, Unit, Urgency, WorkStep,
};
use crate::port::transport::Transport;

/// So often something begins, while there is something to begin,
const TICK: Duration = Duration::from_millis(20);
/// and so often somebody looks, while everything waits.
const WAIT: Duration = Duration::from_millis(100);
/// If nobody rings, there is something to do after so long at the latest: a start may have left work.
const IDLE: Duration = Duration::from_secs(5);
/// A store that does not answer is asked again after this long.
const STORE_AGAIN: Duration = Duration::from_secs(1);
/// So many go together at most: the one who writes is held up for some milliseconds.
const TOGETHER: u64 = 200;
/// When so many replays wait for services that are away, the rest of these is passed over.
const AWAY_MIN: u64 = AHEAD / 2;
/// What counts as lately.
const LATELY: Duration = Duration::from_millis(500);
/// Dead letters become findable so many at a time,
const INDEXED_TOGETHER: u32 = 32;
/// with a rest in between,
const INDEX_REST: Duration = Duration::from_millis(5);
/// and are looked for so often.
const INDEX_EVERY: Duration = Duration::from_millis(500);

/// What is known of work that goes on.
#[derive(Debug, Default)]
pub(in crate::service) struct Work {
    /// Rung when something has begun, goes on or has ended.
    pub(in crate::service) bell: Notify,
}

/// One such work in hand.
struct Hand {
    passes: Passes,
    pace: Pace,
    last: Tick,
    /// How many replays had been tried when.
    tried: VecDeque<(Tick, u64)>,
}

impl Hand {
    fn new(operation: &Operation, now: Tick) -> Self {
        let rate = if let Task::Replay(plan) = &operation.task { plan.rate } else { 1 };
        let passes = Passes::new(operation.cursor);
        Hand { passes, pace: Pace::new(rate), last: now, tried: VecDeque::new() }
    }

    /// How many have been tried lately.
    fn lately(&mut self, tried: u64, now: Tick) -> u64 {
        self.tried.push_back((now, tried));
        while self.tried.len() > 1 && now.since(self.tried[0].0) > LATELY {
            self.tried.pop_front();
        }
        tried.saturating_sub(self.tried[0].1)
    }
}

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Does what there is to do, for as long as the process lives.
    pub(in crate::service) async fn work_for_ever(&self) {
        let mut hands: HashMap<OperationId, Hand> = HashMap::new();
        loop {
            let wait = match self.store.running().await {
                Ok(running) => {
                    hands.retain(|id, _| running.iter().any(|operation| operation.id == *id));
                    self.turn(running, &mut hands).await
                }
                Err(_) => STORE_AGAIN,
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.work.bell.notified() => {}
            }
        }
    }

    /// A step of each. Says how long nothing can happen.
    async fn turn(&self, running: Vec<Operation>, hands: &mut HashMap<OperationId, Hand>) -> Duration {
        let mut wait = if running.is_empty() { IDLE } else { WAIT };
        for operation in running {
            let now = self.clock.precise();
            let hand = hands.entry(operation.id).or_insert_with(|| Hand::new(&operation, now));
            match self.step(&operation, hand, now).await {
                Ok(true) => wait = TICK,
                Ok(false) => {}
                // Somebody has halted or ended it.
                Err(StoreError::Elsewhere(_)) => {}
                Err(error) => {
                    warn!(target: "seawall", operationId = %operation.id, cause = %error, "[DeadLetters][Work] Retry triggered.");
                    wait = wait.min(STORE_AGAIN);
                }
            }
        }
        wait
    }

    /// One step. Says whether more may begin soon.
    async fn step(&self, operation: &Operation, hand: &mut Hand, now: Tick) -> Result<bool, StoreError> {
        let lately = hand.lately(operation.tally.tried, now);
        let paced = hand.pace.after(now.since(hand.last));
        hand.last = now;
        let (away, waiting) = self.away_from(operation).await?;
        let count = match operation.next_beside(lately, waiting) {
            Step::Begin(count) => count.min(TOGETHER),
            Step::Wait => return Ok(false),
            Step::Finish => return self.end_work(operation, Run::Done, None).await,
            Step::Stop(why) => {
                let (evidence, failed_delivery) = self.evidence(operation).await;
                let why = format!("{why}{evidence}");
                return self.end_work(operation, Run::Stopped, Some((why, failed_delivery))).await;
            }
        };
        let replays = matches!(operation.task, Task::Replay(_));
        let count = if replays { count.min(paced) } else { count };
        if count == 0 {
            return Ok(true);
        }
        let Some(position) = hand.passes.look(&away) else { return Ok(false) };
        let most = usize::try_from(count).unwrap_or(usize::MAX);
        let filter = LetterFilter { except: away, ..operation.filter.clone() };
        let (letters, position, more) = self.store.letters_behind(filter, position, most).await?;
        let (cursor, looked) = hand.passes.came(position, more);
        let mut step = WorkStep {
            operation: operation.id,
            doings: Vec::with_capacity(letters.len()),
            skipped: 0,
            why: None,
            failed_delivery: None,
            cursor,
            looked,
            at: self.now(),
        };
        let mut remaker = Remaker::new(self);
        for (dead, event) in &letters {
            let made = match &operation.task {
                Task::Replay(plan) => Some(remaker.make(&dead.delivery, event, plan.mode).await),
                _ => None,
            };
            let made =
                made.transpose().and_then(|new| new.map(|new| within(&operation.filter, new)).transpose());
            match made.and_then(|new| doing(&operation.task, dead, new)) {
                Ok(doing) => step.doings.push(doing),
                Err(_) if !hand.passes.leave(dead.delivery.id) => {}
                Err(refused) => {
                    step.skipped += 1;
                    step.why = Some(format!("{}: {refused}", dead.delivery.id));
                    step.failed_delivery = Some(dead.delivery.id);
                }
            }
        }
        let committed = self.store.commit(Urgency::Admin, Unit::of(Change::Step(step))).await?;
        hand.pace.used(committed.touched as u64);
        self.deliver.look_again();
        Ok(true)
    }

    /// The services that an operation passes over, because nothing is sent to them at present, and how many of its replays wait
    /// for them. An operation on a single service has nobody else to go on for.
    async fn away_from(&self, operation: &Operation) -> Result<(Vec<Slug>, u64), StoreError> {
        let several = matches!(operation.task, Task::Replay(_)) && operation.filter.service.is_none();
        if !several || operation.tally.untried() < AWAY_MIN {
            return Ok((Vec::new(), 0));
        }
        let (away, waiting) = self.waiting_for_away(operation).await?;
        match passes_over(&waiting) {
            true => Ok((away, waiting.iter().map(|(_, count)| count).sum())),
            false => Ok((Vec::new(), 0)),
        }
    }

    /// All services to which nothing is sent at present, and those of them for which replays of this operation wait.
    async fn waiting_for_away(
        &self,
        operation: &Operation,
    ) -> Result<(Vec<Slug>, Vec<(Slug, u64)>), StoreError> {
        let away = self.deliver.away();
        let waiting = match &away[..] {
            [] => Vec::new(),
            _ => self.store.untried_replays(operation.id, away.clone()).await?,
        };
        Ok((away, waiting))
    }

    /// The services that are away and for which an operation on several services has something: replays that wait, or dead letters
    /// that it leaves until the service is back.
    pub(super) async fn waited_for(&self, operation: &Operation) -> Result<Vec<Slug>, StoreError> {
        let (away, waiting) = self.waiting_for_away(operation).await?;
        let mut named: Vec<Slug> = waiting.iter().map(|(service, _)| service.clone()).collect();
        if passes_over(&waiting) {
            for service in away.iter().filter(|service| !waiting.iter().any(|(waits, _)| waits == *service)) {
                let filter = LetterFilter { service: Some(service.clone()), ..operation.filter.clone() };
                if self.store.count_letters(filter, 1).await?.count > 0 {
                    named.push(service.clone());
                }
            }
        }
        named.sort();
        Ok(named)
    }

    /// Which delivery has stopped work, and what it was answered: the first question of whoever finds it stopped.
    async fn evidence(&self, operation: &Operation) -> (String, Option<DeliveryId>) {
        if operation.tally.skipped > 0 {
            let why = operation.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            return (why, operation.failed_delivery);
        }
        let Ok(Some(id)) = self.store.failed_replay(operation.id, operation.cursor).await else {
            return (String::new(), None);
        };
        let attempts = self.store.delivery(id).await.ok().flatten().map(|(_, attempts)| attempts);
        let said = attempts.as_ref().and_then(|attempts| attempts.last()).map(|last| match &last.answer {
            Some(answer) => format!(" was answered {}", answer.status),
            None => format!(": {}", last.error.as_deref().unwrap_or("no answer")),
        });
        (format!("; {id}{}", said.unwrap_or_default()), Some(id))
    }

    async fn end_work(
        &self,
        operation: &Operation,
        to: Run,
        why: Option<(String, Option<DeliveryId>)>,
    ) -> Result<bool, StoreError> {
        let tally = operation.tally;
        let (task, begun, skipped) = (operation.task.word(), tally.begun, tally.skipped);
        let (delivered, failed) = (tally.delivered, tally.failed);
        let (why, failed_delivery) = why.map_or((None, None), |(why, delivery)| (Some(why), delivery));
        let (operation_id, from) = (operation.id, &[Run::Running]);
        let at = self.now();
        let steer = Steer { operation: operation_id, from, to, why: why.clone(), failed_delivery, at };
        self.commit_all(vec![Change::Steer(steer)]).await?;
        match why {
            None => {
                info!(target: "seawall", operationId = %operation.id, task, begun, skipped, delivered, failed, "[DeadLetters][Work] Success.");
            }
            Some(cause) => {
                warn!(target: "seawall", operationId = %operation.id, task, begun, skipped, delivered, failed, cause, action = "ManualReview", "[DeadLetters][Work] Failed!");
            }
        }
        Ok(false)
    }

    /// Makes dead letters findable by their words, for as long as the process lives.
    pub(in crate::service) async fn index_for_ever(&self) {
        loop {
            let unit = Unit::of(Change::Index { most: INDEXED_TOGETHER });
            let done = self.store.commit(Urgency::Retention, unit).await;
            let full = done.is_ok_and(|done| done.touched >= INDEXED_TOGETHER as usize);
            tokio::time::sleep(if full { INDEX_REST } else { INDEX_EVERY }).await;
        }
    }
}

/// Whether services that are away are passed over while these replays wait for them. Some may wait there, so that one sees that it does.
fn passes_over(waiting: &[(Slug, u64)]) -> bool {
    waiting.iter().map(|(_, count)| count).sum::<u64>() >= AWAY_MIN
}

/// A rule may send elsewhere today, where whoever has begun the work may not send.
fn within(filter: &LetterFilter, new: NewDelivery) -> Result<NewDelivery, Refused> {
    match &filter.within.services {
        Some(services) if !services.contains(&new.service) => {
            Err(Refused::Conflict("its rule sends to a service that is not for whoever began this".into()))
        }
        _ => Ok(new),
    }
}

fn doing(task: &Task, dead: &Dead, new: Option<NewDelivery>) -> Result<Doing, Refused> {
    let id = dead.delivery.id;
    Ok(match (task, new) {
        (Task::Replay(_), Some(new)) => Doing::Replay(id, new),
        (Task::Replay(_), None) => return Err(Refused::Missing),
        (Task::Delete, _) => Doing::Move(id, Tray::Bin),
        (Task::Restore, _) => Doing::Move(id, Tray::OutOfBin),
        (Task::Park, _) => Doing::Move(id, Tray::Aside),
        (Task::Unpark, _) => Doing::Move(id, Tray::Back),
        (Task::Purge, _) if dead.standing == Standing::Replaying => {
            return Err(Refused::Conflict("its replay is under way".into()));
        }
        (Task::Purge, _) => Doing::Move(id, Tray::Nowhere),
    })
}
