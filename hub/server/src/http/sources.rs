//! Sources of webhooks, and the webhooks that they send.

use std::num::NonZeroUsize;
use std::sync::{Arc, PoisonError};

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_http::Secret;
use seawall_hub_core::domain::event_type::EventType;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::source::Source;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::StoreError;
use seawall_hub_core::render::{Meter, Mistake, Naming, Webhook};
use seawall_hub_core::service::{Data, Incoming, QUICK_BYTES_MAX, QUICK_WORK_MAX};
use serde_json::{Value, json};

use super::Caught;
use super::access::Caller;
use super::events::{not_accepted, shown as shown_accepted};
use super::fields::{FieldProblem, Fields};
use super::reply::{
    expected, missing, parse, problem, refused, store_problem, success, success_text, trace_or_own,
    versioned, wrong_fields,
};
use super::services::merged;
use super::watch::webhook_refused;
use crate::credentials::HIDDEN;
use crate::hub::{Gate, Hub};
use crate::rotate;
use crate::source::verify::{Presented, Scheme, Settings, Verified, Verifier};
use crate::source::{Replays, Sight};

const KNOWN: &str = "name, verify, eventType, eventId, enabled";
/// A token is all that a sender shows, and anybody can try as many as they like. One that was registered before counts still.
const TOKEN_CHARS_MIN: usize = 16;
const TOKEN_TOO_SHORT: &str =
    "a token has at least 16 characters, or it can be guessed; make one with `openssl rand -hex 32`";
/// So many webhooks are remembered for each source, to see a replay.
const REPLAYS: NonZeroUsize = NonZeroUsize::new(100_000).expect("it is not zero");

pub(super) async fn put(State(hub): State<Arc<Hub>>, headers: HeaderMap, body: Bytes) -> Caught {
    keep(&hub, None, &headers, parse(&body)?).await
}

pub(super) async fn replace(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    keep(&hub, Some(&name), &headers, parse(&body)?).await
}

async fn keep(hub: &Hub, named: Option<&str>, headers: &HeaderMap, body: Value) -> Caught {
    let mut fields = Fields::new(body);
    let name = fields.name(named);
    let event_type = fields.needed("eventType");
    let event_id = fields.text("eventId");
    let enabled = fields.switch("enabled", true);
    for mistake in Naming::new(&event_type, event_id.as_deref()).err().unwrap_or_default() {
        if !fields.has_problem_with(&mistake.place) {
            fields.wrong(&mistake.place, mistake.reason);
        }
    }
    // What is secret can't be read back, so whoever changes something else does not have to know it.
    let said = fields.any("verify");
    let is_said = said.is_some();
    let proof = said.and_then(|proof| verifier(&proof, &mut fields).map(|_| proof));
    if let Some(proof) = proof.as_ref().filter(|proof| proof["type"] == "bearer") {
        let secrets = proof["secrets"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if secrets.into_iter().any(|secret| secret.len() < TOKEN_CHARS_MIN) {
            fields.wrong("verify.secrets", TOKEN_TOO_SHORT);
        }
    }
    let _sealing = hub.keyring().sealing().await;
    let before = name.as_ref().and_then(|name| hub.source(name));
    if !is_said && before.is_none() {
        fields.wrong("verify", "say how it shows who it is: `{type: bearer | hmac | …, secrets: […]}`");
    }
    let problems = fields.end(KNOWN);
    let Some(name) = name.filter(|_| problems.is_empty()) else { return Ok(wrong_fields(&problems)) };
    let sealed = match &proof {
        Some(proof) => hub.keyring().seal(proof.to_string().as_bytes(), &rotate::source(&name)),
        None => before.map(|source| source.proof),
    };
    let Some(proof) = sealed else {
        let word = "the secret could not be sealed, so it was not kept";
        return Ok(problem(StatusCode::INTERNAL_SERVER_ERROR, "seal", word, true));
    };
    let (version, changed) = (0, Millis(0));
    let source = Source { name, version, proof, event_type, event_id, enabled, changed };
    Ok(match hub.put_source(source, expected(headers)?).await {
        Ok(kept) => {
            let status = if kept.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
            versioned(status, kept.version, &shown(hub, &kept))
        }
        Err(why) => refused(why, "source"),
    })
}

/// `{type, secrets, header, prefix, encoding}`. What is wrong is told to `fields`, under `verify.`.
fn verifier(proof: &Value, fields: &mut Fields) -> Option<Verifier> {
    let mut group = Fields::new(proof.clone());
    let kind = group.needed("type");
    let settings = Settings {
        header: group.text("header"),
        prefix: group.text("prefix"),
        encoding: group.text("encoding"),
    };
    let secrets = group.texts("secrets");
    if secrets.iter().any(|secret| secret == HIDDEN) {
        let reason =
            "this is what is shown in its place; say the secrets, or leave `verify` out to keep them";
        group.wrong("secrets", reason);
    }
    let secrets: Vec<Secret> = secrets.into_iter().map(Secret::new).collect();
    let made = if kind.is_empty() {
        None
    } else {
        let scheme =
            Scheme::named(&kind, &settings).map_err(|wrong| group.wrong("type", wrong.to_string())).ok();
        scheme.and_then(|scheme| {
            Verifier::new(scheme, secrets).map_err(|wrong| group.wrong("secrets", wrong.to_string())).ok()
        })
    };
    fields.within("verify", group, "type, secrets, header, prefix, encoding");
    made
}

fn shown(hub: &Hub, source: &Source) -> Value {
    let opened = hub.keyring().unseal(&source.proof, &rotate::source(&source.name));
    let proof: Option<Value> = opened.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let count = proof.as_ref().and_then(|proof| proof["secrets"].as_array().map(Vec::len)).unwrap_or(0);
    let proof = merged(proof.unwrap_or(json!({})), json!({"secrets": vec![HIDDEN; count]}));
    json!({
        "name": source.name.as_str(), "version": source.version, "verify": proof, "eventType": source.event_type,
        "eventId": source.event_id, "enabled": source.enabled, "changedAt": source.changed.to_string(),
        "path": format!("/in/{}", source.name),
    })
}

pub(super) async fn list(State(hub): State<Arc<Hub>>, Extension(caller): Extension<Caller>) -> Response {
    let sources = hub.sources();
    let seen = sources.iter().filter(|source| caller.sees_source(source.name.as_str()));
    success(StatusCode::OK, &seen.map(|source| shown(&hub, source)).collect())
}

pub(super) async fn get(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Response {
    let name = Slug::new(&name).ok().filter(|name| caller.sees_source(name.as_str()));
    match name.and_then(|name| hub.source(&name)) {
        Some(source) => versioned(StatusCode::OK, source.version, &shown(&hub, &source)),
        None => missing("source"),
    }
}

pub(super) async fn delete(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Caught {
    let Ok(name) = Slug::new(&name) else { return Ok(missing("source")) };
    Ok(match hub.delete_source(&name, expected(&headers)?).await {
        Ok(()) => success(StatusCode::OK, &json!({"name": name.as_str(), "deleted": true})),
        Err(why) => refused(why, "source"),
    })
}

/// A webhook. Whoever can't show who they are learns nothing: not whether there is such a source, nor what was wrong.
pub(super) async fn webhook(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    let stranger = || {
        let word = "the request does not prove that it comes from this source";
        problem(StatusCode::UNAUTHORIZED, "unverified", word, false)
    };
    let found = Slug::new(&name).ok().and_then(|name| hub.source(&name));
    let refuse = |why: &str| {
        webhook_refused(&name, found.is_some(), why);
        stranger()
    };
    let source = match &found {
        Some(source) if source.enabled => source,
        Some(_) => return Ok(refuse("it is disabled")),
        None => return Ok(refuse("there is no such source")),
    };
    let Some(gate) = gate(&hub, source) else {
        return Ok(refuse("its secret can't be opened; was `secret.key` changed?"));
    };
    let presented = Presented { headers: &headers, body: &body };
    let verified = match gate.verifier.check(&presented, hub.now()) {
        Ok(verified) => verified,
        Err(refused) => return Ok(refuse(&refused.reason())),
    };
    let incoming = match incoming(&hub, &gate, &headers, &body, &verified).await {
        Ok(incoming) => incoming,
        Err(Unnamed::Wrong(problem)) => return Ok(wrong_fields(&[problem])),
        Err(Unnamed::Busy) => return Ok(store_problem(&StoreError::Busy)),
    };
    match verified.replay_key.map(|key| gate.replays.look(key, hub.now())) {
        Some(Sight::Accepted) => {
            // Answered like a failure, its sender would try for ever.
            let data = json!({
                "id": incoming.id, "deliveries": [], "deduplicated": true, "filtered": 0, "unmatched": false, "held": 0,
            });
            return Ok(success(StatusCode::ACCEPTED, &data));
        }
        // Whoever is told now that it is there would not send it again if it is not kept after all.
        Some(Sight::UnderWay) => return Ok(store_problem(&StoreError::Busy)),
        Some(Sight::First) | None => {}
    }
    match hub.accept(incoming).await {
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
fn gate(hub: &Hub, source: &Source) -> Option<Arc<Gate>> {
    let known = hub.gates.read().unwrap_or_else(PoisonError::into_inner).get(&source.name).cloned();
    if let Some(gate) = known.as_ref().filter(|gate| gate.source == *source) {
        return Some(gate.clone());
    }
    // What was seen before stays known, whatever else is new about the source.
    let replays = known.map_or_else(|| Arc::new(Replays::new(REPLAYS)), |gate| gate.replays.clone());
    let opened = hub.keyring().unseal(&source.proof, &rotate::source(&source.name))?;
    let proof: Value = serde_json::from_slice(&opened).ok()?;
    let gate = Arc::new(Gate {
        source: source.clone(),
        verifier: verifier(&proof, &mut Fields::new(json!({})))?,
        naming: Naming::new(&source.event_type, source.event_id.as_deref()).ok()?,
        replays,
    });
    hub.gates.write().unwrap_or_else(PoisonError::into_inner).insert(source.name.clone(), gate.clone());
    Some(gate)
}

/// Headers that show who sent it, and so are for nobody else.
const NEVER_SHOWN: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// Why a webhook is no event.
enum Unnamed {
    Wrong(FieldProblem),
    Busy,
}

/// The kind and the id of a webhook: here if that is quick, and else on a thread that may be held up.
async fn named(
    hub: &Hub,
    gate: &Arc<Gate>,
    headers: Vec<(String, String)>,
    (data, size): (Value, usize),
) -> Result<(Value, Result<(String, Option<String>), Mistake>), Unnamed> {
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
    hub.render_pool().run(work).await.map_err(|_| Unnamed::Busy)
}

async fn incoming(
    hub: &Hub,
    gate: &Arc<Gate>,
    headers: &HeaderMap,
    body: &Bytes,
    verified: &Verified,
) -> Result<Incoming, Unnamed> {
    let source = &gate.source;
    let wrong = |field: &str, reason: String| Unnamed::Wrong(FieldProblem { field: field.into(), reason });
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
    let own = || verified.replay_key.map_or_else(super::random_hex::<16>, |key| super::hex(&key[..16]));
    let id = id.or_else(|| verified.message.clone()).unwrap_or_else(own);
    Ok(Incoming {
        id: format!("{}:{id}", source.name),
        kind,
        source: source.name.to_string(),
        time: None,
        subject: None,
        extensions: Vec::new(),
        data: Data::from(&data),
        trace: trace_or_own(super::events::trace_of(headers)),
        key: None,
    })
}
