//! Attempts: what is sent again, how often, when, and what is kept of each.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{SERVICES, Scene, event};
use crate::harness::until;
use crate::peer::{Peer, PeerBehavior, ReceivedRequest};

const ALL: &str = "/api/v1/registry/rules/all";

fn dead(scene: &Scene, id: &Value) -> Value {
    scene.hub.wait_for(id, "deadLettered");
    scene.hub.get(&format!("/api/v1/bridge/deadLetters/{}", id.as_str().unwrap()))
}

/// HUB-5, PRM-2: five answers that might have passed are a dead letter; each try is on the wire once, has the same delivery id
/// and another number, and is kept. Traps "retries never run", "each wire attempt is recorded".
#[test]
fn hub_5_every_try_is_on_the_wire_and_is_kept() {
    let scene = Scene::new();
    scene.peer.behave(PeerBehavior::Respond(500));
    let id = scene.hub.send(&event("A")).remove(0);
    let letter = dead(&scene, &id);
    assert_eq!(
        (&letter["reason"], &letter["counted"], &letter["status"]),
        (&json!("attempts"), &json!(5), &json!(500))
    );
    let (attempts, got) = (letter["attempts"].as_array().unwrap(), scene.peer.requests());
    assert_eq!((attempts.len(), got.len()), (5, 5));
    let numbers: Vec<&str> = got.iter().map(|got| got.header("seawall-try").unwrap()).collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "5"]);
    assert!(got.iter().all(|one| one.header("seawall-delivery") == id.as_str() && one.body == got[0].body));
    let times: BTreeSet<&str> = attempts.iter().map(|one| one["at"].as_str().unwrap()).collect();
    assert_eq!(times.len(), 5, "each has its time: {times:?}");

    // A rule says how many, and a service that is critical has one more.
    let other = Scene::new();
    other.peer.behave(PeerBehavior::Respond(500));
    other.hub.must("PATCH", ALL, &json!({"delivery": {"maxAttempts": 2}}));
    let id = other.hub.send(&event("B")).remove(0);
    assert_eq!(dead(&other, &id)["attempts"].as_array().unwrap().len(), 2);
    let policy = json!({"policy": {"preset": "critical", "breaker": {"consecutive_failures": 1_000}}});
    other.hub.must("PATCH", &format!("{SERVICES}/billing"), &policy);
    other.hub.must("PATCH", ALL, &json!({"delivery": {"maxAttempts": null}}));
    let id = other.hub.send(&event("C")).remove(0);
    assert_eq!(dead(&other, &id)["attempts"].as_array().unwrap().len(), 6);
}

/// HUB-5: with `count: all`, silence and no connection count too. Trap "a refused connection is attempted `max_attempts` times".
#[test]
fn hub_5_who_wants_it_counts_every_failure() {
    let scene = Scene::new();
    scene.hub.must("PATCH", ALL, &json!({"delivery": {"count": "all", "maxAttempts": 3}}));
    let policy = json!({"policy": {"attempt_timeout": "100ms", "breaker": {"consecutive_failures": 1_000}}});
    scene.hub.must("PATCH", &format!("{SERVICES}/billing"), &policy);
    scene.peer.behave(PeerBehavior::Hang);
    let silent = scene.hub.send(&event("A")).remove(0);
    let letter = dead(&scene, &silent);
    assert_eq!(
        (&letter["reason"], &letter["counted"], &letter["status"]),
        (&json!("attempts"), &json!(3), &Value::Null)
    );
    assert_eq!(scene.peer.count(), 3, "seen by the peer");
    scene.peer.refuse_connections();
    let refused = scene.hub.send(&event("B")).remove(0);
    let letter = dead(&scene, &refused);
    let attempts = letter["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &letter["counted"]), (3, &json!(3)));
    assert!(
        attempts.iter().all(|one| one["error"].is_string() && one["sent"]["line"].is_string()),
        "{letter}"
    );
}

/// HUB-5: a peer that says when to come back is asked then and not before, and that costs no attempt.
#[test]
fn hub_5_a_peer_says_when_to_come_back() {
    let scene = Scene::new();
    scene.peer.behave(PeerBehavior::Respond(429));
    scene.peer.set_header("retry-after", "2");
    let id = scene.hub.send(&event("A")).remove(0);
    let waits = scene.hub.wait_for(&id, "waiting");
    assert_eq!(
        (&waits["waitsFor"], &waits["counted"], &waits["failures"]),
        (&json!("time"), &json!(0), &json!(1))
    );
    assert_eq!(waits["attempts"][0]["answerHeaders"]["retry-after"], "2");
    let tried = waits["attempts"][0]["at"].as_str().unwrap();
    assert!(waits["dueAt"].as_str().unwrap() > tried, "{waits}");
    scene.peer.behave(PeerBehavior::Respond(200));
    let done = scene.hub.wait_for(&id, "delivered");
    // Both are texts of the same form, so the seconds can be compared as numbers of the same minute or the next.
    let second = |at: &Value| at.as_str().unwrap()[17..23].parse::<f64>().unwrap();
    let between = (second(&done["attempts"][1]["at"]) - second(&done["attempts"][0]["at"])).rem_euclid(60.0);
    assert!(between >= 1.9, "it came back after {between} s");
}

/// HUB-5, PRM-10: a redirect is a failure and is not followed. Trap "redirects".
#[test]
fn hub_5_a_redirect_is_not_followed() {
    let (scene, elsewhere) = (Scene::new(), Peer::start());
    for status in [301, 302, 307, 308] {
        scene.peer.behave(PeerBehavior::Respond(status));
        scene.peer.set_header("location", &format!("{}/stolen", elsewhere.address));
        let id = scene.hub.send(&event(&format!("A-{status}"))).remove(0);
        let letter = dead(&scene, &id);
        assert_eq!((&letter["reason"], &letter["status"]), (&json!("refused"), &json!(status)));
    }
    assert_eq!(elsewhere.count(), 0);
}

/// HUB-5, PRM-8: of a large answer a beginning is kept, and no more; the evidence says so.
#[test]
fn hub_5_of_a_large_answer_the_beginning_is_kept() {
    let scene = Scene::new();
    scene.peer.set_body(&"x".repeat(200_000));
    scene.peer.behave(PeerBehavior::Respond(400));
    let id = scene.hub.send(&event("A")).remove(0);
    let kept =
        |bytes: usize| json!(format!("{}\n[cut: the answer is larger than 4096 bytes]", "x".repeat(bytes)));
    assert_eq!(dead(&scene, &id)["attempts"][0]["answer"], kept(4 * 1024));
    scene.peer.behave(PeerBehavior::Respond(200));
    let id = scene.hub.send(&event("B")).remove(0);
    assert_eq!(scene.hub.wait_for(&id, "delivered")["attempts"][0]["answer"], kept(256));
}

/// HUB-5, PRM-7: what has become too old is a dead letter, and says so; until then an outage costs nothing.
#[test]
fn hub_5_what_is_too_old_is_given_up() {
    let scene = Scene::new();
    scene.peer.refuse_connections();
    scene.hub.must("PATCH", ALL, &json!({"delivery": {"maxAge": "2s", "base": "50ms", "cap": "50ms"}}));
    let id = scene.hub.send(&event("A")).remove(0);
    let letter = dead(&scene, &id);
    assert_eq!((&letter["reason"], &letter["counted"]), (&json!("age"), &json!(0)), "{letter}");
    assert!(letter["attempts"].as_array().unwrap().len() > 5, "it was tried until then");
    until("nothing is left", || {
        scene.hub.all("/api/v1/bridge/deliveries?state=waiting", "deliveries", 10).is_empty()
    });
}

/// HUB-5: who says that it is asked too much is not asked by all the others too. Trap "429/503 + Retry-After → throttle".
#[test]
fn hub_5_a_peer_that_is_asked_too_much_is_left_alone() {
    let scene = Scene::new();
    scene.peer.behave(PeerBehavior::Respond(429));
    scene.peer.set_header("retry-after", "2");
    let events: Vec<Value> = (0..200).map(|n| event(&format!("A-{n}"))).collect();
    scene.hub.must("POST", "/api/v1/bridge/events:batchCreate", &json!({"events": events}));
    let is_second = |got: &ReceivedRequest| got.header("seawall-try") == Some("2");
    until("somebody comes back", || scene.peer.requests().iter().any(is_second));
    let asked = scene.peer.count();
    assert!(asked <= 60, "those that were under way, and not all: {asked}");
    scene.peer.behave(PeerBehavior::Respond(200));
    until("all arrive in the end", || scene.peer.arrived().len() == 200);
    assert!(scene.peer.arrived().values().all(|times| *times == 1));
}
