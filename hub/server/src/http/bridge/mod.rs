//! Events and deliveries.

pub(in crate::http) mod deliveries;
pub(in crate::http) mod events;
pub(in crate::http) mod incoming;
