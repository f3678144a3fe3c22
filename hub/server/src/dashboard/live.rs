//! Pages that change while somebody looks at them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{RawQuery, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::Frame;
use seawall::Tick;
use seawall_hub_core::sync::Lock;
use tower_service::Service;

use super::session::Session;
use super::{Dashboard, PageError};
use crate::http::query::pairs_of;

/// So often somebody looks whether a page has changed.
const EVERY: Duration = Duration::from_secs(2);
/// A rendering is shared by all who look within this time.
const SHARED: Duration = Duration::from_millis(1_800);
/// A stream that has nothing to say says so, that nobody on the way thinks it is dead.
const STILL_HERE: u32 = 8;
/// No page is larger.
const PAGE_MAX: usize = 8 * 1024 * 1024;
/// The maximum number of renderings that are remembered.
const REMEMBERED: usize = 1_000;

/// What pages looked like just now, by the key and the page.
#[derive(Default)]
pub(super) struct Renderings {
    known: Lock<HashMap<(String, String), Rendering>>,
}

#[derive(Clone)]
struct Rendering {
    at: Tick,
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

impl Renderings {
    /// Somebody has changed something: the next look is a new one.
    pub(super) fn forget(&self) {
        self.known.lock().clear();
    }

    fn fresh(&self, page: &(String, String), now: Tick) -> Option<Rendering> {
        let known = self.known.lock();
        known.get(page).filter(|known| now.since(known.at) < SHARED).cloned()
    }

    fn keep(&self, page: (String, String), made: Rendering) {
        let at = made.at;
        let mut known = self.known.lock();
        if known.len() >= REMEMBERED {
            known.retain(|_, rendering| at.since(rendering.at) < SHARED);
        }
        if known.len() < REMEMBERED {
            known.insert(page, made);
        }
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
    let body = Body::new(Stream { next: Box::pin(watching.next()) });
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

type NextChunk = Pin<Box<dyn Future<Output = Option<(LiveStream, Bytes)>> + Send>>;

impl LiveStream {
    /// The next thing to say; nothing, when the hub stops or the session has ended.
    async fn next(mut self) -> Option<(LiveStream, Bytes)> {
        if self.last.is_none() {
            // The page was loaded a moment ago, or before the connection was lost: what has happened since is not missed.
            let now = self.look().await?;
            let said = [b"retry: 2000\n\n", &*event(&now)].concat();
            self.last = Some(now);
            return Some((self, said.into()));
        }
        loop {
            tokio::time::sleep(EVERY).await;
            let now = self.look().await?;
            if self.last.as_ref() != Some(&now) {
                let said = event(&now);
                (self.last, self.quiet) = (Some(now), 0);
                return Some((self, said));
            }
            self.quiet += 1;
            if self.quiet >= STILL_HERE {
                self.quiet = 0;
                return Some((self, Bytes::from_static(b": still here\n\n")));
            }
        }
    }

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
        self.dashboard.live.keep(page, Rendering { at: now, csrf, text: text.clone() });
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

struct Stream {
    next: NextChunk,
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.next.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some((watching, said))) => {
                self.next = Box::pin(watching.next());
                Poll::Ready(Some(Ok(Frame::data(said))))
            }
        }
    }
}
