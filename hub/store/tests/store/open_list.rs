//! Lists of deliveries that have not ended.

use seawall_hub_core::domain::delivery::DeliveryState;
use seawall_hub_core::port::store::{
    Change, DeliveryFilter, EventReads, InitialState, NewDelivery, PageRequest, UnitStore, WritePriority,
};

use crate::conformance::{DELIVERED, Names, Place, claim, event, settlement, slug, to, unit};

/// More deliveries than a page looks at.
const ENDED: usize = 10_500;

/// HUB-5, UI-2: what waits is on the first page, however many that came later have ended.
#[tokio::test]
async fn hub_5_what_waits_is_on_the_first_page_whatever_has_ended_since() {
    let place = Place::new();
    let store = place.open();
    let queued = |service: &str| NewDelivery { initial: InitialState::Queued, ..to(service) };
    let waiting = vec![queued("billing"), queued("mail"), to("billing")];
    let made =
        store.commit(WritePriority::Ingest, unit([Change::AddEvent(event("old"), waiting)])).await.unwrap();
    for batch in 0..ENDED / 500 {
        let all = (0..500).map(|_| to("billing")).collect();
        let new = Change::AddEvent(event(&format!("new-{batch}")), all);
        let names = store.commit(WritePriority::Ingest, unit([new])).await.unwrap().names();
        let delivered =
            names.into_iter().map(|delivery| Change::Settle(settlement(claim(&store, delivery), DELIVERED)));
        store.commit(WritePriority::Outcomes, unit(delivered)).await.unwrap();
    }
    let list = async |service: Option<&str>, states: &[DeliveryState], from: Option<u64>, size: usize| {
        let filter = DeliveryFilter {
            service: service.map(slug),
            states: states.to_vec(),
            ..DeliveryFilter::default()
        };
        let page = store.deliveries(filter, PageRequest { from, size }).await.unwrap();
        (page.items.iter().map(|kept| kept.id).collect::<Vec<_>>(), page.next)
    };
    let names = made.names();
    let open = [DeliveryState::Queued, DeliveryState::Leased, DeliveryState::Waiting, DeliveryState::Held];
    assert_eq!(
        list(None, &open, None, 50).await,
        (vec![names[2], names[1], names[0]], None),
        "the newest first"
    );
    assert_eq!(list(Some("mail"), &open, None, 50).await.0, [names[1]]);
    assert_eq!(list(None, &[DeliveryState::Leased], None, 50).await.0, [names[2]]);
    let (first, next) = list(None, &open, None, 2).await;
    assert_eq!(first, [names[2], names[1]]);
    assert_eq!(list(None, &open, next, 2).await.0, [names[0]], "and the next page goes on");
}
