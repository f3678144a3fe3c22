//! The signals that ask a process to end.

use std::fmt;
use std::io;

/// A signal that asks the process to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Signal {
    /// SIGTERM, which an orchestrator or `kill` sends.
    Terminate,
    /// SIGINT, which Ctrl-C sends.
    Interrupt,
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Signal::Terminate => "SIGTERM",
            Signal::Interrupt => "SIGINT",
        })
    }
}

/// Listens for the signals that ask the process to stop.
///
/// Once a process has listened for these signals, they no longer kill it, even after the listener is dropped. The program must
/// therefore end the process itself.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Starts to listen.
    ///
    /// # Errors
    /// Fails if the operating system refuses.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime, or in one without I/O.
    pub fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Signal {
        use std::task::Poll;
        std::future::poll_fn(|cx| {
            if self.terminate.poll_recv(cx).is_ready() {
                return Poll::Ready(Signal::Terminate);
            }
            self.interrupt.poll_recv(cx).map(|_| Signal::Interrupt)
        })
        .await
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Starts to listen.
    ///
    /// # Errors
    /// Fails if the operating system refuses.
    pub fn listen() -> io::Result<Self> {
        Ok(Signals {})
    }

    /// Waits for the next signal. On a system without SIGTERM, this is Ctrl-C.
    pub async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal::Interrupt
    }
}
