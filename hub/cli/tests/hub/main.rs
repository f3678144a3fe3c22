//! The hub from outside: the real binary, over HTTP.

mod alerts;
mod api;
mod browser;
mod cli;
mod client;
mod demo;
mod documents;
mod egress;
mod gateway;
mod harness;
mod inbound;
mod judge;
mod observe;
mod ops;
mod peer;
mod secrets;
mod security;
mod semantics;
mod story;
