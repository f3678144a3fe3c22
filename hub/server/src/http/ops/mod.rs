//! The state of the hub: the overview, what needs attention, the audit log and the key of secrets.

pub(in crate::http) mod attention;
pub(in crate::http) mod audit;
pub(in crate::http) mod demo;
pub(in crate::http) mod secrets;
pub(in crate::http) mod status;
