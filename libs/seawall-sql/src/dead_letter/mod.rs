//! Dead letters in SQL: what both databases have in common.

mod json;
#[macro_use]
mod store;

pub(crate) use json::{attempts_of, attempts_text, headers_of, headers_text, replays_of, replays_text};

use seawall_dist::deadletter::{Filter, LetterOrder, Record, ReplayRequest};

pub(crate) use crate::text::clean_text;
use crate::text::short_name;

/// A list in this order: the condition on what comes after a cursor, up to its time, and how it is sorted. Each order has an index
/// with the same expressions.
pub(crate) fn order_sql(order: LetterOrder) -> (&'static str, &'static str) {
    match order {
        LetterOrder::AsItHappened => {
            (" AND (COALESCE(original_at, at), id) > (", " ORDER BY COALESCE(original_at, at), id LIMIT ")
        }
        LetterOrder::NewestFirst => (" AND (at, id) < (", " ORDER BY at DESC, id DESC LIMIT "),
    }
}

/// What follows from the condition of this order, up to its time. Without it SQLite reads the index of an expression from its
/// beginning for each page.
pub(crate) fn not_before_sql(order: LetterOrder) -> Option<&'static str> {
    (order == LetterOrder::AsItHappened).then_some(" AND COALESCE(original_at, at) >= ")
}

/// How many bytes of the names are kept. Together they fit into an entry of PostgreSQL's index, which has 2,704 bytes.
const ID_BYTES_MAX: usize = 512;
const KIND_BYTES_MAX: usize = 128;
const PLACE_BYTES_MAX: usize = 768;
const REASON_BYTES_MAX: usize = 512;

/// An id as it is stored. Who looks for a letter by its id comes here first.
pub(crate) fn clean_id(id: &str) -> String {
    short_name(id, ID_BYTES_MAX)
}

/// The record as it can be stored: ids and messages without the character that PostgreSQL can't hold, names not too long for an
/// index. Payload and headers are kept as they are.
pub(crate) fn clean(record: &Record) -> Record {
    let mut record = record.clone();
    record.id = clean_id(&record.id);
    record.origin.kind = short_name(&record.origin.kind, KIND_BYTES_MAX);
    record.origin.place = short_name(&record.origin.place, PLACE_BYTES_MAX);
    record.fault.reason = short_name(&record.fault.reason, REASON_BYTES_MAX);
    let message = record.fault.message.iter_mut().chain(&mut record.trace).chain([&mut record.origin.id]);
    let errors = record.attempts.iter_mut().filter_map(|attempt| attempt.error.as_mut());
    for text in message.chain(errors).filter(|text| text.contains('\0')) {
        *text = clean_text(text);
    }
    record
}

/// The filter by the names that are stored.
pub(crate) fn clean_filter(filter: &Filter) -> Filter {
    let mut filter = filter.clone();
    let names = [
        (&mut filter.kind, KIND_BYTES_MAX),
        (&mut filter.place, PLACE_BYTES_MAX),
        (&mut filter.reason, REASON_BYTES_MAX),
    ];
    for (name, bytes_max) in names {
        *name = name.as_deref().map(|name| short_name(name, bytes_max));
    }
    filter
}

/// The request with a key that can be stored, so that the same key is found again.
pub(crate) fn clean_request(request: &ReplayRequest) -> ReplayRequest {
    let mut request = request.clone();
    request.key = clean_text(&request.key);
    request
}
