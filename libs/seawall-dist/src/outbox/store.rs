//! What a store of an outbox has to do.

use std::time::Duration;

use crate::{Message, Millis, StoreFuture};

/// A store of messages that wait to be published.
///
/// # Lanes
/// A row belongs to a lane, which its topic and its aggregate id decide: all rows of one aggregate in one topic are in the
/// same lane, and a lane has rows of one topic. A relay leases lanes, not rows. So one relay at a time works for an aggregate,
/// whatever commits meanwhile, and a claim need not change the state of a row.
///
/// # What every store promises
/// - A claim finds rows by their state and never by "the largest id so far": a row that commits late is found too.
/// - A claim counts the attempt. A row that kills the process is counted as well.
/// - A row of an aggregate is never claimed while an earlier row (a smaller id) of the same aggregate is pending and not part of
///   the same batch.
/// - Outcomes are recorded only under the token of the latest lease of the lane.
/// - Times are those of the database.
pub trait OutboxStore: Send + Sync {
    /// Stores messages on their own, in one transaction. Rows that tell of other data are written in the transaction of that
    /// data instead, by the `enqueue` of the database's own type.
    fn store<'a>(&'a self, messages: &'a [Message]) -> StoreFuture<'a, ()>;

    /// Leases free lanes of one topic that have due rows, and claims rows in them. Returns `None` if no free lane has a due
    /// row. A batch may be empty: rows were found, but all of them wait for an earlier row of their aggregate.
    fn claim<'a>(&'a self, request: &'a BatchRequest) -> StoreFuture<'a, Option<Batch>>;

    /// Extends the lease to this time from now; false if another relay has one of the lanes.
    fn renew<'a>(&'a self, lease: &'a BatchLease, duration: Duration) -> StoreFuture<'a, bool>;

    /// Records what came of the rows of a batch and ends the lease, in one transaction. Rows without an outcome stay as they
    /// are. Returns the ids of the rows that were recorded: rows in lanes that another relay has leased meanwhile are not, and
    /// neither are rows whose outcome was recorded before.
    fn record<'a>(
        &'a self,
        lease: &'a BatchLease,
        outcomes: &'a [RowOutcome],
        retention: Retention,
    ) -> StoreFuture<'a, Vec<i64>>;

    /// Counts what waits.
    fn stats(&self) -> StoreFuture<'_, Stats>;

    /// Lists rows that were set aside with an id above `after`, by their ids.
    fn list_dead(&self, after: i64, limit: u32) -> StoreFuture<'_, Vec<OutboxRow>>;

    /// Makes rows that were set aside pending again, with no attempts. Returns how many. They come after rows of their
    /// aggregate that have been published meanwhile.
    fn release<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64>;

    /// Deletes rows that were set aside. Returns how many.
    fn discard<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64>;

    /// Deletes up to `limit` rows that were published longer ago than `age`. Returns how many.
    fn clean_up(&self, age: Duration, limit: u32) -> StoreFuture<'_, u64>;

    /// Waits for a hint that rows may have been stored. A hint may be lost and may come without rows: relays poll anyway. A
    /// store that has none never completes.
    fn hint(&self) -> StoreFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// How much a relay claims.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BatchRequest {
    /// Who claims, for people who look into the table.
    pub owner: String,
    /// The maximum number of rows.
    pub rows_max: u32,
    /// The maximum number of lanes.
    pub lanes_max: u32,
    /// How long the lanes are leased.
    pub lease: Duration,
}

impl BatchRequest {
    /// Creates a request.
    #[must_use]
    pub fn new(owner: &str, rows_max: u32, lanes_max: u32, lease: Duration) -> Self {
        BatchRequest { owner: owner.to_owned(), rows_max, lanes_max, lease }
    }
}

/// The right to work on the rows of some lanes for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BatchLease {
    /// The number of this lease. A later lease of the same lane has a larger one.
    pub token: i64,
    /// The lanes.
    pub lanes: Vec<i32>,
}

impl BatchLease {
    /// Creates a lease.
    #[must_use]
    pub fn new(token: i64, lanes: Vec<i32>) -> Self {
        BatchLease { token, lanes }
    }
}

/// Rows that a relay works on.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Batch {
    /// The lease of the rows' lanes.
    pub lease: BatchLease,
    /// The rows, by their ids.
    pub rows: Vec<OutboxRow>,
}

impl Batch {
    /// Creates a batch. The rows are in the order of their ids.
    #[must_use]
    pub fn new(lease: BatchLease, rows: Vec<OutboxRow>) -> Self {
        Batch { lease, rows }
    }
}

/// A stored message.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct OutboxRow {
    /// The number of the row: the order of an aggregate.
    pub id: i64,
    /// The message.
    pub message: Message,
    /// How often the row was claimed.
    pub attempts: u32,
    /// How many of the attempts ended with a recorded failure. The others are lost: their relay died or lost its lease.
    pub failures: u32,
    /// How many of the failures were the broker's and not the row's own: it was away, or a policy refused to ask it.
    pub outages: u32,
    /// When the row was stored, by the clock of the database.
    pub created_at: Millis,
    /// What the last failed attempt said.
    pub last_error: Option<String>,
}

impl OutboxRow {
    /// Creates a row that was never claimed.
    #[must_use]
    pub fn new(id: i64, message: Message, created_at: Millis) -> Self {
        OutboxRow { id, message, attempts: 0, failures: 0, outages: 0, created_at, last_error: None }
    }
}

/// What came of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowOutcome {
    /// The row.
    pub id: i64,
    /// What came of it.
    pub kind: OutcomeKind,
}

/// What came of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OutcomeKind {
    /// It was published.
    Published,
    /// It was not, and is due again after the delay.
    Failed {
        /// How long it waits.
        delay: Duration,
        /// Why it failed.
        error: String,
        /// True if the broker was away, or a policy refused to ask it. Such failures are counted apart from those of the row.
        outage: bool,
    },
    /// It was not attempted, because an earlier row of its aggregate failed. It gets the attempt back.
    Returned {
        /// How long it waits.
        delay: Duration,
    },
    /// It is not attempted any more, and no longer holds up its aggregate.
    Dead {
        /// Why it was set aside.
        error: String,
    },
}

/// What happens to rows that were published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Retention {
    /// They are deleted when their outcome is recorded.
    #[default]
    Delete,
    /// They are kept this long, with the status `published`, and then deleted in batches.
    Keep(Duration),
}

/// What waits in an outbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The number of rows that wait to be published.
    pub depth: u64,
    /// The age of the oldest row that waits.
    pub lag: Duration,
    /// The number of rows that were set aside.
    pub dead: u64,
}

impl Stats {
    /// Creates the numbers.
    #[must_use]
    pub fn new(depth: u64, lag: Duration, dead: u64) -> Self {
        Stats { depth, lag, dead }
    }
}

/// How long a row that waits for an earlier row of its aggregate is left alone. It is woken when the earlier one is published
/// or set aside; this time only matters when somebody changed the table by hand. It is much longer than the longest back-off: in an
/// outage, all rows behind those that fail are parked again after it.
pub const PARKED_TIME: Duration = Duration::from_secs(600);

/// The number of rows of a lane that a claim parks beyond those that it would have taken: a statement of some tens of milliseconds.
pub const PARKED_MAX: u32 = 1_000;

/// The largest number of rows of an aggregate that are woken at once when the rows before them are done.
pub const WOKEN_MAX: u32 = 100;

/// How many rows of an aggregate are woken when so many before them were published or set aside: about as many as the next batch
/// may take. If one of them fails, all the others are parked again.
#[must_use]
pub const fn woken_limit(finished: u32) -> u32 {
    let limit = finished.saturating_mul(2).saturating_add(8);
    if limit < WOKEN_MAX { limit } else { WOKEN_MAX }
}

/// How many rows a batch may hold, of `rows_max`, when one of them has lost attempts: a row that kills its process has to be
/// found, and its neighbours must not be set aside with it. Each lost attempt divides the batch by four.
#[must_use]
pub const fn batch_limit(rows_max: u32, lost_attempts: u32) -> u32 {
    let shift = if lost_attempts > 10 { 30 } else { lost_attempts * 2 };
    let limit = rows_max >> shift;
    if limit == 0 { 1 } else { limit }
}

/// The number of lanes of one topic.
pub const LANES_PER_TOPIC: i32 = 16;

/// The lane of a row, for stores that do not compute it themselves.
#[must_use]
pub fn lane_of(topic: &str, aggregate_id: &str) -> i32 {
    let topic = (fnv(topic) & 0xFFFF) as i32;
    let aggregate = fnv(aggregate_id) % LANES_PER_TOPIC.unsigned_abs();
    topic * LANES_PER_TOPIC + aggregate as i32
}

/// FNV-1a, whose lower bits are mixed with the upper ones. It must not change: rows of an older release are still there.
fn fnv(text: &str) -> u32 {
    let hash =
        text.bytes().fold(0x811C_9DC5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash ^ hash >> 16
}
