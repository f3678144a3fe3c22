//! Logging in with a key, and out again.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use minijinja::context;
use seawall_hub_core::domain::key::Scope;
use seawall_hub_core::domain::time::Millis;

use super::guard::leads_here;
use super::session::{self, Session};
use super::{Dashboard, PageResult, assets, html};
use crate::http::key_hash;
use crate::http::query::pairs_of;
use crate::serve::PeerAddress;

pub(super) async fn page(State(dashboard): State<Arc<Dashboard>>, RawQuery(query): RawQuery) -> PageResult {
    let to = pairs_of(query.as_deref()).into_iter().find(|(name, _)| name == "to").map(|(_, to)| to);
    shown(&dashboard, StatusCode::OK, to.as_deref(), None)
}

fn shown(dashboard: &Dashboard, status: StatusCode, to: Option<&str>, wrong: Option<&str>) -> PageResult {
    let what = context! { to => to.unwrap_or("/"), wrong, assets => assets::names() };
    Ok(html(status, dashboard.render("login.html", what)?, false))
}

/// The key is looked up by its hash, so that the time it takes says nothing about it.
pub(super) async fn login(
    State(dashboard): State<Arc<Dashboard>>,
    peer: Option<Extension<PeerAddress>>,
    headers: HeaderMap,
    body: Bytes,
) -> PageResult {
    let (mut key, mut to) = (String::new(), None);
    for (name, value) in pairs_of(Some(&String::from_utf8_lossy(&body))) {
        match &*name {
            "key" => key = value.trim().to_owned(),
            "to" => to = Some(value),
            _ => {}
        }
    }
    let (peer, now) = (peer.map(|Extension(PeerAddress(address))| address), dashboard.hub.clock().now());
    // Looked at before the key: whoever has to wait does not learn whether it was a right one.
    if let Some(wait) = dashboard.throttle.wait(peer, now) {
        return too_many(&dashboard, to.as_deref(), wait);
    }
    let hash = key_hash(&key);
    let wrong = |word| shown(&dashboard, StatusCode::UNAUTHORIZED, to.as_deref(), Some(word));
    let Some(known) = dashboard.hub.registry.key_with(&hash) else {
        dashboard.throttle.wrong(peer, now);
        return wrong("Unknown key. It may have been revoked or copied incompletely.");
    };
    if !known.scopes.allow(Scope::Read) {
        return wrong("This key may not read. Use a key with the scope `read`.");
    }
    let Some(made) = session::made(&dashboard, &hash) else {
        return wrong("The hub could not create a session; its log has the reason.");
    };
    let to = to.as_deref().filter(|to| leads_here(to));
    let mut response = Redirect::to(to.unwrap_or("/")).into_response();
    let secure = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    session::begin(&mut response, &made, secure);
    Ok(response)
}

fn too_many(dashboard: &Dashboard, to: Option<&str>, wait: Duration) -> PageResult {
    let seconds = wait.as_secs() + 1;
    let word = format!("Too many unknown keys from your address. Try again in {seconds} seconds.");
    let mut response = shown(dashboard, StatusCode::TOO_MANY_REQUESTS, to, Some(&word))?;
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    Ok(response)
}

/// The cookie is taken away, and good no longer for whoever has a copy of it.
pub(super) async fn logout(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    body: Bytes,
) -> Response {
    let token = pairs_of(Some(&String::from_utf8_lossy(&body))).into_iter().find(|(name, _)| name == "_csrf");
    if token.is_none_or(|(_, token)| token != session.csrf()) {
        return Redirect::to("/").into_response();
    }
    let ((hash, until), now) = (session.end(), dashboard.hub.now());
    let latest = Millis(now.0 + session::LASTS * 1_000);
    let ending = dashboard.clone();
    let ended = tokio::task::spawn_blocking(move || ending.ended.end(hash, until, (now, latest))).await;
    if let Err(error) = ended.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
        let cause = format!("the session is ended, and would be good again after a restart: {error}");
        tracing::error!(target: "seawall", cause, action = "ManualReview", "[Dashboard][Logout] Failed!");
    }
    let mut response = Redirect::to("/login").into_response();
    session::end(&mut response);
    response
}
