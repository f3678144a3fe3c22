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
mod asked;
mod assets;
mod charts;
mod ended;
mod guard;
mod live;
mod login;
mod pages;
mod session;
mod show;
mod throttle;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use minijinja::{Environment, Value, context};

pub(crate) use self::ended::end_all_sessions;
use self::ended::EndedSessions;
use self::session::Session;
use self::throttle::LoginThrottle;
use crate::hub::Hub;

/// The dashboard.
pub(crate) struct Dashboard {
    hub: Arc<Hub>,
    /// The API, with keys and all.
    api: Router,
    templates: Environment<'static>,
    live: live::Renderings,
    ended: EndedSessions,
    throttle: LoginThrottle,
    /// The hub stops: streams of events have no end of their own.
    closing: Arc<AtomicBool>,
}

/// What a page is made of: the page, or why there is none.
type Shown = Result<Response, Trouble>;

impl Dashboard {
    /// The pages of a hub beside its API, until `closing` says that it stops.
    pub(crate) fn beside(api: Router, hub: Arc<Hub>, closing: Arc<AtomicBool>) -> Router {
        let templates = show::templates();
        let live = live::Renderings::default();
        let (ended, throttle) = (EndedSessions::open(hub.folder(), hub.now()), LoginThrottle::default());
        let dashboard =
            Arc::new(Dashboard { hub, api: api.clone(), templates, live, ended, throttle, closing });
        let pages = pages::router().route("/live", get(live::stream)).route("/act", post(act::act));
        let pages = pages
            .route("/login", get(login::page).post(login::login))
            .route("/logout", post(login::logout))
            .route("/assets/{name}", get(assets::asset));
        pages.layer(axum::middleware::from_fn(guard::protect)).with_state(dashboard).merge(api)
    }

    /// A page within the frame that all pages have.
    fn page(&self, session: &Session, name: &str, what: Value) -> Shown {
        let frame = context! {
            who => session.name(), may => session.may(), csrf => session.csrf(), assets => assets::names(),
            path => session.path(), flash => session.flash(), origin => session.origin(),
            is_demo => self.hub.demo().is_some(), ..what
        };
        Ok(html(StatusCode::OK, self.render(name, frame)?, session.flash().is_some()))
    }

    fn render(&self, name: &str, what: Value) -> Result<String, Trouble> {
        let made = self.templates.get_template(name).and_then(|template| template.render(what));
        made.map_err(|error| Trouble::Broken(format!("{name}: {error:#}")))
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

/// Why there is no page.
#[derive(Debug)]
enum Trouble {
    /// Somebody has to log in first.
    NobodyThere {
        /// And wants to go there then.
        to: String,
    },
    /// The API does not answer with what the page is about.
    Answered {
        /// Its status.
        status: StatusCode,
        /// What it says.
        message: String,
    },
    /// The page itself is broken.
    Broken(String),
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let (status, title, message) = match self {
            Trouble::NobodyThere { to } => {
                return Redirect::to(&format!("/login?to={}", show::encoded(&to))).into_response();
            }
            Trouble::Answered { status: StatusCode::NOT_FOUND, .. } => (
                StatusCode::NOT_FOUND,
                "There is nothing here",
                "It may have been deleted, or the link is wrong.".into(),
            ),
            Trouble::Answered { status: StatusCode::FORBIDDEN, message } => {
                (StatusCode::FORBIDDEN, "This key may not see that", message)
            }
            Trouble::Answered { status, message } => (status, "The hub could not answer", message),
            Trouble::Broken(cause) => {
                tracing::error!(target: "seawall", cause, action = "ManualReview", "[Dashboard][Render] Failed!");
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "This page is broken",
                    "The log says why. The rest of the hub works on.".into(),
                )
            }
        };
        html(status, show::sorry(title, &message), false)
    }
}
