//! Services, rules, sources and keys: reading, checking and returning them.

pub(in crate::http) mod circuits;
pub(in crate::http) mod evaluate;
pub(in crate::http) mod keys;
pub(in crate::http) mod rules;
pub(in crate::http) mod services;
pub(in crate::http) mod sources;
