//! The hub from outside: the real binary, over HTTP, against a peer that can be broken and healed.

#![expect(clippy::disallowed_methods, reason = "it looks at another process, and waits for it")]

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Hub, KEY, Peer};

fn billing(peer: &Peer) -> Value {
    json!({
        "name": "billing", "type": "http", "address": peer.address, "auth": {"type": "bearer", "secret": "s3cr3t-0f-b1lling"},
        "policy": {"attempt_timeout": "2s", "breaker": {"consecutive_failures": 3, "cooldown": "300ms"}, "bulkhead": {}},
    })
}

fn invoices() -> Value {
    json!({
        "name": "invoices", "eventType": "order.*", "filter": "data.total > 100", "service": "billing", "method": "POST",
        "path": "/invoices/{{ data.id }}", "headers": {"x-order": "{{ data.id }}"},
        "body": {"order": "{{ data.id }}", "amount": "{{ data.total }}"},
    })
}

fn order(id: &str, total: f64) -> Value {
    json!({"id": id, "type": "order.created", "data": {"id": id, "total": total}})
}

/// HUB-1, HUB-3, HUB-4, HUB-5, HUB-10, PRM-1, PRM-9: register, send, deliver; an outage waits and comes forward; a refusal is a dead
/// letter; `kill -9` loses nothing that was acknowledged; the secret is nowhere but on the wire.
#[test]
fn hub_5_the_story_from_outside() {
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    let hub = Hub::start(folder.path());
    assert_eq!(hub.ask("GET", "/actuator/health", "", "").0, 200);
    assert_eq!(hub.ask("GET", "/api/v1/registry/services", "wrong", "").0, 401);

    let (status, answer) = hub.post("/api/v1/registry/services", &billing(&peer));
    assert_eq!((status, &answer["data"]["version"]), (201, &json!(1)), "{answer}");
    assert!(!answer.to_string().contains("s3cr3t"));
    let (status, answer) = hub.post("/api/v1/registry/rules", &invoices());
    assert_eq!(status, 201, "{answer}");

    // An event that arrives, one that is filtered, one that was there before, and one that contradicts it.
    let (status, answer) = hub.post("/api/v1/bridge/events", &order("A-7", 120.5));
    assert_eq!((status, &answer["status"]), (202, &json!("accepted")));
    let first = answer["data"]["deliveries"][0].clone();
    let delivered = hub.wait_for(&first, "delivered");
    assert_eq!((&delivered["attempts"][0]["status"], &delivered["rule"]), (&json!(200), &json!("invoices")));
    let request = peer.got.lock().unwrap()[0].clone();
    assert!(request.starts_with("POST /invoices/A-7 HTTP/1.1"), "{request}");
    assert!(
        request.contains("authorization: Bearer s3cr3t-0f-b1lling") && request.contains("x-order: A-7"),
        "{request}"
    );
    assert!(request.ends_with(r#"{"amount":120.5,"order":"A-7"}"#), "{request}");
    let (_, filtered) = hub.post("/api/v1/bridge/events", &order("A-8", 5.0));
    assert_eq!((&filtered["data"]["deliveries"], &filtered["data"]["filtered"]), (&json!([]), &json!(1)));
    let (status, again) = hub.post("/api/v1/bridge/events", &order("A-7", 120.5));
    assert_eq!(
        (status, &again["data"]["deduplicated"], &again["data"]["deliveries"][0]),
        (202, &json!(true), &first)
    );
    assert_eq!(hub.post("/api/v1/bridge/events", &order("A-7", 999.0)).0, 422);

    // An outage: the circuit opens, deliveries wait; the process is killed in the middle; healed, all arrive.
    *peer.status.lock().unwrap() = 503;
    let ids: Vec<Value> = (0..50)
        .map(|n| {
            let (status, answer) = hub.post("/api/v1/bridge/events", &order(&format!("B-{n}"), 200.0));
            assert_eq!(status, 202);
            answer["data"]["deliveries"][0].clone()
        })
        .collect();
    let began = Instant::now();
    while hub.ask("GET", "/actuator/health", "", "").1["data"]["circuitsNotClosed"] == json!([]) {
        assert!(began.elapsed() < Duration::from_secs(20), "the circuit does not open");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(hub);
    let hub = Hub::start(folder.path());
    *peer.status.lock().unwrap() = 200;
    for id in &ids {
        hub.wait_for(id, "delivered");
    }

    // A change that does not name the secret keeps it.
    let mut again = billing(&peer);
    again.as_object_mut().unwrap().remove("auth");
    let (status, answer) = hub.post("/api/v1/registry/services", &again);
    assert_eq!(
        (status, &answer["data"]["version"], &answer["data"]["auth"]["type"]),
        (200, &json!(2), &json!("bearer"))
    );

    // A refusal is a dead letter with what the peer said.
    *peer.status.lock().unwrap() = 422;
    let (_, answer) = hub.post("/api/v1/bridge/events", &order("C-1", 200.0));
    let dead = hub.wait_for(&answer["data"]["deliveries"][0], "deadLettered");
    assert_eq!((&dead["reason"], &dead["attempts"][0]["answer"]), (&json!("refused"), &json!("ok")));

    // The secret stands in no file of the folder.
    drop(hub);
    for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(!bytes.windows(17).any(|part| part == b"s3cr3t-0f-b1lling"), "{:?}", file.path());
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
        "name: `Billing!` can't be a name",
        "address: it begins with",
        "polcy: no such field; there are name",
        "headers.x: a text is expected",
        "auth.secret: it is missing",
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
            .contains("id: it is missing")
    );
    assert_eq!(hub.ask("GET", "/api/v1/nothing", KEY, "").0, 404);
    assert_eq!(hub.ask("GET", "/api/v1/bridge/deliveries/dlv_1", KEY, "").0, 404);
    assert_eq!(hub.ask("GET", "/api/v1/registry/services", KEY, "").1["data"], json!([]));
}

/// SEC-1: it refuses to listen beyond this machine, and says so; a second process on the same folder is refused too.
#[test]
fn sec_1_it_listens_on_this_machine_only() {
    let folder = TempDir::new().unwrap();
    let run = |listen: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_seawall"))
            .args(["serve", "--listen", listen, "--data-dir"])
            .arg(folder.path())
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (fine, said) = run("0.0.0.0:0");
    assert!(!fine && said.contains("is not on this machine only"), "{said}");
    let _first = Hub::start(folder.path());
    let (fine, said) = run("127.0.0.1:0");
    assert!(!fine && said.contains("another process uses it"), "{said}");
}
