//! The hub from outside: the real binary, over HTTP, against a peer that can be broken and healed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Client, Hub, KEY, until, within};
use crate::peer::{Peer, PeerBehavior};

const SECRET: &str = "s3cr3t-0f-b1lling";

fn billing(peer: &Peer) -> Value {
    json!({
        "name": "billing", "type": "http", "address": peer.address, "auth": {"type": "bearer", "secret": SECRET},
        "policy": {
            "attempt_timeout": "500ms", "breaker": {"consecutive_failures": 5, "cooldown": "200ms"}, "bulkhead": {},
        },
    })
}

fn invoices() -> Value {
    json!({
        "name": "invoices", "eventType": "order.*", "filter": "data.total > 100", "service": "billing", "method": "POST",
        "path": "/invoices/{{ data.id }}", "headers": {"x-order": "{{ data.id }}"},
        "body": {"order": "{{ data.id }}", "amount": "{{ data.total }}"}, "delivery": {"base": "20ms", "cap": "100ms"},
    })
}

/// By its own schedule, what fails once is tried again after five minutes at the soonest.
fn patient() -> Value {
    json!({"name": "patient", "eventType": "wait.*", "service": "billing", "path": "/wait", "delivery": {"base": "10m"}})
}

fn order(id: &str, total: f64) -> Value {
    json!({"id": id, "type": "order.created", "data": {"id": id, "total": total}})
}

fn wait(id: &str) -> Value {
    json!({"id": id, "type": "wait.long", "data": {}})
}

struct Story {
    folder: TempDir,
    peer: Peer,
    hub: Hub,
}

/// HUB-1, HUB-3, HUB-4, HUB-5, HUB-7, HUB-10, PRM-1, PRM-2, PRM-7, PRM-9: a thousand events arrive once; an outage of three
/// kinds opens the circuit and costs nothing but time; a refusal is a dead letter that can be replayed; `kill -9` loses nothing,
/// and the secret is nowhere but on the wire. Traps "an open circuit burns the event's five attempts", "replay sends the
/// rendered payload through the template again", "a dead letter lacks rule, endpoint, method, attempts, status".
#[test]
fn hub_5_the_whole_story_from_outside() {
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    let hub = Hub::start(folder.path());
    let mut story = Story { folder, peer, hub };
    story.register();
    story.a_thousand_arrive_once();
    story.nothing_is_dropped_silently();
    let waiting = story.an_outage_of_three_kinds();
    story.killed_and_started_again();
    story.healed_all_arrive_once(&waiting);
    let dead = story.a_refusal_is_a_dead_letter();
    story.replayed_in_both_modes(&dead);
    story.a_paused_service_holds();
    story.the_secret_stands_in_no_file();
}

impl Story {
    fn register(&self) {
        let Story { hub, peer, .. } = self;
        assert_eq!(hub.ask("GET", "/actuator/health", "", "").0, 200);
        assert_eq!(hub.ask("GET", "/api/v1/registry/services", "wrong", "").0, 401);
        let (status, answer) = hub.post("/api/v1/registry/services", &billing(peer));
        assert_eq!((status, &answer["data"]["version"]), (201, &json!(1)), "{answer}");
        assert!(!answer.to_string().contains(SECRET));
        for rule in [invoices(), patient()] {
            let (status, answer) = hub.post("/api/v1/registry/rules", &rule);
            assert_eq!(status, 201, "{answer}");
        }
    }

    fn a_thousand_arrive_once(&self) {
        let Story { hub, peer, .. } = self;
        let senders: Vec<_> = (0..4)
            .map(|sender| {
                let mut client = Client::connect(&hub.address).unwrap();
                std::thread::spawn(move || {
                    for n in 0..250 {
                        let event = order(&format!("A-{sender}-{n}"), 120.5).to_string();
                        let (status, answer) = client.ask("POST", "/api/v1/bridge/events", &event).unwrap();
                        assert_eq!((status, &answer["status"]), (202, &json!("accepted")), "{answer}");
                    }
                })
            })
            .collect();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        until("a thousand arrive", || peer.count() >= 1_000);
        let delivered = self.all_in("delivered", 1_000);
        assert!(delivered.iter().all(|delivery| delivery["failures"] == 0 && delivery["rule"] == "invoices"));
        let names: BTreeSet<String> =
            delivered.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
        let arrived = peer.arrived();
        assert!(
            arrived.values().all(|times| *times == 1)
                && arrived.keys().cloned().collect::<BTreeSet<_>>() == names
        );
        assert_eq!(peer.count(), 1_000, "each once on the wire");
        let request = peer.requests().into_iter().find(|got| got.header("x-order") == Some("A-0-7")).unwrap();
        assert_eq!(request.request_line(), "POST /invoices/A-0-7");
        assert_eq!(request.header("authorization"), Some(&*format!("Bearer {SECRET}")));
        assert_eq!(request.text(), r#"{"amount":120.5,"order":"A-0-7"}"#);
    }

    /// What is in a state, as soon as it is so many.
    fn all_in(&self, state: &str, count: usize) -> Vec<Value> {
        let mut found = Vec::new();
        until(&format!("{count} are {state}"), || {
            found = self.hub.all(&format!("/api/v1/bridge/deliveries?state={state}"), "deliveries", 500);
            found.len() >= count
        });
        assert_eq!(found.len(), count);
        found
    }

    fn nothing_is_dropped_silently(&self) {
        let hub = &self.hub;
        let (_, filtered) = hub.post("/api/v1/bridge/events", &order("A-8", 5.0));
        let data = &filtered["data"];
        assert_eq!(
            (&data["deliveries"], &data["filtered"], &data["unmatched"]),
            (&json!([]), &json!(1), &json!(false))
        );
        let (_, unmatched) = hub.post("/api/v1/bridge/events", &json!({"id": "U-1", "type": "nobody.cares"}));
        assert_eq!(unmatched["data"]["unmatched"], json!(true), "{unmatched}");
        let kept = hub.all("/api/v1/bridge/events?unmatched=true", "events", 10);
        assert_eq!((kept.len(), &kept[0]["event"]["id"]), (1, &json!("U-1")));
        let small = hub.get("/api/v1/bridge/events/A-8");
        assert_eq!((&small["rulesConsidered"], &small["rulesFiltered"]), (&json!(1), &json!(1)));
        let (status, again) = hub.post("/api/v1/bridge/events", &order("A-0-7", 120.5));
        assert_eq!((status, &again["data"]["deduplicated"]), (202, &json!(true)));
        assert_eq!(hub.post("/api/v1/bridge/events", &order("A-0-7", 999.0)).0, 422);
    }

    /// Opens the circuit, and leaves it so for some probes.
    fn watch_it_open(&self) {
        let opened = |hub: &Hub| hub.circuit("billing")["opened"].as_u64().unwrap();
        let before = opened(&self.hub);
        until("the circuit opens, and opens again after failed probes", || opened(&self.hub) >= before + 3);
        assert_eq!(self.hub.all("/api/v1/bridge/deadLetters", "deadLetters", 10), [] as [Value; 0]);
    }

    /// Answers of 500, then silence, then no connection. What has met only the last two has lost no attempt.
    fn an_outage_of_three_kinds(&self) -> Vec<Value> {
        let Story { hub, peer, .. } = self;
        peer.behave(PeerBehavior::Respond(500));
        let mut all: Vec<Value> = (0..40).flat_map(|n| hub.send(&order(&format!("B-{n}"), 200.0))).collect();
        self.watch_it_open();
        peer.behave(PeerBehavior::Hang);
        let mut patient: Vec<Value> = (0..30).flat_map(|n| hub.send(&wait(&format!("H-{n}")))).collect();
        self.watch_it_open();
        peer.refuse_connections();
        patient.extend((0..30).flat_map(|n| hub.send(&wait(&format!("R-{n}")))));
        self.watch_it_open();
        let health = hub.get("/actuator/health");
        assert_eq!(health["circuitsNotClosed"][0]["service"], json!("billing"));
        let mut tried = 0;
        for id in &patient {
            let delivery = hub.delivery(id);
            assert_eq!(delivery["counted"], 0, "an outage costs no attempts: {delivery}");
            assert!(
                ["pending", "waiting", "inFlight"].contains(&delivery["state"].as_str().unwrap()),
                "{delivery}"
            );
            tried += delivery["attempts"].as_array().unwrap().len();
        }
        assert!(tried < 100, "while the circuit is open hardly anything is tried: {tried}");
        all.extend(patient);
        all
    }

    /// A circuit that was open is open after a restart, for as long as it was to be.
    fn killed_and_started_again(&mut self) {
        let hub = &self.hub;
        let ledger = json!({
            "name": "ledger", "address": self.peer.address, "policy": {"breaker": {"consecutive_failures": 1, "cooldown": "1h"}},
        });
        hub.must("POST", "/api/v1/registry/services", &ledger);
        let book = json!({"name": "book", "eventType": "ledger.*", "service": "ledger", "delivery": {"base": "10m"}});
        hub.must("POST", "/api/v1/registry/rules", &book);
        let id = hub.send(&json!({"id": "L-1", "type": "ledger.entry", "data": {}})).remove(0);
        let tried = hub.wait_for(&id, "waiting");
        assert_eq!(
            (&tried["waitsFor"], &hub.circuit("ledger")["state"]),
            (&json!("circuit"), &json!("open"))
        );
        // `drop` kills it with -9.
        let _ = self.hub.process.kill();
        self.hub = Hub::start(self.folder.path());
        let circuit = self.hub.circuit("ledger");
        assert_eq!(
            (&circuit["state"], &circuit["history"][0]["state"]),
            (&json!("open"), &json!("open")),
            "{circuit}"
        );
        self.peer.recover(PeerBehavior::Respond(200));
        // Nobody knocks while it is open, though its time may come; a person who knows better resets it.
        let kept = self.hub.delivery(&id);
        assert_eq!((&kept["state"], &kept["failures"]), (&json!("waiting"), &json!(1)));
        self.hub.must(
            "POST",
            "/api/v1/registry/services/ledger/circuit:reset",
            &json!({"reason": "it is back"}),
        );
        self.hub.wait_for(&id, "delivered");
    }

    /// By their schedule, sixty of them would wait for minutes.
    fn healed_all_arrive_once(&self, waiting: &[Value]) {
        let Story { hub, peer, .. } = self;
        within(Duration::from_secs(10), "what has waited comes forward", || {
            waiting.iter().all(|id| hub.delivery(id)["state"] == "delivered")
        });
        until("the circuit closes", || hub.circuit("billing")["state"] == "closed");
        let moves: Vec<Value> = hub.circuit("billing")["history"].as_array().unwrap().clone();
        assert_eq!(moves[0]["state"], "closed");
        assert!(moves.iter().any(|one| one["state"] == "open"));
        let arrived = peer.arrived();
        for id in waiting {
            assert_eq!(arrived.get(id.as_str().unwrap()), Some(&1), "{}", hub.delivery(id));
        }
        assert_eq!(hub.all("/api/v1/bridge/deadLetters", "deadLetters", 10), [] as [Value; 0]);
    }

    fn a_refusal_is_a_dead_letter(&self) -> Value {
        let Story { hub, peer, .. } = self;
        peer.behave(PeerBehavior::Respond(422));
        peer.set_body(r#"{"error":"no such customer"}"#);
        peer.forget();
        let id = hub.send(&order("C-1", 200.0)).remove(0);
        hub.wait_for(&id, "deadLettered");
        let dead = hub.get(&format!("/api/v1/bridge/deadLetters/{}", id.as_str().unwrap()));
        assert_eq!(
            (&dead["reason"], &dead["status"], &dead["rule"]),
            (&json!("refused"), &json!(422), &json!("invoices"))
        );
        assert_eq!(
            (&dead["ruleVersion"], &dead["service"], &dead["failures"]),
            (&json!(1), &json!("billing"), &json!(1))
        );
        assert_eq!(
            (&dead["rawEvent"]["data"]["total"], &dead["request"]["method"]),
            (&json!(200.0), &json!("POST"))
        );
        assert_eq!(dead["request"]["url"], json!(format!("{}/invoices/C-1", peer.address)));
        assert_eq!(dead["request"]["body"], json!({"order": "C-1", "amount": 200.0}));
        let attempt = &dead["attempts"][0];
        assert_eq!(
            (&attempt["status"], dead["attempts"].as_array().unwrap().len()),
            (&json!(422), 1),
            "at once"
        );
        assert_eq!(attempt["answer"], json!(r#"{"error":"no such customer"}"#));
        assert_eq!(attempt["sent"]["line"], json!(format!("POST {}/invoices/C-1", peer.address)));
        assert_eq!(attempt["sent"]["headers"]["x-order"], json!("C-1"));
        assert!(!dead.to_string().contains(SECRET), "evidence without credentials: {dead}");
        id
    }

    /// Trap "replay sends the rendered payload through the template again": the same bytes, or today's rule once.
    fn replayed_in_both_modes(&self, dead: &Value) {
        let Story { hub, peer, .. } = self;
        let first = peer.only();
        peer.behave(PeerBehavior::Respond(200));
        let change = json!({"body": {"invoice": "{{ data.id }}"}});
        hub.must("PATCH", "/api/v1/registry/rules/invoices", &change);
        let path = format!("/api/v1/bridge/deadLetters/{}", dead.as_str().unwrap());
        for (mode, again, body) in
            [("same", false, first.text()), ("render", true, r#"{"invoice":"C-1"}"#.into())]
        {
            peer.forget();
            let replay = hub.must("POST", &format!("{path}:replay"), &json!({"mode": mode, "again": again}));
            let delivery = hub.wait_for(&replay["delivery"], "delivered");
            assert_eq!((&delivery["replayOf"], &delivery["failures"]), (dead, &json!(0)), "fresh attempts");
            let got = peer.only();
            assert_eq!((got.request_line(), got.text()), (first.request_line(), body), "{mode}");
            assert_eq!(got.header("seawall-replayed"), Some("true"));
            assert_eq!(got.header("seawall-replay-of"), dead.as_str());
            assert_eq!(got.header("seawall-delivery"), replay["delivery"].as_str());
            for same in ["seawall-event", "seawall-event-time"] {
                assert_eq!(got.header(same), first.header(same), "{same} is the first one's");
            }
            assert_eq!(first.header("seawall-replayed"), None);
            let letter = hub.get(&path);
            assert_eq!(
                (&letter["replayed"]["as"], &letter["replayed"]["state"]),
                (&replay["delivery"], &json!("delivered"))
            );
        }
        let (status, answer) = hub.post(&format!("{path}:replay"), &json!({}));
        assert_eq!((status, &answer["code"]), (409, &json!("conflict")), "{answer}");
    }

    fn a_paused_service_holds(&self) {
        let Story { hub, peer, .. } = self;
        peer.forget();
        hub.must("POST", "/api/v1/registry/services/billing:pause", &Value::Null);
        let ids: Vec<Value> = (0..5).flat_map(|n| hub.send(&wait(&format!("P-{n}")))).collect();
        for id in &ids {
            let held = hub.delivery(id);
            assert_eq!((&held["state"], &held["waitsFor"]), (&json!("held"), &json!("service")));
        }
        assert_eq!(self.all_in("held", 5).len(), 5, "held is what a list of the held shows");
        assert_eq!(peer.count(), 0);
        hub.must("POST", "/api/v1/registry/services/billing:resume", &Value::Null);
        ids.iter().for_each(|id| drop(hub.wait_for(id, "delivered")));
        assert_eq!(peer.count(), 5);
    }

    fn the_secret_stands_in_no_file(mut self) {
        let _ = self.hub.process.kill();
        let _ = self.hub.process.wait();
        for file in std::fs::read_dir(self.folder.path()).unwrap().flatten() {
            let bytes = std::fs::read(file.path()).unwrap();
            assert!(!bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()), "{:?}", file.path());
        }
    }
}

/// API-1, API-2: what is wrong is said field by field, and nothing is kept of it.
#[test]
fn api_2_wrong_input_gets_a_clear_word() {
    let folder = TempDir::new().unwrap();
    let hub = Hub::start(folder.path());
    let fields = |(status, answer): (u16, Value)| {
        assert_eq!((status, &answer["code"]), (422, &json!("invalid")), "{answer}");
        answer["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| {
                format!("{}: {}", error["field"].as_str().unwrap(), error["reason"].as_str().unwrap())
            })
            .collect::<Vec<_>>()
    };
    let wrong = json!({"name": "Billing!", "address": "ftp://x", "polcy": {}, "headers": {"x": 1}, "auth": {"type": "bearer"}});
    let service = fields(hub.post("/api/v1/registry/services", &wrong)).join("\n");
    for word in [
        "name: `Billing!` is not a valid name",
        "address: must start with",
        "polcy: unknown field, did you mean `policy`? Known: name",
        "headers.x: must be a string",
        "auth.secret: required",
    ] {
        assert!(service.contains(word), "{word} is not in\n{service}");
    }
    let policy =
        json!({"name": "billing", "address": "http://127.0.0.1:1", "policy": {"breaker": {"cooldwn": "3s"}}});
    let policy = fields(hub.post("/api/v1/registry/services", &policy)).join("\n");
    assert!(policy.contains("policy.breaker.cooldwn: no such key"), "{policy}");
    let rule = json!({"name": "r", "eventType": "order.*", "service": "nobody", "body": {"a": "{{ data.x | sha1 }}"}});
    assert!(
        fields(hub.post("/api/v1/registry/rules", &rule))
            .join("\n")
            .contains("service: there is no service `nobody`")
    );
    assert_eq!(hub.ask("POST", "/api/v1/bridge/events", KEY, "{no json").0, 400);
    assert!(
        fields(hub.post("/api/v1/bridge/events", &json!({"type": "a b"})))
            .join("\n")
            .contains("id: required")
    );
    assert_eq!(hub.ask("GET", "/api/v1/nothing", KEY, "").0, 404);
    assert_eq!(hub.ask("GET", "/api/v1/bridge/deliveries/dlv_1", KEY, "").0, 404);
    assert_eq!(hub.ask("GET", "/api/v1/registry/services", KEY, "").1["data"], json!([]));
}

/// SEC-1, PRM-1: a key that can be guessed is refused, and so is a second process on the same folder, each with a word.
#[test]
fn sec_1_a_short_key_and_a_second_process_are_refused() {
    let folder = TempDir::new().unwrap();
    let run = |key: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_seawall"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.path())
            .env("SEAWALL_ADMIN_KEY", key)
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (fine, said) = run("short");
    assert!(!fine && said.contains("at least 16 characters"), "{said}");
    let _first = Hub::start(folder.path());
    let (fine, said) = run("long-enough-to-be-one");
    assert!(!fine && said.contains("another process uses it"), "{said}");
}
