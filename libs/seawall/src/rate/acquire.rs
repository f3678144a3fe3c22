//! Waiting for a turn outside of a guard.

use std::future::poll_fn;
use std::pin::pin;

use super::policy::{Limited, RateLimiter};
use crate::guard::Timer;

impl RateLimiter {
    /// Waits for the turn of one call, in the order of arrival, if it comes within the configured wait; else it is refused at
    /// once.
    ///
    /// Dropping the future before its turn has come gives the turn back.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use seawall::{RateLimit, secs};
    /// let limiter = RateLimit::calls(100).burst(1).max_wait(secs(1)).build()?;
    /// limiter.acquire().await?;
    /// limiter.acquire().await?; // Ten milliseconds later.
    /// # Ok(()) }
    /// ```
    pub async fn acquire(&self) -> Result<(), Limited> {
        self.acquire_many(1).await
    }

    /// As [`acquire`](RateLimiter::acquire), for so many calls at once. No call, or more of them than the burst, are refused.
    pub async fn acquire_many(&self, calls: u32) -> Result<(), Limited> {
        let turn = self.reserve_many(calls)?;
        if let Some(at) = turn.at() {
            let mut timer = pin!(Timer::new());
            poll_fn(|cx| timer.as_mut().poll_until(at, &self.clock, cx)).await;
        }
        turn.used();
        Ok(())
    }
}
