//! Keys in memory, for tests and for programs of one process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seawall::Clock;

use super::key::IdempotencyKey;
use super::machine::{Claim, ClaimDecision, Entry, claim, may_write, renew};
use super::store::{ClaimAnswer, ClaimRequest, IdempotencyStore, ResultKind, StoredResult};
use crate::StoreFuture;

/// Expired keys are removed once in this many claims, so that the map does not grow without end.
const SWEEP_INTERVAL: u64 = 1_024;

/// A store in the memory of this process. Nothing of it survives the process.
#[derive(Debug, Default)]
pub struct MemoryIdempotency {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<IdempotencyKey, Slot>,
    fencing_token: u64,
    claims: u64,
}

#[derive(Debug)]
struct Slot {
    entry: Entry,
    holder: u64,
    fencing_token: u64,
    expires: i64,
    result: Option<StoredResult>,
}

impl MemoryIdempotency {
    /// Makes an empty store on the default clock.
    #[must_use]
    pub fn new() -> Self {
        MemoryIdempotency::default()
    }

    /// Makes an empty store on this clock.
    #[must_use]
    pub fn with_clock(clock: Clock) -> Self {
        MemoryIdempotency { clock, state: Mutex::default() }
    }

    fn now(&self) -> i64 {
        i64::try_from(self.clock.precise().as_nanos() / 1_000_000).unwrap_or(i64::MAX)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claim_now(&self, key: &IdempotencyKey, request: &ClaimRequest) -> ClaimAnswer {
        let now = self.now();
        let mut state = self.state();
        state.claims += 1;
        if state.claims.is_multiple_of(SWEEP_INTERVAL) {
            state.slots.retain(|_, slot| now < slot.expires);
        }
        let slot = state.slots.get(key).filter(|slot| now < slot.expires);
        let entry = slot.map_or(Entry::Absent, |slot| slot.entry);
        if let Some(slot) = slot
            && renew(entry, request.holder, 0, now).is_some()
        {
            return ClaimAnswer::Acquired { fencing_token: slot.fencing_token };
        }
        let wanted =
            Claim { fingerprint: request.fingerprint, token: request.holder, lease: millis(request.lease) };
        match claim(entry, &wanted, now) {
            ClaimDecision::Run(entry) => {
                state.fencing_token += 1;
                let fencing_token = state.fencing_token;
                let expires = now.saturating_add(millis(request.ttl.max(request.lease)));
                let slot = Slot { entry, holder: request.holder, fencing_token, expires, result: None };
                state.slots.insert(key.clone(), slot);
                ClaimAnswer::Acquired { fencing_token }
            }
            ClaimDecision::InFlight { until } => ClaimAnswer::InFlight { retry_after: duration(until - now) },
            ClaimDecision::Replay => match slot.and_then(|slot| slot.result.clone()) {
                Some(result) => ClaimAnswer::Done(result),
                None => ClaimAnswer::Mismatch,
            },
            ClaimDecision::Mismatch => ClaimAnswer::Mismatch,
        }
    }

    fn complete_now(&self, key: &IdempotencyKey, holder: u64, result: &StoredResult, ttl: Duration) -> bool {
        let until = self.now().saturating_add(millis(ttl));
        let mut state = self.state();
        let Some(slot) = state.slots.get_mut(key) else { return false };
        let repeated = slot.holder == holder && slot.result.as_ref() == Some(result);
        if let Entry::InFlight { fingerprint, .. } = slot.entry
            && may_write(slot.entry, holder)
        {
            slot.entry = Entry::Done { fingerprint, until };
            slot.expires = until;
            slot.result = Some(result.clone());
            return true;
        }
        repeated
    }
}

impl IdempotencyStore for MemoryIdempotency {
    fn claim<'a>(&'a self, key: &'a IdempotencyKey, request: ClaimRequest) -> StoreFuture<'a, ClaimAnswer> {
        Box::pin(async move { Ok(self.claim_now(key, &request)) })
    }

    fn renew<'a>(&'a self, key: &'a IdempotencyKey, holder: u64, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let now = self.now();
            let mut state = self.state();
            let Some(slot) = state.slots.get_mut(key) else { return Ok(false) };
            let renewed = renew(slot.entry, holder, millis(lease), now);
            if let Some(entry) = renewed {
                slot.entry = entry;
                slot.expires = slot.expires.max(now.saturating_add(millis(lease)));
            }
            Ok(renewed.is_some())
        })
    }

    fn complete<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        holder: u64,
        result: &'a StoredResult,
        ttl: Duration,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move { Ok(self.complete_now(key, holder, result, ttl)) })
    }

    fn release<'a>(&'a self, key: &'a IdempotencyKey, holder: u64) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut state = self.state();
            let held = state.slots.get(key).is_some_and(|slot| may_write(slot.entry, holder));
            if held {
                state.slots.remove(key);
            }
            Ok(held)
        })
    }

    fn resolve<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        result: Option<&'a StoredResult>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut state = self.state();
            let unknown = |slot: &&mut Slot| {
                slot.result.as_ref().is_some_and(|stored| stored.kind == ResultKind::Unknown)
            };
            let Some(slot) = state.slots.get_mut(key).filter(unknown) else { return Ok(false) };
            match result {
                Some(result) => slot.result = Some(result.clone()),
                None => drop(state.slots.remove(key)),
            }
            Ok(true)
        })
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn duration(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}
