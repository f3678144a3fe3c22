//! CRD-2, CRD-4: work under a key happens once.

mod abandoned;
mod broken;
mod drops;
mod guards;
mod inbox;
mod lease;
#[cfg(feature = "metrics")]
mod metrics;
mod once;

use std::sync::Arc;

use seawall_dist::idempotency::{Fingerprint, IdempotencyKey, MemoryIdempotency};
use seawall_testkit::conformance;

const BODY: Fingerprint = [1; 32];

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new("tenant-7", text).unwrap()
}

/// CRD-2: the suite of idempotency is green on memory.
#[tokio::test]
async fn crd_2_memory_is_a_store_of_idempotency_keys() {
    conformance::idempotency(Arc::new(MemoryIdempotency::new())).await;
}
