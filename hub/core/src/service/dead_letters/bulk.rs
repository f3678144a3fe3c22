//! Beginning, halting and ending work on many dead letters.

use seawall::breaker::State;
use tracing::info;

use super::replay::{fingerprint, not_done};
use crate::domain::dead_letter::{LetterFilter, LetterState};
use crate::domain::operation::{
    BulkAction, Operation, OperationId, OperationProgress, OperationState, ReplayPlan,
};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::store::{
    Change, DeadLetter, IdempotencyRecord, MatchCount, OperationTransition, PageRequest, Store, StoreError,
};
use crate::port::transport::Transport;
use crate::service::context::Context;
use crate::service::handles::DeadLetterHandle;
use crate::service::shared::ChangeError;

/// A request to start a bulk operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BulkRequest {
    /// The action on each dead letter.
    pub task: BulkAction,
    /// The dead letters that it applies to.
    pub filter: LetterFilter,
    /// The maximum number of dead letters; `None` means all.
    pub limit: Option<u64>,
    /// The idempotency key of the request.
    pub key: Option<String>,
}

/// What a bulk operation would apply to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BulkPreview {
    /// The number of matches.
    pub found: MatchCount,
    /// The newest matches, as a sample.
    pub sample: Vec<DeadLetter>,
}

/// A command for a running operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperationCommand {
    /// Starts nothing more until it is resumed.
    Pause,
    /// Continues a paused operation.
    Resume,
    /// Ends the operation for good.
    Cancel,
}

/// The number up to which matches are counted.
const COUNT_MAX: u64 = 10_000_000;
/// The number of dead letters in a sample.
const SAMPLE: usize = 10;
/// The maximum number of ids in a filter.
const IDS_MAX: usize = 1_000;
/// The maximum number of canary stages.
const STAGES_MAX: usize = 8;

impl<S: Store + Clone, T: Transport> DeadLetterHandle<S, T> {
    /// Previews an operation, without changing anything.
    pub async fn preview(&self, task: &BulkAction, filter: LetterFilter) -> Result<BulkPreview, ChangeError> {
        let filter = narrowed(task, filter, self.core.now())?;
        let found = self.core.store.count_letters(filter.clone(), COUNT_MAX).await?;
        let letters = self.core.store.dead_letters(filter, PageRequest { from: None, size: SAMPLE }).await?;
        Ok(BulkPreview { found, sample: letters.page.items })
    }

    /// Starts a bulk operation on the dead letters that match now. It continues by itself, also after restarts.
    pub async fn start_operation(&self, cx: &Context, work: &BulkRequest) -> Result<Operation, ChangeError> {
        check(work)?;
        let marks = fingerprint(&format!("{:?} {:?} {:?}", work.task, work.filter, work.limit));
        let began = cx.now;
        let filter = self.bounded(narrowed(&work.task, work.filter.clone(), began)?).await?;
        let found = self.core.store.count_letters(filter.clone(), COUNT_MAX).await?;
        if filter.text.is_some() && found.unindexed > 0 {
            let reason = format!(
                "{} dead letters are not indexed yet; try again in a moment, or use another filter",
                found.unindexed
            );
            return Err(ChangeError::Conflict(reason));
        }
        let total = work.limit.map_or(found.count, |limit| limit.min(found.count));
        let operation = Operation {
            id: OperationId::new(0, 0),
            task: planned(&work.task, total),
            filter,
            limit: work.limit,
            total,
            run: OperationState::Running,
            cause: None,
            progress: OperationProgress::default(),
            cursor: 0,
            exhausted: false,
            failed_delivery: None,
            who: cx.author.to_string(),
            reason: cx.reason.clone(),
            began,
            changed: began,
            ended: None,
        };
        let mut changes = Vec::new();
        if let Some(key) = &work.key {
            let (key, note) = (key.clone(), String::new());
            changes.push(Change::ClaimKey(IdempotencyRecord {
                scope: "operation",
                key,
                fingerprint: marks,
                note,
                at: began,
            }));
        }
        changes.push(Change::StartOperation(Box::new(operation)));
        let id = match self.core.commit_all(cx, changes).await {
            Ok(committed) => committed.operation,
            Err(StoreError::AlreadyApplied { fingerprint, note, .. }) if fingerprint == marks => {
                OperationId::parse(&note)
            }
            Err(error) => return Err(not_done(error)),
        };
        self.core.operations.wake.notify_one();
        let operation = self.known(id.ok_or(ChangeError::Missing)?).await?;
        let (task, total) = (operation.task.word(), operation.total);
        info!(target: "seawall", operationId = %operation.id, task, total, "[DeadLetters][Work] Start.");
        Ok(operation)
    }

    /// Pauses, resumes or cancels an operation. Replays already started will finish.
    pub async fn command_operation(
        &self,
        cx: &Context,
        id: OperationId,
        command: OperationCommand,
    ) -> Result<Operation, ChangeError> {
        let (from, to): (&'static [OperationState], OperationState) = match command {
            OperationCommand::Pause => (&[OperationState::Running], OperationState::Paused),
            OperationCommand::Resume => {
                (&[OperationState::Paused, OperationState::Stopped], OperationState::Running)
            }
            OperationCommand::Cancel => (
                &[OperationState::Running, OperationState::Paused, OperationState::Stopped],
                OperationState::Cancelled,
            ),
        };
        // An operator who resumes what the canary has stopped has seen the reason: there is no canary any more.
        let transition =
            OperationTransition { operation: id, from, to, cause: None, failed_delivery: None, at: cx.now };
        match self.core.commit_all(cx, vec![Change::TransitionOperation(transition)]).await {
            Ok(_) => {}
            // Clicked twice.
            Err(StoreError::WrongState(word)) if word == to.word() => {}
            Err(error) => return Err(not_done(error)),
        }
        self.core.operations.wake.notify_one();
        let operation = self.known(id).await?;
        info!(target: "seawall", operationId = %id, state = operation.run.word(), "[DeadLetters][Work] Success.");
        Ok(operation)
    }

    /// Bounds a filter by the newest dead letter that matches now. A time alone would not do: a replay may fail in the millisecond in
    /// which its operation starts.
    async fn bounded(&self, filter: LetterFilter) -> Result<LetterFilter, StoreError> {
        let newest =
            self.core.store.dead_letters(filter.clone(), PageRequest { from: None, size: 1 }).await?;
        let up_to = newest.page.items.first().map_or(0, |letter| letter.delivery.id.number);
        Ok(LetterFilter { up_to: Some(up_to), ..filter })
    }

    async fn known(&self, id: OperationId) -> Result<Operation, ChangeError> {
        self.core.store.operation(id).await?.ok_or(ChangeError::Missing)
    }

    /// Describes what a running operation waits for, if it waits.
    pub async fn describe_wait(&self, operation: &Operation) -> Result<Option<String>, StoreError> {
        let replays = matches!(operation.task, BulkAction::Replay(_));
        if operation.run != OperationState::Running || !replays || operation.progress.under_way() == 0 {
            return Ok(None);
        }
        let closed = |service: &Slug| {
            let paused = self.core.service(service).is_some_and(|service| service.paused);
            let guard = self.core.registry.guard(service.as_str());
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
        Ok(closed.or_else(|| operation.exhausted.then(|| "replays in progress have to end".into())))
    }
}

/// Describes the services that are down, for an operation on several services.
fn words_on_away(services: &[Slug]) -> Option<String> {
    match services {
        [] => None,
        [one] => Some(format!(
            "`{one}` is paused or its circuit is not closed: its replays wait, the others continue"
        )),
        many => {
            let names = many.iter().map(Slug::as_str).collect::<Vec<_>>().join("`, `");
            Some(format!(
                "`{names}` are paused or their circuits are not closed: their replays wait, the others continue"
            ))
        }
    }
}

fn check(work: &BulkRequest) -> Result<(), ChangeError> {
    let mut wrong = Vec::new();
    if let BulkAction::Replay(ReplayPlan { rate, canary, .. }) = &work.task {
        if !(1..=ReplayPlan::RATE_MAX).contains(rate) {
            wrong.push(("ratePerSecond".to_owned(), format!("must be from 1 to {}", ReplayPlan::RATE_MAX)));
        }
        if canary.len() > STAGES_MAX || canary.contains(&0) {
            let reason = format!("up to {STAGES_MAX} counts, each at least 1, such as [1, 10]");
            wrong.push(("canary".into(), reason));
        }
    }
    if work.limit == Some(0) {
        wrong.push(("max".into(), "at least 1; without it, all".into()));
    }
    if work.filter.ids.len() > IDS_MAX {
        wrong
            .push(("filter.ids".into(), format!("up to {IDS_MAX}; choose more by what they have in common")));
    }
    if wrong.is_empty() { Ok(()) } else { Err(ChangeError::Wrong(wrong)) }
}

/// Removes the canary from a plan that has nothing to protect behind it.
fn planned(task: &BulkAction, total: u64) -> BulkAction {
    match task {
        BulkAction::Replay(plan) if total <= 1 => {
            BulkAction::Replay(ReplayPlan { canary: Vec::new(), ..plan.clone() })
        }
        task => task.clone(),
    }
}

/// Narrows the filter to what the action applies to, and to nothing that comes later.
fn narrowed(task: &BulkAction, filter: LetterFilter, now: Millis) -> Result<LetterFilter, ChangeError> {
    // The first is what is meant if nobody says.
    let (usual, also): (&[LetterState], &[LetterState]) = match task {
        BulkAction::Replay(_) => (&[LetterState::Open], &[LetterState::Parked]),
        BulkAction::Park => (&[LetterState::Open], &[]),
        BulkAction::Unpark => (&[LetterState::Parked], &[]),
        BulkAction::Restore => (&[LetterState::Deleted], &[]),
        BulkAction::Delete => {
            (&[LetterState::Open], &[LetterState::Parked, LetterState::Delivered, LetterState::FailedAgain])
        }
        BulkAction::Purge => (
            &[
                LetterState::Open,
                LetterState::Parked,
                LetterState::Delivered,
                LetterState::FailedAgain,
                LetterState::Deleted,
            ],
            &[],
        ),
    };
    let asked: Vec<LetterState> = match &filter.states[..] {
        [] => usual.to_vec(),
        asked => {
            asked.iter().copied().filter(|asked| usual.contains(asked) || also.contains(asked)).collect()
        }
    };
    if asked.is_empty() {
        let words: Vec<&str> = usual.iter().chain(also).map(|state| state.word()).collect();
        let reason = format!("to {} there must be some that are {}", task.word(), words.join(" or "));
        return Err(ChangeError::Wrong(vec![("filter.standing".into(), reason)]));
    }
    let before = Millis(now.0.saturating_add(1));
    let before = filter.before.map_or(before, |asked| asked.min(before));
    Ok(LetterFilter { states: asked, before: Some(before), ..filter })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-6: a replay of many takes what is open unless somebody says otherwise, never what is under way, and nothing later.
    #[test]
    fn hub_6_work_takes_what_it_can_and_nothing_that_comes_later() {
        let plan = || BulkAction::Replay(ReplayPlan { mode: Default::default(), rate: 1, canary: vec![] });
        let narrow = |task: BulkAction, states: &[LetterState]| {
            let filter = LetterFilter { states: states.to_vec(), ..LetterFilter::default() };
            narrowed(&task, filter, Millis(7)).map(|filter| (filter.states, filter.before))
        };
        let until = Some(Millis(8));
        assert_eq!(narrow(plan(), &[]), Ok((vec![LetterState::Open], until)));
        assert_eq!(narrow(plan(), &[LetterState::Parked]), Ok((vec![LetterState::Parked], until)));
        let mixed = [LetterState::Replaying, LetterState::Open];
        assert_eq!(narrow(plan(), &mixed), Ok((vec![LetterState::Open], until)));
        assert!(matches!(narrow(plan(), &[LetterState::Delivered]), Err(ChangeError::Wrong(_))));
        assert!(matches!(narrow(BulkAction::Restore, &[LetterState::Open]), Err(ChangeError::Wrong(_))));
        let early = LetterFilter { before: Some(Millis(3)), ..LetterFilter::default() };
        assert_eq!(narrowed(&BulkAction::Park, early, Millis(7)).unwrap().before, Some(Millis(3)));
    }
}
