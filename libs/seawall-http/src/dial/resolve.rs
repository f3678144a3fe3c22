//! From a name to addresses.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;

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

/// So many names are looked up at once. A lookup can't be called off: while DNS is away each one holds a thread for many
/// seconds, whoever still waits for it, and without a bound they would hold all threads that tokio has for blocking work.
const LOOKUPS_MAX: usize = 32;

/// The system's own way: `/etc/hosts`, then DNS, on threads of tokio's that may block.
pub(crate) struct System {
    free: Arc<Semaphore>,
}

impl System {
    pub(crate) fn new() -> Self {
        System { free: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

impl Resolve for System {
    fn resolve(&self, name: &str) -> Resolving {
        let (name, free) = (name.to_owned(), self.free.clone());
        Box::pin(async move {
            let place = free.acquire_owned().await.map_err(io::Error::other)?;
            let lookup = tokio::task::spawn_blocking(move || {
                // The thread has the place, not whoever waits for it.
                let _place = place;
                Ok((name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
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
