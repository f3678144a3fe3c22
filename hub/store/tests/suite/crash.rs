//! What a crash leaves behind: suspects, and who is convicted.

use seawall_hub_core::domain::delivery::suspects::{CRASHES_MAX, FEW, HandlingStep};

use super::StoreFactory;
use super::fixtures::*;

async fn stop(store: &impl Store) {
    store.commit(WritePriority::Admin, UnitOfWork::of(Change::RecordStop)).await.unwrap();
}

/// Ends the process of this store in the middle of this step, or outside of all if there is none.
async fn crash_in<F: StoreFactory>(
    place: &F,
    store: F::Store,
    id: DeliveryId,
    step: Option<HandlingStep>,
) -> F::Store {
    let marks = store.step_marks();
    place.kill(store).await;
    // What is in hand is forgotten by whoever ends in order, as a test does.
    marks.began(id, step.unwrap_or(HandlingStep::Send));
    if step.is_none() {
        marks.ended(id);
    }
    place.open().await.unwrap()
}

/// PRM-1: what was in hand at a crash is watched until its next outcome; an end in order counts for nothing.
pub(crate) async fn prm_1_a_crash_makes_a_suspect_and_an_orderly_end_none<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let id = add(&store, "evt-1", &["billing"]).await.unwrap().names()[0];
    stop(&store).await;
    place.kill(store).await;
    let store = place.open().await.unwrap();
    let taken = due(&store, NOW, 10).await.unwrap();
    assert_eq!((taken.len(), taken[0].is_suspect), (1, false));
    place.kill(store).await;
    let store = place.open().await.unwrap();
    assert!(due(&store, NOW, 10).await.unwrap()[0].is_suspect);
    let progress = Progress { accepted: NOW, counted: 0, failures: 1, panics: 1 };
    settle(&store, id, retry(NOW, progress, false)).await.unwrap();
    let taken = due(&store, NOW, 10).await.unwrap();
    assert_eq!((taken[0].progress, taken[0].is_suspect), (progress, false), "panics are kept");
    place.kill(store).await;
    let store = place.open().await.unwrap();
    assert_eq!(kept(&store, id).await.state, DeliveryState::Waiting);
    assert!(due(&store, NOW, 10).await.unwrap()[0].is_suspect);
    store
        .commit(WritePriority::Outcomes, UnitOfWork::of(Change::ReturnToStore(vec![claim(&store, id)])))
        .await
        .unwrap();
    assert!(due(&store, NOW, 10).await.unwrap()[0].is_suspect, "nothing came of it yet");
}

/// PRM-1: a crash in the middle of the same step, again and again, convicts: three if it was alone in hand, four if it was not.
/// The convict is given up once, and is not sent any more.
pub(crate) async fn prm_1_crashes_in_the_same_step_convict<F: StoreFactory>() {
    for (others, crashes, starts) in [(0, 3, "1, 2, 3"), (FEW, 4, "2, 3, 4")] {
        let place = F::create().await;
        let mut store = place.open().await.unwrap();
        let id = add(&store, "evt", &["billing"]).await.unwrap().names()[0];
        for n in 0..others {
            add(&store, &format!("evt-{n}"), &["mail"]).await.unwrap();
        }
        place.kill(store).await;
        store = place.open().await.unwrap();
        for crash in 1..crashes {
            assert!(store.quarantine_candidates().await.unwrap().is_empty(), "after {crash} of {crashes}");
            let taken = due(&store, NOW, usize::MAX).await.unwrap();
            assert_eq!(taken.len(), 1 + others as usize);
            let on_probation = taken.iter().filter(|kept| kept.on_probation).count();
            assert_eq!(
                on_probation,
                usize::from(others == 0 || crash > 1),
                "it is worked at alone from then on"
            );
            store = crash_in(&place, store, id, Some(HandlingStep::Send)).await;
        }
        let convicts = store.quarantine_candidates().await.unwrap();
        assert_eq!(convicts.len(), 1);
        let (convict, evidence) = &convicts[0];
        assert_eq!(convict.id, id);
        assert_eq!(
            *evidence,
            CrashHistory { crashes: CRASHES_MAX, starts: starts.into(), step: HandlingStep::Send }
        );
        assert_eq!(due(&store, NOW, usize::MAX).await.unwrap().len(), others as usize);
        // A crash before it is written down changes nothing.
        place.kill(store).await;
        let store = place.open().await.unwrap();
        assert_eq!(store.quarantine_candidates().await.unwrap(), convicts);
        let given_up =
            settlement(Claim { delivery: id, epoch: convict.epoch }, dead(DeadLetterReason::Poison));
        let give_up =
            || store.commit(WritePriority::Outcomes, UnitOfWork::of(Change::Settle(given_up.clone())));
        give_up().await.unwrap();
        assert!(give_up().await.is_err());
        assert!(store.quarantine_candidates().await.unwrap().is_empty());
        assert_eq!(kept(&store, id).await.reason, Some(DeadLetterReason::Poison));
    }
}

/// PRM-1. Trap "a delivery that waits for its peer did not end the process": crashes outside of a step convict nobody, and acquit.
pub(crate) async fn prm_1_crashes_while_it_waits_convict_nobody<F: StoreFactory>() {
    let place = F::create().await;
    let mut store = place.open().await.unwrap();
    let id = add(&store, "evt", &["billing"]).await.unwrap().names()[0];
    place.kill(store).await;
    store = place.open().await.unwrap();
    let crash = |n: usize| match n % 4 {
        0 | 1 => Some(HandlingStep::Send),
        2 => Some(HandlingStep::Record),
        _ => None,
    };
    for n in 2..40 {
        assert!(store.quarantine_candidates().await.unwrap().is_empty(), "crash {n}");
        assert_eq!(due(&store, NOW, 10).await.unwrap().len(), 1);
        store = crash_in(&place, store, id, crash(n)).await;
    }
    // Marks of a start that is long over say nothing.
    for _ in 0..3 {
        due(&store, NOW, 10).await.unwrap();
        stop(&store).await;
        store = crash_in(&place, store, id, Some(HandlingStep::Send)).await;
    }
    assert!(store.quarantine_candidates().await.unwrap().is_empty());
    assert_eq!(kept(&store, id).await.state, DeliveryState::Queued);
}
