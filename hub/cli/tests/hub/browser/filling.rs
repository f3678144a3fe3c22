//! Hubs on which something has happened.

use serde_json::{Value, json};

use super::{ALERTS, BATCH, GROUPS, KEYS, LETTERS, OPERATIONS, RULES, SERVICES, SOURCES};
use crate::harness::{Hub, until};
use crate::peer::{Peer, PeerBehavior};

/// Where things are on a hub that was filled.
pub(super) struct Filled {
    /// By the names that the table of pages has for them.
    names: Vec<(&'static str, String)>,
    /// They answer as long as this is there.
    _peers: Vec<Peer>,
}

impl Filled {
    pub(super) fn get(&self, name: &str) -> &str {
        let found = self.names.iter().find(|(known, _)| *known == name);
        found.map_or_else(|| panic!("nothing is called {name}"), |(_, value)| value.as_str())
    }

    /// A path of the table of pages, for this hub.
    pub(super) fn path(&self, pattern: &str) -> String {
        self.names.iter().fold(pattern.to_owned(), |path, (name, value)| {
            path.replace(&format!("{{{name}}}"), &encoded(value))
        })
    }
}

fn encoded(text: &str) -> String {
    let byte = |byte: u8| {
        let plain = byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        if plain { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(byte).collect()
}

pub(super) fn order(id: &str, n: u32) -> Value {
    let customers = ["Ada Lovelace", "Grace Hopper", "Mary Shaw", "Barbara Liskov"];
    json!({
        "id": id, "type": "order.created", "source": "/shop/eu",
        "data": {"id": id, "total": 19.5 + f64::from(n), "customer": {"name": customers[n as usize % 4], "country": "DE"}},
    })
}

pub(super) fn send_all(hub: &Hub, events: &[Value]) {
    for events in events.chunks(100) {
        hub.must("POST", BATCH, &json!({"events": events}));
    }
}

pub(super) fn service(name: &str, peer: &Peer) -> Value {
    json!({
        "name": name, "address": peer.address,
        "policy": {"attempt_timeout": "2s", "breaker": {"consecutive_failures": 5, "cooldown": "5m"}, "bulkhead": {}},
    })
}

/// What the rule `invoices` sends. Billing wants the currency in three letters.
pub(super) fn invoice(currency: &str) -> Value {
    json!({"order": "{{ data.id }}", "amount": "{{ data.total }}", "currency": currency})
}

/// A service that refuses what a rule makes of so many orders: they are one group, and the rule is to blame.
pub(super) fn refused(hub: &Hub, orders: u32) -> Peer {
    let billing = Peer::start();
    billing.require(r#""currency":"EUR""#);
    billing.set_body(r#"{"error":"currency must have three letters"}"#);
    hub.must("POST", SERVICES, &service("billing", &billing));
    let rule = json!({
        "name": "invoices", "eventType": "order.*", "service": "billing", "path": "/invoices/{{ data.id }}",
        "headers": {"x-order": "{{ data.id }}"}, "body": invoice("EURO"), "note": "one invoice for each order",
    });
    hub.must("POST", RULES, &rule);
    let events: Vec<Value> = (0..orders).map(|n| order(&format!("order-{}", 4_000 + n), n)).collect();
    send_all(hub, &events);
    until("all are refused", || only_group(hub)["counts"]["open"] == orders);
    billing
}

pub(super) fn only_group(hub: &Hub) -> Value {
    hub.get(&format!("{GROUPS}?service=billing"))["deadLetterGroups"][0].clone()
}

/// As a hub looks on a day on which some things do not go well.
pub(super) fn a_day(hub: &Hub) -> Filled {
    let (shipping, mail, partner) = (Peer::start(), Peer::start(), Peer::start());
    mail.behave(PeerBehavior::Respond(503));
    mail.set_body(r#"{"error":"the queue is full"}"#);
    let duty = Peer::start();
    told(hub, &duty, "/hooks/duty");
    let billing = refused(hub, 120);
    for (name, peer) in [("shipping", &shipping), ("mail", &mail), ("partner", &partner)] {
        hub.must("POST", SERVICES, &service(name, peer));
    }
    for (name, kind, to) in [
        ("parcels", "parcel.*", "shipping"),
        ("receipts", "mail.*", "mail"),
        ("partner-sync", "sync.*", "partner"),
    ] {
        let rule = json!({"name": name, "eventType": kind, "service": to, "path": "/{{ data.id }}"});
        hub.must("POST", RULES, &rule);
    }
    hub.must("POST", &format!("{SERVICES}/partner:pause"), &json!({"reason": "they move house"}));
    let of = |kind: &str, n: u32| {
        let mut event = order(&format!("{kind}-{n}"), n);
        event["type"] = json!(format!("{kind}.created"));
        event
    };
    let kinds = [("parcel", 40), ("mail", 12), ("sync", 6), ("nobody", 3)];
    let events: Vec<Value> =
        kinds.iter().flat_map(|(kind, count)| (0..*count).map(|n| of(kind, n))).collect();
    send_all(hub, &events);
    until("parcels have come", || shipping.arrived().len() == 40);
    shipping.behave(PeerBehavior::Respond(404));
    shipping.set_body(r#"{"error":"no such warehouse"}"#);
    send_all(hub, &[of("parcel", 90), of("parcel", 91), of("parcel", 92)]);
    until("the circuit of mail opens", || hub.circuit("mail")["state"] == "open");
    stripe(hub, "stripe.event");
    hub.must("POST", KEYS, &json!({"name": "shop", "scopes": ["ingest"]}));
    until("three parcels are refused", || {
        hub.get(&format!("{LETTERS}?service=shipping"))["deadLetters"].as_array().unwrap().len() == 3
    });
    worked_on(hub, vec![billing, shipping, mail, partner, duty])
}

/// Somebody is told of dead letters at once.
fn told(hub: &Hub, duty: &Peer, path: &str) {
    let rule = json!({"kind": "deadLetters", "moreThan": 1, "window": "5m", "for": "0s"});
    hub.must("PUT", "/api/v1/ops/alertRules/dead-letters", &rule);
    let hook = json!({"type": "webhook", "url": format!("{}{path}", duty.address)});
    hub.must("PUT", "/api/v1/ops/alertChannels/duty", &hook);
}

/// The alert about billing, as soon as there is one.
fn alert(hub: &Hub) -> String {
    let mut found = Value::Null;
    until("there is an alert", || {
        found = hub.get(&format!("{ALERTS}?service=billing"))["alerts"][0]["id"].clone();
        found.is_string()
    });
    found.as_str().unwrap().to_owned()
}

fn stripe(hub: &Hub, kind: &str) {
    let verify = json!({"type": "bearer", "secrets": ["whsec-0123456789abcdef"]});
    hub.must("POST", SOURCES, &json!({"name": "stripe", "eventType": kind, "verify": verify}));
}

/// Somebody has tried a replay that did not help, and has written down what they know.
fn worked_on(hub: &Hub, peers: Vec<Peer>) -> Filled {
    let group = only_group(hub)["fingerprint"].as_str().unwrap().to_owned();
    let at = format!("{GROUPS}/{group}");
    hub.must("PATCH", &at, &json!({"note": "Billing is stricter since this morning; asked them about it."}));
    let begun =
        hub.must("POST", &format!("{at}:replay"), &json!({"reason": "perhaps it was only this morning"}));
    let operation = begun["id"].as_str().unwrap().to_owned();
    until("the canary stops it", || hub.get(&format!("{OPERATIONS}/{operation}"))["state"] == "stopped");
    names_of(hub, group, operation, peers)
}

fn names_of(hub: &Hub, group: String, operation: String, peers: Vec<Peer>) -> Filled {
    let letters = hub.get(&format!("{LETTERS}?service=billing&standing=open"));
    let letter = &letters["deadLetters"][0];
    let (id, event) = (letter["id"].as_str().unwrap(), letter["event"].as_str().unwrap());
    let names = vec![
        ("group", group),
        ("operation", operation),
        ("letter", id.to_owned()),
        ("delivery", id.to_owned()),
        ("event", event.to_owned()),
        ("service", "billing".into()),
        ("rule", "invoices".into()),
        ("source", "stripe".into()),
        ("alert", alert(hub)),
        ("alertRule", "dead-letters".into()),
        ("channel", "duty".into()),
    ];
    Filled { names, _peers: peers }
}

/// Texts that do harm where they are not taken as texts.
pub(super) const EVIL: [&str; 4] = [
    "<script>window.pwned=1</script>",
    "\"><img src=x onerror=window.pwned=1>",
    "{{ 7*7 }}",
    "javascript:window.pwned=1",
];

/// All of them in one.
pub(super) fn evil() -> String {
    EVIL.join(" ")
}

/// A hub on which every text that somebody can choose is hostile.
pub(super) fn hostile(hub: &Hub) -> Filled {
    let (billing, evil) = (Peer::start(), evil());
    told(hub, &billing, "/'onerror=window.pwned=1/javascript:window.pwned=1");
    billing.behave(PeerBehavior::Respond(422));
    billing.set_body(&json!({"error": evil, "detail": evil}).to_string());
    billing.set_header("x-evil", "<script>window.pwned=1</script>");
    let mut service = service("billing", &billing);
    // A template of its own would be taken as one.
    service["headers"] =
        json!({"x-evil": "<script>window.pwned=1</script>\"><img src=x onerror=window.pwned=1>"});
    service["address"] = json!(format!("{}/a\"><img src=x onerror=window.pwned=1>", billing.address));
    let (status, _) = hub.post(SERVICES, &service);
    if status >= 300 {
        service["address"] = json!(billing.address);
        hub.must("POST", SERVICES, &service);
    }
    // Braces would be a template of the rule's own; those of an event are not.
    let raw = "<script>window.pwned=1</script> {{ data.id }}";
    let rule = json!({
        "name": "invoices", "eventType": "*", "service": "billing", "path": "/{{ data.id }}", "note": evil,
        "headers": {"x-evil": raw}, "body": {"text": raw},
    });
    hub.must("POST", RULES, &rule);
    for (n, text) in EVIL.iter().enumerate() {
        // Ids, types and sources have no spaces, and types no stars; they are as hostile without them.
        let tight = text.replace(' ', "/").replace('*', "+");
        let event = json!({
            "id": format!("{n}-{tight}"), "type": format!("order.{tight}"), "source": format!("/shop/{tight}"),
            "subject": text, "data": {"id": format!("{n} {text}"), (*text): [evil, {"inner": evil}]},
        });
        let (status, answer) = hub.post("/api/v1/bridge/events", &event);
        assert!(status < 300, "{status} {answer}");
    }
    until("all are refused", || only_group(hub)["counts"]["open"] == EVIL.len());
    let group = only_group(hub)["fingerprint"].as_str().unwrap().to_owned();
    let at = format!("{GROUPS}/{group}");
    hub.must("PATCH", &at, &json!({"note": evil}));
    let begun = hub.must("POST", &format!("{at}:replay"), &json!({"reason": evil}));
    let operation = begun["id"].as_str().unwrap().to_owned();
    until("the canary stops it", || hub.get(&format!("{OPERATIONS}/{operation}"))["state"] == "stopped");
    let filled = names_of(hub, group, operation, vec![billing]);
    stripe(hub, "stripe.<script>window.pwned=1</script>");
    let alert = format!("{ALERTS}/{}", filled.get("alert"));
    hub.must("POST", &format!("{alert}:acknowledge"), &json!({"reason": evil}));
    hub.must("POST", &format!("{alert}:mute"), &json!({"for": "1h", "reason": evil}));
    let letter = format!("{LETTERS}/{}", filled.get("letter"));
    hub.must("PATCH", &letter, &json!({"note": evil}));
    for key in EVIL {
        // A name that is refused can't be shown.
        let _ = hub.post(KEYS, &json!({"name": key, "scopes": ["read"]}));
    }
    filled
}
