//! Bulk operations: a batch and its progress are one, and states change only as they may.

use seawall_hub_core::domain::dead_letter::{LetterFilter, LetterState};
use seawall_hub_core::domain::operation::{
    BulkAction, Operation, OperationId, OperationProgress, OperationState, ReplayMode, ReplayPlan,
};

use super::StoreFactory;
use super::fixtures::*;

fn operation(task: BulkAction) -> Change {
    Change::StartOperation(Box::new(Operation {
        id: OperationId::new(0, 0),
        task,
        filter: LetterFilter::default(),
        limit: None,
        total: 3,
        run: OperationState::Running,
        cause: None,
        failed_delivery: None,
        progress: OperationProgress::default(),
        cursor: 0,
        exhausted: false,
        who: "ann".into(),
        reason: Some("a fix".into()),
        began: NOW,
        changed: NOW,
        ended: None,
    }))
}

fn replay() -> BulkAction {
    BulkAction::Replay(ReplayPlan { mode: ReplayMode::Same, rate: 50, canary: vec![1] })
}

fn step(operation: OperationId, items: Vec<BulkItem>) -> Change {
    Change::AdvanceOperation(OperationStep {
        operation,
        items,
        skipped: 1,
        cause: Some("no request".into()),
        failed_delivery: None,
        from_cursor: 0,
        cursor: 9,
        exhausted: true,
        at: NOW,
    })
}

fn queued() -> NewDelivery {
    NewDelivery { initial: InitialState::Queued, ..to("billing") }
}

/// HUB-6: a batch and its progress are one unit. What others have changed meanwhile is skipped, and what becomes of the replays is
/// counted.
pub(crate) async fn hub_6_a_batch_and_its_progress_are_one<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let dead_letters = add(&store, "evt", &["billing", "billing", "billing"]).await.unwrap().names();
    for id in &dead_letters {
        settle(&store, *id, dead(DeadLetterReason::Refused)).await.unwrap();
    }
    let id = put(&store, operation(replay())).await.unwrap().operation.unwrap();
    put(&store, Change::Move(LetterMove { dead: dead_letters[2], to: LetterAction::Delete, at: NOW }))
        .await
        .unwrap();
    let items = dead_letters.iter().map(|dead| BulkItem::Replay(*dead, queued())).collect();
    let made = put(&store, step(id, items)).await.unwrap();
    assert_eq!((made.touched, made.deliveries.len()), (2, 2), "the third was deleted");
    let same = put(&store, step(id, Vec::new())).await;
    assert_eq!(same, Err(StoreError::Stale { found: Some(9) }), "somebody has taken this batch");
    let services = || vec![slug("billing"), slug("mail")];
    assert_eq!(store.untried_replays(id, services()).await.unwrap(), [(slug("billing"), 2)]);
    let replays = made.names();
    assert_eq!(due(&store, NOW, 10).await.unwrap().len(), 2);
    let end = async |delivery, decision| {
        let settled = Settlement { is_replay: true, ..settlement(claim(&store, delivery), decision) };
        store.commit(WritePriority::Outcomes, unit([Change::Settle(settled)])).await.unwrap();
    };
    end(replays[0], DELIVERED).await;
    let progress = Progress { accepted: NOW, counted: 1, failures: 1, panics: 0 };
    end(replays[1], retry(NOW, progress, false)).await;
    let failed = store.failed_replay(id, u64::MAX >> 1).await.unwrap();
    assert_eq!(failed, Some(replays[1]));
    assert_eq!(store.untried_replays(id, services()).await.unwrap(), []);
    let now = store.operation(id).await.unwrap().unwrap();
    let expected = OperationProgress { begun: 2, skipped: 1, tried: 2, faltered: 1, delivered: 1, failed: 0 };
    assert_eq!((now.progress, now.cursor, now.exhausted), (expected, 9, true));
    assert_eq!((now.cause.as_deref(), now.who.as_str()), (Some("no request"), "ann"));
    let letter = store.dead_letter(dead_letters[0]).await.unwrap().unwrap().dead;
    assert_eq!((letter.state, letter.operation), (LetterState::Delivered, Some(id)));
}

/// HUB-6: an operation changes only from a state that allows it, and a batch applies only while it runs: whole, or not at all.
pub(crate) async fn hub_6_an_operation_changes_only_from_a_state_that_allows_it<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let dead_letter = add(&store, "evt", &["billing"]).await.unwrap().names()[0];
    settle(&store, dead_letter, dead(DeadLetterReason::Refused)).await.unwrap();
    let id = put(&store, operation(replay())).await.unwrap().operation.unwrap();
    let change = |from: &'static [OperationState], to, cause: Option<&str>| {
        let cause = cause.map(Into::into);
        let change = OperationTransition { operation: id, from, to, cause, failed_delivery: None, at: NOW };
        put(&store, Change::TransitionOperation(change))
    };
    use OperationState::{Paused, Running, Stopped};
    change(&[Running], Stopped, Some("the canary failed")).await.unwrap();
    assert_eq!(change(&[Running], Paused, None).await, Err(StoreError::WrongState("stopped")));
    let refused = put(&store, step(id, vec![BulkItem::Replay(dead_letter, queued())])).await;
    assert_eq!(refused, Err(StoreError::WrongState("stopped")));
    assert_eq!(store.dead_letter(dead_letter).await.unwrap().unwrap().dead.state, LetterState::Open);
    assert!(store.running().await.unwrap().is_empty());
    let stopped = store.operation(id).await.unwrap().unwrap();
    assert_eq!((stopped.cause.as_deref(), stopped.ended), (Some("the canary failed"), Some(NOW)));
    change(&[Stopped], Running, None).await.unwrap();
    let running = store.running().await.unwrap();
    assert_eq!(running.len(), 1);
    let BulkAction::Replay(plan) = &running[0].task else { unreachable!("it is a replay") };
    assert!(plan.canary.is_empty(), "whoever lets it go on takes it on");
    assert_eq!((running[0].cause.as_deref(), running[0].ended), (None, None));
    let other = OperationId::new(id.database ^ 1, id.number);
    assert_eq!(store.operation(other).await.unwrap(), None);
    assert_eq!(put(&store, step(other, Vec::new())).await, Err(StoreError::Stale { found: None }));
}
