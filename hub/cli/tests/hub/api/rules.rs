//! Rules: versions, rolling back, enabling and disabling, trying and backtesting them.

use serde_json::{Value, json};

use super::{RULES, Scene, event};
use crate::harness::{header, until};
use crate::peer::PeerBehavior;

const ALL: &str = "/api/v1/registry/rules/all";

/// HUB-4: settings are shown as they were given; what a change does not name stays, also within `delivery` and `ordering`.
#[test]
fn hub_4_settings_are_shown_back_and_changed_one_by_one() {
    let Scene { folder: _folder, hub, .. } = Scene::new();
    let rule = json!({
        "eventType": "order.*", "filter": "data.total > 1", "service": "billing", "method": "PUT", "path": "/x",
        "headers": {"x-a": "{{ data.id }}"}, "body": {"a": ["{{ data.id }}", 1, null]}, "enabled": true,
        "delivery": {"maxAttempts": 7, "maxAge": "2h", "base": "2s", "cap": "5m", "count": "all"},
        "ordering": {"key": "{{ data.customer }}", "onDeadLetter": "hold"},
    });
    let shown = hub.must("PUT", ALL, &rule);
    let as_given = json!({"maxAttempts": 7, "maxAge": "2h", "base": "2s", "cap": "5m", "count": "all"});
    assert_eq!((&shown["delivery"], &shown["ordering"]), (&as_given, &rule["ordering"]));
    for field in ["eventType", "filter", "service", "method", "path", "headers", "body", "enabled"] {
        assert_eq!(shown[field], rule[field], "{field}");
    }
    let change = json!({"delivery": {"maxAttempts": 3}, "ordering": {"onDeadLetter": "continue"}});
    let changed = hub.must("PATCH", ALL, &change);
    let mut expected = as_given;
    expected["maxAttempts"] = json!(3);
    assert_eq!(changed["delivery"], expected, "the others stay");
    assert_eq!(changed["ordering"], json!({"key": "{{ data.customer }}", "onDeadLetter": "continue"}));
    let without =
        hub.must("PATCH", ALL, &json!({"ordering": null, "filter": null, "delivery": {"maxAttempts": null}}));
    assert_eq!((&without["ordering"], &without["filter"]), (&Value::Null, &Value::Null));
    assert_eq!(
        (&without["delivery"]["maxAttempts"], &without["delivery"]["base"]),
        (&Value::Null, &json!("2s"))
    );
    for (wrong, field) in [
        (json!({"delivery": {"base": "10m"}}), "delivery.base"),
        (json!({"delivery": {"count": "some"}}), "delivery.count"),
        (json!({"delivery": {"attempts": 3}}), "delivery.attempts"),
        (json!({"ordering": {"key": "{{ data.customer", "onDeadLetter": "hold"}}), "ordering.key"),
        (json!({"method": "BREW"}), "method"),
        (json!({"service": "nobody"}), "service"),
    ] {
        let reply = hub.with("PATCH", ALL, &[], &wrong);
        assert_eq!((reply.status, &reply.body["errors"][0]["field"]), (422, &json!(field)), "{}", reply.body);
    }
}

/// HUB-4: putting a rule as it is makes no new version, and no entry in the audit log; a change of anything does.
#[test]
fn hub_4_a_rule_that_is_put_unchanged_stays_as_it_is() {
    let Scene { folder: _folder, hub, .. } = Scene::new();
    let first = hub.get(ALL);
    let audited = || hub.all("/api/v1/ops/audit", "entries", 100).len();
    let before = audited();
    let mut again = super::everything();
    for (method, path) in [("POST", RULES), ("PUT", ALL), ("PATCH", ALL)] {
        let put = hub.must(method, path, &again);
        assert_eq!(
            (&put["version"], &put["changedAt"]),
            (&first["version"], &first["changedAt"]),
            "{method}"
        );
    }
    assert_eq!(hub.get(&format!("{ALL}/versions")).as_array().unwrap().len(), 1);
    assert_eq!(audited(), before);
    let stale = hub.with("PUT", ALL, &[("if-match", "\"7\"")], &again);
    assert_eq!(stale.status, 412, "who has seen another version is told so all the same");
    again["path"] = json!("/elsewhere");
    assert_eq!(hub.must("PUT", ALL, &again)["version"], 2);
}

/// HUB-4: every version of a rule stays readable and can be gone back to; a deleted rule goes on counting when it comes again.
#[test]
fn hub_4_a_rule_can_be_rolled_back() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    hub.must("PATCH", ALL, &json!({"path": "/second"}));
    hub.must("PATCH", ALL, &json!({"path": "/third"}));
    let versions = hub.get(&format!("{ALL}/versions"));
    let paths: Vec<&Value> = versions.as_array().unwrap().iter().map(|one| &one["path"]).collect();
    assert_eq!(paths, ["/third", "/second", "/"]);
    let stale =
        hub.with("POST", &format!("{ALL}:rollback"), &[("if-match", "\"2\"")], &json!({"version": 2}));
    assert_eq!(stale.status, 412);
    let back = hub.with("POST", &format!("{ALL}:rollback"), &[("if-match", "\"3\"")], &json!({"version": 2}));
    assert_eq!((back.status, header(&back.head, "etag")), (200, Some("\"4\"")));
    let id = hub.send(&event("A")).remove(0);
    assert_eq!(
        (peer.only().request_line(), &hub.wait_for(&id, "delivered")["ruleVersion"]),
        ("POST /second", &json!(4))
    );
    for body in [json!({"version": 9}), json!({}), json!({"version": 0})] {
        let reply = hub.with("POST", &format!("{ALL}:rollback"), &[], &body);
        assert_eq!(reply.status, if body["version"] == 9 { 409 } else { 422 }, "{}", reply.body);
    }
    hub.must("DELETE", ALL, &Value::Null);
    assert_eq!(hub.with("GET", ALL, &[], &Value::Null).status, 404);
    let anew = hub.must("POST", RULES, &super::everything());
    assert_eq!(anew["version"], 5, "a version never means two things");
}

/// HUB-4, HUB-5: a disabled rule holds what it matches; enabled, it is delivered. Trap "a disabled rule drops events silently".
#[test]
fn hub_4_a_disabled_rule_holds() {
    let mut scene = Scene::new();
    let off = scene.hub.must("POST", &format!("{ALL}:disable"), &json!({"reason": "a new version comes"}));
    assert_eq!((&off["enabled"], &off["note"]), (&json!(false), &json!("a new version comes")));
    let (status, answer) = scene.hub.post("/api/v1/bridge/events", &event("A"));
    assert_eq!((status, &answer["data"]["held"]), (202, &json!(1)), "{answer}");
    let id = answer["data"]["deliveries"][0].clone();
    scene.restart();
    let held = scene.hub.delivery(&id);
    assert_eq!((&held["state"], &held["waitsFor"], scene.peer.count()), (&json!("held"), &json!("rule"), 0));
    let refused = scene.hub.with("DELETE", ALL, &[], &Value::Null);
    assert_eq!(refused.status, 409, "{}", refused.body);
    let on = scene.hub.must("POST", &format!("{ALL}:enable"), &Value::Null);
    assert_eq!((&on["enabled"], &on["note"]), (&json!(true), &Value::Null));
    scene.hub.wait_for(&id, "delivered");
}

/// HUB-5: a peer that says 410 is gone for good: a dead letter, and its rule is paused with a note that says why.
#[test]
fn hub_5_gone_pauses_the_rule() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    peer.behave(PeerBehavior::Respond(410));
    let dead = hub.send(&event("A")).remove(0);
    assert_eq!(hub.wait_for(&dead, "deadLettered")["reason"], "gone");
    until("the rule is paused", || hub.get(ALL)["enabled"] == false);
    let note = hub.get(ALL)["note"].clone();
    assert!(note.as_str().unwrap().contains("410"), "{note}");
    let changed = hub.must("PATCH", ALL, &json!({"path": "/elsewhere"}));
    assert_eq!(
        (&changed["enabled"], &changed["note"]),
        (&json!(false), &note),
        "a change of something else keeps it"
    );
    let held = hub.send(&event("B")).remove(0);
    assert_eq!(hub.delivery(&held)["state"], "held");
    peer.behave(PeerBehavior::Respond(200));
    hub.must("POST", &format!("{ALL}:enable"), &Value::Null);
    hub.wait_for(&held, "delivered");
}

/// HUB-4: a rule, kept or not, is tried on a sample or on an event that is kept, and shows the exact request.
#[test]
fn hub_4_evaluate_shows_the_exact_request() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    let evaluate = |body: &Value| hub.must("POST", &format!("{RULES}:evaluate"), body);
    let rule = json!({
        "name": "draft", "eventType": "order.*", "filter": "data.total > 100", "service": "billing", "method": "PUT",
        "path": "/o/{{ data.id }}?n={{ data.name }}", "headers": {"x-id": "{{ data.id }}"},
        "body": {"total": "{{ data.total }}", "ok": "{{ data.total > 1 }}", "text": "n {{ data.total }}", "tags": "{{ data.tags }}"},
        "ordering": {"key": "{{ data.id }}"},
    });
    let data = json!({"id": "A/7", "total": 120.5, "name": "a b&c", "tags": ["x"]});
    let sample = json!({"id": "s", "type": "order.created", "data": data});
    let shown = evaluate(&json!({"rule": rule, "event": sample}));
    assert_eq!((&shown["outcome"], &shown["orderingKey"]), (&json!("request"), &json!("A/7")), "{shown}");
    let request = &shown["request"];
    assert_eq!((&request["method"], &request["path"]), (&json!("PUT"), &json!("/o/A%2F7?n=a%20b%26c")));
    assert_eq!(request["url"], json!(format!("{}/o/A%2F7?n=a%20b%26c", peer.address)));
    assert_eq!(request["headers"], json!({"x-id": "A/7", "content-type": "application/json"}));
    let body = json!({"total": 120.5, "ok": true, "text": "n 120.5", "tags": ["x"]});
    assert_eq!(request["body"], body, "typed values stay typed");
    assert_eq!(request["bodyText"].as_str().unwrap().parse::<Value>().unwrap(), body);

    // The same on an event that is kept, by a rule that is kept: what is on the wire.
    let mut kept = rule.clone();
    kept["name"] = json!("kept");
    hub.must("DELETE", ALL, &Value::Null);
    hub.must("POST", RULES, &kept);
    hub.send(&json!({"id": "E-1", "type": "order.created", "data": data}));
    let shown = evaluate(&json!({"ruleName": "kept", "eventId": "E-1"}));
    let got = peer.only();
    assert_eq!(got.request_line(), "PUT /o/A%2F7?n=a%20b%26c");
    assert_eq!(shown["request"]["bodyText"], json!(got.text()));
    assert_eq!(got.header("x-id"), Some("A/7"));

    let outcome = |event: Value| evaluate(&json!({"rule": rule, "event": event}))["outcome"].clone();
    assert_eq!(outcome(json!({"id": "s", "type": "user.created"})), "otherType");
    assert_eq!(outcome(json!({"id": "s", "type": "order.created", "data": {"total": 1}})), "filtered");
    let unclear = evaluate(&json!({"rule": rule, "event": {"id": "s", "type": "order.created", "data": {}}}));
    assert!(unclear["reason"].as_str().unwrap().contains("data.total"), "{unclear}");
    let broken = evaluate(
        &json!({"rule": rule, "event": {"id": "s", "type": "order.created", "data": {"total": 101}}}),
    );
    assert_eq!(
        (&broken["outcome"], &broken["field"]),
        (&json!("unrenderable"), &json!("ordering.key")),
        "{broken}"
    );
    for (body, status) in [
        (json!({"ruleName": "kept"}), 422),
        (json!({"ruleName": "nobody", "eventId": "E-1"}), 404),
        (json!({"ruleName": "kept", "eventId": "nothing"}), 404),
        (json!({"rule": {"name": "x"}, "eventId": "E-1"}), 422),
    ] {
        assert_eq!(hub.with("POST", &format!("{RULES}:evaluate"), &[], &body).status, status, "{body}");
    }
}

/// HUB-4: a backtest counts what a rule would make of the events that came lately, also one that is not kept yet.
#[test]
fn hub_4_a_backtest_counts() {
    let Scene { folder: _folder, hub, .. } = Scene::new();
    for n in 0..30 {
        let kind = if n % 3 == 0 { "user.created" } else { "order.created" };
        let data = if n % 5 == 0 { json!({"total": n}) } else { json!({"total": n, "id": n}) };
        hub.send(&json!({"id": format!("e-{n}"), "type": kind, "data": data}));
    }
    let draft = json!({
        "eventType": "order.*", "filter": "data.total >= 10", "service": "billing", "path": "/{{ data.id }}",
    });
    let test = hub.must("POST", &format!("{ALL}:backtest"), &json!({"rule": draft, "max": 1000}));
    let count = |holds: fn(u32) -> bool| json!((0..30).filter(|n| holds(*n)).count());
    assert_eq!(test["events"], count(|n| n % 3 != 0), "those of its kind: {test}");
    assert_eq!(test["filtered"], count(|n| n % 3 != 0 && n < 10));
    assert_eq!(test["unrenderable"], count(|n| n % 3 != 0 && n >= 10 && n % 5 == 0));
    assert_eq!(test["requests"], count(|n| n % 3 != 0 && n >= 10 && n % 5 != 0));
    assert_eq!(test["samples"].as_array().unwrap().len(), 10);
    assert_eq!(
        (&test["samples"][0]["event"], &test["samples"][0]["request"]["path"]),
        (&json!("e-29"), &json!("/29"))
    );
    let kept = hub.must("POST", &format!("{ALL}:backtest"), &json!({"max": 7}));
    assert_eq!((&kept["events"], &kept["requests"]), (&json!(7), &json!(7)));
    assert_eq!(hub.with("POST", &format!("{ALL}:backtest"), &[], &json!({"max": 100_000})).status, 422);
    assert_eq!(hub.with("POST", &format!("{RULES}/nobody:backtest"), &[], &Value::Null).status, 404);
}
