//! The signals that ask a process to end.

use std::fmt;
use std::io;

/// A signal that asks the process to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Signal {
    /// SIGTERM: from an orchestrator, or `kill`.
    Terminate,
    /// SIGINT: Ctrl-C.
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

/// Listens for the signals that ask the process to end.
///
/// From the first time on that anybody listens, these signals no longer end the process by themselves, also if nobody
/// listens any more: that is how the operating system has it. So whoever listens has to end the process.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the operating system does not let us.
    ///
    /// # Panics
    /// If there is no tokio runtime around, or one without I/O.
    pub fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next signal.
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
    /// Begins to listen.
    ///
    /// # Errors
    /// If the operating system does not let us.
    pub fn listen() -> io::Result<Self> {
        Ok(Signals {})
    }

    /// The next signal. Where there is no SIGTERM, this is Ctrl-C.
    pub async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal::Interrupt
    }
}
