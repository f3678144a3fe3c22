//! Tokens that have had their day.

use serde_json::json;

use super::{SERVICES, Scene, event};
use crate::harness::until;
use crate::peer::{Peer, PeerBehavior};

/// HUB-5, HUB-8. Trap "each wire attempt is recorded": a delivery whose token is refused is one send, and that is one attempt with
/// its evidence; the next attempt has a token of its own. The circuit does not count it.
#[test]
fn hub_5_a_refused_token_is_one_send_per_attempt() {
    let scene = Scene::new(
        &json!({"attempt_timeout": "2s", "breaker": {"consecutive_failures": 1, "cooldown": "1h"}}),
        &json!({"base": "1s", "cap": "1s"}),
    );
    let tokens = Peer::start();
    tokens.set_body(r#"{"access_token":"t0ken-1","token_type":"Bearer","expires_in":3600}"#);
    let url = format!("{}/token", tokens.address);
    let auth = json!({"auth": {"type": "oauth2", "tokenUrl": url, "clientId": "hub", "secret": "a-secret-of-its-own"}});
    scene.hub.must("PATCH", &format!("{SERVICES}/billing"), &auth);
    let first = scene.hub.send(&event("A")).remove(0);
    scene.hub.wait_for(&first, "delivered");

    scene.peer.forget();
    tokens.set_body(r#"{"access_token":"t0ken-2","token_type":"Bearer","expires_in":3600}"#);
    scene.peer.behave(PeerBehavior::Respond(401));
    let second = scene.hub.send(&event("B")).remove(0);
    until("it was refused", || scene.peer.count() == 1);
    scene.peer.behave(PeerBehavior::Respond(200));
    let delivery = scene.hub.wait_for(&second, "delivered");
    let got = scene.peer.requests();
    let sent: Vec<_> =
        got.iter().map(|got| (got.header("seawall-try"), got.header("authorization"))).collect();
    assert_eq!(sent, [(Some("1"), Some("Bearer t0ken-1")), (Some("2"), Some("Bearer t0ken-2"))]);
    assert_eq!(
        (&delivery["failures"], &delivery["attempts"][0]["status"]),
        (&json!(1), &json!(401)),
        "{delivery}"
    );
    assert_eq!(scene.hub.circuit("billing")["opened"], 0);
}
