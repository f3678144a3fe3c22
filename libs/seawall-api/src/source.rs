//! Webhook sources.

use serde::{Deserialize, Serialize};

use crate::rule::yes;
use crate::secret::{SecretText, SignatureEncoding, WriteOnly};
use crate::{Name, Template, Timestamp};

/// How webhooks are verified. Any of the secrets may match, so that they can be rotated
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Verify", example = serde_json::json!({"type": "hmac", "header": "x-signature", "secrets": ["what both know"]})))]
#[serde(tag = "type", rename_all = "kebab-case", bound = "S: SecretText")]
pub enum Verify<S> {
    /// `Authorization: Bearer …`
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "Bearer token"})))]
    Bearer {
        /// The tokens.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        secrets: Vec<S>,
    },
    /// Signature of Standard Webhooks
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "Standard Webhooks"})))]
    StandardWebhooks {
        /// The keys.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        secrets: Vec<S>,
    },
    /// Signature of GitHub
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "GitHub"})))]
    Github {
        /// The keys.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        secrets: Vec<S>,
    },
    /// Signature of Stripe
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "Stripe"})))]
    Stripe {
        /// The keys.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        secrets: Vec<S>,
    },
    /// Signature of Slack
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "Slack"})))]
    Slack {
        /// The keys.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        secrets: Vec<S>,
    },
    /// HMAC signature of the body in a header
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "HMAC signature of the body"})))]
    Hmac {
        /// The keys.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        secrets: Vec<S>,
        /// Header with the signature
        #[cfg_attr(feature = "schema", schemars(length(min = 1), extend("x-form" = {"placeholder": "x-signature"})))]
        header: String,
        /// Prefix of the signature, such as `sha256=`
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefix: Option<String>,
        /// The encoding of the signature
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(extend("default" = "hex")))]
        encoding: Option<SignatureEncoding>,
    },
    /// A stored verification that can't be decrypted, or of a type that this version does not know
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(extend("readOnly" = true)))]
    Unreadable,
}

impl<S> Verify<S> {
    /// The word of its type, as on the wire.
    #[must_use]
    pub fn r#type(&self) -> &'static str {
        match self {
            Self::Bearer { .. } => "bearer",
            Self::StandardWebhooks { .. } => "standard-webhooks",
            Self::Github { .. } => "github",
            Self::Stripe { .. } => "stripe",
            Self::Slack { .. } => "slack",
            Self::Hmac { .. } => "hmac",
            Self::Unreadable => "unreadable",
        }
    }

    /// Its secrets.
    #[must_use]
    pub fn secrets(&self) -> &[S] {
        match self {
            Self::Bearer { secrets }
            | Self::StandardWebhooks { secrets }
            | Self::Github { secrets }
            | Self::Stripe { secrets }
            | Self::Slack { secrets }
            | Self::Hmac { secrets, .. } => secrets,
            Self::Unreadable => &[],
        }
    }

    /// The same verification with every secret replaced by what `change` makes of it.
    pub fn map<T>(self, change: impl FnMut(S) -> T) -> Verify<T> {
        let all = |secrets: Vec<S>| secrets.into_iter().map(change).collect();
        match self {
            Self::Bearer { secrets } => Verify::Bearer { secrets: all(secrets) },
            Self::StandardWebhooks { secrets } => Verify::StandardWebhooks { secrets: all(secrets) },
            Self::Github { secrets } => Verify::Github { secrets: all(secrets) },
            Self::Stripe { secrets } => Verify::Stripe { secrets: all(secrets) },
            Self::Slack { secrets } => Verify::Slack { secrets: all(secrets) },
            Self::Hmac { secrets, header, prefix, encoding } => {
                Verify::Hmac { secrets: all(secrets), header, prefix, encoding }
            }
            Self::Unreadable => Verify::Unreadable,
        }
    }
}

/// A source of webhooks
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({
    "name": "github", "verify": {"type": "github", "secrets": ["what GitHub has too"]},
    "eventType": "github.{{ headers['x-github-event'] }}",
})))]
#[serde(rename_all = "camelCase")]
pub struct SourceSpec {
    /// Lower-case letters, digits and inner hyphens; it can't be changed. Webhooks are sent to the path `/in/` and this name
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"placeholder": "github"})))]
    pub name: Name,
    /// Required for a new source; omit it to keep the current verification, because secrets can't be read
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-always" = true, "x-form" = {"label": "Verification", "required": true})))]
    pub verify: Option<Verify<WriteOnly>>,
    /// Template of the event type over `headers` and `data`
    #[cfg_attr(feature = "schema", schemars(extend("minLength" = 1, "x-form" = {"placeholder": "github.{{ headers['x-github-event'] }}"})))]
    pub event_type: Template,
    /// Template of the event id; defaults to the sender's id, or a hash of the body
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "Event ID", "placeholder": "{{ data.id }}"})))]
    pub event_id: Option<Template>,
    /// Webhooks are rejected while it is false
    #[serde(default = "yes")]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "State", "hint": "", "labels": {"true": "enabled", "false": "disabled: webhooks are rejected"}})))]
    pub enabled: bool,
}

impl SourceSpec {
    /// A source with its verification.
    pub fn new(name: impl Into<Name>, verify: Verify<WriteOnly>, event_type: impl Into<Template>) -> Self {
        let (name, event_type) = (name.into(), event_type.into());
        Self { name, verify: Some(verify), event_type, event_id: None, enabled: true }
    }
}

/// A source as the hub returns it
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// What people have written.
    #[serde(flatten)]
    pub spec: SourceSpec,
    /// Increases with every change; also in the header `ETag`
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub version: u64,
    /// The time of the last change
    pub changed_at: Timestamp,
    /// Path for its webhooks
    pub path: String,
}
