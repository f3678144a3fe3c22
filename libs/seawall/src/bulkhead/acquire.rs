//! Waiting for a place outside of a guard.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use super::line::Waiter;
use super::policy::{Entry, Full, Gate, OwnedPermit, Permit};
use crate::guard::Timer;

impl Gate {
    /// Waits for a place, in the order of arrival, up to the configured time. Without a line it does not wait.
    ///
    /// Dropping the future is walking away; a place that was passed on to it goes to the next.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use seawall::{Bulkhead, secs};
    /// let gate = Bulkhead::max_calls(2).max_wait(secs(1)).build()?;
    /// let place = gate.acquire().await?;
    /// assert_eq!(gate.inside(), 1);
    /// drop(place);
    /// # Ok(()) }
    /// ```
    pub async fn acquire(&self) -> Result<Permit<'_>, Full> {
        self.acquire_many(1).await
    }

    /// As [`acquire`](Gate::acquire), for so many places at once. A weight of 0, or above the limit, is refused.
    pub async fn acquire_many(&self, weight: u32) -> Result<Permit<'_>, Full> {
        match self.enter_many(weight)? {
            Entry::Inside(permit) => Ok(permit),
            Entry::Waiting(waiter) => self.wait(waiter).await,
        }
    }

    /// As [`acquire`](Gate::acquire), with a permit that keeps the gate alive and can go into a task.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use seawall::Bulkhead;
    /// let gate = Arc::new(Bulkhead::max_calls(2).build()?);
    /// let place = gate.acquire_owned().await?;
    /// let task = tokio::spawn(async move {
    ///     // The work.
    ///     drop(place);
    /// });
    /// task.await?;
    /// assert_eq!(gate.inside(), 0);
    /// # Ok(()) }
    /// ```
    pub async fn acquire_owned(self: &Arc<Self>) -> Result<OwnedPermit, Full> {
        self.acquire_many_owned(1).await
    }

    /// As [`acquire_many`](Gate::acquire_many), with a permit that keeps the gate alive and can go into a task.
    pub async fn acquire_many_owned(self: &Arc<Self>, weight: u32) -> Result<OwnedPermit, Full> {
        self.acquire_many(weight).await.map(|permit| OwnedPermit::new(self, permit))
    }

    async fn wait<'a>(&'a self, waiter: Waiter<'a>) -> Result<Permit<'a>, Full> {
        let until = waiter.until();
        let mut waiter = Some(waiter);
        let mut timer = pin!(Timer::new());
        poll_fn(|cx| {
            let place = waiter.as_mut().map_or(Poll::Pending, |waiter| waiter.poll_enter(cx));
            if let Poll::Ready(permit) = place {
                return Poll::Ready(Ok(permit));
            }
            ready!(timer.as_mut().poll_until(until, &self.clock, cx));
            Poll::Ready(waiter.take().expect("it is polled until it is ready, and then no more").give_up())
        })
        .await
    }
}
