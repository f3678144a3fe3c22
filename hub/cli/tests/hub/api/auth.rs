//! How the hub shows who it is: on the wire, and nowhere else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::hmac;
use serde_json::{Value, json};

use super::{RULES, SERVICES, Scene, billing, event};
use crate::harness::until;
use crate::peer::{Peer, ReceivedRequest};

const SECRET: &str = "c4n4ry-s3cr3t-that-is-long-enough";

/// What a delivery to a service with this auth looks like. The secret is shown by no answer of the API.
fn delivered_with(auth: &Value) -> ReceivedRequest {
    let Scene { hub, peer, folder } = Scene::new();
    let mut service = billing(&peer);
    service["auth"] = auth.clone();
    let answers = [
        hub.must("PUT", &format!("{SERVICES}/billing"), &service),
        hub.get(SERVICES),
        hub.must("PATCH", &format!("{SERVICES}/billing"), &json!({"headers": {"x-a": "b"}})),
    ];
    for answer in &answers {
        assert!(!answer.to_string().contains(SECRET), "{answer}");
    }
    assert_eq!(answers[2]["auth"]["type"], auth["type"], "a change that does not name it keeps it");
    assert_eq!(answers[2]["auth"]["secret"], "…");
    let id = hub.send(&event("A")).remove(0);
    let delivery = hub.wait_for(&id, "delivered");
    assert!(!delivery.to_string().contains(SECRET));
    drop(hub);
    for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(!bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()), "{:?}", file.path());
    }
    peer.only()
}

fn signature(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// HUB-1, PRM-9: bearer, basic and header.
#[test]
fn hub_1_plain_credentials_are_on_the_wire_and_never_shown() {
    let got = delivered_with(&json!({"type": "bearer", "secret": SECRET}));
    assert_eq!(got.header("authorization"), Some(&*format!("Bearer {SECRET}")));
    let got = delivered_with(&json!({"type": "basic", "username": "shop", "secret": SECRET}));
    let basic = format!("Basic {}", BASE64.encode(format!("shop:{SECRET}")));
    assert_eq!(got.header("authorization"), Some(&*basic));
    let got = delivered_with(&json!({"type": "header", "name": "X-Api-Key", "secret": SECRET}));
    assert_eq!(got.header("x-api-key"), Some(SECRET));
}

/// HUB-1, HUB-8, PRM-9: signatures of the body fit the bytes that are sent.
#[test]
fn hub_1_signatures_fit_what_is_sent() {
    let hex_auth = json!({"type": "hmac", "header": "x-signature", "prefix": "sha256=", "secret": SECRET});
    let got = delivered_with(&hex_auth);
    let right = format!("sha256={}", hex(&signature(SECRET.as_bytes(), &got.body)));
    assert_eq!(got.header("x-signature"), Some(&*right));
    let base64_auth =
        json!({"type": "hmac", "header": "x-signature", "encoding": "base64", "secret": SECRET});
    let got = delivered_with(&base64_auth);
    let right = BASE64.encode(signature(SECRET.as_bytes(), &got.body));
    assert_eq!(got.header("x-signature"), Some(&*right));

    let (new, old) = (b"a key of thirty-two bytes, or so", b"another key of thirty-two bytes!");
    let secret = |key: &[u8]| format!("whsec_{}", BASE64.encode(key));
    let webhook = json!({"type": "webhook", "secret": secret(new), "formerSecrets": [secret(old)]});
    let got = delivered_with(&webhook);
    let (id, time) = (got.header("webhook-id").unwrap(), got.header("webhook-timestamp").unwrap());
    let signed = [format!("{id}.{time}.").as_bytes(), &got.body].concat();
    let right =
        [&new[..], &old[..]].map(|key| format!("v1,{}", BASE64.encode(signature(key, &signed)))).join(" ");
    assert_eq!(got.header("webhook-signature"), Some(&*right), "while keys are changed, both sign");
}

/// HUB-1, ADP-1: a token is asked for once, used for all, and its password is in the request for it only.
#[test]
fn hub_1_a_token_is_asked_for_and_used() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    let tokens = Peer::start();
    tokens.set_body(r#"{"access_token":"t0ken-1","token_type":"Bearer","expires_in":3600}"#);
    let mut service = billing(&peer);
    let url = format!("{}/token", tokens.address);
    service["auth"] =
        json!({"type": "oauth2", "tokenUrl": url, "clientId": "hub", "secret": SECRET, "scope": "invoices"});
    let shown = hub.must("PUT", &format!("{SERVICES}/billing"), &service);
    assert!(!shown.to_string().contains(SECRET), "{shown}");
    for n in 0..20 {
        hub.send(&event(&format!("A-{n}")));
    }
    until("all are there", || peer.arrived().len() == 20);
    assert!(peer.requests().iter().all(|got| got.header("authorization") == Some("Bearer t0ken-1")));
    let asked = tokens.only();
    assert!(
        asked.request_line().starts_with("POST /token")
            && asked.text().contains("grant_type=client_credentials"),
        "{asked:?}"
    );
    assert!(asked.text().contains("scope=invoices"), "{asked:?}");
}

/// HUB-1, PRM-9: credentials that make no sense are refused field by field, and null takes them away.
#[test]
fn hub_1_credentials_are_checked_and_taken_away_by_null() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    let fields = |auth: Value| {
        let mut service = billing(&peer);
        service["auth"] = auth;
        let reply = hub.with("PUT", &format!("{SERVICES}/billing"), &[], &service);
        assert_eq!(reply.status, 422, "{}", reply.body);
        assert!(!reply.body.to_string().contains(SECRET), "{}", reply.body);
        let errors = reply.body["errors"].as_array().unwrap().clone();
        errors.iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(fields(json!({"type": "magic", "secret": SECRET})), ["auth.type"]);
    assert_eq!(fields(json!({"type": "basic", "secret": SECRET})), ["auth.username"]);
    assert_eq!(fields(json!({"type": "bearer", "secret": SECRET, "user": "x"})), ["auth.user"]);
    assert_eq!(fields(json!({"type": "header", "name": "x y", "secret": SECRET})), ["auth"]);
    assert_eq!(
        fields(json!({"type": "oauth2", "tokenUrl": "ftp://x", "clientId": "a", "secret": SECRET})),
        ["auth"]
    );
    let with = json!({"auth": {"type": "bearer", "secret": SECRET}});
    hub.must("PATCH", &format!("{SERVICES}/billing"), &with);
    let without = hub.must("PATCH", &format!("{SERVICES}/billing"), &json!({"auth": null}));
    assert_eq!(without["auth"], Value::Null);
    hub.send(&event("A"));
    assert_eq!(peer.only().header("authorization"), None);
}

/// PRM-9: a service that is deleted and comes again has its own credentials, and not those of the one before.
#[test]
fn hub_1_credentials_of_a_deleted_service_are_never_used_again() {
    let Scene { folder: _folder, hub, peer } = Scene::new();
    for (n, secret) in ["the-first-secret", "the-second-secret"].into_iter().enumerate() {
        let mut service = billing(&peer);
        service["auth"] = json!({"type": "bearer", "secret": secret});
        service["name"] = json!("fresh");
        let made = hub.must("POST", SERVICES, &service);
        assert_eq!(made["version"], 1);
        hub.must("PATCH", &format!("{RULES}/all"), &json!({"service": "fresh"}));
        peer.forget();
        let id = hub.send(&event(&format!("A-{n}"))).remove(0);
        hub.wait_for(&id, "delivered");
        assert_eq!(peer.only().header("authorization"), Some(&*format!("Bearer {secret}")));
        hub.must("PATCH", &format!("{RULES}/all"), &json!({"service": "billing"}));
        hub.must("DELETE", &format!("{SERVICES}/fresh"), &Value::Null);
    }
}
