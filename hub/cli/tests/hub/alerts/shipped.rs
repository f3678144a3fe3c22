//! What is shipped for Prometheus and Grafana: read by Prometheus' own tool, and about numbers that the hub really has.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use seawall_testkit::http::HttpMessage;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Scene;
use crate::harness::Client;

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

/// Every query of the dashboard, as Grafana would ask it.
fn queries() -> Vec<String> {
    let dashboard: Value =
        serde_json::from_str(&fs::read_to_string(deploy("grafana/seawall.json")).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 10 && dashboard["templating"]["list"].as_array().unwrap().len() == 2);
    let mut ids = BTreeSet::new();
    let mut found = Vec::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "two panels have the same number");
        let at = &panel["gridPos"];
        assert!(at["x"].as_u64().unwrap() + at["w"].as_u64().unwrap() <= 24, "{}", panel["title"]);
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{}", panel["title"]);
        for target in targets {
            let query = target["expr"].as_str().unwrap();
            found.push(query.replace("$__rate_interval", "5m").replace("$service", ".*"));
        }
    }
    found
}

/// Names of metrics in a text: ours, and the one that has OpenTelemetry's name.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with("seawall_") || word.starts_with("http_client_"));
    ours.map(ToOwned::to_owned).collect()
}

/// HUB-12: every number that is asked for in what is shipped is one that a hub has, before anything has gone wrong.
#[test]
fn hub_12_what_is_shipped_asks_for_numbers_that_there_are() {
    let scene = Scene::new();
    let delivery = scene.send("billing", "A");
    scene.hub.wait_for(&delivery, "delivered");
    let HttpMessage { body: metrics, .. } =
        Client::connect(&scene.hub.address).unwrap().exchange("GET", "/metrics", "").unwrap();
    let metrics = String::from_utf8(metrics).unwrap();
    let exposed: BTreeSet<&str> = metrics
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let rules = fs::read_to_string(deploy("prometheus/alerts.yaml")).unwrap();
    let tests = fs::read_to_string(deploy("prometheus/alerts_test.yaml")).unwrap();
    let expressions: Vec<&str> =
        rules.lines().filter(|line| line.trim_start().starts_with("expr:")).collect();
    assert!(expressions.len() >= 8, "{rules}");
    let wanted = names(&[expressions.join("\n"), tests.clone(), queries().join("\n")].concat());
    let missing: Vec<&String> = wanted.iter().filter(|name| !exposed.contains(name.as_str())).collect();
    assert!(wanted.len() > 15 && missing.is_empty(), "{missing:?} of {wanted:?}");
    for name in rules.lines().filter_map(|line| line.trim_start().strip_prefix("- alert: ")) {
        assert!(tests.contains(name), "no test of {name}");
    }
}

#[track_caller]
fn promtool(folder: &Path, args: &[&str]) {
    let ran = Command::new("promtool").current_dir(folder).args(args).output();
    let missing =
        "`promtool` can't be run; the Debian package `prometheus` has it, and `cargo xtask ci` installs it";
    let ran = ran.expect(missing);
    let said = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&said));
}

/// HUB-12: Prometheus reads the rules, they fire when they should and not before, and it can parse every query of the dashboard.
#[test]
fn hub_12_prometheus_reads_what_is_shipped() {
    let folder = deploy("prometheus");
    promtool(&folder, &["check", "rules", "alerts.yaml"]);
    promtool(&folder, &["test", "rules", "alerts_test.yaml"]);
    let rules: Vec<Value> = (0..)
        .zip(queries())
        .map(|(number, query): (u32, String)| json!({"record": format!("query:{number}"), "expr": query}))
        .collect();
    let asked = TempDir::new().unwrap();
    let group = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    fs::write(asked.path().join("queries.yaml"), group.to_string()).unwrap();
    promtool(asked.path(), &["check", "rules", "queries.yaml"]);
}
