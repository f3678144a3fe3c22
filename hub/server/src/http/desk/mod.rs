//! The dead letter desk: dead letters one by one and many at once, their groups, and the work that is done on them.
//!
//! Whoever has a key with limits sees what is within them, and acts within them; everything else looks as if it were not there.

mod edit;
mod export;
mod filter;
pub(super) mod groups;
pub(super) mod letters;
pub(super) mod many;
pub(super) mod operations;
mod shown;
#[cfg(test)]
mod tests;

use axum::body::Bytes;
use axum::response::Response;
use seawall_hub_core::domain::operation::ReplayMode;
use serde_json::json;

pub(super) use self::export::export;
use super::access::said;
use super::fields::Fields;
use super::reply::{parse, wrong_fields};

/// The fields of a body; one that is not there has none.
fn fields_of(body: &Bytes) -> Result<Fields, Box<Response>> {
    Ok(Fields::new(if body.is_empty() { json!({}) } else { parse(body)? }))
}

/// The end of a body: all that is wrong with it, or nothing.
fn end(fields: Fields, known: &str) -> Result<(), Box<Response>> {
    let problems = fields.end(known);
    if problems.is_empty() { Ok(()) } else { Err(Box::new(wrong_fields(&problems))) }
}

/// Why somebody does it, for the audit log. What stands in the body comes before what stands in the header.
fn reason(fields: &mut Fields) -> Option<String> {
    fields.text("reason").and_then(|reason| said(reason.as_bytes()))
}

/// A note, which must be named: null takes it away.
fn note(fields: &mut Fields) -> Option<String> {
    if !fields.has("note") {
        fields.wrong("note", "required; null removes the note");
    }
    fields.text("note").filter(|note| !note.trim().is_empty())
}

fn mode(fields: &mut Fields) -> ReplayMode {
    match fields.text("mode").as_deref() {
        None | Some("render") => ReplayMode::Render,
        Some("same") => ReplayMode::Same,
        Some(_) => {
            fields
                .wrong("mode", "must be `render`, for the current rule, or `same`, for the original request");
            ReplayMode::Render
        }
    }
}
