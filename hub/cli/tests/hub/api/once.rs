//! API-1: what creates something happens once under an `Idempotency-Key`.

use serde_json::{Value, json};

use super::{RULES, SERVICES, Scene, everything};
use crate::harness::Reply;

const SOURCES: &str = "/api/v1/registry/sources";
const KEYS: &str = "/api/v1/registry/keys";
const NEW: [(&str, &str); 2] = [("Idempotency-Key", "k-1"), ("If-None-Match", "*")];

fn is_replayed(reply: &Reply) -> bool {
    reply.head.to_ascii_lowercase().contains("idempotency-replayed: true")
}

/// API-1: a request that is sent again, because its answer got lost, is answered again and carried out once; also after a kill.
#[test]
fn api_1_what_creates_something_happens_once_under_its_key() {
    let mut scene = Scene::new();
    let service = json!({"name": "shipping", "address": scene.peer.address});
    let rule = json!({"name": "parcels", "eventType": "order.paid", "service": "shipping"});
    let source = json!({"name": "shop", "eventType": "order.paid",
        "verify": {"type": "bearer", "secrets": ["0123456789abcdef"]}});
    for (path, body) in [(SERVICES, &service), (RULES, &rule), (SOURCES, &source)] {
        // The same key may be used for something else of another kind only by mistake.
        let key = format!("create-{}", body["name"].as_str().unwrap());
        let headers = [("Idempotency-Key", key.as_str()), ("If-None-Match", "*")];
        let first = scene.hub.with("POST", path, &headers, body);
        assert_eq!((first.status, is_replayed(&first)), (201, false), "{path}: {}", first.text);
        scene.restart();
        let again = scene.hub.with("POST", path, &headers, body);
        assert_eq!((again.status, is_replayed(&again)), (201, true), "{path}: {}", again.text);
        assert_eq!(again.body["data"]["name"], first.body["data"]["name"]);
        assert_eq!(again.body["data"]["version"], 1, "{path}: it is no new version");
        // Without the key it is another request, and is refused.
        let other = scene.hub.with("POST", path, &[("If-None-Match", "*")], body);
        assert_eq!(other.status, 412, "{path}: {}", other.text);
        let mut changed = body.clone();
        changed["name"] = json!("another");
        let reply = scene.hub.with("POST", path, &headers, &changed);
        assert_eq!((reply.status, &reply.body["code"]), (422, &json!("otherContent")), "{path}");
    }
}

/// API-1: a key that was created once is answered with the same secret, and no other key is made.
#[test]
fn api_1_a_created_key_can_be_asked_for_again() {
    let mut scene = Scene::new();
    let body = json!({"name": "ci", "scopes": ["read"]});
    let first = scene.hub.with("POST", KEYS, &NEW[..1], &body);
    assert_eq!(first.status, 201, "{}", first.text);
    let secret = first.body["data"]["key"].as_str().unwrap().to_owned();
    scene.restart();
    let again = scene.hub.with("POST", KEYS, &NEW[..1], &body);
    assert_eq!((again.status, is_replayed(&again)), (201, true), "{}", again.text);
    assert_eq!(again.body["data"]["key"], secret.as_str());
    assert_eq!(scene.hub.ask("GET", SERVICES, &secret, "").0, 200, "the secret opens the hub");
    // The database has the secret nowhere in the clear.
    let files = std::fs::read_dir(scene.folder.path()).unwrap().flatten();
    for file in files.filter(|file| file.path().is_file()) {
        let bytes = std::fs::read(file.path()).unwrap();
        let has = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!has, "{} has the secret", file.path().display());
    }
    // After a rotation the old secret is not given out again.
    scene.hub.must("POST", &format!("{KEYS}/ci:rotate"), &json!({"grace": "0s"}));
    let rotated = scene.hub.with("POST", KEYS, &NEW[..1], &body);
    assert_eq!((rotated.status, &rotated.body["code"]), (409, &json!("conflict")), "{}", rotated.text);
}

/// API-1: keys of different callers never meet, and what was deleted since is not made again.
#[test]
fn api_1_an_idempotency_key_is_its_callers_own() {
    let scene = Scene::new();
    let admin = scene.hub.must("POST", KEYS, &json!({"name": "second", "scopes": ["admin"]}));
    let bearer = format!("Bearer {}", admin["key"].as_str().unwrap());
    let body = everything();
    let renamed = |name: &str| {
        let mut body: Value = body.clone();
        body["name"] = json!(name);
        body
    };
    let first = scene.hub.with("POST", RULES, &NEW, &renamed("mine"));
    assert_eq!(first.status, 201, "{}", first.text);
    let headers = [("authorization", bearer.as_str()), NEW[0], NEW[1]];
    let theirs = scene.hub.call("POST", RULES, &headers, &renamed("theirs").to_string());
    assert_eq!((theirs.status, is_replayed(&theirs)), (201, false), "{}", theirs.text);
    scene.hub.must("DELETE", &format!("{RULES}/mine"), &Value::Null);
    let again = scene.hub.with("POST", RULES, &NEW, &renamed("mine"));
    assert_eq!((again.status, &again.body["code"]), (409, &json!("conflict")), "{}", again.text);
    let bad = scene.hub.with("POST", RULES, &[("Idempotency-Key", "a b")], &renamed("mine"));
    assert_eq!((bad.status, &bad.body["code"]), (400, &json!("badKey")), "{}", bad.text);
}
