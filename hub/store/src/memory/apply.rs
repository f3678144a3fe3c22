//! One change after another, within a unit.

use seawall_dist::idempotency::{Claim as KeyClaim, ClaimDecision, Entry, KEPT, claim};
use seawall_hub_core::domain::circuit::{Circuit, CircuitState};
use seawall_hub_core::domain::operation::{Operation, OperationId};
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::version::next_version;
use seawall_hub_core::port::store::{
    Change, CommitResult, IdempotencyRecord, SecretOwner, SecretRotation, StoreError, UnitOfWork,
};

use super::table::CowTable;
use super::tables::{OnceRow, Tables};

/// The number of changes that are stored for each circuit.
const MOVES_KEPT: usize = 200;

/// The number of expired keys that each new one removes.
const EXPIRED_REMOVED: usize = 4;

/// Applies the changes of one unit to a copy of the tables.
pub(super) struct MemoryApplier<'t> {
    pub(super) tables: &'t mut Tables,
    /// The epoch of the process that commits.
    pub(super) epoch: u64,
    pub(super) committed: CommitResult,
}

impl<'t> MemoryApplier<'t> {
    pub(super) fn new(tables: &'t mut Tables, epoch: u64) -> Self {
        MemoryApplier { tables, epoch, committed: CommitResult { epoch, ..CommitResult::default() } }
    }

    pub(super) fn unit(mut self, unit: &UnitOfWork) -> Result<CommitResult, StoreError> {
        for change in &unit.changes {
            self.change(change)?;
        }
        for change in &unit.changes {
            if let Change::ClaimKey(record) = change {
                self.record_key(record);
            }
        }
        Ok(self.committed)
    }

    fn change(&mut self, change: &Change) -> Result<(), StoreError> {
        let tables = &mut *self.tables;
        match change {
            Change::PutService(new) => {
                let found = tables.services.get(&new.name).map(|service| service.version);
                put(&mut tables.services, &new.name, found, new.version, new.clone())
            }
            Change::DeleteService(name, version) => {
                delete(&mut tables.services, name, |service| service.version == *version)?;
                // Another one of the same name begins with a circuit of its own.
                for number in tables.circuits.keys_of(|_, circuit| circuit.service == *name) {
                    tables.circuits.remove(&number);
                }
                Ok(())
            }
            Change::PutRule(rule) => self.put_rule(rule),
            Change::DeleteRule(name, version) => {
                delete(&mut tables.current_rules, name, |current| current == version)
            }
            Change::PutSource(new) => {
                let found = tables.sources.get(&new.name).map(|source| source.version);
                put(&mut tables.sources, &new.name, found, new.version, new.clone())
            }
            Change::DeleteSource(name, version) => {
                delete(&mut tables.sources, name, |source| source.version == *version)
            }
            Change::PutAlertRule(new) => {
                let found = tables.alert_rules.get(&new.name).map(|rule| rule.version);
                put(&mut tables.alert_rules, &new.name, found, new.version, new.clone())
            }
            Change::DeleteAlertRule(name, version) => {
                delete(&mut tables.alert_rules, name, |rule| rule.version == *version)
            }
            Change::PutChannel(new) => {
                let found = tables.channels.get(&new.name).map(|channel| channel.version);
                put(&mut tables.channels, &new.name, found, new.version, new.clone())
            }
            Change::DeleteChannel(name, version) => {
                delete(&mut tables.channels, name, |channel| channel.version == *version)
            }
            Change::PutIncident(incident) => {
                let known = tables.incidents.keys_of(|_, known| known.id == incident.id).pop();
                let number = known.unwrap_or_else(|| tables.number());
                let incident = match tables.incidents.get(&number) {
                    Some(known) => incident.as_ref().clone().merged(known.clone()),
                    None => incident.as_ref().clone(),
                };
                tables.incidents.insert(number, incident);
                Ok(())
            }
            Change::PutCircuit { circuit, .. } => {
                self.put_circuit(circuit);
                Ok(())
            }
            Change::PutKey(key) => {
                tables.keys.insert(key.name.clone(), key.clone());
                Ok(())
            }
            Change::Audit(entry) => {
                let number = tables.number();
                tables.audit.insert(number, entry.clone());
                Ok(())
            }
            Change::RecordStop => {
                tables.stopped = self.epoch;
                Ok(())
            }
            Change::ClaimKey(record) => self.claim_key(record),
            Change::Reseal(rotation) => {
                self.committed.touched += usize::from(self.reseal(rotation));
                Ok(())
            }
            Change::StartOperation(operation) => {
                self.start_operation(operation);
                Ok(())
            }
            Change::AddEvent(event, deliveries) => self.add_event(event, deliveries),
            Change::MoveTimes { by, now, thorough } => {
                self.move_times(*by, *now, *thorough);
                Ok(())
            }
            Change::Settle(settlement) => self.settle(settlement),
            Change::ReturnToStore(claims) => {
                self.return_to_store(claims);
                Ok(())
            }
            Change::Replay(replay) => self.replay(replay),
            Change::Move(moved) => self.move_letter(moved),
            Change::Note(note) => self.note(note),
            Change::TransitionOperation(transition) => self.transition(transition),
            Change::AdvanceOperation(step) => self.advance(step),
            Change::Index { limit } => {
                self.index(*limit);
                Ok(())
            }
            Change::DeadLetterAll { selector, limit, at } => {
                self.dead_letter_all(selector, *limit, *at);
                Ok(())
            }
            Change::ReleaseHeld { rule, limit } => {
                self.release_held(rule, *limit);
                Ok(())
            }
            Change::Prune(target) => {
                self.committed.touched += self.prune(target);
                Ok(())
            }
        }
    }

    fn put_rule(&mut self, rule: &Rule) -> Result<(), StoreError> {
        let versions = self.tables.rules.keys_of(|(name, _), _| *name == rule.name);
        // Also if it was deleted in between: a version never means two things.
        check_version(versions.last().map(|(_, version)| *version), rule.version)?;
        self.tables.rules.insert((rule.name.clone(), rule.version), rule.clone());
        self.tables.current_rules.insert(rule.name.clone(), rule.version);
        Ok(())
    }

    fn put_circuit(&mut self, circuit: &Circuit) {
        let of_service =
            |tables: &Tables| tables.circuits.keys_of(|_, known| known.service == circuit.service);
        let last = of_service(self.tables).pop();
        let last = last.and_then(|number| self.tables.circuits.get_mut(&number));
        if circuit.state == CircuitState::Open
            && let Some(last) = last
            && matches!(last.state, CircuitState::Open | CircuitState::HalfOpen)
        {
            // A probe has failed: the outage goes on, and is one line.
            *last = Circuit { changed: last.changed, ..circuit.clone() };
            return;
        }
        let number = self.tables.number();
        self.tables.circuits.insert(number, circuit.clone());
        let all = of_service(self.tables);
        for number in &all[..all.len().saturating_sub(MOVES_KEPT)] {
            self.tables.circuits.remove(number);
        }
    }

    /// Checks whether a key is unused. Record and effect are one unit, so nobody ever sees it in flight.
    fn claim_key(&self, record: &IdempotencyRecord) -> Result<(), StoreError> {
        let Some(row) = self.tables.once.get(&(record.scope, record.key.clone())) else { return Ok(()) };
        let wanted = KeyClaim { fingerprint: record.fingerprint, token: 0, lease: 0 };
        let entry = Entry::Done { fingerprint: row.fingerprint, until: row.until.0 };
        match claim(entry, &wanted, record.at.0) {
            ClaimDecision::Run(_) => Ok(()),
            _ => Err(StoreError::AlreadyApplied {
                fingerprint: row.fingerprint,
                note: row.note.clone(),
                deliveries: row.deliveries.clone(),
            }),
        }
    }

    /// Stores the key of an applied unit. The id of what has begun is known only now.
    fn record_key(&mut self, record: &IdempotencyRecord) {
        let IdempotencyRecord { scope, key, fingerprint, note, at } = record;
        let expired = self.tables.once.keys_of(|_, row| row.until <= *at);
        for key in expired.iter().take(EXPIRED_REMOVED) {
            self.tables.once.remove(key);
        }
        let operation = self.committed.operation.map(|operation| operation.to_string());
        let row = OnceRow {
            fingerprint: *fingerprint,
            note: operation.unwrap_or_else(|| note.clone()),
            deliveries: self.committed.deliveries.iter().map(|(id, _)| *id).collect(),
            at: *at,
            until: *at + KEPT,
        };
        self.tables.once.insert((scope, key.clone()), row);
    }

    fn reseal(&mut self, SecretRotation { owner, was, now }: &SecretRotation) -> bool {
        let tables = &mut *self.tables;
        let secret: Option<&mut SealedSecret> = match owner {
            SecretOwner::Service(name) => {
                tables.services.get_mut(name).and_then(|service| service.auth.as_mut())
            }
            SecretOwner::Source(name) => tables.sources.get_mut(name).map(|source| &mut source.proof),
            SecretOwner::Channel(name) => tables.channels.get_mut(name).map(|channel| &mut channel.settings),
        };
        let found = secret.filter(|secret| *secret == was);
        found.map(|secret| *secret = now.clone()).is_some()
    }

    fn start_operation(&mut self, operation: &Operation) {
        let number = self.tables.number();
        let id = OperationId::new(self.tables.database, number);
        self.tables.operations.insert(number, Operation { id, ..operation.clone() });
        self.committed.operation = Some(id);
    }
}

/// Checks that version `n` replaces `n - 1`, or nothing if it is the first.
fn check_version(found: Option<u64>, version: u64) -> Result<(), StoreError> {
    if next_version(found) == version { Ok(()) } else { Err(StoreError::Stale { found }) }
}

fn put<V: Clone>(
    table: &mut CowTable<Slug, V>,
    name: &Slug,
    found: Option<u64>,
    version: u64,
    row: V,
) -> Result<(), StoreError> {
    check_version(found, version)?;
    table.insert(name.clone(), row);
    Ok(())
}

fn delete<V: Clone>(
    table: &mut CowTable<Slug, V>,
    name: &Slug,
    is_version: impl FnOnce(&V) -> bool,
) -> Result<(), StoreError> {
    if !table.get(name).is_some_and(is_version) {
        return Err(StoreError::Stale { found: None });
    }
    table.remove(name);
    Ok(())
}
