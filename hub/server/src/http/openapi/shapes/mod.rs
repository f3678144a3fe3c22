//! The shapes of what goes in and out, each said once and under a name.

mod alerts;
mod bridge;
mod common;
mod deliveries;
mod desk;
mod desk_input;
mod gateway;
mod ops;
mod rules;
mod services;
mod sources;
mod standing;

use serde_json::{Map, Value};

use super::schema::Schema;

pub(super) use self::common::{event_pattern, slug};
pub(super) use self::deliveries::{reasons, states_asked_for};
pub(super) use self::desk::{fingerprint, operation_id};

/// A shape with its name.
type Named = (&'static str, Schema);

/// All of them.
pub(super) fn all() -> Map<String, Value> {
    let parts = [
        common::shapes(),
        services::shapes(),
        rules::shapes(),
        sources::shapes(),
        bridge::shapes(),
        gateway::shapes(),
        deliveries::shapes(),
        desk::shapes(),
        desk_input::shapes(),
        ops::shapes(),
        alerts::shapes(),
        standing::shapes(),
    ];
    parts.into_iter().flatten().map(|(name, schema)| (name.to_owned(), schema.into_value())).collect()
}
