//! An outbox whose statements hang, or lose their answers.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use seawall::Fault;
use seawall_dist::outbox::{
    Batch, BatchLease, BatchRequest, MemoryOutbox, OutboxRow, OutboxStore, Retention, RowOutcome, Stats,
};
use seawall_dist::{Message, StoreError, StoreFuture};

#[derive(Default)]
pub(super) struct Faulty {
    pub(super) outbox: MemoryOutbox,
    hangs: Mutex<HashMap<&'static str, u32>>,
    loses: Mutex<HashMap<&'static str, u32>>,
    calls: Mutex<HashMap<&'static str, u32>>,
}

fn take(counts: &Mutex<HashMap<&'static str, u32>>, statement: &'static str) -> bool {
    let mut counts = counts.lock().unwrap();
    let Some(count) = counts.get_mut(statement).filter(|count| **count > 0) else { return false };
    *count -= 1;
    true
}

impl Faulty {
    /// The next calls of a statement never end.
    pub(super) fn hang(&self, statement: &'static str, calls: u32) {
        self.hangs.lock().unwrap().insert(statement, calls);
    }

    /// The next calls of a statement take effect, and their answers are lost.
    pub(super) fn lose(&self, statement: &'static str, calls: u32) {
        self.loses.lock().unwrap().insert(statement, calls);
    }

    pub(super) fn calls(&self, statement: &'static str) -> u32 {
        self.calls.lock().unwrap().get(statement).copied().unwrap_or(0)
    }

    fn pass<'a, T: Send + 'a>(
        &'a self,
        statement: &'static str,
        inner: StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        *self.calls.lock().unwrap().entry(statement).or_default() += 1;
        if take(&self.hangs, statement) {
            return Box::pin(std::future::pending());
        }
        if take(&self.loses, statement) {
            return Box::pin(async move {
                drop(inner.await?);
                Err(StoreError::without_cause(statement, Fault::io()))
            });
        }
        inner
    }
}

impl OutboxStore for Faulty {
    fn store<'a>(&'a self, messages: &'a [Message]) -> StoreFuture<'a, ()> {
        self.pass("store", self.outbox.store(messages))
    }

    fn claim<'a>(&'a self, request: &'a BatchRequest) -> StoreFuture<'a, Option<Batch>> {
        self.pass("claim", self.outbox.claim(request))
    }

    fn renew<'a>(&'a self, lease: &'a BatchLease, duration: Duration) -> StoreFuture<'a, bool> {
        self.pass("renew", self.outbox.renew(lease, duration))
    }

    fn record<'a>(
        &'a self,
        lease: &'a BatchLease,
        outcomes: &'a [RowOutcome],
        retention: Retention,
    ) -> StoreFuture<'a, Vec<i64>> {
        self.pass("record", self.outbox.record(lease, outcomes, retention))
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        self.pass("stats", self.outbox.stats())
    }

    fn list_dead(&self, after: i64, limit: u32) -> StoreFuture<'_, Vec<OutboxRow>> {
        self.pass("list_dead", self.outbox.list_dead(after, limit))
    }

    fn release<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64> {
        self.pass("release", self.outbox.release(ids))
    }

    fn discard<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64> {
        self.pass("discard", self.outbox.discard(ids))
    }

    fn clean_up(&self, age: Duration, limit: u32) -> StoreFuture<'_, u64> {
        self.pass("clean_up", self.outbox.clean_up(age, limit))
    }
}
