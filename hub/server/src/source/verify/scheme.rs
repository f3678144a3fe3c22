//! The ways in which senders prove who they are.

use axum::http::header::HeaderName;

use super::SchemeError;

/// How the requests of a source are signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// A token, `Authorization: Bearer …`. Whoever sees one request has it.
    Bearer,
    /// An HMAC of the body, as many have it.
    Hmac(HmacFormat),
    /// [Standard Webhooks](https://www.standardwebhooks.com), with symmetric keys.
    StandardWebhooks,
    /// As GitHub does.
    GitHub,
    /// As Stripe does.
    Stripe,
    /// As Slack does.
    Slack,
}

/// Where an HMAC of the body is, and how it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HmacFormat {
    /// The header with the signature.
    pub header: HeaderName,
    /// What stands before the signature, such as `sha256=`; may be empty.
    pub prefix: String,
    /// How the bytes are written.
    pub encoding: Encoding,
}

/// How the bytes of a signature are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encoding {
    /// 64 hexadecimal digits.
    #[default]
    Hex,
    /// Base 64 in its usual alphabet, padded.
    Base64,
}

/// What can be said about a scheme beside its name: all of it is for `hmac`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SchemeSettings {
    /// Must be there for `hmac`.
    pub header: Option<String>,
    /// None if not said.
    pub prefix: Option<String>,
    /// `hex` or `base64`; hexadecimal if not said.
    pub encoding: Option<String>,
}

impl Scheme {
    /// The scheme of this name. An unknown one is a mistake and never "no check".
    pub fn named(name: &str, settings: &SchemeSettings) -> Result<Self, SchemeError> {
        let scheme = match name {
            "hmac" => return plain(settings).map(Scheme::Hmac),
            "bearer" => Scheme::Bearer,
            "standard-webhooks" => Scheme::StandardWebhooks,
            "github" => Scheme::GitHub,
            "stripe" => Scheme::Stripe,
            "slack" => Scheme::Slack,
            _ => return Err(SchemeError::Scheme),
        };
        let said =
            [("header", &settings.header), ("prefix", &settings.prefix), ("encoding", &settings.encoding)];
        match said.into_iter().find(|(_, value)| value.is_some()) {
            Some((setting, _)) => Err(SchemeError::NotForThis(setting)),
            None => Ok(scheme),
        }
    }

    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Scheme::Bearer => "bearer",
            Scheme::Hmac(_) => "hmac",
            Scheme::StandardWebhooks => "standard-webhooks",
            Scheme::GitHub => "github",
            Scheme::Stripe => "stripe",
            Scheme::Slack => "slack",
        }
    }
}

fn plain(settings: &SchemeSettings) -> Result<HmacFormat, SchemeError> {
    let header = settings.header.as_deref().unwrap_or_default();
    let header = HeaderName::from_bytes(header.as_bytes()).map_err(|_| SchemeError::Header)?;
    let prefix = settings.prefix.clone().unwrap_or_default();
    if !prefix.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') || prefix.starts_with(' ') {
        return Err(SchemeError::Prefix);
    }
    let encoding = match settings.encoding.as_deref() {
        None | Some("hex") => Encoding::Hex,
        Some("base64") => Encoding::Base64,
        Some(_) => return Err(SchemeError::Encoding),
    };
    Ok(HmacFormat { header, prefix, encoding })
}
