//! CloudEvents as senders really send them.

use serde_json::json;

use super::Scene;
use crate::harness::KEY;

/// HUB-3: a binary CloudEvent without `Content-Type`, as Python's SDK sends it, has JSON as its data if it reads as JSON.
#[test]
fn hub_3_a_binary_event_without_a_type_is_json_if_it_reads_so() {
    let Scene { hub, peer, folder: _folder } = Scene::new();
    let bearer = format!("Bearer {KEY}");
    let send = |id: &str, body: &str| {
        let headers = [
            ("authorization", bearer.as_str()),
            ("ce-specversion", "1.0"),
            ("ce-id", id),
            ("ce-source", "/shop"),
            ("ce-type", "order.created"),
        ];
        let reply = hub.call("POST", "/api/v1/bridge/events", &headers, body);
        assert_eq!(reply.status, 202, "{}", reply.text);
        hub.get(&format!("/api/v1/bridge/events/{id}"))["event"].clone()
    };
    let event = send("A", r#"{"total": 12}"#);
    assert_eq!((&event["data"], event.get("data_base64")), (&json!({"total": 12}), None), "{event}");
    let event = send("B", "total: 12");
    assert_eq!(event["extensions"]["data_base64"], "dG90YWw6IDEy", "{event}");
    crate::harness::until("both arrive", || peer.count() == 2);
}
