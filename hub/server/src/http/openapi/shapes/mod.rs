//! The named schemas of requests and responses.

mod bridge;
mod common;
mod ops;

use serde_json::{Map, Value};

use super::schema::Schema;

pub(super) use self::common::{fingerprint, operation_id, slug};

/// A shape with its name.
type NamedSchema = (&'static str, Schema);

/// All named schemas.
pub(super) fn all() -> Map<String, Value> {
    let parts = [bridge::shapes(), ops::shapes()];
    parts.into_iter().flatten().map(|(name, schema)| (name.to_owned(), schema.into_value())).collect()
}
