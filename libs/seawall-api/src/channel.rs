//! Notification channels.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::secret::SecretText;
use crate::word::words;
use crate::{Name, Timestamp, WriteOnly};

words! {
    /// How a mail server is encrypted.
    #[derive(Default)]
    TlsMode {
        /// The connection is upgraded.
        #[default]
        Starttls = "starttls",
        /// The connection is encrypted from its beginning.
        Implicit = "implicit",
        /// The connection is not encrypted.
        None = "none",
    }
}

/// The settings of a channel by its type
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ChannelSettings"))]
#[serde(tag = "type", rename_all = "camelCase", bound = "S: SecretText")]
pub enum ChannelSettings<S> {
    /// The log of the hub, which is always notified
    #[cfg_attr(feature = "schema", schemars(extend("readOnly" = true)))]
    Log,
    /// A webhook
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "Webhook"})))]
    Webhook {
        /// Its URL. The hub returns it without its path, which often contains a secret
        #[cfg_attr(feature = "schema", schemars(extend("format" = "alert-url", "x-form" = {"label": "URL", "hint": "shown without its path; a private address needs the startup option --allow-egress", "placeholder": "https://example.com/alerts", "keep": true, "wide": true})))]
        url: String,
        /// Signing secret of Standard Webhooks: `whsec_` and base64
        #[serde(default)]
        #[cfg_attr(feature = "schema", schemars(schema_with = "removable_secret", extend("format" = "webhook-secret")))]
        secret: Option<S>,
    },
    /// An email
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "Email"})))]
    Email {
        /// The mail server
        #[cfg_attr(feature = "schema", schemars(extend("format" = "host", "x-form" = {"label": "Server", "hint": "a private address needs the startup option --allow-egress", "placeholder": "smtp.example.com"})))]
        host: String,
        /// Default 587, 465 or 25, depending on `tls`
        #[serde(default)]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 65_535), extend("x-always" = true, "x-form" = {"hint": "empty for the default of the TLS mode", "placeholder": "587"})))]
        port: Option<u16>,
        /// How the connection is encrypted
        #[serde(default)]
        #[cfg_attr(feature = "schema", schemars(extend("default" = "starttls", "x-always" = true, "x-form" = {"label": "TLS", "hint": "", "labels": {"starttls": "STARTTLS", "implicit": "implicit TLS"}})))]
        tls: Option<TlsMode>,
        /// The user
        #[serde(default)]
        #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"hint": "empty for no authentication"})))]
        username: Option<String>,
        /// The password
        #[serde(default)]
        #[cfg_attr(feature = "schema", schemars(schema_with = "removable_secret", extend("format" = "filled", "x-form" = {"hint": ""})))]
        password: Option<S>,
        /// Email address, such as `duty@example.com`
        #[cfg_attr(feature = "schema", schemars(length(min = 1), email, extend("x-form" = {"hint": "", "placeholder": "hub@example.com"})))]
        from: String,
        /// Email addresses of the receivers
        #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 50), inner(length(min = 1), email), extend("x-form" = {"hint": "email addresses", "placeholder": "duty@example.com"})))]
        to: Vec<String>,
        /// Custom certificate authority in PEM, trusted beside the public ones
        #[serde(default)]
        #[cfg_attr(feature = "schema", schemars(extend("format" = "certificate", "x-form" = {"label": "Certificate authority", "widget": "lines", "hint": "PEM; trusted beside the public ones"})))]
        ca: Option<String>,
    },
}

impl<S> ChannelSettings<S> {
    /// The word of its type, as on the wire.
    #[must_use]
    pub fn r#type(&self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Webhook { .. } => "webhook",
            Self::Email { .. } => "email",
        }
    }
}

/// A notification channel
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"type": "webhook", "url": "https://example.com/alerts"}), example = serde_json::json!({"type": "email", "host": "smtp.example.com", "from": "hub@example.com", "to": ["duty@example.com"]}), extend("x-ignored" = ["version"], "x-form" = {"label": "Destination"})))]
#[serde(rename_all = "camelCase")]
pub struct AlertChannelSpec {
    /// Lower-case letters, digits and inner hyphens; it can't be changed
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"placeholder": "duty"})))]
    pub name: Name,
    /// Its type and its settings.
    #[serde(flatten)]
    pub settings: ChannelSettings<WriteOnly>,
}

/// A notification channel as the hub returns it
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AlertChannel {
    /// Its name
    pub name: Name,
    /// Increases with every change; also in the header `ETag`
    pub version: u64,
    /// The time of the last change
    pub changed_at: Option<Timestamp>,
    /// Its type and its settings; `None` if they can't be decrypted.
    #[serde(flatten, serialize_with = "settings_or_null")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "settings_or_null_schema"))]
    pub settings: Option<ChannelSettings<WriteOnly>>,
}

/// Settings that can't be decrypted have the type null.
#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn settings_or_null<S: Serializer>(
    settings: &Option<ChannelSettings<WriteOnly>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if let Some(settings) = settings {
        return settings.serialize(serializer);
    }
    let mut fields = serializer.serialize_map(Some(1))?;
    fields.serialize_entry("type", &())?;
    fields.end()
}

#[cfg(feature = "schema")]
fn settings_or_null_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = <ChannelSettings<WriteOnly> as schemars::JsonSchema>::json_schema(generator);
    if let Some(serde_json::Value::Array(cases)) = schema.get_mut("oneOf") {
        cases.push(serde_json::json!({
            "type": "object", "description": "Settings that can't be decrypted", "required": ["type"],
            "properties": {"type": {"type": "null"}},
        }));
    }
    schema
}

/// The schema of a secret that null removes.
#[cfg(feature = "schema")]
fn removable_secret(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["string", "null"], "writeOnly": true, "x-empty": "null removes it"})
}

/// The result of a test message
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AlertChannelTested {
    /// Message id
    pub message: String,
    /// True if the receiver accepted it
    pub sent: bool,
    /// Response of the receiver, or the error
    pub said: String,
    /// The duration in milliseconds
    pub took_ms: u64,
}
