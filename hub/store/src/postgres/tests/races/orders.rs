//! Races about deliveries with the same ordering key, and about rules that hold theirs.

use super::super::equivalence::events::event;
use super::*;

fn add(round: i64, new: NewDelivery) -> UnitOfWork {
    UnitOfWork::of(Change::AddEvent(event(&format!("{round}"), "shop"), vec![new]))
}

/// HUB-5, HUB-14: an event that comes while the one before it in its order ends is never left behind: it is active, or starts.
#[tokio::test]
async fn hub_5_a_successor_that_comes_while_the_head_ends_is_not_left_behind() {
    let mut race = Race::new().await;
    for round in 0..ROUNDS {
        let key = format!("key-{round}");
        let names = Names { service: "service", rule: "rule", order: &key };
        let head = race.insert(DeliveryFacts { has_order: true, ..leased(ONE) }, names).await;
        let next = add(round, new("rule", "service", InitialState::Leased, Some(&key)));
        let [settled, added] = race.race(settle_ordered(head, Disposition::Delivered), next).await;
        let (settled, added) = (settled.unwrap(), added.unwrap());
        let number = added.deliveries[0].0.number;
        let ready: Vec<u64> = settled.ready.iter().map(|ready| ready.id.number).collect();
        let was_blocked = added.deliveries[0].1 == StoredState::Blocked.shown();
        assert_eq!(ready, if was_blocked { vec![number] } else { vec![] });
        assert_eq!(race.state(number.cast_signed()).await, StoredState::Leased);
        race.recount().await;
    }
}

/// HUB-5, HUB-14: two events that come to two nodes as the first of their order are not both sent.
#[tokio::test]
async fn hub_5_of_two_firsts_of_an_order_one_waits() {
    let race = Race::new().await;
    for round in 0..ROUNDS {
        let key = format!("key-{round}");
        let unit = |id: &str| {
            let deliveries = vec![new("rule", "service", InitialState::Leased, Some(&key))];
            UnitOfWork::of(Change::AddEvent(event(&format!("{round} {id}"), "shop"), deliveries))
        };
        let made = race.race(unit("one"), unit("two")).await;
        let mut states = made.map(|made| made.unwrap().deliveries[0]);
        states.sort_unstable_by_key(|(id, _)| id.number);
        assert_eq!(
            states.map(|(_, state)| state),
            [StoredState::Leased, StoredState::Blocked].map(StoredState::shown)
        );
        race.recount().await;
    }
}

async fn put_rule(race: &Race, rule: &str, version: u64, enabled: bool) {
    let made = race.transact(&race.one, async |node| put(node, rule, version, enabled).await);
    made.await.unwrap();
}

/// Makes a version of a rule the current one, as a change of the rule does.
async fn put(node: &TestNode, rule: &str, version: u64, enabled: bool) -> Result<(), ApplyError> {
    let before = "UPDATE rules SET current = false WHERE name = $1 AND current";
    node.session.run(before, &[&rule]).await?;
    let add = "INSERT INTO rules (name, version, current, service, enabled, document) VALUES ($1, $2, true, 'service', $3, '{}')";
    node.session.run(add, &[&rule, &version.cast_signed(), &enabled]).await?;
    Ok(())
}

/// HUB-5, HUB-14: a delivery that is born held while its rule is enabled and releases what it holds is not held for ever, with an
/// order and without.
#[tokio::test]
async fn hub_5_nothing_is_held_for_ever_by_a_rule_that_was_enabled() {
    let mut race = Race::new().await;
    for round in 0..ROUNDS {
        let rule = format!("rule-{round}");
        put_rule(&race, &rule, 1, false).await;
        let key = (round % 2 == 0).then_some("key");
        let names = Names { service: "service", rule: &rule, order: "key" };
        let held = DeliveryFacts { has_order: key.is_some(), ..row(StoredState::Held) };
        race.insert(held, names).await;
        // Several, so that the rule may change while they are inserted.
        let deliveries = vec![new(&rule, "service", InitialState::Held, key); 8];
        let unit = UnitOfWork::of(Change::AddEvent(event(&format!("{round}"), "shop"), deliveries));
        let enable = async {
            race.barrier.wait().await;
            race.transact(&race.one, async |node| put(node, &rule, 2, true).await).await.unwrap();
            let release = UnitOfWork::of(Change::ReleaseHeld { rule: slug(&rule), limit: 100 });
            while race.commit(&race.one, &release).await.unwrap().touched > 0 {}
        };
        let add = async {
            race.barrier.wait().await;
            race.commit(&race.two, &unit).await.unwrap()
        };
        tokio::join!(enable, add);
        assert_eq!(race.count("SELECT count(*) FROM work WHERE state = 5").await, 0, "in round {round}");
        race.recount().await;
    }
}

/// HUB-5, HUB-14: what a rule held is released while a delivery of the same order comes: one of them starts.
#[tokio::test]
async fn hub_5_releasing_and_adding_start_one_of_an_order() {
    let mut race = Race::new().await;
    for round in 0..ROUNDS {
        let (rule, key) = (format!("rule-{round}"), "key");
        put_rule(&race, &rule, 1, true).await;
        let names = Names { service: "service", rule: &rule, order: key };
        race.insert(DeliveryFacts { has_order: true, ..row(StoredState::Held) }, names).await;
        let unit = add(round, new(&rule, "service", InitialState::Leased, Some(key)));
        let release = UnitOfWork::of(Change::ReleaseHeld { rule: slug(&rule), limit: 100 });
        for made in race.race(release, unit).await {
            made.unwrap();
        }
        race.recount().await;
    }
}

/// HUB-5, HUB-14: the end of a head and the end of the delivery behind it, which its service's deletion brings about, leave nobody
/// behind who waits for them.
#[tokio::test]
async fn hub_5_a_head_and_those_behind_it_end_at_once() {
    use seawall_hub_core::port::store::DeliverySelector;
    let mut race = Race::new().await;
    for round in 0..ROUNDS {
        let (key, service) = (format!("key-{round}"), format!("service-{round}"));
        let names = Names { service: "service", rule: "rule", order: &key };
        let in_order = |facts: DeliveryFacts| DeliveryFacts { has_order: true, ..facts };
        let head = race.insert(in_order(leased(ONE)), names).await;
        race.insert(in_order(row(StoredState::Blocked)), Names { service: &service, ..names }).await;
        let last = race.insert(in_order(row(StoredState::Blocked)), names).await;
        let selector = DeliverySelector::Service(slug(&service));
        let all = UnitOfWork::of(Change::DeadLetterAll { selector, limit: 10, at: NOW });
        let [settled, dead_lettered] = race.race(settle_ordered(head, Disposition::Delivered), all).await;
        settled.unwrap();
        assert_eq!(dead_lettered.unwrap().touched, 1);
        assert!(race.state(last).await < StoredState::Blocked);
        race.recount().await;
    }
}

/// HUB-5, HUB-14: what a rule held is released while the head of its order ends: one of the two starts it.
#[tokio::test]
async fn hub_5_what_is_released_while_its_head_ends_starts() {
    let mut race = Race::new().await;
    for round in 0..ROUNDS {
        let rule = format!("rule-{round}");
        put_rule(&race, &rule, 1, true).await;
        let names = Names { service: "service", rule: &rule, order: "key" };
        let head = race.insert(DeliveryFacts { has_order: true, ..leased(ONE) }, names).await;
        race.insert(DeliveryFacts { has_order: true, ..row(StoredState::Held) }, names).await;
        let release = UnitOfWork::of(Change::ReleaseHeld { rule: slug(&rule), limit: 100 });
        for made in race.race(settle_ordered(head, Disposition::Delivered), release).await {
            made.unwrap();
        }
        race.recount().await;
    }
}
