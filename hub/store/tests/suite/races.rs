//! Two that write at the same moment: two processes where the store allows it, two handles otherwise.

use std::collections::BTreeSet;

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::StoreFactory;
use super::fixtures::*;

/// Runs two futures that start at the same moment, on two tasks.
async fn at_once<T: Send + 'static>(
    first: impl Future<Output = T> + Send + 'static,
    second: impl Future<Output = T> + Send + 'static,
) -> Vec<T> {
    let (barrier, mut both) = (Arc::new(Barrier::new(2)), JoinSet::new());
    let other = barrier.clone();
    both.spawn(async move {
        barrier.wait().await;
        first.await
    });
    both.spawn(async move {
        other.wait().await;
        second.await
    });
    both.join_all().await
}

/// HUB-14: of two that claim at the same moment each gets different deliveries, and together they get all.
pub(crate) async fn hub_14_two_claimers_get_different_deliveries<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let beside = place.beside(&store).await;
    for round in 0..10 {
        let new = (0..20).map(|_| NewDelivery { initial: InitialState::Queued, ..to("billing") }).collect();
        add_all(&store, &format!("evt-{round}"), new).await;
        let (one, two) = (store.clone(), beside.clone());
        let claimed = at_once(async move { due(&one, NOW, 20).await.unwrap() }, async move {
            due(&two, NOW, 20).await.unwrap()
        });
        let ids: Vec<DeliveryId> = claimed.await.into_iter().flatten().map(|stored| stored.id).collect();
        assert_eq!((ids.len(), ids.iter().collect::<BTreeSet<_>>().len()), (20, 20));
    }
}

/// HUB-14: of two that replay the same dead letter one succeeds, and of two that put the same version.
pub(crate) async fn hub_14_of_two_replays_and_of_two_versions_one_succeeds<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let beside = place.beside(&store).await;
    for round in 1..=10 {
        let id = add(&store, &format!("evt-{round}"), &["billing"]).await.unwrap().names()[0];
        settle(&store, id, dead(DeadLetterReason::Refused)).await.unwrap();
        let new = NewDelivery { initial: InitialState::Queued, ..to("billing") };
        let replay = ReplayChange { dead: id, new, at: NOW, again: false, edited: false };
        for change in [Change::Replay(replay), Change::PutService(service("billing", round))] {
            let (one, two, same) = (store.clone(), beside.clone(), change.clone());
            let done = at_once(async move { put(&one, change).await.is_ok() }, async move {
                put(&two, same).await.is_ok()
            });
            assert_eq!(done.await.into_iter().filter(|succeeded| *succeeded).count(), 1);
        }
    }
}
