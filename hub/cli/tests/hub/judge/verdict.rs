//! What is demanded in the end, of what was promised, what arrived, and what the hub says.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::load::{ORDERED, customer, deliveries_of};
use super::log::Ack;
use super::sink::Arrival;
use crate::harness::Client;

/// What a hub must not do.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fault {
    /// It was acknowledged, and is not there any more.
    Lost { event: String, delivery: String },
    /// It neither arrived nor became a dead letter.
    NotEnded { event: String, delivery: String, state: String },
    /// The hub says that it is delivered, and the sink has never taken it.
    NotDelivered { event: String, delivery: String },
    /// It was given up, and the sink has never refused it.
    GivenUp { event: String, delivery: String, why: String },
    /// One event was kept more than once, or one name given to two things.
    Confused(String),
    /// It was sent again within one life of the hub, although the sink had answered.
    SentTwice { event: String, delivery: String },
    /// It came before one that it had to wait for.
    OutOfOrder { before: String, delivery: String },
    /// After a crash it was not sent in time.
    Late(String),
    /// Anything that should not happen.
    Strange(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Waits until all that was promised has ended, and says what is wrong.
pub(crate) fn of(
    acks: &[Ack],
    seen: impl Fn() -> HashMap<String, Vec<Arrival>>,
    hub: &str,
    seed: u64,
) -> Vec<Fault> {
    let mut faults = BTreeSet::new();
    let promised = promised(acks, seed, &mut faults);
    let ended = ended(&promised, hub, &mut faults);
    let seen = seen();
    for (delivery, state) in &ended {
        let event = promised[delivery].to_owned();
        let answered = |status| {
            let all = seen.get(delivery);
            all.is_some_and(|all| all.iter().any(|one| one.answer.is_some_and(|(is, _)| is == status)))
        };
        let delivery = delivery.clone();
        match state["state"].as_str().unwrap_or_default() {
            "delivered" if !answered(200) => {
                faults.insert(Fault::NotDelivered { event, delivery });
            }
            "deadLettered" if !answered(422) => {
                faults.insert(Fault::GivenUp { event, delivery, why: state.to_string() });
            }
            _ => {}
        }
    }
    arrivals(&seen, &promised, &mut faults);
    order(&seen, seed, &mut faults);
    faults.into_iter().collect()
}

/// All that were quarantined so far.
pub(crate) fn quarantined(hub: &str) -> Vec<String> {
    let path = "/api/v1/bridge/deadLetters?reason=poison&page_size=500";
    let Ok((200, answer)) = Client::connect(hub).and_then(|mut client| client.ask("GET", path, "")) else {
        return Vec::new();
    };
    let letters = answer["data"]["deadLetters"].as_array().unwrap();
    letters.iter().map(|letter| letter["id"].as_str().unwrap().to_owned()).collect()
}

/// Which delivery belongs to which event; the same event is acknowledged with the same deliveries each time.
fn promised<'a>(acks: &'a [Ack], seed: u64, faults: &mut BTreeSet<Fault>) -> HashMap<String, &'a str> {
    let (mut events, mut promised) = (HashMap::new(), HashMap::new());
    for Ack { event, deliveries } in acks {
        let first = *events.entry(event).or_insert(deliveries);
        if first != deliveries || deliveries.len() != deliveries_of(seed, event) {
            faults.insert(Fault::Confused(format!("{event} led to {first:?}, and to {deliveries:?}")));
        }
        for delivery in deliveries {
            let of = *promised.entry(delivery.clone()).or_insert(event.as_str());
            if of != event {
                faults.insert(Fault::Confused(format!("{delivery} belongs to {of} and to {event}")));
            }
        }
    }
    promised
}

/// Asks the hub for each delivery until it has ended.
fn ended(
    promised: &HashMap<String, &str>,
    hub: &str,
    faults: &mut BTreeSet<Fault>,
) -> HashMap<String, Value> {
    let mut client = Client::connect(hub).unwrap();
    let (began, mut ended) = (Instant::now(), HashMap::new());
    let mut open: Vec<(&String, &str)> =
        promised.iter().map(|(delivery, event)| (delivery, *event)).collect();
    while !open.is_empty() {
        let in_time = began.elapsed() < Duration::from_secs(60);
        open.retain(|(delivery, event)| {
            let (event, delivery) = ((*event).to_owned(), (*delivery).clone());
            let state = look(&mut client, &delivery);
            match state["state"].as_str() {
                _ if state["event"] != event.as_str() => drop(faults.insert(Fault::Lost { event, delivery })),
                Some("delivered" | "deadLettered") => drop(ended.insert(delivery, state)),
                _ if in_time => return true,
                _ => drop(faults.insert(Fault::NotEnded { event, delivery, state: state.to_string() })),
            }
            false
        });
        std::thread::sleep(Duration::from_millis(20));
    }
    ended
}

fn look(client: &mut Client, delivery: &str) -> Value {
    let (_, mut answer) = client.ask("GET", &format!("/api/v1/bridge/deliveries/{delivery}"), "").unwrap();
    answer["data"].take()
}

/// Whether it has ended; so has everything, if the hub has.
pub(crate) fn has_ended(hub: &str, delivery: &str) -> bool {
    let path = format!("/api/v1/bridge/deliveries/{delivery}");
    let answer = Client::connect(hub).and_then(|mut client| client.ask("GET", &path, ""));
    answer.map_or(true, |(_, answer)| answer["data"]["state"] == "delivered")
}

/// Which of these are not there any more.
pub(crate) fn lost(acks: &[Ack], hub: &str) -> Vec<Fault> {
    let mut client = Client::connect(hub).unwrap();
    let mut lost = Vec::new();
    for Ack { event, deliveries } in acks {
        for delivery in deliveries {
            if look(&mut client, delivery)["event"] != event.as_str() {
                lost.push(Fault::Lost { event: event.clone(), delivery: delivery.clone() });
            }
        }
    }
    lost
}

fn arrivals(
    seen: &HashMap<String, Vec<Arrival>>,
    promised: &HashMap<String, &str>,
    faults: &mut BTreeSet<Fault>,
) {
    let mut names: HashMap<(&str, &str), &str> = HashMap::new();
    for (delivery, arrivals) in seen {
        for Arrival { event, rule, .. } in arrivals {
            let name = *names.entry((event, rule)).or_insert(delivery);
            if name != delivery {
                faults.insert(Fault::Confused(format!("{event} came by {rule} as {name} and as {delivery}")));
            }
            if promised.get(delivery) != Some(&event.as_str()) {
                faults.insert(Fault::Confused(format!(
                    "{delivery} brought {event}, which nobody was promised"
                )));
            }
        }
        // An answer that took long may have come too late for the hub, which then rightly tries again.
        let clear = |one: &Arrival| {
            one.settled() && one.answer.is_some_and(|(_, took)| took < Duration::from_millis(500))
        };
        let again = |(index, one): (usize, &Arrival)| {
            clear(one) && arrivals[index + 1..].iter().any(|other| other.life == one.life)
        };
        if arrivals.iter().enumerate().any(again) {
            let (event, delivery) = (arrivals[0].event.clone(), delivery.clone());
            faults.insert(Fault::SentTwice { event, delivery });
        }
    }
}

/// Of the deliveries of one customer by the rule that keeps the order, none comes before the sink has taken all that were
/// accepted before it. Their names count upwards.
fn order(seen: &HashMap<String, Vec<Arrival>>, seed: u64, faults: &mut BTreeSet<Fault>) {
    let mut customers: HashMap<u64, Vec<(&String, &Vec<Arrival>)>> = HashMap::new();
    for (delivery, arrivals) in seen.iter().filter(|(_, arrivals)| arrivals[0].rule == ORDERED) {
        customers.entry(customer(seed, &arrivals[0].event)).or_default().push((delivery, arrivals));
    }
    for deliveries in customers.values_mut() {
        // By the number, which is the second half: a database server that was promoted gives new ids another first half.
        deliveries.sort_by_key(|(delivery, _)| {
            delivery.split_at_checked(delivery.len() - 16).map(|(_, number)| number)
        });
        for pair in deliveries.windows(2) {
            let [(before, earlier), (delivery, later)] = pair else { continue };
            let taken = earlier.iter().find(|one| one.settled()).map(|one| one.at);
            if taken.is_none_or(|taken| taken > later[0].at) {
                let (before, delivery) = ((*before).clone(), (*delivery).clone());
                faults.insert(Fault::OutOfOrder { before, delivery });
            }
        }
    }
}
