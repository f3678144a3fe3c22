//! Events, deliveries and dead letters.

use serde_json::{Value, json};

use super::Scene;
use crate::harness::until;
use crate::peer::PeerBehavior;

fn ids(list: &Value, path: &str) -> Vec<String> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|item| item.pointer(path).unwrap().as_str().unwrap().to_owned())
        .collect()
}

/// HUB-10: lists page by themselves, up to a limit or through everything.
#[test]
fn hub_10_lists_page_by_themselves() {
    let scene = Scene::new();
    let events: String =
        (0..1_203).map(|n| format!("{}\n", json!({"id": format!("E-{n}"), "type": "a.b"}))).collect();
    scene.fed(&["send", "--file", "-"], &events).well();
    let count = |args: &[&str]| scene.json(&[&["events", "list"], args].concat()).as_array().unwrap().len();
    assert_eq!((count(&[]), count(&["--limit", "3"]), count(&["--limit", "700"])), (50, 3, 700));
    let all = scene.json(&["events", "list", "--all"]);
    let expected: Vec<String> = (0..1_203).rev().map(|n| format!("E-{n}")).collect();
    assert_eq!(ids(&all, "/event/id"), expected, "each once, the newest first");
    let table = scene.run(&["events", "list", "--all"]).well();
    assert_eq!((table.out.lines().count(), table.err.as_str()), (1_204, ""));
    let exact = scene.run(&["events", "list", "--limit", "1203"]).well();
    assert_eq!(exact.err, "", "nothing is left, so nothing is said");
    assert_eq!((count(&["--type", "a.*"]), count(&["--type", "b.*"]), count(&["--source", "x"])), (50, 0, 0));
    assert_eq!(count(&["--unmatched"]), 0);
    scene.run(&["events", "list", "--type", "**.*"]).wrong(1, &["type: "]);
}

/// HUB-10: an event is shown, whatever stands in its id.
#[test]
fn hub_10_an_event_is_shown_by_its_id() {
    let scene = Scene::new();
    for id in ["A-7", "shop:7", "a/b?c%d#e"] {
        scene.run(&["send", "order.created", "--id", id]).well();
        scene.run(&["events", "show", id]).well().says(&[&format!("  id      {id}\n")]);
        assert_eq!(scene.json(&["events", "show", id])["event"]["id"], id);
    }
    scene.run(&["events", "show", "nope"]).wrong(3, &["no such event", "`seawall events list`"]);
}

/// HUB-10: deliveries are listed, shown with their tries, and watched until they end.
#[test]
fn hub_10_a_delivery_is_watched_until_it_ends() {
    let scene = Scene::new();
    scene.peer.behave(PeerBehavior::Respond(503));
    let id = scene.delivery("A-1");
    until("it was tried", || scene.peer.count() > 0);
    let state = ["deliveries", "list", "--state", "delivered"];
    assert_eq!(scene.json(&state), json!([]));
    scene
        .run(&["deliveries", "list", "--service", "billing", "--rule", "all", "--event", "A-1"])
        .well()
        .says(&[&id]);
    scene.peer.behave(PeerBehavior::Respond(200));
    let seen = scene.run(&["deliveries", "show", &id, "--watch"]).well();
    assert!(seen.err.contains("seawall: delivered, failures: "), "{}", seen.err);
    seen.says(&["state         delivered", "Attempts", "503"]);
    assert_eq!(ids(&scene.json(&state), "/id"), [id.as_str()]);
    assert_eq!(scene.json(&["deliveries", "show", &id])["state"], "delivered");

    scene.peer.behave(PeerBehavior::Respond(422));
    let lost = scene.delivery("A-2");
    let seen = scene.run(&["deliveries", "show", &lost, "--watch", "--json"]).wrong(1, &["deadLettered"]);
    assert_eq!(seen.json()["reason"], "refused");
    scene.run(&["deliveries", "show", "nope"]).wrong(3, &["no such delivery"]);
    scene.run(&["deliveries", "list", "--state", "lost"]).wrong(2, &["'lost'", "waiting, pending"]);
}

/// HUB-10, PRM-7: a dead letter is read, replayed, not replayed twice by accident, and discarded. What a peer has answered
/// can't give orders to the terminal.
#[test]
fn hub_10_a_dead_letter_is_read_replayed_and_discarded() {
    let scene = Scene::new();
    scene.peer.behave(PeerBehavior::Respond(422));
    scene.peer.set_body("\u{1b}[2Jno such account");
    let id = scene.delivery("A-1");
    until("it is given up", || scene.json(&["dlq", "list"]) != json!([]));
    let listed =
        scene.run(&["dlq", "list", "--service", "billing", "--rule", "all", "--reason", "refused"]).well();
    let listed = listed.says(&["DEAD-LETTERED", &id, "422"]);
    let shown = scene.run(&["dlq", "show", &id]).well();
    assert!(!listed.out.contains('\u{1b}') && !shown.out.contains('\u{1b}'), "{}", shown.out);
    shown.says(&[
        "reason            refused",
        "Attempts",
        "no such account",
        "\nRequest\nPOST ",
        "\nEvent\n{",
    ]);
    assert_eq!(scene.json(&["dlq", "show", &id])["rawEvent"]["id"], "A-1");
    scene.run(&["dlq", "list", "--reason", "boredom"]).wrong(2, &["'boredom'", "refused, gone"]);
    scene.run(&["dlq", "show", "nope"]).wrong(3, &["no such dead letter", "`seawall dlq list`"]);

    scene.peer.behave(PeerBehavior::Respond(200));
    let replayed = scene.run(&["dlq", "replay", &id, "--mode", "same", "--reason", "fixed"]).well();
    let second = replayed.out.split_whitespace().find(|word| word.starts_with("dlv_")).unwrap().to_owned();
    scene.run(&["deliveries", "show", &second, "--watch"]).well();
    scene.run(&["dlq", "replay", &id]).wrong(1, &["it has been replayed", "(409 conflict)", "`--again`"]);
    assert_eq!(scene.json(&["dlq", "replay", &id, "--again"])["replayOf"], id.as_str());
    scene.run(&["dlq", "replay", &id, "--mode", "other"]).wrong(2, &["possible values"]);
    scene.run(&["dlq", "replay", "nope"]).wrong(3, &[]);
    scene.run(&["dlq", "discard", &id, "--reason", "a test"]).well().says(&[" deleted"]);
    assert_eq!(scene.json(&["dlq", "list"]), json!([]));
    scene.run(&["dlq", "discard", "nope"]).wrong(3, &[]);
}
