//! Notification channels.

use serde::{Deserialize, Serialize};

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
    Webhook {
        /// Its URL. The hub returns it without its path, which often contains a secret
        #[cfg_attr(feature = "schema", schemars(length(min = 1), extend("x-form" = {"placeholder": "https://example.com/alerts"})))]
        url: String,
        /// Signing secret of Standard Webhooks: `whsec_` and base64
        #[serde(default)]
        secret: Option<S>,
    },
    /// An email
    Email {
        /// The mail server
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        host: String,
        /// Default 587, 465 or 25, depending on `tls`
        #[serde(default)]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 65_535)))]
        port: Option<u16>,
        /// How the connection is encrypted
        #[serde(default)]
        #[cfg_attr(feature = "schema", schemars(extend("default" = "starttls")))]
        tls: Option<TlsMode>,
        /// The user
        #[serde(default)]
        username: Option<String>,
        /// The password
        #[serde(default)]
        password: Option<S>,
        /// Email address, such as `duty@example.com`
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        from: String,
        /// Email addresses of the receivers
        #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 50), inner(length(min = 1))))]
        to: Vec<String>,
        /// Custom certificate authority in PEM, trusted beside the public ones
        #[serde(default)]
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
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"type": "webhook", "url": "https://example.com/alerts"})))]
#[serde(rename_all = "camelCase")]
pub struct AlertChannelSpec {
    /// Lower-case letters, digits and inner hyphens; it can't be changed
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
    #[serde(flatten)]
    pub settings: Option<ChannelSettings<WriteOnly>>,
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
