//! Incidents, alert rules and notification channels.

pub(in crate::http) mod channels;
pub(in crate::http) mod incidents;
pub(in crate::http) mod rules;
