//! The API, route by route, against the real binary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod answers;
mod attempts;
mod auth;
mod circuits;
mod cloudevents;
mod costly;
mod cut;
mod desk;
mod lists;
mod once;
mod rules;
mod services;
mod wire;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::Hub;
use crate::peer::Peer;

const SERVICES: &str = "/api/v1/registry/services";
const RULES: &str = "/api/v1/registry/rules";

/// A hub and a peer that is registered as `billing`; a rule `all` sends everything there.
struct Scene {
    folder: TempDir,
    peer: Peer,
    hub: Hub,
}

fn billing(peer: &Peer) -> Value {
    json!({
        "name": "billing", "address": peer.address,
        "policy": {"attempt_timeout": "2s", "breaker": {"consecutive_failures": 1_000}, "bulkhead": {}},
    })
}

fn everything() -> Value {
    json!({"name": "all", "eventType": "*", "service": "billing", "delivery": {"base": "20ms", "cap": "100ms"}})
}

fn event(id: &str) -> Value {
    json!({"id": id, "type": "order.created", "data": {"id": id}})
}

impl Scene {
    fn new() -> Self {
        let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
        let hub = Hub::start(folder.path());
        hub.must("POST", SERVICES, &billing(&peer));
        hub.must("POST", RULES, &everything());
        Scene { folder, peer, hub }
    }

    /// Killed, and started again.
    fn restart(&mut self) {
        let _ = self.hub.process.kill();
        self.hub = Hub::start(self.folder.path());
    }
}
