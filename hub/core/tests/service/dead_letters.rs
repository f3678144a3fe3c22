//! The dead letter desk: where dead letters stand, their groups, finding them.

use seawall_hub_core::domain::dead_letter::{
    GroupFilter, GroupState, LetterCounts, LetterFilter, LetterGroup, LetterState,
};
use seawall_hub_core::domain::delivery::{DeliveryId, DeliveryState};
use seawall_hub_core::port::store::{
    Change, DeadLetterReads, EventReads, LetterAction, PageRequest, Store, WritePriority,
};
use seawall_hub_core::service::{ChangeError, LetterEdit, ReplayMode, ReplayRequest};
use serde_json::json;

use crate::fixtures::unit;
use crate::peer::says;
use crate::scene::{Scene, USUAL, everything};
use crate::time::{Timed, on_all_stores};

on_all_stores!(
    hub_6_a_group_counts_is_resolved_and_opens_again,
    hub_6_a_dead_letter_is_parked_deleted_restored_and_purged,
    hub_6_an_edited_copy_is_sent_and_linked,
);

const ALL: PageRequest = PageRequest { from: None, size: 1_000 };

async fn groups(store: &impl Store) -> Vec<LetterGroup> {
    store.groups(GroupFilter::default(), ALL).await.unwrap().items
}

async fn find(store: &impl Store, filter: LetterFilter) -> Vec<DeliveryId> {
    let letters = store.dead_letters(filter, ALL).await.unwrap();
    letters.page.items.iter().map(|dead| dead.delivery.id).collect()
}

async fn state(store: &impl Store, id: DeliveryId) -> LetterState {
    store.dead_letter(id).await.unwrap().unwrap().dead.state
}

/// All words are in the index.
async fn index(store: &impl Store) {
    while store.commit(WritePriority::Retention, unit([Change::Index { limit: 7 }])).await.unwrap().touched
        > 0
    {}
}

fn counts(pairs: &[(LetterState, u64)]) -> LetterCounts {
    let mut counts = LetterCounts::default();
    for (state, count) in pairs {
        counts.0[*state as usize] = *count;
    }
    counts
}

/// HUB-6: what has failed alike is one group that counts; it follows its dead letters to the end, is then done with, and is open
/// again with the next failure.
async fn hub_6_a_group_counts_is_resolved_and_opens_again<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let one = scene.dead_letter("one", json!({})).await;
            let two = scene.dead_letter("two", json!({})).await;
            let [group] = &groups(&scene.store).await[..] else { unreachable!("one group") };
            assert_eq!((group.counts, group.state), (counts(&[(LetterState::Open, 2)]), GroupState::Open));
            assert_eq!((group.sample, group.failure.status), (Some(two), Some(422)));
            let name = group.fingerprint;
            scene
                .hub
                .dead_letters
                .settle_group(&scene.cx(), name, GroupState::Acknowledged, Some("on it".into()))
                .await
                .unwrap();

            let same = ReplayRequest { mode: ReplayMode::Same, again: false, key: None };
            let made = scene.replay(one, &same).await.unwrap();
            scene.until(made, DeliveryState::Delivered).await;
            scene.peer.script("two", [says(422)]);
            let failed = scene.replay(two, &same).await.unwrap();
            scene.until(failed, DeliveryState::DeadLettered).await;
            assert_eq!(state(&scene.store, one).await, LetterState::Delivered);
            assert_eq!(state(&scene.store, two).await, LetterState::FailedAgain);
            assert_eq!(state(&scene.store, failed).await, LetterState::Open, "exactly one is open");
            let group = scene.store.group(name).await.unwrap().unwrap();
            let expected =
                [(LetterState::Open, 1), (LetterState::Delivered, 1), (LetterState::FailedAgain, 1)];
            assert_eq!((group.counts, group.state), (counts(&expected), GroupState::Acknowledged));
            assert_eq!(group.note.as_deref(), Some("on it"));

            let made = scene.replay(failed, &same).await.unwrap();
            scene.until(made, DeliveryState::Delivered).await;
            let group = scene.store.group(name).await.unwrap().unwrap();
            assert_eq!(group.state, GroupState::Resolved, "nothing is left to deal with");
            scene.dead_letter("three", json!({})).await;
            let group = scene.store.group(name).await.unwrap().unwrap();
            assert_eq!((group.state, group.reopened), (GroupState::Open, 1));
        })
        .await;
}

/// HUB-6: park, delete, restore and purge, each from where it can be done; what can't be done says where it stands.
async fn hub_6_a_dead_letter_is_parked_deleted_restored_and_purged<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    let dead = scene.play(scene.dead_letter("evt", json!({"word": "needle"}))).await;
    let (hub, store) = (&scene.hub, &scene.store);
    index(store).await;
    let refused = async |to| {
        hub.dead_letters.move_letter(&hub.runtime.own_context(), dead, to).await.unwrap_err().to_string()
    };
    for to in [LetterAction::Unpark, LetterAction::Restore] {
        assert!(refused(to).await.contains("in the state open"), "{to:?}");
    }
    hub.dead_letters.move_letter(&hub.runtime.own_context(), dead, LetterAction::Park).await.unwrap();
    assert_eq!(state(store, dead).await, LetterState::Parked);
    hub.dead_letters.move_letter(&hub.runtime.own_context(), dead, LetterAction::Delete).await.unwrap();
    assert_eq!(find(store, LetterFilter::default()).await, [], "out of sight");
    let deleted = LetterFilter { states: vec![LetterState::Deleted], ..LetterFilter::default() };
    assert_eq!(find(store, deleted).await, [dead]);
    assert!(refused(LetterAction::Park).await.contains("in the state deleted"));
    hub.dead_letters.move_letter(&hub.runtime.own_context(), dead, LetterAction::Restore).await.unwrap();
    let whole = store.dead_letter(dead).await.unwrap().unwrap();
    assert_eq!((whole.dead.state, whole.dead.deleted), (LetterState::Open, None));
    hub.dead_letters.note_letter(&hub.runtime.own_context(), dead, Some("ask Ann".into())).await.unwrap();
    assert_eq!(store.dead_letter(dead).await.unwrap().unwrap().dead.note.as_deref(), Some("ask Ann"));

    hub.dead_letters.move_letter(&hub.runtime.own_context(), dead, LetterAction::Purge).await.unwrap();
    assert_eq!(
        hub.dead_letters.move_letter(&hub.runtime.own_context(), dead, LetterAction::Delete).await,
        Err(ChangeError::Missing)
    );
    assert_eq!(store.dead_letter(dead).await.unwrap(), None);
    assert_eq!(groups(store).await, [], "a group of nothing is none");
    let text = LetterFilter { text: Some("needle".into()), ..LetterFilter::default() };
    assert_eq!(find(store, text).await, []);
    let (kept, attempts) = store.delivery(dead).await.unwrap().unwrap();
    assert_eq!(
        (kept.state, attempts.len()),
        (DeliveryState::DeadLettered, 0),
        "its evidence is gone, its delivery is not"
    );
}

/// HUB-6: an edited copy is linked, sent once, and differs where somebody has changed it; the event stays as it was.
async fn hub_6_an_edited_copy_is_sent_and_linked<F: Timed>() {
    let place = F::create().await;
    let rule = seawall_hub_core::domain::rule::Rule {
        body: Some(r#"{"title":"{{ data.title }}"}"#.into()),
        ..everything()
    };
    let scene = Scene::new(&place, USUAL, rule).await;
    scene
        .play(async {
            let dead = scene.dead_letter("evt", json!({"title": "old"})).await;
            let edit = LetterEdit::Data(json!({"title": "new"}));
            let shown = scene.edit(dead, &edit, true, false, None).await.unwrap();
            assert_eq!((shown.delivery, shown.differences.len()), (None, 1));
            let place = &shown.differences[0];
            assert_eq!((&*place.place, place.now.as_deref()), ("body.title", Some("\"new\"")));
            assert_eq!(scene.count().await, 1, "nothing was sent");
            let nothing = LetterEdit::Data(json!({"title": "old"}));
            assert!(matches!(
                scene.edit(dead, &nothing, false, false, None).await,
                Err(ChangeError::Conflict(_))
            ));

            let edit_once = || scene.edit(dead, &edit, false, false, Some("click"));
            let (a, b) = tokio::join!(edit_once(), edit_once());
            let made = a.unwrap().delivery.unwrap();
            assert_eq!(b.unwrap().delivery, Some(made), "a double click");
            scene.until(made, DeliveryState::Delivered).await;
            let got = scene.peer.got().pop().unwrap();
            assert_eq!(got.request.body.bytes().unwrap(), &br#"{"title":"new"}"#[..]);
            let letter = scene.store.dead_letter(dead).await.unwrap().unwrap();
            assert_eq!((letter.dead.edited, letter.dead.state), (true, LetterState::Delivered));
            assert!(String::from_utf8_lossy(&letter.event.payload).contains("old"));

            let dead = scene.dead_letter("evt-2", json!({"title": "x"})).await;
            let (method, headers, body) = (None, None, None);
            let bad = LetterEdit::Request { method, path: Some("no slash".into()), headers, body };
            let wrong = scene.edit(dead, &bad, false, false, None).await;
            assert!(
                matches!(&wrong, Err(ChangeError::Wrong(fields)) if fields[0].0 == "request.path"),
                "{wrong:?}"
            );
            let body = Some(b"plain".to_vec());
            let good = LetterEdit::Request {
                method: Some("put".into()),
                path: Some("/other".into()),
                headers: None,
                body,
            };
            let made = scene.edit(dead, &good, false, false, None).await.unwrap().delivery.unwrap();
            scene.until(made, DeliveryState::Delivered).await;
            let got = scene.peer.got().pop().unwrap().request;
            assert_eq!((&*got.operation, &*got.target), ("PUT", "/other"));
            assert_eq!(got.body.bytes().unwrap(), &b"plain"[..]);
        })
        .await;
}
