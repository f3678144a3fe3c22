//! Tests of the parts with real sockets and processes.

mod peer;
mod servers;
