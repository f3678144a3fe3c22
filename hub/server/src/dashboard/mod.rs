//! The dashboard: pages for people, over the same API that programs use.
//!
//! # Why does it ask the API, and not the hub?
//! A page asks the API inside the process, with the key of whoever has logged in, and shows what it answers. So the dashboard
//! can do nothing that the API can't, every scope and limit of a key holds on every page without another line of code, and what
//! somebody changes with a click is in the audit log like any other change. It also means that everything on the pages can be
//! had by a program.
//!
//! # How a page is live
//! Pages are rendered here, in HTML. A page keeps a stream of events open (`live`), over which it is told the page anew when
//! something on it has changed; a small script puts in what differs. Whoever looks at the same page with the same key shares one
//! rendering, so that many open dashboards cost little more than one.

mod act;
mod ask;
mod assets;
mod chart;
mod charts;
mod context;
mod ended;
mod error_page;
mod form;
mod guard;
mod live;
mod login;
mod pages;
mod session;
mod shared;
mod show;
mod throttle;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use minijinja::{Environment, Value, context};

use self::ended::EndedSessions;
pub(crate) use self::ended::end_all_sessions;
use self::error_page::PageError;
use self::session::Session;
use self::shared::SharedValues;
use self::throttle::LoginThrottle;
use crate::hub::Server;

/// The dashboard of one hub.
pub(crate) struct Dashboard {
    hub: Arc<Server>,
    /// The API, with keys and all.
    api: Router,
    templates: Environment<'static>,
    live: live::Renderings,
    /// The counts of the menu, by the hash of the key that sees them.
    menus: SharedValues<[u8; 32], Value>,
    ended: EndedSessions,
    throttle: LoginThrottle,
    /// The hub stops: streams of events have no end of their own.
    closing: Arc<AtomicBool>,
}

/// What a page is made of: the page, or why there is none.
type PageResult = Result<Response, PageError>;

impl Dashboard {
    /// The pages of a hub beside its API, until `closing` says that it stops.
    pub(crate) fn beside(api: Router, hub: Arc<Server>, closing: Arc<AtomicBool>) -> Router {
        let templates = show::templates();
        let (live, menus) = (live::Renderings::default(), SharedValues::default());
        let (ended, throttle) = (EndedSessions::open(&hub.folder, hub.now()), LoginThrottle::default());
        let dashboard =
            Arc::new(Dashboard { hub, api: api.clone(), templates, live, menus, ended, throttle, closing });
        let pages = pages::router().route("/live", get(live::stream)).route("/act", post(act::act));
        let pages = pages
            .route("/login", get(login::page).post(login::login))
            .route("/logout", post(login::logout))
            .route("/assets/{name}", get(assets::asset));
        let framed = axum::middleware::from_fn_with_state(dashboard.clone(), error_page::framed);
        pages.layer(axum::middleware::from_fn(guard::protect)).with_state(dashboard).merge(api).layer(framed)
    }

    /// A page within the frame that all pages have.
    async fn page_with(&self, status: StatusCode, session: &Session, name: &str, what: Value) -> PageResult {
        let frame = context! {
            who => session.name(), may => session.may(), csrf => session.csrf(), assets => assets::names(),
            path => session.path(), flash => session.flash(), origin => session.origin(),
            is_demo => self.hub.demo().is_some(), menu => self.menu(session).await, ..what
        };
        Ok(html(status, self.render(name, frame)?, session.flash().is_some()))
    }

    /// What the menu counts: open alerts, up to 100, and open dead letters; 0 for what the key may not see. All pages of a key
    /// share it for a moment, so that a page costs no more because of its menu.
    async fn menu(&self, session: &Session) -> Value {
        let (key, now) = (session.key.hash, self.hub.clock().now());
        if let Some(counts) = self.menus.fresh(&key, now) {
            return counts;
        }
        let count = async |path: &str, of: fn(&serde_json::Value) -> u64| {
            let answer = self.ask(session, Method::GET, path, None, None).await.ok();
            answer.map_or(0, |answer| of(answer.data()))
        };
        let alerts = "/api/v1/ops/alerts?state=open&page_size=100";
        let alerts = count(alerts, |page| page["alerts"].as_array().map_or(0, Vec::len) as u64).await;
        let letters = |overview: &serde_json::Value| overview["deadLetters"]["open"].as_u64().unwrap_or(0);
        let counts = context! { alerts, letters => count("/api/v1/ops/overview", letters).await };
        self.menus.keep(key, now, counts.clone());
        counts
    }

    fn render(&self, name: &str, what: Value) -> Result<String, PageError> {
        let made = self.templates.get_template(name).and_then(|template| template.render(what));
        made.map_err(|error| PageError::Broken(format!("{name}: {error:#}")))
    }
}

impl fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dashboard")
    }
}

/// A page; what was said once is not said again.
fn html(status: StatusCode, text: String, said: bool) -> Response {
    let mut response = (status, [("content-type", "text/html; charset=utf-8")], text).into_response();
    if said {
        session::forget_flash(&mut response);
    }
    response
}
