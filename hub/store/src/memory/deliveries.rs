//! Changes of events and deliveries. What becomes of a row is decided by the functions of the domain.

use std::collections::BTreeSet;
use std::sync::Arc;

use seawall_dist::deadletter::{Answer, Attempt};
use seawall_hub_core::domain::dead_letter::FailureSummary;
use seawall_hub_core::domain::delivery::suspects::{HandlingStep, Suspicion};
use seawall_hub_core::domain::delivery::{
    DeliveryFacts, Disposition, InitialState, Progress, RuleStatus, StoredState, initial_state,
};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    Claim, DeliverySelector, LaneCapacity, NewDelivery, Settlement, StoreError, StoredDelivery,
};

use super::apply::MemoryApplier;
use super::tables::{DeliveryRow, Tables};

impl MemoryApplier<'_> {
    pub(super) fn add_event(
        &mut self,
        event: &Arc<Event>,
        deliveries: &[NewDelivery],
    ) -> Result<(), StoreError> {
        let key = (event.id.clone(), event.source.clone());
        if let Some(number) = self.tables.event_ids.get(&key) {
            let of_event = |_: &u64, row: &DeliveryRow| row.event == *number && row.replay_of.is_none();
            let deliveries = self.tables.deliveries.keys_of(of_event);
            let fingerprint = self.tables.events.get(number).map_or([0; 32], |event| event.fingerprint);
            let deliveries = deliveries.into_iter().map(|number| self.tables.id(number)).collect();
            return Err(StoreError::EventExists { fingerprint, deliveries });
        }
        let number = self.tables.number();
        self.tables.events.insert(number, event.clone());
        self.tables.event_ids.insert(key, number);
        for new in deliveries {
            self.add_delivery(number, new, event.accepted, None);
        }
        Ok(())
    }

    /// Inserts a delivery, and returns its number and its state.
    pub(super) fn add_delivery(
        &mut self,
        event: u64,
        new: &NewDelivery,
        at: Millis,
        replay_of: Option<u64>,
    ) -> (u64, StoredState) {
        let NewDelivery { rule, service, request, initial, order } = new;
        let depends = initial.depends_on_rule();
        let status = if depends { self.tables.rule_status(&rule.0) } else { RuleStatus::Enabled };
        let busy = order.as_deref().is_some_and(|key| {
            let facts = self.tables.order(&rule.0, key);
            facts.active || facts.first_waiting.is_some()
        });
        let (state, reason) = initial_state(initial, status, busy, replay_of.is_some());
        let facts = DeliveryFacts {
            state,
            epoch: self.epoch,
            due: at,
            touched: at,
            progress: Progress { accepted: at, counted: 0, failures: 0, panics: 0 },
            reason,
            has_order: order.is_some(),
            is_replay: replay_of.is_some(),
            crashes: 0,
            suspicion: Suspicion::default(),
            starts: None,
        };
        let attempt = match initial {
            InitialState::Dead { error, .. } => {
                Some(Attempt { at, error: Some(error.clone()), ..Attempt::default() })
            }
            _ => None,
        };
        let failure = attempt.as_ref().map(FailureSummary::of_attempt);
        let row = DeliveryRow {
            facts,
            event,
            rule: rule.clone(),
            service: service.clone(),
            order: order.clone(),
            replay_of,
            request: request.clone(),
            attempts: attempt.into_iter().collect(),
        };
        let number = self.tables.number();
        self.tables.deliveries.insert(number, row);
        if reason.is_some() {
            self.add_dead_letter(number, at, failure, 0);
        }
        self.committed.deliveries.push((self.tables.id(number), state.shown()));
        (number, state)
    }

    /// Settles a delivery that is claimed under the epoch of the settlement.
    pub(super) fn settle(&mut self, settlement: &Settlement) -> Result<(), StoreError> {
        let Settlement { claim, decision, attempt, failure, at, ordered, is_replay } = settlement;
        let Claim { delivery, epoch } = *claim;
        let row = self.tables.delivery(delivery).ok_or(StoreError::LeaseLost(delivery))?;
        let (facts, rule) = (row.facts.clone(), self.tables.rule_status(&row.rule.0));
        let settled = facts.settled(decision, settlement.touched(), epoch, rule);
        let settled = settled.ok_or(StoreError::LeaseLost(delivery))?;
        if let Disposition::Defer { .. } = decision.disposition {
            return Ok(());
        }
        let (number, ended_as, delivered) =
            (delivery.number, settled.state, decision.disposition == Disposition::Delivered);
        let mut last_failure = None;
        if let Some(row) = self.tables.deliveries.get_mut(&number) {
            row.facts = settled;
            last_failure = row.attempts.last().map(FailureSummary::of_attempt);
            row.attempts.extend(
                attempt.as_ref().map(
                    |attempt| {
                        if delivered { delivered_attempt(attempt) } else { attempt.clone() }
                    },
                ),
            );
        }
        let attempt_number = decision.attempt_number();
        if let Disposition::DeadLetter { .. } = decision.disposition {
            let recorded = last_failure.filter(|_| attempt.is_none());
            self.add_dead_letter(number, *at, recorded.or_else(|| failure.clone()), attempt_number);
        }
        if *is_replay {
            self.replay_tried(number, attempt_number, &decision.disposition);
        }
        if *ordered
            && !ended_as.occupies_order()
            && let Some(next) = self.tables.order_of(number).next()
        {
            self.claim(next);
            self.committed.ready.extend(self.tables.stored(next, true));
        }
        Ok(())
    }

    fn claim(&mut self, number: u64) {
        let epoch = self.epoch;
        self.change_facts(number, |facts| facts.claimed(epoch));
    }

    fn change_facts(&mut self, number: u64, change: impl FnOnce(DeliveryFacts) -> DeliveryFacts) {
        if let Some(row) = self.tables.deliveries.get_mut(&number) {
            row.facts = change(row.facts.clone());
        }
    }

    /// Queues the next delivery in the order of this one, if its turn has come.
    pub(super) fn start_next(&mut self, number: u64) {
        if let Some(next) = self.tables.order_of(number).next_when_released() {
            self.tables.set_state(next, StoredState::Queued);
        }
    }

    /// Releases the order that a dead letter holds up.
    pub(super) fn release_order(&mut self, number: u64) {
        let held = self.tables.deliveries.get(&number).map(|row| row.facts.state);
        if held == Some(StoredState::HoldingOrder) {
            self.tables.set_state(number, StoredState::DeadLettered);
            self.start_next(number);
        }
    }

    pub(super) fn return_to_store(&mut self, claims: &[Claim]) {
        for Claim { delivery, epoch } in claims {
            if delivery.database == self.tables.database {
                self.change_facts(delivery.number, |facts| facts.returned(*epoch));
            }
        }
    }

    pub(super) fn move_times(&mut self, by: i64, now: Millis, thorough: bool) {
        let newest = self.tables.deliveries.values().next_back();
        if thorough || newest.is_some_and(|row| row.facts.progress.accepted > now) {
            for number in self.tables.deliveries.keys_of(|_, _| true) {
                self.change_facts(number, |facts| facts.shifted(by, now));
            }
        }
    }

    pub(super) fn dead_letter_all(&mut self, selector: &DeliverySelector, limit: u32, at: Millis) {
        let mut numbers = self.tables.deliveries.keys_of(|_, row| is_selected(row, selector));
        numbers.truncate(limit as usize);
        for number in &numbers {
            self.change_facts(*number, |facts| facts.dead_lettered(at));
            let failures = self.tables.deliveries.get(number).map_or(0, |row| row.facts.progress.failures);
            // If it was tried before, that was told then.
            self.add_dead_letter(*number, at, None, failures + 1);
        }
        for number in &numbers {
            self.start_next(*number);
        }
        self.committed.touched += numbers.len();
    }

    /// Releases the held deliveries of a rule. Of each order only the first is released, and none where a replay is in progress.
    pub(super) fn release_held(&mut self, rule: &Slug, limit: u32) {
        let held = |_: &u64, row: &DeliveryRow| row.rule.0 == *rule && row.facts.state == StoredState::Held;
        let all = self.tables.deliveries.keys_of(held);
        let released = &all[..all.len().min(limit as usize)];
        for number in released {
            self.change_facts(*number, DeliveryFacts::released);
        }
        self.committed.touched += released.len();
        if released.is_empty() || released.len() < all.len() {
            return;
        }
        let of_rule = self.tables.deliveries.values().filter(|row| row.rule.0 == *rule);
        let orders: BTreeSet<String> = of_rule.filter_map(|row| row.order.clone()).collect();
        for key in orders {
            if let Some(next) = self.tables.order(rule, &key).next_when_released() {
                self.tables.set_state(next, StoredState::Queued);
            }
        }
    }

    /// Claims due deliveries, the longest due first.
    pub(super) fn take_due(&mut self, now: Millis, room: &[LaneCapacity]) -> Vec<StoredDelivery> {
        let mut taken = Vec::new();
        for LaneCapacity { service, fresh, retries, resume_before } in room {
            let mut due: [Vec<(Millis, u64)>; 2] = Default::default();
            for (number, row) in self.tables.deliveries.iter() {
                if row.service == *service && row.facts.is_due(now, *resume_before) {
                    let is_retry = row.facts.state != StoredState::Queued;
                    due[usize::from(is_retry)].push((row.facts.due, *number));
                }
            }
            for (mut due, limit) in due.into_iter().zip([*fresh, *retries]) {
                due.sort_unstable();
                for (_, number) in due.into_iter().take(limit) {
                    self.claim(number);
                    taken.extend(self.tables.stored(number, true));
                }
            }
        }
        taken
    }
}

/// The part of an attempt that is stored if it delivered: when, how long, and the answer without headers.
fn delivered_attempt(attempt: &Attempt) -> Attempt {
    let without_headers =
        |answer: &Answer| Answer { status: answer.status, headers: Vec::new(), body: answer.body.clone() };
    Attempt {
        at: attempt.at,
        took: attempt.took,
        answer: attempt.answer.as_ref().map(without_headers),
        ..Attempt::default()
    }
}

pub(super) fn is_selected(row: &DeliveryRow, selector: &DeliverySelector) -> bool {
    match selector {
        DeliverySelector::Service(service) => row.service == *service && row.facts.state.is_pending(),
        DeliverySelector::HeldBy(rule) => row.rule.0 == *rule && row.facts.state == StoredState::Held,
    }
}

/// Makes what the process before had claimed due at once, and counts its end if that was a crash. `mark` returns what that process
/// has left about the step of a delivery.
pub(super) fn restart(tables: &mut Tables, mark: impl Fn(u64) -> Option<Option<HandlingStep>>) {
    let (epoch, crashed) = (tables.epoch, tables.epoch != tables.stopped);
    let claimed = tables.deliveries.keys_of(|_, row| row.facts.state == StoredState::Leased);
    let count = u32::try_from(claimed.len()).unwrap_or(u32::MAX);
    for number in claimed {
        let Some(row) = tables.deliveries.get_mut(&number) else { continue };
        let mut facts = row.facts.clone();
        if crashed && let Some(trace) = facts.crash_trace(mark(number), count) {
            facts = facts.suspected(trace, epoch);
        }
        row.facts = facts.after_restart(crashed);
    }
}
