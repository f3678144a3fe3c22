//! Webhooks: verified as their source is configured, and accepted as events.

use std::num::NonZeroUsize;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::HeaderMap;
use seawall_api::{AcceptedEvent, FieldProblem};
use seawall_hub_core::domain;
use seawall_hub_core::domain::event_type::EventType;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::encode::hex;
use seawall_hub_core::port::store::StoreError;
use seawall_hub_core::render::{Meter, TemplateError, Webhook, WebhookNaming};
use seawall_hub_core::service::{Context, EventData, IncomingEvent, QUICK_BYTES_MAX, QUICK_WORK_MAX};
use serde_json::{Value, json};

use super::events::{accepted_reply, trace_of};
use crate::http::error::{ApiError, template_problem};
use crate::http::random_hex;
use crate::http::registry::sources::{opened, verifier};
use crate::http::reply::{ApiReply, ApiResult};
use crate::hub::{Server, SourceVerifier};
use crate::source::verify::{SignedRequest, VerifiedRequest};
use crate::source::{ReplayCache, ReplayCheck};

/// The number of webhooks that are remembered for each source, to detect a replay.
const REPLAYS: NonZeroUsize = NonZeroUsize::new(100_000).expect("it is not zero");

/// A webhook. Whoever can't show who they are learns nothing: not whether there is such a source, nor what was wrong.
pub(crate) async fn webhook(
    State(hub): State<Arc<Server>>,
    Extension(trace): Extension<TraceId>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> ApiResult<AcceptedEvent> {
    let found = Slug::new(&name).ok().and_then(|name| hub.registry.source(&name));
    let refuse = |why: &str| {
        hub.request_telemetry.webhook_refused(&name, found.is_some(), why, trace);
        ApiError::new("unverified", "the verification of the request failed")
    };
    let source = match &found {
        Some(source) if source.enabled => source,
        Some(_) => return Err(refuse("it is disabled")),
        None => return Err(refuse("there is no such source")),
    };
    let gate = gate(&hub, source)
        .ok_or_else(|| refuse("its secret can't be decrypted; was `secret.key` changed?"))?;
    let presented = SignedRequest { headers: &headers, body: &body };
    let verified = gate.verifier.check(&presented, hub.now()).map_err(|error| refuse(&error.reason()))?;
    let incoming = incoming(&hub, &gate, (&headers, trace), &body, &verified).await?;
    match verified.replay_key.map(|key| gate.replays.look(key, hub.now())) {
        Some(ReplayCheck::Accepted) => {
            // Answered like a failure, its sender would try for ever.
            let known = AcceptedEvent {
                id: incoming.id,
                deliveries: Vec::new(),
                deduplicated: true,
                filtered: 0,
                unmatched: false,
                held: 0,
            };
            return Ok(ApiReply::accepted(known));
        }
        // Whoever is told now that it is there would not send it again if it is not kept after all.
        Some(ReplayCheck::UnderWay) => return Err(StoreError::Busy.into()),
        Some(ReplayCheck::First) | None => {}
    }
    let accepted = hub.bridge.accept(&Context { trace: Some(trace), ..hub.own_context() }, incoming).await;
    if let Some(key) = verified.replay_key {
        match &accepted {
            Ok(_) => gate.replays.accepted(&key),
            Err(_) => gate.replays.forget(&key),
        }
    }
    Ok(accepted_reply(&accepted?))
}

/// What checks the webhooks of a source: made once for each version of it.
fn gate(hub: &Server, source: &domain::source::Source) -> Option<Arc<SourceVerifier>> {
    let known = hub.gates.read().get(&source.name).cloned();
    if let Some(gate) = known.as_ref().filter(|gate| gate.source == *source) {
        return Some(gate.clone());
    }
    // What was seen before stays known, whatever else is new about the source.
    let replays = known.map_or_else(|| Arc::new(ReplayCache::new(REPLAYS)), |gate| gate.replays.clone());
    let gate = Arc::new(SourceVerifier {
        source: source.clone(),
        verifier: verifier(&opened(hub, source)?).ok()?,
        naming: WebhookNaming::new(&source.event_type, source.event_id.as_deref()).ok()?,
        replays,
    });
    hub.gates.write().insert(source.name.clone(), gate.clone());
    Some(gate)
}

/// Headers that show who sent it, and so are for nobody else.
const NEVER_SHOWN: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// The kind and the id of a webhook: here if that is quick, and else on a thread that may be held up.
async fn named(
    hub: &Server,
    gate: &Arc<SourceVerifier>,
    headers: Vec<(String, String)>,
    (data, size): (Value, usize),
) -> Result<(Value, Result<(String, Option<String>), TemplateError>), StoreError> {
    if size <= QUICK_BYTES_MAX {
        let meter = Meter::with_work(QUICK_WORK_MAX);
        let named = gate.naming.name(Webhook { headers: &headers, data: (&data).into() }, &meter);
        if !meter.is_spent() {
            return Ok((data, named));
        }
    }
    let gate = gate.clone();
    let work = move || {
        let webhook = Webhook { headers: &headers, data: (&data).into() };
        let named = gate.naming.name(webhook, &Meter::default());
        (data, named)
    };
    hub.bridge.render_pool().run(work).await.map_err(|_| StoreError::Busy)
}

async fn incoming(
    hub: &Server,
    gate: &Arc<SourceVerifier>,
    (headers, trace): (&HeaderMap, TraceId),
    body: &Bytes,
    verified: &VerifiedRequest,
) -> Result<IncomingEvent, ApiError> {
    let source = &gate.source;
    // What is no JSON is a text: forms and plain texts come as webhooks too.
    let data = serde_json::from_slice(body).unwrap_or_else(|_| json!(String::from_utf8_lossy(body)));
    let plain: Vec<(String, String)> = headers
        .iter()
        .filter(|(name, _)| !NEVER_SHOWN.contains(&name.as_str()) && !name.as_str().contains("signature"))
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect();
    let (data, named) = named(hub, gate, plain, (data, body.len())).await?;
    let (kind, id) = named.map_err(template_problem)?;
    let kind = EventType::new(&kind)
        .map_err(|error| FieldProblem { field: "eventType".into(), reason: error.to_string() })?;
    // The sender's own name for it, or what its scheme signs once. Else each is an event of its own: equal bytes may well be
    // two events, and one that comes twice does less harm than one that is lost.
    let own = || verified.replay_key.map_or_else(random_hex::<16>, |key| hex(&key[..16]));
    let id = id.or_else(|| verified.message.clone()).unwrap_or_else(own);
    Ok(IncomingEvent {
        id: format!("{}:{id}", source.name),
        kind,
        source: source.name.to_string(),
        time: None,
        subject: None,
        extensions: Vec::new(),
        data: EventData::from(&data),
        trace: trace_of(headers).or_else(|| Some(trace.traceparent())),
        key: None,
    })
}
