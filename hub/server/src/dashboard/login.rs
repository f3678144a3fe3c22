//! Logging in with a key, and out again.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use minijinja::context;
use seawall_hub_core::domain::key::Scope;

use super::guard::leads_here;
use super::session::{self, Session};
use super::{Dashboard, Shown, assets, html};
use crate::http::key_hash;
use crate::http::query::pairs_of;

pub(super) async fn page(State(dashboard): State<Arc<Dashboard>>, RawQuery(query): RawQuery) -> Shown {
    let to = pairs_of(query.as_deref()).into_iter().find(|(name, _)| name == "to").map(|(_, to)| to);
    shown(&dashboard, StatusCode::OK, to.as_deref(), None)
}

fn shown(dashboard: &Dashboard, status: StatusCode, to: Option<&str>, wrong: Option<&str>) -> Shown {
    let what = context! { to => to.unwrap_or("/"), wrong, assets => assets::names() };
    Ok(html(status, dashboard.render("login.html", what)?, false))
}

/// The key is looked up by its hash, so that the time it takes says nothing about it.
pub(super) async fn login(State(dashboard): State<Arc<Dashboard>>, headers: HeaderMap, body: Bytes) -> Shown {
    let (mut key, mut to) = (String::new(), None);
    for (name, value) in pairs_of(Some(&String::from_utf8_lossy(&body))) {
        match &*name {
            "key" => key = value.trim().to_owned(),
            "to" => to = Some(value),
            _ => {}
        }
    }
    let hash = key_hash(&key);
    let wrong = |word| shown(&dashboard, StatusCode::UNAUTHORIZED, to.as_deref(), Some(word));
    let Some(known) = dashboard.hub.key_with(&hash) else {
        return wrong("No such key. It may have been taken back, or something is missing at its end.");
    };
    if !known.scopes.allow(Scope::Read) {
        return wrong("This key may not read. Use one with the scope `read`.");
    }
    let Some(made) = session::made(&dashboard, &hash) else {
        return wrong("The hub could not make a session; its log says why.");
    };
    let to = to.as_deref().filter(|to| leads_here(to));
    let mut response = Redirect::to(to.unwrap_or("/")).into_response();
    let secure = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    session::begin(&mut response, &made, secure);
    Ok(response)
}

pub(super) async fn logout(session: Session, body: Bytes) -> Response {
    let token = pairs_of(Some(&String::from_utf8_lossy(&body))).into_iter().find(|(name, _)| name == "_csrf");
    if token.is_none_or(|(_, token)| token != session.csrf()) {
        return Redirect::to("/").into_response();
    }
    let mut response = Redirect::to("/login").into_response();
    session::end(&mut response);
    response
}
