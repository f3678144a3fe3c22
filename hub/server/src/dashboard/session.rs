//! Who is logged in.
//!
//! A session is a cookie that only this hub can read or make: the hash of the key that somebody has logged in with, sealed like
//! any other secret. Nothing is kept of it here, so it outlives a restart; and since the key is looked up with each request, a
//! key that is taken back ends its sessions at once. What is kept is which sessions somebody has [ended](super::ended).

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use minijinja::Value;
use seawall_hub_core::domain::key::{Key, Scope};
use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::domain::time::Millis;
use sha2::{Digest, Sha256};

use super::ended::SessionHash;
use super::{Dashboard, PageError};

pub(super) const COOKIE: &str = "seawall_session";
const FLASH: &str = "seawall_flash";
/// For whom a session is sealed.
const OWNER: &str = "dashboard session";
/// The duration of a session in seconds: a working day.
pub(super) const LASTS: i64 = 12 * 3_600;
/// What is said once is no longer.
const FLASH_MAX: usize = 500;

/// Somebody who is logged in, and the request that they make.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) key: Arc<Key>,
    csrf: String,
    path: String,
    flash: Option<String>,
    /// Where the hub is, as whoever asks sees it.
    origin: String,
    hash: SessionHash,
    until: Millis,
}

impl Session {
    /// The name of the key.
    pub(super) fn name(&self) -> &str {
        self.key.name.as_str()
    }

    /// What forms have to bring along, so that no other site can send them.
    pub(super) fn csrf(&self) -> &str {
        &self.csrf
    }

    /// The page that is asked for, with its query.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// What was said about the last action, to be shown once.
    pub(super) fn flash(&self) -> Option<&str> {
        self.flash.as_deref()
    }

    /// The address of the hub, as this browser knows it: for what is shown to be copied.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// What the key may do, by the words of its scopes: a page shows no action that would be refused.
    pub(super) fn may(&self) -> Value {
        let pair = |scope: Scope| (scope.word(), self.key.scopes.allow(scope));
        Value::from_pairs(Scope::ALL.into_iter().map(pair))
    }

    /// Whether the key may do everything.
    pub(super) fn is_admin(&self) -> bool {
        self.key.scopes.allow(Scope::Admin)
    }

    /// Whether it is still good: not over, not ended by somebody, and its key not taken back.
    pub(super) fn is_good(&self, dashboard: &Dashboard) -> bool {
        dashboard.hub.now() < self.until
            && !dashboard.ended.has(&self.hash, self.until)
            && dashboard.hub.registry.key_with(&self.key.hash).is_some()
    }

    /// What is remembered of it when it is ended, and until when it would have lasted.
    pub(super) fn end(&self) -> (SessionHash, Millis) {
        (self.hash.clone(), self.until)
    }

    /// The same session for another page, as the page would be asked for.
    pub(super) fn at(&self, path: &str) -> Self {
        Session { path: path.to_owned(), flash: None, ..self.clone() }
    }
}

impl FromRequestParts<Arc<Dashboard>> for Session {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, dashboard: &Arc<Dashboard>) -> Result<Self, PageError> {
        // Rendered within the process, for somebody whose session was looked at already.
        if let Some(session) = parts.extensions.get::<Session>() {
            return Ok(session.clone());
        }
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let nobody = || PageError::NobodyThere { to: path.clone() };
        let cookie = cookie(&parts.headers, COOKIE).ok_or_else(nobody)?;
        let (key, until) = opened(dashboard, cookie).ok_or_else(nobody)?;
        let flash = self::cookie(&parts.headers, FLASH).and_then(said);
        let (csrf, hash, origin) = (csrf(cookie), SessionHash::of(cookie), origin(&parts.headers));
        let session = Session { key, csrf, path: path.clone(), flash, origin, hash, until };
        Some(session).filter(|session| session.is_good(dashboard)).ok_or_else(nobody)
    }
}

/// What does not look like a host is none: it is put into commands that people copy.
fn origin(headers: &HeaderMap) -> String {
    let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_host = |host: &&str| {
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte))
    };
    let host = said("host").filter(is_host).unwrap_or("localhost:8480");
    let scheme = said("x-forwarded-proto").filter(|scheme| *scheme == "https").unwrap_or("http");
    format!("{scheme}://{host}")
}

/// The key of a session, and until when it lasts.
fn opened(dashboard: &Dashboard, cookie: &str) -> Option<(Arc<Key>, Millis)> {
    let sealed = SealedSecret(URL_SAFE_NO_PAD.decode(cookie).ok()?);
    let opened = dashboard.hub.keyring.unseal(&sealed, OWNER)?;
    let (until, hash) = opened.split_first_chunk::<8>()?;
    let until = Millis(i64::from_be_bytes(*until));
    Some((dashboard.hub.registry.key_with(hash.try_into().ok()?)?, until))
}

/// A new session for the key with this hash.
pub(super) fn made(dashboard: &Dashboard, hash: &[u8; 32]) -> Option<String> {
    let until = dashboard.hub.now().0 + LASTS * 1_000;
    let mut plain = until.to_be_bytes().to_vec();
    plain.extend_from_slice(hash);
    Some(URL_SAFE_NO_PAD.encode(dashboard.hub.keyring.seal(&plain, OWNER)?.0))
}

/// Only the owner of the cookie knows it.
fn csrf(cookie: &str) -> String {
    URL_SAFE_NO_PAD.encode(&Sha256::digest(format!("csrf {cookie}"))[..18])
}

fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(';')).find_map(|pair| {
        let (known, value) = pair.trim().split_once('=')?;
        (known == name).then_some(value)
    })
}

/// Says something on the next page.
pub(super) fn flash(response: &mut Response, text: &str) {
    let text: String = text.chars().take(FLASH_MAX).collect();
    set(
        response,
        &format!("{FLASH}={}; Path=/; HttpOnly; SameSite=Lax; Max-Age=60", URL_SAFE_NO_PAD.encode(text)),
    );
}

fn said(cookie: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(cookie).ok()?).ok()
}

pub(super) fn forget_flash(response: &mut Response) {
    set(response, &format!("{FLASH}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"));
}

/// `secure`, if the browser talks to us over TLS: then the cookie never travels without it.
pub(super) fn begin(response: &mut Response, session: &str, secure: bool) {
    let secure = if secure { "; Secure" } else { "" };
    set(response, &format!("{COOKIE}={session}; Path=/; HttpOnly; SameSite=Lax; Max-Age={LASTS}{secure}"));
}

pub(super) fn end(response: &mut Response) {
    set(response, &format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"));
}

fn set(response: &mut Response, cookie: &str) {
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}
