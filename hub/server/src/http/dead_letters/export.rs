//! `GET …/deadLetters:export`: every dead letter that matches a filter, as a stream of JSON lines.
//!
//! The export holds a page of ids and one dead letter at a time in memory, however many match. It reads only as fast as the client
//! does, and ends when the client goes away. It takes its memory from the budget of all responses, and waits for it.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use seawall_api::ExportQuery;
use seawall_hub_core::domain::dead_letter::LetterFilter;
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::port::store::{PageRequest, StoreError};

use super::letters::{may_compare, sees};
use super::{filter, view};
use crate::http::access::Caller;
use crate::http::context::RequestContext;
use crate::http::error::ApiError;
use crate::http::query::QueryInput;
use crate::hub::Server;
use crate::unfold::{Unfold, UnfoldBody};

/// The number of dead letters that are read at once.
const PAGE: usize = 100;
/// The number of bytes per chunk, unless one line has more.
const CHUNK_BYTES: usize = 64 * 1024;

pub(crate) async fn export(
    cx: RequestContext,
    QueryInput(query): QueryInput<ExportQuery>,
) -> Result<Response, ApiError> {
    let left = query.max.unwrap_or(u64::MAX);
    let filter = filter::of_query(query.filter, &cx.caller)?;
    let export =
        ExportCursor { hub: cx.hub, caller: cx.caller, filter, left, next: Some(None), ids: VecDeque::new() };
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"dead-letters.ndjson\""),
    ];
    Ok((headers, Body::new(UnfoldBody::new(export))).into_response())
}

/// The memory that is reserved for the next chunk. A dead letter with its event and its evidence has less in practice.
const CHUNK_RESERVE_BYTES: usize = 4 * 1024 * 1024;

/// The position of an export.
struct ExportCursor {
    hub: Arc<Server>,
    caller: Caller,
    filter: LetterFilter,
    /// The number of dead letters that may still follow.
    left: u64,
    /// Where the next page begins; `None` if there is no other page.
    next: Option<Option<u64>>,
    /// The ids of the current page that are still to be written.
    ids: VecDeque<DeliveryId>,
}

impl Unfold for ExportCursor {
    type Error = StoreError;

    /// The next lines.
    async fn next(mut self) -> Result<Option<(Bytes, ExportCursor)>, StoreError> {
        // The order matters: an export that has a turn does not wait for memory.
        let held = self.hub.responses.take(CHUNK_RESERVE_BYTES).await;
        let _turn = self.hub.responses.turn().await;
        let mut lines = Vec::new();
        while lines.len() < CHUNK_BYTES && self.left > 0 {
            let Some(id) = self.ids.pop_front() else {
                let Some(from) = self.next.take() else { break };
                let letters = self
                    .hub
                    .dead_letters
                    .letters(self.filter.clone(), PageRequest { from, size: PAGE })
                    .await?;
                self.next = letters.page.next.map(Some);
                self.ids.extend(letters.page.items.iter().map(|dead| dead.delivery.id));
                continue;
            };
            // It may have been purged since.
            let Some(details) = self.hub.dead_letters.letter(id).await? else { continue };
            if !sees(&self.caller, &details) {
                continue;
            }
            let may_compare = may_compare(&self.hub, &self.caller, &details).await;
            let line = view::evidence(&self.hub, &self.caller, &details, may_compare);
            serde_json::to_writer(&mut lines, &line).expect("every key is a string");
            lines.push(b'\n');
            self.left -= 1;
        }
        let Some(mut held) = held.filter(|_| !lines.is_empty()) else { return Ok(None) };
        held.shrink_to(lines.len());
        Ok(Some((held.of(lines.into()), self)))
    }
}
