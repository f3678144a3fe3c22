//! A hub that was stopped for a while.

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::{Scene, event};
use crate::harness::until;
use crate::peer::PeerBehavior;

fn signal(scene: &Scene, signal: &str) {
    let process = scene.hub.process.id().to_string();
    assert!(Command::new("kill").args([signal, &process]).status().unwrap().success());
}

/// HUB-7. Trap "SIGSTOP for a minute opens no circuit": requests that were under way while the process was stopped, and whose time
/// was over by then, are sent again as if they had never been: no attempt, no failure, no move of the circuit.
#[test]
fn hub_7_a_pause_of_the_hub_itself_opens_no_circuit() {
    let policy = json!({
        "attempt_timeout": "1s", "breaker": {"consecutive_failures": 3, "cooldown": "1h"}, "bulkhead": {"max_calls": 20},
    });
    let scene = Scene::new(&policy, &json!({"base": "20ms", "cap": "100ms"}));
    scene.peer.behave(PeerBehavior::Hang);
    let ids: Vec<_> = (0..10).map(|n| scene.hub.send(&event(&format!("A-{n}"))).remove(0)).collect();
    until("all are under way", || scene.peer.count() == 10);
    signal(&scene, "-STOP");
    // That is the pause: the attempts' time is over long before its end.
    std::thread::sleep(Duration::from_secs(5));
    scene.peer.behave(PeerBehavior::Respond(200));
    signal(&scene, "-CONT");
    for id in &ids {
        let delivery = scene.hub.wait_for(id, "delivered");
        assert_eq!(delivery["failures"], 0, "{delivery}");
    }
    let circuit = scene.hub.circuit("billing");
    assert_eq!((&circuit["opened"], &circuit["history"]), (&json!(0), &json!([])), "{circuit}");
}
