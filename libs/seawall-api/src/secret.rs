//! Secrets, and the credentials that contain them.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::word::{inline_schema, words};

/// What the hub shows in place of a secret.
pub const HIDDEN: &str = "…";

/// A secret on the wire: it can be written and is never returned.
///
/// The hub shows [`HIDDEN`] in its place, which is read as [`WriteOnly::Keep`]. A client that writes it back keeps the secret.
#[derive(Clone, PartialEq, Eq)]
pub enum WriteOnly {
    /// The secret stays as it is.
    Keep,
    /// The secret becomes this text.
    Set(String),
}

/// A secret in clear text. The hub has it only inside of the bytes that it encrypts.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exposed(pub String);

/// A secret in one of its two forms.
pub trait SecretText: Clone + Serialize + DeserializeOwned {
    /// The form that stands for a hidden secret, if there is one.
    const PLACEHOLDER: Option<Self>;

    /// True for the form that stands for a hidden secret.
    fn is_placeholder(&self) -> bool;
}

impl SecretText for WriteOnly {
    const PLACEHOLDER: Option<Self> = Some(Self::Keep);

    fn is_placeholder(&self) -> bool {
        *self == Self::Keep
    }
}

impl SecretText for Exposed {
    const PLACEHOLDER: Option<Self> = None;

    fn is_placeholder(&self) -> bool {
        false
    }
}

impl From<&str> for WriteOnly {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for WriteOnly {
    fn from(text: String) -> Self {
        if text == HIDDEN { Self::Keep } else { Self::Set(text) }
    }
}

impl Serialize for WriteOnly {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Keep => HIDDEN,
            Self::Set(text) => text,
        })
    }
}

impl<'de> Deserialize<'de> for WriteOnly {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

impl fmt::Debug for WriteOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Debug for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

inline_schema! { WriteOnly: {"type": "string", "writeOnly": true, "minLength": 1, "description": "Write-only"} }

words! {
    /// The encoding of a signature.
    #[derive(Default)]
    SignatureEncoding {
        /// Hexadecimal digits.
        #[default]
        Hex = "hex",
        /// Base 64.
        Base64 = "base64",
    }
}

/// How the hub authenticates to a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Auth", example = serde_json::json!({"type": "bearer", "secret": "what the service gave you"})))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase", bound = "S: SecretText")]
pub enum Auth<S> {
    /// `Authorization: Bearer …`
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "Bearer token"})))]
    Bearer {
        /// The token.
        secret: S,
    },
    /// `Authorization: Basic …`
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "Basic"})))]
    Basic {
        /// The user.
        username: String,
        /// The password.
        secret: S,
    },
    /// API key in a header
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "API key header"})))]
    Header {
        /// The name of the header.
        #[cfg_attr(feature = "schema", schemars(extend("format" = "filled", "x-form" = {"placeholder": "x-api-key"})))]
        name: String,
        /// The key.
        secret: S,
    },
    /// HMAC signature of the body in a header
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "HMAC signature of the body"})))]
    Hmac {
        /// The name of the header.
        #[cfg_attr(feature = "schema", schemars(extend("format" = "filled", "x-form" = {"placeholder": "x-signature"})))]
        header: String,
        /// Prefix of the signature, such as `sha256=`
        #[serde(default)]
        #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"placeholder": "sha256="})))]
        prefix: String,
        /// The encoding of the signature.
        #[serde(default)]
        encoding: SignatureEncoding,
        /// The key.
        secret: S,
    },
    /// Signature of Standard Webhooks
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "Standard Webhooks"})))]
    Webhook {
        /// The key: `whsec_` and base 64.
        secret: S,
        /// Previous secrets, which also sign during a rotation
        #[serde(default)]
        former_secrets: FormerSecrets<S>,
    },
    /// OAuth 2 client credentials
    #[serde(rename = "oauth2")]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "OAuth 2 client credentials"})))]
    OAuth2 {
        /// The URL of the token server.
        #[cfg_attr(feature = "schema", schemars(extend("format" = "filled", "x-form" = {"label": "Token URL"})))]
        token_url: String,
        /// The id of the client.
        #[cfg_attr(feature = "schema", schemars(extend("format" = "filled")))]
        client_id: String,
        /// The scope to request.
        #[serde(default)]
        scope: Option<String>,
        /// The secret of the client.
        secret: S,
    },
    /// Stored credentials that can't be decrypted, or of a type that this version does not know
    #[serde(rename = "unreadable", other)]
    #[cfg_attr(feature = "schema", schemars(extend("readOnly" = true)))]
    Unreadable,
}

impl Auth<WriteOnly> {
    /// A token in the header `Authorization`.
    pub fn bearer(token: impl Into<WriteOnly>) -> Self {
        Self::Bearer { secret: token.into() }
    }

    /// A user and a password in the header `Authorization`.
    pub fn basic(username: impl Into<String>, password: impl Into<WriteOnly>) -> Self {
        Self::Basic { username: username.into(), secret: password.into() }
    }

    /// An API key in a header.
    pub fn header(name: impl Into<String>, key: impl Into<WriteOnly>) -> Self {
        Self::Header { name: name.into(), secret: key.into() }
    }
}

impl<S> Auth<S> {
    /// The word of its type, as on the wire.
    #[must_use]
    pub fn r#type(&self) -> &'static str {
        match self {
            Self::Bearer { .. } => "bearer",
            Self::Basic { .. } => "basic",
            Self::Header { .. } => "header",
            Self::Hmac { .. } => "hmac",
            Self::Webhook { .. } => "webhook",
            Self::OAuth2 { .. } => "oauth2",
            Self::Unreadable => "unreadable",
        }
    }

    /// The same credentials with every secret replaced by what `change` makes of it.
    pub fn map<T>(self, mut change: impl FnMut(S) -> T) -> Auth<T> {
        match self {
            Self::Bearer { secret } => Auth::Bearer { secret: change(secret) },
            Self::Basic { username, secret } => Auth::Basic { username, secret: change(secret) },
            Self::Header { name, secret } => Auth::Header { name, secret: change(secret) },
            Self::Hmac { header, prefix, encoding, secret } => {
                Auth::Hmac { header, prefix, encoding, secret: change(secret) }
            }
            Self::Webhook { secret, former_secrets } => Auth::Webhook {
                secret: change(secret),
                former_secrets: FormerSecrets(former_secrets.0.into_iter().map(change).collect()),
            },
            Self::OAuth2 { token_url, client_id, scope, secret } => {
                Auth::OAuth2 { token_url, client_id, scope, secret: change(secret) }
            }
            Self::Unreadable => Auth::Unreadable,
        }
    }
}

impl Auth<Exposed> {
    /// What the hub shows of the credentials: everything but the secrets.
    #[must_use]
    pub fn hidden(self) -> Auth<WriteOnly> {
        let mut hidden = self.map(|_| WriteOnly::Keep);
        // Not even their number is shown.
        if let Auth::Webhook { former_secrets, .. } = &mut hidden {
            former_secrets.0 = vec![WriteOnly::Keep];
        }
        hidden
    }
}

/// A list of secrets, which is shown as one placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerSecrets<S>(pub Vec<S>);

impl<S> Default for FormerSecrets<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: SecretText> Serialize for FormerSecrets<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] if one.is_placeholder() => serializer.serialize_str(HIDDEN),
            secrets => secrets.serialize(serializer),
        }
    }
}

impl<'de, T: SecretText> Deserialize<'de> for FormerSecrets<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, bound = "S: SecretText")]
        enum Written<S> {
            List(Vec<S>),
            Text(String),
        }
        match (Written::deserialize(deserializer)?, T::PLACEHOLDER) {
            (Written::List(secrets), _) => Ok(Self(secrets)),
            (Written::Text(text), Some(placeholder)) if text == HIDDEN => Ok(Self(vec![placeholder])),
            (Written::Text(_), _) => Err(serde::de::Error::custom("must be a list of strings")),
        }
    }
}

#[cfg(feature = "schema")]
impl<S> schemars::JsonSchema for FormerSecrets<S> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FormerSecrets".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        match generator.contract().is_serialize() {
            true => schemars::json_schema!({"type": "string", "const": HIDDEN}),
            false => {
                schemars::json_schema!({"type": "array", "items": {"type": "string"}, "writeOnly": true})
            }
        }
    }
}
