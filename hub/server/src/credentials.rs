//! Credentials of services: encrypted as a whole, used by the HTTP client, and shown without their secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use seawall_api::{Auth, Exposed, FormerSecrets, SignatureEncoding, WriteOnly};
use seawall_http::Secret;
use seawall_http::auth::{BadAuth, Hmac, OAuth2, Webhook};

/// The reason for a secret that is only its placeholder.
pub(crate) const PLACEHOLDER: &str =
    "must not be the placeholder `…`; set the secret, or omit `auth` to keep it";

/// The credentials with the secrets that were written; `None` if one of them is the placeholder.
pub(crate) fn exposed(auth: Auth<WriteOnly>) -> Option<Auth<Exposed>> {
    let mut is_whole = true;
    let auth = auth.map(|secret| match secret {
        WriteOnly::Set(text) => Exposed(text),
        WriteOnly::Keep => {
            is_whole = false;
            Exposed(String::new())
        }
    });
    is_whole.then_some(auth)
}

/// The credentials in bytes that were decrypted; `None` if this version can't read them.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Auth<Exposed>> {
    serde_json::from_slice(bytes).ok().filter(|auth| *auth != Auth::Unreadable)
}

/// The credentials as the HTTP client uses them.
pub(crate) fn client_auth(auth: &Auth<Exposed>) -> Result<seawall_http::Auth, String> {
    let secret = |Exposed(text): &Exposed| Secret::new(text.clone());
    let said = |error: BadAuth| error.to_string();
    Ok(match auth {
        Auth::Bearer { secret: token } => seawall_http::Auth::bearer(&secret(token)).map_err(said)?,
        Auth::Basic { username, secret: password } => {
            seawall_http::Auth::basic(username, &secret(password)).map_err(said)?
        }
        Auth::Header { name, secret: key } => seawall_http::Auth::header(name, &secret(key)).map_err(said)?,
        Auth::Hmac { header, prefix, encoding, secret: key } => {
            let hmac = Hmac::new(header, &secret(key)).map_err(said)?.prefix(prefix.clone());
            seawall_http::Auth::hmac(match encoding {
                SignatureEncoding::Base64 => hmac.base64(),
                _ => hmac,
            })
        }
        Auth::Webhook { secret: key, former_secrets: FormerSecrets(former) } => {
            let keys: Vec<Secret> = std::iter::once(key).chain(former).map(secret).collect();
            seawall_http::Auth::webhook(Webhook::new(keys).map_err(said)?)
        }
        Auth::OAuth2 { token_url, client_id, scope, secret: password } => {
            let oauth = OAuth2::client_credentials(token_url, client_id, secret(password));
            let oauth = oauth.map_err(|error| error.to_string())?;
            seawall_http::Auth::oauth2(match scope {
                Some(scope) => oauth.scope(scope),
                None => oauth,
            })
        }
        Auth::Unreadable => return Err("the credentials can't be read".to_owned()),
    })
}

/// Every text by which somebody else could pass for the hub.
pub(crate) fn secrets(auth: &Auth<Exposed>) -> Vec<String> {
    let mut all = Vec::new();
    // The map is used to visit them.
    let _ = auth.clone().map(|Exposed(text)| all.push(text));
    if let Auth::Basic { username, secret: Exposed(password) } = auth {
        all.push(STANDARD.encode(format!("{username}:{password}")));
    }
    all
}
