//! Outages, and what comes forward when they end.

use std::time::Duration;

use seawall::{millis, secs};
use seawall_hub_core::domain::circuit::CircuitState;
use seawall_hub_core::domain::delivery::{DeliveryId, DeliveryState, FailureCounting, Schedule};
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::port::store::RegistryReads;
use seawall_hub_core::service::{CircuitCommand, PendingPolicy};
use seawall_testkit::until;
use serde_json::json;

use crate::fixtures::slug;
use crate::peer::{Mood, WELL, says};
use crate::scene::{Scene, USUAL, billing, everything, peer_service};
use crate::time::{Timed, on_all_stores};

on_all_stores!(
    hub_5_what_has_stalled_comes_forward_in_a_ramp,
    hub_5_a_peer_that_refuses_does_not_hold_up_the_ramp,
    hub_5_it_is_a_ramp_also_after_a_quiet_outage,
    hub_5_who_was_under_way_when_the_circuit_closed_comes_forward_too,
    prm_7_failed_probes_cost_no_attempts,
    hub_7_an_outage_is_one_line_however_often_it_was_probed,
    hub_5_what_has_stalled_comes_forward_after_a_restart,
    hub_5_a_heap_of_retries_does_not_starve_fresh_work,
    hub_7_a_new_service_of_the_same_name_has_a_new_circuit,
    hub_5_a_rate_limit_costs_no_attempts,
);

/// By its own schedule, what fails once is tried again after five minutes at the soonest.
fn patient() -> Rule {
    Rule {
        schedule: Schedule { base: secs(600), count: FailureCounting::Answered, ..Schedule::default() },
        ..everything()
    }
}

fn policy(failures: u32, cooldown: Duration, calls: u32) -> String {
    let cooldown = cooldown.as_millis();
    format!(
        r#"{{"attempt_timeout":"200ms","bulkhead":{{"max_calls":{calls}}},
            "breaker":{{"consecutive_failures":{failures},"cooldown":"{cooldown}ms"}}}}"#
    )
}

async fn send(scene: &Scene<impl Timed>, name: &str, count: usize) -> Vec<DeliveryId> {
    let mut ids = Vec::new();
    for n in 0..count {
        ids.push(scene.one(&format!("{name}-{n}"), json!({})).await);
    }
    ids
}

fn opened(scene: &Scene<impl Timed>) -> u64 {
    scene.hub.gateway.guard(&billing()).unwrap().breaker().unwrap().counts().opened
}

/// Never more at once than one, and one more for each that went well.
fn check_ramp(scene: &Scene<impl Timed>) {
    let got = scene.peer.got();
    for got in &got {
        assert!(got.at_once <= 1 + got.done, "{} at once, and {} went well", got.at_once, got.done);
    }
    assert!(got.iter().any(|got| got.at_once > 3), "it does grow");
}

/// HUB-5, HUB-7: when the circuit closes, what waits for it comes forward, long before its time, in a ramp and not as a wave.
async fn hub_5_what_has_stalled_comes_forward_in_a_ramp<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, &policy(3, millis(100), 50), patient()).await;
    scene.peer.feel(Mood::Refuses);
    scene
        .play(async {
            let ids = send(&scene, "evt", 100).await;
            until("it opens again and again", async || opened(&scene) >= 4).await;
            scene.peer.forget();
            scene.peer.feel(Mood::Says(200, millis(20)));
            scene.until_all(&ids, DeliveryState::Delivered).await;
            for id in ids {
                assert_eq!(scene.kept(id).await.progress.counted, 0);
            }
        })
        .await;
    let healed = scene.peer.got().iter().position(|got| got.status == Some(200)).unwrap();
    assert!(healed < 5, "the probes that were under way");
    check_ramp(&scene);
}

/// HUB-5: the ramp goes on also if the peer refuses what it gets: who says no is there. It used to stay where it was.
async fn hub_5_a_peer_that_refuses_does_not_hold_up_the_ramp<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, &policy(3, millis(100), 50).replace("200ms", "2s"), patient()).await;
    scene.peer.feel(Mood::Refuses);
    scene
        .play(async {
            let ids = send(&scene, "evt", 3).await;
            scene.until_all(&ids, DeliveryState::Stalled).await;
            scene.peer.feel(Mood::Says(200, millis(0)));
            send(&scene, "probe", 1).await;
            scene.until_all(&ids, DeliveryState::Delivered).await;
            scene.peer.forget();
            scene.peer.feel(Mood::Says(422, millis(250)));
            let ids = send(&scene, "refused", 100).await;
            scene.until_all(&ids, DeliveryState::DeadLettered).await;
        })
        .await;
    let limit = scene.peer.got().iter().map(|got| got.at_once).max();
    assert!(limit > Some(8), "{limit:?} at once");
}

/// HUB-5: also if nothing has knocked while the circuit was open, so that nobody has noticed.
async fn hub_5_it_is_a_ramp_also_after_a_quiet_outage<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, &policy(20, millis(50), 20), patient()).await;
    scene.peer.feel(Mood::Refuses);
    scene
        .play(async {
            let mut ids = send(&scene, "evt", 20).await;
            scene.until_all(&ids, DeliveryState::Stalled).await;
            scene.pass(millis(60)).await;
            scene.peer.forget();
            scene.peer.feel(Mood::Says(200, millis(20)));
            ids.extend(send(&scene, "probe", 1).await);
            scene.until_all(&ids, DeliveryState::Delivered).await;
        })
        .await;
    check_ramp(&scene);
}

/// HUB-5: a send that began before the circuit closed, and fails after that, belongs to the outage.
async fn hub_5_who_was_under_way_when_the_circuit_closed_comes_forward_too<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, &policy(2, millis(50), 20), patient()).await;
    scene.peer.script("slow-0", [Mood::Hangs]);
    scene.peer.script("bad-0", [Mood::Refuses]);
    scene.peer.script("bad-1", [Mood::Refuses]);
    scene
        .play(async {
            let mut ids = send(&scene, "slow", 1).await;
            until("the slow one is under way", async || !scene.peer.got().is_empty()).await;
            ids.extend(send(&scene, "bad", 2).await);
            until("it opens", async || opened(&scene) >= 1).await;
            scene.pass(millis(55)).await;
            ids.extend(send(&scene, "probe", 1).await);
            scene.until_all(&ids, DeliveryState::Delivered).await;
        })
        .await;
}

/// HUB-5, PRM-7: failed probes cost no attempts, whatever the peer answers to them. Trap "an open circuit burns the event's five
/// attempts".
async fn prm_7_failed_probes_cost_no_attempts<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, &policy(1, millis(20), 20), everything()).await;
    scene.peer.feel(says(500));
    scene
        .play(async {
            let id = scene.one("evt", json!({})).await;
            until("twelve tries", async || scene.peer.got().len() >= 12).await;
            scene.peer.feel(WELL);
            scene.until(id, DeliveryState::Delivered).await;
            assert_eq!(scene.kept(id).await.progress.counted, 1, "the one that opened the circuit");
        })
        .await;
}

/// HUB-7: an outage is one line in the history, however often it was probed: since when, why, until when, and how many probes have
/// failed. So a restart knows its end, and what was before it is not pushed out.
async fn hub_7_an_outage_is_one_line_however_often_it_was_probed<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, &policy(1, millis(60), 20), patient()).await;
    scene.peer.feel(Mood::Refuses);
    scene
        .play(async {
            send(&scene, "evt", 5).await;
            until("it has opened three times", async || opened(&scene) >= 3).await;
            let (billing, mut history) = (billing(), Vec::new());
            until("three trips are in the history", async || {
                history = scene.store.circuit_history(&billing, 50).await.unwrap();
                history.first().is_some_and(|circuit| circuit.trips >= 3)
            })
            .await;
            let [outage] = &history[..] else { unreachable!("one outage: {history:?}") };
            assert_eq!(
                (outage.state, outage.reason.as_deref()),
                (CircuitState::Open, Some("connection refused"))
            );
            assert!(
                outage.trips >= 3 && outage.until.unwrap().since(outage.changed) > millis(120),
                "{outage:?}"
            );
        })
        .await;
}

/// HUB-5, HUB-7: a hub that ends before all has come forward goes on with that at its next start.
async fn hub_5_what_has_stalled_comes_forward_after_a_restart<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, &policy(3, secs(600), 20), patient()).await;
    scene.peer.feel(Mood::Refuses);
    let ids = scene
        .play(async {
            let ids = send(&scene, "evt", 10).await;
            scene.until(ids[0], DeliveryState::Stalled).await;
            until("it opens", async || opened(&scene) >= 1).await;
            ids
        })
        .await;
    scene.move_circuit(CircuitCommand::Reset, "it is back").await;
    scene.peer.feel(WELL);
    let scene = scene.restart(&place).await;
    scene.play(scene.until_all(&ids, DeliveryState::Delivered)).await;
}

/// HUB-5: a heap of retries delays fresh work by a fifth, and not for ever; and the retries go on beside it.
async fn hub_5_a_heap_of_retries_does_not_starve_fresh_work<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, &policy(100_000, millis(50), 1), everything()).await;
    scene.peer.feel(Mood::Refuses);
    scene
        .play(async {
            let old = send(&scene, "old", 200).await;
            for id in &old {
                until("each has failed", async || scene.kept(*id).await.progress.failures > 0).await;
            }
            scene.hub.registry.pause_service(&scene.cx(), &billing(), true).await.unwrap();
            let fresh = send(&scene, "new", 80).await;
            until("all are in hand", async || scene.hub.ops.claimed(&billing()) >= 280).await;
            scene.peer.feel(WELL);
            scene.peer.forget();
            scene.hub.registry.pause_service(&scene.cx(), &billing(), false).await.unwrap();
            scene.until_all(&fresh, DeliveryState::Delivered).await;
            scene.until_all(&old, DeliveryState::Delivered).await;
        })
        .await;
    let took = scene.peer.took();
    let last = took.iter().rposition(|event| event.starts_with("new")).unwrap();
    assert!(last <= 101, "80 fresh ones and a fourth of that: the last was number {last}");
    let old = took[..100].iter().filter(|event| event.starts_with("old")).count();
    assert!((18..=22).contains(&old), "{old} of the first hundred were retries");
}

/// HUB-7: a service that is deleted takes its circuit with it; another one of the same name does not begin open.
async fn hub_7_a_new_service_of_the_same_name_has_a_new_circuit<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene.move_circuit(CircuitCommand::ForceOpen, "maintenance").await;
    scene.move_circuit(CircuitCommand::ForceOpen, "longer than we thought").await;
    let kept = scene.store.registered().await.unwrap().circuits;
    assert_eq!(kept[0].reason.as_deref(), Some("longer than we thought"));
    scene.delete_rule(&slug("everything")).await;
    scene.hub.registry.delete_service(&scene.cx(), &billing(), None, PendingPolicy::Refuse).await.unwrap();
    scene.hub.registry.put_service(&scene.cx(), peer_service(USUAL), None).await.unwrap();
    let scene = scene.restart(&place).await;
    scene.hub.registry.put_rule(&scene.cx(), everything(), None).await.unwrap();
    let id = scene.one("evt", json!({})).await;
    scene.play(scene.until(id, DeliveryState::Delivered)).await;
}

/// HUB-5: a rate limit defers, which costs neither attempts nor failures, and all arrive at its pace.
async fn hub_5_a_rate_limit_costs_no_attempts<F: Timed>() {
    let place = F::create().await;
    let policy = r#"{"attempt_timeout":"200ms","rate_limit":{"calls":5,"per":"100ms","burst":5}}"#;
    let scene = Scene::new(&place, policy, everything()).await;
    scene
        .play(async {
            let began = scene.clock.precise();
            let ids = send(&scene, "evt", 40).await;
            scene.pass(millis(100)).await;
            let early = scene.peer.got().len();
            let time = scene.clock.precise().since(began);
            let allowed = 5 + time.as_millis() / 20;
            assert!(early as u128 <= allowed, "{early} went out in {time:?}, and not {allowed}");
            scene.until_all(&ids, DeliveryState::Delivered).await;
            assert_eq!(scene.peer.got().len(), 40, "each once");
            for id in ids {
                let kept = scene.kept(id).await;
                assert_eq!((kept.progress.failures, kept.progress.counted), (0, 0));
            }
        })
        .await;
}
