//! Rules: what they find, and how they are changed.

use serde_json::{Value, json};

use super::{ALERT_RULES, CHANNELS, PUBLIC, Scene, about};
use crate::harness::until;
use crate::peer::PeerBehavior;

/// HUB-12: dead letters that come faster than agreed are told, per service, with a link to their groups.
#[test]
fn hub_12_dead_letters_that_come_too_fast_are_told() {
    let scene = Scene::new();
    scene.duty();
    scene.hub.must("PATCH", &format!("{ALERT_RULES}/circuit-open"), &json!({"enabled": false}));
    let policy = json!({"policy": {"breaker": {"consecutive_failures": 1_000}}});
    scene.hub.must("PATCH", "/api/v1/registry/services/billing", &policy);
    scene.hub.must(
        "PATCH",
        &format!("{ALERT_RULES}/dead-letters"),
        &json!({"moreThan": 2, "severity": "critical"}),
    );
    scene.peer.behave(PeerBehavior::Respond(400));
    for n in 0..3 {
        let delivery = scene.send("billing", &format!("A-{n}"));
        scene.hub.wait_for(&delivery, "deadLettered");
    }
    let opened = scene.told("billing", "open");
    assert_eq!(opened["link"], json!(format!("{PUBLIC}/deadLetters/groups?service=billing")));
    assert_eq!((&opened["value"], &opened["severity"]), (&json!(3.0), &json!("critical")));
    assert_eq!(about(&scene.duty.only()), "opened billing");
}

/// HUB-12: a delivery that has been due for too long is told, and is not while its service is paused.
#[test]
fn hub_12_a_delivery_that_waits_too_long_is_told() {
    let scene = Scene::new();
    scene.duty();
    scene.hub.must("PATCH", &format!("{ALERT_RULES}/circuit-open"), &json!({"enabled": false}));
    let late = json!({"olderThan": "1s", "resolveAfter": "0s"});
    scene.hub.must("PATCH", &format!("{ALERT_RULES}/oldest-due"), &late);
    let force = json!({"reason": "a test"});
    scene.hub.must("POST", "/api/v1/registry/services/billing/circuit:forceOpen", &force);
    scene.send("billing", "A");
    let opened = scene.told("billing", "open");
    assert_eq!((&opened["kind"], &opened["rule"]), (&json!("oldestDue"), &json!("oldest-due")));
    scene.hub.must("POST", "/api/v1/registry/services/billing:pause", &Value::Null);
    scene.told("billing", "resolved");
    assert_eq!(
        scene.duty.requests().iter().map(about).collect::<Vec<_>>(),
        ["opened billing", "resolved billing"]
    );
}

/// HUB-12: little room on the disk and a log full of errors are told too, about the hub itself.
#[test]
fn hub_12_the_hub_tells_of_itself() {
    let scene = Scene::new();
    scene.duty();
    let disk = json!({"freeBytesBelow": 1_u64 << 60, "resolveAfter": "0s"});
    scene.hub.must("PATCH", &format!("{ALERT_RULES}/data-loss-risk"), &disk);
    until("the disk is told", || scene.duty.count() == 1);
    let told = scene.duty.only().json();
    assert_eq!(
        (&told["incident"]["kind"], &told["incident"]["service"]),
        (&json!("dataLossRisk"), &Value::Null)
    );
    assert!(told["incident"]["summary"].as_str().unwrap().ends_with("MiB are left on the disk"), "{told}");
    scene.hub.must("PATCH", &format!("{ALERT_RULES}/data-loss-risk"), &json!({"freeBytesBelow": 0}));
    until("and its end", || scene.duty.count() == 2);

    scene.hub.must("PATCH", &format!("{ALERT_RULES}/circuit-open"), &json!({"enabled": false}));
    scene.hub.must("PATCH", &format!("{ALERT_RULES}/warnings"), &json!({"moreThan": 0}));
    scene.peer.behave(PeerBehavior::Respond(400));
    scene.send("billing", "A");
    until("the line is told", || scene.duty.count() == 3);
    let told = scene.duty.requests().pop().unwrap().json();
    assert_eq!(told["incident"]["kind"], "warnings");
}

/// HUB-12: rules come with the hub, can be changed in part, are kept, and go back to what they were; what is wrong with one is
/// said field by field.
#[test]
fn hub_12_rules_are_changed_and_go_back() {
    let mut scene = Scene::new();
    let all = scene.hub.get(ALERT_RULES);
    let names: Vec<&str> =
        all.as_array().unwrap().iter().map(|rule| rule["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["circuit-open", "data-loss-risk", "dead-letters", "errors", "oldest-due", "warnings"]);
    assert!(
        all.as_array()
            .unwrap()
            .iter()
            .all(|rule| rule["builtIn"] == true && (rule["enabled"] == true || rule["name"] == "errors"))
    );
    let one = format!("{ALERT_RULES}/dead-letters");
    let usual = scene.hub.get(&one);
    assert_eq!(
        (&usual["moreThan"], &usual["window"], &usual["version"], &usual["channels"]),
        (&json!(10), &json!("5m"), &json!(0), &Value::Null)
    );
    let wrong = |method: &str, name: &str, body: Value, fields: &[&str]| {
        let reply = scene.hub.with(method, &format!("{ALERT_RULES}/{name}"), &[], &body);
        let found: Vec<&str> = reply.body["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["field"].as_str().unwrap())
            .collect();
        assert_eq!((reply.status, &found[..]), (422, fields), "{body}: {}", reply.body);
    };
    wrong("PATCH", "dead-letters", json!({"olderThan": "1m"}), &["olderThan"]);
    wrong(
        "PATCH",
        "dead-letters",
        json!({"window": "0s", "channels": ["nobody"], "services": ["nobody"]}),
        &["channels", "services", "window"],
    );
    wrong("PATCH", "dead-letters", json!({"kind": "warnings"}), &["kind"]);
    wrong("PUT", "own", json!({"moreThan": 1}), &["kind"]);
    wrong("PUT", "own", json!({"kind": "warnings", "services": ["billing"]}), &["services"]);
    wrong(
        "PATCH",
        "dead-letters",
        json!({"severity": "bad", "for": "soon", "muted": {"for": "1h"}}),
        &["severity", "for", "muted.reason"],
    );

    let changed = scene.hub.must("PATCH", &one, &json!({"moreThan": 50, "channels": []}));
    assert_eq!(
        (&changed["moreThan"], &changed["window"], &changed["version"]),
        (&json!(50), &json!("5m"), &json!(1))
    );
    // What is shown can be written back.
    let again = scene.hub.must("PUT", &one, &changed);
    assert_eq!(
        (&again["moreThan"], &again["channels"], &again["version"]),
        (&json!(50), &json!([]), &json!(2))
    );
    let stale = scene.hub.with("PATCH", &one, &[("if-match", "\"1\"")], &json!({"moreThan": 1}));
    assert_eq!(stale.status, 412);
    let own = json!({"kind": "oldestDue", "olderThan": "1h", "services": ["billing"], "severity": "warning"});
    assert_eq!(scene.hub.with("PUT", &format!("{ALERT_RULES}/own"), &[], &own).status, 201);
    scene.restart();
    assert_eq!(scene.hub.get(&one)["moreThan"], 50);
    assert_eq!(scene.hub.get(&format!("{ALERT_RULES}/own"))["olderThan"], "1h");
    assert_eq!(scene.hub.must("DELETE", &one, &Value::Null)["reset"], true);
    let reset = scene.hub.get(&one);
    assert_eq!(reset, usual);
    assert_eq!(scene.hub.must("DELETE", &format!("{ALERT_RULES}/own"), &Value::Null)["deleted"], true);
    assert_eq!(scene.hub.with("GET", &format!("{ALERT_RULES}/own"), &[], &Value::Null).status, 404);

    scene.duty();
    scene.hub.must("PATCH", &one, &json!({"channels": ["duty"]}));
    let held = scene.hub.with("DELETE", &format!("{CHANNELS}/duty"), &[], &Value::Null);
    assert_eq!((held.status, &held.body["code"]), (409, &json!("conflict")));
}
