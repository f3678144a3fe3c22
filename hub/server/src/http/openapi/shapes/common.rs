//! Shapes that others share.

use super::super::schema::{Schema, pattern};

/// The name of something that is registered.
pub(in super::super) fn slug() -> Schema {
    pattern("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$").says("Lower-case letters, digits and inner hyphens")
}

/// The word of an event type: visible ASCII characters without dot and star.
const WORD: &str = r"[!-)+,\-/-~]+";

pub(super) fn event_type() -> Schema {
    pattern(&format!(r"^{WORD}(\.{WORD})*$"))
        .longest(255)
        .says("Words separated by dots: visible ASCII characters without asterisks")
}

pub(super) fn event_id() -> Schema {
    pattern("^[!-~]{1,200}$").says("Visible ASCII characters")
}

pub(in super::super) fn fingerprint() -> Schema {
    pattern("^grp_[0-9a-f]{16}$")
}

pub(in super::super) fn operation_id() -> Schema {
    pattern("^op_[0-9a-f]{32}$")
}
