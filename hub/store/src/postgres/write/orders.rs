//! Deliveries with the same ordering key: locking them, reading what decides, and starting the next.
//!
//! # Why locks beside those of the rows?
//! What decides about an order is also what is *not* there: a delivery is the first of its key if there is no other. No row can be
//! locked for that, so everybody who inserts, ends or starts a delivery of an order holds the lock of that order.

use std::collections::BTreeSet;

use seawall_hub_core::domain::delivery::{OrderFacts, StoredState};

use super::applier::{ApplyError, UnitApplier};
use super::facts::small;
use super::set_based::{START, STOP_HOLDING};
use crate::postgres::engine::locks::{NAMESPACE, ORDER_STRIPES};
use crate::postgres::rows::Columns;
use crate::postgres::text::{shown, stored};
use crate::sql::sql;

/// Locks one stripe after the other.
const LOCK: &str = "SELECT pg_advisory_xact_lock($1, stripe) FROM unnest($2::int4[]) AS stripe";

const ORDER_FACTS: &str = sql!(
    "SELECT EXISTS (SELECT 1 FROM work WHERE rule = $1 AND ordering = $2 AND " ACTIVE_IN_ORDER "),
         EXISTS (SELECT 1 FROM work WHERE rule = $1 AND ordering = $2 AND state = " HOLDING "),
         first.number, first.state
     FROM (SELECT 1) AS one LEFT JOIN LATERAL
         (SELECT number, state FROM work WHERE rule = $1 AND ordering = $2 AND " WAITS_IN_ORDER " ORDER BY number LIMIT 1) AS first
         ON true"
);

impl UnitApplier<'_> {
    /// Locks orders until the end of the transaction. What others have committed about them is seen by the next statement, so
    /// this comes before any row of an order is read. An order is the name of a rule with an ordering key.
    pub(in crate::postgres) async fn lock_orders(&self, orders: &[(&str, &str)]) -> Result<(), ApplyError> {
        if orders.is_empty() {
            return Ok(());
        }
        // In the same sequence for all, so that no two wait for each other.
        let stripes: BTreeSet<i32> = orders.iter().map(|(rule, key)| stripe(rule, key)).collect();
        let stripes: Vec<i32> = stripes.into_iter().collect();
        self.run(LOCK, &[&NAMESPACE, &stripes]).await.map(drop)
    }

    /// Locks the order of a delivery, and returns it: the rule and the key.
    pub(super) async fn locked_order_of(&self, number: i64) -> Result<Option<(String, String)>, ApplyError> {
        let order = self.order_of(number).await?;
        if let Some((rule, key)) = &order {
            self.lock_orders(&[(rule, key)]).await?;
        }
        Ok(order)
    }

    /// Returns the order of a delivery, if it has one. That never changes.
    pub(super) async fn order_of(&self, number: i64) -> Result<Option<(String, String)>, ApplyError> {
        let sql = "SELECT rule, ordering FROM deliveries WHERE number = $1 AND ordering IS NOT NULL";
        let row = self.find(sql, &[&number]).await?;
        row.map(|row| Ok((row.try_get(0)?, shown(row.try_get(1)?)))).transpose()
    }

    /// Returns what is in an order, which has to be locked.
    pub(super) async fn order_facts(&self, rule: &str, key: &str) -> Result<OrderFacts, ApplyError> {
        let row = self.find(ORDER_FACTS, &[&rule, &stored(key)]).await?;
        let Some(row) = row else { return Ok(OrderFacts::default()) };
        let mut columns = Columns::new("work", &row);
        let (active, holding) = (columns.value()?, columns.value()?);
        let first_waiting = columns.number_or_null()?.zip(columns.numbered_or_null()?);
        Ok(OrderFacts { first_waiting, active, holding })
    }

    /// Starts a blocked delivery whose turn has come, and returns the state that it is in then.
    pub(super) async fn start_in_order(
        &self,
        number: u64,
        becomes: StoredState,
    ) -> Result<Option<StoredState>, ApplyError> {
        let (number, state) = (number.cast_signed(), small(becomes));
        let row = self.find(START, &[&number, &state, &self.node.epoch.cast_signed()]).await?;
        Ok(row.map(|row| Columns::new("work", &row).numbered()).transpose()?)
    }

    /// Releases the order that a dead letter holds up. Its order has to be locked.
    pub(in crate::postgres) async fn release_order(&self, number: i64) -> Result<(), ApplyError> {
        if self.stop_holding(number).await? { self.start_replayed(number, None).await } else { Ok(()) }
    }

    /// Ends the hold of a dead letter on its order, and starts nothing. Its order has to be locked.
    pub(in crate::postgres) async fn stop_holding(&self, number: i64) -> Result<bool, ApplyError> {
        Ok(self.run(STOP_HOLDING, &[&number]).await? > 0)
    }

    /// Starts the next delivery in the order of a dead letter that was replayed: the replay, if it is in the same order. The
    /// order has to be locked.
    pub(in crate::postgres) async fn start_replayed(
        &self,
        dead: i64,
        replay: Option<(i64, StoredState)>,
    ) -> Result<(), ApplyError> {
        let Some((rule, key)) = self.order_of(dead).await? else { return Ok(()) };
        let Some((replay, state)) = replay else { return self.start_released(&rule, &key).await };
        let facts = self.order_facts(&rule, &key).await?;
        if let Some(next) = facts.next_when_replayed((replay.cast_unsigned(), state)) {
            self.start_in_order(next, StoredState::Queued).await?;
        }
        Ok(())
    }

    /// Starts the next delivery of a locked order, unless another is active or a dead letter holds it.
    pub(super) async fn start_released(&self, rule: &str, key: &str) -> Result<(), ApplyError> {
        if let Some(next) = self.order_facts(rule, key).await?.next_when_released() {
            self.start_in_order(next, StoredState::Queued).await?;
        }
        Ok(())
    }
}

/// Returns the lock of an order. It must be the same in every version of the program that ever runs beside another.
fn stripe(rule: &str, key: &str) -> i32 {
    // FNV-1a. A rule's name has no U+0000, so no two orders make the same bytes.
    let bytes = rule.bytes().chain([0]).chain(key.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    ((hash ^ (hash >> 32)) % u64::from(ORDER_STRIPES.unsigned_abs())) as i32
}
