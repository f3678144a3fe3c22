//! Dead letters: one by one, in bulk and by group, and the bulk operations on them.
//!
//! A key with limits sees and changes what is within them. Everything else looks as if it did not exist.

pub(super) mod bulk;
pub(super) mod edit;
mod export;
mod filter;
pub(super) mod groups;
pub(super) mod letters;
pub(super) mod operations;
#[cfg(test)]
mod tests;
mod view;

use seawall_api as wire;
use seawall_hub_core::domain::operation::ReplayMode;
use seawall_hub_core::service::Context;

pub(super) use self::export::export;
use super::access::said;
use super::context::RequestContext;

/// The context of a change. A reason in the body takes precedence over the one in the header.
fn because(cx: &RequestContext, reason: Option<String>) -> Context {
    cx.with_reason(reason.and_then(|reason| said(reason.as_bytes())))
}

fn mode(mode: Option<&wire::ReplayMode>) -> ReplayMode {
    match mode {
        Some(wire::ReplayMode::Same) => ReplayMode::Same,
        _ => ReplayMode::Render,
    }
}

/// A note; an empty one is none.
fn filled(note: Option<String>) -> Option<String> {
    note.filter(|note| !note.trim().is_empty())
}
