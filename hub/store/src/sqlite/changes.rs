//! One change after another, within a unit.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, params};
use seawall_hub_core::domain::circuit::{Circuit, CircuitState};
use seawall_hub_core::domain::delivery::{DeliveryId, DeliveryState};
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::source::Source;
use seawall_hub_core::port::store::{
    Change, CommitResult, SecretOwner, SecretRotation, StoreError, UnitOfWork,
};

use super::rows;
use super::schema::StartInfo;
use super::unit_of_work::translate;

/// The number of changes that are stored for each circuit.
const MOVES_KEPT: u32 = 200;

/// Applies the changes of one unit. Those of deliveries are in `deliveries.rs`.
pub(super) struct UnitApplier<'c> {
    pub(super) connection: &'c Connection,
    pub(super) start: StartInfo,
    pub(super) committed: CommitResult,
}

impl<'c> UnitApplier<'c> {
    pub(super) fn new(connection: &'c Connection, start: StartInfo) -> Self {
        UnitApplier { connection, start, committed: CommitResult::default() }
    }

    pub(super) fn unit(mut self, unit: &UnitOfWork) -> Result<CommitResult, StoreError> {
        for change in &unit.changes {
            self.change(change)?;
        }
        for change in &unit.changes {
            if let Change::ClaimKey(once) = change {
                self.remember(once)?;
            }
        }
        Ok(self.committed)
    }

    fn change(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::PutService(service) => self.put_service(service),
            Change::DeleteService(name, version) => {
                self.delete(
                    "DELETE FROM services WHERE name = ?1 AND version = ?2",
                    name.as_str(),
                    *version,
                )?;
                // Another one of the same name begins with a circuit of its own.
                self.run("DELETE FROM circuits WHERE service = ?1", [name.as_str()]).map(drop)
            }
            Change::PutRule(rule) => self.put_rule(rule),
            Change::DeleteRule(name, version) => self.delete(
                "UPDATE rules SET current = 0 WHERE name = ?1 AND version = ?2 AND current = 1",
                name.as_str(),
                *version,
            ),
            Change::PutSource(source) => self.put_source(source),
            Change::DeleteSource(name, version) => {
                self.delete("DELETE FROM sources WHERE name = ?1 AND version = ?2", name.as_str(), *version)
            }
            Change::PutAlertRule(rule) => self.put_alert_rule(rule),
            Change::DeleteAlertRule(name, version) => self.delete(
                "DELETE FROM alert_rules WHERE name = ?1 AND version = ?2",
                name.as_str(),
                *version,
            ),
            Change::PutChannel(channel) => self.put_channel(channel),
            Change::DeleteChannel(name, version) => self.delete(
                "DELETE FROM alert_channels WHERE name = ?1 AND version = ?2",
                name.as_str(),
                *version,
            ),
            Change::PutIncident(incident) => self.put_incident(incident),
            Change::PutCircuit { circuit, .. } => self.put_circuit(circuit),
            Change::PutKey(key) => self.put_key(key),
            Change::Audit(entry) => self.add_audit(entry),
            Change::ClaimKey(once) => self.once(once),
            Change::AddEvent(event, deliveries) => self.add_event(event, deliveries),
            Change::MoveTimes { by, now, thorough } => self.move_times(*by, *now, *thorough),
            Change::Settle(settlement) => self.settle(settlement),
            Change::ReturnToStore(deliveries) => self.return_to_store(deliveries),
            Change::Quarantine(settlement) => self.quarantine(settlement),
            Change::RecordStop => self.record_stop(),
            Change::Replay(replay) => self.replay(replay),
            Change::Move(moved) => self.move_letter(moved),
            Change::Note(note) => self.note(note),
            Change::StartOperation(operation) => self.begin_work(operation),
            Change::TransitionOperation(steer) => self.transition(steer),
            Change::AdvanceOperation(step) => self.step(step),
            Change::Index { most } => self.index(*most),
            Change::DeadLetterAll { whose, most, at } => self.dead_letter_all(whose, *most, *at),
            Change::ReleaseHeld { rule, most } => self.release_held(rule, *most),
            Change::Reseal(reseal) => self.reseal(reseal),
            Change::Prune(prune) => self.prune(prune),
        }
    }

    pub(super) fn prepare(&self, sql: &str) -> Result<CachedStatement<'c>, StoreError> {
        self.connection.prepare_cached(sql).map_err(|error| translate(&error))
    }

    pub(super) fn run(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        self.prepare(sql)?.execute(params).map_err(|error| translate(&error))
    }

    /// Returns one row, if there is one.
    pub(super) fn find<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        self.prepare(sql)?.query_row(params, read).optional().map_err(|error| translate(&error))
    }

    pub(super) fn name(&self, number: i64) -> DeliveryId {
        DeliveryId::new(self.start.database, number.cast_unsigned())
    }

    pub(super) fn made(&mut self, number: i64, state: DeliveryState) {
        let id = self.name(number);
        self.committed.deliveries.push((id, state));
    }

    fn delete(&self, sql: &str, name: &str, version: u64) -> Result<(), StoreError> {
        let gone = self.run(sql, params![name, version.cast_signed()])?;
        if gone == 0 { Err(StoreError::Stale { found: None }) } else { Ok(()) }
    }

    /// Checks that version `n` replaces `n - 1`, or nothing if it is the first.
    pub(super) fn check_version(&self, sql: &str, name: &str, version: u64) -> Result<(), StoreError> {
        let found = self.find(sql, [name], |row| row.get::<_, i64>(0))?.map(i64::cast_unsigned);
        if found.unwrap_or(0) + 1 == version { Ok(()) } else { Err(StoreError::Stale { found }) }
    }

    fn put_service(&self, service: &Service) -> Result<(), StoreError> {
        let Service { name, version, address, headers, auth, policy, paused, changed } = service;
        self.check_version("SELECT version FROM services WHERE name = ?1", name.as_str(), *version)?;
        self.run(
            "INSERT OR REPLACE INTO services (name, version, address, headers, auth, policy, paused, changed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                name.as_str(),
                version.cast_signed(),
                address,
                rows::pairs_to_text(headers),
                auth.as_ref().map(|auth| &auth.0),
                policy,
                paused,
                changed.0
            ],
        )?;
        Ok(())
    }

    fn put_rule(&self, rule: &Rule) -> Result<(), StoreError> {
        let name = rule.name.as_str();
        // Also if it was deleted in between: a version never means two things.
        self.check_version(
            "SELECT version FROM rules WHERE name = ?1 ORDER BY version DESC LIMIT 1",
            name,
            rule.version,
        )?;
        self.run("UPDATE rules SET current = 0 WHERE name = ?1 AND current = 1", [name])?;
        self.run(
            "INSERT INTO rules
             (name, version, current, events, filter, service, method, path, headers, body, schedule, ordering, hold,
              enabled, note, changed)
             VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            params![
                name,
                rule.version.cast_signed(),
                rule.events.to_string(),
                rule.filter,
                rule.service.as_str(),
                rule.method,
                rule.path,
                rows::pairs_to_text(&rule.headers),
                rule.body,
                rows::schedule_to_text(&rule.schedule),
                rule.ordering.as_ref().map(|ordering| &ordering.key),
                rule.ordering.as_ref().is_some_and(|ordering| ordering.hold),
                rule.enabled,
                rule.note,
                rule.changed.0
            ],
        )?;
        Ok(())
    }

    fn put_source(&self, source: &Source) -> Result<(), StoreError> {
        let Source { name, version, proof, event_type, event_id, enabled, changed } = source;
        self.check_version("SELECT version FROM sources WHERE name = ?1", name.as_str(), *version)?;
        self.run(
            "INSERT OR REPLACE INTO sources (name, version, proof, event_type, event_id, enabled, changed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![name.as_str(), version.cast_signed(), proof.0, event_type, event_id, enabled, changed.0],
        )?;
        Ok(())
    }

    fn reseal(&mut self, SecretRotation { owner, was, now }: &SecretRotation) -> Result<(), StoreError> {
        let (sql, name) = match owner {
            SecretOwner::Service(name) => {
                ("UPDATE services SET auth = ?3 WHERE name = ?1 AND auth = ?2", name)
            }
            SecretOwner::Channel(name) => {
                ("UPDATE alert_channels SET settings = ?3 WHERE name = ?1 AND settings = ?2", name)
            }
            SecretOwner::Source(name) => {
                ("UPDATE sources SET proof = ?3 WHERE name = ?1 AND proof = ?2", name)
            }
        };
        self.committed.touched += self.run(sql, params![name.as_str(), was.0, now.0])?;
        Ok(())
    }

    fn put_circuit(&self, circuit: &Circuit) -> Result<(), StoreError> {
        let Circuit { service, state, until, trips, reason, changed } = circuit;
        if *state == CircuitState::Open {
            // A probe has failed: the outage goes on, and is one line.
            let goes_on = self.run(
                "UPDATE circuits SET until = ?2, trips = ?3, reason = ?4, state = 'open' WHERE state IN ('open', 'halfOpen')
                 AND number = (SELECT max(number) FROM circuits WHERE service = ?1)",
                params![service.as_str(), until.map(|until| until.0), trips, reason],
            )?;
            if goes_on > 0 {
                return Ok(());
            }
        }
        self.run(
            "INSERT INTO circuits (service, state, until, trips, reason, changed) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![service.as_str(), state.word(), until.map(|until| until.0), trips, reason, changed.0],
        )?;
        self.run(
            "DELETE FROM circuits WHERE service = ?1 AND number <=
             (SELECT number FROM circuits WHERE service = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
            params![service.as_str(), MOVES_KEPT],
        )?;
        Ok(())
    }
}
