//! How much there is, for those who only want to know.

use seawall_hub_core::domain::trace::TraceId;

use super::StoreFactory;
use super::fixtures::*;

/// OBS-2: what waits is counted for each service and no further than asked; dead letters until they are discarded.
pub(crate) async fn obs_2_what_waits_is_counted_and_not_too_far<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let queued = |service| NewDelivery { initial: InitialState::Queued, ..to(service) };
    let off = Rule { enabled: false, ..rule("off", 1) };
    store.commit(WritePriority::Admin, unit([Change::PutRule(off)])).await.unwrap();
    let held = NewDelivery { initial: InitialState::Held, rule: (slug("off"), 1), ..to("mail") };
    let deliveries = vec![queued("billing"), queued("billing"), queued("billing"), held, to("mail")];
    let made =
        store.commit(WritePriority::Ingest, unit([Change::AddEvent(event("a"), deliveries)])).await.unwrap();
    let count = async |limit| {
        let BacklogCounts { waiting, dead_letters } =
            store.backlog_counts(["billing", "mail", "search"].map(slug).into(), limit).await.unwrap();
        (waiting.into_iter().map(|(_, count)| count).collect::<Vec<_>>(), dead_letters)
    };
    let none: Vec<(Slug, u64)> = vec![];
    assert_eq!(count(100).await, (vec![3, 1, 0], none.clone()), "what is in hand does not wait in the store");
    assert_eq!(count(2).await, (vec![2, 1, 0], none.clone()));

    let dead = dead(DeadLetterReason::Refused);
    let in_hand = made.names()[4];
    settle(&store, in_hand, dead).await.unwrap();
    assert_eq!(
        (kept(&store, in_hand).await.state, count(100).await.1),
        (DeliveryState::DeadLettered, vec![(slug("mail"), 1)])
    );
    store
        .commit(
            WritePriority::Admin,
            unit([Change::Move(LetterMove { dead: in_hand, to: LetterAction::Delete, at: NOW })]),
        )
        .await
        .unwrap();
    assert_eq!(count(100).await.1, none);
}

/// OBS-1: a delivery that comes from the store knows the trace of its event.
pub(crate) async fn obs_1_a_delivery_from_the_store_knows_its_trace<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for (id, trace) in [("a", Some(trace)), ("b", None)] {
        let event = Event { trace: trace.map(ToOwned::to_owned), ..Event::clone(&event(id)) };
        let delivery = NewDelivery { initial: InitialState::Queued, ..to("billing") };
        store
            .commit(WritePriority::Ingest, unit([Change::AddEvent(Arc::new(event), vec![delivery])]))
            .await
            .unwrap();
    }
    let traces: Vec<_> = due(&store, NOW, 10).await.unwrap().into_iter().map(|kept| kept.trace).collect();
    assert_eq!(traces, [TraceId::of(trace), None]);
}
