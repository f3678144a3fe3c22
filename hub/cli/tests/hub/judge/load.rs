//! Clients that send events for as long as they are told, over connections that they keep, whatever becomes of the hub.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use super::chance::{Chance, number_of};
use super::log::{Ack, Log};
use crate::harness::Client;

/// How hard the hub is pressed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pressure {
    pub(crate) clients: u64,
    /// Between two events of a client.
    pub(crate) pause: Duration,
    /// An event is so large at most.
    pub(crate) bytes_max: u64,
}

pub(crate) struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

struct Shared {
    seed: u64,
    pressure: Pressure,
    log: Log,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Where the hub is, if it is up.
    address: Option<String>,
    idle: u64,
    stopping: bool,
    /// What was answered how often: the status, and the code of a problem.
    answers: BTreeMap<(u16, String), u64>,
}

impl Load {
    pub(crate) fn start(seed: u64, pressure: Pressure, log: &Log) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { seed, pressure, log: log.clone(), state, changed });
        let start = |number| {
            let shared = shared.clone();
            thread::spawn(move || shared.run(number))
        };
        let clients = (0..pressure.clients).map(start).collect();
        Load { shared, clients }
    }

    /// The hub is there.
    pub(crate) fn up(&self, address: &str) {
        self.shared.state.lock().unwrap().address = Some(address.to_owned());
        self.shared.changed.notify_all();
    }

    /// The hub is gone: returns when every acknowledgement that it gave is in the log.
    pub(crate) fn down(&self) {
        let mut state = self.shared.state.lock().unwrap();
        state.address = None;
        let clients = self.shared.pressure.clients;
        drop(self.shared.changed.wait_while(state, |state| state.idle < clients).unwrap());
    }

    /// Nothing new is sent; what has no clear outcome is sent again until it has.
    pub(crate) fn finish(&mut self) {
        self.shared.state.lock().unwrap().stopping = true;
        self.shared.changed.notify_all();
        for client in self.clients.drain(..) {
            client.join().unwrap();
        }
    }

    /// What was answered how often, beside 202.
    pub(crate) fn answers(&self) -> BTreeMap<(u16, String), u64> {
        self.shared.state.lock().unwrap().answers.clone()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // A judge that fails does not wait for the outcome of what was sent.
        let mut state = self.shared.state.lock().unwrap();
        (state.stopping, state.address) = (true, None);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn run(&self, number: u64) {
        let mut chance = Chance::new(self.seed ^ (number + 1).wrapping_mul(0x5851_F42D_4C95_7F2D));
        let (mut connection, mut count) = (None, 0);
        // Sent, and no clear outcome so far; and acknowledged.
        let (mut unclear, mut clear): (VecDeque<String>, Vec<String>) = Default::default();
        while let Some(address) = self.address(unclear.is_empty()) {
            let again = chance.below(20) == 0 && !clear.is_empty();
            let id = match unclear.pop_front() {
                Some(id) => id,
                None if again => clear[chance.below(clear.len() as u64) as usize].clone(),
                None => {
                    count += 1;
                    format!("e-{number}-{count}")
                }
            };
            match send(&mut connection, &address, &event(self.seed, &id, self.pressure.bytes_max)) {
                Ok((202, answer)) => {
                    self.log.write(ack(&id, &answer));
                    clear.push(id);
                }
                other => {
                    unclear.push_back(id);
                    self.note(&address, other);
                }
            }
            thread::sleep(self.pressure.pause);
        }
    }

    fn note(&self, address: &str, outcome: io::Result<(u16, Value)>) {
        let mut state = self.state.lock().unwrap();
        match outcome {
            Ok((status, answer)) => {
                let code = answer["code"].as_str().unwrap_or_default().to_owned();
                *state.answers.entry((status, code)).or_default() += 1;
            }
            // Nobody is there any more. Whoever crashed it says when there is.
            Err(_) if state.address.as_deref() == Some(address) => {
                drop(state);
                thread::sleep(Duration::from_millis(2));
            }
            Err(_) => {}
        }
    }

    /// Where the hub is, waiting until it is somewhere. Nothing when it is time to end.
    fn address(&self, done: bool) -> Option<String> {
        let mut state = self.state.lock().unwrap();
        loop {
            match &state.address {
                None if state.stopping => return None,
                Some(_) if state.stopping && done => return None,
                Some(address) => return Some(address.clone()),
                None => {}
            }
            state.idle += 1;
            self.changed.notify_all();
            state =
                self.changed.wait_while(state, |state| state.address.is_none() && !state.stopping).unwrap();
            state.idle -= 1;
        }
    }
}

/// Sends an event over the connection that there is, or over a new one.
pub(crate) fn send(connection: &mut Option<Client>, address: &str, event: &str) -> io::Result<(u16, Value)> {
    let mut client = match connection.take().filter(|client| client.address() == address) {
        Some(client) => client,
        None => Client::connect(address)?,
    };
    let answer = client.ask("POST", "/api/v1/bridge/events", event)?;
    *connection = Some(client);
    Ok(answer)
}

/// The event of an id: always the same, so that it can be sent again.
pub(crate) fn event(seed: u64, id: &str, bytes_max: u64) -> String {
    let length = (number_of(seed, &[id, "length"]) % bytes_max) as usize;
    let customer = customer(seed, id).to_string();
    let data = json!({"total": total(seed, id), "customer": customer, "filler": "x".repeat(length)});
    json!({"id": id, "type": "order.created", "data": data}).to_string()
}

fn total(seed: u64, id: &str) -> u64 {
    number_of(seed, &[id, "total"]) % 200
}

/// The events of a customer are delivered in order, by the rule that asks for it. There are many, so that few wait for long.
pub(crate) fn customer(seed: u64, id: &str) -> u64 {
    number_of(seed, &[id, "customer"]) % 200
}

/// The rule whose deliveries are in order.
pub(crate) const ORDERED: &str = "ordered";

/// To how many deliveries an event leads: one for each of the rules that match.
pub(crate) fn deliveries_of(seed: u64, id: &str) -> usize {
    let total = total(seed, id);
    1 + usize::from(total > 100) + usize::from(total < 30)
}

/// A rule for every event, one for about half of them, and one that keeps the order; a peer without a circuit, so that nothing
/// waits for it.
pub(crate) fn registrations(sink: &str) -> [(&'static str, Value); 4] {
    let rule = |name: &str, filter: Option<&str>| {
        let mut rule = json!({
            "name": name, "eventType": "order.*", "service": "sink", "method": "POST",
            "path": format!("/{name}/{{{{ id }}}}"), "body": {"filler": "{{ data.filler }}"},
        });
        if let Some(filter) = filter {
            rule["filter"] = json!(filter);
        }
        rule
    };
    let mut ordered = rule(ORDERED, Some("data.total < 30"));
    ordered["ordering"] = json!({"key": "{{ data.customer }}"});
    // The secret is there because the key to it lies in a file beside the database, and must live as long.
    let service = json!({
        "name": "sink", "type": "http", "address": format!("http://{sink}"),
        "auth": {"type": "bearer", "secret": "a-secret-of-the-sink"}, "policy": {"attempt_timeout": "2s"},
    });
    [
        ("/api/v1/registry/services", service),
        ("/api/v1/registry/rules", rule("all", None)),
        ("/api/v1/registry/rules", rule("large", Some("data.total > 100"))),
        ("/api/v1/registry/rules", ordered),
    ]
}

/// What the hub promised by this answer.
pub(crate) fn ack(id: &str, answer: &Value) -> Ack {
    let deliveries = answer["data"]["deliveries"].as_array().unwrap();
    let deliveries = deliveries.iter().map(|delivery| delivery.as_str().unwrap().to_owned()).collect();
    Ack { event: id.to_owned(), deliveries }
}
