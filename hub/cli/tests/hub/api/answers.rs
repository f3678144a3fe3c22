//! Answers: one envelope for everything, and the key that opens the API.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{RULES, SERVICES, Scene, event};
use crate::harness::{Hub, KEY, Reply, SEAWALL, header};

fn check(reply: &Reply, status: u16, code: &str) {
    let Reply { status: found, head, body, .. } = reply;
    assert_eq!((*found, body["code"].as_str()), (status, Some(code)), "{head}{body}");
    assert_eq!(header(head, "content-type"), Some("application/json"));
    assert_eq!((&body["status"], &body["data"]), (&json!("error"), &Value::Null));
    assert!(body["message"].as_str().is_some_and(|word| !word.is_empty()), "{body}");
    assert!(body["traceId"].as_str().is_some_and(|trace| trace.len() == 32), "{body}");
    assert!(body["errors"].is_array() && body["retryable"].is_boolean(), "{body}");
}

/// API-1: whatever is wrong, the answer has status, data, message, traceId, code, errors and retryable.
#[test]
fn api_1_every_mistake_has_the_same_envelope() {
    let Scene { folder: _folder, hub, .. } = Scene::new();
    let ask = |method: &str, path: &str, body: &Value| hub.with(method, path, &[], body);
    check(&ask("GET", "/api/v1/nothing", &Value::Null), 404, "notFound");
    check(&ask("GET", "/nothing", &Value::Null), 404, "notFound");
    check(&ask("GET", &format!("{SERVICES}/nobody"), &Value::Null), 404, "notFound");
    check(&ask("GET", "/api/v1/bridge/events/nothing", &Value::Null), 404, "notFound");
    check(&ask("GET", "/api/v1/bridge/deliveries/no-id", &Value::Null), 404, "notFound");
    check(&ask("GET", &format!("/api/v1/bridge/deadLetters/dlv_{:032x}", 1), &Value::Null), 404, "notFound");
    check(&ask("POST", &format!("{RULES}/all:explode"), &Value::Null), 404, "noSuchAction");
    check(&ask("DELETE", SERVICES, &Value::Null), 405, "wrongMethod");
    check(&ask("GET", "/in/anything", &Value::Null), 405, "wrongMethod");
    check(&ask("POST", SERVICES, &json!([])), 422, "invalid");
    check(&ask("POST", SERVICES, &json!({"name": "x"})), 422, "invalid");
    check(&ask("POST", "/api/v1/bridge/events", &json!({"id": "a b", "type": "x"})), 422, "invalid");
    let bearer = format!("Bearer {KEY}");
    let raw = |path: &str, body: &str| hub.call("POST", path, &[("authorization", &bearer)], body);
    check(&raw(SERVICES, "{no json"), 400, "notJson");
    check(&raw("/api/v1/bridge/events", ""), 400, "notJson");
    check(&raw("/api/v1/bridge/events", &"[".repeat(100_000)), 400, "notJson");
    check(
        &hub.with(
            "PUT",
            &format!("{SERVICES}/billing"),
            &[("if-match", "x")],
            &super::billing(&crate::peer::Peer::start()),
        ),
        400,
        "badVersion",
    );
    check(&hub.call("GET", SERVICES, &[], ""), 401, "unauthorised");
    check(&hub.call("GET", SERVICES, &[("authorization", "Basic xyz")], ""), 401, "unauthorised");
    check(&ask("GET", &format!("{SERVICES}/%ff"), &Value::Null), 400, "badRequest");
}

/// API-1, PRM-8: a body that is too large is refused with the same envelope, on every route that takes one.
#[test]
fn api_1_a_body_that_is_too_large_is_refused() {
    let Scene { folder: _folder, hub, .. } = Scene::new();
    let large = json!({"id": "L", "type": "order.created", "data": "x".repeat(1_100_000)});
    for path in ["/api/v1/bridge/events", "/api/v1/bridge/events:batchCreate", SERVICES, RULES, "/in/nobody"]
    {
        check(&hub.with("POST", path, &[], &large), 413, "tooLarge");
    }
    let fits = json!({"id": "F", "type": "order.created", "data": "x".repeat(1_000_000)});
    assert_eq!(hub.with("POST", "/api/v1/bridge/events", &[], &fits).status, 202);
}

/// API-1: a request belongs to the trace that it says, in success and failure; what is accepted keeps it.
#[test]
fn api_1_an_answer_names_the_trace_that_it_belongs_to() {
    let Scene { folder: _folder, hub, .. } = Scene::new();
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let traced = [("traceparent", parent.as_str())];
    let accepted = hub.with("POST", "/api/v1/bridge/events", &traced, &event("T"));
    assert_eq!((accepted.status, &accepted.body["traceId"]), (202, &json!(trace)));
    assert_eq!(hub.get("/api/v1/bridge/events/T")["trace"], json!(parent));
    assert_eq!(hub.with("GET", "/nothing", &traced, &Value::Null).body["traceId"], trace);
    let strange = hub.with("GET", SERVICES, &[("traceparent", "00-zz-zz-01")], &Value::Null);
    assert_eq!(strange.body["traceId"].as_str().map(str::len), Some(32));
}

/// A hub that is given this key, or none. What it says at its start, until it listens.
fn start(folder: &Path, key: Option<&str>) -> (Hub, Vec<String>) {
    let mut command = Hub::command(Path::new(SEAWALL), folder);
    match key {
        Some(key) => command.env("SEAWALL_ADMIN_KEY", key),
        None => command.env_remove("SEAWALL_ADMIN_KEY"),
    };
    Hub::listening(command.spawn().unwrap()).unwrap()
}

/// SEC-1: an admin key is made and printed once, and is good at the next start; the variable sets another one, for good.
#[test]
fn sec_1_the_admin_key_is_printed_once_and_kept() {
    let folder = TempDir::new().unwrap();
    let (hub, said) = start(folder.path(), None);
    let printed = said.iter().find_map(|line| line.split_once("admin key: ")).unwrap().1.to_owned();
    assert_eq!(hub.ask("GET", SERVICES, &printed, "").0, 200);
    assert_eq!(hub.ask("GET", SERVICES, &printed[1..], "").0, 401);
    drop(hub);
    let (hub, said) = start(folder.path(), None);
    assert!(!said.iter().any(|line| line.contains("admin key")), "once: {said:?}");
    assert_eq!(hub.ask("GET", SERVICES, &printed, "").0, 200);
    drop(hub);
    let (hub, _) = start(folder.path(), Some("another-key-that-is-long"));
    assert_eq!(
        (
            hub.ask("GET", SERVICES, "another-key-that-is-long", "").0,
            hub.ask("GET", SERVICES, &printed, "").0
        ),
        (200, 401)
    );
    drop(hub);
    let (hub, _) = start(folder.path(), None);
    assert_eq!(hub.ask("GET", SERVICES, "another-key-that-is-long", "").0, 200);
    drop(hub);
    let mut short = Command::new(SEAWALL);
    short
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.path())
        .env("SEAWALL_ADMIN_KEY", "short");
    let ended = short.output().unwrap();
    let why = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!ended.status.success() && why.contains("at least 16"), "{why}");
    for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(!bytes.windows(printed.len()).any(|part| part == printed.as_bytes()), "{:?}", file.path());
    }
}

/// HUB-10: a hub says where to log in. The link has the key in it at the first start only, when the key is printed.
#[test]
fn hub_10_a_hub_prints_where_to_log_in() {
    let folder = TempDir::new().unwrap();
    let link = || {
        let mut command = Hub::command(Path::new(SEAWALL), folder.path());
        let mut process = command.env_remove("SEAWALL_ADMIN_KEY").spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        let line = said.lines().map_while(Result::ok).find(|line| line.contains("log in: "));
        process.kill().unwrap();
        process.wait().unwrap();
        line.unwrap()
    };
    let first = link();
    assert!(first.contains("/login#"), "{first}");
    let second = link();
    assert!(second.contains("/login, with the admin key") && !second.contains("#"), "{second}");
}
