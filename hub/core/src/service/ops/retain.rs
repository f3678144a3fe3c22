//! Letting go of what is old.
//!
//! # Why look first, and delete later?
//! To find what is old means to look at much that is not: that is done beside the one who writes. What is found goes in small
//! units, in a lane that waits for all others; each looks again, because a replay may have come between.

use std::ops::AddAssign;
use std::time::Duration;

use metrics::counter;
use tracing::{info, warn};

use crate::domain::retention::{Limits, Retention};
use crate::domain::time::Millis;
use crate::metric_names;
use crate::port::store::{Change, PruneTarget, Store, StoreError, UnitOfWork, WritePriority};
use crate::port::transport::Transport;
use crate::service::handles::OpsHandle;

/// How often old rows are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(60);
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// The rest of the writer between two units: some thousand events can be deleted in a second, and other units come between.
const REST: Duration = Duration::from_millis(10);
/// The maximum number of events in a unit.
const EVENTS_TOGETHER: usize = 32;
/// The maximum number of bytes of events in a unit: large ones cost more to delete.
const BYTES_TOGETHER: u64 = 256 * 1024;
/// The maximum number of other rows in a unit.
const ROWS_TOGETHER: u32 = 200;
/// The maximum number of pages that are released in a unit.
const PAGES_TOGETHER: u32 = 64;

/// The number of rows that were deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PruneReport {
    /// Events with all their rows.
    pub events: usize,
    /// Entries of the audit log.
    pub audit: usize,
    /// Incidents that were resolved.
    pub incidents: usize,
    /// Idempotency keys that were expired.
    pub keys: usize,
    /// Pages that were returned to the file system.
    pub pages: usize,
}

impl AddAssign for PruneReport {
    fn add_assign(&mut self, more: PruneReport) {
        self.events += more.events;
        self.audit += more.audit;
        self.incidents += more.incidents;
        self.keys += more.keys;
        self.pages += more.pages;
    }
}

impl<S: Store + Clone, T: Transport> OpsHandle<S, T> {
    /// Sets the retention from now on.
    pub fn keep_for(&self, retention: Retention) {
        *self.core.retention.write() = retention;
    }

    /// Returns the current retention.
    #[must_use]
    pub fn retention(&self) -> Retention {
        *self.core.retention.read()
    }

    /// Deletes old rows periodically.
    pub(in crate::service) async fn retain(&self) {
        // They are there from the start, and not only when there was something to count.
        for kind in ["event", "audit", "incident", "key", "page"] {
            counter!(metric_names::PRUNED, "kind" => kind).increment(0);
        }
        // Soon after the start too: whoever starts it again may have done so because the disk was full.
        tokio::time::sleep(FIRST_LOOK).await;
        loop {
            let before = self.core.clock.now();
            let done = self.prune().await;
            let duration = seawall::telemetry::Millis(self.core.clock.now().since(before));
            match done {
                Ok(PruneReport { events: 0, audit: 0, incidents: 0, pages: 0, .. }) => {}
                Ok(PruneReport { events, audit, incidents, keys, pages }) => {
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

    /// Deletes all rows that are old now.
    pub async fn prune(&self) -> Result<PruneReport, StoreError> {
        let retention = *self.core.retention.read();
        // What is kept for a month is not gone because a clock was set by a year.
        let jumped = i64::try_from(self.core.deliver.clock_jumped().as_millis()).unwrap_or(i64::MAX);
        let limits = retention.limits(Millis(self.core.now().0.saturating_sub(jumped)));
        let mut pruned = PruneReport { events: self.prune_events(limits).await?, ..PruneReport::default() };
        pruned.audit = self
            .prune_rows("audit", || PruneTarget::Audit { before: limits.audit, limit: ROWS_TOGETHER })
            .await?;
        let incidents = || PruneTarget::Incidents { before: limits.audit, limit: ROWS_TOGETHER };
        pruned.incidents = self.prune_rows("incident", incidents).await?;
        pruned.keys = self
            .prune_rows("key", || PruneTarget::Keys { now: self.core.now(), limit: ROWS_TOGETHER })
            .await?;
        pruned.pages = self.prune_rows("page", || PruneTarget::Room { limit: PAGES_TOGETHER }).await?;
        Ok(pruned)
    }

    async fn prune_events(&self, limits: Limits) -> Result<usize, StoreError> {
        let (mut gone, mut behind) = (0, 0);
        loop {
            let old = self.core.store.old_events(limits, behind).await?;
            let mut found = &old.found[..];
            while !found.is_empty() {
                let mut bytes = 0;
                let fits = |(_, size): &&(u64, u64)| {
                    bytes += size;
                    bytes <= BYTES_TOGETHER
                };
                let together = found.iter().take(EVENTS_TOGETHER).take_while(fits).count().max(1);
                let numbers = found[..together].iter().map(|(number, _)| *number).collect();
                gone += self.prune_some("event", PruneTarget::Events { numbers, limits }).await?;
                found = &found[together..];
            }
            match old.next {
                Some(next) => behind = next,
                None => return Ok(gone),
            }
        }
    }

    /// Repeats a unit until nothing is left.
    async fn prune_rows(
        &self,
        kind: &'static str,
        prune: impl Fn() -> PruneTarget,
    ) -> Result<usize, StoreError> {
        let mut gone = 0;
        loop {
            match self.prune_some(kind, prune()).await? {
                0 => return Ok(gone),
                more => gone += more,
            }
        }
    }

    async fn prune_some(&self, kind: &'static str, prune: PruneTarget) -> Result<usize, StoreError> {
        let touched = self
            .core
            .store
            .commit(WritePriority::Retention, UnitOfWork::of(Change::Prune(prune)))
            .await?
            .touched;
        counter!(metric_names::PRUNED, "kind" => kind).increment(touched as u64);
        if touched > 0 {
            tokio::time::sleep(REST).await;
        }
        Ok(touched)
    }
}
