//! What the hub knows and decides, without knowing how it is stored, sent or spoken to.
//!
//! - [`domain`]: plain types and rules. No async, no wire format, no I/O.
//! - [`port`]: what it needs from outside, as traits.
//! - [`service`]: what it does, one file for each verb.
//! - [`render`]: rules at work: which events they match, and the exact request that they make of one.
//! - [`encode`]: percent-encoding and hexadecimal digits.
//! - [`metric_names`]: the names of all metrics of the hub.
//! - [`sync`]: locks that survive a panic.

#![allow(
    missing_docs,
    reason = "nobody depends on this crate from outside: where a name says it all, there is no comment"
)]

pub mod domain;
pub mod encode;
pub mod metric_names;
pub mod port;
pub mod render;
pub mod service;
pub mod sync;
