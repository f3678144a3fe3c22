//! Services and their circuits.

use std::collections::HashMap;

use axum::body::Bytes;
use seawall::breaker::State as GuardState;
use seawall::fault::Class;
use seawall_api::{
    Auth, Exposed, Headers, Policy, Service, ServiceSpec, ServiceType, TestRequest, TestResult, WriteOnly,
};
use seawall_hub_core::domain;
use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::render::{RenderedRequest, RequestBody};
use seawall_hub_core::service::{ChangeError, DEFAULT_POLICY, ServiceBacklog, problems_of_policy};
use serde::Serialize;
use serde_json::{Value, json};

use super::resource::{ChangeTerms, NamedObject, ReadResult, ResourceInput, changed, find, resource};
use crate::credentials;
use crate::http::access::Caller;
use crate::http::bridge::deliveries::wait_fields;
use crate::http::context::{RequestContext, Target};
use crate::http::error::{ApiError, field_problems, refused};
use crate::http::input::{Input, slug};
use crate::http::reply::{ApiReply, ApiResult};
use crate::hub::Server;

impl NamedObject for domain::service::Service {
    resource!(ServiceSpec => Service, "service", registry.services, registry.service);

    fn is_seen_by(&self, caller: &Caller) -> bool {
        caller.sees(&self.name)
    }

    fn spec(&self, hub: &Server) -> Result<ServiceSpec, ApiError> {
        Ok(spec(hub, self))
    }

    async fn view(&self, hub: &Server) -> Service {
        view(hub, self, &hub.ops.backlog(&self.name).await)
    }

    fn read(cx: &RequestContext, mut input: ServiceInput, before: Option<Self>) -> ReadResult<Self> {
        let before = before.filter(|service| service.is_seen_by(&cx.caller));
        check_headers(&mut input);
        if let Some(policy) = input.get::<Policy>("policy") {
            input.also(field_problems(problems_of_policy(&text_of(&policy))));
        }
        let auth = new_auth(&cx.hub, before.as_ref(), &mut input);
        let version = input.version();
        let spec = input.finish()?;
        let name = slug(&spec.name);
        if !cx.caller.sees(&name) {
            return Err(ApiError::missing(Self::NOUN));
        }
        let auth = match auth {
            // A secret can't be read back, so whoever changes something else does not have to know it.
            NewAuth::Keep => before.and_then(|service| service.auth),
            NewAuth::Remove => None,
            NewAuth::Set(auth) => Some(sealed(&cx.hub, &auth, name.as_str())?),
        };
        Ok((to_domain(spec, name, auth), version))
    }

    async fn commit(self, cx: &RequestContext, terms: ChangeTerms) -> Result<Self, ChangeError> {
        let stored = cx.hub.registry.put_service_once(cx, self, terms.expected, terms.once).await?;
        cx.hub.check_egress(&stored.name, &stored.address).await;
        Ok(stored)
    }

    async fn remove(&self, cx: &RequestContext, terms: ChangeTerms) -> Result<(), ChangeError> {
        cx.hub.registry.delete_service(cx, &self.name, terms.expected, terms.pending).await
    }
}

type ServiceInput = ResourceInput<domain::service::Service>;

/// Seals what must not be read in the store.
pub(crate) fn sealed(hub: &Server, secret: &impl Serialize, owner: &str) -> Result<SealedSecret, ApiError> {
    let bytes = serde_json::to_vec(secret).unwrap_or_default();
    let sealed = hub.keyring.seal(&bytes, owner);
    sealed.ok_or_else(|| ApiError::new("seal", "the secret could not be encrypted and was not stored"))
}

/// The service that a specification describes.
fn to_domain(spec: ServiceSpec, name: Slug, auth: Option<SealedSecret>) -> domain::service::Service {
    let ServiceSpec { name: _, r#type: _, address, auth: _, headers, policy, paused } = spec;
    domain::service::Service {
        name,
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
fn new_auth(hub: &Server, before: Option<&domain::service::Service>, input: &mut ServiceInput) -> NewAuth {
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

fn check_headers(input: &mut ServiceInput) {
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
    let opened = hub.keyring.unseal(sealed, service.name.as_str());
    let auth = opened.and_then(|bytes| credentials::from_bytes(&bytes));
    Some(auth.map_or(Auth::Unreadable, Auth::hidden))
}

pub(crate) fn circuit_word(hub: &Server, name: &Slug) -> Option<&'static str> {
    Some(state_word(hub.gateway.guard(name)?.breaker()?.state()))
}

/// A state of a circuit, in the same word everywhere.
pub(crate) fn state_word(state: GuardState) -> &'static str {
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

pub(crate) async fn list(cx: RequestContext) -> ApiResult<Vec<Service>> {
    let mut backlogs: HashMap<Slug, ServiceBacklog> =
        cx.hub.ops.backlogs().await.into_iter().map(|backlog| (backlog.service.clone(), backlog)).collect();
    let mut all = Vec::new();
    for service in cx.hub.registry.services().iter().filter(|service| service.is_seen_by(&cx.caller)) {
        all.push(match backlogs.remove(&service.name) {
            Some(backlog) => view(&cx.hub, service, &backlog),
            None => service.view(&cx.hub).await,
        });
    }
    Ok(ApiReply::new(all))
}

/// Handles `POST …/services/{name}:pause`.
pub(crate) async fn pause(cx: RequestContext, target: Target) -> ApiResult<Service> {
    set_paused(&cx, &target, true).await
}

/// Handles `POST …/services/{name}:resume`.
pub(crate) async fn resume(cx: RequestContext, target: Target) -> ApiResult<Service> {
    set_paused(&cx, &target, false).await
}

async fn set_paused(cx: &RequestContext, target: &Target, paused: bool) -> ApiResult<Service> {
    let domain::service::Service { name, .. } = find(cx, target)?;
    let _sealing = cx.hub.keyring.sealing().await;
    changed(cx, cx.hub.registry.pause_service(cx, &name, paused).await).await
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
pub(crate) async fn test(cx: RequestContext, target: Target, body: Bytes) -> ApiResult<TestResult> {
    let domain::service::Service { name, .. } = find(&cx, &target)?;
    let TestRequest { method, path, headers, body } = Input::<TestRequest>::optional(&body)?.finish()?;
    let (path, headers) = (path.into_string(), headers.into_iter().collect());
    let body = body.map_or(RequestBody::Empty, |body| RequestBody::Own(body.to_string().into()));
    let began = cx.hub.now();
    let request = RenderedRequest { operation: method, target: path, attributes: headers, body };
    let sent = cx.hub.gateway.test_service(&name, &request).await;
    let latency_ms = u64::try_from(cx.hub.now().since(began).as_millis()).unwrap_or(u64::MAX);
    let is_admin = cx.caller.is_admin();
    let result = TestResult {
        reached: false,
        latency_ms,
        circuit: circuit_word(&cx.hub, &name).map(Into::into),
        http_status: None,
        good: None,
        fault: None,
        body: None,
        error: None,
        decided_by: None,
    };
    let word = |class: Class| class_word(class).into();
    Ok(ApiReply::new(match sent.map_err(refused("service"))? {
        Ok(answer) => TestResult {
            reached: true,
            http_status: answer.code,
            good: Some(answer.fault.is_none()),
            fault: answer.fault.map(|fault| word(fault.class())),
            body: is_admin.then(|| String::from_utf8_lossy(&answer.body).into_owned()),
            ..result
        },
        Err(error) => {
            let class = error.last().map_or_else(|| error.last_fault().class(), |last| last.fault.class());
            let why = || error.last().map_or_else(|| error.to_string(), |last| last.error.clone());
            let decided_by = Some(error.decided_by().to_string());
            TestResult { fault: Some(word(class)), error: is_admin.then(why), decided_by, ..result }
        }
    }))
}
