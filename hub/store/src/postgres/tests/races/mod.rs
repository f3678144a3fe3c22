//! Changes that contradict each other, from two nodes that make them at the same moment, many times over. After each race everything is
//! counted again.

mod deliveries;
mod orders;

use std::cell::Cell;

use seawall_hub_core::domain::delivery::{
    Decision, DeliveryFacts, Disposition, InitialState, Progress, StoredState,
};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    Change, Claim, CommitResult, LaneCapacity, NewDelivery, Settlement, StoreError, UnitOfWork,
};
use tokio::sync::Barrier;

use super::{ERA, Names, Table, TestNode};
use crate::postgres::engine::fault::DatabaseFault;
use crate::postgres::write::applier::ApplyError;
use crate::postgres::write::batch::{UnitShape, apply_batch, shape};
use crate::tests::{NOW, row};

const ROUNDS: i64 = 200;

/// The epochs of the two nodes.
const ONE: u64 = 1;
const TWO: u64 = 2;

type Outcome = Result<CommitResult, StoreError>;

/// A table, and two nodes that write to it.
struct Race {
    table: Table,
    one: TestNode,
    two: TestNode,
    barrier: Barrier,
    /// How often a transaction was taken back because another was in the way.
    conflicts: Cell<u32>,
}

impl Race {
    async fn new() -> Self {
        let table = Table::new(100).await;
        let (one, two) = (table.another_node(ONE).await, table.another_node(TWO).await);
        // Numbers that tests give out themselves are below those of the sequence.
        table.node.text("SELECT setval('delivery_numbers', 10000000)").await;
        Race { table, one, two, barrier: Barrier::new(2), conflicts: Cell::new(0) }
    }

    /// Inserts a delivery, and returns its number.
    async fn insert(&mut self, facts: DeliveryFacts, names: Names<'_>) -> i64 {
        self.table.insert([(&facts, names)]).await;
        self.table.rows
    }

    /// Does the work in a transaction of a node, and again while others are in the way, as a writer does.
    async fn transact<T>(
        &self,
        node: &TestNode,
        work: impl AsyncFn(&TestNode) -> Result<T, ApplyError>,
    ) -> Result<T, StoreError> {
        loop {
            node.text("BEGIN").await;
            let epoch = node.id.epoch.cast_signed();
            let writers = "UPDATE writers SET number = number + 1 WHERE epoch = $1";
            let made = match node.session.run(writers, &[&epoch]).await {
                Ok(_) => work(node).await,
                Err(error) => Err(error.into()),
            };
            match made {
                Ok(made) => {
                    node.text("COMMIT").await;
                    return Ok(made);
                }
                Err(ApplyError::Refused(error)) => {
                    node.text("ROLLBACK").await;
                    return Err(error);
                }
                Err(ApplyError::Database(error)) => {
                    assert_eq!(DatabaseFault::of(&error), DatabaseFault::Conflict, "{error:?}");
                    node.text("ROLLBACK").await;
                    self.conflicts.set(self.conflicts.get() + 1);
                }
            }
        }
    }

    /// Commits a unit as the writer of a node does: with others of its shape, or alone.
    async fn commit(&self, node: &TestNode, unit: &UnitOfWork) -> Outcome {
        let made = self.transact(node, async |node| match shape(unit) {
            UnitShape::Single => Ok(Ok(node.applier().unit(unit).await?)),
            shape => Ok(apply_batch(&node.session, node.id, shape, &[unit]).await?.remove(0)),
        });
        made.await?
    }

    /// Commits two units that start at the same moment.
    async fn race(&self, first: UnitOfWork, second: UnitOfWork) -> [Outcome; 2] {
        let start = async |node, unit: UnitOfWork| {
            self.barrier.wait().await;
            self.commit(node, &unit).await
        };
        let (first, second) = tokio::join!(start(&self.one, first), start(&self.two, second));
        [first, second]
    }

    async fn count(&self, sql: &str) -> i64 {
        self.table.node.session.find(sql, &[]).await.unwrap().unwrap().get(0)
    }

    async fn state(&self, number: i64) -> StoredState {
        self.table.node.applier().load_facts(number).await.unwrap().unwrap().state
    }

    /// U1, U2, HUB-5: every delivery is in one place, every dead letter has its row and is counted in its group, and in each order
    /// one delivery is active at most, and one is if any waits that no dead letter holds up.
    async fn recount(&self) {
        let places = "SELECT count(*) FROM deliveries d WHERE (SELECT count(*) FROM progress p WHERE p.number = d.number) <> 1";
        assert_eq!(self.count(places).await, 0, "deliveries that are nowhere or twice");
        let letters = "SELECT count(*) FROM progress p FULL JOIN dead_letters l ON l.delivery = p.number
            WHERE (p.state IN (6, 8)) IS DISTINCT FROM (l.delivery IS NOT NULL)";
        assert_eq!(self.count(letters).await, 0, "dead letters without a row, or the other way round");
        let groups = "SELECT count(*) FROM letter_groups g WHERE open <>
            (SELECT count(*) FROM dead_letters l WHERE l.grouping = g.number AND l.standing = 0)";
        assert_eq!(self.count(groups).await, 0, "groups that count wrong");
        let orders =
            "SELECT count(*) FROM (SELECT 1 FROM work WHERE ordering IS NOT NULL GROUP BY rule, ordering
            HAVING count(*) FILTER (WHERE state < 4) > 1 OR bool_and(state = 4)) AS wrong";
        assert_eq!(self.count(orders).await, 0, "orders with two at once, or with nobody");
    }
}

fn slug(name: &str) -> Slug {
    Slug::new(name).unwrap()
}

fn settlement(number: i64, epoch: u64, disposition: Disposition) -> Settlement {
    let progress = Progress { accepted: NOW, counted: 1, failures: 1, panics: 0 };
    let decision = Decision { disposition, progress, attempted: true, throttle: None };
    let attempt = Some(seawall_dist::deadletter::Attempt { at: NOW, ..Default::default() });
    let claim = claim(number, epoch);
    Settlement { claim, decision, attempt, failure: None, at: NOW, ordered: false, is_replay: false }
}

fn claim(number: i64, epoch: u64) -> Claim {
    let delivery = seawall_hub_core::domain::delivery::DeliveryId::new(ERA, number.cast_unsigned());
    Claim { delivery, epoch }
}

fn settle(number: i64, epoch: u64, disposition: Disposition) -> UnitOfWork {
    UnitOfWork::of(Change::Settle(settlement(number, epoch, disposition)))
}

fn settle_ordered(number: i64, disposition: Disposition) -> UnitOfWork {
    let settlement = Settlement { ordered: true, ..settlement(number, ONE, disposition) };
    UnitOfWork::of(Change::Settle(settlement))
}

fn leased(epoch: u64) -> DeliveryFacts {
    DeliveryFacts { epoch, ..row(StoredState::Leased) }
}

fn retry() -> Disposition {
    Disposition::Retry { due: Millis(NOW.0 + 5), stalled: false }
}

fn new(rule: &str, service: &str, initial: InitialState, order: Option<&str>) -> NewDelivery {
    let order = order.map(ToOwned::to_owned);
    NewDelivery { rule: (slug(rule), 1), service: slug(service), request: vec![0], initial, order }
}

fn room(service: &str) -> [LaneCapacity; 1] {
    [LaneCapacity { service: slug(service), fresh: 100, retries: 100, resume_before: None }]
}
