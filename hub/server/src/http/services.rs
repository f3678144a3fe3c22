//! Services and their circuits.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall::breaker::State as GuardState;
use seawall::fault::Class;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::render::{Body, Request};
use seawall_hub_core::service::{Pending, Standing, problems_of_policy};
use serde_json::{Map, Value, json};

use super::access::Caller;
use super::deliveries::shown_wait;
use super::fields::Fields;
use super::query::Query;
use super::reply::{expected, missing, parse, problem, refused, success, versioned, wrong_fields};
use super::{Caught, split_verb};
use crate::credentials::Credentials;
use crate::hub::Hub;

const KNOWN: &str = "name, type, address, auth, headers, policy, paused";

/// What is shown of a service and can't be written; `inHand` is what older versions have shown.
pub(super) const SHOWN_ONLY: [&str; 9] = [
    "changedAt",
    "circuit",
    "warnings",
    "waiting",
    "inFlight",
    "waitsFor",
    "waitsUntil",
    "waitsBecause",
    "inHand",
];

pub(super) async fn put(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    keep(&hub, &caller, None, expected(&headers)?, parse(&body)?).await
}

pub(super) async fn replace(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    keep(&hub, &caller, Some(&name), expected(&headers)?, parse(&body)?).await
}

/// What is not named stays as it is.
pub(super) async fn change(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    let (said, change) = (expected(&headers)?, parse(&body)?);
    loop {
        let Some(service) = find(&hub, &caller, &name) else { return Ok(missing("service")) };
        let (seen, changed) = (
            said.unwrap_or(service.version),
            patched(written(&service), change.clone(), &["headers", "policy"]),
        );
        let answer = keep(&hub, &caller, Some(&name), Some(seen), changed).await?;
        // Whoever does not say which version they have seen means the newest, also if it came this moment.
        if said.is_some() || answer.status() != StatusCode::PRECONDITION_FAILED {
            return Ok(answer);
        }
    }
}

/// A change over what is there: field by field, and within these fields field by field too, however deep. Null takes away.
pub(super) fn patched(before: Value, change: Value, deep: &[&str]) -> Value {
    fn over(before: &mut Value, change: Value) {
        match (before, change) {
            (Value::Object(before), Value::Object(change)) => {
                for (name, value) in change {
                    if value.is_null() {
                        before.remove(&name);
                    } else {
                        over(before.entry(name).or_insert(Value::Null), value);
                    }
                }
            }
            (before, change) => *before = change,
        }
    }
    let (Value::Object(mut all), Value::Object(change)) = (before, change.clone()) else { return change };
    for (name, value) in change {
        let there = all.entry(name.clone()).or_insert(Value::Null);
        if deep.contains(&&*name) && there.is_object() && value.is_object() {
            over(there, value);
        } else {
            *there = value;
        }
    }
    Value::Object(all)
}

/// One object over another, field by field.
pub(super) fn merged(before: Value, over: Value) -> Value {
    match (before, over) {
        (Value::Object(mut before), Value::Object(over)) => {
            before.extend(over);
            Value::Object(before)
        }
        (_, over) => over,
    }
}

async fn keep(hub: &Hub, caller: &Caller, named: Option<&str>, expected: Option<u64>, body: Value) -> Caught {
    let mut fields = Fields::new(body);
    let name = fields.name(named);
    if fields.text("type").is_some_and(|kind| kind != "http") {
        fields.wrong("type", "there is only `http` so far");
    }
    let address = fields.needed("address");
    check_address(&address, &mut fields);
    let service_headers = fields.pairs("headers");
    check_headers(&service_headers, &mut fields);
    let policy = fields.any("policy").map_or_else(|| DEFAULT_POLICY.to_owned(), |policy| policy.to_string());
    problems_of_policy(&policy).into_iter().for_each(|(field, reason)| fields.wrong(&field, reason));
    let paused = fields.switch("paused", false);
    let _sealing = hub.keyring().sealing().await;
    let before = name.as_ref().filter(|name| caller.sees(name)).and_then(|name| hub.service(name));
    // What is shown can be written back: what nobody can write is passed over, and what is shown in place of a secret means
    // the secret that is there.
    let said_version = fields.number("version", 0, u64::MAX);
    for shown in SHOWN_ONLY {
        fields.any(shown);
    }
    let shown_auth = before.as_ref().and_then(|service| shown_auth(hub, service));
    let (names_auth, auth) = (fields.has("auth"), fields.any("auth"));
    let names_auth = names_auth && (auth.is_none() || auth != shown_auth);
    let credentials = auth.filter(|_| names_auth).and_then(|auth| Credentials::read(auth, &mut fields));
    let moves = before.as_ref().is_some_and(|before| origin(&before.address) != origin(&address));
    if moves && !names_auth && before.as_ref().is_some_and(|before| before.auth.is_some()) {
        let reason = "it is another host than before, and the secret would go there: say `auth` again, or null for none";
        fields.wrong("auth", reason);
    }
    let problems = fields.end(KNOWN);
    let Some(name) = name.filter(|_| problems.is_empty()) else { return Ok(wrong_fields(&problems)) };
    if !caller.sees(&name) {
        return Ok(missing("service"));
    }
    let auth = match credentials {
        Some(credentials) => match hub.keyring().seal(&credentials.to_bytes(), name.as_str()) {
            Some(sealed) => Some(sealed),
            None => {
                let word = "the secret could not be sealed, so it was not kept";
                return Ok(problem(StatusCode::INTERNAL_SERVER_ERROR, "seal", word, true));
            }
        },
        // A secret can't be read back, so whoever changes something else does not have to know it; null takes it away.
        None if names_auth => None,
        None => before.and_then(|service| service.auth),
    };
    let (version, changed) = (0, Millis(0));
    let service = Service { name, version, address, headers: service_headers, auth, policy, paused, changed };
    Ok(match hub.put_service(service, expected.or(said_version)).await {
        Ok(kept) => {
            hub.check_egress(&kept.name, &kept.address).await;
            let status = if kept.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
            versioned(status, kept.version, &shown(hub, &kept).await)
        }
        Err(why) => refused(why, "service"),
    })
}

/// What a service gets that says nothing about its policy.
const DEFAULT_POLICY: &str = r#"{"attempt_timeout":"3s","retry":{"max_attempts":3},"breaker":{"consecutive_failures":5,"cooldown":"30s"},"bulkhead":{"max_calls":20}}"#;

fn check_address(address: &str, fields: &mut Fields) {
    if address.is_empty() {
        return;
    }
    if !address.starts_with("http://") && !address.starts_with("https://") {
        fields.wrong("address", "it begins with `http://` or `https://`");
    } else if let Err(error) = seawall_http::Request::get(address) {
        fields.wrong("address", error.to_string());
    } else if address.contains(['?', '#']) {
        fields.wrong("address", "it ends before the query; a rule's path may have one");
    }
}

fn check_headers(headers: &[(String, String)], fields: &mut Fields) {
    for (name, value) in headers {
        let request =
            seawall_http::Request::get("http://service").and_then(|request| request.header(name, value));
        if let Err(error) = request {
            fields.wrong(&format!("headers.{name}"), error.to_string());
        }
    }
}

/// As somebody would write it, but for what is secret.
fn written(service: &Service) -> Value {
    let headers: Map<String, Value> =
        service.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({
        "name": service.name.as_str(), "type": "http", "address": service.address, "headers": headers,
        "policy": serde_json::from_str::<Value>(&service.policy).unwrap_or_default(), "paused": service.paused,
    })
}

/// The part of an address that says who is there.
fn origin(address: &str) -> &str {
    let path = address.find("://").and_then(|at| address[at + 3..].find('/').map(|slash| at + 3 + slash));
    &address[..path.unwrap_or(address.len())]
}

fn shown_auth(hub: &Hub, service: &Service) -> Option<Value> {
    let sealed = service.auth.as_ref()?;
    let opened = hub.keyring().unseal(sealed, service.name.as_str());
    let credentials = opened.and_then(|bytes| Credentials::from_bytes(&bytes));
    Some(credentials.map_or(json!({"type": "unreadable"}), |credentials| credentials.shown()))
}

async fn shown(hub: &Hub, service: &Service) -> Value {
    shown_with(hub, service, &hub.standing(&service.name).await)
}

fn shown_with(hub: &Hub, service: &Service, standing: &Standing) -> Value {
    let more = json!({
        "version": service.version, "auth": shown_auth(hub, service), "changedAt": service.changed.to_string(),
        "circuit": circuit_word(hub, &service.name), "waiting": standing.waiting, "inFlight": standing.in_flight,
        "warnings": hub.warnings_of(&service.name),
    });
    merged(written(service), merged(more, shown_wait(standing.wait, hub.now())))
}

pub(super) fn circuit_word(hub: &Hub, name: &Slug) -> Option<&'static str> {
    Some(state_word(hub.guard(name)?.breaker()?.state()))
}

/// A state of a circuit, in the same word everywhere.
pub(super) fn state_word(state: GuardState) -> &'static str {
    match state {
        GuardState::Closed | GuardState::Ramping => "closed",
        GuardState::Open => "open",
        GuardState::HalfOpen => "halfOpen",
        GuardState::ForcedOpen => "forcedOpen",
        GuardState::ForcedClosed | GuardState::Disabled => "forcedClosed",
        // The library may get more states; the hub shows one that it does not know as `state_of` does.
        _ => "closed",
    }
}

/// A service that the caller may see.
pub(super) fn find(hub: &Hub, caller: &Caller, name: &str) -> Option<Service> {
    let name = Slug::new(name).ok().filter(|name| caller.sees(name))?;
    hub.service(&name)
}

pub(super) async fn list(State(hub): State<Arc<Hub>>, Extension(caller): Extension<Caller>) -> Response {
    let standings: HashMap<Slug, Standing> =
        hub.standings().await.into_iter().map(|standing| (standing.service.clone(), standing)).collect();
    let mut all = Vec::new();
    for service in hub.services().iter().filter(|service| caller.sees(&service.name)) {
        all.push(match standings.get(&service.name) {
            Some(standing) => shown_with(&hub, service, standing),
            None => shown(&hub, service).await,
        });
    }
    success(StatusCode::OK, &Value::Array(all))
}

pub(super) async fn get(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Response {
    match find(&hub, &caller, &name) {
        Some(service) => versioned(StatusCode::OK, service.version, &shown(&hub, &service).await),
        None => missing("service"),
    }
}

pub(super) fn pending(query: &mut Query) -> Pending {
    let words = [("refuse", Pending::Refuse), ("deadLetter", Pending::DeadLetter)];
    query.word("pending", &words).unwrap_or_default()
}

pub(super) async fn delete(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Caught {
    let mut query = Query::new(query.as_deref());
    let pending = pending(&mut query);
    query.end("pending")?;
    let Some(Service { name, .. }) = find(&hub, &caller, &name) else { return Ok(missing("service")) };
    Ok(match hub.delete_service(&name, expected(&headers)?, pending).await {
        Ok(()) => success(StatusCode::OK, &json!({"name": name.as_str(), "deleted": true})),
        Err(why) => refused(why, "service"),
    })
}

/// `POST …/services/{name}:test`, `:pause`, `:resume`.
pub(super) async fn act(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name_verb): Path<String>,
    body: Bytes,
) -> Caught {
    let Some((name, verb)) = split_verb(&name_verb) else { return Ok(super::nothing_here()) };
    let Some(Service { name, .. }) = find(&hub, &caller, name) else { return Ok(missing("service")) };
    let paused = match verb {
        "test" => return test(&hub, &caller, &name, &body).await,
        "pause" => true,
        "resume" => false,
        _ => return Ok(super::no_verb(verb, "test, pause, resume")),
    };
    let _sealing = hub.keyring().sealing().await;
    Ok(match hub.pause_service(&name, paused).await {
        Ok(service) => versioned(StatusCode::OK, service.version, &shown(&hub, &service).await),
        Err(why) => refused(why, "service"),
    })
}

/// A class of faults, as metrics have it too.
fn class_word(class: Class) -> &'static str {
    match class {
        Class::Business => "business",
        Class::Io => "io",
        Class::Timeout => "timeout",
        Class::Protocol => "protocol",
        // The library may get more classes.
        _ => "system",
    }
}

/// One request, through the service's guard: what somebody wants to know before they rely on it. What it answered and why it did
/// not is for administrators: it tells of the network around the hub, and of what lies behind the service.
async fn test(hub: &Hub, caller: &Caller, name: &Slug, body: &Bytes) -> Caught {
    let mut fields = Fields::new(if body.is_empty() { json!({}) } else { parse(body)? });
    let method = fields.text("method").unwrap_or_else(|| "GET".into());
    let path = fields.text("path").unwrap_or_else(|| "/".into());
    if !path.starts_with('/') {
        fields.wrong("path", "it begins with a slash, below the address of the service");
    }
    let headers = fields.pairs("headers");
    let content = fields.any("body");
    let problems = fields.end("method, path, headers, body");
    if !problems.is_empty() {
        return Ok(wrong_fields(&problems));
    }
    let content = content.map_or(Body::Empty, |content| Body::Own(content.to_string().into()));
    let began = hub.now();
    let sent = hub.test_service(name, &Request { method, path, headers, body: content }).await;
    let took = hub.now().since(began).as_millis();
    let circuit = circuit_word(hub, name);
    Ok(match sent {
        Err(why) => refused(why, "service"),
        Ok(Ok(answer)) => {
            let mut data = json!({
                "reached": true, "httpStatus": answer.status, "good": answer.fault.is_none(), "latencyMs": took,
                "fault": answer.fault.map(|fault| class_word(fault.class())), "circuit": circuit,
            });
            if caller.is_admin() {
                data["body"] = json!(String::from_utf8_lossy(&answer.body));
            }
            success(StatusCode::OK, &data)
        }
        Ok(Err(error)) => {
            let class = error.last().map_or_else(|| error.last_fault().class(), |last| last.fault.class());
            let mut data = json!({
                "reached": false, "fault": class_word(class), "decidedBy": error.decided_by().to_string(),
                "latencyMs": took, "circuit": circuit,
            });
            if caller.is_admin() {
                let why = error.last().map_or_else(|| error.to_string(), |last| last.error.clone());
                data["error"] = json!(why);
            }
            success(StatusCode::OK, &data)
        }
    })
}
