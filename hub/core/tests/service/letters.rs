//! Dead letters: replayed, discarded, and made of what is left when a service or a rule goes.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use seawall::{Clock, secs};
use seawall_hub_core::domain::dead_letter::{LetterFilter, LetterState};
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryId, DeliveryState};
use seawall_hub_core::domain::rule::{OrderingRule, Rule};
use seawall_hub_core::port::store::{
    Change, DeadLetterReads, EventReads, IdempotencyRecord, InitialState, LetterAction, LetterMove,
    NewDelivery, PageRequest, ReplayChange, StoreError, UnitOfWork, UnitStore, WritePriority,
};
use seawall_hub_core::service::{ChangeError, PendingPolicy, ReplayMode, ReplayRequest};
use seawall_testkit::until;
use serde_json::json;

use crate::factory::{SqliteFactory, StoreFactory};
use crate::fixtures::{NOW, add, claim, event, slug, to};
use crate::peer::says;
use crate::scene::{Scene, USUAL, billing, everything, peer_service};
use crate::time::{Timed, on_all_stores};

on_all_stores!(
    crd_7_a_replay_is_a_new_delivery_and_the_dead_letter_stays,
    crd_7_a_second_replay_is_refused_unless_it_is_meant,
    crd_2_a_double_click_is_one_replay,
    crd_7_a_discarded_dead_letter_is_done_with,
    crd_7_replay_and_mark_are_one_unit,
    crd_7_an_id_of_another_database_is_unknown,
    crd_7_what_could_not_be_rendered_is_replayed_by_a_mended_rule,
    hub_1_what_is_left_of_a_service_becomes_dead_letters,
    prm_1_who_waits_behind_a_buried_delivery_goes_on,
    hub_1_a_service_that_could_not_be_deleted_is_at_work,
    prm_1_what_is_for_a_service_that_is_gone_becomes_a_dead_letter,
    hub_5_a_replay_to_who_is_gone_does_not_stop_a_rule_that_sends_elsewhere,
);

fn again(mode: ReplayMode) -> ReplayRequest {
    ReplayRequest { mode, again: false, key: None }
}

fn titled() -> Rule {
    Rule { body: Some(r#"{"title":"{{ data.title }}"}"#.into()), ..everything() }
}

/// CRD-7: a replay is a new delivery with fresh attempts that is linked to the dead letter, which stays and is marked. Traps
/// "replay sends the rendered payload through the template again", "replay = delete then enqueue".
async fn crd_7_a_replay_is_a_new_delivery_and_the_dead_letter_stays<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, titled()).await;
    scene
        .play(async {
            // A title that is a template itself is still only a text.
            let dead = scene.dead_letter("evt", json!({"title": "{{ data.secret }}"})).await;
            let first = scene.peer.got()[0].clone();
            let changed = Rule { body: Some(r#"{"name":"{{ data.title }}"}"#.into()), ..everything() };
            scene.hub.registry.put_rule(&scene.cx(), changed, None).await.unwrap();
            let same = scene.replay(dead, &again(ReplayMode::Same)).await.unwrap();
            scene.until(same, DeliveryState::Delivered).await;
            let got = scene.peer.got()[1].clone();
            assert_eq!((&got.request, got.delivery, got.replay_of), (&first.request, same, Some(dead)));
            assert_eq!((got.number, got.event.as_str()), (1, "evt"), "fresh attempts, the same event");

            let letter = scene.hub.dead_letters.letter(dead).await.unwrap().unwrap();
            let record = seawall_hub_core::service::record(&letter);
            assert_eq!(
                letter.dead.replayed.map(|(id, state, _)| (id, state)),
                Some((same, DeliveryState::Delivered))
            );
            assert_eq!(
                (&*record.fault.reason, record.attempts.len(), letter.dead.status),
                ("refused", 1, Some(422))
            );
            let kept = scene.kept(same).await;
            assert_eq!((kept.replay_of, kept.rule.1, kept.progress.failures), (Some(dead), 1, 0));

            let rendered = scene
                .replay(dead, &ReplayRequest { again: true, ..again(ReplayMode::Render) })
                .await
                .unwrap();
            scene.until(rendered, DeliveryState::Delivered).await;
            let got = scene.peer.got()[2].clone();
            let body = got.request.body.bytes().map(|bytes| String::from_utf8_lossy(bytes));
            assert_eq!(body.as_deref(), Some(r#"{"name":"{{ data.secret }}"}"#), "rendered once");
            assert_eq!(scene.kept(rendered).await.rule.1, 2, "by today's rule");
        })
        .await;
}

/// CRD-7: what has been replayed is not replayed again unless somebody says so: if the replay has failed too, that one is
/// open.
async fn crd_7_a_second_replay_is_refused_unless_it_is_meant<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let dead = scene.dead_letter("evt", json!({})).await;
            scene.peer.script("evt", [says(422)]);
            let failed = scene.replay(dead, &again(ReplayMode::Same)).await.unwrap();
            scene.until(failed, DeliveryState::DeadLettered).await;
            refuses_to_replay(&scene, dead, failed).await;
            let second = replay_once_more(&scene, dead).await;
            refuses_to_replay(&scene, dead, second).await;
            replay_once_more(&scene, dead).await;
            assert_eq!(scene.peer.got().len(), 4);
        })
        .await;
}

/// CRD-2, CRD-7: a double click is one replay, with a key and without one; another replay under the same key is a mistake.
async fn crd_2_a_double_click_is_one_replay<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let (dead, other) =
                (scene.dead_letter("evt", json!({})).await, scene.dead_letter("other", json!({})).await);
            let keyed = ReplayRequest { key: Some("click".into()), ..again(ReplayMode::Same) };
            let click = || scene.replay(dead, &keyed);
            let (a, b, c, d) = tokio::join!(click(), click(), click(), click());
            let first = a.unwrap();
            for other in [b, c, d] {
                assert_eq!(other, Ok(first), "all are told the same");
            }
            scene.until(first, DeliveryState::Delivered).await;
            assert_eq!(click().await, Ok(first), "also when it is done");
            let mistaken = scene
                .replay(other, &ReplayRequest { key: Some("click".into()), ..again(ReplayMode::Same) })
                .await;
            assert!(matches!(&mistaken, Err(ChangeError::Wrong(fields)) if fields[0].0 == "Idempotency-Key"));
            // The key of an event is no key of a replay.
            let event = IdempotencyRecord {
                scope: "events",
                key: "click".into(),
                fingerprint: [0; 32],
                note: String::new(),
                at: NOW,
            };
            scene.store.commit(WritePriority::Ingest, UnitOfWork::of(Change::ClaimKey(event))).await.unwrap();

            let bare = again(ReplayMode::Same);
            let click = || scene.replay(other, &bare);
            let (a, b, c, d) = tokio::join!(click(), click(), click(), click());
            let well = [a, b, c, d].into_iter().filter_map(Result::ok).collect::<Vec<_>>();
            assert_eq!(well.len(), 1, "one of them, the others are refused");
            scene.until(well[0], DeliveryState::Delivered).await;
            assert_eq!(scene.count().await, 4);
        })
        .await;
}

/// CRD-7: a discarded dead letter is out of sight and can't be replayed; its delivery stays what it was.
async fn crd_7_a_discarded_dead_letter_is_done_with<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let (dead, stays) =
                (scene.dead_letter("evt", json!({})).await, scene.dead_letter("stays", json!({})).await);
            scene.hub.dead_letters.move_letter(&scene.cx(), dead, LetterAction::Delete).await.unwrap();
            let is_deleted = |done: &Result<(), ChangeError>| matches!(done, Err(ChangeError::Conflict(why)) if why.contains("deleted"));
            assert!(is_deleted(&scene.hub.dead_letters.move_letter(&scene.cx(), dead, LetterAction::Delete).await));
            assert!(is_deleted(&scene.replay(dead, &again(ReplayMode::Same)).await.map(drop)));
            let letter = scene.hub.dead_letters.letter(dead).await.unwrap().unwrap();
            assert_eq!(letter.dead.state, LetterState::Deleted, "it can be restored");
            let page = PageRequest { from: None, size: 10 };
            let listed = scene.store.dead_letters(LetterFilter::default(), page).await.unwrap().page.items;
            assert_eq!(listed.iter().map(|dead| dead.delivery.id).collect::<Vec<_>>(), [stays]);
            assert_eq!(scene.kept(dead).await.state, DeliveryState::DeadLettered);
        })
        .await;
}

/// CRD-7: the new delivery and the mark are one unit: an error after it, or a caller that goes away at any moment, leaves both
/// or none. Trap "replay = delete then enqueue".
async fn crd_7_replay_and_mark_are_one_unit<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    let dead = scene.play(scene.dead_letter("evt", json!({}))).await;
    let new = NewDelivery {
        rule: (slug("everything"), 1),
        service: billing(),
        request: scene.kept(dead).await.request,
        initial: InitialState::Queued,
        order: None,
    };
    let unknown = DeliveryId::new(dead.database, 4_711);
    let replay = Change::Replay(ReplayChange { dead, new, at: NOW, again: true, edited: false });
    let discard = Change::Move(LetterMove { dead: unknown, to: LetterAction::Delete, at: NOW });
    let failed =
        scene.store.commit(WritePriority::Admin, UnitOfWork { changes: vec![replay, discard] }).await;
    assert_eq!(failed.unwrap_err(), StoreError::NotADeadLetter(unknown));
    let marked = async || scene.hub.dead_letters.letter(dead).await.unwrap().unwrap().dead.replayed;
    assert_eq!((marked().await, scene.count().await), (None, 1), "neither");

    for polls in 0..6 {
        let before = (marked().await.map(|(id, ..)| id), scene.count().await);
        {
            let replay = ReplayRequest { again: true, ..again(ReplayMode::Same) };
            let mut asked = pin!(scene.replay(dead, &replay));
            for _ in 0..polls {
                if asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                    break;
                }
                scene.pass(seawall::millis(5)).await;
            }
        }
        // What was queued before the caller went is written.
        scene.store.commit(WritePriority::Admin, UnitOfWork::default()).await.unwrap();
        let after = (marked().await.map(|(id, ..)| id), scene.count().await);
        assert_eq!(before.0 == after.0, before.1 == after.1, "{before:?} {after:?}");
    }
}

/// CRD-7: an id of another database answers like one that nobody knows. Trap "replaying across tenants".
async fn crd_7_an_id_of_another_database_is_unknown<F: Timed>() {
    let (place, elsewhere) = (F::create().await, F::create().await);
    let scene = Scene::new(&place, USUAL, everything()).await;
    let other = Scene::new(&elsewhere, USUAL, everything()).await;
    let ours = scene.play(scene.dead_letter("evt", json!({}))).await;
    let theirs = other.play(other.dead_letter("evt", json!({}))).await;
    assert_eq!(ours.number, theirs.number, "else nothing is shown");
    for mode in [ReplayMode::Same, ReplayMode::Render] {
        assert_eq!(scene.replay(theirs, &again(mode)).await, Err(ChangeError::Missing));
    }
    assert_eq!(
        scene.hub.dead_letters.move_letter(&scene.cx(), theirs, LetterAction::Delete).await,
        Err(ChangeError::Missing)
    );
    assert_eq!(scene.hub.dead_letters.letter(theirs).await.unwrap(), None);
    assert_eq!(scene.store.delivery(theirs).await.unwrap(), None);
    assert!(scene.hub.dead_letters.letter(ours).await.unwrap().is_some(), "and ours is untouched");
}

/// Fails unless a replay is refused because this delivery replays the dead letter.
async fn refuses_to_replay(scene: &Scene<impl Timed>, dead: DeliveryId, replayed: DeliveryId) {
    let refused = scene.replay(dead, &again(ReplayMode::Same)).await;
    let names = matches!(&refused, Err(ChangeError::Conflict(why)) if why.contains(&replayed.to_string()));
    assert!(names, "{refused:?}");
}

/// Replays a dead letter that was replayed before, and returns the replay when it is delivered.
async fn replay_once_more(scene: &Scene<impl Timed>, dead: DeliveryId) -> DeliveryId {
    let request = ReplayRequest { again: true, ..again(ReplayMode::Same) };
    let replay = scene.replay(dead, &request).await.unwrap();
    scene.until(replay, DeliveryState::Delivered).await;
    replay
}

/// HUB-4, CRD-7: of what could not be rendered there is nothing to send as it was; with a mended rule it can be rendered. A rule
/// that is gone renders nothing, and the bytes are there still.
async fn crd_7_what_could_not_be_rendered_is_replayed_by_a_mended_rule<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, titled()).await;
    scene
        .play(async {
            let dead = scene.one("evt", json!({"name": "x"})).await;
            assert_eq!(scene.kept(dead).await.reason, Some(DeadLetterReason::Impossible));
            assert!(matches!(
                scene.replay(dead, &again(ReplayMode::Same)).await,
                Err(ChangeError::Conflict(_))
            ));
            let unmended = scene.replay(dead, &again(ReplayMode::Render)).await;
            assert!(
                matches!(&unmended, Err(ChangeError::Wrong(why)) if why[0].0.starts_with("rule.body")),
                "{unmended:?}"
            );
            let mended = Rule { body: Some(r#"{"title":"{{ data.name }}"}"#.into()), ..everything() };
            scene.hub.registry.put_rule(&scene.cx(), mended, None).await.unwrap();
            let replay = scene.replay(dead, &again(ReplayMode::Render)).await.unwrap();
            scene.until(replay, DeliveryState::Delivered).await;

            let refused = scene.dead_letter("refused", json!({"name": "y"})).await;
            scene.delete_rule(&slug("everything")).await;
            let gone = scene.replay(refused, &again(ReplayMode::Render)).await;
            assert!(
                matches!(&gone, Err(ChangeError::Conflict(why)) if why.contains("was deleted")),
                "{gone:?}"
            );
            let replay = scene.replay(refused, &again(ReplayMode::Same)).await.unwrap();
            scene.until(replay, DeliveryState::Delivered).await;
        })
        .await;
}

/// HUB-1, CRD-7: a service with deliveries that have not ended goes only if they may become dead letters; what goes elsewhere is
/// left alone. Trap "no path deletes without a dead letter".
async fn hub_1_what_is_left_of_a_service_becomes_dead_letters<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene.hub.registry.pause_service(&scene.cx(), &billing(), true).await.unwrap();
    let mut ids = Vec::new();
    for n in 0..1_203 {
        ids.push(scene.one(&format!("evt-{n}"), json!({})).await);
    }
    let named =
        scene.hub.registry.delete_service(&scene.cx(), &billing(), None, PendingPolicy::DeadLetter).await;
    assert!(
        matches!(&named, Err(ChangeError::Conflict(why)) if why.contains("`everything` sends to it")),
        "{named:?}"
    );
    let mail = seawall_hub_core::domain::service::Service { name: slug("mail"), ..peer_service(USUAL) };
    scene.hub.registry.put_service(&scene.cx(), mail, None).await.unwrap();
    scene
        .hub
        .registry
        .put_rule(&scene.cx(), Rule { service: slug("mail"), ..everything() }, None)
        .await
        .unwrap();
    let refused =
        scene.hub.registry.delete_service(&scene.cx(), &billing(), None, PendingPolicy::Refuse).await;
    assert!(
        matches!(&refused, Err(ChangeError::Conflict(why)) if why.starts_with("1203 deliveries")),
        "{refused:?}"
    );
    assert!(scene.hub.registry.service(&billing()).is_some(), "nothing has happened");
    let elsewhere = scene.one("elsewhere", json!({})).await;
    scene
        .hub
        .registry
        .delete_service(&scene.cx(), &billing(), None, PendingPolicy::DeadLetter)
        .await
        .unwrap();
    for id in ids {
        let kept = scene.kept(id).await;
        assert_eq!((kept.state, kept.reason), (DeliveryState::DeadLettered, Some(DeadLetterReason::Deleted)));
        assert!(scene.hub.dead_letters.letter(id).await.unwrap().is_some());
    }
    scene.play(scene.until(elsewhere, DeliveryState::Delivered)).await;
    assert_eq!(scene.peer.took(), ["elsewhere"]);
}

/// HUB-5, PRM-1: who waits in an order behind one that is buried goes on; nobody waits for a dead letter that holds up nothing.
async fn prm_1_who_waits_behind_a_buried_delivery_goes_on<F: Timed>() {
    let place = F::create().await;
    let ordering = Some(OrderingRule { key: "{{ data.key }}".into(), hold: false });
    let rule = Rule { ordering, ..everything() };
    let scene = Scene::new(&place, USUAL, rule.clone()).await;
    let mail = seawall_hub_core::domain::service::Service { name: slug("mail"), ..peer_service(USUAL) };
    scene.hub.registry.put_service(&scene.cx(), mail, None).await.unwrap();
    scene.hub.registry.pause_service(&scene.cx(), &billing(), true).await.unwrap();
    let first = scene.one("first", json!({"key": 1})).await;
    scene.hub.registry.put_rule(&scene.cx(), Rule { service: slug("mail"), ..rule }, None).await.unwrap();
    let behind = [scene.one("second", json!({"key": 1})).await, scene.one("third", json!({"key": 1})).await];
    assert_eq!(scene.kept(behind[0]).await.state, DeliveryState::Blocked);
    scene
        .hub
        .registry
        .delete_service(&scene.cx(), &billing(), None, PendingPolicy::DeadLetter)
        .await
        .unwrap();
    assert_eq!(scene.kept(first).await.state, DeliveryState::DeadLettered);
    scene.play(scene.until_all(&behind, DeliveryState::Delivered)).await;
    assert_eq!(scene.peer.took(), ["second", "third"]);
}

/// PRM-1, HUB-1: a service that could not be deleted after all is at work as before, also if its deliveries were buried.
async fn hub_1_a_service_that_could_not_be_deleted_is_at_work<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene.hub.registry.pause_service(&scene.cx(), &billing(), true).await.unwrap();
    let buried = scene.one("buried", json!({})).await;
    scene.delete_rule(&slug("everything")).await;
    scene.hub.registry.pause_service(&scene.cx(), &billing(), false).await.unwrap();
    // The store has another version, and does not delete it.
    let service = scene.hub.registry.service(&billing()).unwrap();
    let newer = seawall_hub_core::domain::service::Service { version: service.version + 1, ..service };
    scene.store.commit(WritePriority::Admin, UnitOfWork::of(Change::PutService(newer))).await.unwrap();
    assert!(
        scene
            .hub
            .registry
            .delete_service(&scene.cx(), &billing(), None, PendingPolicy::DeadLetter)
            .await
            .is_err()
    );
    assert_eq!(scene.kept(buried).await.state, DeliveryState::DeadLettered);
    scene.hub.registry.put_rule(&scene.cx(), everything(), None).await.unwrap();
    let after = scene.one("after", json!({})).await;
    scene.play(scene.until(after, DeliveryState::Delivered)).await;
}

/// PRM-1: whoever was about to send to a service while it was deleted finds a dead letter, and not something that waits for ever.
async fn prm_1_what_is_for_a_service_that_is_gone_becomes_a_dead_letter<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    let ids = add(&scene.store, "late", &["gone", "billing"]).await.unwrap().deliveries;
    let new = NewDelivery { initial: InitialState::Queued, ..to("gone") };
    let queued = Change::AddEvent(event("later"), vec![new]);
    let queued =
        scene.store.commit(WritePriority::Ingest, UnitOfWork::of(queued)).await.unwrap().deliveries[0].0;
    scene
        .store
        .commit(
            WritePriority::Outcomes,
            UnitOfWork::of(Change::ReturnToStore(vec![claim(&scene.store, ids[0].0)])),
        )
        .await
        .unwrap();
    scene.play(scene.until_all(&[ids[0].0, queued], DeliveryState::DeadLettered)).await;
    assert_eq!(scene.kept(queued).await.reason, Some(DeadLetterReason::Deleted));
    assert_eq!(scene.kept(ids[1].0).await.state, DeliveryState::Leased, "who has a service is left alone");
}

/// PRM-8: a heap of deliveries that wait behind each other is buried as fast as any other: it used to be looked through again for
/// each of them, while nobody else could write. This is about statements of SQLite.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_8_a_long_order_is_buried_like_any_other() {
    let place = SqliteFactory::create().await;
    let ordering = Some(OrderingRule { key: "one".into(), hold: false });
    let scene = Scene::new(&place, USUAL, Rule { ordering, ..everything() }).await;
    scene.hub.registry.pause_service(&scene.cx(), &billing(), true).await.unwrap();
    let order = |_| NewDelivery {
        initial: InitialState::Queued,
        order: Some("one".into()),
        rule: (slug("everything"), 1),
        ..to("billing")
    };
    let all = Change::AddEvent(event("all"), (0..8_000).map(order).collect());
    let ids = scene.store.commit(WritePriority::Ingest, UnitOfWork::of(all)).await.unwrap().deliveries;
    scene.delete_rule(&slug("everything")).await;
    let (clock, service) = (Clock::system(), billing());
    let began = clock.precise();
    scene.hub.registry.delete_service(&scene.cx(), &service, None, PendingPolicy::DeadLetter).await.unwrap();
    let took = clock.precise().since(began);
    assert!(took < secs(8), "{took:?} for 8000; looked through for each of them, it was 19 s");
    assert_eq!(scene.kept(ids[7_999].0).await.state, DeliveryState::DeadLettered);
}

/// HUB-5: a peer that says it is gone stops the rule that sends to it, and not one that has long gone elsewhere.
async fn hub_5_a_replay_to_who_is_gone_does_not_stop_a_rule_that_sends_elsewhere<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    let mail = seawall_hub_core::domain::service::Service { name: slug("mail"), ..peer_service(USUAL) };
    scene.hub.registry.put_service(&scene.cx(), mail, None).await.unwrap();
    scene
        .play(async {
            let dead = scene.dead_letter("evt", json!({})).await;
            scene
                .hub
                .registry
                .put_rule(&scene.cx(), Rule { service: slug("mail"), ..everything() }, None)
                .await
                .unwrap();
            scene.peer.script("evt", [says(410)]);
            let replay = scene.replay(dead, &again(ReplayMode::Same)).await.unwrap();
            scene.until(replay, DeliveryState::DeadLettered).await;
            scene.peer.script("other", [says(410)]);
            // Those who are gone are looked at one after the other, so that this one shows that the first was.
            let other = scene.one("other", json!({})).await;
            assert_ne!(scene.kept(other).await.state, DeliveryState::Held);
            scene.until(other, DeliveryState::DeadLettered).await;
            let rule = || scene.hub.registry.rule(&slug("everything")).unwrap();
            until("the rule is disabled", async || !rule().enabled).await;
            assert_eq!(rule().version, 3, "only once");
        })
        .await;
}
