//! Replays of many letters: in the order in which things happened, at a rate of their own, and not against a receiver that is
//! down.

use std::fmt;

use seawall::rate::RateLimiter;
use seawall::{ConfigError, RateLimit, millis, secs};

use super::{
    Cursor, DeadLetters, Filter, LetterOrder, PAGE_LIMIT, ReplayOutcome, ReplayRequest, Replayer, Status,
};
use crate::StoreError;

/// After this many failures in a row a replay of many stops: the receiver is down, and every further letter would only get one
/// more failed attempt.
pub const STOP_AFTER_FAILURES: u32 = 10;

/// How many letters are sent again, how fast, and when to stop.
#[derive(Debug)]
pub struct BulkReplay {
    request: ReplayRequest,
    limiter: RateLimiter,
    limit: u64,
    stop_after_failures: u32,
}

impl BulkReplay {
    /// Creates a replay of many under one idempotency key: the same key again skips what was replayed before, so that a run
    /// that was broken off can be repeated. `rate_per_second` is the rate of this run alone, and the letters are spread evenly
    /// over the second.
    pub fn new(request: ReplayRequest, rate_per_second: u32) -> Result<Self, ConfigError> {
        let rate = RateLimit::calls(rate_per_second).per(secs(1)).burst(1);
        // A turn is at most a second away, since letters are sent one after the other.
        let limiter = rate.max_wait(secs(1) + millis(100)).build()?;
        Ok(BulkReplay { request, limiter, limit: u64::MAX, stop_after_failures: STOP_AFTER_FAILURES })
    }

    /// The maximum number of letters that are sent: a canary sends a few first.
    #[must_use]
    pub fn limit(mut self, letters: u64) -> Self {
        self.limit = letters;
        self
    }

    /// Stops after this many failures in a row instead of [`STOP_AFTER_FAILURES`]. Zero counts as one.
    #[must_use]
    pub fn stop_after_failures(mut self, failures: u32) -> Self {
        self.stop_after_failures = failures.max(1);
        self
    }

    pub(super) async fn run(
        &self,
        letters: &DeadLetters,
        filter: &Filter,
        replayer: &dyn Replayer,
    ) -> Result<BulkReplayReport, BulkReplayError> {
        let mut report = BulkReplayReport::default();
        match self.send(letters, filter, replayer, &mut report).await {
            Ok(()) => Ok(report),
            Err(error) => Err(BulkReplayError { report, error }),
        }
    }

    async fn send(
        &self,
        letters: &DeadLetters,
        filter: &Filter,
        replayer: &dyn Replayer,
        report: &mut BulkReplayReport,
    ) -> Result<(), StoreError> {
        let mut filter = filter.clone();
        if !self.request.again {
            filter.status = Some(Status::Waiting);
        }
        let (mut after, mut failures_in_row): (Option<Cursor>, u32) = (None, 0);
        loop {
            let page =
                letters.store().list(&filter, LetterOrder::AsItHappened, after.as_ref(), PAGE_LIMIT).await?;
            for letter in &page.letters {
                if report.replayed + report.failed >= self.limit {
                    return Ok(());
                }
                if failures_in_row >= self.stop_after_failures {
                    report.stopped = true;
                    return Ok(());
                }
                // A refusal only means that the turn is more than a second away, which can't be; the letter waits then.
                if self.limiter.acquire().await.is_err() {
                    report.skipped += 1;
                    continue;
                }
                match letters.replay(letter.id(), &self.request, replayer).await? {
                    ReplayOutcome::Replayed { repeated: false, .. } | ReplayOutcome::Overtaken => {
                        report.replayed += 1;
                        failures_in_row = 0;
                    }
                    ReplayOutcome::NotRecorded { .. } => {
                        report.replayed += 1;
                        report.not_recorded += 1;
                        failures_in_row = 0;
                    }
                    ReplayOutcome::Failed { .. } => {
                        report.failed += 1;
                        failures_in_row += 1;
                    }
                    _ => report.skipped += 1,
                }
            }
            after = page.next;
            if after.is_none() {
                report.stopped = failures_in_row >= self.stop_after_failures;
                return Ok(());
            }
        }
    }
}

/// A replay of many that the store ended. What was sent until then is in the report; the same run with the same key goes on where
/// this one ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct BulkReplayError {
    /// What became of the letters until then.
    pub report: BulkReplayReport,
    /// What the store said.
    pub error: StoreError,
}

impl fmt::Display for BulkReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BulkReplayReport { replayed, failed, .. } = self.report;
        write!(f, "the replay of many ended after {replayed} letters that were sent and {failed} that failed")
    }
}

impl std::error::Error for BulkReplayError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// What became of a replay of many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BulkReplayReport {
    /// The number of letters that were sent.
    pub replayed: u64,
    /// The number of letters among them whose sending could not be recorded: they still wait, and may be sent again.
    pub not_recorded: u64,
    /// The number of letters whose replay failed.
    pub failed: u64,
    /// The number of letters that somebody else replayed, parked or deleted meanwhile.
    pub skipped: u64,
    /// Whether the run stopped because of failures in a row.
    pub stopped: bool,
}
