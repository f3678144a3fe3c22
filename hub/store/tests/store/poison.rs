//! Deliveries whose handling panics, or ends the process: who is blamed, who is not, and that nothing is lost.

use seawall::millis;
use seawall_hub_core::domain::delivery::{DeliveryId, Progress, Reason, State};
use seawall_hub_core::domain::poison::{PANICS_MAX, TOGETHER_MAX};
use seawall_hub_core::domain::rule::{Ordering, Rule};
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::port::store::{Change, Following, Kept, Store, Unit, Urgency};
use seawall_hub_core::service::{Again, Mode};
use seawall_hub_store::Sqlite;
use serde_json::json;

use crate::conformance::{NOW, Names, Place, add, due, kept, settle, slug};
use crate::scene::{Mood, Scene, USUAL, WELL, billing, everything, peer_service, says};

/// What is tried beside those that are on trial.
async fn take(store: &Sqlite, on_trial: &[u32]) -> Vec<Kept> {
    store.take_suspects(vec![slug("billing"), slug("mail")], on_trial.to_vec()).await.unwrap()
}

async fn stop(store: &Sqlite) {
    store.commit(Urgency::Admin, Unit::of(Change::Stopped)).await.unwrap();
}

/// So many deliveries in hand at two crashes.
async fn suspects(place: &Place, count: usize) -> (Sqlite, Vec<DeliveryId>) {
    let store = place.open();
    let mut ids = Vec::new();
    for n in 0..count {
        let service = if n % 2 == 0 { "billing" } else { "mail" };
        ids.extend(add(&store, &format!("evt-{n}"), &[service]).await.unwrap().names());
    }
    drop(store);
    let store = place.open();
    assert_eq!(due(&store, NOW, usize::MAX).await.unwrap().len(), count, "one crash proves nothing");
    drop(store);
    let store = place.open();
    (store, ids)
}

/// PRM-1: what was in hand at one crash goes on as always, at two it is a suspect; an end in order counts for nothing, and a try
/// that has ended clears.
#[tokio::test]
async fn prm_1_two_crashes_make_a_suspect_and_an_orderly_end_none() {
    let place = Place::new();
    let store = place.open();
    let id = add(&store, "evt-1", &["billing"]).await.unwrap().names()[0];
    for _ in 0..5 {
        stop(&store).await;
    }
    drop(store);
    for round in 0..4 {
        let store = place.open();
        assert_eq!(kept(&store, id).await.state, State::Queued, "round {round}");
        assert_eq!(due(&store, NOW, 10).await.unwrap().len(), 1);
        // The first of these ends is a crash.
        if round > 0 {
            stop(&store).await;
        }
    }
    let store = place.open();
    assert_eq!(due(&store, NOW, 10).await.unwrap().len(), 1);
    let progress = Progress { accepted: NOW, counted: 0, failures: 1, panics: 1 };
    settle(&store, id, Following::Waits { until: NOW, progress, stalled: false }).await.unwrap();
    assert_eq!(due(&store, NOW, 10).await.unwrap()[0].progress, progress, "panics are kept");
    drop(store);
    let store = place.open();
    assert_eq!(kept(&store, id).await.state, State::Waiting, "the crash before was forgiven");
    assert_eq!(due(&store, NOW, 10).await.unwrap().len(), 1);
    drop(store);
    let store = place.open();
    assert_eq!(kept(&store, id).await.state, State::Suspect);
    assert!(due(&store, NOW, 10).await.unwrap().is_empty() && store.next_due().await.unwrap().is_empty());
    assert_eq!(store.suspects().await.unwrap(), [slug("billing")]);
    drop(store);
    let store = place.open();
    let waiting = kept(&store, id).await;
    assert_eq!((waiting.state, waiting.together), (State::Suspect, TOGETHER_MAX), "it was not in hand");
    assert!(store.convicts().await.unwrap().is_empty());
}

/// PRM-1: those on trial at a crash are tried in a smaller company until one is alone; that one is convicted, with the evidence,
/// and given up once.
#[tokio::test]
async fn prm_1_a_company_on_trial_shrinks_until_one_is_convicted() {
    let place = Place::new();
    let (store, ids) = suspects(&place, 100).await;
    assert_eq!(store.suspects().await.unwrap(), [slug("billing"), slug("mail")]);
    let first = take(&store, &[]).await;
    assert_eq!(first.len(), TOGETHER_MAX as usize);
    let of_mail = first.iter().filter(|kept| kept.service == slug("mail")).count();
    assert_eq!(of_mail, first.len() / 2, "each service gets its share");
    assert!(take(&store, &[TOGETHER_MAX; TOGETHER_MAX as usize]).await.is_empty(), "the court is full");
    // All but 16 end well.
    for kept in &first[16..] {
        settle(&store, kept.id, Following::Delivered).await.unwrap();
    }
    drop(store);

    let store = place.open();
    let second = take(&store, &[]).await;
    assert_eq!(second.len(), 2, "an eighth of 16, and nobody from those who were not on trial");
    assert!(second.iter().all(|kept| first[..16].iter().any(|before| before.id == kept.id)));
    assert!(take(&store, &[2, 2]).await.is_empty());
    drop(store);

    let store = place.open();
    let alone = take(&store, &[]).await;
    assert_eq!(alone.len(), 1);
    assert!(take(&store, &[1]).await.is_empty(), "nobody beside one that has to be alone");
    drop(store);

    let store = place.open();
    let convicts = store.convicts().await.unwrap();
    assert_eq!(convicts.len(), 1);
    assert_eq!(
        (convicts[0].0.id, convicts[0].1.crashes, &*convicts[0].1.starts),
        (alone[0].id, 5, "1, 2, 3, 4, 5")
    );
    assert!(ids.contains(&alone[0].id));
    let others = take(&store, &[]).await;
    assert_eq!((others.len(), others[0].together), (1, 1), "the other of the two is tried alone as well");
    settle(&store, others[0].id, Following::Delivered).await.unwrap();
    assert_eq!(take(&store, &[]).await[0].together, 2, "then those of the company before");
}

/// PRM-1: one that was not begun after all, and one that was on trial at an end in order, wait anew in the same company.
#[tokio::test]
async fn prm_1_a_trial_that_does_not_take_place_proves_nothing() {
    let place = Place::new();
    let (store, ids) = suspects(&place, 1).await;
    assert_eq!(take(&store, &[]).await.len(), 1);
    store.commit(Urgency::Outcomes, Unit::of(Change::PutBack(ids.clone()))).await.unwrap();
    drop(store);
    let store = place.open();
    assert!(store.convicts().await.unwrap().is_empty());
    assert_eq!(take(&store, &[]).await.len(), 1);
    stop(&store).await;
    drop(store);
    let store = place.open();
    assert!(store.convicts().await.unwrap().is_empty());
    assert_eq!(kept(&store, ids[0]).await.state, State::Suspect);
    // A rule that is disabled meanwhile holds it, and the mark is gone.
    assert_eq!(take(&store, &[]).await.len(), 1);
    settle(&store, ids[0], Following::Held).await.unwrap();
    drop(store);
    let store = place.open();
    assert_eq!((kept(&store, ids[0]).await.state, kept(&store, ids[0]).await.together), (State::Queued, 0));
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
            scene.until_all(&others, State::Delivered).await;
            scene.until(sometimes, State::Delivered).await;
            scene.until(bad, State::DeadLettered).await;
            let (kept, attempts) = scene.store.delivery(bad).await.unwrap().unwrap();
            assert_eq!((kept.reason, kept.progress.panics), (Some(Reason::Poison), PANICS_MAX));
            assert_eq!(attempts.len(), 3);
            for attempt in attempts {
                assert!(attempt.error.unwrap().starts_with("the hub's own code has panicked over it"));
            }
            let circuit = scene.hub.guard(&billing()).unwrap().breaker().unwrap().counts();
            assert_eq!((circuit.opened, circuit.panicked), (0, 0), "the peer has done nothing");
        })
        .await;
}

/// PRM-1. Trap "poison that kills the process": whoever is in hand at each crash is given up at the third, with a reason of its
/// own, and can be replayed; what came later and others to the same service are delivered.
#[tokio::test]
async fn prm_1_what_is_in_hand_at_each_crash_is_quarantined_and_can_be_replayed() {
    let place = Place::new();
    let mut scene = Scene::new(&place, USUAL.replace("200ms", "1h").as_str(), everything()).await;
    scene.peer.script("bad", vec![Mood::Hangs; 3]);
    let bad = scene.one("bad", json!({})).await;
    for round in 0..3 {
        let other = scene.one(&format!("good-{round}"), json!({})).await;
        scene
            .play(async {
                scene.until(other, State::Delivered).await;
                while scene.peer.got().iter().filter(|got| got.event == "bad").count() <= round {
                    tokio::time::sleep(millis(2)).await;
                }
            })
            .await;
        scene = scene.restart(&place).await;
    }
    scene
        .play(async {
            scene.until(bad, State::DeadLettered).await;
            let (kept, attempts) = scene.store.delivery(bad).await.unwrap().unwrap();
            assert_eq!(kept.reason, Some(Reason::Poison));
            let error = attempts[0].error.as_deref().unwrap();
            assert!(error.contains("3 times") && error.contains("(starts 1, 2, 3)"), "{error}");
            let again = Again { dead: bad, mode: Mode::Same, again: false, key: None };
            let replay = scene.hub.replay(&again).await.unwrap();
            scene.until(replay, State::Delivered).await;
        })
        .await;
}

fn ordered(hold: bool) -> Rule {
    Rule { ordering: Some(Ordering { key: "{{ data.c }}".into(), hold }), ..everything() }
}

/// HUB-5, PRM-1: an order is kept while its first is a suspect, and goes on behind a convict unless the rule says that it is held.
#[tokio::test]
async fn hub_5_an_order_waits_for_a_suspect_and_goes_on_behind_a_convict() {
    for hold in [false, true] {
        let place = Place::new();
        let mut scene = Scene::new(&place, USUAL.replace("200ms", "1h").as_str(), ordered(hold)).await;
        scene.peer.script("first", vec![Mood::Hangs; 3]);
        let mut ids = Vec::new();
        for event in ["first", "second", "third"] {
            ids.push(scene.one(event, json!({"c": 1})).await);
        }
        for round in 0..3 {
            scene
                .play(async {
                    while scene.peer.got().len() <= round {
                        tokio::time::sleep(millis(2)).await;
                    }
                })
                .await;
            scene = scene.restart(&place).await;
        }
        scene
            .play(async {
                scene.until(ids[0], State::DeadLettered).await;
                if hold {
                    assert_eq!(scene.kept(ids[1]).await.state, State::Blocked);
                    scene.hub.move_letter(ids[0], seawall_hub_core::port::store::Tray::Bin).await.unwrap();
                }
                scene.until_all(&ids[1..], State::Delivered).await;
            })
            .await;
        assert_eq!(scene.peer.took(), ["second", "third"], "hold: {hold}");
    }
}

/// PRM-1: suspects of a service that is paused take up nobody's place, and a crash meanwhile is not theirs; all are through soon,
/// whether their tries go well or not.
#[tokio::test]
async fn prm_1_many_suspects_are_through_soon_and_who_can_not_be_tried_is_not_blamed() {
    let place = Place::new();
    let mut scene = Scene::new(&place, USUAL.replace("200ms", "1h").as_str(), everything()).await;
    let paused = Service { name: slug("mail"), paused: true, ..peer_service(USUAL) };
    scene.hub.put_service(paused, None).await.unwrap();
    let to_mail = Rule { name: slug("to-mail"), service: slug("mail"), ..everything() };
    scene.hub.put_rule(to_mail, None).await.unwrap();
    scene.peer.feel(Mood::Hangs);
    let mut ids = Vec::new();
    for n in 0..300 {
        ids.extend(scene.send(&format!("evt-{n}"), json!({})).await);
    }
    // All 600 are in hand from their birth on.
    for _ in 0..2 {
        scene
            .play(async {
                while scene.hub.in_hand(&billing()) < 300 || scene.hub.in_hand(&slug("mail")) < 300 {
                    tokio::time::sleep(millis(2)).await;
                }
            })
            .await;
        scene = scene.restart(&place).await;
    }
    for round in 0..2 {
        scene
            .play(async {
                // Some are on trial, and hang.
                while scene.peer.got().is_empty() {
                    tokio::time::sleep(millis(2)).await;
                }
                tokio::time::sleep(millis(300)).await;
                assert_eq!(scene.hub.in_hand(&slug("mail")), 0, "round {round}");
            })
            .await;
        scene.peer.forget();
        scene = scene.restart(&place).await;
    }
    // One in five fails at first, and is cleared by that.
    scene.peer.feel(WELL);
    for n in (0..300).step_by(5) {
        scene.peer.script(&format!("evt-{n}"), [says(500)]);
    }
    let (of_billing, of_mail): (Vec<_>, Vec<_>) = {
        let mut all = Vec::new();
        for id in ids {
            all.push((id, scene.kept(id).await.service));
        }
        all.into_iter().partition(|(_, service)| *service == billing())
    };
    scene
        .play(async {
            for (id, _) in &of_billing {
                scene.until(*id, State::Delivered).await;
            }
            for (id, _) in &of_mail {
                assert_eq!(scene.kept(*id).await.state, State::Suspect);
            }
            scene.hub.pause_service(&slug("mail"), false).await.unwrap();
            for (id, _) in &of_mail {
                scene.until(*id, State::Delivered).await;
            }
        })
        .await;
    assert!(scene.store.convicts().await.unwrap().is_empty());
    assert_eq!(scene.hub.store().suspects().await.unwrap(), []);
}
