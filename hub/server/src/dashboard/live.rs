//! Pages that change while somebody looks at them.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{RawQuery, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use tower_service::Service;

use super::session::Session;
use super::shared::SharedValues;
use super::{Dashboard, PageError};
use crate::http::query::pairs_of;
use crate::unfold::{Unfold, UnfoldBody};

/// So often somebody looks whether a page has changed.
const EVERY: Duration = Duration::from_secs(2);
/// A stream that has nothing to say says so, that nobody on the way thinks it is dead.
const STILL_HERE: u32 = 8;
/// No page is larger.
const PAGE_MAX: usize = 8 * 1024 * 1024;

/// What pages looked like just now, by the key and the page.
pub(super) type Renderings = SharedValues<(String, String), Rendering>;

#[derive(Clone)]
pub(super) struct Rendering {
    /// Of the session that it was made for.
    csrf: String,
    text: Arc<str>,
}

impl Rendering {
    /// For another session with the same key: its forms have a token of their own.
    fn of(self, csrf: &str) -> Arc<str> {
        if self.csrf == csrf { self.text } else { self.text.replace(&self.csrf, csrf).into() }
    }
}

/// `GET /live?page=/services`: the page anew, whenever it has changed.
pub(super) async fn stream(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    let page = pairs_of(query.as_deref()).into_iter().find(|(name, _)| name == "page").map(|(_, page)| page);
    let page = page.filter(|page| page.starts_with('/') && !page.starts_with("/live")).unwrap_or("/".into());
    let pages = super::pages::router().with_state(dashboard.clone());
    let session = session.at(&page);
    let watching = LiveStream { dashboard, pages, session, page, last: None, quiet: 0 };
    let body = Body::new(UnfoldBody::new(watching));
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}

/// Somebody who looks at a page.
struct LiveStream {
    dashboard: Arc<Dashboard>,
    pages: Router,
    session: Session,
    page: String,
    last: Option<Arc<str>>,
    /// For how many looks there was nothing to say.
    quiet: u32,
}

impl Unfold for LiveStream {
    type Error = Infallible;

    /// The next thing to say; nothing, when the hub stops or the session has ended.
    async fn next(mut self) -> Result<Option<(Bytes, LiveStream)>, Infallible> {
        // The page was loaded a moment ago, or before the connection was lost: what has happened since is not missed.
        let is_first = self.last.is_none();
        loop {
            if !is_first {
                tokio::time::sleep(EVERY).await;
            }
            let Some(now) = self.look().await else { return Ok(None) };
            if self.last.as_ref() != Some(&now) {
                let retry: &[u8] = if is_first { b"retry: 2000\n\n" } else { b"" };
                let said = [retry, &*event(&now)].concat().into();
                (self.last, self.quiet) = (Some(now), 0);
                return Ok(Some((said, self)));
            }
            self.quiet += 1;
            if self.quiet >= STILL_HERE {
                self.quiet = 0;
                return Ok(Some((Bytes::from_static(b": still here\n\n"), self)));
            }
        }
    }
}

impl LiveStream {
    /// The page as it is now, rendered once for all who look at it with the same key.
    async fn look(&self) -> Option<Arc<str>> {
        if self.dashboard.closing.load(Ordering::Acquire) {
            return None;
        }
        // A key that was taken back sees nothing more, and neither does a session that was ended.
        if !self.session.is_good(&self.dashboard) {
            return None;
        }
        let page = (self.session.name().to_owned(), format!("{}{}", self.session.origin(), self.page));
        let now = self.dashboard.hub.clock().now();
        if let Some(made) = self.dashboard.live.fresh(&page, now) {
            return Some(made.of(self.session.csrf()));
        }
        let mut request = Request::builder().uri(&self.page).body(Body::empty()).ok()?;
        request.extensions_mut().insert(self.session.clone());
        let response = self.pages.clone().call(request).await.ok()?;
        let bytes = to_bytes(response.into_body(), PAGE_MAX).await.ok()?;
        let text: Arc<str> = String::from_utf8_lossy(&bytes).into();
        let csrf = self.session.csrf().to_owned();
        self.dashboard.live.keep(page, now, Rendering { csrf, text: text.clone() });
        Some(text)
    }
}

/// As a stream of events has it: each line for itself.
fn event(text: &str) -> Bytes {
    let mut out = String::with_capacity(text.len() + 1_024);
    out.push_str("event: page\n");
    for line in text.lines() {
        out.push_str("data: ");
        out.push_str(line);
        out.push('\n');
    }
    out.push('\n');
    out.into()
}
