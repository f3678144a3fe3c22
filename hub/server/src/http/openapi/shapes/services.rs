//! What shapes of other files share with services.

use super::super::schema::{Field, Schema, words};

/// Lists of fields, one after the other.
pub(super) trait Concat {
    fn concat_fields(self) -> Vec<Field>;
}

impl<const N: usize> Concat for [Vec<Field>; N] {
    fn concat_fields(self) -> Vec<Field> {
        self.into_iter().flatten().collect()
    }
}

pub(super) fn state() -> Schema {
    words(&["closed", "open", "halfOpen", "forcedOpen", "forcedClosed"])
}
