//! Who may do what, over every route that there is.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use hmac::{Hmac, KeyInit, Mac};
use seawall_hub_core::domain::key::Scope;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{EventFilter, PageRequest};
use serde_json::{Value, json};
use sha2::Sha256;
use tempfile::TempDir;
use tower_service::Service;

use super::routes::{Route, routes};
use super::*;

pub(super) const ADMIN: &str = "the-admin-key-of-the-test";

pub(super) struct Api {
    _folder: TempDir,
    pub(super) hub: Arc<Server>,
    pub(super) router: Router,
}

impl Api {
    pub(super) async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let hub = Arc::new(Server::open(folder.path(), &crate::StartOptions::default()).await.unwrap());
        hub.registry.set_admin_key(&hub.own_context(), key_hash(ADMIN)).await.unwrap();
        let mut api = Api { router: api(hub.clone()), hub, _folder: folder };
        for name in ["billing", "mail"] {
            let service = json!({"name": name, "address": "http://127.0.0.1:1", "auth": {"type": "bearer", "secret": "s"}});
            assert_eq!(
                api.ask(Method::POST, "/api/v1/registry/services", Some(ADMIN), &service).await.0,
                201
            );
            let rule = json!({"name": name, "eventType": "order.*", "service": name});
            assert_eq!(api.ask(Method::POST, "/api/v1/registry/rules", Some(ADMIN), &rule).await.0, 201);
        }
        api
    }

    pub(super) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: &Value,
    ) -> (u16, Value) {
        let mut request = Request::builder().method(method).uri(path).header("x-seawall-reason", "a test");
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let response = self.router.call(request.body(body).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    pub(super) async fn key(&mut self, name: &str, more: Value) -> String {
        let mut body = more;
        body["name"] = json!(name);
        let (status, answer) = self.ask(Method::POST, "/api/v1/registry/keys", Some(ADMIN), &body).await;
        assert_eq!(status, 201, "{answer}");
        answer["data"]["key"].as_str().unwrap().to_owned()
    }
}

/// A path with its parameters filled in.
fn filled(path: &str, service: &str) -> String {
    let path = path.replace("{fingerprint}", "grp_000000000000000f");
    path.replace("{name}", service).replace("{id}", "dlv_0000000000000000000000000000000f")
}

/// SEC-1: every route with no key, with a wrong one, and with each scope: what is not allowed is refused before anything else
/// is looked at, and what is allowed is never refused for the key.
#[tokio::test]
async fn sec_1_every_route_refuses_who_may_not() {
    let mut api = Api::new().await;
    let mut keys = Vec::new();
    for scope in Scope::ALL {
        let key = api.key(&format!("only-{}", scope.word()), json!({"scopes": [scope.word()]})).await;
        keys.push((scope, key));
    }
    let refused = |answer: &(u16, Value)| {
        assert_eq!(answer.1["status"], "error");
        (answer.0, answer.1["code"].as_str().unwrap_or_default().to_owned())
    };
    for Route { method, path, scope, .. } in routes() {
        let path = filled(path, "nobody");
        for key in [None, Some("swk_wrong"), Some("")] {
            let answer = api.ask(method.clone(), &path, key, &Value::Null).await;
            assert_eq!(refused(&answer), (401, "unauthorised".into()), "{method} {path}");
        }
        for (has, key) in &keys {
            let (status, answer) = api.ask(method.clone(), &path, Some(key), &json!({})).await;
            let allowed = Some(*has) == scope
                || *has == Scope::Admin
                || (scope == Some(Scope::Read) && *has == Scope::Operate);
            let forbidden = status == 403;
            assert_eq!(!forbidden, allowed, "{method} {path} with {}: {answer}", has.word());
            assert_ne!(status, 401);
        }
    }
}

/// SEC-1. Trap "an id that is not yours answers exactly like an unknown id": a key that is limited to a service does not see
/// that there are others.
#[tokio::test]
async fn sec_1_a_limited_key_sees_its_own_and_nothing_else() {
    let mut api = Api::new().await;
    let key = api.key("limited", json!({"scopes": ["operate"], "services": ["billing"]})).await;
    for Route { method, path, .. } in routes() {
        if !path.contains("/services/{name}") && !path.contains("/rules/{name}") {
            continue;
        }
        let body = if method == Method::PUT {
            json!({"address": "http://127.0.0.1:1", "eventType": "a", "service": "mail"})
        } else {
            json!({"reason": "x", "version": 1})
        };
        let foreign = api.ask(method.clone(), &filled(path, "mail"), Some(&key), &body).await;
        let unknown = api.ask(method.clone(), &filled(path, "nobody"), Some(&key), &body).await;
        let plain =
            |(status, answer): &(u16, Value)| (*status, answer["code"].clone(), answer["message"].clone());
        if path.ends_with(":backtest") {
            continue;
        }
        assert_eq!(plain(&foreign), plain(&unknown), "{method} {path}: {foreign:?}");
    }
    let (_, all) = api.ask(Method::GET, "/api/v1/registry/services", Some(&key), &Value::Null).await;
    assert_eq!(all["data"].as_array().unwrap().len(), 1, "{all}");
    let (_, all) = api.ask(Method::GET, "/api/v1/registry/rules", Some(&key), &Value::Null).await;
    assert_eq!(all["data"][0]["name"], "billing");
    assert_eq!(all["data"].as_array().unwrap().len(), 1);
    assert_eq!(api.ask(Method::GET, "/api/v1/bridge/events", Some(&key), &Value::Null).await.0, 403);
    let (_, untouched) =
        api.ask(Method::GET, "/api/v1/registry/services/mail", Some(ADMIN), &Value::Null).await;
    assert_eq!((&untouched["data"]["version"], &untouched["data"]["paused"]), (&json!(1), &json!(false)));
}

/// SEC-1: events come only from the sources that a key names; a rotated key works beside the new one for as long as was said;
/// a revoked one at once no more; whoever did what is in the audit log, with the reason.
#[tokio::test]
async fn sec_1_keys_are_limited_rotated_and_revoked() {
    let mut api = Api::new().await;
    let event = |id: &str, source: &str| json!({"id": id, "type": "a.b", "source": source});
    let key = api.key("shop", json!({"scopes": ["ingest"], "sources": ["shop"]})).await;
    let events = "/api/v1/bridge/events";
    assert_eq!(api.ask(Method::POST, events, Some(&key), &event("1", "shop")).await.0, 202);
    assert_eq!(api.ask(Method::POST, events, Some(&key), &event("2", "bank")).await.0, 403);
    let batch = json!({"events": [event("3", "shop"), event("4", "bank")]});
    assert_eq!(api.ask(Method::POST, "/api/v1/bridge/events:batchCreate", Some(&key), &batch).await.0, 403);
    assert_eq!(api.ask(Method::GET, "/api/v1/bridge/events/3", Some(ADMIN), &Value::Null).await.0, 404);

    let rotate = "/api/v1/registry/keys/shop:rotate";
    let (_, rotated) = api.ask(Method::POST, rotate, Some(ADMIN), &json!({"grace": "1h"})).await;
    let fresh = rotated["data"]["key"].as_str().unwrap().to_owned();
    assert_eq!(api.ask(Method::POST, events, Some(&key), &event("5", "shop")).await.0, 202, "both");
    assert_eq!(api.ask(Method::POST, events, Some(&fresh), &event("6", "shop")).await.0, 202, "both");
    let (_, rotated) = api.ask(Method::POST, rotate, Some(ADMIN), &json!({"grace": "0s"})).await;
    assert_eq!(api.ask(Method::POST, events, Some(&fresh), &event("7", "shop")).await.0, 401, "at once");
    let newest = rotated["data"]["key"].as_str().unwrap().to_owned();
    assert_eq!(api.ask(Method::DELETE, "/api/v1/registry/keys/shop", Some(ADMIN), &Value::Null).await.0, 200);
    assert_eq!(api.ask(Method::POST, events, Some(&newest), &event("8", "shop")).await.0, 401, "at once");
    let (status, answer) =
        api.ask(Method::DELETE, "/api/v1/registry/keys/admin", Some(ADMIN), &Value::Null).await;
    assert_eq!(status, 409, "nobody locks themselves out: {answer}");

    let (_, all) = api.ask(Method::GET, "/api/v1/registry/keys", Some(ADMIN), &Value::Null).await;
    for secret in [ADMIN, &key, &fresh, &newest] {
        assert!(!all.to_string().contains(secret));
    }
    let (_, audit) = api.ask(Method::GET, "/api/v1/ops/audit", Some(ADMIN), &Value::Null).await;
    let entries: Vec<String> = audit["data"]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            format!("{} {} {} {}", entry["who"], entry["action"], entry["target"], entry["reason"])
                .replace('"', "")
        })
        .collect();
    assert_eq!(entries[0], "admin key.revoke shop a test");
    for expected in [
        "admin key.put shop a test",
        "admin service.create billing a test",
        "admin rule.create mail a test",
        "hub key.put admin null",
    ] {
        assert!(entries.iter().any(|entry| entry == expected), "{expected} is not in {entries:#?}");
    }
}

/// API-1: what is wrong with a key is said field by field.
#[tokio::test]
async fn api_2_a_wrong_key_says_what_is_wrong_with_it() {
    let mut api = Api::new().await;
    let path = "/api/v1/registry/keys";
    for (body, field) in [
        (json!({"name": "a"}), "scopes"),
        (json!({"name": "a", "scopes": ["raed"]}), "scopes"),
        (json!({"name": "A", "scopes": ["read"]}), "name"),
        (json!({"name": "a", "scopes": ["read"], "services": []}), "services"),
        (json!({"name": "a", "scopes": ["read"], "expiresIn": "soon"}), "expiresIn"),
        (json!({"name": "a", "scopes": ["read"], "scope": 1}), "scope"),
        (json!({"name": "a", "scopes": ["admin"], "services": ["billing"]}), "scopes"),
    ] {
        let (status, answer) = api.ask(Method::POST, path, Some(ADMIN), &body).await;
        assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!(field)), "{answer}");
    }
    let (status, _) =
        api.ask(Method::POST, path, Some(ADMIN), &json!({"name": "admin", "scopes": ["read"]})).await;
    assert_eq!(StatusCode::CONFLICT.as_u16(), status);
}

/// HUB-1, PRM-9: what is shown can be written back, and what is shown in place of a secret never becomes one; a secret does not
/// follow a service to another host by itself; a patch reaches into the policy; a version in the body is looked at.
#[tokio::test]
async fn hub_1_what_is_shown_can_be_written_back() {
    let mut api = Api::new().await;
    let path = "/api/v1/registry/services/billing";
    let (_, shown) = api.ask(Method::GET, path, Some(ADMIN), &Value::Null).await;
    let (status, again) = api.ask(Method::PUT, path, Some(ADMIN), &shown["data"]).await;
    assert_eq!((status, &again["data"]["version"]), (200, &json!(2)), "{again}");
    assert_eq!(again["data"]["auth"], shown["data"]["auth"]);
    let (status, _) = api.ask(Method::PUT, path, Some(ADMIN), &shown["data"]).await;
    assert_eq!(status, 412, "the version that it shows is an old one now");

    let wrong = |answer: &(u16, Value)| (answer.0, answer.1["errors"][0]["field"].clone());
    let hidden = json!({"auth": {"type": "basic", "username": "a", "secret": "…"}});
    assert_eq!(wrong(&api.ask(Method::PATCH, path, Some(ADMIN), &hidden).await), (422, json!("auth.secret")));
    let moved = json!({"address": "http://elsewhere.example"});
    assert_eq!(wrong(&api.ask(Method::PATCH, path, Some(ADMIN), &moved).await), (422, json!("auth")));
    let moved = json!({"address": "http://elsewhere.example", "auth": null});
    assert_eq!(api.ask(Method::PATCH, path, Some(ADMIN), &moved).await.0, 200);
    let below = json!({"address": "http://elsewhere.example/below", "policy": {"breaker": {"cooldown": "5s"}, "bulkhead": null}});
    let (_, patched) = api.ask(Method::PATCH, path, Some(ADMIN), &below).await;
    let policy = &patched["data"]["policy"];
    assert_eq!(
        (&policy["breaker"]["cooldown"], &policy["attempt_timeout"]),
        (&json!("5s"), &json!("3s")),
        "{policy}"
    );
    assert_eq!((&policy["breaker"]["consecutive_failures"], &policy["bulkhead"]), (&json!(5), &Value::Null));

    let source = json!({"name": "gh", "verify": {"type": "github", "secrets": ["…"]}, "eventType": "a.b"});
    let sources = "/api/v1/registry/sources";
    assert_eq!(
        wrong(&api.ask(Method::POST, sources, Some(ADMIN), &source).await),
        (422, json!("verify.secrets"))
    );
    let (_, rule) = api.ask(Method::GET, "/api/v1/registry/rules/mail", Some(ADMIN), &Value::Null).await;
    assert_eq!(api.ask(Method::PUT, "/api/v1/registry/rules/mail", Some(ADMIN), &rule["data"]).await.0, 200);
}

/// HUB-3: an id is unique for its source; a repetition is answered like the first; a time is one.
#[tokio::test]
async fn hub_3_ids_are_unique_for_a_source() {
    let mut api = Api::new().await;
    let event =
        |source: &str, n: u32| json!({"id": "1", "type": "user.created", "source": source, "data": {"n": n}});
    let path = "/api/v1/bridge/events";
    let (_, first) = api.ask(Method::POST, path, Some(ADMIN), &event("shop", 1)).await;
    let (status, other) = api.ask(Method::POST, path, Some(ADMIN), &event("web", 2)).await;
    assert_eq!((status, &other["data"]["deduplicated"]), (202, &json!(false)), "{other}");
    let (_, again) = api.ask(Method::POST, path, Some(ADMIN), &event("shop", 1)).await;
    assert_eq!(
        (&again["data"]["deduplicated"], &again["data"]["unmatched"]),
        (&json!(true), &first["data"]["unmatched"])
    );
    assert_eq!(api.ask(Method::POST, path, Some(ADMIN), &event("shop", 3)).await.0, 422);
    let late = json!({"id": "2", "type": "a.b", "time": "yesterday"});
    assert_eq!(api.ask(Method::POST, path, Some(ADMIN), &late).await.1["errors"][0]["field"], "time");
}

/// PRM-1: whoever asks and goes away before the answer stops nothing halfway. An event that was written by then used to have
/// its deliveries in nobody's hand until the next start, and whoever sent it again was told that it is there.
#[tokio::test]
async fn prm_1_who_goes_away_before_the_answer_leaves_nothing_half_done() {
    let mut api = Api::new().await;
    let event = json!({"id": "1", "type": "order.created", "data": {}});
    let request = Request::builder()
        .method(Method::POST)
        .uri("/api/v1/bridge/events")
        .header("authorization", format!("Bearer {ADMIN}"))
        .body(Body::from(event.to_string()))
        .unwrap();
    {
        let mut call = pin!(api.router.call(request));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let billing = Slug::new("billing").unwrap();
    let begun = async {
        while api.hub.ops.claimed(&billing) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), begun).await.is_ok(), "it is in nobody's hand");
    let again = api.ask(Method::POST, "/api/v1/bridge/events", Some(ADMIN), &event).await;
    assert_eq!((again.0, &again.1["data"]["deduplicated"]), (202, &json!(true)));
}

/// SEC-1. Trap "scope: another principal's key never collides or replays": an `Idempotency-Key` is the sender's own. Others may
/// use the same one, and neither are refused for it nor told what came of somebody else's.
#[tokio::test]
async fn sec_1_an_idempotency_key_belongs_to_who_sends_it() {
    let mut api = Api::new().await;
    let (shop, bank) = (
        api.key("shop", json!({"scopes": ["ingest"]})).await,
        api.key("bank", json!({"scopes": ["ingest"]})).await,
    );
    let mut send = async |key: &str, total: u32| {
        let request = Request::builder()
            .method(Method::POST)
            .uri("/api/v1/bridge/events")
            .header("authorization", format!("Bearer {key}"))
            .header("idempotency-key", "1")
            .body(Body::from(json!({"type": "order.created", "data": {"total": total}}).to_string()))
            .unwrap();
        let response = api.router.call(request).await.unwrap();
        let status = response.status().as_u16();
        let answer: Value =
            serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await.unwrap()).unwrap();
        (status, answer["data"]["deduplicated"].clone(), answer["data"]["id"].clone())
    };
    let first = send(&shop, 1).await;
    assert_eq!((first.0, &first.1), (202, &json!(false)));
    let other = send(&bank, 1).await;
    assert_eq!((other.0, &other.1), (202, &json!(false)), "another sender's event is another event");
    assert_ne!(other.2, first.2);
    assert_eq!(send(&shop, 1).await, (202, json!(true), first.2), "its own is known");
    assert_eq!(send(&bank, 2).await.0, 422, "and is for one content");
}

/// SEC-1: a key that is limited to a service neither learns of another one by a rule that names it, nor sends to it by a replay,
/// nor reads how a rule was when it was for another one.
#[tokio::test]
async fn sec_1_a_limited_key_reaches_no_other_service_by_a_rule() {
    let mut api = Api::new().await;
    let rules = "/api/v1/registry/rules";
    let written = |service: &str, body: Value| json!({"name": "moves", "eventType": "user.*", "service": service, "body": body});
    let unrenderable = written("billing", json!({"n": "{{ data.n }}"}));
    assert_eq!(api.ask(Method::POST, rules, Some(ADMIN), &unrenderable).await.0, 201);
    let event = json!({"id": "1", "type": "user.created", "data": {}});
    let (_, sent) = api.ask(Method::POST, "/api/v1/bridge/events", Some(ADMIN), &event).await;
    let dead = sent["data"]["deliveries"][0].as_str().unwrap().to_owned();
    assert_eq!(api.ask(Method::POST, rules, Some(ADMIN), &written("mail", json!({}))).await.0, 200);

    let key = api.key("billing-only", json!({"scopes": ["operate"], "services": ["billing"]})).await;
    let replay = format!("/api/v1/bridge/deadLetters/{dead}:replay");
    let answer = api.ask(Method::POST, &replay, Some(&key), &json!({})).await;
    assert_eq!(answer.0, 404, "its rule sends to another service today: {}", answer.1);
    assert_eq!(api.ask(Method::POST, &replay, Some(ADMIN), &json!({})).await.0, 202);

    let draft = |service: &str| json!({"rule": written(service, json!({})), "event": event});
    let evaluate = "/api/v1/registry/rules:evaluate";
    let (_, own) = api.ask(Method::POST, evaluate, Some(&key), &draft("billing")).await;
    assert_eq!(own["data"]["request"]["url"], "http://127.0.0.1:1/");
    let (foreign, unknown) = (
        api.ask(Method::POST, evaluate, Some(&key), &draft("mail")).await,
        api.ask(Method::POST, evaluate, Some(&key), &draft("nobody")).await,
    );
    assert_eq!((foreign.0, &foreign.1["data"]), (unknown.0, &unknown.1["data"]));

    let mail = api.key("mail-only", json!({"scopes": ["read"], "services": ["mail"]})).await;
    let (_, versions) =
        api.ask(Method::GET, "/api/v1/registry/rules/moves/versions", Some(&mail), &Value::Null).await;
    let services: Vec<&Value> =
        versions["data"].as_array().unwrap().iter().map(|version| &version["service"]).collect();
    assert_eq!(services, ["mail"]);
}

/// SEC-1: a key that is limited to some sources sees these and their events; others answer like one that is not there.
#[tokio::test]
async fn sec_1_a_key_that_is_limited_to_sources_sees_no_other() {
    let mut api = Api::new().await;
    for name in ["shop", "bank"] {
        let source = json!({"name": name, "verify": {"type": "bearer", "secrets": ["0123456789abcdef"]}, "eventType": "a"});
        let made = api.ask(Method::POST, "/api/v1/registry/sources", Some(ADMIN), &source).await;
        assert_eq!(made.0, 201, "{}", made.1);
        let event = json!({"id": name, "type": "order.created", "source": name});
        assert_eq!(api.ask(Method::POST, "/api/v1/bridge/events", Some(ADMIN), &event).await.0, 202);
    }
    let key = api.key("shop-only", json!({"scopes": ["read"], "sources": ["shop"]})).await;
    let mut ask = async |path: &str| {
        let (status, mut answer) = api.ask(Method::GET, path, Some(&key), &Value::Null).await;
        answer["traceId"].take();
        (status, answer)
    };
    for of in ["/api/v1/registry/sources", "/api/v1/bridge/events"] {
        assert_eq!(ask(&format!("{of}/shop")).await.0, 200);
        assert_eq!(ask(&format!("{of}/bank")).await, ask(&format!("{of}/nobody")).await);
        let all = ask(of).await.1["data"].to_string();
        assert!(all.contains("shop") && !all.contains("bank"), "{all}");
    }
}

/// SEC-1. Trap "an id that is not yours answers exactly like an unknown id": a key that is limited to some sources sees
/// deliveries and dead letters of their events and no others, by id, in lists, by a replay, by evaluating and by a backtest.
#[tokio::test]
async fn sec_1_a_key_that_is_limited_to_sources_sees_no_delivery_of_another() {
    let mut api = Api::new().await;
    // No request can be made of its events, so that they are dead letters at once.
    let rule =
        json!({"name": "dies", "eventType": "user.*", "service": "billing", "body": {"n": "{{ data.n }}"}});
    assert_eq!(api.ask(Method::POST, "/api/v1/registry/rules", Some(ADMIN), &rule).await.0, 201);
    let mut ids = Vec::new();
    // Both call it the same, and the one that is not seen is the newer one.
    for source in ["shop", "bank"] {
        let event = json!({"id": "same", "type": "user.created", "source": source, "data": {"of": source}});
        let (_, sent) = api.ask(Method::POST, "/api/v1/bridge/events", Some(ADMIN), &event).await;
        ids.push(sent["data"]["deliveries"][0].as_str().unwrap().to_owned());
    }
    let key = api.key("shop-only", json!({"scopes": ["operate"], "sources": ["shop"]})).await;
    let (own, foreign, unknown) = (&*ids[0], &*ids[1], "dlv_0000000000000000000000000000000f");
    let mut ask = async |method: &Method, path: &str, body: &Value| {
        let (status, mut answer) = api.ask(method.clone(), path, Some(&key), body).await;
        answer["traceId"].take();
        (status, answer)
    };
    for Route { method, path, scope, .. } in routes() {
        if !path.contains("/deliveries/{id}") && !path.contains("/deadLetters/{id}")
            || scope == Some(Scope::Admin)
        {
            continue;
        }
        let body = match (&method, path.rsplit_once(':')) {
            (&Method::PATCH, _) => json!({"note": "mine"}),
            (_, Some((_, "edit"))) => json!({"data": {}}),
            _ => Value::Null,
        };
        let not_theirs = ask(&method, &path.replace("{id}", foreign), &body).await;
        assert_eq!(not_theirs, ask(&method, &path.replace("{id}", unknown), &body).await, "{method} {path}");
        assert_eq!(not_theirs.0, 404, "{method} {path}");
        if method == Method::GET {
            assert_eq!(ask(&method, &path.replace("{id}", own), &Value::Null).await.0, 200, "{path}");
        }
    }
    for list in ["deliveries", "deadLetters", "deliveries?event=same", "deadLetters?event=same"] {
        let (status, all) = ask(&Method::GET, &format!("/api/v1/bridge/{list}"), &Value::Null).await;
        let all = all["data"].to_string();
        assert!(status == 200 && all.contains(own) && !all.contains(foreign), "{list}: {all}");
    }
    let event = ask(&Method::GET, "/api/v1/bridge/events/same", &Value::Null).await;
    assert_eq!(event.1["data"]["event"]["source"], "shop", "the newer one is somebody else's");
    let none = ask(&Method::GET, "/api/v1/bridge/events?source=bank", &Value::Null).await;
    assert_eq!(none.1["data"]["events"], json!([]));
    let body = json!({"ruleName": "dies", "eventId": "same"});
    assert_eq!(
        ask(&Method::POST, "/api/v1/registry/rules:evaluate", &body).await.1["data"]["outcome"],
        "unrenderable"
    );
    let (_, test) = ask(&Method::POST, "/api/v1/registry/rules/dies:backtest", &json!({})).await;
    assert_eq!(test["data"]["events"], 1, "{test}");
    let (_, all) = api.ask(Method::GET, "/api/v1/bridge/deadLetters", Some(ADMIN), &Value::Null).await;
    assert_eq!(all["data"]["deadLetters"].as_array().unwrap().len(), 2, "nothing was discarded: {all}");
}

/// API-1: what is wrong with a rule, a service, a source or a key is said all at once: what can't be read, what can't be compiled,
/// and what is not there.
#[tokio::test]
async fn api_1_all_that_is_wrong_is_said_at_once() {
    let mut api = Api::new().await;
    let rule = json!({
        "name": "_gateway", "eventType": "a..b", "service": "nobody", "filter": "data.(", "path": "/{{ data.", "x": 1,
        "headers": {"bad name": "v"}, "body": {"a": "{{ ) }}"}, "delivery": {"base": "9d"},
    });
    let wrong_rule = [
        "body.a",
        "delivery.base",
        "eventType",
        "filter",
        "headers.bad name",
        "name",
        "path",
        "service",
        "x",
    ];
    let service = json!({"name": "A B", "address": "ftp://x", "policy": {"retry": {"max_attempts": 0}, "nope": 1}, "y": 1});
    let source = json!({"name": "-", "eventType": "{{ data.", "eventId": "{{ ("});
    let verified = json!({"eventType": "{{ data.", "verify": {"type": "magic", "z": 1}});
    for (path, body, fields) in [
        ("rules", &rule, &wrong_rule[..]),
        ("services", &service, &["address", "name", "policy.nope", "policy.retry.max_attempts", "y"]),
        ("sources", &source, &["eventId", "eventType", "name", "verify"]),
        ("sources", &verified, &["eventType", "name", "verify.type", "verify.z"]),
        ("keys", &json!({"name": "", "services": []}), &["name", "scopes", "services"]),
    ] {
        let (status, answer) =
            api.ask(Method::POST, &format!("/api/v1/registry/{path}"), Some(ADMIN), body).await;
        let mut said: Vec<&str> =
            answer["errors"].as_array().unwrap().iter().map(|one| one["field"].as_str().unwrap()).collect();
        said.sort_unstable();
        assert_eq!((status, &*said), (422, fields), "{answer:#}");
    }
    let draft = json!({"rule": rule, "event": {"id": "1", "type": "a"}});
    let (_, answer) = api.ask(Method::POST, "/api/v1/registry/rules:evaluate", Some(ADMIN), &draft).await;
    let said = answer["errors"].to_string();
    assert!(said.contains("\"rule.filter\"") && said.contains("\"rule.eventType\""), "{answer:#}");
}

/// API-1, SEC-1: the head of what can be read is for whoever may read it, and has no body.
#[tokio::test]
async fn api_1_a_head_is_for_who_may_read() {
    let mut api = Api::new().await;
    let read = api.key("reader", json!({"scopes": ["read"]})).await;
    let ingest = api.key("sender", json!({"scopes": ["ingest"]})).await;
    for Route { path, scope, .. } in routes().into_iter().filter(|route| route.method == Method::GET) {
        let mut heads = Vec::new();
        for (method, key) in [(Method::GET, &read), (Method::HEAD, &read), (Method::HEAD, &ingest)] {
            let request = Request::builder().method(method).uri(filled(path, "billing"));
            let request = request.header("authorization", format!("Bearer {key}")).body(Body::empty());
            let response = api.router.call(request.unwrap()).await.unwrap();
            let (parts, body) = response.into_parts();
            heads.push((parts.status.as_u16(), parts.headers, to_bytes(body, usize::MAX).await.unwrap()));
        }
        assert_eq!((heads[0].0, &heads[0].1), (heads[1].0, &heads[1].1), "{path}");
        assert_eq!(heads[1].0 == 403, scope == Some(Scope::Admin), "{path}");
        assert_eq!(heads[2].0, 403, "{path}");
        assert!(heads[1].0 == 403 || heads[1].2.is_empty(), "{path}: {:?}", heads[1].2);
    }
}

/// PRM-1. Trap "accepted and gone": an event whose type was empty was in no list of mistakes, so a batch with it was answered with
/// 202 and did not hold it.
#[tokio::test]
async fn prm_1_an_event_that_can_not_be_kept_is_never_accepted() {
    let mut api = Api::new().await;
    let (good, bad) = (json!({"id": "1", "type": "a"}), json!({"id": "2", "type": ""}));
    let (status, answer) = api.ask(Method::POST, "/api/v1/bridge/events", Some(ADMIN), &bad).await;
    assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!("type")), "{answer}");
    let batch = json!({"events": [good, bad]});
    let (status, answer) =
        api.ask(Method::POST, "/api/v1/bridge/events:batchCreate", Some(ADMIN), &batch).await;
    assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!("events[1].type")), "{answer}");
    assert_eq!(api.ask(Method::GET, "/api/v1/bridge/events/1", Some(ADMIN), &Value::Null).await.0, 404);
    for (path, body, field) in [
        ("keys", json!({"name": "", "scopes": ["read"]}), "name"),
        ("services", json!({"name": "a", "address": ""}), "address"),
        ("rules", json!({"name": "a", "eventType": "", "service": "billing"}), "eventType"),
    ] {
        let (status, answer) =
            api.ask(Method::POST, &format!("/api/v1/registry/{path}"), Some(ADMIN), &body).await;
        assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!(field)), "{answer}");
    }
}

/// API-1: a path with a verb has its own methods, and says which.
#[tokio::test]
async fn api_1_a_method_that_is_not_there_says_which_ones_are() {
    let mut api = Api::new().await;
    for (method, path, others) in [
        (Method::PUT, "services/billing:pause", "POST"),
        (Method::GET, "services/billing:pause", "POST"),
        (Method::OPTIONS, "services/billing:pause", "POST"),
        (Method::POST, "services/billing", "GET, PUT, PATCH, DELETE, HEAD"),
        (Method::OPTIONS, "services/billing", "GET, PUT, PATCH, DELETE, HEAD"),
        (Method::DELETE, "services", "GET, POST, HEAD"),
    ] {
        let request = Request::builder().method(method.clone()).uri(format!("/api/v1/registry/{path}"));
        let request = request.header("authorization", format!("Bearer {ADMIN}")).body(Body::empty());
        let response = api.router.call(request.unwrap()).await.unwrap();
        assert_eq!(response.status().as_u16(), 405, "{method} {path}");
        assert_eq!(response.headers()["allow"], others, "{method} {path}");
    }
    let unknown = api.ask(Method::POST, "/api/v1/registry/services/billing:nope", Some(ADMIN), &Value::Null);
    assert_eq!(unknown.await.1["code"], "noSuchAction");
}

/// PRM-1, HUB-3: of several that bring the same signed webhook at once, whoever is told that it was accepted can find it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_1_a_webhook_is_acknowledged_when_it_is_kept() {
    let mut api = Api::new().await;
    let (secret, body) = ("a-secret-of-some-length", r#"{"n":7}"#);
    let source =
        json!({"name": "shop", "verify": {"type": "stripe", "secrets": [secret]}, "eventType": "order.paid"});
    assert_eq!(api.ask(Method::POST, "/api/v1/registry/sources", Some(ADMIN), &source).await.0, 201);
    let stamp = api.hub.now().0 / 1_000;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{stamp}.{body}").as_bytes());
    let proof = format!("t={stamp},v1={}", hex(&mac.finalize().into_bytes()));
    let send = async || {
        let request =
            Request::builder().method(Method::POST).uri("/in/shop").header("stripe-signature", &proof);
        let response = api.router.clone().call(request.body(Body::from(body)).unwrap()).await.unwrap();
        let kept =
            api.hub.bridge.events(EventFilter::default(), PageRequest { from: None, size: 9 }).await.unwrap();
        (response.status().as_u16(), kept.items.len())
    };
    let at_once = tokio::join!(send(), send(), send(), send());
    for (status, kept) in [at_once.0, at_once.1, at_once.2, at_once.3] {
        assert!(matches!((status, kept), (202, 1) | (503, _)), "{status}, and {kept} are kept");
    }
    assert_eq!(send().await, (202, 1));
}

/// UI-2: the overview says what needs a person, the worst first, with what waits for it; and to a key that is for one service
/// nothing of others.
#[tokio::test]
async fn ui_2_the_overview_names_what_needs_a_person() {
    let mut api = Api::new().await;
    let event = json!({"id": "1", "type": "order.created"});
    api.ask(Method::POST, "/api/v1/registry/services/mail:pause", Some(ADMIN), &Value::Null).await;
    let force = "/api/v1/registry/services/billing/circuit:forceOpen";
    api.ask(Method::POST, force, Some(ADMIN), &json!({"reason": "their migration"})).await;
    assert_eq!(api.ask(Method::POST, "/api/v1/bridge/events", Some(ADMIN), &event).await.0, 202);
    let limited = api.key("limited", json!({"scopes": ["read"], "services": ["mail"]})).await;
    let overview = "/api/v1/ops/overview";
    let (_, whole) = api.ask(Method::GET, overview, Some(ADMIN), &Value::Null).await;
    let whole = &whole["data"];
    let matters: Vec<(&str, &str, u64)> = whole["attention"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["kind"].as_str().unwrap(),
                one["service"].as_str().unwrap(),
                one["waiting"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(matters, [("circuit", "billing", 1), ("paused", "mail", 1)]);
    let first = &whole["attention"][0];
    assert!(
        first["message"].as_str().unwrap().contains("their migration") && first["since"].is_string(),
        "{first}"
    );
    assert_eq!(whole["services"]["byCircuit"]["forcedOpen"], 1);
    assert_eq!((&whole["services"]["paused"], &whole["services"]["total"]), (&json!(1), &json!(2)));
    let (_, part) = api.ask(Method::GET, overview, Some(&limited), &Value::Null).await;
    assert!(!part.to_string().contains("billing") && part["data"]["events"].is_null(), "{part}");
    assert_eq!(part["data"]["attention"].as_array().unwrap().len(), 1);
    let history = |query: &str| format!("/api/v1/ops/history{query}");
    assert_eq!(api.ask(Method::GET, &history(""), Some(&limited), &Value::Null).await.0, 403);
    assert_eq!(api.ask(Method::GET, &history("?service=billing"), Some(&limited), &Value::Null).await.0, 404);
    assert_eq!(api.ask(Method::GET, &history("?service=mail"), Some(&limited), &Value::Null).await.0, 200);
}

/// UI-2: a page of services is as large as it is asked to be, goes on where the one before ended, and can be searched.
#[tokio::test]
async fn ui_2_services_come_in_pages() {
    let mut api = Api::new().await;
    for number in 0..5 {
        let service = json!({"name": format!("peer-{number}"), "address": "http://127.0.0.1:1"});
        api.ask(Method::POST, "/api/v1/registry/services", Some(ADMIN), &service).await;
    }
    let (mut token, mut seen) = (String::new(), Vec::new());
    for _ in 0..10 {
        let path = format!("/api/v1/ops/services?search=PEER&page_size=2&page_token={token}");
        let (status, page) = api.ask(Method::GET, &path, Some(ADMIN), &Value::Null).await;
        assert_eq!((status, &page["data"]["total"]), (200, &json!(5)));
        let names = page["data"]["services"].as_array().unwrap().iter();
        seen.extend(names.map(|one| one["name"].as_str().unwrap().to_owned()));
        token = page["data"]["nextPageToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, ["peer-0", "peer-1", "peer-2", "peer-3", "peer-4"]);
    let force = "/api/v1/registry/services/peer-3/circuit:forceOpen";
    api.ask(Method::POST, force, Some(ADMIN), &json!({"reason": "a test"})).await;
    let path = "/api/v1/ops/services?sort=trouble&page_size=1";
    let (_, page) = api.ask(Method::GET, path, Some(ADMIN), &Value::Null).await;
    assert_eq!(page["data"]["services"][0]["name"], "peer-3");
}

/// UI-2: what has not ended can be asked for in one word, whatever it waits for.
#[tokio::test]
async fn ui_2_deliveries_that_have_not_ended_are_found_together() {
    let mut api = Api::new().await;
    api.ask(Method::POST, "/api/v1/registry/services/mail:pause", Some(ADMIN), &Value::Null).await;
    let event = json!({"id": "1", "type": "order.created"});
    api.ask(Method::POST, "/api/v1/bridge/events", Some(ADMIN), &event).await;
    let (_, page) =
        api.ask(Method::GET, "/api/v1/bridge/deliveries?state=open", Some(ADMIN), &Value::Null).await;
    let states: std::collections::BTreeSet<&str> = page["data"]["deliveries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["state"].as_str().unwrap())
        .collect();
    assert_eq!(states.into_iter().collect::<Vec<_>>(), ["held", "pending"], "{page}");
}

/// API-2: the length that the response to an action states is that of its whole envelope; the server refuses to send another.
#[tokio::test]
async fn api_2_the_response_to_an_action_is_as_long_as_it_says() {
    let mut api = Api::new().await;
    for (verb, expected) in [("pause", 200), ("explode", 404)] {
        let request = Request::post(format!("/api/v1/registry/services/billing:{verb}"));
        let request = request.header("authorization", format!("Bearer {ADMIN}")).body(Body::empty()).unwrap();
        let response = api.router.call(request).await.unwrap();
        assert_eq!(response.status(), expected);
        let stated = response.headers().get("content-length").cloned();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert!(!bytes.is_empty());
        assert!(stated.is_none_or(|stated| stated == bytes.len().to_string().as_str()), "{verb}");
    }
}
