//! Calling a service now, later, or now and otherwise later.
//!
//! A queued call is an event of its own kind with one delivery, written in one unit like any other; what becomes of it
//! shows where deliveries show. Its rule is a name that no rule can have.

use std::sync::Arc;
use std::time::Duration;

use seawall::{Kind, Safety};
use serde_json::json;

use crate::domain::delivery::{DeliveryId, DeliveryState, FaultMeaning};
use crate::domain::event::Event;
use crate::domain::event_type::EventType;
use crate::domain::hash;
use crate::domain::slug::Slug;
use crate::encode::hex;
use crate::port::store::{Change, Claim, Store, StoreError, UnitOfWork, WritePriority};
use crate::port::transport::Transport;
use crate::render::RenderedRequest;
use crate::service::bridge::accept::new_delivery;
use crate::service::bridge::rule_set::RenderedDelivery;
use crate::service::context::Context;
use crate::service::dispatch::{CallResult, PendingDelivery};
use crate::service::handles::GatewayHandle;

/// The rule name of deliveries that come from calls. No rule has this name.
pub const GATEWAY_RULE: &str = "gateway-call";
/// The type and the source of the events that stand for calls.
const KIND: &str = "seawall.call";
const SOURCE: &str = "gateway";
/// The header by which a service recognises a repeated call.
const KEY_HEADER: &str = "idempotency-key";
/// Headers that a queued call may not have, because the database stores them in plain text.
const SECRET: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];

/// A call to a service through the gateway.
#[derive(Clone, Debug)]
pub struct GatewayCall {
    /// The service to call.
    pub service: Slug,
    /// The request to send.
    pub request: RenderedRequest,
    pub mode: CallMode,
    /// The idempotency key, for the service and for the hub if it queues the call.
    pub key: Option<String>,
    /// The name of the caller: others may use the same key for something else.
    pub caller: String,
    /// The id of a queued call without a key.
    pub fresh_id: String,
    /// The timeout, if it is shorter than that of the service's policy.
    pub timeout: Option<Duration>,
    /// The number of retries above this call, if the caller says so.
    pub retries_above: Option<u32>,
    /// The trace that the call belongs to.
    pub trace: Option<String>,
}

/// When a call is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CallMode {
    /// The call is made now.
    #[default]
    Sync,
    /// The call is queued as a delivery.
    Async,
    /// The call is made now, and queued if the service is unavailable.
    SyncOrQueue,
}

/// The outcome of a call that was made or queued.
#[derive(Clone, Debug)]
pub enum CallOutcome {
    /// The call was made and has a response or an error.
    Now(CallResult),
    /// The call was queued.
    Later(QueuedCall),
}

/// A call that was queued as a delivery.
#[derive(Clone, Debug)]
pub struct QueuedCall {
    /// The id of the event that stands for it.
    pub event: String,
    /// The delivery of the call.
    pub deliveries: Vec<DeliveryId>,
    /// Whether it was queued before under the same key.
    pub deduplicated: bool,
    /// The result of the attempt before it was queued; `None` if there was none.
    pub tried: Option<CallResult>,
}

/// The reason why a call was neither made nor queued.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallError {
    /// The service does not exist.
    Missing,
    /// The service is paused.
    Paused,
    /// Some fields are invalid, each with its reason.
    Wrong(Vec<(String, String)>),
    /// The key was used for another call.
    OtherContent,
    /// The store refused or failed.
    Store(StoreError),
}

impl<S: Store + Clone, T: Transport> GatewayHandle<S, T> {
    /// Calls a service, or queues the call.
    pub async fn call(&self, cx: &Context, mut call: GatewayCall) -> Result<CallOutcome, CallError> {
        let paused = self.core.deliver.is_paused(&call.service).ok_or(CallError::Missing)?;
        check(&call)?;
        let sent = call.request.attributes.iter().find(|(name, _)| name == KEY_HEADER);
        call.key = sent.map(|(_, key)| key.clone()).or(call.key);
        add_key(&mut call.request, call.key.as_deref());
        if call.mode == CallMode::Sync {
            if paused {
                return Err(CallError::Paused);
            }
            return self.core.deliver.call(&call).await.map(CallOutcome::Now).ok_or(CallError::Missing);
        }
        let id = call
            .key
            .as_ref()
            .map_or_else(|| call.fresh_id.clone(), |key| event_id(&call.caller, &call.service, key));
        if call.mode == CallMode::Async || paused {
            return self.queue(cx, &call, id, None).await.map(CallOutcome::Later);
        }
        // A call that is queued under this key will be delivered: calling now would be a second time.
        if call.key.is_some()
            && self.core.store.event(&id, Some(SOURCE)).await.map_err(CallError::Store)?.is_some()
        {
            return self.queue(cx, &call, id, None).await.map(CallOutcome::Later);
        }
        if Safety::of_http_method(&call.request.operation) == Safety::Once {
            // It may run now and be delivered later all the same, if nobody hears of its end: a service that looks at keys
            // can tell.
            add_key(&mut call.request, Some(&id));
        }
        let called = self.core.deliver.call(&call).await.ok_or(CallError::Missing)?;
        if may_pass_later(&called) {
            return self.queue(cx, &call, id, Some(called)).await.map(CallOutcome::Later);
        }
        Ok(CallOutcome::Now(called))
    }

    /// Commits a call as a delivery. When this succeeds, it is on the disk.
    async fn queue(
        &self,
        cx: &Context,
        call: &GatewayCall,
        id: String,
        tried: Option<CallResult>,
    ) -> Result<QueuedCall, CallError> {
        let (now, fingerprint) = (cx.now, fingerprint(call));
        let RenderedRequest { operation: method, target: path, .. } = &call.request;
        let bytes = call.request.body.bytes().map_or(0, bytes::Bytes::len);
        let payload = json!({
            "id": id, "type": KIND, "source": SOURCE, "time": now.to_string(),
            "data": {"service": call.service.as_str(), "method": method, "path": path, "bodyBytes": bytes},
        });
        let wrong = |error: &dyn std::fmt::Display| CallError::Store(StoreError::Failed(error.to_string()));
        let event = Arc::new(Event {
            id: id.clone(),
            kind: EventType::new(KIND).map_err(|error| wrong(&error))?,
            source: SOURCE.into(),
            payload: payload.to_string().into_bytes().into(),
            fingerprint,
            accepted: now,
            trace: call.trace.clone(),
            considered: 1,
            filtered: 0,
        });
        let rule = Slug::new(GATEWAY_RULE).map_err(|error| wrong(&error))?;
        let rendered = RenderedDelivery {
            rule: (rule, 0),
            service: call.service.clone(),
            enabled: true,
            request: Ok(call.request.clone()),
            panicked: false,
            order: None,
            hold: false,
        };
        let delivery = new_delivery(&rendered, |service| self.core.deliver.admit(service));
        let unit = UnitOfWork::of(Change::AddEvent(event.clone(), vec![delivery]));
        let (deliveries, deduplicated) = match self.core.store.commit(WritePriority::Ingest, unit).await {
            Ok(committed) => {
                let leased = committed.deliveries.iter().find(|(_, state)| *state == DeliveryState::Leased);
                let claim = leased.map(|(id, _)| Claim { delivery: *id, epoch: committed.epoch });
                let started = claim.and_then(|claim| PendingDelivery::new(claim, rendered, &event));
                self.core.deliver.begin(started.into_iter().collect());
                (committed.deliveries.into_iter().map(|(id, _)| id).collect(), false)
            }
            Err(StoreError::EventExists { fingerprint: there, deliveries }) if there == fingerprint => {
                (deliveries, true)
            }
            Err(StoreError::EventExists { .. }) => return Err(CallError::OtherContent),
            Err(error) => return Err(CallError::Store(error)),
        };
        Ok(QueuedCall { event: id, deliveries, deduplicated, tried })
    }

    /// Returns a service for a caller outside the dispatcher.
    #[must_use]
    pub fn target(&self, name: &str) -> Option<crate::service::GuardedService> {
        self.core.deliver.target(name)
    }

    /// Stores the state of circuits that have changed without a delivery.
    pub async fn observe_circuits(&self) {
        self.core.deliver.observe_all().await;
    }
}

fn check(call: &GatewayCall) -> Result<(), CallError> {
    let mut wrong: Vec<(String, String)> =
        call.request.mistakes().into_iter().map(|mistake| (mistake.place, mistake.reason)).collect();
    if call.mode != CallMode::Sync {
        let secret = call.request.attributes.iter().filter(|(name, _)| SECRET.contains(&&**name));
        wrong.extend(secret.map(|(name, _)| {
            let reason =
                "a call that may be kept can't carry credentials; give them to the service as its `auth`";
            (format!("headers.{name}"), reason.to_owned())
        }));
    }
    if wrong.is_empty() { Ok(()) } else { Err(CallError::Wrong(wrong)) }
}

/// Adds the idempotency key to the request.
fn add_key(request: &mut RenderedRequest, key: Option<&str>) {
    if let Some(key) = key
        && !request.attributes.iter().any(|(name, _)| name == KEY_HEADER)
    {
        request.attributes.push((KEY_HEADER.into(), key.into()));
    }
}

/// Whether the service may take the call later: it is down or throttles, or a policy of the hub rejected the call.
fn may_pass_later(called: &CallResult) -> bool {
    match &called.answer {
        Ok(response) => {
            response.fault.is_some_and(|fault| FaultMeaning::of(&fault, false).passes_by_itself())
        }
        Err(error) if matches!(error.kind(), Kind::Rejected | Kind::TimedOut) => true,
        // A response that the hub could not take in is no outage.
        Err(error) => !error.last().is_some_and(|last| last.impossible || last.too_large || last.no_memory),
    }
}

/// Returns the event id of a call under a key: the same key of another caller or for another service is another call.
fn event_id(caller: &str, service: &Slug, key: &str) -> String {
    let hash = hash::parts([caller, service.as_str(), key]);
    format!("call_{}", hex(&hash[..16]))
}

fn fingerprint(call: &GatewayCall) -> [u8; 32] {
    let RenderedRequest { operation, target, attributes, body } = &call.request;
    let mut attributes: Vec<&(String, String)> = attributes.iter().collect();
    attributes.sort();
    let mut parts = vec![call.service.as_str().as_bytes(), operation.as_bytes(), target.as_bytes()];
    parts.push(body.bytes().map_or(&[][..], |body| &body[..]));
    parts.extend(attributes.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
    hash::parts(parts)
}
