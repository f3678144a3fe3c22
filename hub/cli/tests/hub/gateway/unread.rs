//! Clients that ask for much and read nothing: what they cost is bounded, and they are cut off.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::harness::SEAWALL;

const MIB: usize = 1024 * 1024;
/// What the hub may hold of responses, and below what else it takes under such load.
const BUDGET_MIB: u64 = 64;
const REST_MIB: u64 = 160;

/// A hub with a small memory for responses.
fn small(folder: &Path, write_timeout: &str) -> Hub {
    let mut command = Hub::command(Path::new(SEAWALL), folder);
    command.env("SEAWALL_RESPONSE_MEMORY", format!("{BUDGET_MIB}MiB"));
    command.env("SEAWALL_WRITE_TIMEOUT", write_timeout);
    Hub::ready(command.spawn().unwrap()).unwrap()
}

/// Asks, and reads nothing.
fn ask_only(hub: &Hub, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&hub.address).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {KEY}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

fn large(number: u32) -> Value {
    let data = json!({"text": "x".repeat(900_000)});
    json!({"id": format!("large-{number}"), "type": "large.event", "source": "s", "data": data})
}

/// Looks at what the hub has taken beyond what it had before.
struct Watched<'h> {
    hub: &'h Hub,
    before: u64,
}

impl<'h> Watched<'h> {
    fn new(hub: &'h Hub) -> Self {
        Watched { hub, before: memory(hub, "VmRSS") }
    }

    /// It has never been more than the bound.
    fn check(&self) {
        let grown = memory(self.hub, "VmHWM").saturating_sub(self.before) / 1024;
        assert!(grown < BUDGET_MIB + REST_MIB, "clients that do not read cost {grown} MiB");
    }

    /// A thousand clients ask for the same thing, and never read.
    fn a_thousand(&self, method: &str, path: &str, body: &str) -> Vec<TcpStream> {
        let ask = |number| {
            if number % 20 == 0 {
                self.check();
            }
            ask_only(self.hub, method, path, body)
        };
        (0..1_000).map(ask).collect()
    }
}

/// A number that the hub says of itself.
fn number(hub: &Hub, name: &str) -> u64 {
    let text = hub.with("GET", "/metrics", &[], &Value::Null).text;
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    found.unwrap_or_default() as u64
}

const HELD: &str = "seawall_response_memory_bytes";
const CUT_OFF: &str = "seawall_clients_cut_off_total";
const CALL: &str = "/api/v1/gateway/services/billing:call";
const EXPORT: &str = "/api/v1/bridge/deadLetters:export";

/// Trap "1 000 clients that ask for 10 MiB by `:call` and never read cost a bounded number of bytes", PRM-8: in all three forms in
/// which a body is passed on.
#[test]
fn prm_8_calls_that_nobody_reads_cost_bounded_memory() {
    let bodies: Arc<[(&str, Vec<u8>)]> = Arc::new([
        ("application/json", format!("[\"{}\"]", "x".repeat(9 * MIB)).into_bytes()),
        ("text/plain", vec![7; 9 * MIB]),
        ("image/png", vec![0xFF; 9 * MIB]),
    ]);
    let upstream = Upstream::start(move |number, _, stream| {
        let (kind, body) = &bodies[number % bodies.len()];
        answer(stream, 200, &format!("content-type: {kind}\r\n"), body)
    });
    let folder = TempDir::new().unwrap();
    let scene = Scene { hub: small(folder.path(), "60s"), _folder: folder };
    let policy = json!({"attempt_timeout": "60s", "bulkhead": {"max_calls": 1_000}});
    scene.service(&json!({"name": "billing", "address": upstream.address, "policy": policy}));
    let watched = Watched::new(&scene.hub);
    let clients = watched.a_thousand("POST", CALL, "{}");
    within(Duration::from_secs(60), "the memory is used up", || {
        watched.check();
        scene.call(&json!({})).1["code"] == "memoryFull"
    });
    let reply = scene.hub.with("POST", CALL, &[], &json!({}));
    assert_eq!((reply.status, &reply.body["code"]), (503, &json!("memoryFull")), "{}", reply.text);
    assert!(header(&reply.head, "retry-after").is_some(), "{}", reply.head);
    // What is small is served all the same.
    assert_eq!(scene.hub.get("/api/v1/registry/services/billing")["name"], "billing");
    drop(clients);
    within(Duration::from_secs(60), "there is memory again", || scene.call(&json!({})).0 == 200);
    within(Duration::from_secs(20), "little is held", || number(&scene.hub, HELD) < MIB as u64);
    watched.check();
}

/// A hub whose service has large responses, and two places for calls.
fn two_places(write_timeout: &str) -> Scene {
    let body = vec![b'x'; 9 * MIB];
    let upstream = Upstream::start(move |_, got, stream| {
        let body: &[u8] = if got.head.contains("/small") { b"ok" } else { &body };
        answer(stream, 200, "content-type: text/plain\r\n", body)
    });
    let folder = TempDir::new().unwrap();
    let scene = Scene { hub: small(folder.path(), write_timeout), _folder: folder };
    let policy = json!({"attempt_timeout": "30s", "bulkhead": {"max_calls": 2}, "breaker": {"consecutive_failures": 5}});
    scene.service(&json!({"name": "billing", "address": upstream.address, "policy": policy}));
    scene
}

/// Trap "and their places in the bulkhead", PRM-8: a response that is not read keeps the place of its call, and gives it back when
/// its client goes away.
#[test]
fn prm_8_a_response_that_is_not_read_keeps_its_place_in_the_bulkhead() {
    let scene = two_places("60s");
    let clients: Vec<TcpStream> = (0..2).map(|_| ask_only(&scene.hub, "POST", CALL, "{}")).collect();
    let both = 2 * 9 * MIB as u64;
    within(Duration::from_secs(20), "both have answers", || number(&scene.hub, HELD) >= both);
    let (status, said) = scene.call(&json!({"path": "/small"}));
    assert_eq!((status, &said["code"]), (503, &json!("bulkheadFull")), "{said}");
    drop(clients);
    within(Duration::from_secs(20), "there is a place again", || {
        scene.call(&json!({"path": "/small"})).0 == 200
    });
    assert_eq!((scene.circuit(), number(&scene.hub, CUT_OFF)), ("closed".to_owned(), 0));
}

/// Trap "until they are cut off", PRM-8: a client that takes nothing is cut off within the limit; its memory and its place are
/// free, and the service is not to blame. One that reads is served to the end.
#[test]
fn prm_8_a_client_that_takes_nothing_is_cut_off() {
    let scene = two_places("2s");
    let mut clients: Vec<TcpStream> = (0..2).map(|_| ask_only(&scene.hub, "POST", CALL, "{}")).collect();
    within(Duration::from_secs(20), "both are cut off", || number(&scene.hub, CUT_OFF) == 2);
    assert!(scene.circuit() == "closed" && number(&scene.hub, HELD) < MIB as u64);
    assert_eq!(scene.call(&json!({"path": "/small"})).0, 200);
    for client in &mut clients {
        let mut read = Vec::new();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let ended = client.read_to_end(&mut read);
        assert!(read.len() < 9 * MIB, "it was served to the end: {ended:?}");
    }
    let mut reader = ask_only(&scene.hub, "POST", CALL, "{}");
    reader.read_exact(&mut vec![0; 9 * MIB]).unwrap();
}

/// Trap "by list": pages of large events that nobody reads.
#[test]
fn prm_8_lists_that_nobody_reads_cost_bounded_memory() {
    const EVENTS: &str = "/api/v1/bridge/events?page_size=500";
    let folder = TempDir::new().unwrap();
    let hub = small(folder.path(), "60s");
    (0..6).for_each(|number| drop(hub.send(&large(number))));
    let watched = Watched::new(&hub);
    let clients = watched.a_thousand("GET", EVENTS, "");
    within(Duration::from_secs(60), "the memory is used up", || {
        watched.check();
        hub.ask("GET", EVENTS, KEY, "").1["code"] == "memoryFull"
    });
    drop(clients);
    within(Duration::from_secs(60), "a page is served again", || hub.ask("GET", EVENTS, KEY, "").0 == 200);
    watched.check();
}

/// Trap "or export": exports of large dead letters that nobody reads; one that is read is whole, beside others that are not.
#[test]
fn prm_8_exports_that_nobody_reads_cost_bounded_memory() {
    let upstream = Upstream::says(422, "no");
    let folder = TempDir::new().unwrap();
    let hub = small(folder.path(), "3s");
    hub.must("POST", "/api/v1/registry/services", &json!({"name": "billing", "address": upstream.address}));
    let rule = json!({"name": "all", "eventType": "large.event", "service": "billing", "path": "/", "method": "POST"});
    hub.must("POST", "/api/v1/registry/rules", &rule);
    let deliveries: Vec<Value> = (0..6).flat_map(|number| hub.send(&large(number))).collect();
    assert_eq!(deliveries.len(), 6);
    deliveries.iter().for_each(|id| drop(hub.wait_for(id, "deadLettered")));
    let watched = Watched::new(&hub);
    drop(watched.a_thousand("GET", EXPORT, ""));
    within(Duration::from_secs(60), "an export is begun again", || {
        watched.check();
        hub.ask("GET", EXPORT, KEY, "").0 == 200
    });
    let clients: Vec<TcpStream> = (0..5).map(|_| ask_only(&hub, "GET", EXPORT, "")).collect();
    let mut reader = Line { stream: BufReader::new(ask_only(&hub, "GET", EXPORT, "")) };
    reader.stream.get_ref().set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = reader.read_head();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let mut lines = Vec::new();
    loop {
        let mut size = String::new();
        reader.stream.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        lines.extend(reader.read_exactly(size));
        reader.read_exactly(2);
    }
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 6, "one that reads gets all of it");
    drop(clients);
}
