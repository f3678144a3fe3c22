//! Alerts, from what goes wrong to what people get, against the real binary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod channels;
mod errors;
mod incidents;
mod mail;
mod rules;
mod shipped;

use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tempfile::TempDir;

use crate::harness::{Hub, SEAWALL, until};
use crate::peer::{Peer, ReceivedRequest};

const ALERTS: &str = "/api/v1/ops/alerts";
const ALERT_RULES: &str = "/api/v1/ops/alertRules";
const CHANNELS: &str = "/api/v1/ops/alertChannels";
const PUBLIC: &str = "https://hub.example";
/// The key of the webhook in base 64.
const SIGNED_WITH: &str = "YS1rZXktb2YtdGhlLXRlc3RzLW9mLWFsZXJ0cw==";

/// A hub, a peer of it, and somebody who is told.
struct Scene {
    folder: TempDir,
    hub: Hub,
    peer: Peer,
    duty: Peer,
}

fn start(folder: &Path) -> Hub {
    let mut command: Command = Hub::command(SEAWALL.as_ref(), folder);
    Hub::ready(command.env("SEAWALL_PUBLIC_URL", PUBLIC).spawn().unwrap()).unwrap()
}

impl Scene {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let scene = Scene { hub: start(folder.path()), folder, peer: Peer::start(), duty: Peer::start() };
        scene.service("billing");
        let rule = json!({"kind": "circuitOpen", "for": "0s", "resolveAfter": "0s"});
        scene.hub.must("PUT", &format!("{ALERT_RULES}/circuit-open"), &rule);
        // Most of what tests do to a hub is an error; `errors.rs` is about those.
        scene.hub.must("PATCH", &format!("{ALERT_RULES}/errors"), &json!({"enabled": false}));
        scene
    }

    /// A service of the peer whose circuit opens at the first failure and soon looks again; events of the same name go there.
    fn service(&self, name: &str) {
        let policy =
            json!({"attempt_timeout": "2s", "breaker": {"consecutive_failures": 1, "cooldown": "100ms"}});
        let service = json!({"name": name, "address": self.peer.address, "policy": policy});
        self.hub.must("POST", "/api/v1/registry/services", &service);
        let schedule = json!({"base": "20ms", "cap": "100ms"});
        let rule = json!({"name": name, "eventType": name, "service": name, "delivery": schedule});
        self.hub.must("POST", "/api/v1/registry/rules", &rule);
    }

    /// The one on duty is told by a webhook that is signed.
    fn duty(&self) {
        let url = format!("{}/alerts/s3cret-path", self.duty.address);
        let hook = json!({"type": "webhook", "url": url, "secret": format!("whsec_{SIGNED_WITH}")});
        self.hub.must("PUT", &format!("{CHANNELS}/duty"), &hook);
    }

    fn send(&self, kind: &str, id: &str) -> Value {
        self.hub.send(&json!({"id": id, "type": kind, "data": {}})).remove(0)
    }

    /// Killed, and started again.
    fn restart(&mut self) {
        let _ = self.hub.process.kill();
        let _ = self.hub.process.wait();
        self.hub = start(self.folder.path());
    }

    fn alerts(&self, query: &str) -> Vec<Value> {
        self.hub.get(&format!("{ALERTS}{query}"))["alerts"].as_array().unwrap().clone()
    }

    /// The only incident of a service, when it is there and in this state, and every channel has told it.
    fn told(&self, service: &str, state: &str) -> Value {
        let mut found = Value::Null;
        until(&format!("{service} is {state} and told"), || {
            let all = self.alerts(&format!("?service={service}"));
            assert!(all.len() <= 1, "{all:?}");
            found = all.into_iter().next().unwrap_or_default();
            let notices = found["notifications"].as_array().cloned().unwrap_or_default();
            found["state"] == state
                && !notices.is_empty()
                && notices.iter().all(|notice| notice["state"] == "sent")
        });
        found
    }
}

/// What a message is about, and of whom: `opened billing`.
fn about(got: &ReceivedRequest) -> String {
    let message = got.json();
    let turn = message["type"].as_str().unwrap().strip_prefix("alert.").unwrap().to_owned();
    format!("{turn} {}", message["incident"]["service"].as_str().unwrap_or("-"))
}

/// As Standard Webhooks says, with the key of the tests.
fn is_signed(got: &ReceivedRequest) -> bool {
    let part = |name| got.header(name).unwrap_or_default();
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(SIGNED_WITH).unwrap()).unwrap();
    let signed = [part("webhook-id").as_bytes(), b".", part("webhook-timestamp").as_bytes(), b".", &got.body];
    signed.iter().for_each(|part| mac.update(part));
    let signature = part("webhook-signature").strip_prefix("v1,").map(|text| STANDARD.decode(text).unwrap());
    signature.is_some_and(|signature| mac.verify_slice(&signature).is_ok())
}
