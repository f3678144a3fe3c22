//! A scripted server, in memory or on loopback, and a client without generated code.

mod client;
mod peer;
mod script;
mod server;

pub(crate) use client::{Client, Messages, config, layer, limit};
pub(crate) use peer::{Frames, RawPeer};
pub(crate) use script::{Reply, Script};
pub(crate) use server::TestServer;
