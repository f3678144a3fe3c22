//! Services, rules, sources, circuits and keys.

use serde_json::{Value, json};

use super::{Scene, command, ran, text};
use crate::peer::PeerBehavior;

/// HUB-10, HUB-1: services, from their making to their end.
#[test]
fn hub_10_services_are_made_changed_and_deleted() {
    let scene = Scene::new();
    let shop = json!({"name": "shop", "address": scene.peer.address});
    let file = scene.file("shop.json", &shop.to_string());
    scene
        .run(&["services", "put", text(&file), "--if-version", "0"])
        .well()
        .says(&["service `shop` created (version 1)"]);
    scene
        .run(&["services", "put", text(&file), "--if-version", "0"])
        .wrong(1, &["(412 stale)", "changed concurrently"]);
    scene.run(&["services", "put", text(&file), "--if-version", "1"]).well().says(&["updated (version 2)"]);
    let listed = scene.run(&["services", "list"]).well();
    let lines: Vec<&str> = listed.out.lines().collect();
    assert!(lines[0].starts_with("NAME     ADDRESS") && lines.len() == 3, "{}", listed.out);
    assert!(
        lines[1].starts_with("billing  http://") && lines[2].starts_with("shop     http://"),
        "{}",
        listed.out
    );
    let names: Vec<Value> = scene
        .json(&["services", "list"])
        .as_array()
        .unwrap()
        .iter()
        .map(|service| service["name"].clone())
        .collect();
    assert_eq!(names, ["billing", "shop"]);
    scene.run(&["services", "show", "shop"]).well().says(&[
        "name          shop\n",
        "circuit       closed\n",
        "version       2\n",
    ]);
    assert_eq!(scene.json(&["services", "show", "shop"])["version"], 2);
    scene
        .run(&["services", "show", "nope"])
        .wrong(3, &["no such service (404 notFound)", "`seawall services list`"]);
    scene.run(&["services", "pause", "shop", "--reason", "a test"]).well().says(&["service `shop` paused"]);
    assert_eq!(scene.json(&["services", "show", "shop"])["paused"], true);
    scene.run(&["services", "resume", "shop"]).well().says(&["resumed"]);
    scene.run(&["services", "pause", "nope"]).wrong(3, &[]);
    scene.run(&["services", "resume"]).wrong(2, &["<NAME>"]);
    scene.run(&["services", "delete", "billing"]).wrong(1, &["rule `all` sends to it", "(409 conflict)"]);
    scene.run(&["services", "delete", "shop"]).well().says(&["service `shop` deleted"]);
    scene.run(&["services", "delete", "shop"]).wrong(3, &[]);
}

/// HUB-10: everything that is wrong with a file is told at once, each field on its line; YAML is called by its name.
#[test]
fn hub_10_what_is_wrong_with_a_file_is_told_field_by_field() {
    let scene = Scene::new();
    let said = scene.fed(&["services", "put", "-"], r#"{"name":"x","address":"ftp://x","polcy":{}}"#);
    said.wrong(
        1,
        &[
            "some fields are invalid (422 invalid)\n",
            "\n  address: ",
            "\n  polcy: unknown field, did you mean `policy`?",
        ],
    );
    scene
        .fed(&["rules", "put", "-"], r#"{"name":"x"}"#)
        .wrong(1, &["eventType: required", "service: required"]);
    scene.fed(&["sources", "put", "-"], r#"{"name":"x"}"#).wrong(1, &["eventType: required"]);
    let yaml = scene.file("x.yaml", "name: x\n");
    scene.run(&["rules", "put", text(&yaml)]).wrong(2, &["x.yaml:1:", "invalid JSON", "YAML", "only JSON"]);
    scene.fed(&["rules", "put", "-"], "{\n  \"name\": \"x\",\n}").wrong(2, &["-:3:1: invalid JSON"]);
    scene.run(&["rules", "put", "nowhere.json"]).wrong(2, &["can't read `nowhere.json`"]);
    scene.run(&["rules", "put", text(scene.folder.path())]).wrong(2, &["is a folder"]);
    let large = scene.file("large.json", &" ".repeat(1024 * 1024 + 1));
    scene.run(&["rules", "put", text(&large)]).wrong(2, &["1 MiB"]);
}

/// HUB-10: a service is tried; one that does not answer well ends with one.
#[test]
fn hub_10_a_service_is_tried() {
    let scene = Scene::new();
    scene
        .run(&["services", "test", "billing", "--method", "PUT", "--path", "/x"])
        .well()
        .says(&["good        yes"]);
    assert_eq!(scene.peer.only().request_line(), "PUT /x");
    scene.peer.behave(PeerBehavior::Respond(500));
    let said = scene.run(&["services", "test", "billing", "--json"]).wrong(1, &[]);
    assert_eq!((&said.json()["reached"], &said.json()["httpStatus"]), (&json!(true), &json!(500)));
    scene.peer.refuse_connections();
    scene.run(&["services", "test", "billing"]).wrong(1, &[]).says(&["reached    no"]);
    scene.run(&["services", "test", "billing", "--path", "x"]).wrong(1, &["path: must start with a slash"]);
    scene.run(&["services", "test", "nope"]).wrong(3, &[]);
}

/// HUB-10, HUB-3: rules, their versions, and what they would do.
#[test]
fn hub_10_rules_are_changed_tried_and_rolled_back() {
    let scene = Scene::new();
    let rule = json!({"name": "invoices", "eventType": "order.*", "service": "billing", "path": "/invoices/{{ data.id }}"});
    scene.put("rules", &rule).says(&["rule `invoices` created (version 1)"]);
    scene.run(&["rules", "list"]).well().says(&["EVENT TYPE", "/invoices/{{ data.id }}"]);
    scene.run(&["rules", "show", "invoices"]).well().says(&["eventType  order.*"]);
    scene.run(&["rules", "show", "nope"]).wrong(3, &["no such rule"]);
    scene
        .run(&["rules", "disable", "invoices", "--reason", "wrong path"])
        .well()
        .says(&["disabled (version 2)"]);
    assert_eq!(scene.json(&["rules", "show", "invoices"])["note"], "wrong path");
    scene.run(&["rules", "enable", "invoices"]).well().says(&["enabled (version 3)"]);
    scene.run(&["rules", "enable", "nope"]).wrong(3, &[]);
    scene.run(&["rules", "disable", "nope"]).wrong(3, &[]);
    assert_eq!(scene.json(&["rules", "versions", "invoices"]).as_array().unwrap().len(), 3);
    scene.run(&["rules", "versions", "invoices"]).well().says(&["VERSION", "wrong path"]);
    scene.run(&["rules", "versions", "nope"]).wrong(3, &[]);
    let moved = json!({"name": "invoices", "eventType": "order.*", "service": "billing", "path": "/bills"});
    scene.put("rules", &moved).says(&["(version 4)"]);
    scene.run(&["rules", "rollback", "invoices", "1"]).well().says(&["restored to version 1 (version 5)"]);
    // What changes nothing is no version.
    scene.run(&["rules", "rollback", "invoices", "1"]).well().says(&["restored to version 1 (version 5)"]);
    scene
        .run(&["rules", "rollback", "invoices", "99"])
        .wrong(1, &["has no version 99", "`seawall rules versions invoices`"]);
    scene.run(&["rules", "rollback", "invoices", "first"]).wrong(2, &["invalid value 'first'"]);

    scene.run(&["send", "order.created", "--id", "A-7", "--data", r#"{"id":"A-7"}"#]).well();
    let kept = ["rules", "evaluate", "--rule", "invoices", "--event", "A-7"];
    scene.run(&kept).well().says(&[&format!("POST {}/invoices/A-7\n", scene.peer.address)]);
    assert_eq!(scene.json(&kept)["outcome"], "request");
    let file = scene.file("rule.json", &rule.to_string());
    let event = r#"{"id":"x","type":"order.created","data":{}}"#;
    let drawn = ["rules", "evaluate", "--rule-file", text(&file), "--event-file", "-"];
    scene.fed(&drawn, event).wrong(1, &[]).says(&["can't render the request: path"]);
    scene.fed(&drawn, r#"{"id":"x","type":"user.created"}"#).well().says(&["another event type"]);
    scene.run(&["rules", "evaluate", "--rule", "invoices"]).wrong(2, &["--event"]);
    scene.run(&["rules", "evaluate", "--rule", "nope", "--event", "A-7"]).wrong(3, &["no such rule"]);
    scene.run(&["rules", "evaluate", "--rule", "invoices", "--event", "nope"]).wrong(3, &["no such event"]);
    scene.run(&["rules", "backtest", "invoices"]).well().says(&[
        "requests      1",
        "Samples",
        "/invoices/A-7",
    ]);
    let other =
        scene.run(&["rules", "backtest", "invoices", "--rule-file", text(&file), "--max", "5", "--json"]);
    assert_eq!(other.well().json()["requests"], 1);
    scene.run(&["rules", "backtest", "nope"]).wrong(3, &[]);
    scene.run(&["rules", "delete", "invoices"]).well().says(&["rule `invoices` deleted"]);
    scene.run(&["rules", "delete", "invoices"]).wrong(3, &[]);
}

/// HUB-10: what still waits is not thrown away unasked.
#[test]
fn hub_10_deleting_what_deliveries_wait_for_says_how() {
    let scene = Scene::new();
    scene.run(&["rules", "disable", "all"]).well();
    scene.delivery("A-1");
    scene.run(&["rules", "delete", "all"]).wrong(1, &["`pending=deadLetter`", "`--pending dead-letter`"]);
    scene.run(&["rules", "delete", "all", "--pending", "bury"]).wrong(2, &["invalid value 'bury'"]);
    scene.run(&["rules", "delete", "all", "--pending", "dead-letter"]).well();
    assert_eq!(scene.json(&["dlq", "list", "--reason", "deleted"]).as_array().unwrap().len(), 1);
}

/// HUB-10, HUB-8: sources, without their secrets.
#[test]
fn hub_10_sources_are_made_shown_and_deleted() {
    let scene = Scene::new();
    let source = json!({"name": "shop", "eventType": "shop.order", "verify": {"type": "bearer", "secrets": ["c4n4ry-s3cr3t-of-a-source"]}});
    scene.put("sources", &source).says(&["source `shop` created (version 1)"]);
    let listed = scene.run(&["sources", "list"]).well().says(&["/in/shop", "bearer"]);
    let shown = scene.run(&["sources", "show", "shop"]).well().says(&["path       /in/shop"]);
    assert!(!format!("{}{}", listed.out, shown.out).contains("c4n4ry"));
    assert_eq!(scene.json(&["sources", "list"])[0]["name"], "shop");
    scene.run(&["sources", "show", "nope"]).wrong(3, &["no such source"]);
    scene.run(&["sources", "delete", "shop", "--reason", "a test"]).well();
    scene.run(&["sources", "delete", "shop"]).wrong(3, &[]);
    scene.run(&["sources", "list"]).wrong(0, &["no results"]);
    assert_eq!(scene.json(&["sources", "list"]), json!([]));
}

/// HUB-10, CB-5: circuits are looked at and moved, with a reason.
#[test]
fn hub_10_circuits_are_shown_and_moved_with_a_reason() {
    let scene = Scene::new();
    scene.run(&["circuits", "list"]).well().says(&["SERVICE", "billing  closed"]);
    scene.run(&["circuits", "force-open", "billing"]).wrong(2, &["--reason"]);
    scene.run(&["circuits", "force-open", "billing", "--reason", " "]).wrong(1, &["reason: required"]);
    let said = scene.run(&["circuits", "force-open", "billing", "--reason", "they asked"]).well();
    assert_eq!(said.out, "circuit of `billing`: forcedOpen\n");
    let shown = scene.run(&["circuits", "show", "billing"]).well();
    shown.says(&["state    forcedOpen", "they asked", "History"]);
    scene.run(&["circuits", "force-closed", "billing", "--reason", "a test"]).well().says(&["forcedClosed"]);
    scene.run(&["circuits", "reset", "billing"]).well().says(&[": closed"]);
    assert_eq!(scene.json(&["circuits", "show", "billing"])["state"], "closed");
    for verb in [&["show"][..], &["reset"], &["force-closed", "--reason", "x"]] {
        scene.run(&[&["circuits"], verb, &["nope"]].concat()).wrong(3, &["no such service"]);
    }
    let entries = scene.json(&["audit"]);
    assert!(entries.as_array().unwrap().iter().any(|entry| entry["reason"] == "they asked"), "{entries}");
}

/// HUB-10, SEC-1: a key is printed alone, so that it can go into a file; it works, is rotated and taken back.
#[test]
fn hub_10_keys_are_made_rotated_and_revoked() {
    let scene = Scene::new();
    let make = [
        "keys",
        "make",
        "shop",
        "--scope",
        "ingest",
        "--scope",
        "read",
        "--source",
        "shop",
        "--expires-in",
        "90d",
    ];
    let first = scene.run(&make).well();
    assert_eq!(first.out.lines().count(), 1, "{}", first.out);
    scene.run(&make).wrong(1, &["there is a key `shop` already", "(409 conflict)"]);
    let with = |key: &str, args: &[&str]| ran(command(&scene.url(), args).env("SEAWALL_KEY", key.trim()), "");
    with(&first.out, &["send", "a.b", "--source", "shop"]).well();
    with(&first.out, &["send", "a.b", "--source", "other"])
        .wrong(4, &["may not send events from the source `other`"]);
    scene.run(&["keys", "list"]).well().says(&["ingest, read", "shop"]);
    let second =
        scene.json(&["keys", "rotate", "shop", "--grace", "10m"])["key"].as_str().unwrap().to_owned();
    with(&first.out, &["events", "list"]).well();
    with(&second, &["events", "list"]).well();
    scene
        .run(&["keys", "revoke", "shop", "--reason", "it was in a log"])
        .well()
        .says(&["key `shop` revoked"]);
    with(&second, &["events", "list"]).wrong(4, &[]);
    scene.run(&["keys", "rotate", "nope"]).wrong(3, &["no such key"]);
    scene.run(&["keys", "revoke", "nope"]).wrong(3, &[]);
    scene.run(&["keys", "make", "x"]).wrong(2, &["--scope"]);
    scene.run(&["keys", "make", "x", "--scope", "everything"]).wrong(2, &["possible values", "operate"]);
    scene.run(&["keys", "make", "x", "--scope", "read", "--expires-in", "5"]).wrong(1, &["expiresIn: "]);
    assert_eq!(scene.json(&["keys", "list"]).as_array().unwrap().len(), 2);
}

/// HUB-10, SEC-1: why something was done is in the audit log, page by page.
#[test]
fn hub_10_the_audit_log_has_who_what_and_why() {
    let scene = Scene::new();
    scene.run(&["services", "pause", "billing", "--reason", "their migration – bis 14 Uhr"]).well();
    let shown = scene.run(&["audit", "--limit", "1"]).well();
    assert!(shown.err.contains("there may be more"), "{}", shown.err);
    shown.says(&["TIME ", "service.", "their migration – bis 14 Uhr"]);
    let all = scene.json(&["audit", "--all"]);
    assert!(all.as_array().unwrap().len() >= 3, "{all}");
    scene.run(&["audit", "--all", "--limit", "3"]).wrong(2, &["cannot be used with"]);
    scene.run(&["audit", "--limit", "0"]).wrong(2, &["invalid value '0'"]);
    scene.run(&["services", "pause", "billing", "--reason", "two\nlines"]).wrong(2, &["x-seawall-reason"]);
}
