//! What the hub knows and decides, without knowing how it is stored, sent or spoken to.
//!
//! - [`domain`]: plain types and rules. No async, no wire format, no I/O.
//! - [`port`]: what it needs from outside, as traits.
//! - [`service`]: what it does, one file for each verb.
//! - [`render`]: rules at work: which events they match, and the exact request that they make of one.

pub mod domain;
pub mod port;
pub mod render;
pub mod service;
