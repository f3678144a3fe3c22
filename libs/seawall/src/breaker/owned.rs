//! A ticket that can go into a task.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::policy::CircuitBreaker;
use super::refused::Refused;
use super::ticket::{Outcome, Ticket};
use super::word::{Place, Word};
use crate::clock::Tick;

/// A [`Ticket`] that keeps its circuit alive, so that it can go into a task. The same rules hold: it ends in exactly one
/// [`finish`](OwnedTicket::finish) or in being dropped, which is an abandoned call.
#[must_use = "a ticket that is dropped is an abandoned call; finish it with its outcome"]
pub struct OwnedTicket {
    breaker: Arc<CircuitBreaker>,
    word: Word,
    started: Tick,
    is_settled: bool,
}

impl CircuitBreaker {
    /// As [`admit`](CircuitBreaker::admit), with a ticket that keeps the circuit alive and can go into a task.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use seawall::Breaker;
    /// use seawall::breaker::Outcome;
    /// let circuit = Arc::new(Breaker::consecutive_failures(3).build()?);
    /// let ticket = circuit.admit_owned()?;
    /// tokio::spawn(async move {
    ///     // The call.
    ///     ticket.finish(Outcome::Success);
    /// })
    /// .await?;
    /// # Ok(()) }
    /// ```
    pub fn admit_owned(self: &Arc<Self>) -> Result<OwnedTicket, Refused> {
        let (word, started) = self.admit()?.into_parts();
        Ok(OwnedTicket { breaker: self.clone(), word, started, is_settled: false })
    }
}

impl OwnedTicket {
    fn ticket(&self) -> ManuallyDrop<Ticket<'_>> {
        ManuallyDrop::new(Ticket::new(&self.breaker, self.word, self.started))
    }

    /// The operation starts now, not when the ticket was handed out.
    pub fn start(&mut self) {
        let mut ticket = self.ticket();
        ticket.start();
        self.started = ManuallyDrop::into_inner(ticket).into_parts().1;
    }

    /// Whether this is a probe of a half-open circuit.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.word.place() == Place::HalfOpen
    }

    /// Says what became of the call.
    pub fn finish(mut self, outcome: Outcome) {
        self.is_settled = true;
        ManuallyDrop::into_inner(self.ticket()).finish(outcome);
    }
}

impl Drop for OwnedTicket {
    fn drop(&mut self) {
        if !self.is_settled {
            drop(ManuallyDrop::into_inner(self.ticket()));
        }
    }
}

impl fmt::Debug for OwnedTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedTicket")
            .field("admitted", &self.word)
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}
