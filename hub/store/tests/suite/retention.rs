//! What is old goes, and nothing else.

use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::dead_letter::{LetterFilter, LetterState};
use seawall_hub_core::domain::retention::{Limits, Retention};

use super::StoreFactory;
use super::fixtures::*;

const DAY: i64 = 86_400_000;
/// As if so much time had passed since all happened.
pub(crate) fn after(days: i64) -> Limits {
    Retention::default().limits(Millis(NOW.0 + days * DAY))
}

/// How many events, deliveries and dead letters there are.
async fn rows(store: &impl Store) -> [usize; 3] {
    const ALL: PageRequest = PageRequest { from: None, size: 100 };
    let letters = LetterFilter { states: LetterState::ALL.to_vec(), ..LetterFilter::default() };
    [
        store.events(EventFilter::default(), ALL).await.unwrap().items.len(),
        store.deliveries(DeliveryFilter::default(), ALL).await.unwrap().items.len(),
        store.dead_letters(letters, ALL).await.unwrap().page.items.len(),
    ]
}

pub(crate) async fn prune(store: &impl Store, prune: PruneTarget) -> Result<CommitResult, StoreError> {
    store.commit(WritePriority::Retention, UnitOfWork::of(Change::Prune(prune))).await
}

/// Takes out all that may go; how many events it was.
pub(crate) async fn prune_events(store: &impl Store, limits: Limits) -> usize {
    let (mut gone, mut behind) = (0, Some(0));
    while let Some(from) = behind {
        let old = store.old_events(limits, from).await.unwrap();
        let numbers = old.found.iter().map(|(number, _)| *number).collect();
        gone += prune(store, PruneTarget::Events { numbers, limits }).await.unwrap().touched;
        behind = old.next;
    }
    gone
}

/// Adds events of which everything has ended, and others of which something is pending. Returns the deliveries of one that is half
/// delivered.
pub(crate) async fn ended_and_pending(store: &impl Store) -> Vec<DeliveryId> {
    let given_up = dead(DeadLetterReason::Attempts);
    let both = add(store, "both delivered", &["billing", "mail"]).await.unwrap().names();
    for id in both {
        settle(store, id, DELIVERED).await.unwrap();
    }
    let half = add(store, "one under way", &["billing", "mail"]).await.unwrap().names();
    settle(store, half[0], DELIVERED).await.unwrap();
    let open = add(store, "a dead letter", &["billing"]).await.unwrap().names();
    settle(store, open[0], given_up).await.unwrap();
    let discarded = add(store, "a discarded one", &["billing"]).await.unwrap().names();
    settle(store, discarded[0], given_up).await.unwrap();
    store
        .commit(
            WritePriority::Admin,
            unit([Change::Move(LetterMove { dead: discarded[0], to: LetterAction::Delete, at: NOW })]),
        )
        .await
        .unwrap();
    add(store, "for no rule", &[]).await.unwrap();
    let newest = add(store, "the newest", &["billing"]).await.unwrap().names();
    settle(store, newest[0], DELIVERED).await.unwrap();
    half
}

/// HUB-9: an event goes with all that belongs to it when every delivery of it has ended and is old: what was delivered after a
/// week, what was discarded after a month. What waits, and dead letters that nobody has discarded, stay.
pub(crate) async fn hub_9_an_event_goes_when_all_that_came_of_it_is_old<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let half = ended_and_pending(&store).await;
    assert_eq!(rows(&store).await, [6, 7, 2]);

    assert_eq!(prune_events(&store, after(6)).await, 0, "nothing is old");
    assert_eq!(prune_events(&store, after(8)).await, 2, "what was delivered, and what was for nobody");
    assert_eq!(rows(&store).await, [4, 5, 2]);
    assert!(store.event("both delivered", None).await.unwrap().is_none());
    assert_eq!(prune_events(&store, after(31)).await, 1, "what was discarded");
    assert_eq!(rows(&store).await, [3, 4, 1]);
    assert_eq!(prune_events(&store, after(3_650)).await, 0);
    for id in ["one under way", "a dead letter", "the newest"] {
        assert!(store.event(id, None).await.unwrap().is_some(), "{id}");
    }
    // What ends late is old late.
    settle(&store, half[1], DELIVERED).await.unwrap();
    assert_eq!(prune_events(&store, after(8)).await, 1);
}

/// HUB-9, PRM-2: the newest delivery stays, however old it is, so that no name is given out twice; also not after a restart.
pub(crate) async fn prm_2_names_are_not_given_out_again_when_all_is_pruned<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let mut last = None;
    for id in ["a", "b", "c"] {
        let name = add(&store, id, &["billing"]).await.unwrap().names()[0];
        settle(&store, name, DELIVERED).await.unwrap();
        last = Some(name);
    }
    assert_eq!(prune_events(&store, after(8)).await, 2);
    place.kill(store).await;
    let store = place.open().await.unwrap();
    assert_eq!(prune_events(&store, after(8)).await, 0);
    let next = add(&store, "d", &["billing"]).await.unwrap().names()[0];
    assert!(Some(next) > last);
    // Now another one is the newest.
    assert_eq!(prune_events(&store, after(8)).await, 1);
}

/// HUB-9. Trap "the clock jumps": an event that came while the clock was years ahead keeps nothing that came after it.
pub(crate) async fn hub_9_an_event_from_the_future_keeps_no_other<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let early = Event { accepted: Millis(NOW.0 + 3_650 * DAY), ..Event::clone(&event("from the future")) };
    store.commit(WritePriority::Ingest, unit([Change::AddEvent(Arc::new(early), Vec::new())])).await.unwrap();
    add(&store, "later, and dated right", &[]).await.unwrap();
    assert_eq!(prune_events(&store, after(6)).await, 0);
    assert_eq!(prune_events(&store, after(8)).await, 1);
    assert!(store.event("from the future", None).await.unwrap().is_some());
}

/// HUB-9: what was found to be old and is not any more when it is its turn stays.
pub(crate) async fn hub_9_what_comes_between_keeps_an_event<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let old = add(&store, "old", &["billing"]).await.unwrap().names();
    let given_up = dead(DeadLetterReason::Attempts);
    settle(&store, old[0], given_up).await.unwrap();
    add(&store, "newer", &["billing"]).await.unwrap();
    let numbers = (1..99).collect();
    let pruned = prune(&store, PruneTarget::Events { numbers, limits: after(3_650) }).await.unwrap();
    assert_eq!((pruned.touched, rows(&store).await[0]), (0, 2));
}

/// HUB-9: the audit log goes from its old end, keys of idempotency when their time is over, a bounded number at once.
pub(crate) async fn hub_9_audit_and_keys_go_by_their_age<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    for day in 0..10 {
        let at = Millis(NOW.0 + day * DAY);
        let text = || String::from("x");
        let entry = AuditEntry { at, who: text(), action: text(), target: text(), reason: None, trace: None };
        let once = IdempotencyRecord {
            scope: "events",
            key: day.to_string(),
            fingerprint: [0; 32],
            note: text(),
            at,
        };
        store.commit(WritePriority::Admin, unit([Change::Audit(entry)])).await.unwrap();
        let event = Change::AddEvent(event(&day.to_string()), Vec::new());
        // One that comes with a key lets go of a few old ones.
        if day < 2 {
            store.commit(WritePriority::Ingest, unit([Change::ClaimKey(once), event])).await.unwrap();
        }
    }
    let before = Millis(NOW.0 + 5 * DAY);
    let audit = |limit| prune(&store, PruneTarget::Audit { before, limit });
    assert_eq!(audit(3).await.unwrap().touched, 3);
    assert_eq!(audit(3).await.unwrap().touched, 2);
    assert_eq!(audit(3).await.unwrap().touched, 0);
    let late = Millis(NOW.0 + 5_000 * DAY);
    prune(&store, PruneTarget::Audit { before: late, limit: 100 }).await.unwrap();
    let left = store.audit(PageRequest { from: None, size: 100 }).await.unwrap().items;
    assert_eq!(
        left.iter().map(|entry| entry.at.0).collect::<Vec<_>>(),
        [NOW.0 + 9 * DAY],
        "the newest stays"
    );
    let keys = prune(&store, PruneTarget::Keys { now: late, limit: 100 }).await.unwrap();
    assert_eq!(keys.touched, 1, "the other went when this one came");
}
