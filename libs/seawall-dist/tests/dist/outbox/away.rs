//! A store that does not answer.

use std::time::Duration;

use seawall::Fault;
use seawall_dist::outbox::{
    Batch, BatchLease, BatchRequest, OutboxRow, OutboxStore, Retention, RowOutcome, Stats,
};
use seawall_dist::{Message, StoreError, StoreFuture};

pub(crate) struct Away;

fn away<T: Send>(action: &'static str) -> StoreFuture<'static, T> {
    Box::pin(async move { Err(StoreError::without_cause(action, Fault::unreachable())) })
}

impl OutboxStore for Away {
    fn store<'a>(&'a self, _: &'a [Message]) -> StoreFuture<'a, ()> {
        away("writing to the outbox")
    }

    fn claim<'a>(&'a self, _: &'a BatchRequest) -> StoreFuture<'a, Option<Batch>> {
        away("claiming")
    }

    fn renew<'a>(&'a self, _: &'a BatchLease, _: Duration) -> StoreFuture<'a, bool> {
        away("renewing")
    }

    fn record<'a>(
        &'a self,
        _: &'a BatchLease,
        _: &'a [RowOutcome],
        _: Retention,
    ) -> StoreFuture<'a, Vec<i64>> {
        away("recording")
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        away("counting")
    }

    fn list_dead(&self, _: i64, _: u32) -> StoreFuture<'_, Vec<OutboxRow>> {
        away("listing")
    }

    fn release<'a>(&'a self, _: &'a [i64]) -> StoreFuture<'a, u64> {
        away("releasing")
    }

    fn discard<'a>(&'a self, _: &'a [i64]) -> StoreFuture<'a, u64> {
        away("discarding")
    }

    fn clean_up(&self, _: Duration, _: u32) -> StoreFuture<'_, u64> {
        away("cleaning up")
    }
}
