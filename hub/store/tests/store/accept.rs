//! Events that are accepted, with all that they lead to.

use seawall_hub_core::domain::delivery::{Reason, State};
use seawall_hub_core::domain::event_type::{EventType, Pattern};
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::port::store::Store;
use seawall_hub_core::render::Request;
use seawall_hub_core::service::{Accept, Incoming, NotAccepted, Rulebook, Tally};
use serde_json::{Value, json};

use crate::conformance::{NOW, Place, rule, slug};

fn order(id: &str, data: Value) -> Incoming {
    Incoming {
        id: id.into(),
        kind: EventType::new("order.created").unwrap(),
        source: "shop".into(),
        time: "2026-11-15T12:00:00Z".into(),
        data,
        trace: None,
    }
}

fn rules() -> Rulebook {
    let everything = Rule {
        events: Pattern::new("*").unwrap(),
        filter: None,
        body: None,
        path: "/hook".into(),
        service: slug("mail"),
        ..rule("everything", 1)
    };
    let other = Rule { events: Pattern::new("invoice.*").unwrap(), ..rule("other", 1) };
    let off = Rule { enabled: false, ..rule("off", 1) };
    let (book, bad) = Rulebook::new(&[rule("invoices", 3), everything, other, off]);
    assert_eq!(bad, []);
    book
}

/// HUB-3, HUB-4: an event is matched, rendered and kept with its deliveries; what is to be sent now is handed on.
#[tokio::test]
async fn hub_3_an_event_is_kept_with_all_that_it_leads_to() {
    let place = Place::new();
    let store = place.open();
    let accept = Accept::new(store.clone(), rules());
    let accepted = accept.accept(order("evt-1", json!({"id": "A-7", "total": 120.5})), NOW).await.unwrap();
    assert_eq!((accepted.deliveries.len(), accepted.deduplicated), (2, false));
    assert_eq!(accepted.tally, Tally { considered: 2, filtered: 0, unclear: 0 });
    let (id, _, service, request) = &accepted.begun[0];
    assert_eq!((service, request.path.as_str()), (&slug("billing"), "/invoices/A-7"));
    assert_eq!(request.body.as_deref(), Some(&br#"{"order":"A-7"}"#[..]));
    let (kept, _) = store.delivery(*id).await.unwrap().unwrap();
    assert_eq!(Request::from_bytes(&kept.request).as_ref(), Some(request));
    assert_eq!((kept.rule, kept.event.as_str(), kept.state), ((slug("invoices"), 3), "evt-1", State::Leased));
    let event = store.event("evt-1").await.unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&event.payload).unwrap()["data"]["total"], json!(120.5));
}

/// HUB-5: nothing is dropped silently: filtered and unclear are counted.
#[tokio::test]
async fn hub_5_what_is_filtered_is_counted() {
    let place = Place::new();
    let accept = Accept::new(place.open(), rules());
    let small = accept.accept(order("evt-1", json!({"id": "A-7", "total": 5})), NOW).await.unwrap();
    assert_eq!((small.deliveries.len(), small.tally), (1, Tally { considered: 2, filtered: 1, unclear: 0 }));
    let unclear = accept.accept(order("evt-2", json!({"id": "A-8"})), NOW).await.unwrap();
    assert_eq!(unclear.tally, Tally { considered: 2, filtered: 1, unclear: 1 });
}

/// HUB-4, HUB-5: an event of which no request can be made is a dead letter with its reason, beside those that can be sent.
#[tokio::test]
async fn hub_5_what_can_not_be_rendered_is_a_dead_letter_at_once() {
    let place = Place::new();
    let store = place.open();
    let accept = Accept::new(store.clone(), rules());
    let accepted = accept.accept(order("evt-1", json!({"total": 500})), NOW).await.unwrap();
    assert_eq!((accepted.deliveries.len(), accepted.begun.len()), (2, 1));
    let (dead, attempts) = store.delivery(accepted.deliveries[1]).await.unwrap().unwrap();
    assert_eq!((dead.state, dead.reason), (State::DeadLettered, Some(Reason::Impossible)));
    let error = attempts[0].error.as_deref().unwrap();
    assert!(error.starts_with("path: the event has no `data.id`"), "{error}");
}

/// HUB-3: the same again is answered as the first time; the same id with another content is a mistake; a wrong id says why.
#[tokio::test]
async fn hub_3_the_same_event_again_is_the_same_event() {
    let place = Place::new();
    let accept = Accept::new(place.open(), rules());
    let data = json!({"id": "A-7", "total": 120.5});
    let first = accept.accept(order("evt-1", data.clone()), NOW).await.unwrap();
    let again = accept.accept(Incoming { time: "later".into(), ..order("evt-1", data) }, NOW).await.unwrap();
    assert_eq!((again.deduplicated, again.deliveries, again.begun), (true, first.deliveries, vec![]));
    let other = accept.accept(order("evt-1", json!({"id": "A-8", "total": 1})), NOW).await;
    assert_eq!(other.unwrap_err(), NotAccepted::OtherContent);
    for (bad, why) in [("", "empty"), (&*"x".repeat(201), "200"), ("a b", "visible"), ("ä", "visible")] {
        let error = accept.accept(order(bad, json!({})), NOW).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
