//! What an attacker tries at the door: sessions, logins, metrics, short secrets, and what is told to whom.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use seawall_testkit::http::HttpMessage;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Client, Hub, KEY, Reply, SEAWALL, header};
use crate::peer::{Peer, PeerBehavior};

const KEYS: &str = "/api/v1/registry/keys";
const SERVICES: &str = "/api/v1/registry/services";
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn key(hub: &Hub, body: &Value) -> String {
    hub.must("POST", KEYS, body)["key"].as_str().unwrap().to_owned()
}

fn log_in(hub: &Hub) -> String {
    let begun = hub.call("POST", "/login", &[FORM], &format!("key={KEY}"));
    assert_eq!(begun.status, 303, "{}", begun.text);
    header(&begun.head, "set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

fn page(hub: &Hub, cookie: &str) -> Reply {
    hub.call("GET", "/services", &[("cookie", cookie)], "")
}

/// Trap "after logout the old cookie opens nothing", SEC-1: neither a page nor a stream nor an action, also after a restart; another
/// session of the same key goes on.
#[test]
fn sec_1_after_logout_the_old_cookie_opens_nothing() {
    let folder = TempDir::new().unwrap();
    let hub = Hub::start(folder.path());
    let (cookie, other) = (log_in(&hub), log_in(&hub));
    let shown = page(&hub, &cookie);
    let token = shown.text.split_once("data-csrf=\"").unwrap().1.split('"').next().unwrap().to_owned();
    let out = hub.call("POST", "/logout", &[FORM, ("cookie", &cookie)], &format!("_csrf={token}"));
    assert_eq!((out.status, header(&out.head, "location")), (303, Some("/login")), "{}", out.head);
    let opens_nothing = |hub: &Hub| {
        for path in ["/services", "/live?page=/services", "/settings/metrics"] {
            let asked = hub.call("GET", path, &[("cookie", &cookie)], "");
            assert_eq!(asked.status, 303, "{path}: {}", asked.head);
            assert!(header(&asked.head, "location").unwrap().starts_with("/login"), "{path}");
        }
        let act = format!("_csrf={token}&_method=POST&_path=/api/v1/registry/keys&name=mine");
        assert_eq!(hub.call("POST", "/act", &[FORM, ("cookie", &cookie)], &act).status, 303);
        assert_eq!(page(hub, &other).status, 200, "the other session is nobody else's");
    };
    opens_nothing(&hub);
    drop(hub);
    opens_nothing(&Hub::start(folder.path()));
}

/// SEC-1: whoever tries keys at the login has ten tries a minute; then also the right one has to wait.
#[test]
fn sec_1_the_login_is_throttled() {
    let folder = TempDir::new().unwrap();
    let hub = Hub::start(folder.path());
    let wrong = |number: u32| hub.call("POST", "/login", &[FORM], &format!("key=wrong-{number}"));
    for number in 0..10 {
        assert_eq!(wrong(number).status, 401);
    }
    let refused = wrong(10);
    assert_eq!(refused.status, 429, "{}", refused.text);
    let wait: u32 = header(&refused.head, "retry-after").unwrap().parse().unwrap();
    assert!((1..=61).contains(&wait) && refused.text.contains("Too many unknown keys"), "{}", refused.text);
    assert_eq!(hub.call("POST", "/login", &[FORM], &format!("key={KEY}")).status, 429);
    // Programs do not log in.
    assert_eq!(hub.ask("GET", SERVICES, KEY, "").0, 200);
}

/// SEC-1: the name of a scheme is the same in any case.
#[test]
fn sec_1_the_name_of_the_scheme_may_be_written_in_any_case() {
    let folder = TempDir::new().unwrap();
    let hub = Hub::start(folder.path());
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        let said = hub.call("GET", SERVICES, &[("authorization", &format!("{scheme} {KEY}"))], "");
        assert_eq!(said.status, 200, "{scheme}: {}", said.text);
    }
    for wrong in [KEY.to_owned(), format!("Basic {KEY}"), format!("Bearer{KEY}"), format!("Bearer {KEY}x")] {
        assert_eq!(hub.call("GET", SERVICES, &[("authorization", &wrong)], "").status, 401, "{wrong}");
    }
}

/// SEC-1: metrics name all services, so they need a key that may read all of them; `--metrics open` shows them to everybody, and
/// health needs none either way.
#[test]
fn sec_1_metrics_need_a_key_unless_they_are_open() {
    const METRICS: [&str; 3] = ["/metrics", "/actuator/metrics", "/actuator/metrics/seawall.events"];
    let folder = TempDir::new().unwrap();
    let hub = Hub::start(folder.path());
    let ask = |hub: &Hub, path: &str, key: Option<&str>| {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let headers: Vec<(&str, &str)> = bearer.iter().map(|key| ("authorization", key.as_str())).collect();
        hub.call("GET", path, &headers, "").status
    };
    let reader = key(&hub, &json!({"name": "prometheus", "scopes": ["read"]}));
    let sender = key(&hub, &json!({"name": "sender", "scopes": ["ingest"]}));
    let limited = key(&hub, &json!({"name": "limited", "scopes": ["read"], "services": ["billing"]}));
    for path in METRICS {
        assert_eq!(ask(&hub, path, None), 401, "{path}");
        assert_eq!((ask(&hub, path, Some(&sender)), ask(&hub, path, Some(&limited))), (403, 403), "{path}");
        assert_eq!((ask(&hub, path, Some(&reader)), ask(&hub, path, Some(KEY))), (200, 200), "{path}");
    }
    let cookie = log_in(&hub);
    let shown = hub.call("GET", "/settings/metrics", &[("cookie", &cookie)], "");
    assert!(
        shown.status == 200 && shown.text.contains("# TYPE seawall_events_total counter"),
        "{}",
        shown.head
    );
    for path in ["/actuator/health", "/actuator/health/liveness", "/actuator/health/readiness"] {
        assert_eq!(ask(&hub, path, None), 200, "{path}");
    }
    drop(hub);
    let mut command = Hub::command(Path::new(SEAWALL), folder.path());
    let hub = Hub::ready(command.args(["--metrics", "open"]).spawn().unwrap()).unwrap();
    for path in METRICS {
        assert_eq!(ask(&hub, path, None), 200, "{path}");
    }
}

/// SEC-1, API-2: a token is all that the sender of a webhook shows, so one that can be guessed is refused.
#[test]
fn sec_1_a_token_of_a_source_has_a_least_length() {
    let folder = TempDir::new().unwrap();
    let hub = Hub::start(folder.path());
    let source = |secrets: &[&str]| {
        let verify = json!({"type": "bearer", "secrets": secrets});
        let source = json!({"name": "shop", "verify": verify, "eventType": "shop.order"});
        hub.post("/api/v1/registry/sources", &source)
    };
    for short in [&["x"][..], &["fifteen-letters"], &["long-enough-to-be-one", "short"]] {
        let (status, said) = source(short);
        assert_eq!(
            (status, &said["errors"][0]["field"]),
            (422, &json!("verify.secrets")),
            "{short:?}: {said}"
        );
        let reason = said["errors"][0]["reason"].as_str().unwrap();
        assert!(reason.contains("16 characters") && reason.contains("openssl rand"), "{reason}");
    }
    assert_eq!(source(&["sixteen-letters!"]).0, 201);
}

/// SEC-1: `:test` tells who may only operate whether a service answers, how fast and what kind of failure it is; what it answers,
/// and which address was tried, is for administrators.
#[test]
fn sec_1_a_test_tells_operators_no_more_than_they_need() {
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    let hub = Hub::start(folder.path());
    let operator = key(&hub, &json!({"name": "duty", "scopes": ["operate"]}));
    let policy = json!({"attempt_timeout": "2s"});
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (name, address) in
        [("billing", peer.address.clone()), ("gone", format!("http://localhost:{}", gone.port()))]
    {
        hub.must("POST", SERVICES, &json!({"name": name, "address": address, "policy": policy}));
    }
    peer.set_body("what is behind it");
    let test = |name: &str, key: &str| {
        hub.ask("POST", &format!("{SERVICES}/{name}:test"), key, "").1["data"].clone()
    };
    let (all, some) = (test("billing", KEY), test("billing", &operator));
    assert_eq!((&all["body"], some.get("body")), (&json!("what is behind it"), None), "{some}");
    assert_eq!(
        (&some["reached"], &some["httpStatus"], &some["good"]),
        (&json!(true), &json!(200), &json!(true))
    );
    assert!(some["latencyMs"].is_u64() && some["fault"].is_null(), "{some}");
    let (all, some) = (test("gone", KEY), test("gone", &operator));
    assert!(all["error"].is_string() && some.get("error").is_none(), "{all} {some}");
    assert_eq!((&some["reached"], &some["fault"]), (&json!(false), &json!("io")), "{some}");
    assert!(!some.to_string().contains("127.0.0.1") && !some.to_string().contains("::1"), "{some}");
    peer.behave(PeerBehavior::Respond(503));
    let some = test("billing", &operator);
    assert_eq!(
        (&some["httpStatus"], &some["good"], &some["fault"]),
        (&json!(503), &json!(false), &json!("protocol"))
    );
}

/// Trap "a secret echoed by a peer as JSON string, percent-encoded, HTML-escaped or base64 is hidden like the plain one", PRM-9: in
/// what is kept, shown and on the disk.
#[test]
fn prm_9_a_secret_that_a_peer_repeats_in_another_spelling_is_hidden() {
    const SECRET: &str = "c4n4ry\"<&/s3cr3t%20+of=the\\hub";
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    let hub = Hub::start(folder.path());
    let auth = json!({"type": "bearer", "secret": SECRET});
    let policy = json!({"attempt_timeout": "2s"});
    hub.must(
        "POST",
        SERVICES,
        &json!({"name": "billing", "address": peer.address, "auth": auth, "policy": policy}),
    );
    let rule = json!({"name": "all", "eventType": "*", "service": "billing"});
    hub.must("POST", "/api/v1/registry/rules", &rule);
    let percent: String = SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let some: String = SECRET
        .bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect();
    let html = SECRET.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let spellings = [
        json!({"you": {"sent": format!("Bearer {SECRET}")}}).to_string(),
        percent,
        some,
        html,
        STANDARD.encode(format!("Bearer {SECRET}")),
        STANDARD.encode(SECRET),
    ];
    peer.behave(PeerBehavior::Respond(400));
    let mut shown = Vec::new();
    for (number, spelling) in spellings.iter().enumerate() {
        peer.set_body(&format!("before {spelling} after"));
        let id = hub.send(&json!({"id": format!("e{number}"), "type": "a.b", "data": {}})).remove(0);
        let delivery = hub.wait_for(&id, "deadLettered");
        let answer = delivery["attempts"][0]["answer"].as_str().unwrap().to_owned();
        assert!(
            answer.starts_with("before ") && answer.ends_with(" after") && answer.contains('…'),
            "{answer}"
        );
        assert!(!answer.contains("c4n4ry") && !answer.contains("s3cr3t"), "{spelling}: {answer}");
        shown.push((spelling, answer));
    }
    let HttpMessage { body: lines, .. } =
        Client::connect(&hub.address).unwrap().exchange("GET", "/metrics", "").unwrap();
    assert!(!lines.is_empty());
    drop(hub);
    for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
        let bytes = std::fs::read(file.path()).unwrap();
        for (spelling, _) in &shown {
            let found = bytes.windows(spelling.len()).any(|part| part == spelling.as_bytes());
            assert!(!found, "{spelling} stands in {:?}", file.path());
        }
    }
}
