//! The state of the hub: the overview, what needs attention, the audit log and the key of secrets.

pub(crate) mod attention;
pub(crate) mod audit;
pub(crate) mod demo;
pub(crate) mod secrets;
pub(crate) mod status;
