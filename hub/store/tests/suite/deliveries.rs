//! Deliveries wait, are claimed, and end.

use super::StoreFactory;
use super::fixtures::*;

/// HUB-5: a delivery waits, is taken when it is due, and ends; each try is remembered.
pub(crate) async fn hub_5_a_delivery_waits_is_taken_and_ends<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let ids = add(&store, "evt-1", &["billing", "mail", "search"]).await.unwrap().names();
    assert!(due(&store, NOW, 10).await.unwrap().is_empty(), "they are born in this process's hand");

    let progress = Progress { accepted: NOW, counted: 1, failures: 2, panics: 0 };
    let until = NOW + Duration::from_secs(30);
    settle(&store, ids[0], retry(until, progress, false)).await.unwrap();
    settle(&store, ids[1], DELIVERED).await.unwrap();
    settle(&store, ids[2], dead(DeadLetterReason::Attempts)).await.unwrap();
    assert_eq!(settle(&store, ids[1], DELIVERED).await, Err(StoreError::LeaseLost(ids[1])), "it has ended");
    assert!(due(&store, NOW + Duration::from_secs(29), 10).await.unwrap().is_empty());
    let taken = due(&store, until, 10).await.unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!((taken[0].id, &taken[0].event, taken[0].progress), (ids[0], &"evt-1".to_owned(), progress));
    assert_eq!((&*taken[0].request, taken[0].state), (&b"to billing"[..], DeliveryState::Leased));
    assert!(due(&store, until, 10).await.unwrap().is_empty(), "taken once");

    settle(&store, ids[0], DELIVERED).await.unwrap();
    let (done, attempts) = store.delivery(ids[0]).await.unwrap().unwrap();
    assert_eq!((done.state, attempts.len()), (DeliveryState::Delivered, 2));
    assert_eq!(attempts[0], attempt(), "of a failure everything is remembered");
    let answer = attempts[1].answer.as_ref().unwrap();
    assert_eq!(
        (attempts[1].at, attempts[1].took, answer.status, &*answer.body),
        (NOW, attempt().took, 500, &[1, 2][..])
    );
    let dead = kept(&store, ids[2]).await;
    assert_eq!(
        (dead.state, dead.reason, dead.progress),
        (DeliveryState::DeadLettered, Some(DeadLetterReason::Attempts), SPENT)
    );
    let foreign = DeliveryId::new(ids[0].database ^ 1, ids[0].number);
    assert_eq!(store.delivery(foreign).await.unwrap(), None, "a name of another database");
    assert_eq!(DeliveryId::parse(&ids[0].to_string()), Some(ids[0]));
}

/// PRM-2, HUB-5: after a restart, what was in hand is due at once, under the same name; what the old process says of it counts
/// no more.
pub(crate) async fn prm_2_a_restart_takes_up_what_was_in_hand<F: StoreFactory>() {
    let place = F::create().await;
    let ids = {
        let store = place.open().await.unwrap();
        let ids = add(&store, "evt-1", &["billing", "mail"]).await.unwrap().names();
        settle(&store, ids[1], DELIVERED).await.unwrap();
        place.kill(store).await;
        ids
    };
    let store = place.open().await.unwrap();
    assert_eq!(store.epoch(), 2);
    assert_eq!(
        settle(&store, ids[0], DELIVERED).await,
        Err(StoreError::LeaseLost(ids[0])),
        "not in hand yet"
    );
    let taken = due(&store, NOW, 10).await.unwrap();
    assert_eq!(taken.iter().map(|kept| (kept.id, kept.epoch)).collect::<Vec<_>>(), [(ids[0], 2)]);
    let before = Claim { delivery: ids[0], epoch: 1 };
    for late in [Change::ReturnToStore(vec![before]), Change::Settle(settlement(before, DELIVERED))] {
        let settles = matches!(late, Change::Settle(_));
        let answer = store.commit(WritePriority::Outcomes, unit([late])).await;
        assert_eq!(answer.err(), settles.then_some(StoreError::LeaseLost(ids[0])), "another claim");
        assert_eq!(kept(&store, ids[0]).await.state, DeliveryState::Leased);
    }
    settle(&store, ids[0], DELIVERED).await.unwrap();
    let fresh = add(&store, "evt-2", &["billing"]).await.unwrap().names();
    assert!(fresh[0] > ids[1], "names go on");
}

/// HUB-5: so many are taken at a time, the longest due first.
pub(crate) async fn hub_5_the_longest_due_come_first<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let mut expected = Vec::new();
    for n in 0..20_u64 {
        let ids = add(&store, &format!("evt-{n}"), &["billing"]).await.unwrap().names();
        let until = NOW + Duration::from_secs((n * 7) % 20);
        let progress = Progress { accepted: NOW, counted: 0, failures: 1, panics: 0 };
        settle(&store, ids[0], retry(until, progress, false)).await.unwrap();
        expected.push((until, ids[0]));
    }
    expected.sort_unstable();
    assert_eq!(
        store.next_due().await.unwrap(),
        [DueTimes { service: slug("billing"), fresh: None, retries: Some(NOW) }]
    );
    let taken = due(&store, NOW + Duration::from_secs(60), 5).await.unwrap();
    assert_eq!(
        taken.iter().map(|kept| kept.id).collect::<Vec<_>>(),
        expected[..5].iter().map(|(_, id)| *id).collect::<Vec<_>>()
    );
}

/// More deliveries than a page looks at.
const ENDED: usize = 10_500;

/// HUB-5, UI-2: what waits is on the first page, however many that came later have ended.
pub(crate) async fn hub_5_what_waits_is_on_the_first_page_whatever_has_ended_since<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
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

/// HUB-5: what waits for its peer and finds no room in hand waits for its peer still.
pub(crate) async fn hub_5_what_is_put_back_still_comes_forward<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let ids = add(&store, "evt", &["billing"]).await.unwrap().names();
    let progress = Progress { accepted: NOW, counted: 0, failures: 1, panics: 0 };
    let next = retry(NOW + Duration::from_secs(600), progress, true);
    settle(&store, ids[0], next).await.unwrap();
    let room =
        |resume_before| vec![LaneCapacity { service: slug("billing"), fresh: 1, retries: 1, resume_before }];
    assert_eq!(store.take_due(NOW + Duration::from_secs(1), room(None)).await.unwrap(), []);
    for _ in 0..2 {
        let taken = store
            .take_due(NOW + Duration::from_secs(1), room(Some(NOW + Duration::from_secs(1))))
            .await
            .unwrap();
        assert_eq!(taken.len(), 1);
        store
            .commit(
                WritePriority::Outcomes,
                UnitOfWork::of(Change::ReturnToStore(vec![claim(&store, ids[0])])),
            )
            .await
            .unwrap();
    }
    assert_eq!(kept(&store, ids[0]).await.state, DeliveryState::Stalled);
}
