//! Circuits: shown, moved by hand with a reason, and kept.

use serde_json::{Value, json};

use super::{SERVICES, Scene, event};
use crate::harness::until;
use crate::peer::PeerBehavior;

const CIRCUIT: &str = "/api/v1/registry/services/billing/circuit";

/// HUB-7: whoever forces a circuit says why; that survives a restart, is shown with its history, and ends when somebody says so.
#[test]
fn hub_7_a_forced_circuit_has_a_reason_and_survives_a_restart() {
    let mut scene = Scene::new();
    let shown = scene.hub.circuit("billing");
    assert_eq!(
        (&shown["state"], &shown["history"], &shown["opened"]),
        (&json!("closed"), &json!([]), &json!(0))
    );
    for (verb, body) in [("forceOpen", json!({})), ("forceClosed", json!({"reason": "  "}))] {
        let reply = scene.hub.with("POST", &format!("{CIRCUIT}:{verb}"), &[], &body);
        assert_eq!((reply.status, &reply.body["errors"][0]["field"]), (422, &json!("reason")));
    }
    let moved = scene.hub.must(
        "POST",
        &format!("{CIRCUIT}:forceOpen"),
        &json!({"reason": "the disk is being changed"}),
    );
    assert_eq!(moved["state"], "forcedOpen");
    let id = scene.hub.send(&event("A")).remove(0);
    scene.restart();
    let kept = scene.hub.circuit("billing");
    assert_eq!(
        (&kept["state"], &kept["reason"]),
        (&json!("forcedOpen"), &json!("the disk is being changed"))
    );
    assert_eq!(scene.hub.get(&format!("{SERVICES}/billing"))["circuit"], "forcedOpen");
    let waiting = scene.hub.delivery(&id);
    assert_eq!((&waiting["failures"], &waiting["attempts"], scene.peer.count()), (&json!(0), &json!([]), 0));

    // Closed by force, it stays so, whatever the peer says.
    scene.hub.must("POST", &format!("{CIRCUIT}:forceClosed"), &json!({"reason": "done"}));
    scene.hub.wait_for(&id, "delivered");
    scene.restart();
    assert_eq!(scene.hub.circuit("billing")["state"], "forcedClosed");
    let reset = scene.hub.must("POST", &format!("{CIRCUIT}:reset"), &Value::Null);
    assert_eq!(reset["state"], "closed");
    let history = scene.hub.circuit("billing")["history"].clone();
    let states: Vec<&str> =
        history.as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["closed", "forcedClosed", "forcedOpen"], "the newest first");
    assert_eq!(history[2]["reason"], "the disk is being changed");
    assert!(history[2]["at"].as_str().unwrap().ends_with('Z'), "{history}");
}

/// HUB-7: a circuit that opens by itself is shown with its counts, and closed by hand lets go what has waited.
#[test]
fn hub_7_a_reset_lets_go_what_has_waited() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    let policy = json!({"policy": {"breaker": {"consecutive_failures": 2, "cooldown": "1h"}}});
    hub.must("PATCH", &format!("{SERVICES}/billing"), &policy);
    peer.behave(PeerBehavior::Respond(503));
    let ids: Vec<Value> = (0..5).flat_map(|n| hub.send(&event(&format!("A-{n}")))).collect();
    until("it opens", || hub.circuit("billing")["state"] == "open");
    let open = hub.circuit("billing");
    assert_eq!((&open["opened"], &open["history"][0]["state"]), (&json!(1), &json!("open")), "{open}");
    assert!(open["history"][0]["until"].is_string() && open["policy"].is_string(), "{open}");
    until("somebody is refused", || hub.circuit("billing")["refused"].as_u64() > Some(0));
    let troubled = hub.get("/actuator/health")["circuitsNotClosed"].take();
    assert_eq!(troubled, json!([{"service": "billing", "circuit": "open"}]), "in the words of the API");
    peer.behave(PeerBehavior::Respond(200));
    hub.must("POST", &format!("{CIRCUIT}:reset"), &json!({"reason": "mended"}));
    ids.iter().for_each(|id| drop(hub.wait_for(id, "delivered")));
    assert_eq!(hub.get("/actuator/health")["circuitsNotClosed"], json!([]));
}

/// HUB-7: a service without a breaker has no circuit to move, and an unknown one has none at all.
#[test]
fn hub_7_what_has_no_circuit_says_so() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    hub.must(
        "POST",
        SERVICES,
        &json!({"name": "bare", "address": peer.address, "policy": {"attempt_timeout": "1s"}}),
    );
    let circuit = hub.circuit("bare");
    assert_eq!(circuit["state"], Value::Null, "{circuit}");
    let reply = hub.with("POST", &format!("{SERVICES}/bare/circuit:reset"), &[], &Value::Null);
    assert_eq!((reply.status, &reply.body["code"]), (409, &json!("conflict")));
    for (method, path) in [
        ("GET", "nobody/circuit"),
        ("POST", "nobody/circuit:reset"),
        ("POST", "billing/circuit:explode"),
        ("POST", "billing/fuse:reset"),
    ] {
        let reply = hub.with(method, &format!("{SERVICES}/{path}"), &[], &Value::Null);
        assert_eq!(reply.status, 404, "{method} {path}: {}", reply.body);
    }
}
