//! Stores that are broken on purpose: the suite has to find each of them.

use std::sync::Arc;
use std::time::Duration;

use seawall_dist::StoreFuture;
use seawall_dist::idempotency::{
    ClaimAnswer, ClaimRequest, IdempotencyKey, IdempotencyStore, MemoryIdempotency, StoredResult,
};
use seawall_testkit::conformance;

/// The mistakes, one for each store.
#[derive(Clone, Copy, PartialEq)]
enum Mistake {
    /// The record is written after the effect: a claim only looks.
    RecordAfterEffect,
    /// A result is written without comparing the holder.
    BlindResult,
    /// A key is freed without comparing the holder: a plain DEL.
    BlindRelease,
    /// The fingerprint is ignored.
    NoFingerprint,
    /// The parts of the key are run together.
    RunTogether,
}

struct Broken {
    store: MemoryIdempotency,
    mistake: Mistake,
    /// The holder that the store really gave the key to.
    holders: std::sync::Mutex<std::collections::HashMap<IdempotencyKey, u64>>,
}

impl Broken {
    fn key(&self, key: &IdempotencyKey) -> IdempotencyKey {
        if self.mistake == Mistake::RunTogether {
            return IdempotencyKey::new("", &format!("{}:{}", key.scope(), key.key())).unwrap();
        }
        key.clone()
    }

    fn holder(&self, key: &IdempotencyKey, holder: u64, blind: Mistake) -> u64 {
        if self.mistake != blind {
            return holder;
        }
        self.holders.lock().unwrap().get(key).copied().unwrap_or(holder)
    }
}

impl IdempotencyStore for Broken {
    fn claim<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        mut request: ClaimRequest,
    ) -> StoreFuture<'a, ClaimAnswer> {
        Box::pin(async move {
            if self.mistake == Mistake::NoFingerprint {
                request.fingerprint = [0; 32];
            }
            let answer = self.store.claim(&self.key(key), request).await?;
            if matches!(answer, ClaimAnswer::Acquired { .. }) {
                self.holders.lock().unwrap().insert(key.clone(), request.holder);
                if self.mistake == Mistake::RecordAfterEffect {
                    self.store.release(key, request.holder).await?;
                }
            }
            Ok(answer)
        })
    }

    fn renew<'a>(&'a self, key: &'a IdempotencyKey, holder: u64, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.store.renew(&self.key(key), holder, lease).await })
    }

    fn complete<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        holder: u64,
        result: &'a StoredResult,
        ttl: Duration,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let holder = self.holder(key, holder, Mistake::BlindResult);
            self.store.complete(&self.key(key), holder, result, ttl).await
        })
    }

    fn release<'a>(&'a self, key: &'a IdempotencyKey, holder: u64) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let holder = self.holder(key, holder, Mistake::BlindRelease);
            self.store.release(&self.key(key), holder).await
        })
    }

    fn resolve<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        result: Option<&'a StoredResult>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.store.resolve(&self.key(key), result).await })
    }
}

async fn run_suite(mistake: Mistake) {
    let store = Broken { store: MemoryIdempotency::new(), mistake, holders: Default::default() };
    conformance::idempotency(Arc::new(store)).await;
}

/// CRD-2: a record that is written after the effect is found. A crash between the two would run the work twice.
#[tokio::test]
#[should_panic(expected = "two callers run at once: the record is not there yet")]
async fn crd_2_a_record_written_after_the_effect_is_found() {
    run_suite(Mistake::RecordAfterEffect).await;
}

/// CRD-2: a store that does not compare the holder before it writes a result is found.
#[tokio::test]
#[should_panic(expected = "another holder stored a result")]
async fn crd_2_a_result_written_without_comparing_is_found() {
    run_suite(Mistake::BlindResult).await;
}

/// CRD-2: a store that frees a key by a plain DEL is found.
#[tokio::test]
#[should_panic(expected = "another holder freed the key")]
async fn crd_2_a_release_without_comparing_is_found() {
    run_suite(Mistake::BlindRelease).await;
}

/// CRD-2: a store that ignores the fingerprint is found.
#[tokio::test]
#[should_panic(expected = "another request under a key in flight was not refused")]
async fn crd_2_a_fingerprint_that_is_ignored_is_found() {
    run_suite(Mistake::NoFingerprint).await;
}

/// CRD-2. Trap "concatenation ambiguity": a store that runs scope and key together is found.
#[tokio::test]
#[should_panic(expected = "is another one's")]
async fn crd_2_a_scope_that_runs_into_the_key_is_found() {
    run_suite(Mistake::RunTogether).await;
}
