//! New events in batches.

use std::sync::Arc;
use std::time::Duration;

use seawall_dist::idempotency::{Claim as KeyClaim, ClaimDecision, Entry, KEPT, claim};
use seawall_hub_core::domain::delivery::{DeliveryState, InitialState, RuleStatus, initial_state};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::event_type::EventType;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{CommitResult, IdempotencyRecord, NewDelivery};

use super::*;
use crate::postgres::write::set_based::{ADD_EVENTS, CLAIM_KEYS};

pub(in crate::postgres) fn event(id: &str, source: &str) -> Arc<Event> {
    Arc::new(Event {
        id: id.into(),
        kind: EventType::new("order.created").unwrap(),
        source: source.into(),
        payload: vec![1, 0, 2].into(),
        fingerprint: [7; 32],
        accepted: NOW,
        trace: Some("a\0trace".into()),
        considered: 2,
        filtered: 1,
    })
}

fn delivery(service: &str, initial: InitialState) -> NewDelivery {
    let (rule, service) = ((Slug::new("rule").unwrap(), 3), Slug::new(service).unwrap());
    NewDelivery { rule, service, request: vec![0], initial, order: None }
}

async fn apply_all(
    table: &Table,
    units: &[UnitOfWork],
    is: UnitShape,
) -> Vec<Result<CommitResult, StoreError>> {
    assert!(units.iter().all(|unit| shape(unit) == is));
    let units: Vec<&UnitOfWork> = units.iter().collect();
    apply_batch(&table.node.session, table.node.id, is, &units).await.unwrap()
}

/// HUB-14: a new delivery is born as the function says, claimed or queued; a node that is no longer live claims nothing.
#[tokio::test]
async fn hub_14_new_deliveries_are_born_as_the_function_says() {
    let mut table = Table::new(OURS).await;
    for is_live in [true, false] {
        let state = if is_live { 0 } else { 2 };
        table.node.text(&format!("UPDATE nodes SET state = {state} WHERE epoch = {OURS}")).await;
        let initial = [InitialState::Leased, InitialState::Queued];
        let deliveries = initial.clone().map(|initial| delivery("service", initial)).to_vec();
        let units = [unit(Change::AddEvent(event(&format!("{is_live}"), "shop"), deliveries))];
        let made = apply_all(&table, &units, UnitShape::Event).await.remove(0).unwrap();
        let born = table.all().await;
        for ((facts, initial), (_, told)) in born.iter().zip(&initial).zip(&made.deliveries) {
            let wanted = if is_live { initial } else { &InitialState::Queued };
            let (state, reason) = initial_state(wanted, RuleStatus::Enabled, false, false);
            let progress = Progress { accepted: NOW, counted: 0, failures: 0, panics: 0 };
            let new = DeliveryFacts { epoch: OURS, due: NOW, touched: NOW, progress, reason, ..row(state) };
            assert_eq!((facts, *told), (&new, state.shown()));
        }
        assert_eq!(born.len(), 2);
        table.clear().await;
    }
    table.assert_proved(&[ADD_EVENTS]);
}

/// HUB-3, HUB-14: within a batch and after it, an event is stored once, and whoever comes later hears what is stored. Numbers are
/// in the order of the batch and of each unit.
#[tokio::test]
async fn hub_3_the_same_event_is_stored_once_within_a_batch() {
    let table = Table::new(OURS).await;
    let leased = |services: &[&str]| {
        services.iter().map(|service| delivery(service, InitialState::Leased)).collect::<Vec<_>>()
    };
    let of = |id: &str, source: &str, services: &[&str]| {
        unit(Change::AddEvent(event(id, source), leased(services)))
    };
    let units = [
        of("z", "shop", &["one", "two"]),
        of("a\0b", "shop", &["one"]),
        of("z", "shop", &["three"]),
        of("z", "other", &[]),
        of("a\0b", "shop", &["one"]),
    ];
    let made = apply_all(&table, &units, UnitShape::Event).await;
    let ids = |result: &Result<CommitResult, StoreError>| -> Vec<DeliveryId> {
        let made = result.as_ref().unwrap();
        assert!(made.deliveries.iter().all(|(_, state)| *state == DeliveryState::Leased));
        made.deliveries.iter().map(|(id, _)| *id).collect()
    };
    let exists = |deliveries: &[DeliveryId]| {
        Err(StoreError::EventExists { fingerprint: [7; 32], deliveries: deliveries.to_vec() })
    };
    let (first, second) = (ids(&made[0]), ids(&made[1]));
    assert_eq!((first.len(), second.len(), ids(&made[3]).len()), (2, 1, 0));
    assert!(first[0].number < first[1].number && first[1].number < second[0].number);
    assert_eq!((&made[2], &made[4]), (&exists(&first), &exists(&second)));
    let order: Vec<String> = {
        let rows = table.node.session.rows("SELECT id FROM events WHERE number > 1 ORDER BY number", &[]);
        rows.await.unwrap().iter().map(|row| row.get(0)).collect()
    };
    assert_eq!(order.first().map(String::as_str), Some("z"), "in the order of the batch: {order:?}");
    let again = apply_all(&table, &units[..2], UnitShape::Event).await;
    assert_eq!(again, [exists(&first), exists(&second)]);
}

/// HUB-3, HUB-14: a key is claimed as the function says, before, at and after the end of the one before it; and is given back if its
/// event was there.
#[tokio::test]
async fn hub_3_keys_are_claimed_as_the_function_says() {
    let table = Table::new(OURS).await;
    let keyed = |key: &str, id: &str, at: Millis| UnitOfWork {
        changes: vec![
            Change::ClaimKey(IdempotencyRecord {
                scope: "event",
                key: key.into(),
                fingerprint: [1; 32],
                note: "no\0te".into(),
                at,
            }),
            Change::AddEvent(event(id, "shop"), vec![delivery("service", InitialState::Leased)]),
        ],
    };
    let units =
        [keyed("k", "1", NOW), keyed("k", "2", NOW), keyed("other", "1", NOW), keyed("other", "3", NOW)];
    let made = apply_all(&table, &units, UnitShape::KeyedEvent).await;
    let first: Vec<DeliveryId> = made[0].as_ref().unwrap().deliveries.iter().map(|(id, _)| *id).collect();
    let applied = |deliveries: &[DeliveryId]| {
        let (fingerprint, note) = ([1; 32], "no\0te".to_owned());
        Err(StoreError::AlreadyApplied { fingerprint, note, deliveries: deliveries.to_vec() })
    };
    assert_eq!(made[1], applied(&first));
    assert!(matches!(made[2], Err(StoreError::EventExists { .. })));
    assert!(made[3].is_ok(), "the key was given back by the unit before: {:?}", made[3]);
    for (place, millis) in [-1, 0, 1].into_iter().enumerate() {
        let at = NOW + KEPT + Duration::ZERO;
        let at = Millis(at.0 + millis);
        table.node.text("BEGIN").await;
        let made =
            apply_all(&table, &[keyed("k", &format!("later {place}"), at)], UnitShape::KeyedEvent).await;
        table.node.text("ROLLBACK").await;
        let entry = Entry::Done { fingerprint: [1; 32], until: (NOW + KEPT).0 };
        let wanted = KeyClaim { fingerprint: [1; 32], token: 0, lease: 0 };
        let says = matches!(claim(entry, &wanted, at.0), ClaimDecision::Run(_));
        assert_eq!(made[0].is_ok(), says, "{millis} ms around its end: {:?}", made[0]);
    }
    table.assert_proved(&[CLAIM_KEYS]);
}
