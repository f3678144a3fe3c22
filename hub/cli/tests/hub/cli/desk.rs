//! The dead letter desk from the command line.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use seawall_testkit::http::HttpMessage;
use serde_json::{Value, json};

use super::{Ran, Scene, command, ran, text};
use crate::harness::until;
use crate::peer::PeerBehavior;

/// Some failed again, or the canary stopped it.
const NOT_ALL: i32 = 6;
/// What a shell says of Ctrl-C.
const LEFT: i32 = 130;

impl Scene {
    /// Makes dead letters `A-0`, `A-1`, … that the peer has refused, the newest first; from now on it answers 200.
    fn dead(&self, count: usize) -> Vec<String> {
        self.peer.behave(PeerBehavior::Respond(422));
        self.peer.set_body(r#"{"error":"no currency"}"#);
        let events: String = (0..count)
            .map(|n| {
                format!("{}\n", json!({"id": format!("A-{n}"), "type": "order.created", "data": {"n": n}}))
            })
            .collect();
        self.fed(&["send", "--file", "-"], &events).well();
        until("all are given up", || self.open().len() == count);
        self.peer.behave(PeerBehavior::Respond(200));
        self.peer.forget();
        self.open()
    }

    fn open(&self) -> Vec<String> {
        self.ids(&["--standing", "open"])
    }

    /// The ids of those that a filter takes.
    fn ids(&self, filter: &[&str]) -> Vec<String> {
        let list = self.json(&[&["dlq", "list", "--all"], filter].concat());
        let id = |one: &Value| one["id"].as_str().unwrap().to_owned();
        list.as_array().unwrap().iter().map(id).collect()
    }

    fn group(&self) -> String {
        self.json(&["dlq", "groups"])[0]["fingerprint"].as_str().unwrap().to_owned()
    }

    fn dlq(&self, args: &[&str]) -> Ran {
        self.run(&[&["dlq"], args].concat())
    }
}

/// HUB-6, HUB-10: groups are listed and shown with counts and a sample; they are acknowledged, resolved and opened again, with
/// a note.
#[test]
fn hub_10_groups_are_read_and_settled() {
    let scene = Scene::new();
    let dead = scene.dead(3);
    let group = scene.group();
    let listed = scene.dlq(&["groups", "--service", "billing", "--rule", "all", "--state", "open"]).well();
    listed.says(&["GROUP", "OPEN", &group, "3     open   refused  422"]);
    assert_eq!(scene.json(&["dlq", "groups", "--state", "resolved"]), json!([]));
    let shown = scene.dlq(&["group", &group]).well();
    shown.says(&["open         3", "note         -", "\nSample\n", &format!("seawall dlq show {}", dead[0])]);
    let said = scene.dlq(&["ack", &group, "--note", "Ada is at it", "--reason", "INC-1"]).well();
    said.says(&[&format!("group {group} is now acknowledged")]);
    assert_eq!(scene.json(&["dlq", "group", &group])["note"], "Ada is at it");
    assert_eq!(scene.json(&["dlq", "resolve", &group])["state"], "resolved");
    assert_eq!(scene.json(&["dlq", "reopen", &group])["state"], "open");
    scene.dlq(&["note", &group, "other"]).well().says(&["note of "]);
    scene.dlq(&["note", &dead[0], "the customer knows"]).well();
    assert_eq!(scene.json(&["dlq", "show", &dead[0]])["note"], "the customer knows");
    scene.dlq(&["note", &dead[0], ""]).well().says(&["removed"]);
    assert_eq!(scene.json(&["dlq", "show", &dead[0]])["note"], Value::Null);
    let audit = scene.json(&["audit"]).to_string();
    assert!(audit.contains("INC-1"), "{audit}");
    for verb in ["group", "ack", "resolve", "reopen"] {
        scene.dlq(&[verb, "grp_0000000000000000"]).wrong(3, &["no such group", "`seawall dlq groups`"]);
    }
    scene.dlq(&["groups", "--state", "lost"]).wrong(2, &["'lost'", "open, acknowledged"]);
}

/// HUB-6, HUB-10: dead letters are chosen by everything that they have, and by when they were given up, in two ways of saying
/// it.
#[test]
fn hub_10_dead_letters_are_filtered_by_everything() {
    let scene = Scene::new();
    let dead = scene.dead(3);
    let (group, at) = (scene.group(), scene.json(&["dlq", "show", &dead[0]])["deadAt"].clone());
    let all: &[&[&str]] = &[
        &["--service", "billing", "--rule", "all", "--reason", "refused", "--status", "422"],
        &["--cause", "refused", "--group", &group, "--standing", "open,parked"],
        &["--since", "1h"],
        &["--since", "2020-01-01T00:00:00Z", "--until", "2120-01-01T00:00:00Z"],
    ];
    for filter in all {
        assert_eq!(scene.ids(filter), dead, "{filter:?}");
    }
    let none: &[&[&str]] =
        &[&["--status", "500"], &["--standing", "parked"], &["--until", "1h"], &["--reason", "age"]];
    for filter in none {
        assert_eq!(scene.ids(filter), Vec::<String>::new(), "{filter:?}");
    }
    assert_eq!(scene.ids(&["--event", "A-1"]), dead[1..2]);
    assert!(scene.ids(&["--since", at.as_str().unwrap()]).contains(&dead[0]));
    until("its words are known", || scene.ids(&["--search", "currency"]).len() == 3);
    scene.dlq(&["list", "--since", "yesterday"]).wrong(2, &["a duration ago such as `2h`"]);
    scene.dlq(&["list", "--since", "2026-13-01"]).wrong(1, &["since: ", "must be a time"]);
    scene.dlq(&["list", "--status", "7"]).wrong(2, &["from 100 to 999"]);
    scene.dlq(&["list", "--group", "x"]).wrong(1, &["group: must be a fingerprint such as `grp_"]);
}

/// HUB-6, HUB-10: one dead letter in full, its event alone to the byte, and its request for a shell.
#[test]
fn hub_10_a_dead_letter_is_shown_in_full() {
    let scene = Scene::new();
    let id = scene.dead(1).remove(0);
    scene.dlq(&["show", &id]).well().says(&[
        "standing          open",
        "\nAttempt 1\n> POST http://127.0.0.1:",
        "> seawall-try: 1",
        "\n< 422\n",
        r#"{"error":"no currency"}"#,
        "\nRequest\nPOST ",
        "\nEvent\n{",
    ]);
    let raw = scene.dlq(&["show", &id, "--raw"]).well();
    assert_eq!(raw.json()["id"], "A-0");
    assert_eq!(raw.out.lines().count(), 1);
    let line = scene.dlq(&["curl", &id]).well();
    assert!(line.out.starts_with("curl -X POST 'http://127.0.0.1:"), "{}", line.out);
    assert_eq!(scene.json(&["dlq", "curl", &id])["curl"], line.out.trim_end());
    let second = scene.json(&["dlq", "replay", &id])["delivery"].as_str().unwrap().to_owned();
    scene.dlq(&["show", &id]).well().says(&["\nRelated\n", &second]);
    for verb in ["show", "curl"] {
        scene.dlq(&[verb, "nope"]).wrong(3, &["no such dead letter"]);
    }
}

/// HUB-6, HUB-10: many are counted, then sent again as work that is followed; where there is no terminal, a few lines say how
/// far it is. Done with all of it is 0, and there is nothing left to do.
#[test]
fn hub_10_a_replay_of_a_group_is_followed_to_its_end() {
    let scene = Scene::new();
    scene.dead(60);
    let group = scene.group();
    let dry = scene.dlq(&["replay", "--group", &group, "--dry-run"]).well();
    dry.says(&["replay would apply to 60 dead letters; nothing was changed", "\nSample\n", "A-59"]);
    let dry = scene.json(&["dlq", "replay", "--group", &group, "--dry-run", "--max", "7"]);
    assert_eq!((&dry["count"], &dry["dryRun"]), (&json!(7), &json!(true)));
    assert_eq!(scene.peer.count(), 0, "nothing was sent");

    let done =
        scene.dlq(&["replay", "--group", &group, "--yes", "--rate", "1000", "--reason", "INC-1"]).well();
    assert!(done.err.starts_with("seawall: replay of 60 dead letters started as op_"), "{}", done.err);
    assert!((2..=14).contains(&done.err.lines().count()), "a few lines: {}", done.err);
    assert!(!done.err.contains('\u{1b}') && !done.err.contains('#'), "no bar: {}", done.err);
    done.says(&["is done: 60 of 60 delivered, 0 failed again, 0 in progress"]);
    assert_eq!(scene.peer.arrived().len(), 60);
    let work = scene.json(&["operations", "list"]);
    assert_eq!((&work[0]["reason"], &work[0]["plan"]["ratePerSecond"]), (&json!("INC-1"), &json!(1000)));
    assert_eq!(work[0]["plan"]["canary"], json!([1, 10]));
    assert_eq!(work[0]["filter"]["service"], "billing", "so that it is known what it waits for");
    scene
        .dlq(&["replay", "--group", &group, "--yes"])
        .wrong(1, &["has nothing to replay; delivered: 60", "`--standing parked`"]);
}

/// HUB-6, HUB-10: a canary that fails ends it with 6, and so do some that fail again without one.
#[test]
fn hub_10_a_replay_that_fails_again_ends_with_six() {
    let scene = Scene::new();
    scene.dead(40);
    scene.peer.behave(PeerBehavior::Respond(422));
    let args = ["replay", "--service", "billing", "--yes", "--mode", "same", "--canary", "2,3"];
    let stopped = scene.dlq(&args).wrong(NOT_ALL, &["no more will start", "seawall operations resume op_"]);
    stopped.says(&["is stopped (the canary failed: "]);
    let work = scene.json(&["operations", "list"])[0].clone();
    assert_eq!((&work["plan"]["mode"], &work["plan"]["canary"]), (&json!("same"), &json!([2, 3])));
    let tried = scene.peer.count();
    assert!(tried <= 2, "{tried}");
    let args = ["replay", "--all", "--yes", "--no-canary", "--rate", "1000", "--json"];
    let failed =
        scene.dlq(&args).wrong(NOT_ALL, &["those that failed again are open", "`seawall dlq groups`"]);
    let work = failed.json();
    assert_eq!((&work["state"], &work["progress"]["failed"]), (&json!("done"), &json!(40)), "{work}");
    assert_eq!(failed.out.lines().count(), 1, "nothing but the end");
}

/// HUB-10: one is sent at once, and waited for only if somebody says so.
#[test]
fn hub_10_one_is_replayed_and_followed_if_asked_to() {
    let scene = Scene::new();
    let dead = scene.dead(2);
    scene.dlq(&["replay", &dead[0], "--follow"]).well().says(&["state         delivered"]);
    scene.peer.behave(PeerBehavior::Respond(422));
    let failed = scene.dlq(&["replay", &dead[1], "--follow", "--json"]).wrong(NOT_ALL, &["deadLettered"]);
    assert_eq!(failed.json()["state"], "deadLettered");
    let dry = scene.json(&["dlq", "replay", &dead[0], "--dry-run"]);
    assert_eq!(dry["count"], 0, "it is delivered");
    for (option, value) in [("--rate", "5"), ("--canary", "1"), ("--max", "1")] {
        scene.dlq(&["replay", &dead[0], option, value]).wrong(2, &[option, "applies to bulk replays"]);
    }
    scene.dlq(&["replay", &dead[0], "--no-canary"]).wrong(2, &["`--no-canary` applies to bulk replays"]);
}

/// HUB-10: a use that is wrong gets a word that helps, and nothing is sent.
#[test]
fn hub_10_a_wrong_choice_is_told_what_to_choose() {
    let scene = Scene::new();
    let dead = scene.dead(2);
    let group = scene.group();
    for verb in ["replay", "park", "unpark", "delete", "restore", "purge"] {
        scene.dlq(&[verb]).wrong(2, &["no dead letters selected", "`--group FP`", "`--all`"]);
        scene.dlq(&[verb, &dead[0], "--service", "billing"]).wrong(2, &["ids can't be combined"]);
        scene.dlq(&[verb, &dead[0], "--all"]).wrong(2, &["ids can't be combined"]);
        scene.dlq(&[verb, "--all", "--service", "billing"]).wrong(2, &["`--all` can't be combined"]);
        scene.dlq(&[verb, &group]).wrong(2, &["is a group", &format!("`--group {group}`")]);
        scene.dlq(&[verb, "--group", "grp_0000000000000000"]).wrong(3, &["no such group"]);
    }
    for verb in ["replay", "park", "delete"] {
        let asked = scene.dlq(&[verb, &dead[0], &dead[1]]);
        asked.wrong(2, &["2 dead letters", "Can't ask for confirmation", "`--yes`", "`--dry-run`"]);
        scene.dlq(&[verb, "--status", "500", "--yes"]).wrong(1, &["nothing to ", "`seawall dlq list`"]);
    }
    scene.dlq(&["unpark", &dead[0], &dead[1], "--yes"]).wrong(1, &["none of 2 dead letters", "dlq show ID"]);
    scene.dlq(&["replay", "--all", "--rate", "0"]).wrong(2, &["--rate", "from 1 to 10000"]);
    scene.dlq(&["replay", "--all", "--canary", "1,0"]).wrong(2, &["--canary"]);
    scene.dlq(&["replay", "--all", "--canary", "1", "--no-canary"]).wrong(2, &["cannot be used with"]);
    scene.dlq(&["replay", "--all", "--follow", "--detach"]).wrong(2, &["cannot be used with"]);
    scene.dlq(&["replay", "--all", "--max", "0"]).wrong(2, &["--max"]);
    scene
        .dlq(&["replay", "--all", "--again", "--yes"])
        .wrong(2, &["`--again` applies to a single dead letter"]);
    scene
        .dlq(&["replay", &dead[0], &dead[1], "--again"])
        .wrong(2, &["`--again` applies to a single id, but 2 are given"]);
    scene.dlq(&["replay", "x", "y", "--yes"]).wrong(1, &["filter.ids: must be the id", "not `y`"]);
    assert_eq!((scene.open(), scene.peer.count()), (dead, 0));
}

/// HUB-6, HUB-10: what is put aside, deleted and brought back, one at once and many as work; what is purged is only counted
/// until somebody insists.
#[test]
fn hub_10_dead_letters_are_put_aside_deleted_restored_and_purged() {
    let scene = Scene::new();
    let dead = scene.dead(5);
    let count = |standing: &str| scene.ids(&["--standing", standing]).len();
    scene.dlq(&["park", &dead[0]]).well().says(&["is now parked"]);
    scene.dlq(&["park", &dead[1], &dead[2], "--yes"]).well().says(&["is done: 2 of 2 done"]);
    assert_eq!((count("open"), count("parked")), (2, 3));
    scene.dlq(&["unpark", &dead[0]]).well().says(&["is now open"]);
    let work = scene.json(&["dlq", "unpark", "--all", "--yes"]);
    assert_eq!((&work["task"], &work["state"]), (&json!("unpark"), &json!("done")));
    scene.dlq(&["delete", &dead[0]]).well().says(&["deleted; it will be purged at ", "seawall dlq restore"]);
    let dry = scene.dlq(&["delete", "--cause", "refused", "--dry-run"]).well();
    dry.says(&["delete would apply to 4 dead letters; nothing was changed"]);
    scene.dlq(&["delete", "--cause", "refused", "--yes", "--max", "2"]).well().says(&["2 of 2 done"]);
    assert_eq!((count("open"), count("deleted")), (2, 3));
    scene.dlq(&["restore", &dead[0]]).well().says(&["is now open"]);
    scene.dlq(&["restore", "--service", "billing", "--yes"]).well().says(&["2 of 2 done"]);
    assert_eq!(count("open"), 5);
    scene.dlq(&["restore", &dead[0]]).wrong(1, &["not possible in the state open"]);

    scene
        .dlq(&["purge", &dead[0]])
        .well()
        .says(&["would apply to 1 dead letter; nothing was changed", "`--force`"]);
    assert_eq!(scene.json(&["dlq", "purge", "--all"])["count"], 5);
    assert_eq!(count("open"), 5);
    scene.dlq(&["purge", &dead[0], "--force", "--reason", "asked to"]).well().says(&["1 of 1 done"]);
    scene.dlq(&["show", &dead[0]]).wrong(3, &[]);
    scene.dlq(&["purge", "--all", "--force"]).well().says(&["4 of 4 done"]);
    scene.dlq(&["purge", "--all", "--force"]).wrong(1, &["nothing to purge"]);
}

/// HUB-6, HUB-10: a change is shown before it is sent; what is sent is a copy.
#[test]
fn hub_10_an_edit_shows_what_is_different_and_sends_a_copy() {
    let scene = Scene::new();
    let dead = scene.dead(3);
    let data = scene.file("data.json", r#"{"n":7,"currency":"EUR"}"#);
    let seen = scene.dlq(&["edit", &dead[0], "--data", text(&data), "--dry-run"]).well();
    seen.says(&["- body.data.n: 2\n", "+ body.data.n: 7\n", "+ body.data.currency: \"EUR\"\n"]);
    assert_eq!(scene.json(&["dlq", "edit", &dead[0], "--path", "/b", "--dry-run"])["delivery"], Value::Null);
    let asked = scene.dlq(&["edit", &dead[0], "--data", text(&data)]);
    asked
        .wrong(2, &["Send the edited copy?", "Can't ask for confirmation", "`--yes`"])
        .says(&["+ body.data.n: 7"]);
    assert_eq!(scene.peer.count(), 0, "nothing was sent");

    scene
        .dlq(&["edit", &dead[0], "--data", text(&data), "--yes"])
        .well()
        .says(&["replay started as delivery dlv_"]);
    assert_eq!(scene.peer.only().json()["data"]["currency"], "EUR");
    scene.peer.forget();
    let args =
        ["edit", &dead[1], "--method", "put", "--path", "/v2?a=b", "--header", "X-A: 1", "--body", "-"];
    let sent = scene.fed(&[&["dlq"], &args[..], &["--yes", "--json"]].concat(), r#"{"fixed":true}"#).well();
    assert_eq!(sent.json()["replayOf"], dead[1].as_str());
    let got = scene.peer.only();
    assert_eq!((got.request_line(), got.header("x-a")), ("PUT /v2?a=b", Some("1")));
    assert_eq!(got.json(), json!({"fixed": true}));
    assert_eq!(got.header("content-type"), Some("application/json"), "the others stay");

    scene.dlq(&["edit", &dead[2]]).wrong(2, &["no changes given", "`--data FILE`"]);
    let same = scene.json(&["dlq", "show", &dead[2]])["request"]["path"].as_str().unwrap().to_owned();
    scene.dlq(&["edit", &dead[2], "--path", &same]).wrong(2, &["no changes", "--mode same"]);
    scene.dlq(&["edit", &dead[2], "--header", "x"]).wrong(2, &["`x` is not a header"]);
    let text = scene.fed(&["dlq", "edit", &dead[2], "--body", "-"], "no json");
    text.wrong(2, &["the body is not valid JSON", "content-type: text/plain"]);
    scene.dlq(&["edit", &dead[2], "--data", "a", "--path", "b"]).wrong(2, &["cannot be used with"]);
    let twice = scene.dlq(&["edit", &dead[1], "--path", "/c", "--yes"]);
    twice.wrong(1, &["it has been replayed", "use `--again`"]);
    scene.dlq(&["edit", "nope", "--path", "/c"]).wrong(3, &["no such dead letter"]);
}

/// HUB-6, HUB-10: everything is written out, a line each, to stdout or to a file that is not there yet.
#[test]
fn hub_10_dead_letters_are_exported_line_by_line() {
    let scene = Scene::new();
    let dead = scene.dead(130);
    let ids = |lines: &str| -> Vec<String> {
        let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        lines.lines().map(id).collect()
    };
    let all = scene.dlq(&["export"]).well();
    assert_eq!((ids(&all.out), all.err.as_str()), (dead.clone(), ""));
    assert_eq!(ids(&scene.dlq(&["export", "--event", "A-3", "--json"]).well().out), dead[126..127]);
    let file = scene.folder.path().join("dead.jsonl");
    let said = scene.dlq(&["export", "--max", "7", "--out", text(&file)]).well();
    assert!(said.err.contains("7 dead letters written to `"), "{}", said.err);
    assert_eq!((ids(&std::fs::read_to_string(&file).unwrap()), said.out.as_str()), (dead[..7].to_vec(), ""));
    scene.dlq(&["export", "--out", text(&file)]).wrong(2, &["can't write `", "File exists"]);
    scene.dlq(&["export", "--standing", "lost"]).wrong(2, &["'lost'", "open, replaying"]);
    ran(command(&scene.url(), &["dlq", "export"]).env("SEAWALL_KEY", "other"), "").wrong(4, &["(401"]);
    ran(&mut command("http://127.0.0.1:1", &["dlq", "export"]), "").wrong(5, &["can't reach the hub"]);
}

/// HUB-10: what breaks off is not taken for the whole: it ends with 5, and says so.
#[test]
fn hub_10_an_export_that_breaks_off_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let hub = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        HttpMessage::read(&mut BufReader::new(stream.try_clone().unwrap())).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"id\":\"a\"}\n").unwrap();
    });
    let broken = ran(&mut command(&address, &["dlq", "export"]), "");
    hub.join().unwrap();
    let broken = broken.wrong(5, &["was interrupted", "1 dead letter received", "incomplete"]);
    assert_eq!(broken.out, "{\"id\":\"a\"}\n");
}

/// HUB-6, HUB-10: work is begun and left alone, halted, watched by a program a line at a time, let go on, and ended.
#[test]
fn hub_10_work_is_steered_and_watched() {
    let scene = Scene::new();
    scene.dead(30);
    let args = ["replay", "--all", "--yes", "--detach", "--rate", "1", "--no-canary"];
    let begun = scene.dlq(&args).well().says(&["started as op_", "seawall operations pause op_"]);
    let id = begun.out.split_whitespace().find(|word| word.starts_with("op_")).unwrap().to_owned();
    scene.run(&["operations", "pause", &id, "--reason", "slowly"]).well().says(&["is paused"]);
    let paused = scene.json(&["operations", "show", &id]);
    assert_eq!((&paused["state"], &paused["task"]), (&json!("paused"), &json!("replay")));
    assert!(scene.open().len() > 20);

    let mut watch = command(&scene.url(), &["operations", "watch", &id, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["state"], "paused");
    scene.run(&["operations", "resume", &id]).well().says(&["is running"]);
    assert_eq!(next()["state"], "running");
    scene.run(&["operations", "cancel", &id]).well().says(&["is cancelled"]);
    while next()["state"] != "cancelled" {}
    assert_eq!(watch.wait().unwrap().code(), Some(NOT_ALL));
    scene.run(&["operations", "pause", &id]).wrong(1, &["in the state cancelled", "(409 conflict)"]);
    scene.run(&["operations", "watch", &id]).wrong(NOT_ALL, &["the other dead letters are unchanged"]);
    scene.run(&["operations", "list"]).well().says(&["TASK", &id, "cancelled"]);
    for verb in ["show", "watch", "pause", "resume", "cancel"] {
        scene
            .run(&["operations", verb, "op_1"])
            .wrong(3, &["no such operation", "`seawall operations list`"]);
    }
}

/// HUB-10: whoever stops looking does not stop the work, and is told how to come back. What a program has read is JSON.
#[cfg(unix)]
#[test]
fn hub_10_ctrl_c_leaves_the_work_running() {
    let scene = Scene::new();
    scene.dead(30);
    let args = ["dlq", "replay", "--all", "--yes", "--rate", "1", "--no-canary", "--json"];
    let mut child = command(&scene.url(), &args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    // The second line says how far it is, so it is being followed.
    for _ in 0..2 {
        said.read_line(&mut line).unwrap();
    }
    let id = line.split_whitespace().find(|word| word.starts_with("op_")).unwrap().to_owned();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    said.read_to_string(&mut line).unwrap();
    let (mut out, code) = (String::new(), child.wait().unwrap().code());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(code, Some(LEFT), "{line}");
    for word in ["continues in the background", "operations watch", "operations pause", "operations cancel"] {
        assert!(line.contains(word), "no `{word}` in:\n{line}");
    }
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["id"], id.as_str());
    let now = scene.json(&["operations", "show", &id]);
    assert_eq!(now["state"], "running", "{now}");
    let before = scene.peer.count();
    until("it goes on", || scene.peer.count() > before);
}

/// HUB-10: a program gets JSON and nothing else on stdout, whatever it asks of the desk.
#[test]
fn hub_10_the_desk_speaks_pure_json() {
    let scene = Scene::new();
    let dead = scene.dead(4);
    let group = scene.group();
    let (first, second) = (dead[0].as_str(), dead[1].as_str());
    let asked: &[&[&str]] = &[
        &["groups"],
        &["group", &group],
        &["ack", &group],
        &["note", &group, "x"],
        &["list"],
        &["show", first],
        &["show", first, "--raw"],
        &["curl", first],
        &["edit", first, "--path", "/x", "--dry-run"],
        &["edit", first, "--path", "/x", "--yes"],
        &["park", second],
        &["unpark", second],
        &["park", second, &dead[2], "--yes"],
        &["unpark", "--group", &group, "--yes"],
        &["delete", second, "--dry-run"],
        &["delete", second],
        &["restore", "--all", "--yes", "--detach"],
        &["replay", "--all", "--dry-run"],
        &["replay", "--all", "--yes", "--detach"],
        &["purge", "--all"],
    ];
    for args in asked {
        let ran = scene.run(&[&["dlq"], *args, &["--json"]].concat()).well();
        assert!(ran.json().is_object() || ran.json().is_array(), "{args:?}");
    }
}
