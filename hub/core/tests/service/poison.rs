//! Deliveries whose handling panics, or ends the process: who is blamed, who is not, and that nothing is lost.

use seawall_hub_core::domain::delivery::suspects::{HandlingStep, PANICS_MAX};
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryId, DeliveryState};
use seawall_hub_core::domain::rule::{OrderingRule, Rule};
use seawall_hub_core::port::store::{EventReads, UnitStore};
use seawall_hub_core::service::{ReplayMode, ReplayRequest};
use seawall_testkit::until;
use serde_json::json;

use crate::peer::{Mood, WELL};
use crate::scene::{Scene, USUAL, billing, everything};
use crate::time::{Timed, on_all_stores};

// A hub that was dropped is gone after a few turns of one thread; with two it might still write what it was about.
on_all_stores!(
    on one thread:
    prm_4_a_panic_ends_nothing_but_its_own_delivery,
    prm_1_what_ends_the_process_is_quarantined_and_can_be_replayed,
    prm_1_what_waits_for_its_peer_at_each_crash_is_delivered,
    hub_5_an_order_waits_for_a_suspect_and_goes_on_behind_a_convict,
);

/// PRM-4, HUB-5. Trap "a panic in one delivery ends all": the third one is the end of it, all others go on, its place in the
/// bulkhead is free again, and the circuit of the service has nothing to do with it.
async fn prm_4_a_panic_ends_nothing_but_its_own_delivery<F: Timed>() {
    let place = F::create().await;
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
async fn ends_three_times<F: Timed>(place: &F, mut scene: Scene<F>, bad: DeliveryId) -> Scene<F> {
    for round in 0..3 {
        scene
            .play(async {
                until("it is sent", async || scene.peer.got().len() > round).await;
            })
            .await;
        let marks = scene.store.step_marks();
        scene = scene.restart_after(place, || marks.began(bad, HandlingStep::Send)).await;
    }
    scene
}

/// PRM-1. Trap "poison that kills the process": one in whose sending the process ends is given up at the third time, with a reason
/// of its own, and can be replayed.
async fn prm_1_what_ends_the_process_is_quarantined_and_can_be_replayed<F: Timed>() {
    let place = F::create().await;
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
async fn prm_1_what_waits_for_its_peer_at_each_crash_is_delivered<F: Timed>() {
    let place = F::create().await;
    let mut scene = Scene::new(&place, USUAL.replace("200ms", "1h").as_str(), everything()).await;
    scene.peer.feel(Mood::Hangs);
    let ids = [scene.one("first", json!({})).await, scene.one("second", json!({})).await];
    for round in 0..12 {
        scene
            .play(async {
                until("both are sent", async || scene.peer.got().len() >= 2 * (round + 1)).await;
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
async fn hub_5_an_order_waits_for_a_suspect_and_goes_on_behind_a_convict<F: Timed>() {
    for hold in [false, true] {
        let place = F::create().await;
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
