//! One trace from an event's arrival to its replay, as a collector gets it.

use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Hub, KEY, SEAWALL, until};
use crate::peer::{Peer, PeerBehavior};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// All spans of the trace that the collector has got.
fn spans(collector: &Peer) -> Vec<Value> {
    let bodies = collector.requests().into_iter().map(|got| got.json());
    let spans = bodies.flat_map(|body| {
        let service = &body["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"];
        assert_eq!(service, "seawall");
        body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
    });
    spans.filter(|span| span["traceId"] == TRACE).collect()
}

fn attribute<'s>(span: &'s Value, name: &str) -> Option<&'s Value> {
    let found = span["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == name);
    found.map(|found| found["value"].as_object().unwrap().values().next().unwrap())
}

fn nanos(time: &Value) -> u128 {
    time.as_str().unwrap().parse().unwrap()
}

/// OBS-3: one trace spans the sender, the arrival, the rules, each try and the replay; each has its right parent, a try's span is the one
/// that its peer is told, and the replay is linked to what it replays. No secret is in it.
#[test]
fn obs_3_one_trace_spans_arrival_tries_and_replay() {
    let (folder, peer, collector) = (TempDir::new().unwrap(), Peer::start(), Peer::start());
    let mut command = Hub::command(SEAWALL.as_ref(), folder.path());
    let hub = Hub::ready(command.args(["--otlp-endpoint", &collector.address]).spawn().unwrap()).unwrap();
    let auth = json!({"type": "bearer", "secret": "t0p-s3cret"});
    hub.must(
        "POST",
        "/api/v1/registry/services",
        &json!({"name": "billing", "address": peer.address, "auth": auth}),
    );
    let schedule = json!({"maxAttempts": 2, "count": "all", "base": "10ms", "cap": "20ms"});
    hub.must(
        "POST",
        "/api/v1/registry/rules",
        &json!({"name": "all", "eventType": "*", "service": "billing", "delivery": schedule}),
    );
    let choosy = json!({"name": "choosy", "eventType": "a.*", "service": "billing", "filter": "data.n > 1"});
    hub.must("POST", "/api/v1/registry/rules", &choosy);
    peer.behave(PeerBehavior::Respond(500));
    let parent = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];
    let event = json!({"id": "evt-1", "type": "a.b"});
    let sent = hub.with("POST", "/api/v1/bridge/events", &parent, &event);
    let dead = sent.body["data"]["deliveries"][0].clone();
    hub.wait_for(&dead, "deadLettered");
    // Known before: it does not arrive a second time.
    assert_eq!(hub.with("POST", "/api/v1/bridge/events", &parent, &event).body["data"]["deduplicated"], true);
    peer.behave(PeerBehavior::Respond(200));
    let path = format!("/api/v1/bridge/deadLetters/{}:replay", dead.as_str().unwrap());
    let replayed = hub.must("POST", &path, &json!({}));
    until("the replay is delivered", || peer.requests().iter().any(|got| got.status == Some(200)));
    until("all spans are there", || spans(&collector).len() >= 6);

    let spans = spans(&collector);
    let named = |name: &str| spans.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();
    let (arrival, rules, replay, tries) =
        (named("accept event"), named("match rules"), named("replay dead letter"), named("POST billing"));
    let counts = (arrival.len(), rules.len(), replay.len(), tries.len(), spans.len());
    assert_eq!(counts, (1, 1, 1, 3, 6), "{spans:#?}");
    assert_eq!(rules[0]["parentSpanId"], arrival[0]["spanId"]);
    assert_eq!(attribute(rules[0], "seawall.rules").unwrap()["values"], json!([{"stringValue": "all"}]));
    for (name, count) in [("considered", "2"), ("matched", "1"), ("filtered", "1")] {
        let said = attribute(rules[0], &format!("seawall.rules.{name}"));
        assert_eq!(said, Some(&json!(count)), "{name}");
    }
    for (earlier, later) in [
        (&arrival[0]["startTimeUnixNano"], &rules[0]["startTimeUnixNano"]),
        (&rules[0]["startTimeUnixNano"], &rules[0]["endTimeUnixNano"]),
        (&rules[0]["endTimeUnixNano"], &arrival[0]["endTimeUnixNano"]),
    ] {
        assert!(nanos(earlier) <= nanos(later), "{spans:#?}");
    }
    assert_eq!(arrival[0]["parentSpanId"], "b7ad6b7169203331", "whoever sent it");
    assert_eq!(attribute(arrival[0], "messaging.message.id"), Some(&json!("evt-1")));
    assert_eq!(replay[0]["parentSpanId"], arrival[0]["spanId"]);
    assert_eq!(replay[0]["links"][0]["spanId"], tries[0]["spanId"], "the first try of what it replays");
    assert!(attribute(replay[0], "seawall.delivery").is_some(), "{replayed}");
    let told: Vec<String> = peer
        .requests()
        .iter()
        .map(|got| got.header("traceparent").unwrap().split('-').nth(2).unwrap().to_owned())
        .collect();
    for (number, span) in tries.iter().enumerate() {
        assert_eq!(span["spanId"], json!(told[number]), "the peer is told the span of its try");
        let above = if number < 2 { arrival[0] } else { replay[0] };
        assert_eq!(span["parentSpanId"], above["spanId"], "try {number}");
        let status = if number < 2 { "500" } else { "200" };
        assert_eq!(attribute(span, "http.request.method"), Some(&json!("POST")));
        assert_eq!(attribute(span, "http.response.status_code"), Some(&json!(status)));
        assert_eq!(span["status"]["code"] == 2, number < 2);
        assert!(nanos(&span["startTimeUnixNano"]) <= nanos(&span["endTimeUnixNano"]));
    }
    let all: Vec<String> = collector.requests().iter().map(|request| request.text()).collect();
    assert!(!all.concat().contains("t0p-s3cret"));
    assert_eq!(collector.requests()[0].request_line(), "POST /v1/traces");
}

/// OBS-3: a trace that whoever began it does not want told is told to no collector, in its tries and its replay neither; it is
/// passed on as it came. One that begins here is told.
#[test]
fn obs_3_a_trace_that_is_not_sampled_is_passed_on_and_not_told() {
    let (folder, peer, collector) = (TempDir::new().unwrap(), Peer::start(), Peer::start());
    let mut command = Hub::command(SEAWALL.as_ref(), folder.path());
    let hub = Hub::ready(command.args(["--otlp-endpoint", &collector.address]).spawn().unwrap()).unwrap();
    super::register(&hub, &peer);
    let send = |id: &str, headers: &[(&str, &str)]| {
        let event = json!({"id": id, "type": "a.b"});
        hub.with("POST", "/api/v1/bridge/events", headers, &event).body["data"]["deliveries"][0].clone()
    };
    peer.behave(PeerBehavior::Respond(400));
    let dead = send("evt-1", &[("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")]);
    hub.wait_for(&dead, "deadLettered");
    peer.behave(PeerBehavior::Respond(200));
    hub.must("POST", &format!("/api/v1/bridge/deadLetters/{}:replay", dead.as_str().unwrap()), &json!({}));
    until("the replay is delivered", || peer.requests().iter().any(|got| got.status == Some(200)));
    for got in peer.requests() {
        let told = got.header("traceparent").unwrap().to_owned();
        assert!(told.starts_with(&format!("00-{TRACE}-")) && told.ends_with("-00"), "{told}");
    }
    peer.forget();
    // Told after the others, so when these are there, those would be too.
    hub.wait_for(&send("evt-2", &[]), "delivered");
    assert!(peer.only().header("traceparent").unwrap().ends_with("-01"));
    let told = || collector.requests().iter().map(|request| request.text()).collect::<String>();
    until("the one that began here is told", || told().contains("POST billing"));
    assert!(!told().contains(TRACE) && told().contains("match rules"));
}

/// OBS-3, HUB-9: a collector that takes everything and says nothing holds nothing up, and its hub comes to a good end.
#[test]
fn obs_3_a_collector_that_hangs_does_not_make_it_a_bad_end() {
    let (folder, peer, collector) = (TempDir::new().unwrap(), Peer::start(), Peer::start());
    collector.behave(PeerBehavior::Hang);
    let mut command = Hub::command(SEAWALL.as_ref(), folder.path());
    let mut hub = Hub::ready(command.args(["--otlp-endpoint", &collector.address]).spawn().unwrap()).unwrap();
    super::register(&hub, &peer);
    let send = |id: &str| hub.send(&json!({"id": id, "type": "a.b"})).remove(0);
    hub.wait_for(&send("a"), "delivered");
    until("the collector has got something", || !collector.requests().is_empty());
    hub.wait_for(&send("b"), "delivered");
    let pid = hub.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let status = hub.process.wait().unwrap();
    assert!(status.success(), "{status}");
}

/// OBS-3: a collector that is away costs spans, which are counted, and nothing else.
#[test]
fn obs_3_a_collector_that_is_away_costs_nothing_but_spans() {
    let (folder, peer, collector) = (TempDir::new().unwrap(), Peer::start(), Peer::start());
    collector.refuse_connections();
    let mut command = Hub::command(SEAWALL.as_ref(), folder.path());
    let hub = Hub::ready(command.args(["--otlp-endpoint", &collector.address]).spawn().unwrap()).unwrap();
    super::register(&hub, &peer);
    let ids: Vec<Value> =
        (0..20).flat_map(|number| hub.send(&json!({"id": format!("e{number}"), "type": "a.b"}))).collect();
    for id in &ids {
        hub.wait_for(id, "delivered");
    }
    let dropped = || {
        let metric = hub.ask("GET", "/actuator/metrics/seawall.spans?tag=outcome:dropped", KEY, "").1;
        metric["measurements"][0]["value"].as_u64().unwrap_or(0)
    };
    until("they are counted", || dropped() >= 40);
}
