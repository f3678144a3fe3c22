//! Incidents, alert rules and notification channels.

pub(crate) mod channels;
pub(crate) mod incidents;
pub(crate) mod rules;
