//! Secrets: planted wherever one can be put, and looked for wherever one could come out.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Hub, KEY, SEAWALL, until};
use crate::peer::{Peer, PeerBehavior};

const SERVICES: &str = "/api/v1/registry/services";
const RULES: &str = "/api/v1/registry/rules";
const SOURCES: &str = "/api/v1/registry/sources";
const KEYS: &str = "/api/v1/registry/keys";

/// The base 64 of a key of Standard Webhooks.
fn webhook(text: &str) -> String {
    use base64::Engine;
    format!("whsec_{}", base64::engine::general_purpose::STANDARD.encode(text))
}

/// PRM-9. Trap "20 planted canaries are found nowhere": more than twenty secrets, a peer that fails and repeats every header that
/// it got, a log at its most talkative; then every answer of the API, the log, the metrics and every file are looked through.
#[test]
fn prm_9_twenty_planted_secrets_are_found_nowhere() {
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    let log = folder.path().join("log");
    let data = folder.path().join("data");
    let start = || {
        let mut command = Hub::command(SEAWALL.as_ref(), &data);
        let file = fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        command.env("SEAWALL_LOG_LEVEL", "debug").stdout(Stdio::piped()).stderr(file);
        Hub::ready(command.spawn().unwrap()).unwrap()
    };
    let hub = start();
    let canary = |n: u32| format!("canary-{n:02}-0f-a-s3cret");
    let mut planted: Vec<String> = vec![KEY.into()];
    let mut plant = |text: String| {
        planted.push(text.clone());
        text
    };
    let auths = [
        json!({"type": "bearer", "secret": plant(canary(1))}),
        json!({"type": "basic", "username": "hub", "secret": plant(canary(2))}),
        json!({"type": "header", "name": "x-api-key", "secret": plant(canary(3))}),
        json!({"type": "hmac", "header": "x-signature", "secret": plant(canary(4))}),
        json!({"type": "webhook", "secret": plant(webhook("c5")), "formerSecrets": [plant(webhook("canary-6"))]}),
        json!({"type": "oauth2", "tokenUrl": format!("{}/token", peer.address), "clientId": "hub", "secret": plant(canary(7))}),
    ];
    for (n, auth) in auths.iter().enumerate() {
        let (name, address) = (format!("s{n}"), &peer.address);
        let policy = json!({"attempt_timeout": "2s", "breaker": {"consecutive_failures": 1000}});
        hub.must(
            "POST",
            SERVICES,
            &json!({"name": name, "address": address, "auth": auth, "policy": policy}),
        );
        hub.must("POST", RULES, &json!({"name": name, "eventType": "order.*", "service": name, "delivery": {"base": "10ms", "cap": "20ms", "count": "all"}}));
    }
    let schemes = ["bearer", "github", "stripe", "slack", "hmac", "standard-webhooks"];
    for (n, scheme) in (10_u32..).zip(schemes) {
        let secret = if scheme == "standard-webhooks" { webhook(&canary(n)) } else { canary(n) };
        let mut verify = json!({"type": scheme, "secrets": [plant(secret), plant(if scheme == "standard-webhooks" { webhook(&canary(n + 20)) } else { canary(n + 20) })]});
        if scheme == "hmac" {
            verify["header"] = json!("x-sum");
        }
        hub.must("POST", SOURCES, &json!({"name": scheme, "verify": verify, "eventType": "a.b"}));
    }
    for name in ["one", "two"] {
        let made = hub.must("POST", KEYS, &json!({"name": name, "scopes": ["read"]}));
        plant(made["key"].as_str().unwrap().to_owned());
    }
    let rotated = hub.must("POST", &format!("{KEYS}/one:rotate"), &json!({"grace": "1h"}));
    plant(rotated["key"].as_str().unwrap().to_owned());
    assert!(planted.len() >= 20, "{}", planted.len());

    // A peer that repeats what it got, and refuses; wrong keys and signatures; a restart.
    peer.behave(PeerBehavior::Echo(500));
    let ids = hub.send(&json!({"id": "A", "type": "order.created", "data": {}}));
    for id in &ids {
        hub.wait_for(id, "deadLettered");
    }
    hub.call("POST", "/in/bearer", &[("authorization", &format!("Bearer {}x", canary(10)))], "{}");
    hub.call("GET", SERVICES, &[("authorization", &format!("Bearer {KEY}x"))], "");
    for n in 0..auths.len() {
        hub.must("POST", &format!("{SERVICES}/s{n}:test"), &json!({}));
    }
    drop(hub);
    let hub = start();
    let mut said: Vec<(String, String)> = Vec::new();
    for path in [
        SERVICES,
        RULES,
        SOURCES,
        KEYS,
        "/api/v1/ops/audit",
        "/api/v1/bridge/events",
        "/api/v1/bridge/deliveries",
        "/api/v1/bridge/deadLetters",
        "/metrics",
        "/actuator/health",
        "/actuator/metrics",
    ] {
        said.push((path.into(), hub.with("GET", path, &[], &Value::Null).body.to_string()));
    }
    for id in &ids {
        for kind in ["deliveries", "deadLetters"] {
            let path = format!("/api/v1/bridge/{kind}/{}", id.as_str().unwrap());
            said.push((path.clone(), hub.get(&path).to_string()));
        }
    }
    drop(hub);
    until("the log is written", || fs::read_to_string(&log).unwrap().contains("[Hub]"));
    for file in fs::read_dir(&data).unwrap().flatten().map(|file| file.path()).chain([log]) {
        said.push((
            file.display().to_string(),
            String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned(),
        ));
    }
    for secret in &planted {
        for (place, text) in &said {
            assert!(!text.contains(secret.as_str()), "{secret} stands in {place}");
        }
    }
}
