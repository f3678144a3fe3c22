//! Races about single deliveries, events and claims.

use std::collections::BTreeSet;

use seawall_hub_core::port::store::DeliverySelector;

use super::super::USUAL;
use super::super::equivalence::events::event;
use super::*;

fn dead_letter() -> Disposition {
    Disposition::DeadLetter {
        reason: seawall_hub_core::domain::delivery::DeadLetterReason::Gone,
        holds_order: false,
    }
}

/// HUB-14, U1: of two outcomes of one delivery one counts, whatever they are, and the other hears that the claim is lost.
#[tokio::test]
async fn hub_14_of_two_outcomes_of_one_delivery_one_counts() {
    let mut race = Race::new().await;
    let kinds = [Disposition::Delivered, retry(), dead_letter()];
    for round in 0..ROUNDS {
        let number = race.insert(leased(ONE), USUAL).await;
        let (first, second) = (kinds[round as usize % 3], kinds[round as usize / 3 % 3]);
        let made = race.race(settle(number, ONE, first), settle(number, ONE, second)).await;
        let won = match &made {
            [Ok(_), Err(StoreError::LeaseLost(_))] => first,
            [Err(StoreError::LeaseLost(_)), Ok(_)] => second,
            both => panic!("not one of two: {both:?}"),
        };
        assert_eq!(race.state(number).await, StoredState::after(&won));
        let attempts = race.count(&format!("SELECT count(*) FROM attempts WHERE delivery = {number}")).await;
        assert_eq!(attempts, i64::from(won != Disposition::Delivered));
    }
    race.recount().await;
}

/// HUB-3, HUB-14: an event that comes to two nodes at once is stored once, and both know its deliveries: as one of many in opposite
/// sequence, without a deadlock.
#[tokio::test]
async fn hub_3_an_event_that_comes_to_two_nodes_is_stored_once() {
    let race = Race::new().await;
    for round in 0..ROUNDS {
        let unit = |id: usize| {
            let deliveries = vec![new("rule", "service", InitialState::Leased, None)];
            UnitOfWork::of(Change::AddEvent(event(&format!("{round} {id}"), "shop"), deliveries))
        };
        let (forwards, backwards): (Vec<_>, Vec<_>) =
            ((0..5).map(unit).collect(), (0..5).rev().map(unit).collect());
        let start = async |node, units: &[UnitOfWork]| {
            race.barrier.wait().await;
            let units: Vec<&UnitOfWork> = units.iter().collect();
            race.transact(node, async |node| {
                apply_batch(&node.session, node.id, UnitShape::Event, &units).await
            })
            .await
        };
        let (one, two) = tokio::join!(start(&race.one, &forwards), start(&race.two, &backwards));
        let mut two = two.unwrap();
        two.reverse();
        for both in one.unwrap().into_iter().zip(two) {
            let (made, deliveries) = match both {
                (Ok(made), Err(StoreError::EventExists { deliveries, .. }))
                | (Err(StoreError::EventExists { deliveries, .. }), Ok(made)) => (made, deliveries),
                both => panic!("not one of two: {both:?}"),
            };
            assert_eq!(made.deliveries.iter().map(|(id, _)| *id).collect::<Vec<_>>(), deliveries);
        }
    }
    assert_eq!(race.conflicts.get(), 0, "they have waited for each other");
    assert_eq!(race.count("SELECT count(*) FROM deliveries").await, ROUNDS * 5);
    race.recount().await;
}

/// HUB-14: two nodes that claim at once get different deliveries, and nothing is left.
#[tokio::test]
async fn hub_14_two_nodes_that_claim_get_different_deliveries() {
    let mut race = Race::new().await;
    let states = [StoredState::Queued, StoredState::Waiting, StoredState::Stalled];
    for _ in 0..ROUNDS {
        let rows: Vec<_> = (0..12).map(|place| row(states[place % 3])).collect();
        race.table.insert_all(&rows).await;
        let start = async |node| {
            race.barrier.wait().await;
            race.transact(node, async |node| node.applier().take_due(NOW, &room("service")).await)
                .await
                .unwrap()
        };
        let (one, two) = tokio::join!(start(&race.one), start(&race.two));
        let taken: Vec<u64> = one.iter().chain(&two).map(|taken| taken.id.number).collect();
        assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), taken.len(), "one was claimed twice");
        // What the other had locked and not taken is there for the next look.
        let rest =
            race.transact(&race.one, async |node| node.applier().take_due(NOW, &room("service")).await);
        assert_eq!(taken.len() + rest.await.unwrap().len(), 12);
    }
    race.recount().await;
}

/// HUB-14: a delivery that is given back while its outcome is stored, and claimed by another node meanwhile, has one owner and one
/// outcome.
#[tokio::test]
async fn hub_14_a_delivery_that_is_given_back_settled_and_claimed_has_one_owner() {
    let mut race = Race::new().await;
    let third = TestNode { session: super::super::connect(&race.table.database).await, id: race.one.id };
    for _ in 0..ROUNDS {
        let number = race.insert(leased(ONE), USUAL).await;
        let back = UnitOfWork::of(Change::ReturnToStore(vec![claim(number, ONE)]));
        let outcome = settle(number, ONE, Disposition::Delivered);
        let barrier = Barrier::new(3);
        let (_, settled, taken) = tokio::join!(
            async {
                barrier.wait().await;
                race.commit(&race.one, &back).await
            },
            async {
                barrier.wait().await;
                let made = race.transact(&third, async |node| {
                    apply_batch(&node.session, node.id, UnitShape::Outcome, &[&outcome]).await
                });
                made.await.unwrap().remove(0)
            },
            async {
                barrier.wait().await;
                let take = race
                    .transact(&race.two, async |node| node.applier().take_due(NOW, &room("service")).await);
                take.await.unwrap()
            }
        );
        let (state, is_taken) = (race.state(number).await, !taken.is_empty());
        let expected = match (settled.is_ok(), is_taken) {
            (true, false) => StoredState::Delivered,
            (false, true) => StoredState::Leased,
            (false, false) => StoredState::Queued,
            (true, true) => panic!("settled under one claim and claimed by another"),
        };
        assert_eq!(state, expected);
        // Nothing is left for the next round.
        race.transact(&race.two, async |node| node.applier().take_due(NOW, &room("service")).await)
            .await
            .unwrap();
    }
    race.recount().await;
}

/// HUB-14, U1: a delivery whose service is deleted while its outcome is stored has ended once: as the outcome says, or dead-lettered.
#[tokio::test]
async fn hub_14_dead_lettering_all_and_an_outcome_end_a_delivery_once() {
    let mut race = Race::new().await;
    for round in 0..ROUNDS {
        let service = format!("service-{round}");
        let number = race.insert(leased(ONE), Names { service: &service, ..USUAL }).await;
        let outcome = [Disposition::Delivered, retry()][round as usize % 2];
        let selector = DeliverySelector::Service(slug(&service));
        let all = UnitOfWork::of(Change::DeadLetterAll { selector, limit: 10, at: NOW });
        let [settled, dead_lettered] = race.race(settle(number, ONE, outcome), all).await;
        let dead_lettered = dead_lettered.unwrap().touched;
        let (state, is_delivered) = (race.state(number).await, outcome == Disposition::Delivered);
        let expected = match (settled, dead_lettered) {
            (Ok(_), 0) if is_delivered => StoredState::Delivered,
            // One that is attempted again is still pending, and dead-lettered then.
            (Ok(_), 1) if !is_delivered => StoredState::DeadLettered,
            (Err(StoreError::LeaseLost(_)), 1) => StoredState::DeadLettered,
            other => panic!("{outcome:?}: {other:?}"),
        };
        assert_eq!(state, expected);
    }
    race.recount().await;
}

/// HUB-14, HUB-15: what a node stores while it is taken for dead counts or does not, and nothing stays claimed by it: neither what it
/// had claimed before nor what it inserts meanwhile.
#[tokio::test]
async fn hub_15_nothing_stays_with_a_node_that_is_taken_for_dead() {
    let mut race = Race::new().await;
    for round in 0..ROUNDS {
        let dead = 1_000 + round.cast_unsigned();
        race.table.add_node(dead).await;
        race.one.id.epoch = dead;
        let number = race.insert(leased(dead), USUAL).await;
        let deliveries = vec![new("rule", "service", InitialState::Leased, None)];
        let unit = if round % 2 == 0 {
            settle(number, dead, Disposition::Delivered)
        } else {
            UnitOfWork::of(Change::AddEvent(event(&format!("{round}"), "shop"), deliveries))
        };
        let reclaim = async {
            race.barrier.wait().await;
            let made = race.transact(&race.two, async |node| {
                let over = "UPDATE nodes SET state = 2 WHERE epoch = $1";
                node.session.run(over, &[&dead.cast_signed()]).await?;
                node.applier().reclaim(&[]).await
            });
            made.await.unwrap();
        };
        let store = async {
            race.barrier.wait().await;
            race.commit(&race.one, &unit).await
        };
        let (made, ()) = tokio::join!(store, reclaim);
        let left = format!("SELECT count(*) FROM work WHERE state = 0 AND epoch = {dead}");
        assert_eq!(race.count(&left).await, 0, "in round {round}, with {made:?}");
        let is_delivered = round % 2 == 0 && made.is_ok();
        let expected = if is_delivered { StoredState::Delivered } else { StoredState::Queued };
        assert_eq!(race.state(number).await, expected);
    }
    race.recount().await;
}
