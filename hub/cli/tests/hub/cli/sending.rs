//! Events from the command line.

use serde_json::{Value, json};

use super::{Scene, command, ran, text};
use crate::peer::{Peer, PeerBehavior};

/// HUB-10, HUB-2: one event, with data from everywhere. A number that no program can hold arrives as it was written.
#[test]
fn hub_10_an_event_is_sent() {
    let scene = Scene::new();
    let data = r#"{"n":123456789012345678901234567890.10}"#;
    let file = format!("@{}", text(&scene.file("data.json", data)));
    for (id, given, input) in [("A", data, ""), ("B", &*file, ""), ("C", "-", data)] {
        let said = scene.fed(&["send", "order.created", "--id", id, "--data", given], input).well();
        said.says(&[&format!("event {id} accepted; 1 delivery:\n  dlv_")]);
        let arrived = || scene.peer.requests().iter().any(|got| got.text().contains(data));
        crate::harness::until("it arrived as it was written", arrived);
        scene.peer.forget();
    }
    let again = scene.run(&["send", "order.created", "--id", "A", "--data", data]).well();
    again.says(&["event A is a duplicate"]);
    scene.run(&["send", "order.created", "--id", "A", "--data", "{}"]).wrong(1, &["(422 otherContent)"]);
    scene.run(&["send", "order.created", "--data", "{id: 1}"]).wrong(2, &["--data:1:2: invalid JSON"]);
    scene.run(&["send", "Not A Type"]).wrong(1, &["type: "]);
    scene.run(&["send"]).wrong(2, &["TYPE"]);
    scene.run(&["send", "a.b", "--file", "x"]).wrong(2, &["cannot be used with"]);
}

/// HUB-10: without an id each is another one; under a key it is the same.
#[test]
fn hub_10_an_event_without_an_id_gets_one() {
    let scene = Scene::new();
    let id = |args: &[&str]| scene.json(&[&["send", "a.b"], args].concat())["id"].clone();
    assert_ne!(id(&[]), id(&[]));
    let keyed = ["--idempotency-key", "order-7"];
    assert_eq!(id(&keyed), id(&keyed));
    let found = scene.json(&["events", "list", "--source", "shop"]);
    assert_eq!(found, json!([]));
    id(&["--source", "shop"]);
    assert_eq!(scene.json(&["events", "list", "--source", "shop"]).as_array().unwrap().len(), 1);
}

/// HUB-10: a file goes in batches; a line with a mistake is told by its number and keeps nothing else back; sent again,
/// nothing happens twice.
#[test]
fn hub_10_a_file_is_sent_and_mistakes_keep_nothing_back() {
    let scene = Scene::new();
    let mut lines: Vec<String> =
        (0..1_100).map(|n| json!({"id": format!("E-{n}"), "type": "a.b"}).to_string()).collect();
    lines[3] = r#"{"type":"a.b"}"#.into();
    lines[4] = r#"{"id":"#.into();
    lines[5] = String::new();
    lines[6] = "[]".into();
    lines[700] = json!({"id": "E-0", "type": "a.c"}).to_string();
    lines[701] = format!(r#"{{"id":"E-x","type":"a.b","data":"{}"}}"#, "x".repeat(1024 * 1024));
    let file = scene.file("events.jsonl", &lines.join("\n"));
    let said = scene.run(&["send", "--file", text(&file)]).wrong(
        1,
        &[
            "events.jsonl:4: id: required",
            ":5: column ",
            ":7: invalid type: sequence",
            ":701: ",
            ":702: the event is larger",
        ],
    );
    assert_eq!(said.out, "accepted: 1094, deduplicated: 0, refused: 5\n");
    let again = scene.run(&["send", "--file", text(&file), "--json"]).wrong(1, &[]);
    assert_eq!(again.json(), json!({"accepted": 0, "deduplicated": 1094, "refused": 5}));
    assert_eq!(scene.json(&["events", "list", "--all"]).as_array().unwrap().len(), 1094);
    scene.fed(&["send", "--file", "-"], &lines[10]).well().says(&["deduplicated: 1, refused: 0"]);
    scene.fed(&["send", "--file", "-"], "").well().says(&["accepted: 0"]);
    scene.run(&["send", "--file", "nowhere"]).wrong(2, &["can't read `nowhere`"]);
}

/// HUB-10: large events go in smaller batches, because a request has 1 MiB at most.
#[test]
fn hub_10_a_batch_is_never_larger_than_a_request() {
    let scene = Scene::new();
    let data = "x".repeat(300_000);
    let lines: String = (0..10)
        .map(|n| format!("{}\n", json!({"id": format!("E-{n}"), "type": "a.b", "data": data})))
        .collect();
    scene.fed(&["send", "--file", "-"], &lines).well().says(&["accepted: 10, deduplicated: 0, refused: 0"]);
}

fn batches(peer: &Peer) -> Vec<Value> {
    peer.requests()
        .iter()
        .filter(|got| got.request_line().starts_with("POST "))
        .map(|request| request.json())
        .collect()
}

/// HUB-10: a hub that is full is asked again when it said so; one that stays away ends with five, and says that the file may
/// be sent again.
#[test]
fn hub_10_a_hub_that_is_full_is_asked_again() {
    let peer = Peer::start();
    peer.behave(PeerBehavior::Respond(507));
    peer.set_body(
        r#"{"status":"error","code":"full","message":"the disk is full","retryable":true,"errors":[]}"#,
    );
    let line = r#"{"id":"A","type":"a.b"}"#;
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| ran(&mut command(&peer.address, &["send", "--file", "-"]), line));
        crate::harness::until("it was sent twice", || batches(&peer).len() >= 2);
        let result = json!({
            "id": "A", "deliveries": [], "deduplicated": false, "filtered": 0, "unmatched": true, "held": 0,
        });
        let data = json!({"accepted": 1, "refused": 0, "results": [result]});
        peer.set_body(&json!({"status": "accepted", "data": data}).to_string());
        peer.behave(PeerBehavior::Respond(202));
        sending.join().unwrap().well().says(&["accepted: 1, deduplicated: 0, refused: 0"]);
    });
    assert!(batches(&peer).iter().all(|body| body["events"][0]["id"] == "A"));
    peer.set_body(r#"{"status":"error","code":"internal","message":"broken","errors":[]}"#);
    peer.behave(PeerBehavior::Respond(500));
    let said = ran(&mut command(&peer.address, &["send", "--file", "-"]), line);
    said.wrong(5, &["broken (500 internal)", "send the whole file again"]).says(&["accepted: 0"]);
    peer.refuse_connections();
    ran(&mut command(&peer.address, &["send", "--file", "-"]), line).wrong(5, &["can't reach the hub"]);
}
