//! Why there is no page, said on a page.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use minijinja::context;

use super::session::Session;
use super::{Dashboard, guard, html, show};

/// Why there is no page.
#[derive(Debug)]
pub(super) enum PageError {
    /// Somebody has to log in first.
    NobodyThere {
        /// And wants to go there then.
        to: String,
    },
    /// The API does not answer with what the page is about.
    Answered {
        /// The status of the response.
        status: StatusCode,
        /// What it says.
        message: String,
    },
    /// The page itself is broken.
    Broken(String),
}

impl PageError {
    /// There is nothing at the path.
    pub(super) fn not_found() -> Self {
        PageError::Answered { status: StatusCode::NOT_FOUND, message: String::new() }
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let (status, title, message) = match self {
            PageError::NobodyThere { to } => {
                return Redirect::to(&format!("/login?to={}", show::encoded(&to))).into_response();
            }
            PageError::Answered { status: StatusCode::NOT_FOUND, .. } => (
                StatusCode::NOT_FOUND,
                "Page not found",
                "The page may have been deleted, or the link is wrong.".into(),
            ),
            PageError::Answered { status: StatusCode::FORBIDDEN, message } => {
                (StatusCode::FORBIDDEN, "Access denied", message)
            }
            PageError::Answered { status, message } => (status, "Request failed", message),
            PageError::Broken(cause) => {
                tracing::error!(target: "seawall", cause, action = "ManualReview", "[Dashboard][Render] Failed!");
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "This page is broken",
                    "The log has the reason. The rest of the hub keeps working.".into(),
                )
            }
        };
        let mut response = html(status, show::sorry(title, &message), false);
        if status != StatusCode::INTERNAL_SERVER_ERROR {
            response.extensions_mut().insert(ErrorMessage { title, message });
        }
        response
    }
}

/// What a response says instead of a page, for whoever puts it into the frame.
#[derive(Clone, Debug)]
struct ErrorMessage {
    title: &'static str,
    message: String,
}

/// Paths that programs ask for. What they are told of a wrong one is JSON, whatever they accept.
const NO_PAGES: [&str; 4] = ["/api/", "/actuator", "/metrics", "/gateway"];

/// Says what went wrong within the frame that all pages have, menu and all, to a browser whose session is good. A path at which there is
/// nothing is a page for a browser, too.
pub(super) async fn framed(
    State(dashboard): State<Arc<Dashboard>>,
    request: Request,
    next: Next,
) -> Response {
    if !wants_a_page(&request) {
        return next.run(request).await;
    }
    let unknown = request.extensions().get::<MatchedPath>().is_none();
    let (parts, body) = request.into_parts();
    let kept = parts.clone();
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if unknown && response.status() == StatusCode::NOT_FOUND {
        response = PageError::not_found().into_response();
    }
    let Some(sorry) = response.extensions().get::<ErrorMessage>().cloned() else { return response };
    let framed = in_frame(&dashboard, kept, response.status(), sorry).await;
    let mut response = framed.unwrap_or(response);
    guard::say(response.headers_mut());
    response
}

/// Whether this is a browser that somebody sits at, and asks for a page.
fn wants_a_page(request: &Request) -> bool {
    let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let path = request.uri().path();
    matches!(*request.method(), Method::GET | Method::HEAD)
        && accept.is_some_and(|accept| accept.contains("text/html"))
        && !NO_PAGES.iter().any(|start| path.starts_with(start))
}

async fn in_frame(
    dashboard: &Arc<Dashboard>,
    mut parts: Parts,
    status: StatusCode,
    ErrorMessage { title, message }: ErrorMessage,
) -> Option<Response> {
    let session = Session::from_request_parts(&mut parts, dashboard).await.ok()?;
    dashboard.page_with(status, &session, "sorry.html", context! { title, message }).await.ok()
}
