//! Deliveries whose handling panics, or ends the process: who is blamed, who is not, and that nothing is lost.

use seawall::millis;
use seawall_hub_core::domain::delivery::suspects::{CRASHES_MAX, FEW, HandlingStep, PANICS_MAX};
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryId, DeliveryState, Progress};
use seawall_hub_core::domain::rule::{OrderingRule, Rule};
use seawall_hub_core::port::store::{
    Change, Claim, CrashHistory, EventReads, UnitOfWork, UnitStore, WritePriority,
};
use seawall_hub_core::service::{ReplayMode, ReplayRequest};
use seawall_hub_store::Sqlite;
use serde_json::json;

use crate::conformance::{NOW, Names, Place, add, claim, dead, due, kept, retry, settle, settlement};
use crate::scene::{Mood, Scene, USUAL, WELL, billing, everything};

async fn stop(store: &Sqlite) {
    store.commit(WritePriority::Admin, UnitOfWork::of(Change::RecordStop)).await.unwrap();
}

/// Ends the process of this store in the middle of this step, or outside of all if there is none.
fn crash_in(place: &Place, store: Sqlite, id: DeliveryId, step: Option<HandlingStep>) -> Sqlite {
    let marks = store.step_marks();
    drop(store);
    // What is in hand is forgotten by whoever ends in order, as a test does.
    marks.began(id, step.unwrap_or(HandlingStep::Send));
    if step.is_none() {
        marks.ended(id);
    }
    place.open()
}

/// PRM-1: what was in hand at a crash is watched until its next outcome; an end in order counts for nothing.
#[tokio::test]
async fn prm_1_a_crash_makes_a_suspect_and_an_orderly_end_none() {
    let place = Place::new();
    let store = place.open();
    let id = add(&store, "evt-1", &["billing"]).await.unwrap().names()[0];
    stop(&store).await;
    drop(store);
    let store = place.open();
    let taken = due(&store, NOW, 10).await.unwrap();
    assert_eq!((taken.len(), taken[0].is_suspect), (1, false));
    drop(store);
    let store = place.open();
    assert!(due(&store, NOW, 10).await.unwrap()[0].is_suspect);
    let progress = Progress { accepted: NOW, counted: 0, failures: 1, panics: 1 };
    settle(&store, id, retry(NOW, progress, false)).await.unwrap();
    let taken = due(&store, NOW, 10).await.unwrap();
    assert_eq!((taken[0].progress, taken[0].is_suspect), (progress, false), "panics are kept");
    drop(store);
    let store = place.open();
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
#[tokio::test]
async fn prm_1_crashes_in_the_same_step_convict() {
    for (others, crashes, starts) in [(0, 3, "1, 2, 3"), (FEW, 4, "2, 3, 4")] {
        let place = Place::new();
        let mut store = place.open();
        let id = add(&store, "evt", &["billing"]).await.unwrap().names()[0];
        for n in 0..others {
            add(&store, &format!("evt-{n}"), &["mail"]).await.unwrap();
        }
        drop(store);
        store = place.open();
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
            store = crash_in(&place, store, id, Some(HandlingStep::Send));
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
        drop(store);
        let store = place.open();
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
#[tokio::test]
async fn prm_1_crashes_while_it_waits_convict_nobody() {
    let place = Place::new();
    let mut store = place.open();
    let id = add(&store, "evt", &["billing"]).await.unwrap().names()[0];
    drop(store);
    store = place.open();
    let crash = |n: usize| match n % 4 {
        0 | 1 => Some(HandlingStep::Send),
        2 => Some(HandlingStep::Record),
        _ => None,
    };
    for n in 2..40 {
        assert!(store.quarantine_candidates().await.unwrap().is_empty(), "crash {n}");
        assert_eq!(due(&store, NOW, 10).await.unwrap().len(), 1);
        store = crash_in(&place, store, id, crash(n));
    }
    // Marks of a start that is long over say nothing.
    for _ in 0..3 {
        due(&store, NOW, 10).await.unwrap();
        stop(&store).await;
        store = crash_in(&place, store, id, Some(HandlingStep::Send));
    }
    assert!(store.quarantine_candidates().await.unwrap().is_empty());
    assert_eq!(kept(&store, id).await.state, DeliveryState::Queued);
}

/// PRM-4, HUB-5. Trap "a panic in one delivery ends all": the third one is the end of it, all others go on, its place in the
/// bulkhead is free again, and the circuit of the service has nothing to do with it.
#[tokio::test]
async fn prm_4_a_panic_ends_nothing_but_its_own_delivery() {
    let place = Place::new();
    let strict =
        r#"{"attempt_timeout":"2s","breaker":{"consecutive_failures":1},"bulkhead":{"max_calls":1}}"#;
    let scene = Scene::new(&place, strict, everything()).await;
    scene
        .play(async {
            scene.peer.script("bad", vec![Mood::Panics; 10]);
            scene.peer.script("sometimes", [Mood::Panics, Mood::Panics]);
            let bad = scene.one("bad", json!({})).await;
            let sometimes = scene.one("sometimes", json!({})).await;
            let mut others = Vec::new();
            for n in 0..20 {
                others.push(scene.one(&format!("good-{n}"), json!({})).await);
            }
            scene.until_all(&others, DeliveryState::Delivered).await;
            scene.until(sometimes, DeliveryState::Delivered).await;
            scene.until(bad, DeliveryState::DeadLettered).await;
            let (kept, attempts) = scene.store.delivery(bad).await.unwrap().unwrap();
            assert_eq!((kept.reason, kept.progress.panics), (Some(DeadLetterReason::Poison), PANICS_MAX));
            assert_eq!(attempts.len(), 3);
            for attempt in attempts {
                assert!(attempt.error.unwrap().starts_with("the hub's own code has panicked over it"));
            }
            let circuit = scene.hub.gateway.guard(&billing()).unwrap().breaker().unwrap().counts();
            assert_eq!((circuit.opened, circuit.panicked), (0, 0), "the peer has done nothing");
        })
        .await;
}

/// The hub ends three times in the middle of sending this one.
async fn ends_three_times(place: &Place, mut scene: Scene, bad: DeliveryId) -> Scene {
    for round in 0..3 {
        scene
            .play(async {
                while scene.peer.got().len() <= round {
                    tokio::time::sleep(millis(2)).await;
                }
            })
            .await;
        let marks = scene.store.step_marks();
        scene = scene.restart_after(place, || marks.began(bad, HandlingStep::Send)).await;
    }
    scene
}

/// PRM-1. Trap "poison that kills the process": one in whose sending the process ends is given up at the third time, with a reason
/// of its own, and can be replayed.
#[tokio::test]
async fn prm_1_what_ends_the_process_is_quarantined_and_can_be_replayed() {
    let place = Place::new();
    let scene = Scene::new(&place, USUAL.replace("200ms", "1h").as_str(), everything()).await;
    scene.peer.script("bad", vec![Mood::Hangs; 3]);
    let bad = scene.one("bad", json!({})).await;
    let scene = ends_three_times(&place, scene, bad).await;
    scene
        .play(async {
            scene.until(bad, DeliveryState::DeadLettered).await;
            let (kept, attempts) = scene.store.delivery(bad).await.unwrap().unwrap();
            assert_eq!(kept.reason, Some(DeadLetterReason::Poison));
            let error = attempts[0].error.as_deref().unwrap();
            assert!(error.contains("3 times") && error.contains("(starts 1, 2, 3)"), "{error}");
            assert!(error.ends_with("the last time while sending it"), "{error}");
            let again = ReplayRequest { mode: ReplayMode::Same, again: false, key: None };
            let replay = scene.replay(bad, &again).await.unwrap();
            scene.until(replay, DeliveryState::Delivered).await;
        })
        .await;
}

/// PRM-1. Trap "a delivery in flight to a hanging peer is quarantined": however often the process ends while it waits, it is
/// delivered when its peer is back.
#[tokio::test]
async fn prm_1_what_waits_for_its_peer_at_each_crash_is_delivered() {
    let place = Place::new();
    let mut scene = Scene::new(&place, USUAL.replace("200ms", "1h").as_str(), everything()).await;
    scene.peer.feel(Mood::Hangs);
    let ids = [scene.one("first", json!({})).await, scene.one("second", json!({})).await];
    for round in 0..12 {
        scene
            .play(async {
                while scene.peer.got().len() < 2 * (round + 1) {
                    tokio::time::sleep(millis(2)).await;
                }
            })
            .await;
        let marks = scene.store.step_marks();
        // Sent, and nothing was done with it since.
        scene = scene
            .restart_after(&place, || {
                for id in ids {
                    marks.began(id, HandlingStep::Send);
                    marks.ended(id);
                }
            })
            .await;
    }
    scene.peer.feel(WELL);
    scene.play(scene.until_all(&ids, DeliveryState::Delivered)).await;
}

fn ordered(hold: bool) -> Rule {
    Rule { ordering: Some(OrderingRule { key: "{{ data.c }}".into(), hold }), ..everything() }
}

/// HUB-5, PRM-1: an order is kept while its first is a suspect, and goes on behind a convict unless the rule says that it is held.
#[tokio::test]
async fn hub_5_an_order_waits_for_a_suspect_and_goes_on_behind_a_convict() {
    for hold in [false, true] {
        let place = Place::new();
        let scene = Scene::new(&place, USUAL.replace("200ms", "1h").as_str(), ordered(hold)).await;
        scene.peer.script("first", vec![Mood::Hangs; 3]);
        let mut ids = Vec::new();
        for event in ["first", "second", "third"] {
            ids.push(scene.one(event, json!({"c": 1})).await);
        }
        let scene = ends_three_times(&place, scene, ids[0]).await;
        scene
            .play(async {
                scene.until(ids[0], DeliveryState::DeadLettered).await;
                if hold {
                    assert_eq!(scene.kept(ids[1]).await.state, DeliveryState::Blocked);
                    scene
                        .hub
                        .dead_letters
                        .move_letter(&scene.cx(), ids[0], seawall_hub_core::port::store::LetterAction::Delete)
                        .await
                        .unwrap();
                }
                scene.until_all(&ids[1..], DeliveryState::Delivered).await;
            })
            .await;
        assert_eq!(scene.peer.took(), ["second", "third"], "hold: {hold}");
    }
}
