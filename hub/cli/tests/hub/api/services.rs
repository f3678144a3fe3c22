//! Services: registered, changed under a version, paused, tested and deleted.

use serde_json::{Value, json};

use super::{RULES, SERVICES, Scene, billing, event};
use crate::harness::{header, until};
use crate::peer::{Peer, PeerBehavior};

const BILLING: &str = "/api/v1/registry/services/billing";

/// HUB-1: a service is read with its version, put as a whole, patched in part; whoever has seen another version is refused.
#[test]
fn hub_1_nobody_overwrites_a_change_that_they_have_not_seen() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    let read = hub.with("GET", BILLING, &[], &Value::Null);
    assert_eq!((read.status, header(&read.head, "etag")), (200, Some("\"1\"")));
    assert_eq!(read.body["data"]["policy"]["attempt_timeout"], "2s");

    let patched =
        hub.with("PATCH", BILLING, &[("if-match", "\"1\"")], &json!({"headers": {"x-team": "shop"}}));
    assert_eq!((patched.status, header(&patched.head, "etag")), (200, Some("\"2\"")));
    let data = &patched.body["data"];
    assert_eq!((&data["headers"]["x-team"], &data["address"]), (&json!("shop"), &json!(peer.address)));
    for method in ["PATCH", "PUT", "DELETE"] {
        let stale = hub.with(method, BILLING, &[("if-match", "\"1\"")], &billing(&peer));
        assert_eq!((stale.status, &stale.body["code"]), (412, &json!("stale")), "{method}: {}", stale.body);
    }
    assert_eq!(hub.with("PUT", BILLING, &[("if-match", "new")], &billing(&peer)).status, 400);
    let put = hub.with("PUT", BILLING, &[("if-match", "\"2\"")], &billing(&peer));
    assert_eq!(
        (put.status, &put.body["data"]["headers"]),
        (200, &json!({})),
        "a whole one forgets what it does not say"
    );

    // `If-None-Match: *` is for those who want to make a new one.
    let there = hub.with("PUT", BILLING, &[("if-none-match", "*")], &billing(&peer));
    assert_eq!(there.status, 412);
    let other = json!({"address": peer.address});
    let made = hub.with("PUT", &format!("{SERVICES}/other"), &[("if-none-match", "*")], &other);
    assert_eq!((made.status, header(&made.head, "etag")), (201, Some("\"1\"")), "{}", made.body);
    let renamed = hub.with("PATCH", BILLING, &[], &json!({"name": "shipping"}));
    assert_eq!((renamed.status, &renamed.body["errors"][0]["field"]), (422, &json!("name")));
    let all = hub.get(SERVICES);
    let names: Vec<&Value> = all.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["billing", "other"]);
    for (method, path) in
        [("GET", "nobody"), ("PATCH", "nobody"), ("DELETE", "nobody"), ("POST", "nobody:pause")]
    {
        let missing = hub.with(method, &format!("{SERVICES}/{path}"), &[], &json!({}));
        assert_eq!((missing.status, &missing.body["code"]), (404, &json!("notFound")), "{method} {path}");
    }
}

/// HUB-1: two who patch different fields at the same time both get what they asked for.
#[test]
fn hub_1_two_patches_at_once_are_both_made() {
    let Scene { folder: _folder, hub, .. } = Scene::new();
    std::thread::scope(|threads| {
        for n in 0..8 {
            let hub = &hub;
            threads.spawn(move || {
                for _ in 0..5 {
                    let change =
                        if n % 2 == 0 { json!({"headers": {"x": "y"}}) } else { json!({"paused": true}) };
                    hub.must("PATCH", BILLING, &change);
                }
            });
        }
    });
    let now = hub.get(BILLING);
    assert_eq!(
        (&now["headers"]["x"], &now["paused"], &now["version"]),
        (&json!("y"), &json!(true), &json!(41))
    );
}

/// HUB-1: a service does not go while a rule sends to it or deliveries have not ended, unless these become dead letters.
#[test]
fn hub_1_a_service_goes_only_when_nothing_needs_it() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    let delete = |query: &str| hub.with("DELETE", &format!("{BILLING}{query}"), &[], &Value::Null);
    let used = delete("");
    assert_eq!((used.status, &used.body["code"]), (409, &json!("conflict")));
    assert!(used.body["message"].as_str().unwrap().contains("rule `all` sends to it"), "{}", used.body);
    peer.behave(PeerBehavior::Hang);
    let id = hub.send(&event("A")).remove(0);
    until("it is under way", || peer.count() == 1);
    hub.must("DELETE", &format!("{RULES}/all"), &Value::Null);
    let pending = delete("");
    assert!(
        pending.body["message"].as_str().unwrap().starts_with("1 delivery has not ended"),
        "{}",
        pending.body
    );
    assert_eq!(delete("?pending=forget").status, 422);
    assert_eq!(delete("?pending=deadLetter").status, 200);
    let dead = hub.wait_for(&id, "deadLettered");
    assert_eq!(dead["reason"], "deleted");
    assert_eq!(hub.with("GET", BILLING, &[], &Value::Null).status, 404);

    // It can come again, and then its dead letters can be replayed.
    peer.behave(PeerBehavior::Respond(200));
    let path = format!("/api/v1/bridge/deadLetters/{}:replay", id.as_str().unwrap());
    let (status, gone) = hub.post(&path, &json!({"mode": "same"}));
    assert_eq!((status, &gone["code"]), (409, &json!("conflict")), "{gone}");
    hub.must("POST", SERVICES, &billing(&peer));
    let replay = hub.must("POST", &path, &json!({"mode": "same"}));
    hub.wait_for(&replay["delivery"], "delivered");
}

/// HUB-1: a test call says whether the peer answers, what it said, and why not; it is no delivery.
#[test]
fn hub_1_a_test_call_says_whether_the_peer_is_there() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    let test = |body: &Value| hub.must("POST", &format!("{BILLING}:test"), body);
    peer.set_body(r#"{"up":true}"#);
    let good = test(&json!({"method": "POST", "path": "/ping", "headers": {"x-a": "b"}, "body": {"a": 1}}));
    assert_eq!(
        (&good["reached"], &good["httpStatus"], &good["good"]),
        (&json!(true), &json!(200), &json!(true))
    );
    assert_eq!((&good["body"], &good["circuit"]), (&json!(r#"{"up":true}"#), &json!("closed")));
    let got = peer.only();
    assert_eq!(
        (got.request_line(), got.header("x-a"), got.text()),
        ("POST /ping", Some("b"), r#"{"a":1}"#.into())
    );
    assert_eq!(got.header("seawall-delivery"), None);
    peer.behave(PeerBehavior::Respond(500));
    let bad = test(&Value::Null);
    assert_eq!(
        (&bad["reached"], &bad["httpStatus"], &bad["good"]),
        (&json!(true), &json!(500), &json!(false))
    );
    peer.refuse_connections();
    let away = test(&Value::Null);
    assert_eq!(away["reached"], json!(false));
    assert!(away["error"].as_str().is_some_and(|error| !error.is_empty()), "{away}");
    assert_eq!(hub.with("POST", &format!("{BILLING}:test"), &[], &json!({"path": "x"})).status, 422);
    assert_eq!(hub.with("POST", &format!("{BILLING}:tset"), &[], &Value::Null).status, 404);
}

/// HUB-5: what a paused service is to get is held, over a restart too, and goes out when it is resumed.
#[test]
fn hub_5_a_paused_service_holds_over_a_restart() {
    let mut scene = Scene::new();
    let paused = scene.hub.must("POST", &format!("{BILLING}:pause"), &Value::Null);
    assert_eq!((&paused["paused"], &paused["version"]), (&json!(true), &json!(2)));
    let again = scene.hub.must("POST", &format!("{BILLING}:pause"), &Value::Null);
    assert_eq!(again["version"], 2, "it was paused already");
    let id = scene.hub.send(&event("A")).remove(0);
    assert_eq!(scene.hub.delivery(&id)["state"], "held");
    scene.restart();
    let held = scene.hub.delivery(&id);
    assert_eq!(
        (&held["state"], &held["waitsFor"], scene.peer.count()),
        (&json!("held"), &json!("service"), 0)
    );
    scene.hub.must("POST", &format!("{BILLING}:resume"), &Value::Null);
    scene.hub.wait_for(&id, "delivered");
}

/// HUB-1, HUB-5: one service that hangs holds up no other.
#[test]
fn hub_5_a_service_that_hangs_holds_up_no_other() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    let other = Peer::start();
    hub.must("POST", SERVICES, &json!({"name": "other", "address": other.address}));
    let rule = json!({"name": "quick", "eventType": "*", "service": "other", "path": "/quick"});
    hub.must("POST", RULES, &rule);
    peer.behave(PeerBehavior::Hang);
    for n in 0..100 {
        hub.send(&event(&format!("A-{n}")));
    }
    until("the other has all", || other.count() == 100);
    assert!(peer.arrived().is_empty());
}
