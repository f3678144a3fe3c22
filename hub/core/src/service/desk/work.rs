//! Beginning, halting and ending work on many dead letters.

use seawall::breaker::State;
use tracing::info;

use super::super::audit;
use super::super::hub::{Hub, Refused};
use super::{fingerprint, not_done};
use crate::domain::letter::{LetterFilter, Standing};
use crate::domain::operation::{Operation, OperationId, Plan, Run, Tally, Task};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::store::{Change, Dead, Found, Once, PageAt, Steer, Store, StoreError};
use crate::port::transport::Transport;

/// Work to begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// What is done.
    pub task: Task,
    /// To which.
    pub filter: LetterFilter,
    /// To so many at most.
    pub most: Option<u64>,
    /// Whoever asks again under this key means the same.
    pub key: Option<String>,
}

/// What work would take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preview {
    /// So many.
    pub found: Found,
    /// The newest of them.
    pub sample: Vec<Dead>,
}

/// What somebody wants of work that goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Steering {
    /// Nothing more begins.
    Pause,
    /// It goes on.
    Resume,
    /// It ends.
    Cancel,
}

/// So many are counted; more than that is "more than that".
const COUNT_MAX: u64 = 10_000_000;
/// So many are shown.
const SAMPLE: usize = 10;
/// So many can be named one by one.
const IDS_MAX: usize = 1_000;
/// So many stages can a canary have.
const STAGES_MAX: usize = 8;

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// What work would take, were it begun now. Nothing is changed.
    pub async fn preview(&self, task: &Task, filter: LetterFilter) -> Result<Preview, Refused> {
        let filter = narrowed(task, filter, self.now())?;
        let found = self.store.count_letters(filter.clone(), COUNT_MAX).await?;
        let letters = self.store.dead_letters(filter, PageAt { from: None, size: SAMPLE }).await?;
        Ok(Preview { found, sample: letters.page.items })
    }

    /// Begins work on many dead letters: on those that match now, and on none that come later. It goes on by itself, also over
    /// restarts.
    pub async fn begin_work(&self, work: &Work) -> Result<Operation, Refused> {
        check(work)?;
        let marks = fingerprint(&format!("{:?} {:?} {:?}", work.task, work.filter, work.most));
        let began = self.now();
        let filter = narrowed(&work.task, work.filter.clone(), began)?;
        let found = self.store.count_letters(filter.clone(), COUNT_MAX).await?;
        if filter.text.is_some() && found.unindexed > 0 {
            let reason = format!(
                "{} dead letters can't be found by their words yet; wait a moment, or choose by something else",
                found.unindexed
            );
            return Err(Refused::Conflict(reason));
        }
        let by = audit::by();
        let total = work.most.map_or(found.count, |most| most.min(found.count));
        let operation = Operation {
            id: OperationId { era: 0, number: 0 },
            task: planned(&work.task, total),
            filter,
            most: work.most,
            total,
            run: Run::Running,
            why: None,
            tally: Tally::default(),
            cursor: 0,
            looked: false,
            failed_delivery: None,
            who: by.who,
            reason: by.reason,
            began,
            changed: began,
            ended: None,
        };
        let mut changes = Vec::new();
        if let Some(key) = &work.key {
            let (key, note) = (key.clone(), String::new());
            changes.push(Change::Once(Once { scope: "operation", key, fingerprint: marks, note, at: began }));
        }
        changes.push(Change::Begin(Box::new(operation)));
        let id = match self.commit_all(changes).await {
            Ok(committed) => committed.operation,
            Err(StoreError::Happened { fingerprint, note, .. }) if fingerprint == marks => {
                OperationId::parse(&note)
            }
            Err(error) => return Err(not_done(error)),
        };
        self.work.bell.notify_one();
        let operation = self.known(id.ok_or(Refused::Missing)?).await?;
        let (task, total) = (operation.task.word(), operation.total);
        info!(target: "seawall", operationId = %operation.id, task, total, "[DeadLetters][Work] Start.");
        Ok(operation)
    }

    /// Halts work, lets it go on, or ends it. What has begun by then goes on by itself.
    pub async fn steer_work(&self, id: OperationId, steering: Steering) -> Result<Operation, Refused> {
        let (from, to): (&'static [Run], Run) = match steering {
            Steering::Pause => (&[Run::Running], Run::Paused),
            Steering::Resume => (&[Run::Paused, Run::Stopped], Run::Running),
            Steering::Cancel => (&[Run::Running, Run::Paused, Run::Stopped], Run::Cancelled),
        };
        // Whoever resumes what the canary has stopped has seen why, and takes it on: there is no canary any more.
        let steer = Steer { operation: id, from, to, why: None, failed_delivery: None, at: self.now() };
        match self.commit_all(vec![Change::Steer(steer)]).await {
            Ok(_) => {}
            // Clicked twice.
            Err(StoreError::Elsewhere(word)) if word == to.word() => {}
            Err(error) => return Err(not_done(error)),
        }
        self.work.bell.notify_one();
        let operation = self.known(id).await?;
        info!(target: "seawall", operationId = %id, state = operation.run.word(), "[DeadLetters][Work] Success.");
        Ok(operation)
    }

    async fn known(&self, id: OperationId) -> Result<Operation, Refused> {
        self.store.operation(id).await?.ok_or(Refused::Missing)
    }

    /// What work that goes on waits for, if it does: in words for people.
    pub async fn work_waits_for(&self, operation: &Operation) -> Result<Option<String>, StoreError> {
        let replays = matches!(operation.task, Task::Replay(_));
        if operation.run != Run::Running || !replays || operation.tally.under_way() == 0 {
            return Ok(None);
        }
        let closed = |service: &Slug| {
            let paused = self.service(service).is_some_and(|service| service.paused);
            let guard = self.registry().guard(service.as_str());
            let open = guard.as_ref().and_then(|guard| guard.breaker()).is_some_and(|breaker| {
                matches!(breaker.state(), State::Open | State::HalfOpen | State::ForcedOpen)
            });
            match (paused, open) {
                (true, _) => Some(format!("service `{service}` is paused")),
                (_, true) => Some(format!("the circuit of `{service}` is not closed")),
                _ => None,
            }
        };
        let closed = match &operation.filter.service {
            Some(service) => closed(service),
            None => words_on_away(&self.waited_for(operation).await?),
        };
        Ok(closed.or_else(|| operation.looked.then(|| "replays under way have to end".into())))
    }
}

/// What an operation on several services says of those that are away, in words for people.
fn words_on_away(services: &[Slug]) -> Option<String> {
    match services {
        [] => None,
        [one] => Some(format!(
            "`{one}` is paused or its circuit is not closed: what is for it waits, the rest goes on"
        )),
        many => {
            let names = many.iter().map(Slug::as_str).collect::<Vec<_>>().join("`, `");
            Some(format!(
                "`{names}` are paused or their circuits are not closed: what is for them waits, the rest goes on"
            ))
        }
    }
}

fn check(work: &Work) -> Result<(), Refused> {
    let mut wrong = Vec::new();
    if let Task::Replay(Plan { rate, canary, .. }) = &work.task {
        if !(1..=Plan::RATE_MAX).contains(rate) {
            wrong.push(("ratePerSecond".to_owned(), format!("it is 1 to {}", Plan::RATE_MAX)));
        }
        if canary.len() > STAGES_MAX || canary.contains(&0) {
            let reason = format!("up to {STAGES_MAX} counts, each at least 1, such as [1, 10]");
            wrong.push(("canary".into(), reason));
        }
    }
    if work.most == Some(0) {
        wrong.push(("max".into(), "at least 1; without it, all".into()));
    }
    if work.filter.ids.len() > IDS_MAX {
        wrong
            .push(("filter.ids".into(), format!("up to {IDS_MAX}; choose more by what they have in common")));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Refused::Wrong(wrong)) }
}

/// A canary is for the sake of those that come behind it. Where nobody does there is none.
fn planned(task: &Task, total: u64) -> Task {
    match task {
        Task::Replay(plan) if total <= 1 => Task::Replay(Plan { canary: Vec::new(), ..plan.clone() }),
        task => task.clone(),
    }
}

/// The filter, as far as the task can take what it finds, and nothing that comes later.
fn narrowed(task: &Task, filter: LetterFilter, now: Millis) -> Result<LetterFilter, Refused> {
    // The first is what is meant if nobody says.
    let (usual, also): (&[Standing], &[Standing]) = match task {
        Task::Replay(_) => (&[Standing::Open], &[Standing::Parked]),
        Task::Park => (&[Standing::Open], &[]),
        Task::Unpark => (&[Standing::Parked], &[]),
        Task::Restore => (&[Standing::Deleted], &[]),
        Task::Delete => (&[Standing::Open], &[Standing::Parked, Standing::Delivered, Standing::FailedAgain]),
        Task::Purge => (
            &[
                Standing::Open,
                Standing::Parked,
                Standing::Delivered,
                Standing::FailedAgain,
                Standing::Deleted,
            ],
            &[],
        ),
    };
    let asked: Vec<Standing> = match &filter.standings[..] {
        [] => usual.to_vec(),
        asked => {
            asked.iter().copied().filter(|asked| usual.contains(asked) || also.contains(asked)).collect()
        }
    };
    if asked.is_empty() {
        let words: Vec<&str> = usual.iter().chain(also).map(|standing| standing.word()).collect();
        let reason = format!("to {} there must be some that are {}", task.word(), words.join(" or "));
        return Err(Refused::Wrong(vec![("filter.standing".into(), reason)]));
    }
    let before = Millis(now.0.saturating_add(1));
    let before = filter.before.map_or(before, |asked| asked.min(before));
    Ok(LetterFilter { standings: asked, before: Some(before), ..filter })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-6: a replay of many takes what is open unless somebody says otherwise, never what is under way, and nothing later.
    #[test]
    fn hub_6_work_takes_what_it_can_and_nothing_that_comes_later() {
        let plan = || Task::Replay(Plan { mode: Default::default(), rate: 1, canary: vec![] });
        let narrow = |task: Task, standings: &[Standing]| {
            let filter = LetterFilter { standings: standings.to_vec(), ..LetterFilter::default() };
            narrowed(&task, filter, Millis(7)).map(|filter| (filter.standings, filter.before))
        };
        let until = Some(Millis(8));
        assert_eq!(narrow(plan(), &[]), Ok((vec![Standing::Open], until)));
        assert_eq!(narrow(plan(), &[Standing::Parked]), Ok((vec![Standing::Parked], until)));
        let mixed = [Standing::Replaying, Standing::Open];
        assert_eq!(narrow(plan(), &mixed), Ok((vec![Standing::Open], until)));
        assert!(matches!(narrow(plan(), &[Standing::Delivered]), Err(Refused::Wrong(_))));
        assert!(matches!(narrow(Task::Restore, &[Standing::Open]), Err(Refused::Wrong(_))));
        let early = LetterFilter { before: Some(Millis(3)), ..LetterFilter::default() };
        assert_eq!(narrowed(&Task::Park, early, Millis(7)).unwrap().before, Some(Millis(3)));
    }
}
