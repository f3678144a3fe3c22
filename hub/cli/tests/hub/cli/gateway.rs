//! `seawall call`: against answers that are scripted, to see every word of the request, and against a hub.

use serde_json::json;

use super::{Scene, command, ran};
use crate::peer::{Peer, PeerBehavior};

fn answer(peer: &Peer, status: u16, body: &serde_json::Value) {
    peer.behave(PeerBehavior::Respond(status));
    peer.set_body(&body.to_string());
}

/// HUB-10, HUB-5: a call says what was asked for, the answer is on stdout, and how it came about on stderr.
#[test]
fn hub_10_a_service_is_called() {
    let hub = Peer::start();
    let data = json!({
        "httpStatus": 200, "headers": {}, "body": {"id": 7}, "bodyEncoding": "json", "attempts": 2, "latencyMs": 3,
        "circuit": "closed", "fallback": false,
    });
    answer(&hub, 200, &json!({"status": "ok", "data": data}));
    let args = [
        "call",
        "billing",
        "POST",
        "/invoices?of=7",
        "--header",
        "x-a: b: c",
        "--data",
        r#"{"n":1.10}"#,
        "--mode",
        "sync-or-queue",
        "--timeout",
        "5s",
        "--idempotency-key",
        "k-1",
    ];
    let said = ran(&mut command(&hub.address, &args), "").well();
    assert_eq!(said.out, "{\"id\":7}\n");
    assert!(said.err.contains("status 200; attempts: 2, 3 ms, circuit: closed"), "{}", said.err);
    let got = hub.only();
    assert_eq!(got.request_line(), "POST /api/v1/gateway/services/billing:call");
    assert_eq!(got.header("idempotency-key"), Some("k-1"));
    let expected = json!({
        "method": "POST", "path": "/invoices?of=7", "headers": {"x-a": "b: c", "content-type": "application/json"},
        "body": r#"{"n":1.10}"#, "bodyEncoding": "text", "mode": "sync_or_queue", "timeoutMs": 5000,
    });
    assert_eq!(got.json(), expected);
    let whole = ran(&mut command(&hub.address, &["call", "billing", "GET", "/", "--json"]), "").well();
    assert_eq!(whole.json(), data);
    hub.forget();
    ran(&mut command(&hub.address, &["call", "billing", "POST", "/", "--data", "-"]), "plain text").well();
    assert_eq!(
        (&hub.only().json()["body"], &hub.only().json()["headers"]),
        (&json!("plain text"), &json!(null))
    );
}

/// HUB-10, HUB-5: what is kept for later has a delivery; a bad answer and none at all end with one, and not as if the hub
/// were broken.
#[test]
fn hub_10_a_call_that_does_not_go_well_says_who_decided() {
    let hub = Peer::start();
    let call = ["call", "billing", "GET", "/"];
    answer(
        &hub,
        202,
        &json!({"status": "accepted", "data": {
            "id": "call_1", "deliveries": ["dlv_1"], "delivery": "dlv_1", "deduplicated": false, "circuit": null,
            "why": "it answered 503",
        }}),
    );
    ran(&mut command(&hub.address, &call), "").well().says(&["delivery dlv_1 (it answered 503)", "--watch"]);
    let data = json!({
        "httpStatus": 404, "headers": {}, "body": "gone", "bodyEncoding": "text", "attempts": 1, "latencyMs": 1,
        "circuit": null, "fallback": false,
    });
    answer(&hub, 200, &json!({"status": "ok", "data": data}));
    ran(&mut command(&hub.address, &call), "").wrong(1, &["status 404"]).says(&["gone\n"]);
    answer(&hub, 404, &json!({"code": "notFound", "message": "there is no such service"}));
    ran(&mut command(&hub.address, &call), "").wrong(3, &["no such service", "seawall services list"]);
    answer(
        &hub,
        503,
        &json!({"code": "circuitOpen", "message": "the circuit is open", "data": {"decidedBy": "breaker"}}),
    );
    ran(&mut command(&hub.address, &call), "")
        .wrong(1, &["the circuit is open (503 circuitOpen)", "decided by: breaker"]);
    ran(&mut command(&hub.address, &["call", "billing", "GET"]), "").wrong(2, &["<PATH>"]);
    ran(&mut command(&hub.address, &["call", "a", "GET", "/", "--header", "x"]), "")
        .wrong(2, &["write `name: value`"]);
    ran(&mut command(&hub.address, &["call", "a", "GET", "/", "--mode", "later"]), "")
        .wrong(2, &["possible values"]);
}

/// HUB-10, HUB-5: the same against a real hub: an answer, a service that is not there, one that breaks, and a call that is
/// kept for later.
#[test]
fn hub_10_a_service_is_called_through_a_hub() {
    let scene = Scene::new();
    scene.peer.set_body(r#"{"n":123456789012345678901234567890.10}"#);
    let said = scene
        .run(&["call", "billing", "PUT", "/x?a=b", "--header", "X-Own: c", "--data", r#"{"n":1.10}"#])
        .well();
    assert_eq!(said.out, "{\"n\":123456789012345678901234567890.10}\n");
    let got = scene.peer.only();
    assert_eq!(
        (got.request_line(), got.header("x-own"), &*got.text()),
        ("PUT /x?a=b", Some("c"), r#"{"n":1.10}"#)
    );
    assert_eq!(scene.json(&["call", "billing", "GET", "/"])["httpStatus"], 200);
    scene.run(&["call", "nope", "GET", "/"]).wrong(3, &["no such service"]);
    scene.run(&["call", "billing", "GET", "x"]).wrong(1, &["(422 invalid)", "path: "]);
    scene.run(&["call", "billing", "GET", "/", "--data", "not json"]).well();
    scene.peer.behave(PeerBehavior::Respond(404));
    scene.run(&["call", "billing", "GET", "/"]).wrong(1, &["status 404"]);
    scene.peer.behave(PeerBehavior::Hang);
    scene
        .run(&["call", "billing", "GET", "/", "--timeout", "200ms"])
        .wrong(1, &["(504 timeout)", "decided by: "]);
    scene.run(&["services", "pause", "billing"]).well();
    scene.run(&["call", "billing", "GET", "/"]).wrong(1, &["(503 paused)"]);
    scene.run(&["services", "resume", "billing"]).well();
    scene.peer.behave(PeerBehavior::Respond(200));
    let kept = scene.json(&["call", "billing", "POST", "/later", "--mode", "async", "--data", "{}"]);
    let delivery = kept["delivery"].as_str().unwrap();
    scene.run(&["deliveries", "show", delivery, "--watch"]).well().says(&["state         delivered"]);
}
