//! What a delivery is charged with: nothing that the hub, its clock or somebody else did.

use seawall::{Clock, millis, secs};
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryId, DeliveryState, Schedule};
use seawall_hub_core::domain::event_type::Pattern;
use seawall_hub_core::domain::operation::{Operation, OperationState};
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::port::store::DeadLetterReads;
use seawall_hub_core::service::{BulkRequest, CircuitCommand, PendingPolicy};
use seawall_testkit::until;
use serde_json::json;

use crate::fixtures::slug;
use crate::peer::{Mood, Peer, WELL, says};
use crate::scene::{Scene, USUAL, billing, bulk_replay, everything, peer_service};
use crate::time::{JumpingTime, Timed, on_all_stores};

on_all_stores!(
    hub_5_a_clock_that_jumps_ages_nobody,
    hub_5_a_clock_that_was_set_back_meanwhile_makes_nobody_wait,
    hub_5_a_deferral_that_ends_by_age_is_no_attempt,
    hub_5_a_500_that_ends_by_age_is_counted,
    hub_1_deleting_a_service_waits_for_what_is_under_way,
    hub_1_a_service_that_is_not_deleted_goes_on,
    hub_6_a_replay_names_the_services_that_it_waits_for,
    hub_6_a_replay_goes_on_for_the_others_while_one_service_is_away,
);

/// Reasons of those that were given up.
async fn given_up(scene: &Scene<impl Timed>, ids: &[DeliveryId]) -> Vec<DeadLetterReason> {
    let mut reasons = Vec::new();
    for id in ids {
        reasons.extend(scene.kept(*id).await.reason);
    }
    reasons
}

/// HUB-5. Trap "a clock that jumps by years makes no dead letter of age": in an outage the wall clock jumps, forward and back; what
/// waits goes on waiting, goes on being attempted, and is delivered when the peer is back. So does what comes after the jump.
async fn hub_5_a_clock_that_jumps_ages_nobody<F: Timed>() {
    for years in [20, -20] {
        let (place, clock, peer) = (F::create().await, JumpingTime::new(F::clock()), Peer::default());
        let scene = Scene::open_at(&place, &peer, Clock::custom(clock.clone())).await;
        scene.hub.registry.put_service(&scene.cx(), peer_service(USUAL), None).await.unwrap();
        scene.hub.registry.put_rule(&scene.cx(), everything(), None).await.unwrap();
        scene
            .play(async {
                peer.feel(Mood::Refuses);
                let mut ids = Vec::new();
                for number in 0..20 {
                    ids.push(scene.one(&format!("evt-{number}"), json!({})).await);
                }
                until("sixty attempts", async || peer.got().len() >= 60).await;
                clock.jump(years * JumpingTime::YEAR);
                for number in 20..30 {
                    ids.push(scene.one(&format!("evt-{number}"), json!({})).await);
                }
                let before = peer.got().len();
                until("120 more", async || peer.got().len() >= before + 120).await;
                assert_eq!(given_up(&scene, &ids).await, [], "{years} years");
                peer.feel(WELL);
                scene.until_all(&ids, DeliveryState::Delivered).await;
            })
            .await;
    }
}

/// HUB-5: a clock that was set back while the hub was off makes nobody wait for years.
async fn hub_5_a_clock_that_was_set_back_meanwhile_makes_nobody_wait<F: Timed>() {
    let (place, clock, peer) = (F::create().await, JumpingTime::new(F::clock()), Peer::default());
    let scene = Scene::open_at(&place, &peer, Clock::custom(clock.clone())).await;
    scene.hub.registry.put_service(&scene.cx(), peer_service(USUAL), None).await.unwrap();
    let schedule = Schedule { base: secs(600), cap: secs(600), ..everything().schedule };
    scene.hub.registry.put_rule(&scene.cx(), Rule { schedule, ..everything() }, None).await.unwrap();
    peer.feel(Mood::Refuses);
    let id = scene
        .play(async {
            let id = scene.one("evt", json!({})).await;
            scene.until(id, DeliveryState::Stalled).await;
            id
        })
        .await;
    drop(scene);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    clock.jump(-20 * JumpingTime::YEAR);
    peer.feel(WELL);
    let scene = Scene::open_at(&place, &peer, Clock::custom(clock.clone())).await;
    scene.play(scene.until(id, DeliveryState::Delivered)).await;
}

/// HUB-5: a delivery that becomes too old while nothing may be sent has no attempt that never took place; its dead letter says
/// what the peer did, and not what the hub did.
async fn hub_5_a_deferral_that_ends_by_age_is_no_attempt<F: Timed>() {
    let place = F::create().await;
    let schedule = Schedule { age_max: millis(300), ..everything().schedule };
    let policy = r#"{"attempt_timeout":"200ms","breaker":{"consecutive_failures":1,"cooldown":"1h"}}"#;
    let scene = Scene::new(&place, policy, Rule { schedule, ..everything() }).await;
    scene
        .play(async {
            scene.peer.feel(Mood::Refuses);
            let first = scene.one("evt-1", json!({})).await;
            scene.until(first, DeliveryState::Stalled).await;
            let second = scene.one("evt-2", json!({})).await;
            scene.until(second, DeliveryState::DeadLettered).await;
            scene.until(first, DeliveryState::DeadLettered).await;
            assert_eq!(scene.peer.got().len(), 1, "the circuit was open after one");
            for (id, sends) in [(first, 1), (second, 0)] {
                let whole = scene.store.dead_letter(id).await.unwrap().unwrap();
                let kept = &whole.dead.delivery;
                assert_eq!(kept.reason, Some(DeadLetterReason::Age));
                assert_eq!((whole.attempts.len(), kept.progress.failures), (sends, sends as u32));
                assert_eq!(whole.dead.error.as_deref(), Some("connection refused"));
            }
        })
        .await;
}

/// HUB-5: an answer that ends a delivery by its age is one of the attempts that count.
async fn hub_5_a_500_that_ends_by_age_is_counted<F: Timed>() {
    let place = F::create().await;
    let schedule = Schedule { age_max: secs(60), base: secs(600), cap: secs(600), ..everything().schedule };
    let scene = Scene::new(&place, USUAL, Rule { schedule, ..everything() }).await;
    scene
        .play(async {
            scene.peer.feel(says(500));
            let id = scene.one("evt", json!({})).await;
            scene.until(id, DeliveryState::DeadLettered).await;
            let kept = scene.kept(id).await;
            assert_eq!(kept.reason, Some(DeadLetterReason::Age));
            assert_eq!((kept.progress.counted, kept.progress.failures), (1, 1));
        })
        .await;
}

/// HUB-1: deleting a service waits for what is under way: what the peer takes is delivered, and the rest are dead letters.
async fn hub_1_deleting_a_service_waits_for_what_is_under_way<F: Timed>() {
    let place = F::create().await;
    let policy = r#"{"attempt_timeout":"20s","bulkhead":{"max_calls":20}}"#;
    let scene = Scene::new(&place, policy, everything()).await;
    scene
        .play(async {
            scene.peer.feel(Mood::Says(200, millis(400)));
            let mut ids = Vec::new();
            for number in 0..30 {
                ids.push(scene.one(&format!("evt-{number}"), json!({})).await);
            }
            until("twenty are under way", async || scene.peer.got().len() >= 20).await;
            scene
                .hub
                .registry
                .delete_rule(&scene.cx(), &slug("everything"), None, PendingPolicy::DeadLetter)
                .await
                .unwrap();
            scene
                .hub
                .registry
                .delete_service(&scene.cx(), &billing(), None, PendingPolicy::DeadLetter)
                .await
                .unwrap();
            for id in &ids {
                let (kept, taken) = (scene.kept(*id).await, scene.peer.got());
                let taken = taken.iter().any(|got| got.delivery == *id);
                let expected = if taken { DeliveryState::Delivered } else { DeliveryState::DeadLettered };
                assert_eq!(kept.state, expected, "{kept:?}");
            }
        })
        .await;
}

/// HUB-1: a service that can't be deleted after all goes on.
async fn hub_1_a_service_that_is_not_deleted_goes_on<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let refused = scene
                .hub
                .registry
                .delete_service(&scene.cx(), &billing(), Some(1), PendingPolicy::DeadLetter)
                .await;
            assert!(refused.unwrap_err().to_string().contains("everything"));
            let id = scene.one("evt", json!({})).await;
            scene.until(id, DeliveryState::Delivered).await;
        })
        .await;
}

async fn two_services(scene: &Scene<impl Timed>) {
    let mail = Service { name: slug("mail"), ..peer_service(USUAL) };
    scene.hub.registry.put_service(&scene.cx(), mail, None).await.unwrap();
    let events = Pattern::new("order.*").unwrap();
    let rule = Rule { name: slug("mail"), service: slug("mail"), events, ..everything() };
    scene.hub.registry.put_rule(&scene.cx(), rule, None).await.unwrap();
}

/// HUB-6: an operation names every service that it waits for: those for which replays wait, and those whose dead letters it passes
/// over. A few that wait for a service are told as well.
async fn hub_6_a_replay_names_the_services_that_it_waits_for<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    two_services(&scene).await;
    scene
        .play(async {
            scene.peer.feel(says(422));
            for number in 0..60 {
                let ids = scene.send(&format!("evt-{number}"), json!({})).await;
                scene.until_all(&ids, DeliveryState::DeadLettered).await;
            }
            scene.peer.feel(WELL);
            for service in ["billing", "mail"] {
                scene.hub.registry.pause_service(&scene.cx(), &slug(service), true).await.unwrap();
            }
            for (limit, expected) in [
                (Some(2), "`billing`, `mail` are paused or their circuits are not closed"),
                (Some(1), "` is paused or its circuit is not closed"),
                (None, "`billing`, `mail` are paused or their circuits are not closed"),
            ] {
                let work = BulkRequest { limit, ..bulk_replay(10_000, &[]) };
                let begun = scene.hub.dead_letters.start_operation(&scene.cx(), &work).await.unwrap();
                let all = limit.unwrap_or(16);
                let has_begun = |operation: &Operation| operation.progress.begun >= all;
                let operation = scene.until_operation(begun.id, has_begun).await;
                let waits_for = scene.hub.dead_letters.describe_wait(&operation).await.unwrap().unwrap();
                assert!(waits_for.contains(expected), "{waits_for}");
            }
        })
        .await;
}

/// HUB-6: a replay over two services goes on for one while the other is away, and for the other when it is back. It does not send
/// faster to that one than it was told to, so what is away has not begun.
async fn hub_6_a_replay_goes_on_for_the_others_while_one_service_is_away<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    two_services(&scene).await;
    scene
        .play(async {
            scene.peer.feel(says(422));
            for number in 0..60 {
                let ids = scene.send(&format!("evt-{number}"), json!({})).await;
                scene.until_all(&ids, DeliveryState::DeadLettered).await;
            }
            scene.peer.feel(WELL);
            scene.move_circuit(CircuitCommand::ForceOpen, "away").await;
            let idle = Service { name: slug("idle"), ..peer_service(USUAL) };
            scene.hub.registry.put_service(&scene.cx(), idle, None).await.unwrap();
            scene.hub.registry.pause_service(&scene.cx(), &slug("idle"), true).await.unwrap();
            let work = bulk_replay(10_000, &[]);
            let begun = scene.hub.dead_letters.start_operation(&scene.cx(), &work).await.unwrap();
            assert_eq!(begun.total, 120);
            let halfway =
                scene.until_operation(begun.id, |operation| operation.progress.delivered == 60).await;
            assert_eq!(halfway.run, OperationState::Running);
            assert!(halfway.progress.begun <= 60 + 32, "{:?}", halfway.progress);
            let waits_for = scene.hub.dead_letters.describe_wait(&halfway).await.unwrap();
            assert_eq!(
                waits_for.as_deref(),
                Some(
                    "`billing` is paused or its circuit is not closed: its replays wait, the others continue"
                ),
                "nothing of it is for `idle`, which is away too"
            );
            scene.move_circuit(CircuitCommand::Reset, "back").await;
            let done = scene.until_operation(begun.id, |operation| operation.run.has_ended()).await;
            assert_eq!(
                (done.run, done.progress.delivered, done.progress.skipped),
                (OperationState::Done, 120, 0)
            );
        })
        .await;
}
