//! Events that are accepted, with all that they lead to.

use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryState};
use seawall_hub_core::domain::event_type::{EventType, Pattern};
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::port::store::{Change, EventReads, UnitOfWork, UnitStore, WritePriority};
use seawall_hub_core::render::RenderedRequest;
use seawall_hub_core::service::{
    AcceptError, EventAcceptor, EventData, IncomingEvent, MatchCounts, PendingDelivery, RuleSet,
};
use serde_json::{Value, json};

use crate::fixtures::{NOW, rule, slug};
use crate::time::{Timed, on_all_stores};

on_all_stores!(
    hub_3_an_event_is_kept_with_all_that_it_leads_to,
    hub_5_what_is_filtered_is_counted,
    hub_5_what_can_not_be_rendered_is_a_dead_letter_at_once,
    hub_3_the_same_event_again_is_the_same_event,
    hub_3_the_same_key_is_the_same_event,
    hub_5_a_disabled_rule_holds_and_a_full_hand_queues,
);

#[expect(clippy::needless_pass_by_value, reason = "so that a test can write it in place")]
fn order(id: &str, data: Value) -> IncomingEvent {
    IncomingEvent {
        id: id.into(),
        kind: EventType::new("order.created").unwrap(),
        source: "shop".into(),
        time: Some("2026-11-15T12:00:00Z".into()),
        subject: None,
        extensions: Vec::new(),
        data: EventData::from(&data),
        trace: None,
        key: None,
    }
}

fn rules() -> RuleSet {
    let everything = Rule {
        events: Pattern::new("*").unwrap(),
        filter: None,
        body: None,
        path: "/hook".into(),
        service: slug("mail"),
        ..rule("to-mail", 1)
    };
    let other = Rule { events: Pattern::new("invoice.*").unwrap(), ..rule("other", 1) };
    let (book, bad) = RuleSet::new(&[rule("invoices", 3), everything, other]);
    assert_eq!(bad, []);
    book
}

/// HUB-3, HUB-4: an event is matched, rendered and kept with its deliveries; what is to be sent now is handed on.
async fn hub_3_an_event_is_kept_with_all_that_it_leads_to<F: Timed>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let accept = EventAcceptor::new(store.clone(), rules());
    let accepted =
        accept.accept(order("evt-1", json!({"id": "A-7", "total": 120.5})), NOW, |_| true).await.unwrap();
    assert_eq!((accepted.deliveries.len(), accepted.deduplicated), (2, false));
    assert_eq!(accepted.counts, MatchCounts { considered: 2, filtered: 0, unclear: 0 });
    let PendingDelivery { id, service, request, .. } = &accepted.started[0];
    assert_eq!((service, request.target.as_str()), (&slug("billing"), "/invoices/A-7"));
    assert_eq!(request.body.bytes().map(|body| &body[..]), Some(&br#"{"order":"A-7"}"#[..]));
    let (kept, _) = store.delivery(*id).await.unwrap().unwrap();
    assert_eq!(RenderedRequest::from_bytes(&kept.request, &kept.payload).as_ref(), Some(request));
    assert_eq!(
        (kept.rule, kept.event.as_str(), kept.state),
        ((slug("invoices"), 3), "evt-1", DeliveryState::Leased)
    );
    let event = store.event("evt-1", None).await.unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&event.payload).unwrap()["data"]["total"], json!(120.5));
}

/// HUB-5: nothing is dropped silently: filtered and unclear are counted.
async fn hub_5_what_is_filtered_is_counted<F: Timed>() {
    let place = F::create().await;
    let accept = EventAcceptor::new(place.open().await.unwrap(), rules());
    let small = accept.accept(order("evt-1", json!({"id": "A-7", "total": 5})), NOW, |_| true).await.unwrap();
    assert_eq!(
        (small.deliveries.len(), small.counts),
        (1, MatchCounts { considered: 2, filtered: 1, unclear: 0 })
    );
    let unclear = accept.accept(order("evt-2", json!({"id": "A-8"})), NOW, |_| true).await.unwrap();
    assert_eq!(unclear.counts, MatchCounts { considered: 2, filtered: 1, unclear: 1 });
}

/// HUB-4, HUB-5: an event of which no request can be made is a dead letter with its reason, beside those that can be sent.
async fn hub_5_what_can_not_be_rendered_is_a_dead_letter_at_once<F: Timed>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let accept = EventAcceptor::new(store.clone(), rules());
    let accepted = accept.accept(order("evt-1", json!({"total": 500})), NOW, |_| true).await.unwrap();
    assert_eq!((accepted.deliveries.len(), accepted.started.len()), (2, 1));
    let (dead, attempts) = store.delivery(accepted.deliveries[0]).await.unwrap().unwrap();
    assert_eq!((dead.state, dead.reason), (DeliveryState::DeadLettered, Some(DeadLetterReason::Impossible)));
    let error = attempts[0].error.as_deref().unwrap();
    assert!(error.starts_with("path: the event has no `data.id`"), "{error}");
}

/// HUB-3: the same again is answered as the first time; the same id with another content is a mistake; a wrong id says why.
async fn hub_3_the_same_event_again_is_the_same_event<F: Timed>() {
    let place = F::create().await;
    let accept = EventAcceptor::new(place.open().await.unwrap(), rules());
    let data = json!({"id": "A-7", "total": 120.5});
    let first = accept.accept(order("evt-1", data.clone()), NOW, |_| true).await.unwrap();
    let again =
        accept.accept(IncomingEvent { time: None, ..order("evt-1", data) }, NOW, |_| true).await.unwrap();
    assert_eq!((again.deduplicated, again.deliveries, again.started.len()), (true, first.deliveries, 0));
    let other = accept.accept(order("evt-1", json!({"id": "A-8", "total": 1})), NOW, |_| true).await;
    assert_eq!(other.unwrap_err(), AcceptError::OtherContent);
    for (bad, why) in [("", "empty"), (&*"x".repeat(201), "200"), ("a b", "visible"), ("ä", "visible")] {
        let error = accept.accept(order(bad, json!({})), NOW, |_| true).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// HUB-3, CRD-2: the same key is the same event, whatever its id; with another content it is a mistake; events of one batch
/// are each for themselves.
async fn hub_3_the_same_key_is_the_same_event<F: Timed>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let accept = EventAcceptor::new(store.clone(), rules());
    let keyed = |id: &str, total: u32| IncomingEvent {
        key: Some("k-1".into()),
        ..order(id, json!({"id": "A-7", "total": total}))
    };
    let first = accept.accept(keyed("evt-1", 200), NOW, |_| true).await.unwrap();
    let again = accept.accept(keyed("evt-2", 200), NOW, |_| true).await.unwrap();
    assert_eq!((&*again.id, again.deduplicated, &again.deliveries), ("evt-1", true, &first.deliveries));
    assert_eq!(store.event("evt-2", None).await.unwrap(), None, "nothing of it was kept");
    let other = accept.accept(keyed("evt-3", 300), NOW, |_| true).await;
    assert_eq!(other.unwrap_err(), AcceptError::OtherContent);
    let next_day = NOW + std::time::Duration::from_secs(25 * 3_600);
    let later = accept.accept(keyed("evt-4", 300), next_day, |_| true).await.unwrap();
    assert!(!later.deduplicated, "a key is forgotten after a day");

    let fine = |id: &str| order(id, json!({"id": id, "total": 200}));
    let batch = vec![
        fine("b-1"),
        order("bad id", json!({})),
        fine("b-2"),
        fine("b-1"),
        order("b-2", json!({"id": 1})),
    ];
    let answers = accept.accept_all(batch, NOW, |_| true).await;
    let short: Vec<Result<bool, AcceptError>> =
        answers.into_iter().map(|answer| answer.map(|accepted| accepted.deduplicated)).collect();
    assert!(matches!(
        &short[..],
        [Ok(false), Err(AcceptError::BadId(_)), Ok(false), Ok(true), Err(AcceptError::OtherContent)]
    ));
}

/// HUB-5: what finds no room in hand begins in the store; a rule that is disabled holds what it matches. Trap "a disabled rule
/// drops events silently".
async fn hub_5_a_disabled_rule_holds_and_a_full_hand_queues<F: Timed>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let off = Rule { enabled: false, ..rule("off", 1) };
    store.commit(WritePriority::Admin, UnitOfWork::of(Change::PutRule(off.clone()))).await.unwrap();
    let (book, _) = RuleSet::new(&[rule("invoices", 1), off]);
    let accept = EventAcceptor::new(store.clone(), book);
    let accepted =
        accept.accept(order("evt-1", json!({"id": "A", "total": 200})), NOW, |_| false).await.unwrap();
    assert_eq!((accepted.deliveries.len(), accepted.started.len(), accepted.held), (2, 0, 1));
    let mut states = Vec::new();
    for id in accepted.deliveries {
        states.push(store.delivery(id).await.unwrap().unwrap().0.state);
    }
    assert_eq!(states, [DeliveryState::Queued, DeliveryState::Held]);
}
