//! Who is charged with what, seen from outside: the peer, the delivery, the person, or nobody.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::disallowed_methods, reason = "it looks at another process, and waits for it")]

mod causes;
mod pause;
mod tokens;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::Hub;
use crate::peer::Peer;

const SERVICES: &str = "/api/v1/registry/services";
const RULES: &str = "/api/v1/registry/rules";

/// A hub and a peer that is registered as `billing` with this policy; a rule `all` sends everything there.
struct Scene {
    _folder: TempDir,
    peer: Peer,
    hub: Hub,
}

impl Scene {
    fn new(policy: &Value, delivery: &Value) -> Self {
        let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
        let hub = Hub::start(folder.path());
        let billing = json!({"name": "billing", "address": peer.address, "policy": policy});
        hub.must("POST", SERVICES, &billing);
        let all = json!({"name": "all", "eventType": "*", "service": "billing", "delivery": delivery});
        hub.must("POST", RULES, &all);
        Scene { _folder: folder, peer, hub }
    }
}

fn event(id: &str) -> Value {
    json!({"id": id, "type": "order.created", "data": {"id": id}})
}
