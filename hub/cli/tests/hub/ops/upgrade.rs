//! A database that an earlier version of the hub has written.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Hub, SEAWALL};

/// How often a hub that differs is looked at again, and the pause before each look.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(250);

/// The folders of earlier versions; their README says how they are made.
const VERSIONS: [&str; 1] = ["v0.1"];

pub(super) fn fixture(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/fixtures").join(version)
}

/// Starts a hub that prunes nothing and has the public URL of the recount.
fn start(data: &Path) -> Hub {
    start_with(data, &[])
}

/// The same with more arguments.
pub(super) fn start_with(data: &Path, more: &[&str]) -> Hub {
    let mut command = Hub::command(Path::new(SEAWALL), data);
    command.args(more);
    for kept in ["--keep-delivered", "--keep-discarded", "--keep-audit"] {
        command.args([kept, "forever"]);
    }
    command.args(["--public-url", "http://hub.example"]);
    Hub::ready(command.spawn().unwrap()).unwrap()
}

/// Collects where `found` differs from `expected`. It may have more fields.
fn differences(at: &str, expected: &Value, found: &Value, all: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (key, value) in expected {
                differences(&format!("{at}.{key}"), value, found.get(key).unwrap_or(&Value::Null), all);
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (n, (expected, found)) in expected.iter().zip(found).enumerate() {
                differences(&format!("{at}[{n}]"), expected, found, all);
            }
        }
        _ if expected == found => {}
        _ => all.push(format!("{at}: {expected} became {found}")),
    }
}

#[expect(clippy::panic, reason = "a test fails by panicking, in its helpers too")]
pub(super) fn assert_same(hub: &Hub, recount: &Value) {
    let look = || {
        let mut all = Vec::new();
        for (path, expected) in recount.as_object().unwrap() {
            differences(path, expected, &hub.get(path), &mut all);
        }
        all
    };
    // The first claims after the start may still be under way.
    let mut all = look();
    for _ in 0..LOOKS {
        if all.is_empty() {
            return;
        }
        thread::sleep(PAUSE);
        all = look();
    }
    panic!("{} differences:\n{}", all.len(), all.join("\n"));
}

/// HUB-14: everything that an earlier version has stored is told in the same way after an upgrade and after the next start, and
/// what was registered can be changed.
#[test]
fn hub_14_a_database_of_an_earlier_version_is_told_in_the_same_way() {
    for version in VERSIONS {
        let folder = TempDir::new().unwrap();
        for name in ["seawall.db", "secret.key"] {
            fs::copy(fixture(version).join("data").join(name), folder.path().join(name)).unwrap();
        }
        let recount = fs::read_to_string(fixture(version).join("recount.json")).unwrap();
        let recount: Value = serde_json::from_str(&recount).unwrap();
        assert_same(&start(folder.path()), &recount);
        let hub = start(folder.path());
        assert_same(&hub, &recount);

        hub.must("POST", "/api/v1/ops/secrets:rotate", &json!({}));
        assert_same_besides_audit(&hub, &recount);
        let invoices = "/api/v1/registry/rules/invoices";
        let was = hub.get(invoices)["version"].as_u64().unwrap();
        let changed = hub.must("PATCH", invoices, &json!({"path": "/other"}));
        assert_eq!((&changed["version"], &changed["path"]), (&json!(was + 1), &json!("/other")));
        let mail = hub.must("PATCH", "/api/v1/registry/services/mail", &json!({"headers": {"x-new": "1"}}));
        assert_eq!((&mail["auth"]["type"], &mail["headers"]["x-new"]), (&json!("header"), &json!("1")));
    }
}

/// The same once somebody has done something that is audited.
fn assert_same_besides_audit(hub: &Hub, recount: &Value) {
    let mut recount = recount.clone();
    recount.as_object_mut().unwrap().retain(|path, _| !path.starts_with("/api/v1/ops/audit"));
    assert_same(hub, &recount);
}
