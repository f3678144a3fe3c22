//! `GET …/deadLetters:export`: every dead letter that a filter takes, a line of JSON each, as they are read.
//!
//! A page of names and one dead letter at a time are in memory, however many there are. Nothing is read that nobody waits for:
//! a client that goes away ends it, and one that reads slowly is written to slowly. What is read takes its memory from the budget
//! of all responses, and waits for it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::RawQuery;
use axum::http::header;
use axum::response::IntoResponse;
use bytes::Bytes;
use http_body::Frame;
use seawall_hub_core::domain::dead_letter::LetterFilter;
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::port::store::{PageRequest, StoreError};

use super::super::HandlerResult;
use super::super::access::Caller;
use super::super::context::RequestContext;
use super::super::query::Query;
use super::letters::{may_compare, sees};
use super::{filter, shown};
use crate::hub::Server;

/// The number of dead letters that are read at once.
const PAGE: usize = 100;
/// The number of bytes that are written at once, unless one line has more.
const TOGETHER_BYTES: usize = 64 * 1024;

pub(in crate::http) async fn export(cx: RequestContext, RawQuery(query): RawQuery) -> HandlerResult {
    let mut query = Query::new(query.as_deref());
    let filter = filter::letters(&mut query, &cx.caller);
    let most = query.parsed("max", |text| match text.parse() {
        Ok(most) if most > 0 => Ok(most),
        _ => Err("must be at least 1; omit it for all"),
    });
    query.end(&format!("{}, max", filter::NAMES))?;
    let left = most.unwrap_or(u64::MAX);
    let export = ExportCursor {
        hub: cx.hub,
        caller: cx.caller,
        filter,
        left,
        next: Some(None),
        names: VecDeque::new(),
    };
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"dead-letters.ndjson\""),
    ];
    Ok((headers, Body::new(ExportBody(Some(Box::pin(export.piece()))))).into_response())
}

/// What is kept free for the next piece: more than a dead letter has in practice, with its event and its evidence.
const PIECE_ROOM: usize = 4 * 1024 * 1024;

/// How far it is.
struct ExportCursor {
    hub: Arc<Server>,
    caller: Caller,
    filter: LetterFilter,
    /// The number of dead letters that may still follow.
    left: u64,
    /// Where the next page begins, if there is one.
    next: Option<Option<u64>>,
    /// What is left of this one.
    names: VecDeque<DeliveryId>,
}

impl ExportCursor {
    /// Some lines more; none, if there are no more.
    async fn piece(mut self) -> Result<Option<(Bytes, ExportCursor)>, StoreError> {
        // In this order: whoever has a turn waits for no memory.
        let held = self.hub.responses().take(PIECE_ROOM).await;
        let _turn = self.hub.responses().turn().await;
        let mut lines = Vec::new();
        while lines.len() < TOGETHER_BYTES && self.left > 0 {
            let Some(id) = self.names.pop_front() else {
                let Some(from) = self.next.take() else { break };
                let letters = self
                    .hub
                    .dead_letters
                    .letters(self.filter.clone(), PageRequest { from, size: PAGE })
                    .await?;
                self.next = letters.page.next.map(Some);
                self.names.extend(letters.page.items.iter().map(|dead| dead.delivery.id));
                continue;
            };
            // It may have been purged since.
            let Some(whole) = self.hub.dead_letters.letter(id).await? else { continue };
            if !sees(&self.caller, &whole) {
                continue;
            }
            let compared = may_compare(&self.hub, &self.caller, &whole).await;
            let line = shown::whole(&self.hub, &self.caller, &whole, compared);
            lines.extend_from_slice(line.to_string().as_bytes());
            lines.push(b'\n');
            self.left -= 1;
        }
        let Some(mut held) = held.filter(|_| !lines.is_empty()) else { return Ok(None) };
        held.shrink_to(lines.len());
        Ok(Some((held.of(lines.into()), self)))
    }
}

type ExportChunk = Pin<Box<dyn Future<Output = Result<Option<(Bytes, ExportCursor)>, StoreError>> + Send>>;

/// The body. An error of the store ends it before its end, so that nobody takes it for the whole.
struct ExportBody(Option<ExportChunk>);

impl http_body::Body for ExportBody {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        let this = self.get_mut();
        let Some(piece) = &mut this.0 else { return Poll::Ready(None) };
        let done = ready!(piece.as_mut().poll(cx));
        this.0 = None;
        Poll::Ready(match done {
            Ok(None) => None,
            Ok(Some((bytes, export))) => {
                this.0 = Some(Box::pin(export.piece()));
                Some(Ok(Frame::data(bytes)))
            }
            Err(error) => Some(Err(error)),
        })
    }
}
