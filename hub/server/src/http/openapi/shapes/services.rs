//! What shapes of other files share with services.

use super::super::schema::{Schema, words};

pub(super) fn state() -> Schema {
    words(&["closed", "open", "halfOpen", "forcedOpen", "forcedClosed"])
}
