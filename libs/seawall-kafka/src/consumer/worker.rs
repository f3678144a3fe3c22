//! Runs one record after another. A consumer has as many workers as records may run at once.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::coop::{consume_budget, has_budget_remaining};

use super::commit::commit;
use super::ended::EndedRecord;
use super::handover::Commit;
use super::lanes::Lane;
use super::poll::Client;
use super::state::{Shared, Start};
use super::task::{Job, Outcome, RecordTask};
use crate::record::ReceivedRecord;

/// How long a record waits whose mark could not be written, or whose run was broken off.
const AGAIN_WAIT: Duration = Duration::from_millis(500);

/// What a worker needs.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) task: Arc<RecordTask>,
    pub(crate) client: Weak<Client>,
}

/// A record that runs. One whose run is broken off runs again.
struct RunningRecord<'a> {
    shared: &'a Shared,
    lane: Lane,
    /// Taken when it ends.
    job: Option<Job>,
}

impl RunningRecord<'_> {
    fn end(mut self, outcome: Outcome) -> Option<EndedRecord> {
        self.take(outcome)
    }

    fn take(&mut self, outcome: Outcome) -> Option<EndedRecord> {
        Some(EndedRecord { lane: self.lane, job: self.job.take()?, outcome })
    }
}

impl Drop for RunningRecord<'_> {
    fn drop(&mut self) {
        if let Some(ended) = self.take(Outcome::Again(AGAIN_WAIT)) {
            self.shared.end(ended);
        }
    }
}

impl Worker {
    /// Runs records, one at a time. Never ends by itself.
    pub(crate) async fn run(self) {
        let mut ended = None;
        loop {
            match self.shared.next(ended.take()) {
                Some(start) => ended = self.run_record(start).await,
                None => self.shared.ready.notified().await,
            }
            // Records that end at once would keep the thread from all else that the program does.
            if !has_budget_remaining() {
                ended.take().into_iter().for_each(|ended| self.shared.end(ended));
            }
            consume_budget().await;
        }
    }

    async fn run_record(&self, Start { lane, job, alone, revocation }: Start) -> Option<EndedRecord> {
        let (place, offset) = (job.place, job.record.offset);
        let record = ReceivedRecord::of(&job.record, &self.shared.topics[place.0], place.1);
        let running = RunningRecord { shared: &self.shared, lane, job: Some(job) };
        let work = async {
            if let Some(mark) = alone
                && !Box::pin(self.write_mark(Commit { place, offset, mark })).await
            {
                return Outcome::Again(AGAIN_WAIT);
            }
            self.task.run(record, place.0 > 0).await
        };
        tokio::select! {
            biased;
            outcome = self.with_successor(work) => running.end(outcome),
            () = revocation.wait() => running.end(Outcome::Again(AGAIN_WAIT)),
        }
    }

    /// Runs the work, and wakes another worker for the next record when this one has to wait. One that ends at once needs no
    /// other: its worker takes the next record itself.
    async fn with_successor<T>(&self, work: impl Future<Output = T>) -> T {
        let (mut work, mut is_first) = (pin!(work), true);
        poll_fn(|context| {
            let result = work.as_mut().poll(context);
            if result.is_pending() && std::mem::take(&mut is_first) {
                self.shared.wake_worker();
            }
            result
        })
        .await
    }

    /// Writes the mark of a record that may kill the process. Returns whether the cluster has it.
    async fn write_mark(&self, mark: Commit) -> bool {
        let (client, shared) = (self.client.clone(), self.shared.clone());
        let write = move || client.upgrade().map(|client| commit(&client, &shared, || vec![mark]));
        matches!(tokio::task::spawn_blocking(write).await, Ok(Some(Ok(()))))
    }
}
