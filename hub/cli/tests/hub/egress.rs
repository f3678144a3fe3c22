//! Where requests may not go: canaries on every address that somebody may want to reach through the hub.
//!
//! In a network of its own, where addresses like that of a cloud's metadata can be had. It needs the right to make one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::Write;
use std::net::{IpAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Hub, KEY, SEAWALL};

const IN_NETWORK: &str = "SEAWALL_TEST_NETWORK";
const NAME: &str = "egress::prm_10_no_connection_leaves_to_where_it_may_not";
const PORT: u16 = 8099;

/// Addresses on which a canary listens.
const CANARIES: [&str; 10] = [
    "127.0.0.1",
    "127.9.9.9",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "::1",
    "fd00:ec2::254",
    "fe80::1",
];

/// The same places, in every spelling that somebody has thought of.
const SPELLINGS: [&str; 30] = [
    "127.0.0.1",
    "127.9.9.9",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "2130706433",
    "0x7f000001",
    "017700000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "127.1",
    "127.0.1",
    "0",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "2852039166",
    "100.64.0.1",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "user@127.0.0.1",
];

/// PRM-10, SEC-3. Trap "spellings: … canary listeners in a network namespace: no hit in any case".
#[test]
fn prm_10_no_connection_leaves_to_where_it_may_not() {
    if std::env::var_os(IN_NETWORK).is_some() {
        return inside();
    }
    let again = Command::new("unshare")
        .args(["--net", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(IN_NETWORK, "1")
        .output()
        .expect("`unshare` (package util-linux) makes a network of its own for this test");
    let said = String::from_utf8_lossy(&again.stdout).into_owned() + &String::from_utf8_lossy(&again.stderr);
    assert!(
        again.status.success(),
        "a network of its own could not be had (that needs root, `unshare` and `ip` of package iproute2), or something got \
         through:\n{said}"
    );
    assert!(said.contains("canaries were never reached"), "{said}");
}

fn ip(args: &[&str]) {
    let done = Command::new("ip").args(args).status().expect("`ip` (package iproute2) sets up the network");
    assert!(done.success(), "ip {args:?}");
}

fn inside() {
    ip(&["link", "set", "lo", "up"]);
    for address in CANARIES.iter().filter(|address| !["127.0.0.1", "127.9.9.9", "::1"].contains(address)) {
        let length = if address.contains(':') { 128 } else { 32 };
        let mut args = vec!["addr", "add"];
        let whole = format!("{address}/{length}");
        args.extend([whole.as_str(), "dev", "lo"]);
        if address.contains(':') {
            args.push("nodad");
        }
        ip(&args);
    }
    let hits = Arc::new(AtomicU32::new(0));
    for address in ["0.0.0.0", "::"] {
        let address: IpAddr = address.parse().unwrap();
        // The second one is for both families where the system does so, and then the first is enough.
        let Ok(listener) = TcpListener::bind((address, PORT)) else { continue };
        let hits = hits.clone();
        std::thread::spawn(move || {
            for _ in listener.incoming() {
                hits.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    std::net::TcpStream::connect(("10.0.0.1", PORT)).expect("a canary listens");
    let mut before = 0;
    while before == 0 {
        before = hits.load(Ordering::SeqCst);
    }

    let folder = TempDir::new().unwrap();
    let mut command = Command::new(SEAWALL);
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.path())
        .env("SEAWALL_ADMIN_KEY", KEY)
        .env("SEAWALL_LOG_LEVEL", "error")
        // What a proxy of the environment could reach is not reached either.
        .env("http_proxy", format!("http://10.0.0.1:{PORT}"))
        .env("ALL_PROXY", format!("http://10.0.0.1:{PORT}"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null());
    let hub = Hub::ready(command.spawn().unwrap()).unwrap();
    let (mut tried, mut refused_at_once) = (0, 0);
    for (n, spelling) in SPELLINGS.iter().enumerate() {
        let name = format!("s{n}");
        let service = json!({"name": name, "address": format!("http://{spelling}:{PORT}"), "policy": {"attempt_timeout": "1s"}});
        let (status, answer) = hub.post("/api/v1/registry/services", &service);
        if status == 422 {
            refused_at_once += 1;
            continue;
        }
        assert_eq!(status, 201, "{spelling}: {answer}");
        tried += 1;
        let (_, tested) = hub.post(&format!("/api/v1/registry/services/{name}:test"), &json!({}));
        assert_eq!(tested["data"]["reached"], false, "{spelling}: {tested}");
        let rule = json!({"name": name, "eventType": format!("e{n}.x"), "service": name});
        assert_eq!(hub.post("/api/v1/registry/rules", &rule).0, 201);
        let event = json!({"id": name, "type": format!("e{n}.x")});
        assert_eq!(hub.post("/api/v1/bridge/events", &event).0, 202);
        let call = json!({"method": "GET", "path": "/"});
        let (status, _) = hub.post(&format!("/api/v1/gateway/services/{name}:call"), &call);
        assert!(status >= 400, "{spelling}: {status}");
    }
    // A token server is a way out too.
    let oauth = json!({
        "name": "oauth", "address": "http://203.0.113.1", "policy": {"attempt_timeout": "1s"},
        "auth": {"type": "oauth2", "tokenUrl": format!("http://169.254.169.254:{PORT}/token"), "clientId": "a", "secret": "secret"},
    });
    assert_eq!(hub.post("/api/v1/registry/services", &oauth).0, 201);
    hub.post("/api/v1/registry/services/oauth:test", &json!({}));
    crate::harness::within(Duration::from_secs(30), "all are given up", || {
        let dead = hub.all("/api/v1/bridge/deadLetters", "deadLetters", 100);
        dead.len() + refused_at_once >= SPELLINGS.len() - 4
    });
    assert!(tried > 15, "{tried}");
    assert_eq!(hits.load(Ordering::SeqCst), before, "somebody got through");
    drop(hub);
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{tried} spellings were tried, {refused_at_once} refused at once: canaries were never reached"
    )
    .unwrap();
}
