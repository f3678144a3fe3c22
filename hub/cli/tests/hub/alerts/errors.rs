//! Errors in the log: each needs a person, and the first one is told at once.

use serde_json::json;
use tempfile::TempDir;

use super::{ALERT_RULES, ALERTS, Scene, start};
use crate::harness::until;
use crate::peer::{Peer, PeerBehavior};

/// HUB-12: with nothing but what comes with the hub, one ERROR opens one critical incident at once, which says what the log says;
/// more of them are the same incident.
#[test]
fn hub_12_one_error_in_the_log_is_an_incident_at_once() {
    let folder = TempDir::new().unwrap();
    let hub = start(folder.path());
    let scene = Scene { hub, folder, peer: Peer::start(), duty: Peer::start() };
    scene.service("billing");
    scene.duty();
    let rule = scene.hub.get(&format!("{ALERT_RULES}/errors"));
    assert_eq!(
        (&rule["kind"], &rule["enabled"], &rule["severity"]),
        (&json!("errors"), &json!(true), &json!("critical"))
    );
    assert_eq!((&rule["moreThan"], &rule["window"], &rule["for"]), (&json!(0), &json!("5m"), &json!("0s")));
    scene.hub.must("PUT", &format!("{ALERT_RULES}/errors"), &json!({"window": "3s", "resolveAfter": "0s"}));
    // What a peer refuses becomes a dead letter, and that is an error.
    scene.peer.behave(PeerBehavior::Respond(422));
    let dead = scene.send("billing", "A");
    scene.hub.wait_for(&dead, "deadLettered");
    until("somebody is told", || scene.duty.count() > 0);
    let message = scene.duty.requests()[0].json();
    let incident = &message["incident"];
    assert_eq!(
        (&message["type"], &incident["kind"]),
        (&json!("alert.opened"), &json!("errors")),
        "{message}"
    );
    assert_eq!((&incident["severity"], &incident["service"]), (&json!("critical"), &json!(null)));
    let summary = incident["summary"].as_str().unwrap();
    assert_eq!(summary, "1 error in the log within 3 s, the last one: [Deliver][Send] Failed!");
    scene.hub.wait_for(&scene.send("billing", "B"), "deadLettered");
    until("it is over", || scene.duty.count() == 2);
    let all = scene.hub.get(ALERTS);
    let errors: Vec<&serde_json::Value> =
        all["alerts"].as_array().unwrap().iter().filter(|alert| alert["kind"] == "errors").collect();
    assert_eq!((errors.len(), &errors[0]["state"]), (1, &json!("resolved")), "{all}");
    assert!(scene.duty.requests().iter().all(super::is_signed));
}
