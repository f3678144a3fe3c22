//! The handle that programs use.

use std::sync::Arc;
use std::time::Duration;

use seawall::Clock;

use super::claim::ClaimGuard;
use super::telemetry;
use super::{
    BulkReplay, BulkReplayError, BulkReplayReport, ChangeOutcome, CopyOutcome, Cursor, DeadLetter,
    DeadLetterStore, Edit, FailedReplay, Filter, GroupCount, LetterChange, LetterOrder, PAGE_LIMIT_MAX, Page,
    PutOutcome, Record, ReplayOutcome, ReplayRequest, ReplayStart, Replayer,
};
use crate::StoreError;

/// How many letters one statement of a purge removes: few enough that others hardly wait for it.
pub const PURGE_BATCH: u32 = 500;

/// The largest number of groups that are counted. A program that names a place by an order's number must not blow up
/// the metrics.
pub const COUNTED_GROUPS_MAX: u32 = 200;

/// How long letters are kept that nobody has to look at any more. Letters that wait or are parked are kept for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LetterRetention {
    /// How long a deleted letter can be restored.
    pub deleted: Duration,
    /// How long a replayed letter can be looked at. It should be longer than the time within which a request is repeated:
    /// the idempotency keys are gone with the letter.
    pub replayed: Duration,
}

impl LetterRetention {
    /// The default for both: a month, so that somebody back from a holiday still finds them.
    pub const DEFAULT: Duration = Duration::from_secs(30 * 86_400);

    /// Keeps deleted letters for this long.
    #[must_use]
    pub fn deleted(mut self, age: Duration) -> Self {
        self.deleted = age;
        self
    }

    /// Keeps replayed letters for this long.
    #[must_use]
    pub fn replayed(mut self, age: Duration) -> Self {
        self.replayed = age;
        self
    }
}

impl Default for LetterRetention {
    fn default() -> Self {
        LetterRetention { deleted: LetterRetention::DEFAULT, replayed: LetterRetention::DEFAULT }
    }
}

/// Dead letters, wherever they are kept. A handle: clones share everything.
#[derive(Clone)]
pub struct DeadLetters {
    store: Arc<dyn DeadLetterStore>,
    clock: Clock,
    #[cfg(feature = "metrics")]
    gauges: Arc<telemetry::GroupGauges>,
}

impl DeadLetters {
    /// Creates a handle on a store.
    #[must_use]
    pub fn new(store: Arc<dyn DeadLetterStore>) -> Self {
        DeadLetters {
            store,
            clock: Clock::default(),
            #[cfg(feature = "metrics")]
            gauges: Arc::default(),
        }
    }

    /// Measures how long replays take with this clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn DeadLetterStore> {
        &self.store
    }

    /// Keeps a record. If it fails, the message has to stay where it was: acknowledge it only after this returns `Ok`.
    pub async fn put(&self, record: &Record) -> Result<PutOutcome, StoreError> {
        let outcome = self.store.put(record).await?;
        telemetry::put(record, outcome);
        Ok(outcome)
    }

    /// The letter with this id, also if it is deleted.
    pub async fn get(&self, id: &str) -> Result<Option<DeadLetter>, StoreError> {
        self.store.get(id).await
    }

    /// A page of letters, the newest one first. `limit` is cut to [`PAGE_LIMIT_MAX`].
    pub async fn list(
        &self,
        filter: &Filter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page, StoreError> {
        self.store.list(filter, LetterOrder::NewestFirst, after, limit.clamp(1, PAGE_LIMIT_MAX)).await
    }

    /// The newest letters with this text in payload, headers or message.
    pub async fn search(&self, text: &str, limit: u32) -> Result<Page, StoreError> {
        self.list(&Filter::default().text(text), None, limit).await
    }

    /// How many letters pass the filter, by group: at most [`COUNTED_GROUPS_MAX`] groups, the largest one first.
    pub async fn counts(&self, filter: &Filter) -> Result<Vec<GroupCount>, StoreError> {
        self.store.counts(filter, COUNTED_GROUPS_MAX).await
    }

    /// Leaves a letter alone: replays refuse it until it is unparked.
    pub async fn park(&self, id: &str) -> Result<ChangeOutcome, StoreError> {
        self.change(id, LetterChange::Park).await
    }

    /// Lets a parked or superseded letter wait again.
    pub async fn unpark(&self, id: &str) -> Result<ChangeOutcome, StoreError> {
        self.change(id, LetterChange::Unpark).await
    }

    /// Deletes a letter. It can be restored until it is purged.
    pub async fn delete(&self, id: &str) -> Result<ChangeOutcome, StoreError> {
        self.change(id, LetterChange::Delete).await
    }

    /// Undoes a deletion. The letter stands where it stood before.
    pub async fn restore(&self, id: &str) -> Result<ChangeOutcome, StoreError> {
        self.change(id, LetterChange::Restore).await
    }

    async fn change(&self, id: &str, change: LetterChange) -> Result<ChangeOutcome, StoreError> {
        let outcome = self.store.change(id, change).await?;
        telemetry::changed(id, change, outcome);
        Ok(outcome)
    }

    /// Sends a letter again, once per idempotency key. A replay that fails leaves the letter where it was, with one more
    /// attempt. An error means that nothing was sent.
    ///
    /// The record of what was sent is repeated until the lease has ended, if the store fails. If the process dies between the
    /// sending and its record, the letter can be replayed again when the lease has ended, and may be sent twice: with the same
    /// original id and the same generation. A call that is dropped leaves the record to a task.
    pub async fn replay(
        &self,
        id: &str,
        request: &ReplayRequest,
        replayer: &dyn Replayer,
    ) -> Result<ReplayOutcome, StoreError> {
        let mut claim = ClaimGuard::new(&self.store, &self.clock, id, request);
        let message = match claim.begin().await? {
            ReplayStart::Started { message, .. } => message,
            ReplayStart::Done { generation } => {
                return Ok(ReplayOutcome::Replayed { generation, repeated: true });
            }
            ReplayStart::InProgress { until } => return Ok(ReplayOutcome::InProgress { until }),
            ReplayStart::Refused(status) => return Ok(ReplayOutcome::Refused(status)),
            ReplayStart::Absent => return Ok(ReplayOutcome::Absent),
        };
        let (began, generation) = (self.clock.precise(), message.generation);
        let sent = tokio::time::timeout(request.timeout, replayer.replay(*message)).await;
        let took = self.clock.precise().since(began);
        let error = match sent {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => {
                Some(format!("the replayer took longer than {:?}; it may have sent it", request.timeout))
            }
        };
        let recorded = claim.finish(error.clone().map(|error| FailedReplay { took, error })).await;
        let outcome = match (error, recorded) {
            (None, Ok(true)) => ReplayOutcome::Replayed { generation, repeated: false },
            (None, Ok(false)) => ReplayOutcome::Overtaken,
            (None, Err(error)) => {
                telemetry::not_recorded(id, &error);
                ReplayOutcome::NotRecorded { generation, error: error.to_string() }
            }
            (Some(error), recorded) => {
                if let Err(error) = recorded {
                    telemetry::not_recorded(id, &error);
                }
                ReplayOutcome::Failed { error }
            }
        };
        telemetry::replayed(id, &outcome, took);
        Ok(outcome)
    }

    /// Makes an edited copy of a letter, which stands in for it from then on, and sends the copy. The same key and the same
    /// edit again give the same copy and the same replay. While a replay of the letter runs, nothing is copied or sent.
    pub async fn edit_and_replay(
        &self,
        id: &str,
        edit: &Edit,
        request: &ReplayRequest,
        replayer: &dyn Replayer,
    ) -> Result<(CopyOutcome, Option<ReplayOutcome>), StoreError> {
        let copy_id = copy_id(id, &request.key);
        let outcome = self.store.copy(id, edit, &copy_id).await?;
        let CopyOutcome::Copied(_) = &outcome else { return Ok((outcome, None)) };
        let replay = self.replay(&copy_id, request, replayer).await?;
        Ok((outcome, Some(replay)))
    }

    /// Sends many letters again, one after the other, in the order in which they [happened](DeadLetter::happened_at), no faster
    /// than `bulk` says.
    pub async fn replay_many(
        &self,
        filter: &Filter,
        bulk: &BulkReplay,
        replayer: &dyn Replayer,
    ) -> Result<BulkReplayReport, BulkReplayError> {
        bulk.run(self, filter, replayer).await
    }

    /// Removes for good what was deleted or replayed long enough ago, in small batches. Returns how many letters that were.
    pub async fn purge(&self, retention: &LetterRetention) -> Result<u64, StoreError> {
        let mut purged = 0;
        loop {
            let batch = self.store.purge(retention.deleted, retention.replayed, PURGE_BATCH).await?;
            purged += batch;
            if batch < u64::from(PURGE_BATCH) {
                return Ok(purged);
            }
        }
    }

    /// Records the gauge `seawall.dead_letters` of every group, and sets it to zero for groups that are gone since the last call on
    /// this handle or a clone of it. Call it now and then: counting reads the store.
    #[cfg(feature = "metrics")]
    pub async fn record_gauges(&self) -> Result<(), StoreError> {
        let groups = self.counts(&Filter::default()).await?;
        self.gauges.record(&groups);
        Ok(())
    }
}

impl std::fmt::Debug for DeadLetters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeadLetters").finish_non_exhaustive()
    }
}

/// The id of the copy that this request makes: the same for the same request, and for no other.
fn copy_id(id: &str, key: &str) -> String {
    // FNV-1a with 128 bits. Nobody gains anything by a collision: the edit is compared as well.
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in (id.len() as u64).to_be_bytes().iter().chain(id.as_bytes()).chain(key.as_bytes()) {
        hash = (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    format!("{id}~{hash:032x}")
}
