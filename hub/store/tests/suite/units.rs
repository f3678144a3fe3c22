//! Units: as a whole or not at all, and once.

use std::collections::{BTreeMap, BTreeSet};

use super::StoreFactory;
use super::fixtures::*;

/// HUB-14: a unit is true as a whole or not at all, whatever becomes of those that share its commit.
pub(crate) async fn hub_14_a_unit_is_committed_as_a_whole_or_not_at_all<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let half = unit([Change::PutService(service("billing", 1)), Change::PutService(service("other", 5))]);
    let (half, whole) = tokio::join!(
        store.commit(WritePriority::Admin, half),
        store.commit(WritePriority::Admin, unit([Change::PutService(service("third", 1))])),
    );
    assert_eq!(
        (half, whole),
        (
            Err(StoreError::Stale { found: None }),
            Ok(CommitResult { epoch: store.epoch(), ..CommitResult::default() })
        )
    );
    assert_eq!(store.registered().await.unwrap().services, [service("third", 1)]);
}

/// HUB-3: event, deliveries and idempotency record are one commit; the same id is stored once, however many send it at once,
/// and whoever comes second learns what it led to.
pub(crate) async fn hub_3_the_same_event_is_stored_once<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let mut senders = tokio::task::JoinSet::new();
    for n in 0..200 {
        let store = store.clone();
        senders
            .spawn(async move { (n, add(&store, &format!("evt-{}", n % 10), &["billing", "mail"]).await) });
    }
    let (mut first, mut again) = (BTreeSet::new(), 0);
    let mut led_to = BTreeMap::new();
    for (n, answer) in senders.join_all().await {
        match answer {
            Ok(committed) => {
                assert!(first.insert(n % 10), "stored twice");
                led_to.insert(n % 10, committed.deliveries);
            }
            Err(StoreError::EventExists { fingerprint, deliveries }) => {
                assert_eq!((fingerprint, deliveries.len()), ([7; 32], 2));
                again += 1;
            }
            Err(other) => unreachable!("{other}"),
        }
    }
    assert_eq!((first.len(), again), (10, 190));
    let names: BTreeSet<DeliveryId> = led_to.values().flatten().map(|(id, _)| *id).collect();
    assert_eq!(names.len(), 20, "names are given out once");
    assert_eq!(store.event("evt-3", None).await.unwrap().unwrap(), *event("evt-3"));
    assert_eq!(store.event("nope", None).await.unwrap(), None);
}

/// HUB-3: a unit under a key is applied once. Whoever repeats it learns what it led to, and nothing of the repetition is stored.
pub(crate) async fn hub_3_a_key_is_claimed_once<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let record = |fingerprint: u8, at| IdempotencyRecord {
        scope: "events",
        key: "k".into(),
        fingerprint: [fingerprint; 32],
        note: "the note".into(),
        at,
    };
    let under_key = |record, id: &str| {
        let changes = [Change::ClaimKey(record), Change::AddEvent(event(id), vec![to("billing")])];
        store.commit(WritePriority::Ingest, unit(changes))
    };
    let first = under_key(record(1, NOW), "a").await.unwrap().names();
    for again in [1, 2] {
        let refused = under_key(record(again, NOW), "b").await;
        let note = "the note".into();
        let before = StoreError::AlreadyApplied { fingerprint: [1; 32], note, deliveries: first.clone() };
        assert_eq!(refused, Err(before), "the caller compares the fingerprints");
    }
    assert_eq!(store.event("b", None).await.unwrap(), None);
    let known = store.claimed("events", "k").await.unwrap();
    assert_eq!(known, Some(record(1, NOW)));
    assert_eq!(store.claimed("events", "other").await.unwrap(), None);
    under_key(record(2, NOW + Duration::from_secs(86_400 * 3)), "c").await.unwrap();
    assert_eq!(
        store.claimed("events", "k").await.unwrap().unwrap().fingerprint,
        [2; 32],
        "its time was over"
    );
}
