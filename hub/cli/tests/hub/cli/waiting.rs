//! How many deliveries wait, why and until when: the same in the API, on every page, in every command and in the metrics.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Scene;
use crate::harness::{KEY, header, until};
use crate::peer::PeerBehavior;

const ALL: u64 = 40;

impl Scene {
    /// A page of the dashboard, as an administrator sees it.
    pub(super) fn page(&self, path: &str) -> String {
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let begun = self.hub.call("POST", "/login", &form, &format!("key={KEY}"));
        let cookie = header(&begun.head, "set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let page = self.hub.call("GET", path, &[("cookie", &cookie)], "");
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        page.text
    }

    /// The number that each place gives.
    fn counts(&self) -> BTreeMap<&'static str, u64> {
        let number = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
        let hub = &self.hub;
        let listed = hub.all("/api/v1/bridge/deliveries?state=waiting&service=billing", "deliveries", 500);
        let metrics = hub.with("GET", "/metrics", &[], &Value::Null).text;
        let gauge = metrics.lines().find_map(|line| {
            line.strip_prefix("seawall_deliveries_waiting{service=\"billing\"} ")?.parse().ok()
        });
        let commanded = self.json(&["deliveries", "list", "--state", "waiting", "--all"]);
        let rows = self.page("/deliveries?state=waiting&service=billing").matches("<tr>").count() as u64;
        BTreeMap::from([
            ("overview of the API", number(&hub.get("/api/v1/ops/overview")["deliveries"]["waiting"])),
            (
                "standing of the service",
                number(&hub.get("/api/v1/ops/services?service=billing")["services"][0]["waiting"]),
            ),
            ("service of the API", number(&hub.get("/api/v1/registry/services/billing")["waiting"])),
            ("services of the API", number(&hub.get("/api/v1/registry/services")[0]["waiting"])),
            ("list of the API", listed.len() as u64),
            ("metrics", gauge.unwrap_or(u64::MAX)),
            ("overview page", stat(&self.page("/"))),
            ("service page", stat(&self.page("/services/billing"))),
            ("page of services", cell(&self.page("/services"))),
            ("page of deliveries", rows - 1),
            ("services show", number(&self.json(&["services", "show", "billing"])["waiting"])),
            ("services list", number(&self.json(&["services", "list"])[0]["waiting"])),
            ("circuits list", number(&self.json(&["circuits", "list"])[0]["waiting"])),
            ("deliveries list", commanded.as_array().map_or(u64::MAX, |all| all.len() as u64)),
        ])
    }

    /// Waits until all places say that all wait, and says why in all of them.
    #[track_caller]
    fn all_wait(&self, state: &str, waits_for: &str, why: &str) {
        // Each look asks fourteen places, so that the last of a hundred is many seconds after the first.
        let agree = |seen: &BTreeMap<_, u64>| seen.values().all(|count| *count == ALL);
        let mut seen = self.counts();
        for _ in 0..100 {
            if agree(&seen) {
                break;
            }
            seen = self.counts();
        }
        assert!(agree(&seen), "all {ALL} wait: {seen:?}");
        let rows = self.hub.all("/api/v1/bridge/deliveries?state=waiting", "deliveries", 500);
        for row in &rows {
            assert_eq!(
                (row["state"].as_str(), row["waitsFor"].as_str()),
                (Some(state), Some(waits_for)),
                "{row}"
            );
            assert!(row["waitsBecause"].as_str().unwrap().starts_with(why), "{row}");
        }
        let standing = self.hub.get("/api/v1/ops/services?service=billing")["services"][0].clone();
        assert_eq!(standing["waitsFor"].as_str(), Some(waits_for), "{standing}");
        assert!(standing["waitsBecause"].as_str().unwrap().starts_with(why), "{standing}");
        for path in ["/services/billing", "/services", "/deliveries?state=waiting"] {
            assert!(self.page(path).contains(why), "no `{why}` on {path}");
        }
        // The overview names what needs a person; a retry does not.
        if ["circuit", "service"].contains(&waits_for) {
            assert!(self.page("/").contains(why), "no `{why}` on the overview");
            assert!(self.hub.get("/api/v1/ops/overview")["attention"].to_string().contains(why));
        }
        self.run(&["circuits", "list"]).well().says(&[why]);
        self.run(&["services", "show", "billing"]).well().says(&[why]);
        self.run(&["deliveries", "list", "--state", "waiting"]).well().says(&[why]);
    }

    fn events(&self) {
        for n in 0..ALL {
            self.hub.send(&json!({"id": format!("w-{n}"), "type": "order.created", "data": {}}));
        }
    }

    fn change(&self, breaker: &Value, base: &str) {
        let policy = json!({"policy": {"breaker": breaker}});
        self.hub.must("PATCH", "/api/v1/registry/services/billing", &policy);
        let schedule = json!({"delivery": {"base": base, "cap": "1h"}});
        self.hub.must("PATCH", "/api/v1/registry/rules/all", &schedule);
    }
}

/// The number over `waiting` among the numbers at the head of a page.
fn stat(page: &str) -> u64 {
    let before = page.split_once("</b><span>waiting").map(|(before, _)| before);
    number_at_the_end(before.unwrap_or_default())
}

/// The first number in the table of services.
fn cell(page: &str) -> u64 {
    let before = page.split_once("</a></td>\n      <td><small>").map(|(before, _)| before);
    number_at_the_end(before.unwrap_or_default())
}

fn number_at_the_end(text: &str) -> u64 {
    text.rsplit('>').next().and_then(|number| number.trim().parse().ok()).unwrap_or(u64::MAX)
}

/// UI-2, HUB-5. Trap "a count that is shown in two places is the same number": behind an open circuit all wait for it.
#[test]
fn ui_2_behind_an_open_circuit_every_place_counts_the_same() {
    let scene = Scene::new();
    scene.change(&json!({"consecutive_failures": 2, "cooldown": "1h"}), "1s");
    scene.peer.behave(PeerBehavior::Respond(503));
    scene.events();
    until("it opens", || scene.hub.circuit("billing")["state"] == "open");
    scene.all_wait("waiting", "circuit", "circuit open, next probe in ");
}

/// UI-2, HUB-5. Trap "a count that is shown in two places is the same number": what a paused service holds waits too.
#[test]
fn ui_2_of_a_paused_service_every_place_counts_the_same() {
    let scene = Scene::new();
    scene.hub.must("POST", "/api/v1/registry/services/billing:pause", &Value::Null);
    scene.events();
    scene.all_wait("held", "service", "service paused");
    let held = scene.hub.all("/api/v1/bridge/deliveries?state=held", "deliveries", 500);
    assert_eq!(held.len() as u64, ALL, "those that a person holds can be asked for too");
}

/// UI-2, HUB-5. Trap "a count that is shown in two places is the same number": with a closed circuit, what failed waits for its
/// next attempt, and nobody is told that the peer is down.
#[test]
fn ui_2_by_a_retry_schedule_every_place_counts_the_same() {
    let scene = Scene::new();
    scene.change(&json!({"consecutive_failures": 1_000}), "1h");
    scene.peer.behave(PeerBehavior::Respond(503));
    scene.events();
    scene.all_wait("waiting", "time", "next attempt in ");
}

/// UI-2, HUB-5: what a disabled rule holds waits too.
#[test]
fn ui_2_of_a_disabled_rule_every_place_counts_the_same() {
    let scene = Scene::new();
    scene.hub.must("POST", "/api/v1/registry/rules/all:disable", &Value::Null);
    scene.events();
    scene.all_wait("held", "rule", "rule disabled");
}
