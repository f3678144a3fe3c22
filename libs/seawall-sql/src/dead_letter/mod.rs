//! Dead letters in SQL: what both databases have in common.

mod json;
#[macro_use]
mod store;

pub(crate) use json::{attempts_of, attempts_text, headers_of, headers_text, replays_of, replays_text};

use seawall_dist::deadletter::{LetterOrder, Record, ReplayRequest};

/// A list in this order: what comes after a cursor, and how it is sorted. Each has an index with the same expressions.
pub(crate) fn order_sql(order: LetterOrder) -> (&'static str, &'static str) {
    match order {
        LetterOrder::AsItHappened => {
            (" AND (COALESCE(original_at, at), id) > (", " ORDER BY COALESCE(original_at, at), id LIMIT ")
        }
        LetterOrder::NewestFirst => (" AND (at, id) < (", " ORDER BY at DESC, id DESC LIMIT "),
    }
}

/// The text without the character that PostgreSQL's texts can't hold. A dead letter must not be lost for it.
pub(crate) fn clean_text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The record as it can be stored: ids and messages without that character. Payload and headers are kept as they are.
pub(crate) fn clean(record: &Record) -> Record {
    let mut record = record.clone();
    let message = record.fault.message.iter_mut().chain(&mut record.trace);
    let errors = record.attempts.iter_mut().filter_map(|attempt| attempt.error.as_mut());
    let origin = &mut record.origin;
    let names =
        [&mut record.id, &mut origin.kind, &mut origin.place, &mut origin.id, &mut record.fault.reason];
    for text in names.into_iter().chain(message).chain(errors).filter(|text| text.contains('\0')) {
        *text = clean_text(text);
    }
    record
}

/// The request with a key that can be stored, so that the same key is found again.
pub(crate) fn clean_request(request: &ReplayRequest) -> ReplayRequest {
    let mut request = request.clone();
    request.key = clean_text(&request.key);
    request
}
