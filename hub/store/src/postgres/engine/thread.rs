//! Threads of the store, each with a runtime: what waits for the database is not delayed by what the hub does meanwhile.

use std::future::Future;
use std::io;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};

/// A thread that runs one future, and whatever is spawned on its runtime meanwhile.
#[derive(Debug)]
pub(in crate::postgres) struct RuntimeThread {
    thread: Option<JoinHandle<()>>,
    pub(in crate::postgres) handle: Handle,
}

impl RuntimeThread {
    /// Starts a thread. The future is made on it, so that it need not be `Send`.
    pub(in crate::postgres) fn start<F: Future<Output = ()>>(
        name: &str,
        run: impl FnOnce() -> F + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let thread = thread::Builder::new().name(name.into()).spawn(move || runtime.block_on(run()))?;
        Ok(RuntimeThread { thread: Some(thread), handle })
    }

    /// Waits until the future has ended.
    pub(in crate::postgres) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic in it was told to those who waited.
            let _ = thread.join();
        }
    }
}
