//! ADP-2: a channel that obeys a service config, case by case from gRFC A6.
//!
//! Delays are checked on virtual time, with a scripted service in place of the network; everything else against a real tonic
//! server on loopback.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod support;

mod deadline;
mod drops;
mod hedging;
mod observe;
mod outage;
mod pushback;
mod retry;
mod streaming;
mod throttling;
mod transparent;
