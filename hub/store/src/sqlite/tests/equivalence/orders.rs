//! Deliveries in bulk, and which of an order starts next.

use std::collections::BTreeMap;

use seawall_hub_core::domain::delivery::OrderFacts;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::DeliverySelector;

use super::*;
use crate::sqlite::read::deliveries;
use crate::sqlite::write::set_based::{DEAD_LETTER, HELD_BY_RULE, PENDING_OF_SERVICE, RELEASE, START_ORDERS};

/// A table with the names of its rows, for what the functions say of many rows at once.
struct Orders {
    table: Table,
    before: Vec<DeliveryFacts>,
    names: Vec<(&'static str, &'static str, Option<String>)>,
}

impl Orders {
    fn new() -> Self {
        Orders { table: Table::new(), before: Vec::new(), names: Vec::new() }
    }

    fn insert(
        &mut self,
        state: StoredState,
        service: &'static str,
        rule: &'static str,
        order: Option<String>,
    ) {
        let facts = DeliveryFacts { has_order: order.is_some(), ..row(state) };
        let key = order.as_deref().unwrap_or_default();
        self.table.insert(&facts, Names { service, rule, order: key });
        self.before.push(facts);
        self.names.push((service, rule, order));
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
                let next = &mut rows[usize::try_from(next).unwrap()];
                next.state = StoredState::Queued;
                // Where one order is read alone, it is claimed again.
                next.epoch = self.table.start.epoch;
            }
        }
    }
}

/// HUB-14: a rule that is enabled releases every row as the function says, and then starts each of its orders, whatever the
/// states of three deliveries in it are.
#[test]
fn hub_14_releasing_is_the_function_for_every_order_of_three() {
    let mut orders = Orders::new();
    for rule in ["rule", "other"] {
        for state in StoredState::ALL {
            orders.insert(state, "service", rule, None);
            for second in StoredState::ALL {
                for third in StoredState::ALL {
                    let key = format!("{state:?} {second:?} {third:?}");
                    for state in [state, second, third] {
                        orders.insert(state, "service", rule, Some(key.clone()));
                    }
                }
            }
        }
    }
    orders.table.applier().release_held(&Slug::new("rule").unwrap(), 1_000_000).unwrap();
    let is_ours = |place: usize| orders.names[place].1 == "rule";
    let release = |(place, facts): (usize, &DeliveryFacts)| {
        if is_ours(place) { facts.clone().released() } else { facts.clone() }
    };
    let mut expected: Vec<_> = orders.before.iter().enumerate().map(release).collect();
    orders.start(&mut expected, is_ours, |facts| facts.next_when_released());
    assert_rows(&orders.before, &orders.table.all(), &expected);
    assert_proved(&[RELEASE, START_ORDERS, HELD_BY_RULE]);
}

/// HUB-14: when a service or a rule is gone, every row that it concerns is dead-lettered as the function says, and the orders of
/// these rows go on.
#[test]
fn hub_14_dead_lettering_in_bulk_is_the_function_for_every_order_of_two() {
    for by_service in [true, false] {
        let mut orders = Orders::new();
        for first in StoredState::ALL {
            for (service, rule) in [("gone", "rule"), ("other", "rule"), ("gone", "else"), ("other", "else")]
            {
                orders.insert(first, service, rule, None);
            }
            for second in StoredState::ALL {
                let key = Some(format!("{first:?} {second:?}"));
                orders.insert(first, "gone", "rule", key.clone());
                orders.insert(second, "other", "rule", key);
            }
        }
        let (name, selector) = if by_service {
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
        let counted = deliveries::pending(&orders.table.connection, &selector, 1_000_000).unwrap();
        assert_eq!(usize::try_from(counted).unwrap(), chosen);
        let mut applier = orders.table.applier();
        applier.dead_letter_all(&selector, 1_000_000, NOW).unwrap();
        assert_eq!(applier.committed.touched, chosen);
        let dead_letter = |(place, facts): (usize, &DeliveryFacts)| {
            if is_chosen(place) { facts.clone().dead_lettered(NOW) } else { facts.clone() }
        };
        let mut expected: Vec<_> = orders.before.iter().enumerate().map(dead_letter).collect();
        orders.start(&mut expected, is_chosen, |facts| facts.next_when_released());
        assert_rows(&orders.before, &orders.table.all(), &expected);
        assert_proved(&[if by_service { PENDING_OF_SERVICE } else { HELD_BY_RULE }, DEAD_LETTER]);
    }
}
