//! Incidents: one message when it begins and one when it is over, whatever happens in between.

use serde_json::json;

use super::{ALERT_RULES, ALERTS, CHANNELS, PUBLIC, Scene, about, is_signed};
use crate::harness::until;
use crate::peer::{Peer, PeerBehavior};

/// HUB-12: a circuit that opens is told once, signed and with a link; `kill -9` brings no second message, and its end is told
/// once.
#[test]
fn hub_12_an_outage_is_one_message_and_its_end_another() {
    let mut scene = Scene::new();
    scene.service("mail");
    scene.duty();
    scene.peer.behave(PeerBehavior::Respond(503));
    let first = scene.send("billing", "A");
    let opened = scene.told("billing", "open");
    assert_eq!(
        (&opened["kind"], &opened["severity"], &opened["link"]),
        (&json!("circuitOpen"), &json!("critical"), &json!(format!("{PUBLIC}/services/billing")))
    );
    let got = scene.duty.only();
    assert!(is_signed(&got), "{}", got.head);
    let message = got.json();
    assert_eq!(message["id"].as_str(), got.header("webhook-id"));
    assert_eq!(message["id"], json!(format!("{}-opened", opened["id"].as_str().unwrap())));
    assert_eq!((&message["type"], &message["test"]), (&json!("alert.opened"), &json!(false)));
    assert_eq!(message["incident"]["link"], opened["link"]);
    assert!(message["incident"]["summary"].as_str().unwrap().contains("`billing` is open"), "{message}");

    // What comes later is told later, so if the first came twice, it would be seen by then.
    scene.restart();
    let second = scene.send("mail", "B");
    scene.told("mail", "open");
    assert_eq!(
        scene.duty.requests().iter().map(about).collect::<Vec<_>>(),
        ["opened billing", "opened mail"]
    );

    scene.peer.behave(PeerBehavior::Respond(200));
    for delivery in [&first, &second] {
        scene.hub.wait_for(delivery, "delivered");
    }
    let over = scene.told("billing", "resolved");
    assert!(over["resolvedBecause"].as_str().unwrap().contains("is closed"), "{over}");
    scene.told("mail", "resolved");
    let mut told: Vec<String> = scene.duty.requests().iter().map(about).collect();
    told.sort();
    assert_eq!(told, ["opened billing", "opened mail", "resolved billing", "resolved mail"]);
    assert!(scene.duty.requests().iter().all(is_signed));
    // What is over is over, also for the next start.
    scene.restart();
    scene.service("third");
    let force = json!({"reason": "a test"});
    scene.hub.must("POST", "/api/v1/registry/services/third/circuit:forceOpen", &force);
    scene.told("third", "open");
    assert_eq!(scene.duty.requests()[4..].iter().map(about).collect::<Vec<_>>(), ["opened third"]);
}

/// HUB-12: a circuit that flaps is one incident for as long as it has not been fine long enough.
#[test]
fn hub_12_a_circuit_that_flaps_is_one_incident() {
    let scene = Scene::new();
    scene.duty();
    let rule = json!({"resolveAfter": "1h"});
    scene.hub.must("PATCH", &format!("{ALERT_RULES}/circuit-open"), &rule);
    for turn in 0..3 {
        scene.peer.behave(PeerBehavior::Respond(503));
        let delivery = scene.send("billing", &format!("A-{turn}"));
        until("the circuit is not closed", || scene.hub.circuit("billing")["state"] != "closed");
        scene.told("billing", "open");
        scene.peer.behave(PeerBehavior::Respond(200));
        scene.hub.wait_for(&delivery, "delivered");
        until("the circuit is closed", || scene.hub.circuit("billing")["state"] == "closed");
    }
    assert_eq!(scene.duty.requests().iter().map(about).collect::<Vec<_>>(), ["opened billing"]);
}

/// HUB-12: a circuit that somebody has forced open is told as such; who has seen it says so, and it stands in the audit log.
#[test]
fn hub_12_a_forced_circuit_is_told_and_acknowledged() {
    let scene = Scene::new();
    let force = json!({"reason": "the disk is being changed"});
    scene.hub.must("POST", "/api/v1/registry/services/billing/circuit:forceOpen", &force);
    let opened = scene.told("billing", "open");
    assert!(opened["summary"].as_str().unwrap().contains("forced open (the disk is being changed)"));
    let path = format!("{ALERTS}/{}", opened["id"].as_str().unwrap());
    let seen = scene.hub.must("POST", &format!("{path}:acknowledge"), &json!({"reason": "I know"}));
    assert_eq!(
        (&seen["acknowledged"]["by"], &seen["acknowledged"]["reason"]),
        (&json!("admin"), &json!("I know"))
    );
    let entry = &scene.hub.get("/api/v1/ops/audit")["entries"][0];
    assert_eq!((&entry["action"], &entry["target"]), (&json!("alert.acknowledge"), &opened["id"]));
    scene.hub.must("POST", "/api/v1/registry/services/billing/circuit:reset", &json!({}));
    scene.told("billing", "resolved");
    let late = scene.hub.with("POST", &format!("{path}:acknowledge"), &[], &json!({}));
    assert_eq!((late.status, &late.body["code"]), (409, &json!("conflict")));
    assert_eq!(scene.hub.with("POST", &format!("{ALERTS}/inc_0:mute"), &[], &force).status, 422);
    assert_eq!(scene.hub.with("GET", &format!("{ALERTS}/inc_0"), &[], &json!(null)).status, 404);
}

/// HUB-12: nobody is told by a rule that is muted, until that is over; then they are, if it is bad still.
#[test]
fn hub_12_a_mute_is_quiet_until_it_is_over() {
    let scene = Scene::new();
    scene.duty();
    let rule = format!("{ALERT_RULES}/circuit-open");
    let muted =
        scene.hub.must("POST", &format!("{rule}:mute"), &json!({"for": "1h", "reason": "their migration"}));
    assert_eq!(muted["muted"]["reason"], "their migration");
    scene.peer.behave(PeerBehavior::Respond(503));
    scene.send("billing", "A");
    until("there is an incident", || !scene.alerts("?state=open").is_empty());
    let quiet = &scene.alerts("?state=open")[0];
    assert_eq!(quiet["notifications"], json!([]));
    let one = format!("{ALERTS}/{}", quiet["id"].as_str().unwrap());
    let until_then = json!({"until": "2099-01-01T00:00:00Z", "reason": "known"});
    scene.hub.must("POST", &format!("{one}:mute"), &until_then);
    scene.hub.must("POST", &format!("{rule}:unmute"), &json!({}));
    // Another channel and its sample: whatever was under way would have come before.
    scene.hub.must("POST", &format!("{CHANNELS}/duty:test"), &json!({}));
    assert!(scene.duty.only().json()["test"] == true);
    scene.hub.must("POST", &format!("{one}:unmute"), &json!({}));
    scene.told("billing", "open");
    assert_eq!(scene.duty.count(), 2);
}

/// HUB-12: a rule that is disabled ends its incidents, and says so; a service that is deleted does too.
#[test]
fn hub_12_a_rule_that_is_disabled_ends_its_incidents() {
    let scene = Scene::new();
    scene.duty();
    let force = json!({"reason": "a test"});
    scene.hub.must("POST", "/api/v1/registry/services/billing/circuit:forceOpen", &force);
    scene.told("billing", "open");
    scene.hub.must("PATCH", &format!("{ALERT_RULES}/circuit-open"), &json!({"enabled": false}));
    let over = scene.told("billing", "resolved");
    assert_eq!(over["resolvedBecause"], "the rule was disabled");
    let last = scene.duty.requests().pop().unwrap().json();
    assert_eq!(
        (&last["type"], &last["incident"]["resolvedBecause"]),
        (&json!("alert.resolved"), &over["resolvedBecause"])
    );

    scene.service("mail");
    scene.hub.must(
        "PUT",
        &format!("{ALERT_RULES}/own"),
        &json!({"kind": "circuitOpen", "for": "0s", "services": ["mail"]}),
    );
    scene.hub.must("POST", "/api/v1/registry/services/mail/circuit:forceOpen", &force);
    scene.told("mail", "open");
    scene.hub.must("DELETE", "/api/v1/registry/rules/mail", &json!(null));
    scene.hub.must("DELETE", "/api/v1/registry/services/mail", &json!(null));
    assert_eq!(scene.told("mail", "resolved")["resolvedBecause"], "the service was deleted");
}

/// HUB-12, SEC-1: a key that is for some services sees their incidents and no other, nor who is told.
#[test]
fn hub_12_a_key_sees_the_incidents_of_its_services() {
    let scene = Scene::new();
    scene.service("mail");
    scene.duty();
    let disk = json!({"freeBytesBelow": 1_u64 << 60, "for": "0s"});
    scene.hub.must("PATCH", &format!("{ALERT_RULES}/data-loss-risk"), &disk);
    for service in ["billing", "mail"] {
        let path = format!("/api/v1/registry/services/{service}/circuit:forceOpen");
        scene.hub.must("POST", &path, &json!({"reason": "a test"}));
    }
    until("all three are there", || scene.alerts("?state=open").len() == 3);
    let key = json!({"name": "mailer", "scopes": ["operate"], "services": ["mail"]});
    let key = scene.hub.must("POST", "/api/v1/registry/keys", &key)["key"].as_str().unwrap().to_owned();
    let ask = |method: &str, path: &str| scene.hub.ask(method, path, &key, "");
    let seen = ask("GET", ALERTS).1["data"]["alerts"].clone();
    assert_eq!((seen.as_array().unwrap().len(), &seen[0]["service"]), (1, &json!("mail")));
    for other in scene.alerts("?state=open").iter().filter(|one| one["service"] != "mail") {
        let path = format!("{ALERTS}/{}", other["id"].as_str().unwrap());
        assert_eq!((ask("GET", &path).0, ask("POST", &format!("{path}:acknowledge")).0), (404, 404));
    }
    assert_eq!(ask("POST", &format!("{ALERTS}/{}:acknowledge", seen[0]["id"].as_str().unwrap())).0, 200);
    assert_eq!(ask("GET", CHANNELS).1["data"].as_array().unwrap().len(), 1, "the log and nothing else");
    assert_eq!(ask("GET", &format!("{CHANNELS}/duty")).0, 404);
    assert_eq!(ask("PATCH", &format!("{ALERT_RULES}/circuit-open")).0, 403);
    // Who is for some services can't make everybody else deaf.
    for (name, service) in [("mails", "mail"), ("bills", "billing")] {
        let rule = json!({"kind": "circuitOpen", "services": [service]});
        scene.hub.must("PUT", &format!("{ALERT_RULES}/{name}"), &rule);
    }
    let mute = json!({"for": "1h", "reason": "a test"}).to_string();
    let muted = |name: &str| scene.hub.ask("POST", &format!("{ALERT_RULES}/{name}:mute"), &key, &mute).0;
    assert_eq!((muted("mails"), muted("bills"), muted("circuit-open")), (200, 404, 403));
    assert_eq!(ask("GET", &format!("{ALERT_RULES}/bills")).0, 404);
    assert_eq!(scene.hub.ask("GET", ALERTS, "wrong", "").0, 401);
    let page = scene.hub.all(ALERTS, "alerts", 1);
    assert!(page.len() >= 3, "page by page: {page:?}");
    assert_eq!(scene.alerts("?severity=warning").len(), 0);
}

/// HUB-12: a channel that hangs holds up neither the others nor the hub.
#[test]
fn hub_12_a_channel_that_hangs_holds_up_nobody() {
    let scene = Scene::new();
    scene.service("mail");
    let stuck = Peer::start();
    stuck.behave(PeerBehavior::Hang);
    scene.hub.must("PUT", &format!("{CHANNELS}/stuck"), &json!({"type": "webhook", "url": stuck.address}));
    scene.duty();
    for service in ["billing", "mail"] {
        let path = format!("/api/v1/registry/services/{service}/circuit:forceOpen");
        scene.hub.must("POST", &path, &json!({"reason": "a test"}));
    }
    until("the other one is told of both", || scene.duty.count() == 2);
    until("the one that hangs has one under way", || stuck.count() == 1);
    let waits = |incident: &serde_json::Value| {
        let notices = incident["notifications"].as_array().unwrap().clone();
        notices.iter().any(|notice| notice["channel"] == "stuck" && notice["state"] == "waiting")
    };
    assert!(scene.alerts("").iter().all(waits));
    scene.send("billing", "A");
    // It comes to itself: what waited arrives, and nothing else is sent again.
    stuck.behave(PeerBehavior::Respond(200));
    scene.hub.must(
        "PATCH",
        &format!("{CHANNELS}/stuck"),
        &json!({"url": format!("{}/again", stuck.address)}),
    );
    until("what waited has arrived", || !scene.alerts("").iter().any(waits));
    assert_eq!(scene.duty.count(), 2);
}
