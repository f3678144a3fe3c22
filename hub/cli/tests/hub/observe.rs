//! What the hub says of itself: its log and its metrics, from outside.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::disallowed_methods, reason = "it looks at another process, and waits for it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Hub, KEY, SEAWALL, within};
use crate::peer::{Peer, PeerBehavior};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
/// None of these may be in a log or in a metric.
const SECRETS: [&str; 5] =
    ["s3cr3t-of-billing", "s3cr3t-of-github", KEY, "p4yl0ad-of-an-event", "qu3ry-of-a-path"];

fn start(folder: &Path, log: &Path, more: &[&str]) -> Hub {
    let mut command = Hub::command(Path::new(SEAWALL), folder);
    command.env_remove("SEAWALL_LOG_LEVEL").args(more).stderr(File::create(log).unwrap());
    Hub::ready(command.spawn().unwrap()).unwrap()
}

fn wait_until(what: &str, is_so: impl FnMut() -> bool) {
    within(Duration::from_secs(30), what, is_so);
}

/// Ends it in order, and says how long that took.
fn stop(mut hub: Hub) -> Duration {
    let began = Instant::now();
    let process = hub.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
    assert!(hub.process.wait().unwrap().success());
    began.elapsed()
}

fn get(hub: &Hub, path: &str) -> String {
    let mut stream = TcpStream::connect(&hub.address).unwrap();
    let key = format!("authorization: Bearer {KEY}\r\n");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: hub\r\n{key}connection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
    body.to_owned()
}

fn send(hub: &Hub, id: &str) -> Value {
    let event = json!({"id": id, "type": "order.created", "data": {"note": "p4yl0ad-of-an-event"}});
    let trace = format!("00-{TRACE}-b7ad6b7169203331-01");
    let reply = hub.with("POST", "/api/v1/bridge/events", &[("traceparent", &trace)], &event);
    assert_eq!(reply.status, 202, "{}", reply.body);
    reply.body["data"]["deliveries"][0].clone()
}

/// Registers, delivers, fails, breaks a circuit, moves it by hand, is refused, is gone. The peer is healthy at the end.
fn story(hub: &Hub, peer: &Peer) {
    let service = json!({
        "name": "billing", "address": peer.address, "auth": {"type": "bearer", "secret": "s3cr3t-of-billing"},
        "policy": {"attempt_timeout": "2s", "breaker": {"consecutive_failures": 3, "cooldown": "100ms"}, "bulkhead": {}},
    });
    assert_eq!(hub.post("/api/v1/registry/services", &service).0, 201);
    let rule = json!({
        "name": "invoices", "eventType": "order.*", "service": "billing", "method": "POST",
        "path": "/invoices?key=qu3ry-of-a-path", "body": {"note": "{{ data.note }}"}, "delivery": {"base": "20ms", "cap": "50ms"},
    });
    let (status, answer) = hub.post("/api/v1/registry/rules", &rule);
    assert_eq!(status, 201, "{answer}");
    let source = json!({
        "name": "github", "verify": {"type": "github", "secrets": ["s3cr3t-of-github"]}, "eventType": "push",
    });
    assert_eq!(hub.post("/api/v1/registry/sources", &source).0, 201);
    assert_eq!(hub.ask("POST", "/in/github", "none", "{\"a\":\"p4yl0ad-of-an-event\"}").0, 401);

    hub.wait_for(&send(hub, "good"), "delivered");
    // The same once more, and one that contradicts it.
    send(hub, "good");
    let other = json!({"id": "good", "type": "order.created", "data": 1});
    assert_eq!(hub.post("/api/v1/bridge/events", &other).0, 422);

    peer.behave(PeerBehavior::Respond(503));
    let late = send(hub, "late");
    wait_until("the circuit opens", || {
        hub.ask("GET", "/actuator/health", "", "").1["data"]["circuitsNotClosed"] != json!([])
    });
    peer.behave(PeerBehavior::Respond(200));
    hub.wait_for(&late, "delivered");

    peer.behave(PeerBehavior::Respond(422));
    hub.wait_for(&send(hub, "wrong"), "deadLettered");
    let circuit = "/api/v1/registry/services/billing/circuit";
    let forged =
        json!({"reason": "maintenance\n2026-01-01T00:00:00.000Z ERROR [Hub][Stop] Failed! cause=forged"});
    let (status, answer) = hub.post(&format!("{circuit}:forceOpen"), &forged);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(hub.post(&format!("{circuit}:reset"), &json!({"reason": "over"})).0, 200);

    peer.behave(PeerBehavior::Respond(410));
    hub.wait_for(&send(hub, "gone"), "deadLettered");
    let rule = "/api/v1/registry/rules/invoices";
    wait_until("the rule is paused", || hub.ask("GET", rule, KEY, "").1["data"]["enabled"] == json!(false));
    peer.behave(PeerBehavior::Respond(200));
}

/// `TIME LEVEL [Module][Operation] Status. key=value …` as an object like the one in JSON.
fn parse(line: &str) -> BTreeMap<String, String> {
    let (time, rest) = line.split_once(' ').unwrap();
    assert!(time.ends_with('Z') && time.len() == 24, "{line}");
    let (level, rest) = rest.split_once(' ').unwrap();
    assert!(["ERROR", "WARN", "INFO", "DEBUG"].contains(&level), "{line}");
    let (module, rest) = rest.trim_start().strip_prefix('[').unwrap().split_once("][").unwrap();
    let (operation, rest) = rest.split_once("] ").unwrap();
    let end = rest.find(['.', '!']).unwrap() + 1;
    let mut fields: BTreeMap<String, String> =
        [("level", level), ("module", module), ("operation", operation), ("status", &rest[..end])]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
    let mut rest = rest[end..].trim_start();
    while !rest.is_empty() {
        let (name, value) =
            rest.split_once('=').unwrap_or_else(|| unreachable!("no field in {rest}\n{line}"));
        assert!(name.chars().all(char::is_alphanumeric), "{name} in {line}");
        let (value, left) = match value.strip_prefix('"') {
            Some(quoted) => {
                let bytes = quoted.as_bytes();
                let mut at = 0;
                while bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                (&quoted[..at], quoted[at + 1..].trim_start())
            }
            None => value.split_once(' ').unwrap_or((value, "")),
        };
        fields.insert(name.to_owned(), value.to_owned());
        rest = left;
    }
    fields
}

fn parse_json(line: &str) -> BTreeMap<String, String> {
    let Value::Object(object) =
        serde_json::from_str(line).unwrap_or_else(|error| unreachable!("{error}: {line}"))
    else {
        unreachable!("no object: {line}")
    };
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    object.into_iter().map(|(name, value)| (name, text(value))).collect()
}

/// Each line that the story must have told: its level, its head, and the fields that it must have.
const LINES: [(&str, &str, &str); 16] = [
    ("INFO", "[Hub][Start] Success.", "version listen dataDir epoch services rules sources"),
    ("INFO", "[Store][Open] Success.", "epoch duration"),
    ("INFO", "[Registry][PutService] Success.", "service version paused"),
    ("INFO", "[Registry][PutRule] Success.", "rule version service enabled"),
    ("INFO", "[Registry][PutSource] Success.", "source version enabled"),
    ("WARN", "[Webhook][Verify] Failed!", "traceId source cause"),
    ("INFO", "[Accept][Event] Success.", "count deduplicated unmatched p50 p99"),
    ("WARN", "[Accept][Event] Failed!", "traceId eventId cause"),
    ("INFO", "[Deliver][Send] Success.", "service count retried deferred p50 p99"),
    (
        "WARN",
        "[Deliver][Send] Retry triggered.",
        "traceId deliveryId eventId service rule attempt httpStatus duration cause nextAt action",
    ),
    (
        "ERROR",
        "[Deliver][Send] Failed!",
        "traceId deliveryId eventId service rule ruleVersion attempt reason httpStatus duration cause request action",
    ),
    ("ERROR", "[Circuit][Open] Failed!", "service until trips cause action"),
    ("INFO", "[Circuit][Close] Success.", "service"),
    ("WARN", "[Circuit][ForceOpen] Success.", "service reason action"),
    ("WARN", "[Deliver][PauseRule] Fallback activated.", "rule service triggerCause action"),
    ("INFO", "[Hub][Stop] Success.", "cause exitCode"),
];

fn check_lines(lines: &[BTreeMap<String, String>]) {
    let words = ["Start.", "Success.", "Failed!", "Retry triggered.", "Fallback activated."];
    for line in lines.iter().filter(|line| line["module"] != "shutdown") {
        assert!(words.contains(&&*line["status"]), "{line:?}");
    }
    let head = |line: &BTreeMap<String, String>| {
        format!("[{}][{}] {}", line["module"], line["operation"], line["status"])
    };
    for (level, wanted, fields) in LINES {
        let has_all =
            |line: &&BTreeMap<String, String>| fields.split(' ').all(|field| line.contains_key(field));
        let told = lines.iter().filter(|line| head(line) == wanted && line["level"] == level).find(has_all);
        assert!(told.is_some(), "no `{level} {wanted}` with {fields} in\n{lines:#?}");
    }
    for line in lines.iter().filter(|line| line.contains_key("deliveryId")) {
        assert_eq!(line["traceId"], TRACE, "{line:?}");
    }
    assert!(!lines.iter().any(|line| line.get("cause").is_some_and(|cause| cause == "forged")));
    // A failure is told once: the guard counts, and the hub writes.
    let dead: Vec<&String> = lines
        .iter()
        .filter(|line| head(line) == "[Deliver][Send] Failed!")
        .map(|line| &line["eventId"])
        .collect();
    assert_eq!(dead, ["wrong", "gone"]);
    assert!(!lines.iter().any(|line| line["module"] == "billing"), "no guard has a line");
}

/// OBS-1, PRM-9: the log of a story, in text and in JSON: fixed words and keys, a trace in each line about an event, nothing
/// secret and no payload. Traps: a value with a line break forges a line; error text that carries credentials.
#[test]
fn obs_1_a_story_is_told_in_lines_without_secrets() {
    for (format, level) in [("text", "info"), ("json", "debug")] {
        let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
        let log = folder.path().join("log");
        let hub = start(&folder.path().join("data"), &log, &["--log-format", format, "--log-level", level]);
        story(&hub, &peer);
        stop(hub);
        let text = fs::read_to_string(&log).unwrap();
        for secret in SECRETS {
            assert!(!text.contains(secret), "`{secret}` is in\n{text}");
        }
        let lines: Vec<_> =
            text.lines().map(|line| if format == "json" { parse_json(line) } else { parse(line) }).collect();
        check_lines(&lines);
        let each =
            lines.iter().filter(|line| line["level"] == "DEBUG" && line.contains_key("traceId")).count();
        assert_eq!(each > 0, level == "debug", "each event has a line of its own at debug only");
    }
}

/// OBS-1: a stderr that nobody reads stops neither events nor deliveries nor the end; what was dropped is counted.
#[test]
fn obs_1_a_log_that_nobody_reads_holds_up_nobody() {
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    let mut command = Hub::command(Path::new(SEAWALL), folder.path());
    command.env("SEAWALL_LOG_LEVEL", "debug").env("SEAWALL_LOG_FORMAT", "json").stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let _unread = process.stderr.take().unwrap();
    let hub = Hub::ready(process).unwrap();
    let service = json!({"name": "billing", "address": peer.address});
    assert_eq!(hub.post("/api/v1/registry/services", &service).0, 201);
    let rule =
        json!({"name": "all", "eventType": "order.*", "service": "billing", "method": "POST", "path": "/"});
    assert_eq!(hub.post("/api/v1/registry/rules", &rule).0, 201);
    for batch in 0..40 {
        let event = |n: usize| json!({"id": format!("{batch}-{n}"), "type": "order.created", "data": n});
        let events: Vec<Value> = (0..100).map(event).collect();
        assert_eq!(hub.post("/api/v1/bridge/events:batchCreate", &json!({"events": events})).0, 202);
    }
    wait_until("all are delivered", || peer.count() >= 4_000);
    wait_until("the loss is counted", || value(&get(&hub, "/metrics"), "seawall_log_dropped_total") > 0.0);
    let took = stop(hub);
    assert!(took < Duration::from_secs(10), "it took {took:?} to end");
}

/// OBS-1: why it does not start is the last line, and it is written.
#[test]
fn obs_1_the_last_words_get_out() {
    let folder = TempDir::new().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = Command::new(SEAWALL)
        .args(["serve", "--listen", &address, "--log-format", "json", "--data-dir"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    let last = parse_json(text.lines().last().unwrap());
    assert_eq!((&*last["level"], &*last["module"], &*last["status"]), ("ERROR", "Hub", "Failed!"));
    assert!(last["cause"].contains(&format!("can't listen on {address}")), "{last:?}");
    let range = Command::new(SEAWALL).args(["serve", "--allow-egress", "everything"]).output().unwrap();
    assert_eq!(range.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&range.stderr).contains("`everything` is no range of addresses"));
    let wrong = Command::new(SEAWALL).args(["serve", "--log-level", "loud"]).output().unwrap();
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("error, warn, info, debug"));
}

/// The value of a series without labels, or of all with this name together.
fn value(metrics: &str, name: &str) -> f64 {
    let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    metrics.lines().filter(of_name).map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

/// Reads the text as Prometheus does, and says what is wrong with it.
fn check_prometheus(text: &str) {
    let (mut types, mut seen) = (BTreeMap::new(), BTreeSet::new());
    let mut last: Option<(String, f64)> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} has two types");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (series, number) = line.rsplit_once(' ').unwrap();
        let number: f64 = number.parse().unwrap();
        assert!(seen.insert(series.to_owned()), "{series} stands twice");
        let (name, labels) = series.split_once('{').map_or((series, ""), |(name, labels)| {
            (name, labels.strip_suffix('}').unwrap_or_else(|| unreachable!("no end: {line}")))
        });
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{name}");
        for label in labels.split("\",").filter(|label| !label.is_empty()) {
            let (label, value) = label.split_once("=\"").unwrap_or_else(|| unreachable!("{label} in {line}"));
            assert!(label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line}");
            assert!(!value.trim_end_matches('"').contains(['"', '\n']), "{line}");
        }
        let base = ["_bucket", "_sum", "_count"]
            .into_iter()
            .filter_map(|suffix| name.strip_suffix(suffix))
            .find(|base| types.get(*base).is_some_and(|kind| kind == "histogram"));
        assert!(base.is_some() || types.contains_key(name), "{name} has no type");
        if let Some((before, _)) = labels.split_once("le=\"").filter(|_| name.ends_with("_bucket")) {
            let of = format!("{name}{before}");
            if let Some((_, below)) = last.filter(|(same, _)| *same == of) {
                assert!(number >= below, "buckets shrink: {line}");
            }
            last = Some((of, number));
        }
    }
}

/// How the names of metrics begin that only a hub with a database server has.
pub(crate) const OF_A_DATABASE: &str = "seawall.database.";

/// The names in the hub's own table of the page.
pub(crate) fn documented() -> Vec<(String, String)> {
    let page = include_str!("../../../../docs/metrics.md");
    let table = page.split("## The hub").nth(1).unwrap().split("\n## ").next().unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let name = cells[0].strip_prefix('`')?.strip_suffix('`')?;
        Some((name.to_owned(), cells[1].trim_matches('`').to_owned()))
    };
    table.lines().filter(|line| line.starts_with("| `")).filter_map(row).collect()
}

/// OBS-2, HUB-9: after a story every metric of the page is there, in both forms, with the right numbers and without secrets;
/// what is gone is not shown for ever.
#[test]
fn obs_2_every_metric_of_the_page_is_there() {
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    let hub = start(&folder.path().join("data"), &folder.path().join("log"), &[]);
    story(&hub, &peer);
    let text = get(&hub, "/metrics");
    check_prometheus(&text);
    for secret in SECRETS {
        assert!(!text.contains(secret), "`{secret}` is in\n{text}");
    }
    let names: Value = serde_json::from_str(&get(&hub, "/actuator/metrics")).unwrap();
    let names: Vec<&str> =
        names["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let documented = documented();
    assert!(documented.len() >= 19, "{documented:?}");
    // Those of a database are looked at where there is one.
    for (name, exported) in documented.iter().filter(|(name, _)| !name.starts_with(OF_A_DATABASE)) {
        assert!(text.contains(&format!("# TYPE {exported} ")), "{exported} is not in\n{text}");
        assert!(text.contains(&format!("# HELP {exported} ")), "{exported} has no help");
        assert!(names.contains(&name.as_str()), "{name} is not in {names:?}");
    }
    for (series, expected) in [
        ("seawall_events_total{outcome=\"accepted\"}", 4.0),
        ("seawall_events_total{outcome=\"deduplicated\"}", 1.0),
        ("seawall_events_total{outcome=\"refused\"}", 1.0),
        ("seawall_deliveries_total{outcome=\"delivered\",retried=\"false\",service=\"billing\"}", 1.0),
        ("seawall_deliveries_total{outcome=\"delivered\",retried=\"true\",service=\"billing\"}", 1.0),
        ("seawall_dead_letters_total{reason=\"refused\",service=\"billing\"}", 1.0),
        ("seawall_dead_letters_total{reason=\"gone\",service=\"billing\"}", 1.0),
        ("seawall_deliveries_attempts_total{error_type=\"none\",service=\"billing\"}", 2.0),
        ("seawall_dead_letters_open{service=\"billing\"}", 2.0),
        ("seawall_webhooks_refused_total{source=\"github\"}", 1.0),
        ("seawall_circuit_state{guard=\"billing\"}", 0.0),
    ] {
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        assert_eq!(line.and_then(|line| line.parse().ok()), Some(expected), "{series} in\n{text}");
    }
    let opened = "seawall_circuit_transitions_total{guard=\"billing\",to=\"open\"} ";
    assert!(text.lines().any(|line| line.strip_prefix(opened).is_some_and(|count| count != "0")), "{text}");
    actuator(&hub);

    assert_eq!(hub.ask("DELETE", "/api/v1/registry/rules/invoices", KEY, "").0, 200);
    assert_eq!(hub.ask("DELETE", "/api/v1/registry/services/billing", KEY, "").0, 200);
    let text = get(&hub, "/metrics");
    assert!(!text.contains("seawall_deliveries_in_flight{service=\"billing\"}"), "{text}");
    assert!(!text.contains("seawall_circuit_state{guard=\"billing\"}"), "{text}");
}

fn actuator(hub: &Hub) {
    let metric = |name: &str| -> Value {
        serde_json::from_str(&get(hub, &format!("/actuator/metrics/{name}"))).unwrap()
    };
    let statistics = |metric: &Value| -> BTreeMap<String, f64> {
        let one =
            |one: &Value| (one["statistic"].as_str().unwrap().to_owned(), one["value"].as_f64().unwrap());
        metric["measurements"].as_array().unwrap().iter().map(one).collect()
    };
    let latency = metric("http.client.request.duration");
    assert_eq!(
        (&latency["baseUnit"], &latency["availableTags"]),
        (&json!("seconds"), &json!([{"tag": "service", "values": ["billing"]}]))
    );
    let found = statistics(&latency);
    for statistic in ["TOTAL_TIME", "MAX", "P50", "P95", "P99"] {
        assert!((1e-6..5.0).contains(&found[statistic]), "{found:?}");
    }
    assert!(
        found["COUNT"] >= 5.0 && found["P50"] <= found["P99"] && found["P99"] <= found["MAX"],
        "{found:?}"
    );
    let calls = |tag: &str| {
        statistics(&metric(&format!("resilience4j.circuitbreaker.calls?tag=name:billing&tag=kind:{tag}")))
    };
    assert_eq!(calls("successful")["COUNT"], 2.0);
    assert!(calls("failed")["COUNT"] >= 3.0);
    let retried = metric("resilience4j.retry.calls?tag=kind:successful_with_retry");
    assert_eq!(statistics(&retried)["COUNT"], 1.0);
    assert_eq!(hub.ask("GET", "/actuator/metrics/nothing", KEY, "").0, 404);
    assert_eq!(hub.ask("GET", "/actuator/metrics/seawall.events?tag=outcome", KEY, "").0, 422);
}

/// HUB-9, PRM-8: a client that never ends its request does not hold up the end: requests have the time of their phase.
#[test]
fn hub_9_a_client_that_never_ends_its_request_does_not_hold_up_the_end() {
    let folder = TempDir::new().unwrap();
    let mut hub = Hub::start(folder.path());
    let mut stream = TcpStream::connect(&hub.address).unwrap();
    let head =
        "POST /api/v1/bridge/events HTTP/1.1\r\nhost: hub\r\ncontent-length: 100\r\nauthorization: Bearer";
    write!(stream, "{head} {KEY}\r\n\r\n{{").unwrap();
    let process = hub.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
    wait_until("it ends", || hub.process.try_wait().unwrap().is_some());
}
