//! One change after another, within a transaction.
//!
//! # Why does every look take a lock?
//! Several writers, in this process and in others, change rows at the same time. What a change decides on must not change until
//! it commits, so a look that leads to a write locks what it reads: the row with `FOR UPDATE`, an order by its key, a name by a
//! unique index. All take their locks in the same sequence: orders, keys, events, deliveries, dead letters, groups, operations.

use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::port::store::{Change, CommitResult, StoreError, UnitOfWork};
use tokio_postgres::{Error, Row};

use crate::postgres::engine::session::{Params, Session};

/// The process as a node: what its rows are marked with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::postgres) struct NodeId {
    /// The epoch of the process.
    pub(in crate::postgres) epoch: u64,
    /// The first half of new ids.
    pub(in crate::postgres) era: u64,
}

/// Applies the changes of one unit within a transaction that its caller has begun.
pub(in crate::postgres) struct UnitApplier<'c> {
    pub(in crate::postgres) session: &'c Session,
    pub(in crate::postgres) node: NodeId,
    pub(in crate::postgres) committed: CommitResult,
}

/// Why a change was not applied.
#[derive(Debug)]
pub(in crate::postgres) enum ApplyError {
    /// The change is refused, and would be refused again.
    Refused(StoreError),
    /// The database has failed; its code says whether the unit may be tried again.
    Database(Error),
}

impl From<StoreError> for ApplyError {
    fn from(error: StoreError) -> Self {
        ApplyError::Refused(error)
    }
}

impl From<Error> for ApplyError {
    fn from(error: Error) -> Self {
        ApplyError::Database(error)
    }
}

impl<'c> UnitApplier<'c> {
    pub(in crate::postgres) fn new(session: &'c Session, node: NodeId) -> Self {
        let committed = CommitResult { epoch: node.epoch, ..CommitResult::default() };
        UnitApplier { session, node, committed }
    }

    pub(in crate::postgres) async fn run(&self, sql: &str, params: Params<'_>) -> Result<u64, ApplyError> {
        Ok(self.session.run(sql, params).await?)
    }

    /// Returns one row, if there is one.
    pub(in crate::postgres) async fn find(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Option<Row>, ApplyError> {
        Ok(self.session.find(sql, params).await?)
    }

    pub(in crate::postgres) async fn rows(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, ApplyError> {
        Ok(self.session.rows(sql, params).await?)
    }

    /// Returns the id of a delivery that this node inserts.
    pub(in crate::postgres) fn id(&self, number: i64) -> DeliveryId {
        DeliveryId::new(self.node.era, number.cast_unsigned())
    }

    /// Applies a unit, and returns what it has created. Its transaction is the caller's, who takes it back after an error.
    pub(in crate::postgres) async fn unit(mut self, unit: &UnitOfWork) -> Result<CommitResult, ApplyError> {
        for change in &unit.changes {
            self.change(change).await?;
        }
        for change in &unit.changes {
            if let Change::ClaimKey(record) = change {
                self.record_key(record).await?;
            }
        }
        Ok(self.committed)
    }

    async fn change(&mut self, change: &Change) -> Result<(), ApplyError> {
        match change {
            Change::PutService(service) => self.put_service(service).await,
            Change::DeleteService(name, version) => self.delete_service(name, *version).await,
            Change::PutRule(rule) => self.put_rule(rule).await,
            Change::DeleteRule(name, version) => self.delete_rule(name, *version).await,
            Change::PutSource(source) => self.put_source(source).await,
            Change::DeleteSource(name, version) => self.delete_source(name, *version).await,
            Change::PutAlertRule(rule) => self.put_alert_rule(rule).await,
            Change::DeleteAlertRule(name, version) => self.delete_alert_rule(name, *version).await,
            Change::PutChannel(channel) => self.put_channel(channel).await,
            Change::DeleteChannel(name, version) => self.delete_channel(name, *version).await,
            Change::PutKey(key) => self.put_key(key).await,
            Change::Reseal(rotation) => self.reseal(rotation).await,
            Change::PutCircuit { circuit, cause } => self.put_circuit(circuit, *cause).await,
            Change::PutIncident(incident) => self.put_incident(incident).await,
            Change::Audit(entry) => self.add_audit(entry).await,
            Change::ClaimKey(record) => self.claim_key(record).await,
            Change::Replay(replay) => self.replay(replay).await,
            Change::Move(moved) => self.move_letter(moved).await,
            Change::Note(note) => self.note(note).await,
            Change::StartOperation(operation) => self.start_operation(operation).await,
            Change::TransitionOperation(transition) => self.transition(transition).await,
            Change::AdvanceOperation(step) => self.advance(step).await,
            Change::Index { limit } => self.index(*limit).await,
            Change::Prune(target) => self.prune(target).await,
            Change::AddEvent(event, deliveries) => self.add_event(event, deliveries).await,
            Change::MoveTimes { by, now, thorough } => self.move_times(*by, *now, *thorough).await,
            Change::Settle(settlement) => self.settle(settlement).await,
            Change::ReturnToStore(claims) => self.return_to_store(claims).await,
            Change::RecordStop => self.record_stop().await,
            Change::DeadLetterAll { selector, limit, at } => {
                self.dead_letter_all(selector, *limit, *at).await
            }
            Change::ReleaseHeld { rule, limit } => self.release_held(rule, *limit).await,
        }
    }
}
