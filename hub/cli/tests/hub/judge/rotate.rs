//! Another key for all secrets, killed at each single call that changes a file.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::alone;
use super::start::killed_at_each_call;
use crate::harness::Hub;
use crate::peer::{Peer, PeerBehavior};

const ROTATE: &str = "/api/v1/ops/secrets:rotate";

fn register(hub: &Hub, peer: &Peer) {
    for number in 0..3 {
        let auth = json!({"type": "bearer", "secret": format!("secret-of-{number}")});
        let service = json!({"name": format!("s{number}"), "address": peer.address, "auth": auth});
        hub.must("POST", "/api/v1/registry/services", &service);
    }
    let verify = json!({"type": "bearer", "secrets": ["the-source-s3cret"]});
    hub.must(
        "POST",
        "/api/v1/registry/sources",
        &json!({"name": "shop", "verify": verify, "eventType": "a.b"}),
    );
}

/// Every secret is what it was: each service is called with its own, and the source knows its sender.
fn all_open(hub: &Hub, peer: &Peer) {
    for number in 0..3 {
        hub.must(
            "POST",
            &format!("/api/v1/registry/services/s{number}:test"),
            &json!({"path": format!("/{number}")}),
        );
        let got = peer.requests();
        let wanted = format!("Bearer secret-of-{number}");
        assert_eq!(got.last().unwrap().header("authorization"), Some(&*wanted));
    }
    let bearer = ("authorization", "Bearer the-source-s3cret");
    assert_eq!(hub.call("POST", "/in/shop", &[bearer], "{}").status, 202);
    let bearer = ("authorization", "Bearer another-s3cret");
    assert_eq!(hub.call("POST", "/in/shop", &[bearer], "{}").status, 401);
}

/// SEC-2. Trap "rotation with kill -9 leaves none undecryptable": killed anywhere in a rotation, the next start opens every
/// secret, has brought the rotation to its end, and can rotate again.
#[test]
fn sec_2_killed_at_each_call_of_a_rotation_every_secret_opens() {
    let _alone = alone();
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    peer.behave(PeerBehavior::Respond(200));
    let data = folder.path().join("data");
    let hub = Hub::start(&data);
    register(&hub, &peer);
    drop(hub);
    let calls = killed_at_each_call(
        &data,
        |hub| hub.try_post(ROTATE, &Value::Null),
        || (),
        |hub, _| {
            all_open(hub, &peer);
            let rotated = hub.must("POST", ROTATE, &Value::Null);
            assert_eq!((&rotated["resealed"], &rotated["unreadable"]), (&json!(4), &json!([])), "{rotated}");
            all_open(hub, &peer);
        },
    );
    assert!(calls > 20, "only {calls} calls were seen");
}

/// SEC-2, SEC-1: under load a rotation costs nobody anything: every delivery has its secret, whoever registers meanwhile is not
/// lost, the old key is gone from the file, and it is known who did it.
#[test]
fn sec_2_a_rotation_under_load_is_noticed_by_nobody() {
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    let hub = Hub::start(folder.path());
    register(&hub, &peer);
    for number in 0..3 {
        let rule = json!({"name": format!("r{number}"), "eventType": "*", "service": format!("s{number}"), "path": format!("/{number}")});
        hub.must("POST", "/api/v1/registry/rules", &rule);
    }
    let first = fs::read_to_string(folder.path().join("secret.key")).unwrap();
    let deliveries = std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            (0..150)
                .flat_map(|number| hub.send(&json!({"id": format!("e{number}"), "type": "a.b"})))
                .collect::<Vec<_>>()
        });
        scope.spawn(|| {
            for number in 0..40 {
                let verb = if number % 2 == 0 { "pause" } else { "resume" };
                hub.must("POST", &format!("/api/v1/registry/services/s0:{verb}"), &json!({}));
                let auth = json!({"type": "bearer", "secret": format!("late-{number}")});
                let service = json!({"name": "late", "address": peer.address, "auth": auth});
                hub.must("POST", "/api/v1/registry/services", &service);
            }
        });
        for _ in 0..10 {
            let rotated = hub.must("POST", ROTATE, &Value::Null);
            assert_eq!(rotated["unreadable"], json!([]), "{rotated}");
        }
        sending.join().unwrap()
    });
    for id in &deliveries {
        hub.wait_for(id, "delivered");
    }
    for got in peer.requests() {
        let number = got.request_line().rsplit('/').next().unwrap();
        assert_eq!(
            got.header("authorization"),
            Some(&*format!("Bearer secret-of-{number}")),
            "{}",
            got.request_line()
        );
    }
    let keys = fs::read_to_string(folder.path().join("secret.key")).unwrap();
    assert!(keys.lines().count() == 2 && keys.lines().nth(1).unwrap().starts_with("11 "), "one key is left");
    assert_ne!(keys.lines().nth(1), first.lines().nth(1));
    let audit = hub.get("/api/v1/ops/audit?page_size=200");
    let rotations =
        audit["entries"].as_array().unwrap().iter().filter(|entry| entry["action"] == "secrets.rotate");
    assert!(
        rotations.clone().count() == 10 && rotations.clone().all(|entry| entry["who"] == "admin"),
        "{audit}"
    );
    drop(hub);
    all_open_again(folder.path(), &peer);
}

/// In another process, which has the new key only.
fn all_open_again(folder: &std::path::Path, peer: &Peer) {
    let hub = Hub::start(folder);
    all_open(&hub, peer);
    hub.must("POST", "/api/v1/registry/services/late:test", &json!({}));
    assert_eq!(peer.requests().last().unwrap().header("authorization"), Some("Bearer late-39"));
}
