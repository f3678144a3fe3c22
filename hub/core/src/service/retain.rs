//! Letting go of what is old.
//!
//! # Why look first, and delete later?
//! To find what is old means to look at much that is not: that is done beside the one who writes. What is found goes in small
//! units, in a lane that waits for all others; each looks again, because a replay may have come between.

use std::ops::AddAssign;
use std::sync::PoisonError;
use std::time::Duration;

use metrics::counter;
use tracing::{info, warn};

use super::hub::Hub;
use super::numbers;
use crate::domain::retention::{Limits, Retention};
use crate::domain::time::Millis;
use crate::port::store::{Change, Prune, Store, StoreError, Unit, Urgency};
use crate::port::transport::Transport;

/// So often somebody looks whether anything is old.
const LOOK_EVERY: Duration = Duration::from_secs(60);
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// The one who writes rests so long between two units: some thousand events a second can go, and others come between.
const REST: Duration = Duration::from_millis(10);
/// So many events go together at most,
const EVENTS_TOGETHER: usize = 32;
/// and so many bytes of them: large ones cost more to take out.
const BYTES_TOGETHER: u64 = 256 * 1024;
/// So many rows of anything else.
const ROWS_TOGETHER: u32 = 200;
/// So many pages are given back together.
const PAGES_TOGETHER: u32 = 64;

/// What has gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    /// Events, with all that belonged to them.
    pub events: usize,
    /// Entries of the audit log.
    pub audit: usize,
    /// Incidents that were over.
    pub incidents: usize,
    /// Keys of idempotency whose time was over.
    pub keys: usize,
    /// Pages that were given back to the system.
    pub pages: usize,
}

impl AddAssign for Pruned {
    fn add_assign(&mut self, more: Pruned) {
        self.events += more.events;
        self.audit += more.audit;
        self.incidents += more.incidents;
        self.keys += more.keys;
        self.pages += more.pages;
    }
}

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// How long what has ended is kept, from now on.
    pub fn keep_for(&self, retention: Retention) {
        *self.retention.write().unwrap_or_else(PoisonError::into_inner) = retention;
    }

    /// How long what has ended is kept.
    pub fn retention(&self) -> Retention {
        *self.retention.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of what is old, again and again.
    pub(super) async fn retain(&self) {
        // They are there from the start, and not only when there was something to count.
        for kind in ["event", "audit", "incident", "key", "page"] {
            counter!(numbers::PRUNED, "kind" => kind).increment(0);
        }
        // Soon after the start too: whoever starts it again may have done so because the disk was full.
        tokio::time::sleep(FIRST_LOOK).await;
        loop {
            let before = self.clock.now();
            let done = self.prune().await;
            let duration = seawall::telemetry::Millis(self.clock.now().since(before));
            match done {
                Ok(Pruned { events: 0, audit: 0, incidents: 0, pages: 0, .. }) => {}
                Ok(Pruned { events, audit, incidents, keys, pages }) => {
                    info!(target: "seawall", events, audit, incidents, keys, pages, %duration, "[Store][Prune] Success.");
                }
                // It is looked for again in a minute, and the store has said itself what is wrong with it.
                Err(error) => {
                    warn!(target: "seawall", cause = %error, %duration, "[Store][Prune] Retry triggered.");
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Lets go of all that is old now.
    pub async fn prune(&self) -> Result<Pruned, StoreError> {
        let retention = *self.retention.read().unwrap_or_else(PoisonError::into_inner);
        // What is kept for a month is not gone because a clock was set by a year.
        let jumped = i64::try_from(self.deliver.clock_jumped().as_millis()).unwrap_or(i64::MAX);
        let limits = retention.limits(Millis(self.now().0.saturating_sub(jumped)));
        let mut pruned = Pruned { events: self.prune_events(limits).await?, ..Pruned::default() };
        pruned.audit =
            self.prune_rows("audit", || Prune::Audit { before: limits.audit, most: ROWS_TOGETHER }).await?;
        let incidents = || Prune::Incidents { before: limits.audit, most: ROWS_TOGETHER };
        pruned.incidents = self.prune_rows("incident", incidents).await?;
        pruned.keys = self.prune_rows("key", || Prune::Keys { now: self.now(), most: ROWS_TOGETHER }).await?;
        pruned.pages = self.prune_rows("page", || Prune::Room { most: PAGES_TOGETHER }).await?;
        Ok(pruned)
    }

    async fn prune_events(&self, limits: Limits) -> Result<usize, StoreError> {
        let (mut gone, mut behind) = (0, 0);
        loop {
            let old = self.store.old_events(limits, behind).await?;
            let mut found = &old.found[..];
            while !found.is_empty() {
                let mut bytes = 0;
                let fits = |(_, size): &&(u64, u64)| {
                    bytes += size;
                    bytes <= BYTES_TOGETHER
                };
                let together = found.iter().take(EVENTS_TOGETHER).take_while(fits).count().max(1);
                let numbers = found[..together].iter().map(|(number, _)| *number).collect();
                gone += self.prune_some("event", Prune::Events { numbers, limits }).await?;
                found = &found[together..];
            }
            match old.next {
                Some(next) => behind = next,
                None => return Ok(gone),
            }
        }
    }

    /// The same again until nothing is left.
    async fn prune_rows(&self, kind: &'static str, prune: impl Fn() -> Prune) -> Result<usize, StoreError> {
        let mut gone = 0;
        loop {
            match self.prune_some(kind, prune()).await? {
                0 => return Ok(gone),
                more => gone += more,
            }
        }
    }

    async fn prune_some(&self, kind: &'static str, prune: Prune) -> Result<usize, StoreError> {
        let touched = self.store.commit(Urgency::Retention, Unit::of(Change::Prune(prune))).await?.touched;
        counter!(numbers::PRUNED, "kind" => kind).increment(touched as u64);
        if touched > 0 {
            tokio::time::sleep(REST).await;
        }
        Ok(touched)
    }
}
