//! Events, webhooks and deliveries.

pub(crate) mod cloud_events;
pub(crate) mod deliveries;
pub(crate) mod events;
pub(crate) mod webhook;
