//! What every store of idempotency keys has to hold.
#![expect(clippy::panic, reason = "a suite fails with a sentence")]

use std::sync::Arc;
use std::time::Duration;

use seawall_dist::idempotency::{
    ClaimAnswer, ClaimRequest, Fingerprint, IdempotencyKey, IdempotencyStore, ResultKind, StoredResult,
};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(60);
const BODY: Fingerprint = [1; 32];
const OTHER_BODY: Fingerprint = [2; 32];

/// Panics if the store breaks the contract of [`IdempotencyStore`]. The store is empty, and nobody else uses it.
pub async fn idempotency(store: Arc<dyn IdempotencyStore>) {
    let suite = Suite { store };
    suite.one_runs_and_others_are_told().await;
    suite.one_of_many_gets_the_key().await;
    suite.results_are_kept_byte_for_byte().await;
    suite.only_the_holder_acts().await;
    suite.an_executor_that_died_is_replaced().await;
    suite.a_renewed_lease_lasts().await;
    suite.lost_answers_do_no_harm().await;
    suite.results_are_forgotten().await;
    suite.scopes_never_meet().await;
    suite.unknown_outcomes_are_resolved().await;
}

struct Suite {
    store: Arc<dyn IdempotencyStore>,
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new("conformance", text).expect("a valid key")
}

fn success(bytes: &[u8]) -> StoredResult {
    StoredResult { kind: ResultKind::Success, bytes: bytes.to_vec() }
}

impl Suite {
    async fn claim(
        &self,
        key: &IdempotencyKey,
        holder: u64,
        fingerprint: Fingerprint,
        lease: Duration,
    ) -> ClaimAnswer {
        let request = ClaimRequest { fingerprint, holder, lease, ttl: LONG };
        self.store.claim(key, request).await.expect("the store answers")
    }

    async fn acquire(&self, key: &IdempotencyKey, holder: u64, lease: Duration) -> u64 {
        match self.claim(key, holder, BODY, lease).await {
            ClaimAnswer::Acquired { fencing_token } => fencing_token,
            other => panic!("a free key was not given out: {other:?}"),
        }
    }

    async fn renew(&self, key: &IdempotencyKey, holder: u64, lease: Duration) -> bool {
        self.store.renew(key, holder, lease).await.expect("the store answers")
    }

    async fn complete(&self, key: &IdempotencyKey, holder: u64, result: &StoredResult) -> bool {
        self.store.complete(key, holder, result, LONG).await.expect("the store answers")
    }

    async fn release(&self, key: &IdempotencyKey, holder: u64) -> bool {
        self.store.release(key, holder).await.expect("the store answers")
    }

    /// Claims until the key is given out, as its lease or its result runs out by the store's clock.
    async fn acquire_soon(&self, key: &IdempotencyKey, holder: u64, fingerprint: Fingerprint) -> u64 {
        for _ in 0..500 {
            if let ClaimAnswer::Acquired { fencing_token } = self.claim(key, holder, fingerprint, LONG).await
            {
                return fencing_token;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the key was not freed when its time had run out");
    }

    async fn one_runs_and_others_are_told(&self) {
        let key = key("order");
        self.acquire(&key, 1, LONG).await;
        match self.claim(&key, 2, BODY, LONG).await {
            ClaimAnswer::InFlight { retry_after } => {
                assert!(
                    retry_after > Duration::ZERO && retry_after <= LONG,
                    "the rest of the lease is wrong"
                );
            }
            ClaimAnswer::Acquired { .. } => panic!("two callers run at once: the record is not there yet"),
            other => panic!("a key in flight was answered with {other:?}"),
        }
        let answer = self.claim(&key, 2, OTHER_BODY, LONG).await;
        assert_eq!(answer, ClaimAnswer::Mismatch, "another request under a key in flight was not refused");
        assert!(self.complete(&key, 1, &success(b"done")).await, "the holder could not store its result");
        assert_eq!(self.claim(&key, 3, BODY, LONG).await, ClaimAnswer::Done(success(b"done")));
        let answer = self.claim(&key, 3, OTHER_BODY, LONG).await;
        assert_eq!(answer, ClaimAnswer::Mismatch, "another request under a used key was not refused");
    }

    async fn one_of_many_gets_the_key(&self) {
        let key = key("many");
        let mut callers = tokio::task::JoinSet::new();
        for holder in 1..=32 {
            let (store, key) = (self.store.clone(), key.clone());
            let request = ClaimRequest { fingerprint: BODY, holder, lease: LONG, ttl: LONG };
            callers.spawn(async move { store.claim(&key, request).await.expect("the store answers") });
        }
        let answers = callers.join_all().await;
        let acquired = answers.iter().filter(|answer| matches!(answer, ClaimAnswer::Acquired { .. })).count();
        assert_eq!(acquired, 1, "of 32 callers at once not exactly one runs");
    }

    async fn results_are_kept_byte_for_byte(&self) {
        let all: Vec<u8> = (0..=255).cycle().take(64 * 1024).collect();
        let results = [
            success(b""),
            success(&[0, 255, 10, 0]),
            success(&all),
            StoredResult { kind: ResultKind::Failure, bytes: b"no such account".to_vec() },
            StoredResult { kind: ResultKind::Unknown, bytes: Vec::new() },
        ];
        for (number, result) in results.iter().enumerate() {
            let key = key(&format!("bytes-{number}"));
            self.acquire(&key, 1, LONG).await;
            assert!(self.complete(&key, 1, result).await);
            let answer = self.claim(&key, 2, BODY, LONG).await;
            assert!(answer == ClaimAnswer::Done(result.clone()), "the stored result is another one");
        }
    }

    async fn only_the_holder_acts(&self) {
        let key = key("holder");
        self.acquire(&key, 1, LONG).await;
        assert!(!self.renew(&key, 2, LONG).await, "another holder renewed the lease");
        assert!(!self.complete(&key, 2, &success(b"2")).await, "another holder stored a result");
        assert!(!self.release(&key, 2).await, "another holder freed the key");
        assert!(matches!(self.claim(&key, 3, BODY, LONG).await, ClaimAnswer::InFlight { .. }));
        assert!(self.release(&key, 1).await, "the holder could not free its key");
        assert!(!self.release(&key, 1).await, "a free key was freed");
        let token = self.acquire(&key, 3, LONG).await;
        assert!(token > 0);
        assert!(self.complete(&key, 3, &success(b"3")).await);
        assert!(!self.release(&key, 3).await, "a result was removed by a release");
        assert!(!self.renew(&key, 3, LONG).await, "a key that is done was renewed");
    }

    async fn an_executor_that_died_is_replaced(&self) {
        let key = key("dead");
        let first = self.acquire(&key, 1, SHORT).await;
        let answer = self.claim(&key, 2, OTHER_BODY, LONG).await;
        assert_eq!(answer, ClaimAnswer::Mismatch, "what was begun as one request is not finished as another");
        let second = self.acquire_soon(&key, 2, BODY).await;
        assert!(second > first, "the fencing token did not grow: {first}, then {second}");
        assert!(!self.renew(&key, 1, LONG).await, "an executor renewed a lease that another one has");
        assert!(
            !self.complete(&key, 1, &success(b"late")).await,
            "a late result was stored over a newer holder"
        );
        assert!(!self.release(&key, 1).await, "a late executor freed the key of another one");
        assert!(self.complete(&key, 2, &success(b"second")).await);
        assert!(!self.complete(&key, 1, &success(b"late")).await, "a late result replaced a stored one");
        assert_eq!(self.claim(&key, 3, BODY, LONG).await, ClaimAnswer::Done(success(b"second")));
        let third = self.acquire(&self::key("later"), 1, LONG).await;
        assert!(self.release(&self::key("later"), 1).await);
        let fourth = self.acquire(&self::key("later"), 2, LONG).await;
        assert!(fourth > third, "the fencing token did not grow after a release");
    }

    async fn a_renewed_lease_lasts(&self) {
        let key = key("renewed");
        self.acquire(&key, 1, Duration::from_secs(10)).await;
        assert!(self.renew(&key, 1, LONG).await, "the holder could not renew its lease");
        let ClaimAnswer::InFlight { retry_after } = self.claim(&key, 2, BODY, LONG).await else {
            panic!("a renewed key was not in flight")
        };
        assert!(
            retry_after > Duration::from_secs(15),
            "the lease did not start anew: {retry_after:?} is left"
        );
        let expired = self::key("expired");
        self.acquire(&expired, 1, SHORT).await;
        tokio::time::sleep(SHORT * 2).await;
        assert!(!self.renew(&expired, 1, LONG).await, "a lease that had run out was renewed");
    }

    async fn lost_answers_do_no_harm(&self) {
        let key = key("repeated");
        let token = self.acquire(&key, 1, LONG).await;
        assert_eq!(self.acquire(&key, 1, LONG).await, token, "a claim repeated by its holder is another one");
        assert!(self.complete(&key, 1, &success(b"once")).await);
        assert!(
            self.complete(&key, 1, &success(b"once")).await,
            "a result repeated by its holder was refused"
        );
        assert!(!self.complete(&key, 1, &success(b"twice")).await, "a stored result was replaced");
    }

    async fn results_are_forgotten(&self) {
        let key = key("forgotten");
        self.acquire(&key, 1, LONG).await;
        let stored = self.store.complete(&key, 1, &success(b"old"), SHORT).await;
        assert!(stored.expect("the store answers"));
        self.acquire_soon(&key, 2, OTHER_BODY).await;
        assert!(self.complete(&key, 2, &success(b"new")).await);
        let answer = self.claim(&key, 3, OTHER_BODY, LONG).await;
        assert_eq!(answer, ClaimAnswer::Done(success(b"new")), "the result of an earlier life came back");
    }

    async fn scopes_never_meet(&self) {
        let pairs = [("a", "b:c"), ("a:b", "c"), ("", "a:b:c"), ("A", "b:c")];
        for (scope, text) in pairs {
            let key = IdempotencyKey::new(scope, text).expect("a valid key");
            let answer = self.claim(&key, 1, BODY, LONG).await;
            let acquired = matches!(answer, ClaimAnswer::Acquired { .. });
            assert!(acquired, "the key {text:?} of {scope:?} is another one's");
            assert!(self.complete(&key, 1, &success(scope.as_bytes())).await);
        }
        for (scope, text) in pairs {
            let key = IdempotencyKey::new(scope, text).expect("a valid key");
            let answer = self.claim(&key, 2, BODY, LONG).await;
            assert_eq!(answer, ClaimAnswer::Done(success(scope.as_bytes())), "a result of another scope");
        }
    }

    async fn unknown_outcomes_are_resolved(&self) {
        let unknown = StoredResult { kind: ResultKind::Unknown, bytes: Vec::new() };
        let (found, free, known) = (key("found"), key("free"), key("known"));
        for (key, result) in [(&found, &unknown), (&free, &unknown), (&known, &success(b"known"))] {
            self.acquire(key, 1, LONG).await;
            assert!(self.complete(key, 1, result).await);
        }
        let resolve = async |key: &IdempotencyKey, result: Option<&StoredResult>| {
            self.store.resolve(key, result).await.expect("the store answers")
        };
        assert!(!resolve(&known, None).await, "a known result was resolved away");
        assert!(!resolve(&key("nobody"), None).await, "a key that nobody used was resolved");
        assert!(resolve(&found, Some(&success(b"found"))).await);
        assert!(resolve(&free, None).await);
        assert_eq!(self.claim(&found, 2, BODY, LONG).await, ClaimAnswer::Done(success(b"found")));
        self.acquire(&free, 2, LONG).await;
    }
}
