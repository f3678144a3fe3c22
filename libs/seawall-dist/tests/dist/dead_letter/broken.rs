//! Stores that are broken on purpose make the suite red.

use std::sync::Arc;
use std::time::Duration;

use seawall_dist::StoreFuture;
use seawall_dist::deadletter::{
    ChangeOutcome, CopyOutcome, Cursor, DeadLetter, DeadLetterStore, Edit, FailedReplay, Filter, GroupCount,
    LetterChange, LetterOrder, MemoryDeadLetters, Page, PutOutcome, Record, ReplayRequest, ReplayStart,
};
use seawall_testkit::conformance;

/// How a store is broken on purpose.
#[derive(Clone, Copy, PartialEq)]
enum Mistake {
    /// A replay removes the letter first and publishes then.
    ReplayDeletesFirst,
    /// A second put replaces the letter.
    PutOverwrites,
    /// A restored letter waits, whatever it did before.
    RestoreForgets,
    /// Any claim may finish, also one that was taken over or whose letter died again.
    FinishIsNotFenced,
    /// The idempotency key of a replay is not looked at.
    KeyIsIgnored,
    /// A letter is copied whether or not a replay of it runs.
    CopyIgnoresReplays,
    /// A list is always the newest letter first.
    OrderIsIgnored,
}

struct BrokenStore(MemoryDeadLetters, Mistake);

impl DeadLetterStore for BrokenStore {
    fn put<'a>(&'a self, record: &'a Record) -> StoreFuture<'a, PutOutcome> {
        Box::pin(async move {
            if self.1 == Mistake::PutOverwrites
                && self.0.get(&record.id).await?.is_some_and(|old| old.record != *record)
            {
                self.0.change(&record.id, LetterChange::Delete).await?;
                self.0.purge(Duration::ZERO, Duration::MAX, 1).await?;
                self.0.put(record).await?;
                return Ok(PutOutcome::Updated);
            }
            self.0.put(record).await
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<DeadLetter>> {
        self.0.get(id)
    }

    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        order: LetterOrder,
        after: Option<&'a Cursor>,
        limit: u32,
    ) -> StoreFuture<'a, Page> {
        let order = if self.1 == Mistake::OrderIsIgnored { LetterOrder::NewestFirst } else { order };
        self.0.list(filter, order, after, limit)
    }

    fn counts<'a>(&'a self, filter: &'a Filter, limit: u32) -> StoreFuture<'a, Vec<GroupCount>> {
        self.0.counts(filter, limit)
    }

    fn change<'a>(&'a self, id: &'a str, change: LetterChange) -> StoreFuture<'a, ChangeOutcome> {
        Box::pin(async move {
            let outcome = self.0.change(id, change).await?;
            if self.1 == Mistake::RestoreForgets && change == LetterChange::Restore {
                self.0.change(id, LetterChange::Unpark).await?;
            }
            Ok(outcome)
        })
    }

    fn copy<'a>(&'a self, id: &'a str, edit: &'a Edit, copy_id: &'a str) -> StoreFuture<'a, CopyOutcome> {
        Box::pin(async move {
            if self.1 == Mistake::CopyIgnoresReplays
                && let Some(claim) = self.0.get(id).await?.and_then(|letter| letter.claim)
            {
                let failure = FailedReplay { took: Duration::ZERO, error: "cut off".into() };
                self.0.finish_replay(id, claim.number, Some(&failure)).await?;
            }
            self.0.copy(id, edit, copy_id).await
        })
    }

    fn begin_replay<'a>(&'a self, id: &'a str, request: &'a ReplayRequest) -> StoreFuture<'a, ReplayStart> {
        Box::pin(async move {
            let mut request = request.clone();
            if self.1 == Mistake::KeyIsIgnored {
                request.key = format!("{:?}", self.0.get(id).await?.map(|letter| letter.claims));
                request = request.again();
            }
            let start = self.0.begin_replay(id, &request).await?;
            if self.1 == Mistake::ReplayDeletesFirst && matches!(start, ReplayStart::Started { .. }) {
                self.0.change(id, LetterChange::Delete).await?;
                self.0.purge(Duration::ZERO, Duration::MAX, 1).await?;
            }
            Ok(start)
        })
    }

    fn finish_replay<'a>(
        &'a self,
        id: &'a str,
        claim: u64,
        failure: Option<&'a FailedReplay>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let newest =
                self.0.get(id).await?.and_then(|letter| letter.claim).map_or(claim, |claim| claim.number);
            let claim = if self.1 == Mistake::FinishIsNotFenced { newest } else { claim };
            self.0.finish_replay(id, claim, failure).await
        })
    }

    fn purge(&self, deleted: Duration, replayed: Duration, limit: u32) -> StoreFuture<'_, u64> {
        self.0.purge(deleted, replayed, limit)
    }
}

async fn check(mistake: Mistake) {
    conformance::dead_letter(Arc::new(BrokenStore(MemoryDeadLetters::new(), mistake))).await;
}

/// CRD-7. Trap "replay = delete then enqueue": the suite is red.
#[tokio::test]
#[should_panic(expected = "a crash in the middle of a replay loses the letter")]
async fn crd_7_a_replay_that_deletes_first_is_found() {
    check(Mistake::ReplayDeletesFirst).await;
}

/// CRD-7: the suite is red on a store whose put overwrites.
#[tokio::test]
#[should_panic(expected = "a second put overwrites the attempts of the first")]
async fn crd_7_a_put_that_overwrites_is_found() {
    check(Mistake::PutOverwrites).await;
}

/// CRD-7: the suite is red on a store whose restore forgets the status.
#[tokio::test]
#[should_panic(expected = "a restored letter forgets where it stood")]
async fn crd_7_a_restore_that_forgets_is_found() {
    check(Mistake::RestoreForgets).await;
}

/// CRD-7: the suite is red on a store that lets an old claim finish.
#[tokio::test]
#[should_panic(expected = "a claim that was taken over can't finish")]
async fn crd_7_a_finish_without_a_fence_is_found() {
    check(Mistake::FinishIsNotFenced).await;
}

/// CRD-7: the suite is red on a store that ignores the idempotency key.
#[tokio::test]
#[should_panic(expected = "Done { generation: 1 }")]
async fn crd_7_a_store_that_ignores_keys_is_found() {
    check(Mistake::KeyIsIgnored).await;
}

/// CRD-7: the suite is red on a store that copies a letter while its replay runs.
#[tokio::test]
#[should_panic(expected = "a letter is copied while its replay runs")]
async fn crd_7_a_copy_beside_a_replay_is_found() {
    check(Mistake::CopyIgnoresReplays).await;
}

/// CRD-7: the suite is red on a store that ignores the order of a list.
#[tokio::test]
#[should_panic(expected = "a list follows the order in which things happened")]
async fn crd_7_a_list_in_the_wrong_order_is_found() {
    check(Mistake::OrderIsIgnored).await;
}
