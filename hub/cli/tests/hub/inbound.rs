//! Events in: one by one, in batches, as CloudEvents, and as webhooks from sources that show who they are.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::disallowed_methods, reason = "signatures have a time, and it is that of another process")]

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::hmac;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Hub, KEY, Reply, until};
use crate::peer::Peer;

const EVENTS: &str = "/api/v1/bridge/events";
const BATCH: &str = "/api/v1/bridge/events:batchCreate";
const SOURCES: &str = "/api/v1/registry/sources";

struct Scene {
    folder: TempDir,
    peer: Peer,
    hub: Hub,
}

impl Scene {
    fn new() -> Self {
        let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
        let hub = Hub::start(folder.path());
        hub.must("POST", "/api/v1/registry/services", &json!({"name": "billing", "address": peer.address}));
        let rule = json!({"name": "all", "eventType": "*", "service": "billing"});
        hub.must("POST", "/api/v1/registry/rules", &rule);
        Scene { folder, peer, hub }
    }
}

fn count(hub: &Hub) -> usize {
    hub.all(EVENTS, "events", 500).len()
}

fn order(id: &str, total: u32) -> Value {
    json!({"id": id, "type": "order.created", "data": {"total": total}})
}

/// HUB-3: each event of a batch is for itself; one that was there before is told so, one that contradicts it too.
#[test]
fn hub_3_each_event_of_a_batch_has_its_answer() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    let good: Vec<Value> = (0..100).map(|n| order(&format!("b-{n}"), n)).collect();
    let answer = hub.must("POST", BATCH, &json!({"events": good}));
    assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(100), &json!(0)));
    let results = answer["results"].as_array().unwrap();
    assert!(
        results
            .iter()
            .zip(0..)
            .all(|(one, n)| one["id"] == format!("b-{n}") && one["deliveries"][0].is_string())
    );
    until("all arrive", || peer.arrived().len() == 100);

    let mixed = [order("b-7", 7), order("b-8", 999), order("new", 1), order("new", 1)];
    let answer = hub.must("POST", BATCH, &json!({"events": mixed}));
    assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(3), &json!(1)), "{answer}");
    let of = |at: usize| answer["results"][at].clone();
    assert_eq!((&of(0)["deduplicated"], &of(0)["deliveries"]), (&json!(true), &results[7]["deliveries"]));
    assert_eq!((&of(1)["id"], &of(1)["error"]["code"]), (&json!("b-8"), &json!("otherContent")));
    assert_eq!((&of(2)["deduplicated"], &of(3)["deduplicated"]), (&json!(false), &json!(true)));
    assert_eq!(count(&hub), 101);
    assert_eq!(hub.must("POST", BATCH, &json!({"events": []}))["accepted"], 0);
}

/// HUB-3: nothing of a batch with a mistake is kept, and every mistake is named with its place.
#[test]
fn hub_3_nothing_of_a_malformed_batch_is_kept() {
    let Scene { folder: _folder, hub, .. } = Scene::new();
    let batch = json!({"events": [order("a", 1), {"id": "b"}, order("c", 1), {"id": "d", "type": "x y", "extra": 1}, 7]});
    let reply = hub.with("POST", BATCH, &[], &batch);
    assert_eq!(reply.status, 422);
    let fields: Vec<&str> =
        reply.body["errors"].as_array().unwrap().iter().map(|one| one["field"].as_str().unwrap()).collect();
    assert_eq!(
        fields[..4],
        ["events[1].type", "events[3].type", "events[3].extra", "events[4]"],
        "{fields:?}"
    );
    for wrong in [json!({}), json!({"events": {}}), json!({"events": [], "more": 1})] {
        assert_eq!(hub.with("POST", BATCH, &[], &wrong).status, 422, "{wrong}");
    }
    let many: Vec<Value> = (0..1_001).map(|n| order(&format!("m-{n}"), n)).collect();
    assert_eq!(hub.with("POST", BATCH, &[], &json!({"events": many})).status, 422);
    assert_eq!(count(&hub), 0);
}

/// HUB-3: CloudEvents come in whole, in batches, and with their attributes in headers.
#[test]
fn hub_3_cloud_events_come_in_three_modes() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    let event = |id: &str| {
        json!({
            "specversion": "1.0", "id": id, "source": "/shop", "type": "order.created", "subject": "A-7",
            "time": "2026-11-15T12:00:00Z", "tenant": "north", "data": {"total": 7},
        })
    };
    let post = |headers: &[(&str, &str)], body: &Value| hub.with("POST", EVENTS, headers, body);
    let structured = [("content-type", "application/cloudevents+json; charset=utf-8")];
    let first = post(&structured, &event("c-1"));
    assert_eq!((first.status, &first.body["data"]["id"]), (202, &json!("c-1")), "{}", first.body);
    let sent = peer.only().json();
    assert_eq!(
        (&sent["source"], &sent["subject"], &sent["data"]["total"]),
        (&json!("/shop"), &json!("A-7"), &json!(7))
    );
    assert_eq!(
        (&sent["extensions"]["tenant"], &sent["time"]),
        (&json!("north"), &json!("2026-11-15T12:00:00Z"))
    );
    assert_eq!(post(&structured, &event("c-1")).body["data"]["deduplicated"], true);

    let batched = [("content-type", "application/cloudevents-batch+json")];
    for path in [EVENTS, BATCH] {
        let reply = hub.with(
            "POST",
            path,
            &batched,
            &json!([event("c-1"), event(&format!("c-{path}").replace('/', "-"))]),
        );
        assert_eq!((reply.status, &reply.body["data"]["accepted"]), (202, &json!(2)), "{}", reply.body);
    }
    let bad = post(&batched, &json!([event("c-9"), {"id": "x"}]));
    assert_eq!(bad.status, 422);
    assert_eq!(
        hub.with("GET", &format!("{EVENTS}/c-9"), &[], &Value::Null).status,
        404,
        "a batch is whole or not at all"
    );

    let binary = [
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-id", "c-bin"),
        ("ce-source", "/shop"),
        ("ce-type", "order.created"),
        ("ce-tenant", "north"),
    ];
    let reply = post(&binary, &json!({"total": 7}));
    assert_eq!((reply.status, &reply.body["data"]["id"]), (202, &json!("c-bin")), "{}", reply.body);
    let kept = hub.get(&format!("{EVENTS}/c-bin"))["event"].clone();
    assert_eq!((&kept["data"], &kept["extensions"]["tenant"]), (&json!({"total": 7}), &json!("north")));
    let missing = post(&binary[..4], &json!({}));
    assert_eq!(
        (missing.status, &missing.body["errors"][0]["field"]),
        (422, &json!("ce-type")),
        "{}",
        missing.body
    );
}

/// HUB-3, CRD-2: the same key with the same content is the first event, whatever its id; with another content it is a mistake.
/// Trap "same key, other body returns the old answer".
#[test]
fn crd_2_an_idempotency_key_means_the_first_event() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    let post = |key: &str, body: &Value| hub.with("POST", EVENTS, &[("idempotency-key", key)], body);
    let bare = json!({"type": "order.created", "data": {"total": 1}});
    let first = post("k-1", &bare);
    assert_eq!((first.status, &first.body["data"]["deduplicated"]), (202, &json!(false)), "{}", first.body);
    let (id, deliveries) = (&first.body["data"]["id"], &first.body["data"]["deliveries"]);
    let again = post("k-1", &bare);
    assert_eq!(
        (again.status, &again.body["data"]["id"], &again.body["data"]["deliveries"]),
        (202, id, deliveries)
    );
    assert_eq!(again.body["data"]["deduplicated"], true);
    let other = post("k-1", &json!({"type": "order.created", "data": {"total": 2}}));
    assert_eq!((other.status, &other.body["code"]), (422, &json!("otherContent")));

    // With an id and a key, either one tells a repetition.
    let named = post("k-2", &order("n-1", 5));
    assert_eq!(named.body["data"]["id"], "n-1");
    for (key, event) in [("k-2", order("n-1", 5)), ("k-2", order("n-2", 5)), ("k-3", order("n-1", 5))] {
        let again = post(key, &event);
        assert_eq!(
            (&again.body["data"]["id"], &again.body["data"]["deduplicated"]),
            (&json!("n-1"), &json!(true)),
            "{key}"
        );
    }
    assert_eq!(post("k-4", &order("n-1", 6)).status, 422);
    let cloud = [("content-type", "application/cloudevents+json"), ("idempotency-key", "k-5")];
    let event = |id: &str| json!({"specversion": "1.0", "id": id, "source": "/s", "type": "a.b"});
    assert_eq!(hub.with("POST", EVENTS, &cloud, &event("ce-1")).status, 202);
    let again = hub.with("POST", EVENTS, &cloud, &event("ce-2"));
    assert_eq!(
        (&again.body["data"]["id"], &again.body["data"]["deduplicated"]),
        (&json!("ce-1"), &json!(true))
    );
    for bad in ["", &"x".repeat(201)] {
        assert_eq!(post(bad, &bare).body["code"], "badKey");
    }
    assert_eq!(hub.with("POST", EVENTS, &[], &bare).status, 422, "without a key it needs an id");
    assert_eq!(count(&hub), 3);
    until("each arrived once", || peer.count() == 3);
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn sign(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), &parts.concat()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Without what differs from request to request.
fn plain(reply: &Reply) -> (u16, Value, Vec<String>) {
    let mut body = reply.body.clone();
    body["traceId"] = Value::Null;
    let names = reply.head.lines().filter(|line| !line.starts_with("date")).map(ToOwned::to_owned);
    (reply.status, body, names.collect())
}

const SECRET: &str = "c4n4ry-0f-a-source-that-is-long";

/// HUB-3: a source is registered with its secrets, which nobody reads back; type and id of its events are expressions.
#[test]
fn hub_3_a_source_names_its_events_by_expressions() {
    let Scene { hub, peer, folder } = Scene::new();
    let source = json!({
        "name": "shop", "verify": {"type": "bearer", "secrets": [SECRET]}, "eventType": "shop.{{ data.kind }}",
        "eventId": "{{ headers['x-request'] }}-{{ data.n }}",
    });
    let shown = hub.must("POST", SOURCES, &source);
    assert_eq!((&shown["verify"]["secrets"], &shown["path"]), (&json!(["…"]), &json!("/in/shop")));
    assert!(!hub.get(SOURCES).to_string().contains(SECRET));
    let bearer = format!("Bearer {SECRET}");
    let send = |headers: &[(&str, &str)], body: &str| {
        let headers = [&[("authorization", bearer.as_str())], headers].concat();
        hub.call("POST", "/in/shop", &headers, body)
    };
    let taken = send(&[("x-request", "r")], r#"{"kind":"sold","n":7}"#);
    assert_eq!((taken.status, &taken.body["data"]["id"]), (202, &json!("shop:r-7")), "{}", taken.body);
    let sent = peer.only().json();
    assert_eq!(
        (&sent["type"], &sent["source"], &sent["data"]["n"]),
        (&json!("shop.sold"), &json!("shop"), &json!(7))
    );
    assert_eq!(send(&[("x-request", "r")], r#"{"kind":"sold","n":7}"#).body["data"]["deduplicated"], true);
    assert_eq!(send(&[("x-request", "r")], r#"{"kind":"sold","n":7,"more":1}"#).status, 422);
    let unnamed = send(&[], r#"{"kind":"sold","n":8}"#);
    assert_eq!(
        (unnamed.status, &unnamed.body["errors"][0]["field"]),
        (422, &json!("eventId")),
        "{}",
        unnamed.body
    );
    assert_eq!(send(&[("x-request", "r")], r#"{"kind":"a b","n":1}"#).status, 422);
    for (wrong, field) in [
        (json!({"eventType": "{{ data.", "verify": {"type": "bearer", "secrets": [SECRET]}}), "eventType"),
        (json!({"eventType": "a", "verify": {"type": "none"}}), "verify.type"),
        (json!({"eventType": "a", "verify": {"type": "bearer", "secrets": []}}), "verify.secrets"),
        (json!({"eventType": "a"}), "verify"),
    ] {
        let reply = hub.with("PUT", &format!("{SOURCES}/wrong"), &[], &wrong);
        assert_eq!((reply.status, &reply.body["errors"][0]["field"]), (422, &json!(field)), "{}", reply.body);
    }
    drop(hub);
    for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(!bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()), "{:?}", file.path());
    }
}

/// HUB-3, SEC-3: whoever can't show who they are learns nothing: an unknown source, a disabled one and a wrong signature are
/// answered alike. Trap "unknown verifier or missing secret falls back to no check".
#[test]
fn hub_3_a_stranger_learns_nothing() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    let source = |enabled: bool| json!({"verify": {"type": "bearer", "secrets": [SECRET]}, "eventType": "a.b", "enabled": enabled});
    hub.must("PUT", &format!("{SOURCES}/shop"), &source(true));
    hub.must("PUT", &format!("{SOURCES}/off"), &source(false));
    let right = format!("Bearer {SECRET}");
    let ask =
        |name: &str, key: &str| hub.call("POST", &format!("/in/{name}"), &[("authorization", key)], "{}");
    let wrong = plain(&ask("shop", "Bearer wrong"));
    assert_eq!(wrong.0, 401);
    let short = &right[..right.len() - 1];
    let admin = format!("Bearer {KEY}");
    for (name, key) in [
        ("shop", short),
        ("shop", ""),
        ("shop", &admin),
        ("nobody", &*right),
        ("off", &*right),
        ("Not%20a%20name", &*right),
    ] {
        assert_eq!(plain(&ask(name, key)), wrong, "{name} {key}");
    }
    assert_eq!(ask("shop", &right).status, 202);
    // A source that is deleted and comes again has its own secret only.
    hub.must("DELETE", &format!("{SOURCES}/shop"), &Value::Null);
    assert_eq!(plain(&ask("shop", &right)), wrong);
    let fresh = json!({"verify": {"type": "bearer", "secrets": ["another-secret-of-some-length"]}, "eventType": "a.b"});
    assert_eq!(hub.must("PUT", &format!("{SOURCES}/shop"), &fresh)["version"], 1);
    assert_eq!(plain(&ask("shop", &right)), wrong);
    let again = ask("shop", "Bearer another-secret-of-some-length");
    assert_eq!(again.body["data"]["deduplicated"], false, "equal bytes without an id may be two events");
    until("both arrive", || peer.count() == 2);
}

/// HUB-3, SEC-3: a plain signature of the body, and the one of GitHub with its id of the message.
#[test]
fn hub_3_signatures_of_the_body_are_checked() {
    let Scene { folder: _folder, hub, .. } = Scene::new();
    let plain = json!({"type": "hmac", "header": "x-sign", "prefix": "v=", "encoding": "base64", "secrets": ["old", SECRET]});
    hub.must("PUT", &format!("{SOURCES}/plain"), &json!({"verify": plain, "eventType": "plain.sent"}));
    let body = r#"{"a": 1}"#;
    let send = |name: &str, headers: &[(&str, &str)], body: &str| {
        hub.call("POST", &format!("/in/{name}"), headers, body)
    };
    let signed = |key: &str| format!("v={}", BASE64.encode(sign(key.as_bytes(), &[body.as_bytes()])));
    for key in ["old", SECRET] {
        assert_eq!(send("plain", &[("x-sign", &signed(key))], body).status, 202, "one that fits is enough");
    }
    assert_eq!(send("plain", &[("x-sign", &signed("other"))], body).status, 401);
    assert_eq!(send("plain", &[("x-sign", &signed(SECRET))], r#"{"a": 2}"#).status, 401);

    let github = json!({"type": "github", "secrets": [SECRET]});
    let kind = "github.{{ headers['x-github-event'] }}";
    hub.must("PUT", &format!("{SOURCES}/github"), &json!({"verify": github, "eventType": kind}));
    let signature = format!("sha256={}", hex(&sign(SECRET.as_bytes(), &[body.as_bytes()])));
    let headers =
        [("x-hub-signature-256", &*signature), ("x-github-event", "push"), ("x-github-delivery", "g-1")];
    let first = send("github", &headers, body);
    assert_eq!((first.status, &first.body["data"]["id"]), (202, &json!("github:g-1")), "{}", first.body);
    assert_eq!(hub.get(&format!("{EVENTS}/github:g-1"))["event"]["type"], "github.push");
    assert_eq!(send("github", &headers, body).body["data"]["deduplicated"], true);
    assert_eq!(send("github", &headers[1..], body).status, 401);
}

/// HUB-3, SEC-3: signatures with a time are good for five minutes, and once; a replay is answered like a repetition, also after
/// a restart. Trap "replay of a signed webhook".
#[test]
fn hub_3_a_signed_webhook_is_taken_once_and_in_time() {
    let mut scene = Scene::new();
    let key = b"twenty-four bytes or more";
    let secret = format!("whsec_{}", BASE64.encode(key));
    let hook =
        json!({"verify": {"type": "standard-webhooks", "secrets": [secret]}, "eventType": "hook.came"});
    scene.hub.must("PUT", &format!("{SOURCES}/hook"), &hook);
    let stripe = json!({"verify": {"type": "stripe", "secrets": [SECRET]}, "eventType": "stripe.{{ data.type }}", "eventId": "{{ data.id }}"});
    scene.hub.must("PUT", &format!("{SOURCES}/stripe"), &stripe);
    let body = r#"{"id":"ev_1","type":"paid"}"#;
    let hook = |hub: &Hub, id: &str, time: u64, body: &str, signed: &str| {
        let time = time.to_string();
        let signature = format!(
            "v1,{}",
            BASE64.encode(sign(key, &[format!("{id}.{time}.").as_bytes(), signed.as_bytes()]))
        );
        let headers = [("webhook-id", id), ("webhook-timestamp", &time), ("webhook-signature", &signature)];
        hub.call("POST", "/in/hook", &headers, body)
    };
    let time = now();
    let first = hook(&scene.hub, "m-1", time, body, body);
    assert_eq!((first.status, &first.body["data"]["id"]), (202, &json!("hook:m-1")), "{}", first.body);
    let replay = hook(&scene.hub, "m-1", time, body, body);
    assert_eq!((replay.status, &replay.body["data"]["deduplicated"]), (202, &json!(true)));
    let later = hook(&scene.hub, "m-1", time + 1, body, body);
    assert_eq!(later.body["data"]["deduplicated"], true, "the sender's own second try");
    assert_eq!(hook(&scene.hub, "m-2", time - 301, body, body).status, 401, "too old");
    assert_eq!(hook(&scene.hub, "m-2", time + 400, body, body).status, 401, "from the future");
    assert_eq!(hook(&scene.hub, "m-2", time, body, "{}").status, 401, "of another body");

    let stripe = |hub: &Hub| {
        let signature = hex(&sign(SECRET.as_bytes(), &[format!("{time}.").as_bytes(), body.as_bytes()]));
        hub.call("POST", "/in/stripe", &[("stripe-signature", &format!("t={time},v1={signature}"))], body)
    };
    let paid = stripe(&scene.hub);
    assert_eq!((paid.status, &paid.body["data"]["id"]), (202, &json!("stripe:ev_1")), "{}", paid.body);
    assert_eq!(scene.hub.get(&format!("{EVENTS}/stripe:ev_1"))["event"]["type"], "stripe.paid");
    let _ = scene.hub.process.kill();
    scene.hub = Hub::start(scene.folder.path());
    assert_eq!(hook(&scene.hub, "m-1", time, body, body).body["data"]["deduplicated"], true);
    assert_eq!(stripe(&scene.hub).body["data"]["deduplicated"], true);
    assert_eq!(count(&scene.hub), 2);
    until("each arrived", || scene.peer.arrived().len() == 2);
}
