//! Services, rules, sources and keys: reading, checking and returning them.

pub(crate) mod circuits;
pub(crate) mod evaluate;
pub(crate) mod keys;
pub(crate) mod resource;
pub(crate) mod rules;
pub(crate) mod services;
pub(crate) mod sources;
