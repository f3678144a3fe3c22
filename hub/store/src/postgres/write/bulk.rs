//! Changes of many deliveries at once, which are rare.

use std::collections::BTreeSet;

use seawall_hub_core::domain::delivery::StoredState;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::DeliverySelector;

use super::applier::{ApplyError, UnitApplier};
use super::set_based::{HELD_BY_RULE, PENDING_OF_SERVICE, RELEASE, SHIFT, START_ORDERS};
use crate::postgres::text::shown;

/// Every ordering key that deliveries of a rule have.
const ORDERS_OF_RULE: &str =
    "SELECT DISTINCT ordering FROM work WHERE rule = $1 AND ordering IS NOT NULL ORDER BY ordering";

impl UnitApplier<'_> {
    /// Dead-letters pending deliveries.
    pub(in crate::postgres) async fn dead_letter_all(
        &mut self,
        whose: &DeliverySelector,
        most: u32,
        at: Millis,
    ) -> Result<(), ApplyError> {
        let (sql, name) = match whose {
            DeliverySelector::Service(name) => (PENDING_OF_SERVICE, name),
            DeliverySelector::HeldBy(name) => (HELD_BY_RULE, name),
        };
        // Those that were found may end while this waits for their orders, and others may be there.
        loop {
            let found = self.rows(sql, &[&name.as_str(), &i64::from(most)]).await?;
            let mut orders = BTreeSet::new();
            let mut numbers = Vec::with_capacity(found.len());
            for row in &found {
                numbers.push(row.try_get::<_, i64>(0)?);
                if let Some(key) = row.try_get::<_, Option<String>>(2)? {
                    orders.insert((row.try_get::<_, String>(1)?, shown(key)));
                }
            }
            numbers.sort_unstable();
            let orders: Vec<(&str, &str)> =
                orders.iter().map(|(rule, key)| (rule.as_str(), key.as_str())).collect();
            self.lock_orders(&orders).await?;
            let dead_lettered = self.dead_letter_selected(whose, &numbers, at).await?;
            // Others of an order may go elsewhere, or be held by nobody. Looked at once for each, because many may wait in it.
            for (rule, key) in orders {
                self.start_released(rule, key).await?;
            }
            self.committed.touched += dead_lettered;
            if dead_lettered > 0 || found.is_empty() {
                return Ok(());
            }
        }
    }

    /// Dead-letters those that are still selected, and returns how many these were.
    async fn dead_letter_selected(
        &mut self,
        whose: &DeliverySelector,
        numbers: &[i64],
        at: Millis,
    ) -> Result<usize, ApplyError> {
        let mut dead_lettered = 0;
        for number in numbers {
            let Some(facts) = self.load_facts(*number).await? else { continue };
            let is_selected = match whose {
                DeliverySelector::Service(_) => facts.state.is_pending(),
                DeliverySelector::HeldBy(_) => facts.state == StoredState::Held,
            };
            if !is_selected {
                continue;
            }
            let failures = facts.progress.failures;
            self.store_facts(*number, &facts.dead_lettered(at)).await?;
            // If it was tried before, that was told then.
            self.add_dead_letter(*number, at, None, failures + 1).await?;
            dead_lettered += 1;
        }
        Ok(dead_lettered)
    }

    /// Releases the held deliveries of a rule. Of each order only the first is released, and none where a replay is in progress.
    pub(in crate::postgres) async fn release_held(
        &mut self,
        rule: &Slug,
        most: u32,
    ) -> Result<(), ApplyError> {
        let rule = rule.as_str();
        loop {
            let mut keys = Vec::new();
            for row in self.rows(ORDERS_OF_RULE, &[&rule]).await? {
                keys.push(row.try_get::<_, String>(0)?);
            }
            let plain: Vec<String> = keys.iter().cloned().map(shown).collect();
            let orders: Vec<(&str, &str)> = plain.iter().map(|key| (rule, key.as_str())).collect();
            self.lock_orders(&orders).await?;
            let released = self.run(RELEASE, &[&rule, &i64::from(most), &keys]).await?;
            let is_left = !self.rows(HELD_BY_RULE, &[&rule, &1_i64]).await?.is_empty();
            self.committed.touched += usize::try_from(released).unwrap_or(usize::MAX);
            if released > 0 && !is_left {
                self.run(START_ORDERS, &[&rule, &keys]).await?;
            }
            // What is held in an order that came after the look is released by another look.
            if released > 0 || !is_left {
                return Ok(());
            }
        }
    }

    /// Shifts the times of deliveries that have not ended.
    pub(in crate::postgres) async fn move_times(
        &self,
        by: i64,
        now: Millis,
        thorough: bool,
    ) -> Result<(), ApplyError> {
        if !thorough {
            let newest = "SELECT accepted FROM progress WHERE number = (SELECT max(number) FROM deliveries)";
            let newest = self.find(newest, &[]).await?.map(|row| row.try_get::<_, i64>(0)).transpose()?;
            if newest.is_none_or(|accepted| accepted <= now.0) {
                return Ok(());
            }
        }
        self.run(SHIFT, &[&by, &now.0]).await.map(drop)
    }
}
