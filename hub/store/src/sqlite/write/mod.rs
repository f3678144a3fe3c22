//! What a unit of work changes: one change after another.

mod alerts;
pub(crate) mod deliveries;
mod events;
mod groups;
mod idempotency;
mod index;
mod letters;
mod operations;
mod orders;
mod prune;
mod registry;
pub(crate) mod restart;
pub(crate) mod set_based;
mod times;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params};
use seawall_hub_core::domain::delivery::{DeliveryId, DeliveryState};
use seawall_hub_core::port::store::{Change, CommitResult, StoreError, UnitOfWork};

use crate::sqlite::engine::schema::StartInfo;
use crate::sqlite::engine::writer::translate;

/// Applies the changes of one unit.
pub(crate) struct UnitApplier<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) start: StartInfo,
    pub(crate) committed: CommitResult,
}

impl<'c> UnitApplier<'c> {
    pub(crate) fn new(connection: &'c Connection, start: StartInfo) -> Self {
        let committed = CommitResult { epoch: start.epoch, ..CommitResult::default() };
        UnitApplier { connection, start, committed }
    }

    pub(crate) fn unit(mut self, unit: &UnitOfWork) -> Result<CommitResult, StoreError> {
        for change in &unit.changes {
            self.change(change)?;
        }
        for change in &unit.changes {
            if let Change::ClaimKey(record) = change {
                self.record_key(record)?;
            }
        }
        Ok(self.committed)
    }

    fn change(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::PutService(service) => self.put_service(service),
            Change::DeleteService(name, version) => self.delete_service(name, *version),
            Change::PutRule(rule) => self.put_rule(rule),
            Change::DeleteRule(name, version) => self.delete_rule(name, *version),
            Change::PutSource(source) => self.put_source(source),
            Change::DeleteSource(name, version) => self.delete_source(name, *version),
            Change::PutAlertRule(rule) => self.put_alert_rule(rule),
            Change::DeleteAlertRule(name, version) => self.delete_alert_rule(name, *version),
            Change::PutChannel(channel) => self.put_channel(channel),
            Change::DeleteChannel(name, version) => self.delete_channel(name, *version),
            Change::PutIncident(incident) => self.put_incident(incident),
            Change::PutCircuit { circuit, .. } => self.put_circuit(circuit),
            Change::PutKey(key) => self.put_key(key),
            Change::Audit(entry) => self.add_audit(entry),
            Change::ClaimKey(record) => self.claim_key(record),
            Change::AddEvent(event, deliveries) => self.add_event(event, deliveries),
            Change::MoveTimes { by, now, thorough } => self.move_times(*by, *now, *thorough),
            Change::Settle(settlement) => self.settle(settlement),
            Change::ReturnToStore(deliveries) => self.return_to_store(deliveries),
            Change::RecordStop => self.record_stop(),
            Change::Replay(replay) => self.replay(replay),
            Change::Move(moved) => self.move_letter(moved),
            Change::Note(note) => self.note(note),
            Change::StartOperation(operation) => self.start_operation(operation),
            Change::TransitionOperation(transition) => self.transition(transition),
            Change::AdvanceOperation(step) => self.advance(step),
            Change::Index { limit } => self.index(*limit),
            Change::DeadLetterAll { selector, limit, at } => self.dead_letter_all(selector, *limit, *at),
            Change::ReleaseHeld { rule, limit } => self.release_held(rule, *limit),
            Change::Reseal(reseal) => self.reseal(reseal),
            Change::Prune(prune) => self.prune(prune),
        }
    }

    pub(crate) fn prepare(&self, sql: &str) -> Result<CachedStatement<'c>, StoreError> {
        self.connection.prepare_cached(sql).map_err(|error| translate(&error))
    }

    pub(crate) fn run(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        self.prepare(sql)?.execute(params).map_err(|error| translate(&error))
    }

    /// Returns one row, if there is one.
    pub(crate) fn find<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        self.prepare(sql)?.query_row(params, read).optional().map_err(|error| translate(&error))
    }

    pub(crate) fn delivery_id(&self, number: i64) -> DeliveryId {
        DeliveryId::new(self.start.database, number.cast_unsigned())
    }

    pub(crate) fn record_inserted(&mut self, number: i64, state: DeliveryState) {
        let id = self.delivery_id(number);
        self.committed.deliveries.push((id, state));
    }
}
