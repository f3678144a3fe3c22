//! Services and their circuits.

use std::collections::HashMap;

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall::breaker::State as GuardState;
use seawall::fault::Class;
use seawall_api::{
    self as wire, Auth, DeleteQuery, Deleted, Exposed, Headers, Policy, Service, ServiceSpec, ServiceType,
    TestRequest, TestResult, WriteOnly,
};
use seawall_hub_core::domain;
use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::render::{RenderedRequest, RequestBody};
use seawall_hub_core::service::{
    ChangeKey, DEFAULT_POLICY, PendingPolicy, ServiceBacklog, problems_of_policy,
};
use serde_json::{Value, json};

use crate::credentials;
use crate::http::access::Caller;
use crate::http::bridge::deliveries::wait_fields;
use crate::http::context::RequestContext;
use crate::http::input::{Input, retried};
use crate::http::once::{change_key, refused_or};
use crate::http::query::QueryInput;
use crate::http::reply::{expected, missing, parse, problem, refused, success, versioned};
use crate::http::{HandlerResult, split_verb};
use crate::hub::Server;

pub(in crate::http) async fn put(cx: RequestContext, headers: HeaderMap, body: Bytes) -> HandlerResult {
    let once = change_key(&headers, &cx.caller, "service", &body)?;
    keep(&cx, expected(&headers)?, Input::create(&body)?, once).await
}

pub(in crate::http) async fn replace(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    keep(&cx, expected(&headers)?, Input::put(&body, &name)?, None).await
}

/// Changes some fields; those that are omitted stay.
pub(in crate::http) async fn change(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    let (stated, change) = (expected(&headers)?, parse(&body)?);
    let (cx, name, change) = (&cx, &*name, &change);
    retried(stated, || async move {
        let Some(service) = find(&cx.hub, &cx.caller, name) else { return Ok(missing("service")) };
        let input = Input::patch(&spec(&cx.hub, &service), change.clone(), name);
        keep(cx, stated.or(Some(service.version)), input, None).await
    })
    .await
}

async fn keep(
    cx: &RequestContext,
    expected: Option<u64>,
    mut input: Input<ServiceSpec, Service>,
    once: Option<ChangeKey>,
) -> HandlerResult {
    let _sealing = cx.hub.keyring().sealing().await;
    let name = input.get::<String>("name").and_then(|name| Slug::new(&name).ok());
    let before = name.filter(|name| cx.caller.sees(name)).and_then(|name| cx.hub.registry.service(&name));
    check_headers(&mut input);
    if let Some(policy) = input.get::<Policy>("policy") {
        input.also(problems_of_policy(&text_of(&policy)));
    }
    let auth = new_auth(&cx.hub, before.as_ref(), &mut input);
    let version = input.version();
    let spec = input.finish()?;
    let name = Slug::new(spec.name.as_str()).map_err(|_| missing("service"))?;
    if !cx.caller.sees(&name) {
        return Ok(missing("service"));
    }
    let auth = match auth {
        // A secret can't be read back, so whoever changes something else does not have to know it.
        NewAuth::Keep => before.and_then(|service| service.auth),
        NewAuth::Remove => None,
        NewAuth::Set(auth) => {
            let bytes = serde_json::to_vec(&auth).unwrap_or_default();
            let Some(sealed) = cx.hub.keyring().seal(&bytes, name.as_str()) else {
                let word = "the secret could not be encrypted and was not stored";
                return Ok(problem(StatusCode::INTERNAL_SERVER_ERROR, "seal", word, true));
            };
            Some(sealed)
        }
    };
    Ok(
        match cx
            .hub
            .registry
            .put_service_once(cx, to_domain(spec, &name, auth), expected.or(version), once)
            .await
        {
            Ok(kept) => {
                cx.hub.check_egress(&kept.name, &kept.address).await;
                let status = if kept.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
                versioned(status, kept.version, &shown(&cx.hub, &kept).await)
            }
            Err(why) => match cx.hub.registry.service(&name) {
                Some(service) => {
                    let data = shown(&cx.hub, &service).await;
                    refused_or(why, "service", |status, _| Some(versioned(status, service.version, &data)))
                }
                None => refused_or(why, "service", |_, _| None),
            },
        },
    )
}

/// The service that a specification describes.
fn to_domain(spec: ServiceSpec, name: &Slug, auth: Option<SealedSecret>) -> domain::service::Service {
    let ServiceSpec { name: _, r#type: _, address, auth: _, headers, policy, paused } = spec;
    domain::service::Service {
        name: name.clone(),
        version: 0,
        address: address.into_string(),
        headers: headers.into_iter().collect(),
        auth,
        policy: policy.as_ref().map_or_else(|| DEFAULT_POLICY.to_owned(), text_of),
        paused,
        changed: Millis(0),
    }
}

/// The specification of a service, with placeholders for its secrets.
fn spec(hub: &Server, service: &domain::service::Service) -> ServiceSpec {
    ServiceSpec {
        name: service.name.as_str().into(),
        r#type: ServiceType::Http,
        address: service.address.clone().into(),
        auth: shown_auth(hub, service),
        headers: service.headers.iter().cloned().collect(),
        policy: serde_json::from_str(&service.policy).ok(),
        paused: service.paused,
    }
}

fn view(hub: &Server, service: &domain::service::Service, backlog: &ServiceBacklog) -> Service {
    Service {
        spec: spec(hub, service),
        version: service.version,
        changed_at: service.changed.to_string().into(),
        circuit: circuit_word(hub, &service.name).map(Into::into),
        warnings: hub.warnings_of(&service.name),
        waiting: backlog.waiting,
        in_flight: backlog.in_flight as u64,
        wait: wait_fields(backlog.wait, hub.now()),
    }
}

fn text_of(Policy(policy): &Policy) -> String {
    Value::from(policy.clone()).to_string()
}

/// What becomes of the credentials of a service.
enum NewAuth {
    Keep,
    Remove,
    Set(Auth<Exposed>),
}

/// What a request says about the credentials. What is shown in place of a secret means the secret that is there.
fn new_auth(
    hub: &Server,
    before: Option<&domain::service::Service>,
    input: &mut Input<ServiceSpec, Service>,
) -> NewAuth {
    let shown = before.and_then(|service| shown_auth(hub, service)).map(|auth| json!(auth));
    if !input.has("auth") || (shown.is_some() && input.raw("auth") == shown.as_ref()) {
        let address = input.get::<String>("address");
        let moves = before.zip(address).is_some_and(|(before, now)| origin(&before.address) != origin(&now));
        if moves && shown.is_some() {
            let reason = "required with a new host, which would receive the secret: set `auth` again, or null for none";
            input.wrong("auth", reason);
        }
        return NewAuth::Keep;
    }
    let Some(written) = input.get::<Auth<WriteOnly>>("auth") else { return NewAuth::Remove };
    let Some(auth) = credentials::exposed(written) else {
        input.wrong("auth.secret", credentials::PLACEHOLDER);
        return NewAuth::Keep;
    };
    // What the client would refuse later is refused now.
    if let Err(reason) = credentials::client_auth(&auth) {
        input.wrong("auth", reason);
    }
    NewAuth::Set(auth)
}

fn check_headers(input: &mut Input<ServiceSpec, Service>) {
    for (name, value) in input.get::<Headers>("headers").unwrap_or_default() {
        let request = seawall_http::Request::get("http://service");
        if let Err(error) = request.and_then(|request| request.header(&name, &value)) {
            input.wrong(&format!("headers.{name}"), error.to_string());
        }
    }
}

/// The part of an address that says who is there.
fn origin(address: &str) -> &str {
    let path = address.find("://").and_then(|at| address[at + 3..].find('/').map(|slash| at + 3 + slash));
    &address[..path.unwrap_or(address.len())]
}

fn shown_auth(hub: &Server, service: &domain::service::Service) -> Option<Auth<WriteOnly>> {
    let sealed = service.auth.as_ref()?;
    let opened = hub.keyring().unseal(sealed, service.name.as_str());
    let auth = opened.and_then(|bytes| credentials::from_bytes(&bytes));
    Some(auth.map_or(Auth::Unreadable, Auth::hidden))
}

async fn shown(hub: &Server, service: &domain::service::Service) -> Service {
    view(hub, service, &hub.ops.backlog(&service.name).await)
}

pub(in crate::http) fn circuit_word(hub: &Server, name: &Slug) -> Option<&'static str> {
    Some(state_word(hub.gateway.guard(name)?.breaker()?.state()))
}

/// A state of a circuit, in the same word everywhere.
pub(in crate::http) fn state_word(state: GuardState) -> &'static str {
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
pub(in crate::http) fn find(hub: &Server, caller: &Caller, name: &str) -> Option<domain::service::Service> {
    let name = Slug::new(name).ok().filter(|name| caller.sees(name))?;
    hub.registry.service(&name)
}

pub(in crate::http) async fn list(cx: RequestContext) -> Response {
    let standings: HashMap<Slug, ServiceBacklog> = cx
        .hub
        .ops
        .backlogs()
        .await
        .into_iter()
        .map(|standing| (standing.service.clone(), standing))
        .collect();
    let mut all = Vec::new();
    for service in cx.hub.registry.services().iter().filter(|service| cx.caller.sees(&service.name)) {
        all.push(match standings.get(&service.name) {
            Some(standing) => view(&cx.hub, service, standing),
            None => shown(&cx.hub, service).await,
        });
    }
    success(StatusCode::OK, &all)
}

pub(in crate::http) async fn get(cx: RequestContext, Path(name): Path<String>) -> Response {
    match find(&cx.hub, &cx.caller, &name) {
        Some(service) => versioned(StatusCode::OK, service.version, &shown(&cx.hub, &service).await),
        None => missing("service"),
    }
}

pub(in crate::http) fn pending(query: &DeleteQuery) -> PendingPolicy {
    match query.pending {
        wire::PendingPolicy::DeadLetter => PendingPolicy::DeadLetter,
        _ => PendingPolicy::Refuse,
    }
}

pub(in crate::http) async fn delete(
    cx: RequestContext,
    Path(name): Path<String>,
    QueryInput(query): QueryInput<DeleteQuery>,
    headers: HeaderMap,
) -> HandlerResult {
    let Some(domain::service::Service { name, .. }) = find(&cx.hub, &cx.caller, &name) else {
        return Ok(missing("service"));
    };
    Ok(match cx.hub.registry.delete_service(&cx, &name, expected(&headers)?, pending(&query)).await {
        Ok(()) => success(StatusCode::OK, &Deleted { name: name.as_str().into(), deleted: true }),
        Err(why) => refused(why, "service"),
    })
}

/// `POST …/services/{name}:test`, `:pause`, `:resume`.
pub(in crate::http) async fn act(
    cx: RequestContext,
    Path(name_verb): Path<String>,
    body: Bytes,
) -> HandlerResult {
    let Some((name, verb)) = split_verb(&name_verb) else { return Ok(crate::http::nothing_here()) };
    let Some(domain::service::Service { name, .. }) = find(&cx.hub, &cx.caller, name) else {
        return Ok(missing("service"));
    };
    let paused = match verb {
        "test" => return test(&cx, &name, &body).await,
        "pause" => true,
        "resume" => false,
        _ => return Ok(crate::http::no_verb(verb, "test, pause, resume")),
    };
    let _sealing = cx.hub.keyring().sealing().await;
    Ok(match cx.hub.registry.pause_service(&cx, &name, paused).await {
        Ok(service) => versioned(StatusCode::OK, service.version, &shown(&cx.hub, &service).await),
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
async fn test(cx: &RequestContext, name: &Slug, body: &Bytes) -> HandlerResult {
    let TestRequest { method, path, headers, body } = Input::<TestRequest>::optional(body)?.finish()?;
    let (path, headers) = (path.into_string(), headers.into_iter().collect());
    let body = body.map_or(RequestBody::Empty, |body| RequestBody::Own(body.to_string().into()));
    let began = cx.hub.now();
    let request = RenderedRequest { operation: method, target: path, attributes: headers, body };
    let sent = cx.hub.gateway.test_service(name, &request).await;
    let latency_ms = u64::try_from(cx.hub.now().since(began).as_millis()).unwrap_or(u64::MAX);
    let circuit = circuit_word(&cx.hub, name).map(Into::into);
    let is_admin = cx.caller.is_admin();
    Ok(match sent {
        Err(why) => refused(why, "service"),
        Ok(Ok(answer)) => {
            let result = TestResult {
                reached: true,
                latency_ms,
                circuit,
                http_status: answer.code,
                good: Some(answer.fault.is_none()),
                fault: answer.fault.map(|fault| class_word(fault.class()).into()),
                body: is_admin.then(|| String::from_utf8_lossy(&answer.body).into_owned()),
                error: None,
                decided_by: None,
            };
            success(StatusCode::OK, &result)
        }
        Ok(Err(error)) => {
            let class = error.last().map_or_else(|| error.last_fault().class(), |last| last.fault.class());
            let why = || error.last().map_or_else(|| error.to_string(), |last| last.error.clone());
            let result = TestResult {
                reached: false,
                latency_ms,
                circuit,
                http_status: None,
                good: None,
                fault: Some(class_word(class).into()),
                body: None,
                error: is_admin.then(why),
                decided_by: Some(error.decided_by().to_string()),
            };
            success(StatusCode::OK, &result)
        }
    })
}
