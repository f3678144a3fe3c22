//! The typed client against the real hub.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod killed;
mod resources;

use std::future::Future;

use seawall_client::Client;

use crate::harness::{Hub, KEY};

/// Runs a test.
fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(test)
}

fn client(hub: &Hub) -> Client {
    Client::new(format!("http://{}", hub.address), KEY).unwrap()
}
