//! Tests of `seawall alerts`.

use serde_json::{Value, json};

use super::{Scene, text};
use crate::harness::until;
use crate::peer::{Peer, PeerBehavior};

/// HUB-10, HUB-12: incidents, from the first look to the mute.
#[test]
fn hub_10_incidents_are_seen_acknowledged_and_muted() {
    let scene = Scene::new();
    assert_eq!(scene.json(&["alerts", "list"]), json!([]));
    let rule = json!({"for": "0s", "resolveAfter": "0s"}).to_string();
    scene
        .fed(&["alerts", "rules", "put", "circuit-open", "-"], &rule)
        .well()
        .says(&["alert rule `circuit-open` updated (version 1)"]);
    scene.run(&["circuits", "force-open", "billing", "--reason", "their migration"]).well();
    until("there is an incident", || scene.json(&["alerts", "list", "--state", "open"]) != json!([]));
    let listed = scene.run(&["alerts", "list", "--service", "billing", "--severity", "critical"]).well();
    let listed = listed.says(&["STATE", "open", "circuit-open", "billing", "forced open"]);
    let id = listed.out.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    scene.run(&["alerts", "show", &id]).well().says(&["their migration", "Notifications", "log", "sent"]);
    scene.run(&["alerts", "ack", &id, "--reason", "I am on it"]).well().says(&["acknowledged"]);
    let mute = ["alerts", "mute", &id, "--for", "2h", "--reason", "known"];
    scene.run(&mute).well().says(&["muted until 20"]);
    scene.run(&["alerts", "unmute", &id]).well().says(&["unmuted"]);
    assert_eq!(scene.json(&["alerts", "show", &id])["acknowledged"]["reason"], "I am on it");
    scene.run(&["alerts", "show", "inc_0"]).wrong(3, &["there is no such incident"]);
    scene.run(&["alerts", "mute", &id, "--for", "2h"]).wrong(2, &["--reason"]);
    scene.run(&["alerts", "mute", &id, "--for", "soon", "--reason", "a"]).wrong(1, &["for:"]);
    scene.run(&["alerts", "list", "--state", "closed"]).wrong(2, &["closed"]);
}

/// HUB-10, HUB-12: rules and channels, each once well and once wrong; a sample that does not arrive is a failure.
#[test]
fn hub_10_rules_and_channels_of_alerts_are_changed() {
    let (scene, duty) = (Scene::new(), Peer::start());
    scene.run(&["alerts", "rules", "list"]).well().says(&["dead-letters", "oldestDue", "data-loss-risk"]);
    let own = scene.file("own.json", &json!({"kind": "oldestDue", "olderThan": "1m"}).to_string());
    scene
        .run(&["alerts", "rules", "put", "own", text(&own)])
        .well()
        .says(&["alert rule `own` created (version 1)"]);
    scene.run(&["alerts", "rules", "disable", "own"]).well().says(&["updated (version 2)"]);
    assert_eq!(scene.json(&["alerts", "rules", "show", "own"])["enabled"], false);
    scene.run(&["alerts", "rules", "enable", "own"]).well();
    let quiet = ["alerts", "rules", "mute", "own", "--until", "2099-01-01T00:00:00Z", "--reason", "a test"];
    scene.run(&quiet).well().says(&["muted until 2099-01-01"]);
    scene.run(&["alerts", "rules", "unmute", "own"]).well();
    scene.run(&["alerts", "rules", "delete", "own"]).well().says(&["`own` deleted"]);
    scene.run(&["alerts", "rules", "delete", "warnings"]).well().says(&["`warnings` reset to its defaults"]);
    scene.run(&["alerts", "rules", "show", "own"]).wrong(3, &["there is no such alert rule"]);
    scene.fed(&["alerts", "rules", "put", "own", "-"], "{}").wrong(1, &["kind: required"]);

    let hook = json!({"type": "webhook", "url": format!("{}/a/b", duty.address)}).to_string();
    scene.fed(&["alerts", "channels", "put", "duty", "-"], &hook).well().says(&["channel `duty` created"]);
    scene.run(&["alerts", "channels", "list"]).well().says(&["log", "duty", "webhook"]);
    scene
        .run(&["alerts", "channels", "test", "duty"])
        .well()
        .says(&["test message sent to channel `duty`", "200"]);
    assert_eq!(duty.only().json()["test"], true);
    duty.behave(PeerBehavior::Respond(503));
    scene
        .run(&["alerts", "channels", "test", "duty"])
        .wrong(1, &["the test message to channel `duty` failed", "503"]);
    let tested = scene.run(&["alerts", "channels", "test", "duty", "--json"]);
    assert_eq!((tested.code, &tested.json()["sent"]), (1, &Value::from(false)));
    assert_eq!(
        scene.json(&["alerts", "channels", "show", "duty"])["url"],
        json!(format!("{}/…", duty.address))
    );
    scene.run(&["alerts", "channels", "delete", "duty"]).well().says(&["deleted"]);
    scene.run(&["alerts", "channels", "test", "duty"]).wrong(3, &["there is no such channel"]);
}
