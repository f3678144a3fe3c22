//! What is old goes, as seen from outside.

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use super::register;
use crate::harness::{Hub, KEY, until};
use crate::peer::Peer;

/// HUB-9: without anybody asking for it, what was delivered more than a week ago goes, and is counted; what is younger stays.
#[test]
fn hub_9_what_was_delivered_a_week_ago_goes_by_itself() {
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    let hub = Hub::start(folder.path());
    register(&hub, &peer);
    for id in ["old", "young", "newest"] {
        let ids = hub.send(&json!({"id": id, "type": "a.b"}));
        hub.wait_for(&ids[0], "delivered");
    }
    drop(hub);
    let connection = Connection::open(folder.path().join("seawall.db")).unwrap();
    let days = |id: &str, days: i64| {
        let back = days * 86_400_000;
        let event = "UPDATE events SET accepted = accepted - ?1 WHERE id = ?2";
        let deliveries = "UPDATE deliveries SET touched = touched - ?1 WHERE event = (SELECT number FROM events WHERE id = ?2)";
        for sql in [event, deliveries] {
            connection.execute(sql, rusqlite::params![back, id]).unwrap();
        }
    };
    days("old", 8);
    days("young", 6);
    drop(connection);
    let hub = Hub::start(folder.path());
    let gone =
        |id: &str| hub.with("GET", &format!("/api/v1/bridge/events/{id}"), &[], &json!(null)).status == 404;
    until("what is old is gone", || gone("old"));
    assert!(!gone("young") && !gone("newest"));
    let pruned = hub.ask("GET", "/actuator/metrics/seawall.store.pruned?tag=kind:event", KEY, "").1;
    assert_eq!(pruned["measurements"][0]["value"], 1, "{pruned}");
}
