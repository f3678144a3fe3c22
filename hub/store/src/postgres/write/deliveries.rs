//! Outcomes of deliveries, one by one.

use seawall_dist::deadletter::{Answer, Attempt};
use seawall_hub_core::domain::dead_letter::FailureSummary;
use seawall_hub_core::domain::delivery::{DeliveryFacts, DeliveryId, Disposition, RuleStatus, StoredState};
use seawall_hub_core::port::store::{Claim, Settlement, StoreError};

use super::applier::{ApplyError, UnitApplier};
use super::claims::stored_delivery;
use super::set_based::RETURN;
use crate::postgres::text::shown;

const LAST_ATTEMPT: &str =
    "SELECT status, error, answer FROM attempts WHERE delivery = $1 ORDER BY number DESC LIMIT 1";

impl UnitApplier<'_> {
    /// Settles a delivery that is claimed under the epoch of the settlement.
    pub(in crate::postgres) async fn settle(&mut self, settlement: &Settlement) -> Result<(), ApplyError> {
        let Settlement { claim, decision, attempt, failure, at, ordered, is_replay } = settlement;
        let (delivery, disposition) = (claim.delivery, &decision.disposition);
        let number = delivery.number.cast_signed();
        // It stays claimed, and nothing is known that was not known before.
        if let Disposition::Defer { .. } = disposition {
            return Ok(());
        }
        let order = if *ordered { self.locked_order_of(number).await? } else { None };
        let settled = self.settled_facts(settlement).await?.ok_or(StoreError::LeaseLost(delivery))?;
        let attempt_number = decision.attempt_number();
        let recorded = match (disposition, attempt) {
            (Disposition::DeadLetter { .. }, None) => self.last_failure(number).await?,
            _ => None,
        };
        let delivered = attempt.as_ref().filter(|_| *disposition == Disposition::Delivered);
        self.store_facts_with(number, &settled, delivered).await?;
        if let Some(attempt) = attempt.as_ref().filter(|_| delivered.is_none()) {
            self.add_attempt(number, attempt_number, attempt).await?;
        }
        if let Disposition::DeadLetter { .. } = disposition {
            self.add_dead_letter(number, *at, recorded.as_ref().or(failure.as_ref()), attempt_number).await?;
        }
        if *is_replay {
            self.replay_tried(number, attempt_number, disposition).await?;
        }
        match order {
            Some((rule, key)) if !settled.state.occupies_order() => self.start_behind(&rule, &key).await,
            _ => Ok(()),
        }
    }

    /// Locks a claimed delivery with what its settlement depends on, and returns its row after it; `None` if the claim is lost.
    async fn settled_facts(&self, settlement: &Settlement) -> Result<Option<DeliveryFacts>, ApplyError> {
        let Settlement { claim, decision, .. } = settlement;
        let Some(rule) = self.rule_of(claim.delivery).await? else { return Ok(None) };
        let rule = match decision.disposition {
            Disposition::Hold => self.rule_status(&rule).await?,
            _ => RuleStatus::Enabled,
        };
        let facts = self.load_facts(claim.delivery.number.cast_signed()).await?;
        Ok(facts.and_then(|facts| facts.settled(decision, settlement.touched(), claim.epoch, rule)))
    }

    /// Returns the rule of a delivery; `None` if there is no such delivery. A number of another era is another delivery.
    async fn rule_of(&self, delivery: DeliveryId) -> Result<Option<String>, ApplyError> {
        let sql = "SELECT rule FROM deliveries WHERE number = $1 AND era = $2";
        let row = self.find(sql, &[&delivery.number.cast_signed(), &delivery.database.cast_signed()]).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    /// Claims the next delivery of a locked order, whose active one has ended.
    async fn start_behind(&mut self, rule: &str, key: &str) -> Result<(), ApplyError> {
        let Some(next) = self.order_facts(rule, key).await?.next() else { return Ok(()) };
        if self.start_in_order(next, StoredState::Leased).await? == Some(StoredState::Leased) {
            self.committed.ready.extend(stored_delivery(self.session, next.cast_signed()).await?);
        }
        Ok(())
    }

    /// Returns the failure of the last recorded attempt of a delivery, for one that is given up without another attempt.
    async fn last_failure(&self, delivery: i64) -> Result<Option<FailureSummary>, ApplyError> {
        let Some(row) = self.find(LAST_ATTEMPT, &[&delivery]).await? else { return Ok(None) };
        let (status, error, body): (Option<i32>, Option<String>, Option<Vec<u8>>) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let status = status.and_then(|status| u16::try_from(status).ok());
        let answer =
            status.map(|status| Answer { status, headers: Vec::new(), body: body.unwrap_or_default() });
        let attempt = Attempt { error: error.map(shown), answer, ..Attempt::default() };
        Ok(Some(FailureSummary::of_attempt(&attempt)))
    }

    /// Returns claimed deliveries to the store. Those of other claims stay as they are.
    pub(in crate::postgres) async fn return_to_store(&self, claims: &[Claim]) -> Result<(), ApplyError> {
        // In the same sequence for all, so that no two wait for each other.
        let mut claims = claims.to_vec();
        claims.sort_unstable_by_key(|claim| claim.delivery.number);
        let numbers: Vec<i64> = claims.iter().map(|claim| claim.delivery.number.cast_signed()).collect();
        let eras: Vec<i64> = claims.iter().map(|claim| claim.delivery.database.cast_signed()).collect();
        let epochs: Vec<i64> = claims.iter().map(|claim| claim.epoch.cast_signed()).collect();
        self.run(RETURN, &[&numbers, &eras, &epochs]).await.map(drop)
    }
}
