//! The trait of stores.

use super::{
    ChangeOutcome, CopyOutcome, Cursor, DeadLetter, Edit, FailedReplay, Filter, GroupCount, LetterChange,
    LetterOrder, Page, PutOutcome, Record, ReplayRequest, ReplayStart,
};
use crate::StoreFuture;
use std::time::Duration;

/// Keeps dead letters. Each method is one transaction: it takes effect as a whole or not at all.
///
/// The functions [`merge`](super::merge), [`apply`](super::apply), [`copy`](super::copy),
/// [`begin_replay`](super::begin_replay) and [`finish_replay`](super::finish_replay) say what a store has to do with a letter;
/// the suite `seawall_testkit::conformance::dead_letter` checks it.
pub trait DeadLetterStore: Send + Sync + 'static {
    /// Keeps a record. If the letter is there already, see [`merge`](super::merge): attempts are never overwritten.
    fn put<'a>(&'a self, record: &'a Record) -> StoreFuture<'a, PutOutcome>;

    /// The letter with this id, also if it is deleted.
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<DeadLetter>>;

    /// At most `limit` letters that pass the filter, in this order, after the cursor.
    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        order: LetterOrder,
        after: Option<&'a Cursor>,
        limit: u32,
    ) -> StoreFuture<'a, Page>;

    /// How many letters pass the filter, by kind and place of their origin, reason and status; at most `limit` groups, the
    /// largest one first.
    fn counts<'a>(&'a self, filter: &'a Filter, limit: u32) -> StoreFuture<'a, Vec<GroupCount>>;

    /// Parks, unparks, deletes or restores a letter.
    fn change<'a>(&'a self, id: &'a str, change: LetterChange) -> StoreFuture<'a, ChangeOutcome>;

    /// Makes an edited copy with this id and lets it stand in for the letter. The same request again gives the same copy. A
    /// letter whose replay runs is not copied.
    fn copy<'a>(&'a self, id: &'a str, edit: &'a Edit, copy_id: &'a str) -> StoreFuture<'a, CopyOutcome>;

    /// Claims a letter for a replay.
    fn begin_replay<'a>(&'a self, id: &'a str, request: &'a ReplayRequest) -> StoreFuture<'a, ReplayStart>;

    /// Records how a replay ended, `None` for a success. Returns false if the claim is no longer the newest one.
    fn finish_replay<'a>(
        &'a self,
        id: &'a str,
        claim: u64,
        failure: Option<&'a FailedReplay>,
    ) -> StoreFuture<'a, bool>;

    /// Removes for good at most `limit` letters that were deleted longer ago than `deleted`, or replayed longer ago than
    /// `replayed`. A letter that waits, is parked or superseded stays, unless it was deleted. Returns how many were removed.
    fn purge(&self, deleted: Duration, replayed: Duration, limit: u32) -> StoreFuture<'_, u64>;
}
