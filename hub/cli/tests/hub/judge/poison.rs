//! Events that panic, abort or hang the hub that handles them, under a supervisor that starts it again each time. That kills from
//! outside quarantine nobody is judged in `kills.rs`.
//!
//! The hub with such events is the sabotaged one of `judged.rs`: their names say what they do to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use seawall_testkit::http::HttpMessage;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::alone;
use super::judged::sabotaged;
use crate::harness::{Client, Hub, SEAWALL, within};
use crate::peer::Peer;

/// More crashes than any poison may cost.
const CRASHES_MAX: u32 = 8;
const PATIENCE: Duration = Duration::from_secs(60);
const EVENTS: &str = "/api/v1/bridge/events";

/// A hub that is started again whenever it has ended.
struct Supervised {
    binary: PathBuf,
    folder: TempDir,
    hub: Hub,
    crashes: u32,
    /// Whether its liveness has ever been anything but good.
    unwell: bool,
}

impl Supervised {
    fn start(binary: PathBuf) -> Self {
        let folder = TempDir::new().unwrap();
        let hub = Hub::ready(command(&binary, folder.path()).spawn().unwrap()).unwrap();
        Supervised { binary, folder, hub, crashes: 0, unwell: false }
    }

    /// Starts it again, if it has ended.
    fn look(&mut self) {
        if self.hub.process.try_wait().unwrap().is_none() {
            return;
        }
        self.crashes += 1;
        assert!(self.crashes <= CRASHES_MAX, "it ends again and again: {}", self.log());
        let started = Hub::ready(command(&self.binary, self.folder.path()).spawn().unwrap());
        // It may end before it listens, too: then the next look starts it.
        if let Some(hub) = started {
            self.hub = hub;
        }
    }

    /// An answer, from whichever process gives one.
    fn ask(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let (began, body) = (Instant::now(), if body.is_null() { String::new() } else { body.to_string() });
        while began.elapsed() < PATIENCE {
            let asked =
                Client::connect(&self.hub.address).and_then(|mut client| client.ask(method, path, &body));
            if let Ok((status, mut answer)) = asked
                && status < 500
            {
                return (status, answer["data"].take());
            }
            thread::sleep(Duration::from_millis(10));
            self.look();
        }
        panic!("{method} {path} is not answered; {}", self.log());
    }

    /// Sends an event to `near`, and to `far` as well if that is said.
    fn send(&mut self, id: &str, far: bool) {
        let (status, answer) =
            self.ask("POST", EVENTS, &json!({"id": id, "type": "a.b", "data": {"far": far}}));
        assert_eq!(status, 202, "{answer}");
    }

    fn deliveries(&mut self, event: &str) -> Vec<Value> {
        let (_, mut page) =
            self.ask("GET", &format!("/api/v1/bridge/deliveries?event={event}"), &Value::Null);
        serde_json::from_value(page["deliveries"].take()).unwrap()
    }

    /// Waits until all deliveries of an event have ended.
    fn ended(&mut self, event: &str) -> Vec<Value> {
        let began = Instant::now();
        loop {
            self.look();
            let found = self.deliveries(event);
            let ended = |one: &Value| one["state"] == "delivered" || one["state"] == "deadLettered";
            if !found.is_empty() && found.iter().all(ended) {
                return found;
            }
            assert!(began.elapsed() < PATIENCE, "{found:?} does not end; {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The one delivery of an event is quarantined; what its tries say.
    fn is_quarantined(&mut self, event: &str) -> Vec<String> {
        let found = self.ended(event);
        assert_eq!(found.len(), 1, "{found:?}");
        self.is_quarantined_delivery(&found[0])
    }

    fn is_quarantined_delivery(&mut self, found: &Value) -> Vec<String> {
        assert_eq!((&found["state"], &found["reason"]), (&json!("deadLettered"), &json!("poison")));
        let path = format!("/api/v1/bridge/deliveries/{}", found["id"].as_str().unwrap());
        let (_, delivery) = self.ask("GET", &path, &Value::Null);
        let attempts = delivery["attempts"].as_array().unwrap();
        attempts.iter().map(|attempt| attempt["error"].as_str().unwrap().to_owned()).collect()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

fn command(binary: &Path, folder: &Path) -> Command {
    let mut command = Hub::command(binary, &folder.join("data"));
    let log = fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
    command.args(["--watchdog", "2s"]).stderr(Stdio::from(log));
    command
}

/// All events go to `near`, and those that say so to `far` as well. So many failures open a circuit.
fn register(hub: &mut Supervised, near: &Peer, far: &Peer, failures: u32) {
    let policy = json!({"attempt_timeout": "30s", "breaker": {"consecutive_failures": failures}});
    for (name, peer) in [("near", near), ("far", far)] {
        let service = json!({"name": name, "address": peer.address, "policy": policy});
        assert_eq!(hub.ask("POST", "/api/v1/registry/services", &service).0, 201);
    }
    let soon = json!({"base": "20ms", "cap": "50ms"});
    let near = json!({"name": "near", "eventType": "*", "service": "near", "path": "/", "delivery": soon});
    let far = json!({"name": "far", "eventType": "*", "service": "far", "path": "/", "filter": "data.far"});
    for rule in [near, far] {
        let (status, answer) = hub.ask("POST", "/api/v1/registry/rules", &rule);
        assert_eq!(status, 201, "{answer}");
    }
}

/// All of these are delivered, wherever they had to go.
fn are_delivered(hub: &mut Supervised, events: &[String]) {
    for event in events {
        for delivery in hub.ended(event) {
            assert_eq!(delivery["state"], "delivered", "{delivery}; {}", hub.log());
        }
    }
}

/// What its liveness says, if it says anything.
fn liveness(hub: &Hub) -> Option<u16> {
    let mut client = Client::connect(&hub.address).ok()?;
    client.ask("GET", "/actuator/health/liveness", "").ok().map(|(status, _)| status)
}

/// What a metric says.
fn metric(hub: &Hub, line: &str) -> bool {
    let HttpMessage { body: text, .. } =
        Client::connect(&hub.address).unwrap().exchange("GET", "/metrics", "").unwrap();
    String::from_utf8(text).unwrap().lines().any(|found| found == line)
}

/// PRM-4, HUB-5: an event whose send panics is quarantined at its third try, one whose rule panics at once; the process lives on,
/// and all others are delivered.
#[test]
fn prm_4_an_event_that_panics_is_quarantined_and_its_neighbours_go_on() {
    let binary = sabotaged();
    let _alone = alone();
    let (near, far, mut hub) = (Peer::start(), Peer::start(), Supervised::start(binary));
    register(&mut hub, &near, &far, 1);
    let events: Vec<String> = (0..40).map(|number| format!("good-{number}")).collect();
    for (number, event) in events.iter().enumerate() {
        if number == 20 {
            hub.send("panic-1", false);
        }
        hub.send(event, number % 2 == 0);
    }
    let errors = hub.is_quarantined("panic-1");
    assert_eq!(errors.len(), 3, "{errors:?}");
    for error in errors {
        assert!(error.starts_with("the hub's own code has panicked over it at hub/server/"), "{error}");
    }
    are_delivered(&mut hub, &events);

    let rule = json!({"name": "panics", "eventType": "*", "service": "far", "path": "/"});
    assert_eq!(hub.ask("POST", "/api/v1/registry/rules", &rule).0, 201);
    hub.send("rendered", false);
    let mut found: Vec<(Value, Value)> =
        hub.ended("rendered").into_iter().map(|one| (one["rule"].clone(), one["reason"].clone())).collect();
    found.sort_by_key(|(rule, _)| rule.to_string());
    assert_eq!(found, [(json!("near"), Value::Null), (json!("panics"), json!("poison"))]);

    assert_eq!(hub.crashes, 0);
    assert_eq!(hub.hub.circuit("near")["state"], "closed", "the peer has nothing to do with it");
    let log = hub.log();
    // The alert about errors may repeat the last line in its own.
    let quarantined = log.matches("ERROR [Delivery][Quarantine] Failed!").count();
    assert!(quarantined == 2 && log.contains("action=ManualReview"), "{log}");
    assert!(!log.contains("the send of panic-1"), "what a panic says may be anything: {log}");
    for service in ["near", "far"] {
        let line = format!("seawall_deliveries_quarantined_total{{cause=\"panic\",service=\"{service}\"}} 1");
        assert!(metric(&hub.hub, &line), "{line}");
    }
}

/// An event of this name ends the process that handles it, with forty others in hand. Says what is known against it.
fn ends_the_process(hub: &mut Supervised, bad: &str) -> String {
    let (near, far) = (Peer::start(), Peer::start());
    register(hub, &near, &far, 1_000);
    let mut events: Vec<String> = (0..40).map(|number| format!("good-{number}")).collect();
    assert_eq!(hub.ask("POST", "/api/v1/registry/services/near:pause", &Value::Null).0, 200);
    for (number, event) in events.iter().enumerate() {
        if number == 20 {
            hub.send(bad, false);
        }
        hub.send(event, number % 2 == 0);
    }
    hub.ask("POST", "/api/v1/registry/services/near:resume", &Value::Null);
    // Whatever becomes of the process, it is used.
    let mut late = 0;
    within(PATIENCE, "it is quarantined", || {
        hub.look();
        late += 1;
        hub.unwell |= liveness(&hub.hub) != Some(200);
        hub.send(&format!("late-{late}"), true);
        events.push(format!("late-{late}"));
        let found = hub.deliveries(bad);
        thread::sleep(Duration::from_millis(100));
        found[0]["state"] == "deadLettered"
    });
    let errors = hub.is_quarantined(bad);
    are_delivered(hub, &events);
    let arrived = near.arrived().len();
    assert_eq!(arrived, events.len(), "each is one delivery to `near`");
    assert!(hub.log().contains("[Delivery][Quarantine] Failed!"), "{}", hub.log());
    errors.last().unwrap().clone()
}

/// PRM-1. Trap "poison that kills the process": an event that aborts it is found among those that were in hand with it, within a
/// few starts, and all others are delivered.
#[test]
fn prm_1_an_event_that_aborts_the_process_is_quarantined_and_its_neighbours_go_on() {
    let binary = sabotaged();
    let _alone = alone();
    let mut hub = Supervised::start(binary);
    let error = ends_the_process(&mut hub, "abort-1");
    eprintln!("an event that aborts: {} crashes", hub.crashes);
    assert!(error.ends_with("while sending it"), "{error}");
    assert!((3..=4).contains(&hub.crashes), "{}", hub.crashes);
}

/// PRM-1, HUB-9. Trap "a handling that hangs is worse than one that crashes": the watchdog ends the process, its liveness says so
/// before, and the rest is as with one that aborts.
#[test]
fn prm_1_an_event_that_hangs_the_process_is_quarantined_and_its_neighbours_go_on() {
    let binary = sabotaged();
    let _alone = alone();
    let mut hub = Supervised::start(binary);
    let error = ends_the_process(&mut hub, "hang-1");
    eprintln!("an event that hangs: {} crashes", hub.crashes);
    assert!(error.ends_with("while sending it"), "{error}");
    let log = hub.log();
    assert_eq!(log.matches("[Hub][Watchdog] Failed!").count(), hub.crashes as usize, "{log}");
    assert!(hub.unwell && liveness(&hub.hub) == Some(200), "it says when it is unwell, and when it is not");
}

/// HUB-9: a process that is stopped for longer than the watchdog waits goes on when it may.
#[test]
fn hub_9_a_process_that_was_stopped_is_not_ended_by_its_watchdog() {
    let _alone = alone();
    let mut hub = Supervised::start(PathBuf::from(SEAWALL));
    let signal = |hub: &Hub, signal: &str| {
        let sent = Command::new("kill").args([signal, &hub.process.id().to_string()]).status().unwrap();
        assert!(sent.success());
    };
    signal(&hub.hub, "-STOP");
    thread::sleep(Duration::from_secs(5));
    signal(&hub.hub, "-CONT");
    let status = liveness(&hub.hub);
    thread::sleep(Duration::from_millis(500));
    hub.look();
    assert_eq!((status, hub.crashes), (Some(200), 0), "{}", hub.log());
}

/// PRM-1: an event that aborts the process and is alone in hand is quarantined by the third crash.
#[test]
fn prm_1_an_event_that_aborts_the_process_alone_is_quarantined_after_three_crashes() {
    let binary = sabotaged();
    let _alone = alone();
    let (near, far, mut hub) = (Peer::start(), Peer::start(), Supervised::start(binary));
    register(&mut hub, &near, &far, 1_000);
    hub.send("abort-1", false);
    let errors = hub.is_quarantined("abort-1");
    assert_eq!(hub.crashes, 3, "{errors:?}");
    hub.send("good-1", true);
    are_delivered(&mut hub, &["good-1".to_owned()]);
    assert_eq!(hub.crashes, 3);
}
