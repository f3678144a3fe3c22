//! Sources of webhooks, and the webhooks that they send.

use std::num::NonZeroUsize;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_api::{AcceptedEvent, Deleted, Exposed, Source, SourceSpec, Verify, WriteOnly};
use seawall_http::Secret;
use seawall_hub_core::domain;
use seawall_hub_core::domain::event_type::EventType;
use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::port::store::StoreError;
use seawall_hub_core::render::{Meter, TemplateError, Webhook, WebhookNaming};
use seawall_hub_core::service::{
    ChangeKey, Context, EventData, IncomingEvent, QUICK_BYTES_MAX, QUICK_WORK_MAX,
};
use serde_json::{Value, json};

use crate::http::HandlerResult;
use crate::http::bridge::events::{not_accepted, shown as shown_accepted};
use crate::http::context::RequestContext;
use crate::http::fields::FieldError;
use crate::http::input::{Input, slug};
use crate::http::once::{change_key, refused_or};
use crate::http::reply::{
    expected, missing, problem, refused, store_problem, success, success_text, versioned, wrong_fields,
};
use crate::hub::{Server, SourceVerifier};
use crate::rotate;
use crate::source::verify::{Scheme, SchemeSettings, SignedRequest, VerifiedRequest, Verifier};
use crate::source::{ReplayCache, ReplayCheck};

/// A token is all that a sender shows, and anybody can try as many as they like. One that was registered before counts still.
const TOKEN_CHARS_MIN: usize = 16;
const TOKEN_TOO_SHORT: &str = "a token must have at least 16 characters, so that it can't be guessed; create one with `openssl rand -hex 32`";
/// The number of webhooks that are remembered for each source, to detect a replay.
const REPLAYS: NonZeroUsize = NonZeroUsize::new(100_000).expect("it is not zero");

pub(in crate::http) async fn put(cx: RequestContext, headers: HeaderMap, body: Bytes) -> HandlerResult {
    let once = change_key(&headers, &cx.caller, "source", &body)?;
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

async fn keep(
    cx: &RequestContext,
    expected: Option<u64>,
    mut input: Input<SourceSpec, Source>,
    once: Option<ChangeKey>,
) -> HandlerResult {
    let (event_type, event_id) = (input.get::<String>("eventType"), input.get::<String>("eventId"));
    if let Some(event_type) = event_type {
        let mistakes = WebhookNaming::new(&event_type, event_id.as_deref()).err().unwrap_or_default();
        input.also(mistakes.into_iter().map(|mistake| (mistake.place, mistake.reason)));
    }
    let _sealing = cx.hub.keyring().sealing().await;
    let name = input.get::<String>("name").and_then(|name| Slug::new(&name).ok());
    let before = name.and_then(|name| cx.hub.registry.source(&name));
    let verify = new_verify(&cx.hub, before.as_ref(), &mut input);
    let version = input.version();
    let spec = input.finish()?;
    let name = slug(&spec.name);
    let sealed = match verify {
        Some(verify) => {
            let bytes = serde_json::to_vec(&verify).unwrap_or_default();
            cx.hub.keyring().seal(&bytes, &rotate::source(&name))
        }
        None => before.map(|source| source.proof),
    };
    let Some(proof) = sealed else {
        let word = "the secret could not be encrypted and was not stored";
        return Ok(problem(StatusCode::INTERNAL_SERVER_ERROR, "seal", word, true));
    };
    Ok(match cx.hub.registry.put_source_once(cx, to_domain(spec, proof), expected.or(version), once).await {
        Ok(kept) => {
            let status = if kept.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
            versioned(status, kept.version, &view(&cx.hub, &kept))
        }
        Err(why) => refused_or(why, "source", |status, _| {
            cx.hub
                .registry
                .source(&name)
                .map(|source| versioned(status, source.version, &view(&cx.hub, &source)))
        }),
    })
}

/// The verification that a request sets; `None` if it keeps the one that is there. What is secret can't be read back, so a
/// request that changes something else omits it, or contains what was shown.
fn new_verify(
    hub: &Server,
    before: Option<&domain::source::Source>,
    input: &mut Input<SourceSpec, Source>,
) -> Option<Verify<Exposed>> {
    let Some(written) = input.raw("verify") else {
        if before.is_none() {
            let reason =
                "required: the verification of its webhooks, `{type: bearer | hmac | …, secrets: […]}`";
            input.wrong("verify", reason);
        }
        return None;
    };
    if before.is_some_and(|source| *written == json!(shown_verify(hub, source))) {
        return None;
    }
    let verify = input.get::<Verify<WriteOnly>>("verify")?;
    let Some(verify) = exposed(verify) else {
        let reason = "must not be the placeholder `…`; set the secrets, or omit `verify` to keep them";
        input.wrong("verify.secrets", reason);
        return None;
    };
    if let Verify::Bearer { secrets } = &verify
        && secrets.iter().any(|Exposed(secret)| secret.len() < TOKEN_CHARS_MIN)
    {
        input.wrong("verify.secrets", TOKEN_TOO_SHORT);
    } else if let Err((field, reason)) = verifier(&verify) {
        input.wrong(&format!("verify.{field}"), reason);
    }
    Some(verify)
}

/// The verification with the secrets that were written; `None` if one of them is the placeholder.
fn exposed(verify: Verify<WriteOnly>) -> Option<Verify<Exposed>> {
    let mut is_whole = true;
    let verify = verify.map(|secret| match secret {
        WriteOnly::Set(text) => Exposed(text),
        WriteOnly::Keep => {
            is_whole = false;
            Exposed(String::new())
        }
    });
    is_whole.then_some(verify)
}

/// What checks webhooks, or the field that is wrong and its reason.
fn verifier(verify: &Verify<Exposed>) -> Result<Verifier, (&'static str, String)> {
    let settings = match verify {
        Verify::Hmac { header, prefix, encoding, .. } => SchemeSettings {
            header: Some(header.clone()),
            prefix: prefix.clone(),
            encoding: encoding.as_ref().map(ToString::to_string),
        },
        _ => SchemeSettings::default(),
    };
    let scheme = Scheme::named(verify.r#type(), &settings).map_err(|wrong| ("type", wrong.to_string()))?;
    let secrets = verify.secrets().iter().map(|Exposed(secret)| Secret::new(secret.clone()));
    Verifier::new(scheme, secrets).map_err(|wrong| ("secrets", wrong.to_string()))
}

/// The source that a specification describes.
fn to_domain(spec: SourceSpec, proof: SealedSecret) -> domain::source::Source {
    let SourceSpec { name, verify: _, event_type, event_id, enabled } = spec;
    domain::source::Source {
        name: slug(&name),
        version: 0,
        proof,
        event_type: event_type.into_string(),
        event_id: event_id.map(seawall_api::Template::into_string),
        enabled,
        changed: Millis(0),
    }
}

fn view(hub: &Server, source: &domain::source::Source) -> Source {
    Source {
        spec: SourceSpec {
            name: source.name.as_str().into(),
            verify: Some(shown_verify(hub, source)),
            event_type: source.event_type.clone().into(),
            event_id: source.event_id.clone().map(Into::into),
            enabled: source.enabled,
        },
        version: source.version,
        changed_at: source.changed.to_string().into(),
        path: format!("/in/{}", source.name),
    }
}

/// The verification of a source in clear text; `None` if it can't be decrypted.
fn opened(hub: &Server, source: &domain::source::Source) -> Option<Verify<Exposed>> {
    let opened = hub.keyring().unseal(&source.proof, &rotate::source(&source.name))?;
    serde_json::from_slice(&opened).ok()
}

fn shown_verify(hub: &Server, source: &domain::source::Source) -> Verify<WriteOnly> {
    opened(hub, source).map_or(Verify::Unreadable, |verify| verify.map(|_| WriteOnly::Keep))
}

pub(in crate::http) async fn list(cx: RequestContext) -> Response {
    let sources = cx.hub.registry.sources();
    let seen = sources.iter().filter(|source| cx.caller.sees_source(source.name.as_str()));
    success(StatusCode::OK, &seen.map(|source| view(&cx.hub, source)).collect::<Vec<_>>())
}

pub(in crate::http) async fn get(cx: RequestContext, Path(name): Path<String>) -> Response {
    let name = Slug::new(&name).ok().filter(|name| cx.caller.sees_source(name.as_str()));
    match name.and_then(|name| cx.hub.registry.source(&name)) {
        Some(source) => versioned(StatusCode::OK, source.version, &view(&cx.hub, &source)),
        None => missing("source"),
    }
}

pub(in crate::http) async fn delete(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> HandlerResult {
    let Ok(name) = Slug::new(&name) else { return Ok(missing("source")) };
    Ok(match cx.hub.registry.delete_source(&cx, &name, expected(&headers)?).await {
        Ok(()) => success(StatusCode::OK, &Deleted { name: name.as_str().into(), deleted: true }),
        Err(why) => refused(why, "source"),
    })
}

/// A webhook. Whoever can't show who they are learns nothing: not whether there is such a source, nor what was wrong.
pub(in crate::http) async fn webhook(
    State(hub): State<Arc<Server>>,
    Extension(trace): Extension<TraceId>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    let stranger = || {
        let word = "the verification of the request failed";
        problem(StatusCode::UNAUTHORIZED, "unverified", word, false)
    };
    let found = Slug::new(&name).ok().and_then(|name| hub.registry.source(&name));
    let refuse = |why: &str| {
        hub.request_telemetry().webhook_refused(&name, found.is_some(), why, trace);
        stranger()
    };
    let source = match &found {
        Some(source) if source.enabled => source,
        Some(_) => return Ok(refuse("it is disabled")),
        None => return Ok(refuse("there is no such source")),
    };
    let Some(gate) = gate(&hub, source) else {
        return Ok(refuse("its secret can't be decrypted; was `secret.key` changed?"));
    };
    let presented = SignedRequest { headers: &headers, body: &body };
    let verified = match gate.verifier.check(&presented, hub.now()) {
        Ok(verified) => verified,
        Err(refused) => return Ok(refuse(&refused.reason())),
    };
    let incoming = match incoming(&hub, &gate, (&headers, trace), &body, &verified).await {
        Ok(incoming) => incoming,
        Err(NamingError::Wrong(problem)) => return Ok(wrong_fields(&[problem])),
        Err(NamingError::Busy) => return Ok(store_problem(&StoreError::Busy)),
    };
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
            return Ok(success(StatusCode::ACCEPTED, &known));
        }
        // Whoever is told now that it is there would not send it again if it is not kept after all.
        Some(ReplayCheck::UnderWay) => return Ok(store_problem(&StoreError::Busy)),
        Some(ReplayCheck::First) | None => {}
    }
    match hub.bridge.accept(&Context { trace: Some(trace), ..hub.own_context() }, incoming).await {
        Ok(accepted) => {
            if let Some(key) = verified.replay_key {
                gate.replays.accepted(&key);
            }
            Ok(success_text(StatusCode::ACCEPTED, &shown_accepted(&accepted)))
        }
        Err(error) => {
            if let Some(key) = verified.replay_key {
                gate.replays.forget(&key);
            }
            Ok(not_accepted(&error))
        }
    }
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

/// Why a webhook is no event.
enum NamingError {
    Wrong(FieldError),
    Busy,
}

/// The kind and the id of a webhook: here if that is quick, and else on a thread that may be held up.
async fn named(
    hub: &Server,
    gate: &Arc<SourceVerifier>,
    headers: Vec<(String, String)>,
    (data, size): (Value, usize),
) -> Result<(Value, Result<(String, Option<String>), TemplateError>), NamingError> {
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
    hub.bridge.render_pool().run(work).await.map_err(|_| NamingError::Busy)
}

async fn incoming(
    hub: &Server,
    gate: &Arc<SourceVerifier>,
    (headers, trace): (&HeaderMap, TraceId),
    body: &Bytes,
    verified: &VerifiedRequest,
) -> Result<IncomingEvent, NamingError> {
    let source = &gate.source;
    let wrong = |field: &str, reason: String| NamingError::Wrong(FieldError { field: field.into(), reason });
    // What is no JSON is a text: forms and plain texts come as webhooks too.
    let data = serde_json::from_slice(body).unwrap_or_else(|_| json!(String::from_utf8_lossy(body)));
    let plain: Vec<(String, String)> = headers
        .iter()
        .filter(|(name, _)| !NEVER_SHOWN.contains(&name.as_str()) && !name.as_str().contains("signature"))
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect();
    let (data, named) = named(hub, gate, plain, (data, body.len())).await?;
    let (kind, id) = named.map_err(|mistake| wrong(&mistake.place, mistake.reason))?;
    let kind = EventType::new(&kind).map_err(|error| wrong("eventType", error.to_string()))?;
    // The sender's own name for it, or what its scheme signs once. Else each is an event of its own: equal bytes may well be
    // two events, and one that comes twice does less harm than one that is lost.
    let own =
        || verified.replay_key.map_or_else(crate::http::random_hex::<16>, |key| crate::http::hex(&key[..16]));
    let id = id.or_else(|| verified.message.clone()).unwrap_or_else(own);
    Ok(IncomingEvent {
        id: format!("{}:{id}", source.name),
        kind,
        source: source.name.to_string(),
        time: None,
        subject: None,
        extensions: Vec::new(),
        data: EventData::from(&data),
        trace: crate::http::bridge::events::trace_of(headers).or_else(|| Some(trace.traceparent())),
        key: None,
    })
}
