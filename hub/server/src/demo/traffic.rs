//! What happens in the shop: orders, payments, shipments, customers.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::dice::SplitMix;

/// How something comes in.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum DemoArrival {
    /// As an event, from the shop itself.
    Event(Value),
    /// As a webhook of the carrier.
    Webhook(Value),
}

/// One of so many customers has a mistake of this kind in their data. By count and not by chance, so that each group of dead
/// letters is there in time.
const UK_EACH: u64 = 9;
const PHONE_EACH: u64 = 14;
const PLATINUM_EACH: u64 = 5;
/// The maximum number of orders between two stages.
const UNDER_WAY: usize = 64;

const FIRST: [&str; 16] = [
    "Ada", "Alan", "Barbara", "Dennis", "Edsger", "Frances", "Grace", "Ken", "Leslie", "Lin", "Margaret",
    "Niklaus", "Radia", "Robin", "Shafi", "Tony",
];
const LAST: [&str; 16] = [
    "Adler", "Bianchi", "Costa", "Dubois", "Eriksson", "Fischer", "Garcia", "Hughes", "Ito", "Jensen",
    "Keller", "Lopez", "Moreau", "Novak", "Okafor", "Patel",
];
/// A country, its currency, and how phones begin there.
const COUNTRIES: [(&str, &str, &str); 7] = [
    ("DE", "EUR", "+49"),
    ("FR", "EUR", "+33"),
    ("GB", "GBP", "+44"),
    ("US", "USD", "+1"),
    ("CH", "CHF", "+41"),
    ("SE", "SEK", "+46"),
    ("ES", "EUR", "+34"),
];
/// A product and its price in cents.
const PRODUCTS: [(&str, &str, u64); 8] = [
    ("KB-104", "Mechanical keyboard", 12_900),
    ("MO-220", "Vertical mouse", 5_990),
    ("MN-270", "27 inch monitor", 34_900),
    ("CB-010", "USB-C cable, 1 m", 1_250),
    ("DK-300", "Docking station", 18_900),
    ("HP-450", "Headphones", 21_900),
    ("WC-080", "Webcam", 7_900),
    ("LT-012", "Desk lamp", 4_490),
];
const TIERS: [&str; 3] = ["basic", "silver", "gold"];

/// Makes events, each of them once.
#[derive(Debug)]
pub(super) struct Traffic {
    dice: SplitMix,
    number: u64,
    customers: u64,
    /// Whether customers have mistakes in their data.
    pub(super) has_mistakes: bool,
    created: VecDeque<Value>,
    paid: VecDeque<Value>,
    shipped: VecDeque<Value>,
}

impl Traffic {
    pub(super) fn seeded(seed: u64) -> Self {
        let (created, paid, shipped) = Default::default();
        Traffic {
            dice: SplitMix::seeded(seed),
            number: 0,
            customers: 0,
            has_mistakes: true,
            created,
            paid,
            shipped,
        }
    }

    /// The next thing that happens.
    pub(super) fn next(&mut self) -> DemoArrival {
        self.number += 1;
        let kind = self.dice.below(100);
        let stage = match kind {
            25..45 => self.created.pop_front().map(|order| {
                push(&mut self.paid, order.clone());
                ("order.paid", order)
            }),
            45..65 => self.paid.pop_front().map(|order| {
                push(&mut self.shipped, order.clone());
                ("shipment.requested", order)
            }),
            65..70 => {
                if let Some(order) = self.shipped.pop_front() {
                    let (scan, number) = (format!("SCAN-{}", 70_000 + self.number), 5_000_000 + self.number);
                    let tracking = format!("TRK{number}");
                    let order = &order["order"];
                    return DemoArrival::Webhook(
                        json!({"scan": scan, "status": "delivered", "order": order, "tracking": tracking}),
                    );
                }
                None
            }
            70..92 => Some(("customer.updated", self.customer())),
            92.. => Some(("stock.changed", self.stock())),
            _ => None,
        };
        let (kind, data) = stage.unwrap_or_else(|| {
            let order = self.order();
            push(&mut self.created, order.clone());
            ("order.created", order)
        });
        DemoArrival::Event(
            json!({"id": format!("shop-{:06}", self.number), "type": kind, "source": "shop", "data": data}),
        )
    }

    fn order(&mut self) -> Value {
        let count = 1 + self.dice.below(3);
        let (mut cents, mut lines) = (0, Vec::new());
        for _ in 0..count {
            let ((sku, title, price), pieces) = (*self.dice.of(&PRODUCTS), 1 + self.dice.below(2));
            cents += price * pieces;
            lines.push(json!({"sku": sku, "title": title, "pieces": pieces}));
        }
        let (name, email) = self.person();
        let (country, currency, _) = *self.dice.of(&COUNTRIES);
        json!({
            "order": format!("A-{}", 10_000 + self.number), "total": cents as f64 / 100.0, "currency": currency, "lines": lines,
            "customer": {"name": name, "email": email, "country": country},
        })
    }

    fn customer(&mut self) -> Value {
        self.customers += 1;
        let (name, email) = self.person();
        let (mut country, _, code) = *self.dice.of(&COUNTRIES);
        let mut tier = *self.dice.of(&TIERS);
        let digits = 100_000_000 + self.dice.below(899_999_999);
        let mut phone = format!("{code}{digits}");
        let each = |count: u64| self.has_mistakes && self.customers.is_multiple_of(count);
        // One mistake at a time: whoever mends it sees the whole group go.
        if each(UK_EACH) {
            country = "UK";
        } else if each(PHONE_EACH) {
            phone = format!("0{digits}");
        } else if each(PLATINUM_EACH) {
            tier = "platinum";
        }
        let id = format!("C-{}", 1_000 + self.dice.below(900));
        json!({"id": id, "name": name, "email": email, "country": country, "phone": phone, "tier": tier})
    }

    fn stock(&mut self) -> Value {
        let (sku, title, _) = *self.dice.of(&PRODUCTS);
        json!({"sku": sku, "title": title, "left": self.dice.below(200)})
    }

    fn person(&mut self) -> (String, String) {
        let (first, last) = (*self.dice.of(&FIRST), *self.dice.of(&LAST));
        let email = format!("{}.{}@example.com", first.to_lowercase(), last.to_lowercase());
        (format!("{first} {last}"), email)
    }
}

/// The oldest makes room.
fn push(queue: &mut VecDeque<Value>, order: Value) {
    if queue.len() >= UNDER_WAY {
        queue.pop_front();
    }
    queue.push_back(order);
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn events(traffic: &mut Traffic, count: usize) -> Vec<Value> {
        let sent = (0..count).map(|_| traffic.next());
        sent.map(|sent| match sent {
            DemoArrival::Event(event) => event,
            DemoArrival::Webhook(data) => {
                json!({"id": data["scan"], "type": "shipment.delivered", "data": data})
            }
        })
        .collect()
    }

    /// HUB-11: the same seed tells the same story, with all kinds of events and no id twice, and in bounded memory.
    #[test]
    fn hub_11_traffic_is_plausible_and_repeatable() {
        let mut traffic = Traffic::seeded(7);
        let all = events(&mut traffic, 5_000);
        assert_eq!(all[..100], events(&mut Traffic::seeded(7), 100));
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        all.iter().for_each(|event| *kinds.entry(event["type"].as_str().unwrap()).or_default() += 1);
        let expected = [
            "customer.updated",
            "order.created",
            "order.paid",
            "shipment.delivered",
            "shipment.requested",
            "stock.changed",
        ];
        assert!(kinds.keys().eq(expected.iter()) && kinds.values().all(|count| *count > 100), "{kinds:?}");
        let ids: BTreeSet<&str> = all.iter().map(|event| event["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), all.len());
        assert!(
            [&traffic.created, &traffic.paid, &traffic.shipped].iter().all(|queue| queue.len() <= UNDER_WAY)
        );
    }

    /// HUB-11: at the usual rate each mistake is there within twenty seconds, one at a time, and none when they are switched off.
    #[test]
    fn hub_11_customers_have_mistakes_until_there_are_enough() {
        let mistakes = |traffic: &mut Traffic, count| {
            let all = events(traffic, count);
            let customers = all.into_iter().filter(|event| event["type"] == "customer.updated");
            let each = customers.map(|event| {
                let data = &event["data"];
                let phone = !data["phone"].as_str().unwrap().starts_with('+');
                [data["country"] == "UK", phone, data["tier"] == "platinum"]
            });
            each.fold([0; 3], |mut sum, found| {
                assert!(found.iter().filter(|found| **found).count() < 2, "{found:?}");
                sum.iter_mut().zip(found).for_each(|(sum, found)| *sum += usize::from(found));
                sum
            })
        };
        let mut traffic = Traffic::seeded(crate::demo::SEED);
        let first = mistakes(&mut traffic, 20 * 15);
        assert!(first.iter().all(|count| *count > 0), "{first:?}");
        traffic.has_mistakes = false;
        assert_eq!(mistakes(&mut traffic, 1_000), [0; 3]);
    }
}
