//! How the hub shows who it is to a service: what people write, what is kept, and what is shown of it.
//!
//! Kept as JSON, sealed as a whole. Shown without what is secret: that can be written and never read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use seawall_http::auth::{BadAuth, Hmac, OAuth2, Webhook};
use seawall_http::{Auth, Secret};
use serde_json::{Value, json};

use crate::http::fields::Fields;

/// How the hub shows who it is.
#[derive(Clone)]
pub(crate) enum Credentials {
    /// `Authorization: Bearer …`
    Bearer(Secret),
    /// `Authorization: Basic …`
    Basic(String, Secret),
    /// A header with a key in it.
    Header(String, Secret),
    /// A signature of the body in a header.
    Hmac {
        /// The header.
        header: String,
        /// What stands before the signature.
        prefix: String,
        /// In base 64, and not in hexadecimal digits.
        base64: bool,
        /// The key.
        secret: Secret,
    },
    /// Signed by Standard Webhooks; the first key signs, and so do the others while they are being changed.
    Webhook(Vec<Secret>),
    /// A token from a token server.
    OAuth2 {
        /// The token server.
        url: String,
        /// Who the hub is there.
        client: String,
        /// Its password there.
        secret: Secret,
        /// What it asks for.
        scope: Option<String>,
    },
}

const TYPES: &str = "`type` is one of bearer, basic, header, hmac, webhook, oauth2";

impl Credentials {
    /// As somebody has written them. What is wrong is told to `fields`, under `auth.`.
    pub(crate) fn read(written: Value, fields: &mut Fields) -> Option<Self> {
        let mut auth = Fields::new(written);
        let kind = auth.needed("type");
        let (made, known) = match &*kind {
            "bearer" => (Some(Credentials::Bearer(secret(&mut auth))), "type, secret"),
            "basic" => {
                let user = auth.given("username");
                (Some(Credentials::Basic(user, secret(&mut auth))), "type, username, secret")
            }
            "header" => {
                let name = auth.needed("name");
                (Some(Credentials::Header(name, secret(&mut auth))), "type, name, secret")
            }
            "hmac" => {
                let (header, prefix) = (auth.needed("header"), auth.text("prefix").unwrap_or_default());
                let base64 = match auth.text("encoding").as_deref() {
                    None | Some("hex") => false,
                    Some("base64") => true,
                    Some(_) => {
                        auth.wrong("encoding", "it is `hex` or `base64`");
                        false
                    }
                };
                let made = Credentials::Hmac { header, prefix, base64, secret: secret(&mut auth) };
                (Some(made), "type, header, prefix, encoding, secret")
            }
            "webhook" => {
                let former = auth.texts("formerSecrets");
                let keys = std::iter::once(secret(&mut auth)).chain(former.into_iter().map(Secret::new));
                (Some(Credentials::Webhook(keys.collect())), "type, secret, formerSecrets")
            }
            "oauth2" => {
                let (url, client) = (auth.needed("tokenUrl"), auth.needed("clientId"));
                let scope = auth.text("scope");
                let made = Credentials::OAuth2 { url, client, secret: secret(&mut auth), scope };
                (Some(made), "type, tokenUrl, clientId, secret, scope")
            }
            "" => (None, "type"),
            _ => {
                auth.wrong("type", TYPES);
                // What else is wrong can't be known.
                auth.forget();
                (None, "type")
            }
        };
        let problems = auth.end(known);
        let fine = problems.is_empty();
        for problem in problems {
            fields.wrong(&format!("auth.{}", problem.field), problem.reason);
        }
        let made = made.filter(|_| fine)?;
        // What the client would refuse later is refused now.
        match made.auth() {
            Ok(_) => Some(made),
            Err(reason) => {
                fields.wrong("auth", reason);
                None
            }
        }
    }

    /// As the client uses them.
    pub(crate) fn auth(&self) -> Result<Auth, String> {
        let said = |error: BadAuth| error.to_string();
        Ok(match self {
            Credentials::Bearer(secret) => Auth::bearer(secret).map_err(said)?,
            Credentials::Basic(user, secret) => Auth::basic(user, secret).map_err(said)?,
            Credentials::Header(name, secret) => Auth::header(name, secret).map_err(said)?,
            Credentials::Hmac { header, prefix, base64, secret } => {
                let hmac = Hmac::new(header, secret).map_err(said)?.prefix(prefix.clone());
                Auth::hmac(if *base64 { hmac.base64() } else { hmac })
            }
            Credentials::Webhook(keys) => Auth::webhook(Webhook::new(keys.clone()).map_err(said)?),
            Credentials::OAuth2 { url, client, secret, scope } => {
                let oauth = OAuth2::client_credentials(url, client, secret.clone());
                let oauth = oauth.map_err(|error| error.to_string())?;
                Auth::oauth2(match scope {
                    Some(scope) => oauth.scope(scope),
                    None => oauth,
                })
            }
        })
    }

    /// Every text by which somebody else could pass for the hub.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let text = |secret: &Secret| secret.expose().to_owned();
        match self {
            Credentials::Bearer(secret) | Credentials::Header(_, secret) => vec![text(secret)],
            Credentials::Basic(user, secret) => {
                vec![text(secret), STANDARD.encode(format!("{user}:{}", secret.expose()))]
            }
            Credentials::Hmac { secret, .. } | Credentials::OAuth2 { secret, .. } => vec![text(secret)],
            Credentials::Webhook(keys) => keys.iter().map(text).collect(),
        }
    }

    /// What may be shown: everything but what is secret.
    #[must_use]
    pub(crate) fn shown(&self) -> Value {
        let mut all = self.whole();
        if let Some(fields) = all.as_object_mut() {
            for secret in ["secret", "formerSecrets"] {
                if fields.contains_key(secret) {
                    fields.insert(secret.to_owned(), json!(HIDDEN));
                }
            }
        }
        all
    }

    /// With what is secret, to be sealed.
    #[must_use]
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.whole().to_string().into_bytes()
    }

    /// Back from what was sealed.
    #[must_use]
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut nobody = Fields::new(json!({}));
        Self::read(serde_json::from_slice(bytes).ok()?, &mut nobody)
    }

    fn whole(&self) -> Value {
        match self {
            Credentials::Bearer(secret) => json!({"type": "bearer", "secret": secret.expose()}),
            Credentials::Basic(user, secret) => {
                json!({"type": "basic", "username": user, "secret": secret.expose()})
            }
            Credentials::Header(name, secret) => {
                json!({"type": "header", "name": name, "secret": secret.expose()})
            }
            Credentials::Hmac { header, prefix, base64, secret } => json!({
                "type": "hmac", "header": header, "prefix": prefix, "encoding": if *base64 { "base64" } else { "hex" },
                "secret": secret.expose(),
            }),
            Credentials::Webhook(keys) => {
                let mut keys = keys.iter().map(Secret::expose);
                let (first, former) = (keys.next(), keys.collect::<Vec<_>>());
                json!({"type": "webhook", "secret": first, "formerSecrets": former})
            }
            Credentials::OAuth2 { url, client, secret, scope } => json!({
                "type": "oauth2", "tokenUrl": url, "clientId": client, "secret": secret.expose(), "scope": scope,
            }),
        }
    }
}

fn secret(fields: &mut Fields) -> Secret {
    let secret = fields.needed("secret");
    if secret == HIDDEN {
        fields.wrong(
            "secret",
            "this is what is shown in its place; say the secret, or leave `auth` out to keep it",
        );
    }
    Secret::new(secret)
}

/// What is shown in place of a secret.
pub(crate) const HIDDEN: &str = "…";

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({})", self.whole()["type"].as_str().unwrap_or_default())
    }
}
