//! From a name to addresses.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

/// The addresses of a name, under way.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Who finds the addresses of a name. What it answers is checked and connected to; nobody asks a second time.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of `name`, the best first.
    fn resolve(&self, name: &str) -> Resolving;
}

impl<F> Resolve for F
where
    F: Fn(&str) -> Resolving + Send + Sync + 'static,
{
    fn resolve(&self, name: &str) -> Resolving {
        self(name)
    }
}

/// The system's own way: `/etc/hosts`, then DNS, on a thread of tokio's that may block.
pub(crate) struct System;

impl Resolve for System {
    fn resolve(&self, name: &str) -> Resolving {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address: SocketAddr| address.ip()).collect())
        })
    }
}

#[derive(Clone)]
pub(crate) struct Resolver(pub(crate) Arc<dyn Resolve>);

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}
