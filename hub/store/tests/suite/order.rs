//! Deliveries with the same ordering key go one after the other.

use super::StoreFactory;
use super::fixtures::*;

fn ordered(key: &str) -> NewDelivery {
    NewDelivery { order: Some(key.into()), ..to("billing") }
}

/// Settles a delivery that others wait behind, and returns those whose turn has come.
async fn end(store: &impl Store, id: DeliveryId, decision: Decision) -> Vec<DeliveryId> {
    let settled = Settlement { ordered: true, ..settlement(claim(store, id), decision) };
    let done = store.commit(WritePriority::Outcomes, unit([Change::Settle(settled)])).await.unwrap();
    done.ready.iter().map(|stored| stored.id).collect()
}

fn holding() -> Decision {
    let disposition = Disposition::DeadLetter { reason: DeadLetterReason::Refused, holds_order: true };
    Decision { disposition, ..dead(DeadLetterReason::Refused) }
}

async fn states(store: &impl Store, ids: &[DeliveryId]) -> Vec<DeliveryState> {
    let mut states = Vec::new();
    for id in ids {
        states.push(kept(store, *id).await.state);
    }
    states
}

/// HUB-5: of one key only the first is claimed; the next is handed to the same process when that one has ended. Other keys, and
/// the same key of another rule, do not wait.
pub(crate) async fn hub_5_deliveries_with_one_key_go_one_after_the_other<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let other_rule = NewDelivery { rule: (slug("letters"), 1), ..ordered("a") };
    let new = vec![ordered("a"), ordered("a"), ordered("b"), ordered("a"), other_rule];
    let made = add_all(&store, "evt", new).await;
    let ids = made.names();
    use DeliveryState::{Blocked, Leased};
    let initial: Vec<_> = made.deliveries.iter().map(|(_, state)| *state).collect();
    assert_eq!(initial, [Leased, Blocked, Leased, Blocked, Leased]);
    assert!(due(&store, NOW, 10).await.unwrap().is_empty(), "who is blocked is not due");
    assert_eq!(end(&store, ids[2], DELIVERED).await, [], "nobody waits behind it");
    let progress = Progress { accepted: NOW, counted: 1, failures: 1, panics: 0 };
    assert_eq!(end(&store, ids[0], retry(NOW, progress, false)).await, [], "it has not ended");
    let taken = due(&store, NOW, 10).await.unwrap();
    assert_eq!(taken.iter().map(|stored| stored.id).collect::<Vec<_>>(), [ids[0]]);
    assert_eq!(end(&store, ids[0], DELIVERED).await, [ids[1]], "in order");
    assert_eq!(end(&store, ids[1], dead(DeadLetterReason::Refused)).await, [ids[3]]);
    assert_eq!(kept(&store, ids[3]).await.state, Leased);
}

/// HUB-5: a dead letter that holds its order holds it until somebody deletes it, or until its replay has ended; the replay takes
/// its place before those that waited.
pub(crate) async fn hub_5_a_dead_letter_holds_its_order_until_it_is_handled<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    use DeliveryState::{Blocked, DeadLettered, Queued};
    let deleted = add_all(&store, "a", vec![ordered("a"), ordered("a")]).await.names();
    assert_eq!(end(&store, deleted[0], holding()).await, [], "it holds the order");
    assert_eq!(states(&store, &deleted).await, [DeadLettered, Blocked]);
    let delete = LetterMove { dead: deleted[0], to: LetterAction::Delete, at: NOW };
    put(&store, Change::Move(delete)).await.unwrap();
    assert_eq!(states(&store, &deleted).await, [DeadLettered, Queued]);

    let replayed = add_all(&store, "b", vec![ordered("b"), ordered("b")]).await.names();
    end(&store, replayed[0], holding()).await;
    let replay = async |dead| {
        let new = NewDelivery { initial: InitialState::Queued, ..ordered("b") };
        let replay = ReplayChange { dead, new, at: NOW, again: false, edited: false };
        let replay = put(&store, Change::Replay(replay)).await.unwrap().names()[0];
        assert_eq!(kept(&store, replayed[1]).await.state, Blocked, "it waits for the replay");
        let taken = due(&store, NOW, 10).await.unwrap();
        assert!(taken.iter().any(|stored| stored.id == replay), "which does not wait for itself");
        replay
    };
    let refused = replay(replayed[0]).await;
    assert_eq!(end(&store, refused, holding()).await, [], "it holds the order too, from behind");
    let delivered = replay(refused).await;
    assert_eq!(end(&store, delivered, DELIVERED).await, [replayed[1]]);
}

/// HUB-5: a disabled rule holds its deliveries, a bounded number is released at once, and of each key one at a time.
pub(crate) async fn hub_5_what_a_rule_held_is_released_in_order<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    put(&store, Change::PutRule(Rule { enabled: false, ..rule("invoices", 1) })).await.unwrap();
    let held = |key: Option<&str>| NewDelivery {
        initial: InitialState::Held,
        order: key.map(Into::into),
        ..to("billing")
    };
    let ids = add_all(&store, "evt", vec![held(Some("a")), held(Some("a")), held(None)]).await.names();
    use DeliveryState::{Blocked, Held, Queued};
    assert_eq!(states(&store, &ids).await, [Held, Held, Held]);
    put(&store, Change::PutRule(rule("invoices", 2))).await.unwrap();
    let release = || put(&store, Change::ReleaseHeld { rule: slug("invoices"), limit: 2 });
    assert_eq!(release().await.unwrap().touched, 2);
    assert_eq!(states(&store, &ids).await, [Blocked, Blocked, Held], "none overtakes what is still held");
    assert_eq!(release().await.unwrap().touched, 1);
    assert_eq!(states(&store, &ids).await, [Queued, Blocked, Queued]);
    assert_eq!(release().await.unwrap().touched, 0);
    let late = add_all(&store, "late", vec![held(None)]).await.deliveries[0].1;
    assert_eq!(late, Queued, "a rule that is enabled holds nothing");
}

/// HUB-5. A replay whose rule has another ordering key by now takes nobody's place: those behind its dead letter go on. They used to
/// stay blocked for ever.
pub(crate) async fn hub_5_a_replay_in_another_order_releases_the_one_of_its_dead_letter<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let ids = add_all(&store, "evt", vec![ordered("key"), ordered("key")]).await.names();
    end(&store, ids[0], holding()).await;
    assert_eq!(kept(&store, ids[1]).await.state, DeliveryState::Blocked);
    let replay = ReplayChange { dead: ids[0], new: to("billing"), at: NOW, again: false, edited: false };
    put(&store, Change::Replay(replay)).await.unwrap();
    assert_eq!(kept(&store, ids[1]).await.state, DeliveryState::Queued);
}

/// HUB-5. A replay that has failed holds its order with a number behind those that wait for it. When the rule was disabled and
/// enabled, these used to overtake it.
pub(crate) async fn hub_5_an_enabled_rule_starts_nothing_before_a_replay_that_has_failed<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let ids = add_all(&store, "evt", vec![ordered("a"), ordered("a")]).await.names();
    end(&store, ids[0], holding()).await;
    let replay = ReplayChange { dead: ids[0], new: ordered("a"), at: NOW, again: false, edited: false };
    let replay = put(&store, Change::Replay(replay)).await.unwrap().names()[0];
    assert_eq!(due(&store, NOW, 10).await.unwrap().len(), 1, "the replay");
    end(&store, replay, holding()).await;
    put(&store, Change::PutRule(Rule { enabled: false, ..rule("invoices", 1) })).await.unwrap();
    let held =
        add_all(&store, "held", vec![NewDelivery { initial: InitialState::Held, ..ordered("b") }]).await;
    put(&store, Change::PutRule(rule("invoices", 2))).await.unwrap();
    put(&store, Change::ReleaseHeld { rule: slug("invoices"), limit: 10 }).await.unwrap();
    let last = [ids[1], held.names()[0]];
    assert_eq!(states(&store, &last).await, [DeliveryState::Blocked, DeliveryState::Queued]);
}
