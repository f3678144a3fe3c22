//! The counts behind a share of the calls: what was earned, what was spent, and what the floor has paid for.

use std::sync::Arc;

use super::machine::{Debt, Floor, Share};
use crate::clock::{Tick, Unit};
use crate::stats::{Slicing, Spent, Stripes};
use crate::sync::{AtomicU64, Ordering};

/// The first attempts and retries of the window, the floor and its debt. Several threads use it without a lock.
#[derive(Debug)]
pub(super) struct Ledger {
    calls: Stripes,
    /// All retries, whatever paid for them, and what was repaid.
    retries: Spent,
    /// The due time of the floor, in nanoseconds.
    floor: AtomicU64,
    /// A [`Debt`].
    debt: AtomicU64,
}

/// What paid for a retry.
#[derive(Clone, Copy)]
pub(super) struct Payment {
    at: Unit,
    by_floor: Option<FloorPayment>,
}

#[derive(Clone, Copy)]
struct FloorPayment {
    /// The floor's due time right after the payment.
    due: u64,
    /// False if the debt was at its maximum before.
    raised_debt: bool,
}

impl Payment {
    pub(super) fn by_share(at: Unit) -> Self {
        Payment { at, by_floor: None }
    }
}

impl Ledger {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Ledger {
            calls: Stripes::new(),
            retries: Spent::new(),
            floor: AtomicU64::new(0),
            debt: AtomicU64::new(0),
        })
    }

    #[inline]
    pub(super) fn first_attempt(&self, slicing: Slicing, now: Tick) {
        self.calls.add(slicing, now.as_units(), 0);
    }

    /// First attempts and retries that the window holds.
    pub(super) fn in_window(&self, share: &Share, now: Tick) -> (u64, u64) {
        let at = now.as_units();
        (self.calls.sum(share.slicing, at, 0), self.retries.count(share.retry_slicing, at))
    }

    pub(super) fn try_spend(&self, share: &Share, now: Tick) -> Option<Payment> {
        let at = now.as_units();
        let calls = self.calls.sum(share.slicing, at, 0);
        while self.retries.try_take(share.retry_slicing, at, |retries| share.allows(calls, retries)) {
            // What repays the debt stays in the window without a retry, so that floor and share do not add up. All that the
            // share can pay is repaid at once: a process that is healthy has paid before it ever needs a retry.
            if !(Share::repays_at(calls) && self.try_repay(share, at)) {
                return Some(Payment::by_share(at));
            }
        }
        let floor = share.floor_at(calls)?;
        let due = self.try_floor(floor, now.as_nanos())?;
        let raised_debt = self.raise_debt(share, floor, at);
        self.retries.take(share.retry_slicing, at);
        Some(Payment { at, by_floor: Some(FloorPayment { due, raised_debt }) })
    }

    /// Takes one retry from the floor, and returns the due time after it.
    fn try_floor(&self, floor: Floor, now: u64) -> Option<u64> {
        let mut due = self.floor.load(Ordering::Acquire);
        loop {
            let next = floor.take(due, now)?;
            match self.floor.compare_exchange_weak(due, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(next),
                Err(other) => due = other,
            }
        }
    }

    /// Returns false if the debt was at its maximum already.
    fn raise_debt(&self, share: &Share, floor: Floor, at: Unit) -> bool {
        let lifetime = share.debt_lifetime;
        let raised = |word| Debt::from_word(word).after_floor_paid(at, lifetime, floor);
        let before = self
            .debt
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| Some(raised(word).word()))
            .unwrap_or_else(|word| word);
        raised(before).count(at, lifetime) > Debt::from_word(before).count(at, lifetime)
    }

    /// Takes one from the debt. False if there is none.
    fn try_repay(&self, share: &Share, at: Unit) -> bool {
        // Nearly always there is none, and then the word is only read.
        let repaid = |word| Debt::from_word(word).after_repayment(at, share.debt_lifetime).map(Debt::word);
        self.debt.fetch_update(Ordering::AcqRel, Ordering::Acquire, repaid).is_ok()
    }

    pub(super) fn give_back(&self, share: &Share, paid: Payment, now: Tick) {
        self.retries.give_back(share.retry_slicing, paid.at, now.as_units());
        let Some(FloorPayment { due, raised_debt }) = paid.by_floor else { return };
        // From its due time on the bucket has been full without it, and what came back would be a present.
        if let Some(floor) = share.floor.filter(|_| now.as_nanos() < due) {
            let _ = self
                .floor
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |due| Some(floor.give_back(due)));
        }
        // A debt that was forgotten in the meantime is none, and another one is not lowered in its place.
        if raised_debt && !Debt::is_forgotten(paid.at, now.as_units(), share.debt_lifetime) {
            self.try_repay(share, now.as_units());
        }
    }
}
