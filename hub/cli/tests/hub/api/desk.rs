//! The dead letter desk: what has failed for good, found, grouped, mended and sent again.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{RULES, Scene, event};
use crate::harness::{KEY, until};
use crate::peer::PeerBehavior;

const LETTERS: &str = "/api/v1/bridge/deadLetters";
const GROUPS: &str = "/api/v1/bridge/deadLetterGroups";

impl Scene {
    /// Events that the peer refuses, and the dead letters that they have become.
    fn refused(&self, ids: &[&str]) -> Vec<String> {
        self.peer.behave(PeerBehavior::Respond(422));
        self.peer.set_body(r#"{"error":"no stock"}"#);
        let sent: Vec<Value> = ids.iter().map(|id| self.hub.send(&event(id)).remove(0)).collect();
        sent.iter().for_each(|id| drop(self.hub.wait_for(id, "deadLettered")));
        sent.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
    }

    fn only_group(&self) -> Value {
        let groups = self.hub.get(GROUPS);
        assert_eq!(groups["deadLetterGroups"].as_array().unwrap().len(), 1, "{groups}");
        groups["deadLetterGroups"][0].clone()
    }

    fn letter(&self, id: &str) -> Value {
        self.hub.get(&format!("{LETTERS}/{id}"))
    }

    /// Returns the number of matches.
    fn found(&self, query: &str) -> usize {
        self.hub.all(&format!("{LETTERS}?{query}"), "deadLetters", 100).len()
    }

    /// Work that has begun, when it has ended so.
    fn ended(&self, begun: &Value, state: &str) -> Value {
        let path = format!("/api/v1/ops/operations/{}", begun["id"].as_str().unwrap());
        let mut operation = Value::Null;
        until(&format!("{path} is {state}"), || {
            operation = self.hub.get(&path);
            operation["endedAt"].is_string()
        });
        assert_eq!(operation["state"], state, "{operation}");
        operation
    }

    /// Begins work on many, and waits until it is done.
    fn done(&self, verb: &str, body: &Value) -> Value {
        self.ended(&self.hub.must("POST", &format!("{LETTERS}:{verb}"), body), "done")
    }

    fn dry(&self, verb: &str, body: &Value) -> Value {
        let reply = self.hub.with("POST", &format!("{LETTERS}:{verb}"), &[], body);
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.body["data"].clone()
    }

    /// The lines of an export. Asked for as HTTP/1.0, it ends with the connection.
    fn lines(&self, query: &str) -> Vec<Value> {
        let mut stream = TcpStream::connect(&self.hub.address).unwrap();
        let head = format!(
            "GET {LETTERS}:export?{query} HTTP/1.0\r\nhost: hub\r\nauthorization: Bearer {KEY}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 ") && head.contains("application/x-ndjson"), "{head}");
        body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// HUB-6: what has failed alike is one group. A replay of it that does not help stops after one; one that does sends the rest,
/// each once, and the group is resolved until one more fails. Trap "replay of many before anybody knows that the fix works".
#[test]
fn hub_6_a_group_is_replayed_behind_a_canary() {
    let scene = Scene::new();
    let ids: Vec<String> = (0..30).map(|n| format!("A-{n}")).collect();
    scene.refused(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    let group = scene.only_group();
    assert_eq!(
        (&group["state"], &group["status"], &group["counts"]["open"]),
        (&json!("open"), &json!(422), &json!(30))
    );
    assert_eq!(
        (&group["message"], &group["service"], &group["rule"]),
        (&json!("no stock"), &json!("billing"), &json!("all"))
    );
    let path = format!("{GROUPS}/{}", group["fingerprint"].as_str().unwrap());
    assert_eq!(scene.hub.get(&path)["sampleLetter"]["id"], group["sample"]);
    let replay = format!("{path}:replay");

    scene.peer.forget();
    let dry = scene.hub.must("POST", &replay, &json!({"dryRun": true}));
    assert_eq!(
        (&dry["count"], &dry["countIsExact"], &dry["sample"][0]["group"]),
        (&json!(30), &json!(true), &group["fingerprint"])
    );
    let acknowledged =
        scene.hub.must("POST", &format!("{path}:acknowledge"), &json!({"note": "on it", "reason": "duty"}));
    assert_eq!((&acknowledged["state"], &acknowledged["note"]), (&json!("acknowledged"), &json!("on it")));
    assert_eq!(scene.peer.count(), 0, "nothing was sent");

    let begun = scene.hub.must("POST", &replay, &json!({"reason": "it may be mended"}));
    assert_eq!(
        (&begun["task"], &begun["plan"]["canary"], &begun["reason"]),
        (&json!("replay"), &json!([1, 10]), &json!("it may be mended"))
    );
    let stopped = scene.ended(&begun, "stopped");
    assert!(stopped["why"].as_str().unwrap().contains("canary"), "{stopped}");
    let progress = &stopped["progress"];
    assert_eq!(
        (&progress["total"], &progress["begun"], &progress["failed"]),
        (&json!(30), &json!(1), &json!(1))
    );
    assert_eq!(scene.peer.count(), 1, "a bad fix costs one request");
    let counts = scene.only_group()["counts"].clone();
    assert_eq!(
        (&counts["open"], &counts["failedAgain"]),
        (&json!(30), &json!(1)),
        "the one that failed again is open in its place"
    );

    scene.peer.behave(PeerBehavior::Respond(200));
    scene.peer.forget();
    let done = scene.ended(&scene.hub.must("POST", &replay, &json!({"ratePerSecond": 1_000})), "done");
    assert_eq!((&done["progress"]["delivered"], &done["percent"]), (&json!(30), &json!(100)), "{done}");
    let arrived = scene.peer.arrived();
    assert!(arrived.len() == 30 && arrived.values().all(|times| *times == 1), "each once: {arrived:?}");
    let group = scene.only_group();
    assert_eq!(
        (&group["state"], &group["counts"]["open"], &group["counts"]["delivered"]),
        (&json!("resolved"), &json!(0), &json!(30))
    );
    let one = scene.hub.get(&format!("{LETTERS}?standing=delivered&page_size=1"))["deadLetters"][0].clone();
    assert_eq!((&one["operation"], &one["state"]), (&done["id"], &json!("deadLettered")));

    scene.refused(&["B"]);
    let group = scene.only_group();
    assert_eq!(
        (&group["state"], &group["reopened"], &group["counts"]["open"]),
        (&json!("open"), &json!(1), &json!(1))
    );
}

/// HUB-6: a changed copy is shown before it is sent, goes out once, and says what was changed; the event stays as it came.
#[test]
fn hub_6_a_dead_letter_is_changed_and_sent() {
    let scene = Scene::new();
    let ids = scene.refused(&["A", "B"]);
    let (edit, data) = (format!("{LETTERS}/{}:edit", ids[0]), json!({"id": "mended"}));
    scene.peer.forget();
    let dry = scene.hub.must("POST", &edit, &json!({"data": data, "dryRun": true}));
    assert_eq!(dry["diff"], json!([{"place": "body.data.id", "was": "\"A\"", "now": "\"mended\""}]));
    assert_eq!(
        (&dry["delivery"], &dry["request"]["body"]["data"], scene.peer.count()),
        (&Value::Null, &data, 0)
    );

    // It fails again: the new dead letter knows how it differs from the one that it replays.
    let sent = scene.hub.must("POST", &edit, &json!({"data": data, "reason": "a typo"}));
    scene.hub.wait_for(&sent["delivery"], "deadLettered");
    assert_eq!(scene.peer.only().json()["data"], data);
    let again = scene.letter(sent["delivery"].as_str().unwrap());
    assert_eq!((&again["diff"], &again["replayOf"]), (&dry["diff"], &json!(ids[0])));
    assert_eq!((&again["rawEvent"]["data"]["id"], &again["related"][0]["id"]), (&json!("A"), &json!(ids[0])));
    let first = scene.letter(&ids[0]);
    assert_eq!(
        (&first["standing"], &first["edited"], &first["diff"]),
        (&json!("failedAgain"), &json!(true), &Value::Null)
    );
    let line = first["curl"].as_str().unwrap();
    assert!(line.starts_with(&format!("curl -X POST '{}/'", scene.peer.address)), "{line}");

    scene.peer.behave(PeerBehavior::Respond(200));
    scene.peer.forget();
    let request = json!({"method": "put", "path": "/other?a=b", "headers": {"content-type": "text/plain"}, "body": "as it is"});
    let body = json!({"request": request});
    let edit = format!("{LETTERS}/{}:edit", ids[1]);
    let keyed = [("idempotency-key", "click")];
    let (one, two) =
        (scene.hub.with("POST", &edit, &keyed, &body), scene.hub.with("POST", &edit, &keyed, &body));
    assert_eq!(
        (one.status, two.status, &one.body["data"]["delivery"]),
        (202, 202, &two.body["data"]["delivery"])
    );
    scene.hub.wait_for(&one.body["data"]["delivery"], "delivered");
    let got = scene.peer.only();
    assert_eq!(
        (got.request_line(), got.text(), got.header("content-type")),
        ("PUT /other?a=b", "as it is".to_owned(), Some("text/plain"))
    );
    assert_eq!(scene.letter(&ids[1])["standing"], "delivered");
    let (status, wrong) =
        scene.hub.post(&edit, &json!({"request": {"path": "nowhere", "heads": {}}, "again": true}));
    let fields = [&wrong["errors"][0]["field"], &wrong["errors"][1]["field"]];
    assert_eq!((status, fields), (422, [&json!("request.path"), &json!("request.heads")]), "{wrong}");
}

/// HUB-6: what was put aside is not replayed with many; what was deleted is out of sight and can be restored; what is purged is
/// gone, and only if somebody insists. An export has a line for each.
#[test]
fn hub_6_dead_letters_are_parked_deleted_restored_and_purged() {
    let scene = Scene::new();
    let ids = scene.refused(&["A", "B", "C", "D"]);
    let one = |id: &str, verb: &str| scene.hub.must("POST", &format!("{LETTERS}/{id}{verb}"), &Value::Null);
    assert_eq!(one(&ids[0], ":park")["standing"], "parked");
    assert_eq!(scene.hub.must("DELETE", &format!("{LETTERS}/{}", ids[1]), &Value::Null)["deleted"], true);
    assert_eq!(
        (scene.found("standing=open"), scene.found("standing=parked,deleted"), scene.found("")),
        (2, 2, 3)
    );
    assert_eq!(scene.letter(&ids[1])["standing"], "deleted", "it can be read still");
    assert_eq!(scene.dry("replay", &json!({"filter": {}, "dryRun": true}))["count"], 2);

    let lines = scene.lines("");
    assert_eq!(lines.len(), 3);
    assert!(
        lines
            .iter()
            .all(|line| line["attempts"][0]["status"] == 422 && line["rawEvent"]["type"] == "order.created")
    );
    assert_eq!(scene.lines("standing=deleted")[0]["id"], ids[1]);

    scene.peer.behave(PeerBehavior::Respond(200));
    scene.peer.forget();
    let replayed = scene.done("replay", &json!({"filter": {"service": "billing"}, "canary": false}));
    assert_eq!(
        (&replayed["progress"]["delivered"], scene.peer.count()),
        (&json!(2), 2),
        "neither what is aside nor what was deleted"
    );
    assert_eq!(one(&ids[1], ":restore")["standing"], "open");
    assert_eq!(one(&ids[0], ":unpark")["standing"], "open");

    scene.done("park", &json!({"filter": {"ids": [ids[0], ids[1]]}}));
    assert_eq!(scene.found("standing=parked"), 2);
    scene.done("unpark", &json!({"filter": {}, "max": 1}));
    assert_eq!((scene.found("standing=parked"), scene.found("standing=open")), (1, 1));
    scene.done("delete", &json!({"filter": {"standing": ["open", "parked"]}}));
    assert_eq!(scene.found("standing=deleted"), 2);
    scene.done("restore", &json!({"filter": {"event": "A"}}));
    assert_eq!(scene.found("standing=deleted"), 1);

    let purge = json!({"filter": {"standing": "deleted,delivered"}});
    assert_eq!((&scene.dry("purge", &purge)["count"], scene.found("standing=deleted")), (&json!(3), 1));
    let purged = scene.done(
        "purge",
        &json!({"filter": {"standing": "deleted,delivered"}, "force": true, "reason": "asked for"}),
    );
    assert_eq!((&purged["progress"]["begun"], &purged["plan"]), (&json!(3), &Value::Null));
    assert_eq!(scene.hub.ask("GET", &format!("{LETTERS}/{}", ids[1]), KEY, "").0, 404);
    let left = scene.hub.all(&format!("{LETTERS}?standing=open,parked,deleted,delivered"), "deadLetters", 10);
    assert_eq!(left.len(), 1, "{left:?}");
}

/// HUB-6: dead letters are found by words of the event, of the answer and by the names of events, as soon as they are in the index.
#[test]
fn hub_6_dead_letters_are_found_by_their_words() {
    let scene = Scene::new();
    scene.peer.behave(PeerBehavior::Respond(422));
    scene.peer.set_body(r#"{"error":"warehouse is flooded"}"#);
    let marked =
        json!({"id": "evt-marked", "type": "order.created", "data": {"customer": "Grünwald & Söhne"}});
    let first = scene.hub.send(&marked).remove(0);
    scene.hub.wait_for(&first, "deadLettered");
    scene.peer.set_body(r#"{"error":"other"}"#);
    let second = scene.hub.send(&event("evt-plain")).remove(0);
    scene.hub.wait_for(&second, "deadLettered");
    until("all are in the index", || scene.hub.get(&format!("{LETTERS}?q=evt"))["search"]["unindexed"] == 0);
    for query in [
        "q=gr%C3%BCnwald",
        "q=flooded",
        "q=evt-marked",
        "q=%22warehouse+is%22",
        "q=flood&status=422&service=billing",
    ] {
        let found = scene.hub.get(&format!("{LETTERS}?{query}"))["deadLetters"].clone();
        assert_eq!((found.as_array().unwrap().len(), &found[0]["id"]), (1, &first), "{query}");
    }
    assert_eq!((scene.found("q=evt"), scene.found("q=drowned"), scene.found("q=flooded+other")), (2, 0, 0));
    let dry = scene.dry("replay", &json!({"filter": {"q": "flooded"}, "dryRun": true}));
    assert_eq!((&dry["count"], &dry["sample"][0]["id"]), (&json!(1), &first));
}

/// PRM-2, HUB-6: whoever clicks twice sends once: with the same key both get the same answer, without one the second is refused.
#[test]
fn prm_2_a_double_click_sends_once() {
    let scene = Scene::new();
    let ids = scene.refused(&["A", "B", "C"]);
    scene.peer.behave(PeerBehavior::Respond(200));
    scene.peer.forget();
    let replay = |id: &str, headers: &[(&str, &str)]| {
        scene.hub.with("POST", &format!("{LETTERS}/{id}:replay"), headers, &Value::Null)
    };
    let keyed = [("idempotency-key", "click")];
    let (one, two) = (replay(&ids[0], &keyed), replay(&ids[0], &keyed));
    assert_eq!((one.status, two.status, &one.body["data"]), (202, 202, &two.body["data"]));
    let mut both = std::thread::scope(|scope| {
        let clicks =
            [scope.spawn(|| replay(&ids[1], &[]).status), scope.spawn(|| replay(&ids[1], &[]).status)];
        clicks.map(|click| click.join().unwrap())
    });
    both.sort_unstable();
    assert_eq!(both, [202, 409]);
    let many =
        |path: &str| scene.hub.with("POST", path, &keyed, &json!({"filter": {}})).body["data"]["id"].clone();
    let begun = many(&format!("{LETTERS}:replay"));
    assert_eq!((begun.is_string(), many(&format!("{LETTERS}:replay"))), (true, begun.clone()));
    scene.ended(&json!({"id": begun}), "done");
    until("all are delivered", || scene.found("standing=delivered") == 3);
    assert_eq!(scene.peer.count(), 3, "each once");
}

/// SEC-1, HUB-6: a key for one service works on its own, in bulk too, and on nothing else; to purge is for administrators.
#[test]
fn sec_1_a_limited_key_works_on_its_own_dead_letters() {
    let scene = Scene::new();
    scene.hub.must("POST", super::SERVICES, &json!({"name": "mail", "address": scene.peer.address}));
    scene.hub.must("POST", RULES, &json!({"name": "mails", "eventType": "*", "service": "mail"}));
    scene.peer.behave(PeerBehavior::Respond(422));
    let sent = scene.hub.send(&event("A"));
    sent.iter().for_each(|id| drop(scene.hub.wait_for(id, "deadLettered")));
    let made = json!({"name": "mailer", "scopes": ["operate"], "services": ["mail"]});
    let key = scene.hub.must("POST", "/api/v1/registry/keys", &made)["key"].as_str().unwrap().to_owned();
    let ask = |method: &str, path: &str, body: &Value| scene.hub.ask(method, path, &key, &body.to_string());
    let all = json!({"filter": {}});
    scene.peer.behave(PeerBehavior::Respond(200));
    scene.peer.forget();
    let (status, begun) = ask("POST", &format!("{LETTERS}:replay"), &all);
    assert_eq!((status, &begun["data"]["progress"]["total"]), (202, &json!(1)), "{begun}");
    scene.ended(&begun["data"], "done");
    assert_eq!((scene.peer.count(), scene.found("service=billing&standing=open")), (1, 1));
    assert_eq!(ask("POST", &format!("{LETTERS}:purge"), &all).0, 403);
    let (_, seen) = ask("GET", LETTERS, &json!({}));
    assert_eq!(seen["data"]["deadLetters"].as_array().unwrap().len(), 1);
}
