//! Deliveries in bulk, and which of an order starts next.

use std::collections::BTreeMap;

use seawall_hub_core::domain::delivery::OrderFacts;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::DeliverySelector;

use super::*;
use crate::postgres::write::set_based::{
    HELD_BY_RULE, PENDING_OF_SERVICE, RELEASE, START, START_ORDERS, STOP_HOLDING,
};

/// Rows with their names, for what the functions say of many rows at once.
#[derive(Default)]
struct Orders {
    before: Vec<DeliveryFacts>,
    names: Vec<(&'static str, &'static str, Option<String>)>,
}

impl Orders {
    fn push(&mut self, state: StoredState, service: &'static str, rule: &'static str, order: Option<String>) {
        self.before.push(DeliveryFacts { has_order: order.is_some(), ..row(state) });
        self.names.push((service, rule, order));
    }

    async fn table(&self) -> Table {
        let mut table = Table::new(1).await;
        let names = self.names.iter().map(|(service, rule, order)| Names {
            service,
            rule,
            order: order.as_deref().unwrap_or_default(),
        });
        table.insert(self.before.iter().zip(names)).await;
        table
    }

    /// Starts the next delivery of each order that is chosen, in the rows as they will be.
    fn start(
        &self,
        rows: &mut [DeliveryFacts],
        is_chosen: impl Fn(usize) -> bool,
        next: impl Fn(OrderFacts) -> Option<u64>,
    ) {
        let mut orders: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (place, (_, rule, order)) in self.names.iter().enumerate() {
            orders.entry((rule, order.as_deref().unwrap_or_default())).or_default().push(place);
        }
        for ((_, key), places) in orders {
            if key.is_empty() || !places.iter().any(|place| is_chosen(*place)) {
                continue;
            }
            let states = places.iter().map(|place| (*place as u64, rows[*place].state));
            if let Some(next) = next(OrderFacts::of(states)) {
                rows[usize::try_from(next).unwrap()].state = StoredState::Queued;
            }
        }
    }
}

/// HUB-14: a rule that is enabled releases every row as the function says, and then starts each of its orders, whatever the
/// states of three deliveries in it are.
#[tokio::test]
async fn hub_14_releasing_is_the_function_for_every_order_of_three() {
    let mut orders = Orders::default();
    for rule in ["rule", "other"] {
        for state in StoredState::ALL {
            orders.push(state, "service", rule, None);
            for second in StoredState::ALL {
                for third in StoredState::ALL {
                    let key = format!("{state:?} {second:?} {third:?}");
                    for state in [state, second, third] {
                        orders.push(state, "service", rule, Some(key.clone()));
                    }
                }
            }
        }
    }
    let table = orders.table().await;
    table.node.text("BEGIN").await;
    table.node.applier().release_held(&Slug::new("rule").unwrap(), 1_000_000).await.unwrap();
    table.node.text("COMMIT").await;
    let is_ours = |place: usize| orders.names[place].1 == "rule";
    let release = |(place, facts): (usize, &DeliveryFacts)| {
        if is_ours(place) { facts.clone().released() } else { facts.clone() }
    };
    let mut expected: Vec<_> = orders.before.iter().enumerate().map(release).collect();
    orders.start(&mut expected, is_ours, |facts| facts.next_when_released());
    assert_rows(&orders.before, &table.all().await, &expected);
    table.assert_proved(&[RELEASE, START_ORDERS, HELD_BY_RULE]);
}

/// HUB-14: when a service or a rule is gone, every row that it concerns is dead-lettered as the function says, and the orders of
/// these rows go on.
#[tokio::test]
async fn hub_14_dead_lettering_in_bulk_is_the_function_for_every_order_of_two() {
    for by_service in [true, false] {
        let mut orders = Orders::default();
        for first in StoredState::ALL {
            for (service, rule) in [("gone", "rule"), ("other", "rule"), ("gone", "else"), ("other", "else")]
            {
                orders.push(first, service, rule, None);
            }
            for second in StoredState::ALL {
                let key = Some(format!("{first:?} {second:?}"));
                orders.push(first, "gone", "rule", key.clone());
                orders.push(second, "other", "rule", key);
            }
        }
        let (name, whose) = if by_service {
            ("gone", DeliverySelector::Service(Slug::new("gone").unwrap()))
        } else {
            ("rule", DeliverySelector::HeldBy(Slug::new("rule").unwrap()))
        };
        let is_chosen = |place: usize| {
            let (state, (service, rule, _)) = (orders.before[place].state, &orders.names[place]);
            if by_service {
                *service == name && state.is_pending()
            } else {
                *rule == name && state == StoredState::Held
            }
        };
        let chosen = (0..orders.before.len()).filter(|place| is_chosen(*place)).count();
        let table = orders.table().await;
        table.node.text("BEGIN").await;
        let mut applier = table.node.applier();
        applier.dead_letter_all(&whose, 1_000_000, NOW).await.unwrap();
        table.node.text("COMMIT").await;
        assert_eq!(applier.committed.touched, chosen);
        let dead_letter = |(place, facts): (usize, &DeliveryFacts)| {
            if is_chosen(place) { facts.clone().dead_lettered(NOW) } else { facts.clone() }
        };
        let mut expected: Vec<_> = orders.before.iter().enumerate().map(dead_letter).collect();
        orders.start(&mut expected, is_chosen, |facts| facts.next_when_released());
        assert_rows(&orders.before, &table.all().await, &expected);
        table.assert_proved(&[if by_service { PENDING_OF_SERVICE } else { HELD_BY_RULE }, START]);
    }
}

/// HUB-14: a dead letter that no longer holds its order lets the next one start as the function says, for every order of three.
#[tokio::test]
async fn hub_14_releasing_an_order_is_the_function_for_every_order_of_three() {
    let mut orders = Orders::default();
    for first in StoredState::ALL {
        for second in StoredState::ALL {
            for third in StoredState::ALL {
                let key = format!("{first:?} {second:?} {third:?}");
                for state in [first, second, third] {
                    orders.push(state, "service", "rule", Some(key.clone()));
                }
            }
        }
    }
    let table = orders.table().await;
    let is_first = |place: usize| place.is_multiple_of(3);
    let mut expected = orders.before.clone();
    table.node.text("BEGIN").await;
    for place in (0..orders.before.len()).filter(|place| is_first(*place)) {
        table.node.applier().release_order(place as i64 + 1).await.unwrap();
        if expected[place].state == StoredState::HoldingOrder {
            expected[place].state = StoredState::DeadLettered;
        }
    }
    table.node.text("COMMIT").await;
    let was_held = |place: usize| is_first(place) && orders.before[place].state == StoredState::HoldingOrder;
    orders.start(&mut expected, was_held, |facts| facts.next_when_released());
    assert_rows(&orders.before, &table.all().await, &expected);
    table.assert_proved(&[STOP_HOLDING, START]);
}
