//! Why a circuit stands where it does, who moved it, and what the dead letters of an outage have in common.

use serde_json::{Value, json};

use super::{SERVICES, Scene, event};
use crate::harness::until;
use crate::peer::PeerBehavior;

const CIRCUIT: &str = "/api/v1/registry/services/billing/circuit";
const CALL: &str = "/api/v1/gateway/services/billing:call";

fn is_open(scene: &Scene) -> bool {
    scene.hub.circuit("billing")["state"] != "closed"
}

/// HUB-7. Trap "the reason shown for an open circuit is what tripped it this time": neither the remark of a person who has moved it
/// before, nor the cause of an outage that is over. An outage is one line in its history, however often it was probed.
#[test]
fn hub_7_the_reason_of_an_open_circuit_is_what_tripped_it_this_time() {
    let policy = json!({"attempt_timeout": "2s", "breaker": {"consecutive_failures": 1, "cooldown": "50ms", "close_after": 1}});
    let scene = Scene::new(&policy, &json!({"base": "20ms", "cap": "50ms"}));
    scene.hub.must("POST", &format!("{CIRCUIT}:forceOpen"), &json!({"reason": "the disk is being changed"}));
    scene.hub.must("POST", &format!("{CIRCUIT}:reset"), &json!({"reason": "the disk is new"}));

    scene.peer.behave(PeerBehavior::Respond(503));
    let first = scene.hub.send(&event("A")).remove(0);
    until("it has opened, and was probed in vain", || scene.peer.count() >= 4);
    let open = scene.hub.circuit("billing");
    assert!(open["reason"].as_str().is_some_and(|reason| reason.contains("503")), "{open}");
    scene.peer.behave(PeerBehavior::Respond(200));
    scene.hub.wait_for(&first, "delivered");
    until("it is closed", || !is_open(&scene));
    assert_eq!(scene.hub.circuit("billing")["reason"], Value::Null);

    scene.peer.refuse_connections();
    scene.hub.send(&event("B"));
    until("it has opened again, and was probed in vain", || {
        let last = &scene.hub.circuit("billing")["history"][0];
        last["state"] == "open" && last["failedProbes"].as_u64() >= Some(2)
    });
    let mut show = std::process::Command::new(crate::harness::SEAWALL);
    show.args(["circuits", "show", "billing", "--url", &format!("http://{}", scene.hub.address)]);
    let shown = show.env("SEAWALL_KEY", crate::harness::KEY).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let table: Vec<&str> = shown.lines().skip_while(|line| !line.contains("FAILED PROBES")).collect();
    let column = table.first().unwrap_or_else(|| panic!("{shown}")).find("FAILED PROBES").unwrap();
    let probes = table[1].get(column..).and_then(|rest| rest.split_whitespace().next());
    assert!(probes.and_then(|probes| probes.parse::<u64>().ok()) >= Some(2), "{shown}");
    let open = scene.hub.circuit("billing");
    let history = open["history"].as_array().unwrap();
    let states: Vec<&str> = history.iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["open", "closed", "open", "closed", "forcedOpen"], "{open}");
    for reason in [&open["reason"], &history[0]["reason"]] {
        assert!(reason.as_str().is_some_and(|reason| reason.to_lowercase().contains("refused")), "{open}");
    }
    assert!(history[2]["reason"].as_str().is_some_and(|reason| reason.contains("503")), "{open}");
    assert_eq!((&history[3]["reason"], &history[1]["reason"]), (&json!("the disk is new"), &Value::Null));
}

/// HUB-7, HUB-8: a circuit that opens while somebody calls through it was not moved by them: the audit log has people who have moved
/// circuits, and nobody else.
#[test]
fn hub_8_a_circuit_that_trips_during_a_call_is_not_moved_by_the_caller() {
    let policy = json!({"attempt_timeout": "2s", "breaker": {"consecutive_failures": 1, "cooldown": "1h"}});
    let scene = Scene::new(&policy, &json!({}));
    scene.peer.refuse_connections();
    scene.hub.with("POST", CALL, &[], &json!({"method": "GET", "path": "/"}));
    until("it has opened", || is_open(&scene));
    until("it is in the history", || scene.hub.circuit("billing")["history"][0]["state"] == "open");
    let moves = || {
        let audit = scene.hub.all("/api/v1/ops/audit", "entries", 100);
        audit.iter().filter(|entry| entry["action"] == "circuit.move").cloned().collect::<Vec<_>>()
    };
    assert_eq!(moves(), Vec::<Value>::new());
    scene.hub.must("POST", &format!("{CIRCUIT}:reset"), &json!({"reason": "it is back"}));
    let moved = moves();
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert_eq!(moved[0]["target"], "billing closed");
}

/// HUB-6: what became too old in an outage is one group, called by what the peer did, whether it was sent before the circuit opened
/// or never; and no attempt is shown that never took place.
#[test]
fn hub_6_dead_letters_of_an_outage_are_grouped_by_what_the_peer_did() {
    let policy = json!({"attempt_timeout": "2s", "breaker": {"consecutive_failures": 1, "cooldown": "1h"}});
    let scene = Scene::new(&policy, &json!({"base": "20ms", "cap": "50ms", "maxAge": "1s"}));
    scene.peer.refuse_connections();
    let ids: Vec<_> = (0..5).map(|n| scene.hub.send(&event(&format!("A-{n}"))).remove(0)).collect();
    for id in &ids {
        scene.hub.wait_for(id, "deadLettered");
    }
    let groups = scene.hub.all("/api/v1/bridge/deadLetterGroups", "deadLetterGroups", 100);
    assert_eq!(groups.len(), 1, "{groups:?}");
    let message = groups[0]["message"].as_str().unwrap().to_lowercase();
    assert!(message.contains("refused") && !message.contains("rejected"), "{message}");
    let attempts: usize =
        ids.iter().map(|id| scene.hub.delivery(id)["attempts"].as_array().unwrap().len()).sum();
    assert_eq!(attempts, 1, "the one that opened the circuit");
}

/// OBS-3: `resilience4j.retry.calls` counts what the gateway has retried, too.
#[test]
fn obs_3_retries_of_the_gateway_are_counted() {
    let policy = json!({
        "attempt_timeout": "2s", "breaker": {"consecutive_failures": 1_000},
        "retry": {"max_attempts": 2, "backoff": {"base": "1ms", "cap": "1ms"}},
    });
    let scene = Scene::new(&policy, &json!({}));
    let counted = |kind: &str| {
        let path = format!("/actuator/metrics/resilience4j.retry.calls?tag=kind:{kind}&tag=name:billing");
        scene.hub.with("GET", &path, &[], &Value::Null).body["measurements"][0]["value"]
            .as_f64()
            .unwrap_or(0.0)
    };
    scene.hub.with("POST", CALL, &[], &json!({"method": "GET", "path": "/"}));
    scene.peer.behave(PeerBehavior::Respond(503));
    scene.hub.with("POST", CALL, &[], &json!({"method": "GET", "path": "/"}));
    let key = [("x-seawall-key", crate::harness::KEY)];
    assert_eq!(scene.hub.call("GET", "/gateway/billing/x", &key, "").status, 503);
    assert_eq!(scene.peer.count(), 5);
    assert_eq!((counted("successful_without_retry"), counted("failed_with_retry")), (1.0, 2.0));
    assert_eq!(scene.hub.get(&format!("{SERVICES}/billing"))["name"], "billing");
}
