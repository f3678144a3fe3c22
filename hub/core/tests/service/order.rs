//! Deliveries that belong together go out one after the other.

use std::collections::BTreeMap;

use seawall::millis;
use seawall_hub_core::domain::delivery::{
    DeadLetterReason, Decision, DeliveryId, DeliveryState, Disposition,
};
use seawall_hub_core::domain::rule::{OrderingRule, Rule};
use seawall_hub_core::port::store::{
    Change, InitialState, LetterAction, NewDelivery, UnitOfWork, UnitStore, WritePriority,
};
use seawall_hub_core::service::{PendingPolicy, ReplayMode, ReplayRequest};
use serde_json::json;

use crate::fixtures::{DELIVERED, claim, event, settlement, slug, to};
use crate::peer::{Mood, says};
use crate::scene::{Scene, USUAL, everything};
use crate::time::{Timed, on_all_stores};

on_all_stores!(
    hub_5_one_key_is_in_order_under_load_with_failures,
    prm_1_a_restart_in_the_middle_keeps_the_order,
    hub_5_hold_waits_behind_a_dead_letter,
    hub_5_continue_goes_on_behind_a_dead_letter,
    hub_5_hold_waits_behind_what_could_not_be_rendered,
    hub_5_what_was_held_comes_back_in_order,
    prm_1_what_was_held_is_let_go_at_the_next_start,
    prm_1_enabling_a_rule_again_lets_go_what_is_left,
    prm_1_nothing_is_held_by_a_rule_that_is_at_work,
    prm_1_a_deleted_rule_leaves_nobody_waiting,
    prm_1_nothing_is_held_by_a_rule_that_is_gone,
    prm_1_who_is_in_hand_when_its_rule_goes_is_not_held,
    hub_5_who_is_let_go_does_not_overtake_a_replay,
);

const HELD: Decision = Decision { disposition: Disposition::Hold, attempted: false, ..DELIVERED };

fn ordered(hold: bool) -> Rule {
    Rule { ordering: Some(OrderingRule { key: "{{ data.key }}".into(), hold }), ..everything() }
}

fn name() -> seawall_hub_core::domain::slug::Slug {
    slug("everything")
}

/// Sends `count` events of each key, one of each after the other.
async fn send(scene: &Scene<impl Timed>, keys: u32, count: u32) -> Vec<DeliveryId> {
    let mut ids = Vec::new();
    for n in 0..count {
        for key in 0..keys {
            ids.push(scene.one(&format!("{key}/{n}"), json!({"key": key})).await);
        }
    }
    ids
}

/// No request of a key goes out before the one before it was taken well; each is taken once.
fn check_order(scene: &Scene<impl Timed>, count: u32) {
    let mut next: BTreeMap<String, u32> = BTreeMap::new();
    for got in scene.peer.got() {
        let (key, n) = got.event.split_once('/').unwrap();
        let next = next.entry(key.into()).or_default();
        assert_eq!(n.parse::<u32>().unwrap(), *next, "of key {key}: {:?}", got.status);
        *next += u32::from(got.status == Some(200));
    }
    assert!(next.values().all(|next| *next == count), "{next:?}");
}

/// HUB-5: those of one key arrive in order, whatever fails in between, and different keys don't wait for each other.
async fn hub_5_one_key_is_in_order_under_load_with_failures<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, ordered(false)).await;
    scene.peer.feel(Mood::Says(200, millis(1)));
    for n in (0..30).step_by(3) {
        for key in 0..8 {
            let failures = [says(500), Mood::Refuses, says(503), Mood::Hangs];
            scene
                .peer
                .script(&format!("{key}/{n}"), failures.into_iter().skip((n as usize + key) % 4).take(2));
        }
    }
    scene
        .play(async {
            let ids = send(&scene, 8, 30).await;
            scene.until_all(&ids, DeliveryState::Delivered).await;
        })
        .await;
    check_order(&scene, 30);
    assert!(scene.peer.got().iter().any(|got| got.at_once > 4), "different keys run beside each other");
}

/// HUB-5, PRM-1: a restart in the middle keeps the order; what was under way is repeated, and nothing passes it.
async fn prm_1_a_restart_in_the_middle_keeps_the_order<F: Timed>() {
    let place = F::create().await;
    let mut scene = Scene::new(&place, USUAL, ordered(false)).await;
    scene.peer.feel(Mood::Says(200, millis(2)));
    let ids = scene.play(send(&scene, 4, 25)).await;
    for _ in 0..3 {
        scene = scene.restart(&place).await;
        scene.play(scene.pass(millis(40))).await;
    }
    scene = scene.restart(&place).await;
    scene.play(scene.until_all(&ids, DeliveryState::Delivered)).await;
    // After a restart one may come twice, never before the one before it.
    let mut last: BTreeMap<String, u32> = BTreeMap::new();
    for event in scene.peer.took() {
        let (key, n) = event.split_once('/').unwrap();
        let (n, last) = (n.parse::<u32>().unwrap(), last.entry(key.into()).or_default());
        assert!(n == *last || n == *last + 1, "{event} after {last}");
        *last = n;
    }
    assert!(last.values().all(|last| *last == 24));
}

/// HUB-5: with `hold`, those behind a dead letter wait until it is discarded or replayed, and a replay goes before them.
async fn hub_5_hold_waits_behind_a_dead_letter<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, ordered(true)).await;
    scene.peer.script("0/1", [says(422)]);
    scene.peer.script("1/1", [says(422), says(422)]);
    scene
        .play(async {
            // Three of each key in turn: the second of key 0 is the fourth.
            let ids = send(&scene, 3, 4).await;
            let (discarded, replayed, last) = (ids[3], ids[4], ids[11]);
            scene.until_all(&[discarded, replayed], DeliveryState::DeadLettered).await;
            scene.until(last, DeliveryState::Delivered).await;
            let late = scene.one("0/4", json!({"key": 0})).await;
            assert_eq!(scene.kept(late).await.state, DeliveryState::Blocked, "who comes later waits too");
            assert_eq!(of_key(&scene, 0), ["0/0"]);
            scene.hub.dead_letters.move_letter(&scene.cx(), discarded, LetterAction::Delete).await.unwrap();
            scene.until(late, DeliveryState::Delivered).await;
            assert_eq!(of_key(&scene, 0), ["0/0", "0/2", "0/3", "0/4"]);

            // A replay that is refused again holds up the others as the first one did.
            let again = ReplayRequest { mode: ReplayMode::Same, again: false, key: None };
            let refused = scene.replay(replayed, &again).await.unwrap();
            scene.until(refused, DeliveryState::DeadLettered).await;
            assert_eq!(of_key(&scene, 1), ["1/0"]);
            let replay = scene.replay(refused, &again).await.unwrap();
            scene.until_all(&[replay, ids[7], ids[10]], DeliveryState::Delivered).await;
            assert_eq!(of_key(&scene, 1), ["1/0", "1/1", "1/2", "1/3"]);
        })
        .await;
}

fn of_key(scene: &Scene<impl Timed>, key: u32) -> Vec<String> {
    let begins = format!("{key}/");
    scene.peer.took().into_iter().filter(|event| event.starts_with(&begins)).collect()
}

/// HUB-5: with `continue`, those behind a dead letter go on; a replay of it then comes when its turn is.
async fn hub_5_continue_goes_on_behind_a_dead_letter<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, ordered(false)).await;
    scene.peer.script("0/1", [says(422)]);
    scene
        .play(async {
            let ids = send(&scene, 1, 4).await;
            scene.until(ids[3], DeliveryState::Delivered).await;
            assert_eq!(scene.kept(ids[1]).await.state, DeliveryState::DeadLettered);
            let again = ReplayRequest { mode: ReplayMode::Render, again: false, key: None };
            let replay = scene.replay(ids[1], &again).await.unwrap();
            scene.until(replay, DeliveryState::Delivered).await;
            assert_eq!(scene.peer.took(), ["0/0", "0/2", "0/3", "0/1"]);
        })
        .await;
}

/// HUB-5: with `hold`, an event of which no request can be made holds up those behind it like any other dead letter.
async fn hub_5_hold_waits_behind_what_could_not_be_rendered<F: Timed>() {
    let place = F::create().await;
    let rule = Rule { body: Some(r#"{"n":"{{ data.n }}"}"#.into()), ..ordered(true) };
    let scene = Scene::new(&place, USUAL, rule).await;
    scene
        .play(async {
            let first = scene.one("0/0", json!({"key": 0, "n": 0})).await;
            let broken = scene.one("0/1", json!({"key": 0})).await;
            let behind = scene.one("0/2", json!({"key": 0, "n": 2})).await;
            scene.until(first, DeliveryState::Delivered).await;
            assert_eq!(scene.kept(broken).await.state, DeliveryState::DeadLettered);
            assert_eq!(scene.kept(behind).await.state, DeliveryState::Blocked);
            scene.hub.dead_letters.move_letter(&scene.cx(), broken, LetterAction::Delete).await.unwrap();
            scene.until(behind, DeliveryState::Delivered).await;
        })
        .await;
}

/// HUB-5: what a disabled rule holds comes back in order, and before what comes later. Trap "a disabled rule drops events".
async fn hub_5_what_was_held_comes_back_in_order<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, ordered(false)).await;
    // The first is under way when the rule is disabled, and fails then.
    scene.peer.script("0/0", [Mood::Says(503, millis(50))]);
    scene
        .play(async {
            let mut ids =
                vec![scene.one("0/0", json!({"key": 0})).await, scene.one("0/1", json!({"key": 0})).await];
            scene
                .hub
                .registry
                .enable_rule(&scene.cx(), &name(), false, Some("a look at it".into()))
                .await
                .unwrap();
            for n in 2..700 {
                ids.push(scene.one(&format!("0/{n}"), json!({"key": 0})).await);
            }
            scene.until(ids[0], DeliveryState::Held).await;
            scene.until(ids[699], DeliveryState::Held).await;
            assert_eq!(scene.peer.took(), [] as [&str; 0]);
            scene.hub.registry.enable_rule(&scene.cx(), &name(), true, None).await.unwrap();
            for n in 700..710 {
                ids.push(scene.one(&format!("0/{n}"), json!({"key": 0})).await);
            }
            scene.until_all(&ids, DeliveryState::Delivered).await;
        })
        .await;
    check_order(&scene, 710);
}

/// PRM-1: a hub that is killed between enabling a rule and letting go what it held lets it go at its next start.
async fn prm_1_what_was_held_is_let_go_at_the_next_start<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, ordered(false)).await;
    let off = scene.hub.registry.enable_rule(&scene.cx(), &name(), false, None).await.unwrap();
    let ids = [scene.one("0/0", json!({"key": 0})).await, scene.one("0/1", json!({"key": 0})).await];
    let on = Rule { enabled: true, version: off.version + 1, ..off };
    scene.store.commit(WritePriority::Admin, UnitOfWork::of(Change::PutRule(on))).await.unwrap();
    let scene = scene.restart(&place).await;
    scene.play(scene.until_all(&ids, DeliveryState::Delivered)).await;
    check_order(&scene, 2);
}

/// PRM-1, PRM-8: what was not let go when its rule was enabled, because there was no room on the disk, is let go by whoever enables
/// it again. It used to wait for a restart.
async fn prm_1_enabling_a_rule_again_lets_go_what_is_left<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    let on = scene.hub.registry.rule(&name()).unwrap();
    let put = |version, enabled| UnitOfWork::of(Change::PutRule(Rule { version, enabled, ..on.clone() }));
    scene.store.commit(WritePriority::Admin, put(2, false)).await.unwrap();
    let rule = (name(), 2);
    let held = Change::AddEvent(
        event("held"),
        vec![NewDelivery { rule, initial: InitialState::Held, ..to("billing") }],
    );
    let held = scene.store.commit(WritePriority::Ingest, UnitOfWork::of(held)).await.unwrap().deliveries[0].0;
    scene.store.commit(WritePriority::Admin, put(3, true)).await.unwrap();
    assert_eq!(scene.kept(held).await.state, DeliveryState::Held);
    scene.hub.registry.enable_rule(&scene.cx(), &name(), true, None).await.unwrap();
    assert_eq!(scene.kept(held).await.state, DeliveryState::Queued);
}

/// PRM-1: whoever was about to be held while its rule was enabled is not held by nobody for ever.
async fn prm_1_nothing_is_held_by_a_rule_that_is_at_work<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    let id = scene.one("0/0", json!({"key": 0})).await;
    // As somebody says who saw the rule disabled a moment ago.
    let settlement = settlement(claim(&scene.store, id), HELD);
    scene.store.commit(WritePriority::Outcomes, UnitOfWork::of(Change::Settle(settlement))).await.unwrap();
    assert_eq!(scene.kept(id).await.state, DeliveryState::Queued);
}

/// HUB-4, PRM-1: a rule that is deleted makes dead letters of what it holds, and nobody waits behind them.
async fn prm_1_a_deleted_rule_leaves_nobody_waiting<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, ordered(false)).await;
    scene.peer.script("0/0", [Mood::Says(503, millis(50))]);
    scene
        .play(async {
            let ids = send(&scene, 1, 2).await;
            scene.hub.registry.enable_rule(&scene.cx(), &name(), false, None).await.unwrap();
            scene.until(ids[0], DeliveryState::Held).await;
            assert!(
                scene
                    .hub
                    .registry
                    .delete_rule(&scene.cx(), &name(), None, PendingPolicy::Refuse)
                    .await
                    .is_err()
            );
            scene
                .hub
                .registry
                .delete_rule(&scene.cx(), &name(), None, PendingPolicy::DeadLetter)
                .await
                .unwrap();
            scene.until(ids[0], DeliveryState::DeadLettered).await;
            scene.until(ids[1], DeliveryState::Delivered).await;
        })
        .await;
}

/// HUB-4, PRM-1: what comes in while a disabled rule is deleted is not held by a rule that is not there any more: nobody could
/// ever let it go.
async fn prm_1_nothing_is_held_by_a_rule_that_is_gone<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let rule = scene.hub.registry.enable_rule(&scene.cx(), &name(), false, None).await.unwrap();
            let first = scene.one("first", json!({})).await;
            // As somebody does who has looked at the rules a moment ago: one before it goes, and one after.
            let late = |id: &str| {
                let initial = InitialState::Held;
                let rule = (name(), rule.version);
                Change::AddEvent(event(id), vec![NewDelivery { rule, initial, ..to("billing") }])
            };
            let everything = name();
            let cx = scene.cx();
            let (deleted, between) = tokio::join!(
                scene.hub.registry.delete_rule(&cx, &everything, None, PendingPolicy::DeadLetter),
                async {
                    let mut ids = Vec::new();
                    for n in 0..40 {
                        let unit = UnitOfWork::of(late(&format!("between-{n}")));
                        ids.push(
                            scene.store.commit(WritePriority::Ingest, unit).await.unwrap().deliveries[0].0,
                        );
                    }
                    ids
                }
            );
            deleted.unwrap();
            let after =
                scene.store.commit(WritePriority::Ingest, UnitOfWork::of(late("after"))).await.unwrap();
            for id in between.into_iter().chain([first, after.deliveries[0].0]) {
                let kept = scene.kept(id).await;
                assert_eq!(
                    (kept.state, kept.reason),
                    (DeliveryState::DeadLettered, Some(DeadLetterReason::Deleted))
                );
                assert!(scene.hub.dead_letters.letter(id).await.unwrap().is_some());
            }
        })
        .await;
}

/// PRM-1: who is in hand when its disabled rule is deleted goes on, like all that the rule has asked for.
async fn prm_1_who_is_in_hand_when_its_rule_goes_is_not_held<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    let id = scene.one("0/0", json!({"key": 0})).await;
    scene.hub.registry.enable_rule(&scene.cx(), &name(), false, None).await.unwrap();
    scene.delete_rule(&name()).await;
    // As somebody says who saw the rule disabled a moment ago.
    let settlement = settlement(claim(&scene.store, id), HELD);
    scene.store.commit(WritePriority::Outcomes, UnitOfWork::of(Change::Settle(settlement))).await.unwrap();
    assert_eq!(scene.kept(id).await.state, DeliveryState::Queued);
}

/// HUB-5: when a rule goes on, nobody overtakes the replay that goes first in its order.
async fn hub_5_who_is_let_go_does_not_overtake_a_replay<F: Timed>() {
    let place = F::create().await;
    let mut rule = ordered(true);
    (rule.schedule.base, rule.schedule.cap) = (millis(1_000), millis(1_000));
    let scene = Scene::new(&place, USUAL, rule).await;
    scene.peer.script("0/0", [says(422), says(503)]);
    scene
        .play(async {
            let ids = send(&scene, 1, 2).await;
            scene.until(ids[0], DeliveryState::DeadLettered).await;
            let again = ReplayRequest { mode: ReplayMode::Same, again: false, key: None };
            let replay = scene.replay(ids[0], &again).await.unwrap();
            scene.until(replay, DeliveryState::Stalled).await;
            scene.hub.registry.enable_rule(&scene.cx(), &name(), false, None).await.unwrap();
            let held = scene.one("0/2", json!({"key": 0})).await;
            assert_eq!(scene.kept(held).await.state, DeliveryState::Held);
            scene.hub.registry.enable_rule(&scene.cx(), &name(), true, None).await.unwrap();
            scene.until_all(&[replay, ids[1], held], DeliveryState::Delivered).await;
            assert_eq!(scene.peer.took(), ["0/0", "0/1", "0/2"]);
        })
        .await;
}
