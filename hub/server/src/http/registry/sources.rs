//! Sources of webhooks.

use seawall_api::{Exposed, Source, SourceSpec, Verify, WriteOnly};
use seawall_http::Secret;
use seawall_hub_core::domain;
use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::render::WebhookNaming;
use seawall_hub_core::service::ChangeError;
use serde_json::json;

use super::resource::{ChangeTerms, NamedObject, ReadResult, ResourceInput, resource};
use super::services::sealed;
use crate::http::access::Caller;
use crate::http::context::RequestContext;
use crate::http::error::{ApiError, template_problem};
use crate::http::input::slug;
use crate::hub::Server;
use crate::rotate;
use crate::source::verify::{Scheme, SchemeSettings, Verifier};

/// A token is all that a sender shows, and anybody can try as many as they like. One that was registered before counts still.
const TOKEN_CHARS_MIN: usize = 16;
const TOKEN_TOO_SHORT: &str = "a token must have at least 16 characters, so that it can't be guessed; create one with `openssl rand -hex 32`";

impl NamedObject for domain::source::Source {
    resource!(SourceSpec => Source, "source", registry.sources, registry.source);

    fn is_seen_by(&self, caller: &Caller) -> bool {
        caller.sees_source(self.name.as_str())
    }

    fn spec(&self, hub: &Server) -> Result<SourceSpec, ApiError> {
        Ok(spec(hub, self))
    }

    async fn view(&self, hub: &Server) -> Source {
        Source {
            spec: spec(hub, self),
            version: self.version,
            changed_at: self.changed.to_string().into(),
            path: format!("/in/{}", self.name),
        }
    }

    fn read(cx: &RequestContext, mut input: SourceInput, before: Option<Self>) -> ReadResult<Self> {
        let (event_type, event_id) = (input.get::<String>("eventType"), input.get::<String>("eventId"));
        if let Some(event_type) = event_type {
            let mistakes = WebhookNaming::new(&event_type, event_id.as_deref()).err().unwrap_or_default();
            input.also(mistakes.into_iter().map(template_problem));
        }
        let verify = new_verify(&cx.hub, before.as_ref(), &mut input);
        let version = input.version();
        let spec = input.finish()?;
        let owner = rotate::source(&slug(&spec.name));
        let proof = match (verify, before) {
            (None, Some(before)) => before.proof,
            (verify, _) => sealed(&cx.hub, &verify, &owner)?,
        };
        Ok((to_domain(spec, proof), version))
    }

    async fn commit(self, cx: &RequestContext, terms: ChangeTerms) -> Result<Self, ChangeError> {
        cx.hub.registry.put_source_once(cx, self, terms.expected, terms.once).await
    }

    async fn remove(&self, cx: &RequestContext, terms: ChangeTerms) -> Result<(), ChangeError> {
        cx.hub.registry.delete_source(cx, &self.name, terms.expected).await
    }
}

type SourceInput = ResourceInput<domain::source::Source>;

/// The verification that a request sets; `None` if it keeps the one that is there. What is secret can't be read back, so a
/// request that changes something else omits it, or contains what was shown.
fn new_verify(
    hub: &Server,
    before: Option<&domain::source::Source>,
    input: &mut SourceInput,
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
pub(crate) fn verifier(verify: &Verify<Exposed>) -> Result<Verifier, (&'static str, String)> {
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

/// The specification of a source, with placeholders for its secrets.
fn spec(hub: &Server, source: &domain::source::Source) -> SourceSpec {
    SourceSpec {
        name: source.name.as_str().into(),
        verify: Some(shown_verify(hub, source)),
        event_type: source.event_type.clone().into(),
        event_id: source.event_id.clone().map(Into::into),
        enabled: source.enabled,
    }
}

/// The verification of a source in clear text; `None` if it can't be decrypted.
pub(crate) fn opened(hub: &Server, source: &domain::source::Source) -> Option<Verify<Exposed>> {
    let opened = hub.keyring.unseal(&source.proof, &rotate::source(&source.name))?;
    serde_json::from_slice(&opened).ok()
}

fn shown_verify(hub: &Server, source: &domain::source::Source) -> Verify<WriteOnly> {
    opened(hub, source).map_or(Verify::Unreadable, |verify| verify.map(|_| WriteOnly::Keep))
}
