//! What of calls through the gateway is seen from outside: spans and lines of the log.

use std::process::Stdio;

use super::*;
use crate::harness::SEAWALL;
use crate::peer::Peer;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const ABOVE: &str = "b7ad6b7169203331";

/// All spans that the collector has got, of this trace.
fn spans(collector: &Peer, trace: &str) -> Vec<Value> {
    let bodies = collector.requests().into_iter().map(|got| got.json());
    let spans = bodies
        .flat_map(|body| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone());
    spans.filter(|span| span["traceId"] == trace).collect()
}

fn attribute<'s>(span: &'s Value, name: &str) -> Option<&'s Value> {
    let found = span["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == name);
    found.map(|found| found["value"].as_object().unwrap().values().next().unwrap())
}

fn traced(folder: &TempDir, collector: &Peer) -> Scene {
    let mut command = Hub::command(SEAWALL.as_ref(), folder.path());
    let hub = Hub::ready(command.args(["--otlp-endpoint", &collector.address]).spawn().unwrap()).unwrap();
    Scene { hub, _folder: TempDir::new().unwrap() }
}

/// What the upstream was told of the trace, by each request.
fn told(upstream: &Upstream) -> Vec<String> {
    let got = upstream.got.lock().unwrap();
    got.iter().map(|got| header(&got.head, "traceparent").unwrap_or_default().to_owned()).collect()
}

/// OBS-3, HUB-2: a call through the gateway, `:call` or proxy, is a span below its client's, each attempt is one below that, and
/// the upstream is told the attempt's.
#[test]
fn obs_3_a_call_through_the_gateway_is_a_span_with_one_for_each_attempt() {
    let (folder, collector) = (TempDir::new().unwrap(), Peer::start());
    let scene = traced(&folder, &collector);
    for way in ["proxy", "call"] {
        let upstream = Upstream::start(|n, _, stream| match n {
            0 => answer(stream, 503, "", b"busy"),
            _ => answer(stream, 200, "", b"fine"),
        });
        scene.service(&json!({"name": "billing", "address": upstream.address, "policy": patient()}));
        let trace = if way == "proxy" { TRACE.to_owned() } else { TRACE.replace("0af7", "1af7") };
        let parent = format!("00-{trace}-{ABOVE}-01");
        let route = if way == "proxy" {
            let said = format!("traceparent: {parent}\r\n");
            let (head, _) = Line::open(&scene.hub).ask("GET", "/gateway/billing/x", &said, b"");
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            "GET /gateway/{name}/{path}"
        } else {
            let path = "/api/v1/gateway/services/billing:call";
            let reply = scene.hub.with("POST", path, &[("traceparent", &parent)], &json!({"path": "/x"}));
            assert_eq!(reply.body["data"]["attempts"], json!(2), "{}", reply.body);
            "POST /api/v1/gateway/services/{name}:call"
        };
        within(Duration::from_secs(20), "the spans are there", || spans(&collector, &trace).len() >= 3);
        let spans = spans(&collector, &trace);
        assert_eq!(spans.len(), 3, "{spans:#?}");
        let server = spans.iter().find(|span| span["kind"] == 2).unwrap();
        assert_eq!((&server["name"], &server["parentSpanId"]), (&json!(route), &json!(ABOVE)), "{server}");
        assert_eq!(attribute(server, "http.response.status_code"), Some(&json!("200")));
        assert_eq!(attribute(server, "seawall.service"), Some(&json!("billing")));
        let mut tries: Vec<&Value> = spans.iter().filter(|span| span["kind"] == 3).collect();
        tries.sort_by_key(|span| span["startTimeUnixNano"].as_str().unwrap().to_owned());
        let told = told(&upstream);
        for (number, (span, status)) in tries.iter().zip(["503", "200"]).enumerate() {
            assert_eq!(span["parentSpanId"], server["spanId"], "{way}");
            assert_eq!(attribute(span, "http.response.status_code"), Some(&json!(status)));
            assert_eq!(span["status"]["code"] == 2, status == "503", "{span}");
            assert_eq!(told[number], format!("00-{trace}-{}-01", span["spanId"].as_str().unwrap()));
        }
        assert_eq!(attribute(tries[1], "http.request.resend_count"), Some(&json!("1")));
    }
}

/// OBS-3: a trace that its client does not keep is passed on, and not exported; a call without a trace begins one; one that has no
/// answer says why.
#[test]
fn obs_3_what_is_not_sampled_is_passed_on_and_not_exported() {
    let (folder, collector) = (TempDir::new().unwrap(), Peer::start());
    let scene = traced(&folder, &collector);
    let upstream = Upstream::says(200, "ok");
    scene.service(&json!({"name": "billing", "address": upstream.address, "policy": patient()}));
    let parent = format!("00-{TRACE}-{ABOVE}-00");
    Line::open(&scene.hub).ask("GET", "/gateway/billing/x", &format!("traceparent: {parent}\r\n"), b"");
    let path = "/api/v1/gateway/services/billing:call";
    scene.hub.with("POST", path, &[("traceparent", &parent)], &json!({}));
    assert_eq!(told(&upstream), [parent.clone(), parent]);
    Line::open(&scene.hub).ask("GET", "/gateway/billing/x", "", b"");
    let own = told(&upstream)[2].clone();
    let trace = own.split('-').nth(1).unwrap().to_owned();
    within(Duration::from_secs(20), "the spans are there", || spans(&collector, &trace).len() == 2);
    assert_eq!(own.split('-').nth(3), Some("01"));
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    scene.service(
        &json!({"name": "dead", "address": format!("http://{dead}"), "policy": {"attempt_timeout": "2s"}}),
    );
    let other = TRACE.replace("0af7", "2af7");
    let said = format!("traceparent: 00-{other}-{ABOVE}-01\r\n");
    Line::open(&scene.hub).ask("GET", "/gateway/dead/x", &said, b"");
    within(Duration::from_secs(20), "the spans are there", || spans(&collector, &other).len() == 2);
    for span in spans(&collector, &other) {
        assert!(span["status"]["message"].as_str().unwrap().contains("no connection"), "{span}");
    }
    // All that came before has been sent by now.
    assert!(spans(&collector, TRACE).is_empty());
}

/// OBS-1: an outage of a service that may pass is a warning about a call to it; what needs a person is an error.
#[test]
fn obs_1_an_outage_of_a_service_is_a_warning_and_what_needs_a_person_an_error() {
    let folder = TempDir::new().unwrap();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let mut command = Hub::command(SEAWALL.as_ref(), folder.path());
    command.env("SEAWALL_LOG_LEVEL", "info").stderr(Stdio::from(log));
    let hub = Hub::ready(command.spawn().unwrap()).unwrap();
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hanging = Upstream::start(|_, _, stream| {
        let _ = stream.read(&mut [0; 1]);
        false
    });
    let policy = json!({"attempt_timeout": "100ms"});
    for (name, address) in [
        ("dead", format!("http://{dead}")),
        ("slow", hanging.address.clone()),
        ("inside", "http://10.1.2.3".into()),
    ] {
        let service = json!({"name": name, "address": address, "policy": policy});
        assert_eq!(hub.post("/api/v1/registry/services", &service).0, 201);
    }
    for (name, status, level) in [("dead", 502, "WARN"), ("slow", 504, "WARN"), ("inside", 502, "ERROR")] {
        let path = format!("/api/v1/gateway/services/{name}:call");
        assert_eq!(hub.post(&path, &json!({})).0, status);
        let line = || {
            let text = std::fs::read_to_string(folder.path().join("log")).unwrap();
            text.lines()
                .find(|line| line.contains("[Api][Answer]") && line.contains(&path))
                .map(ToOwned::to_owned)
        };
        within(Duration::from_secs(10), "the line is there", || line().is_some());
        let line = line().unwrap();
        assert!(line.contains(level), "{line}");
        assert_eq!(line.contains("ManualReview"), level == "ERROR", "{line}");
    }
}
