//! What is registered, the circuits of services, and who has changed what. Everything but the columns is a document of `record`.

use rusqlite::params;
use seawall_hub_core::domain::alert::{AlertRule, Channel};
use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::circuit::{Circuit, CircuitState};
use seawall_hub_core::domain::key::Key;
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::source::Source;
use seawall_hub_core::domain::version::next_version;
use seawall_hub_core::port::store::{SecretOwner, SecretRotation, StoreError};

use crate::record::{
    self, AlertRuleRecord, ChannelRecord, DocumentText, KeyRecord, RuleRecord, ServiceRecord, SourceRecord,
};
use crate::sqlite::write::UnitApplier;

/// The number of changes that are stored for each circuit.
const MOVES_KEPT: u32 = 200;

impl UnitApplier<'_> {
    pub(crate) fn put_service(&self, service: &Service) -> Result<(), StoreError> {
        let Service { name, version, .. } = service;
        self.check_version("SELECT version FROM services WHERE name = ?1", name, *version)?;
        let document = record::encode::<ServiceRecord>(service)?;
        self.put(
            "INSERT OR REPLACE INTO services (name, version, document) VALUES (?1, ?2, ?3)",
            params![name.as_str(), version.cast_signed(), document],
        )
    }

    pub(crate) fn delete_service(&self, name: &Slug, version: u64) -> Result<(), StoreError> {
        self.delete("DELETE FROM services WHERE name = ?1 AND version = ?2", name, version)?;
        // Another one of the same name begins with a circuit of its own.
        self.put("DELETE FROM circuits WHERE service = ?1", [name.as_str()])
    }

    pub(crate) fn put_rule(&self, rule: &Rule) -> Result<(), StoreError> {
        let Rule { name, version, service, enabled, .. } = rule;
        // Also if it was deleted in between: a version never means two things.
        self.check_version(
            "SELECT version FROM rules WHERE name = ?1 ORDER BY version DESC LIMIT 1",
            name,
            *version,
        )?;
        let document = record::encode::<RuleRecord>(rule)?;
        self.put("UPDATE rules SET current = 0 WHERE name = ?1 AND current = 1", [name.as_str()])?;
        self.put(
            "INSERT INTO rules (name, version, current, service, enabled, document) VALUES (?1, ?2, 1, ?3, ?4, ?5)",
            params![name.as_str(), version.cast_signed(), service.as_str(), enabled, document],
        )
    }

    pub(crate) fn delete_rule(&self, name: &Slug, version: u64) -> Result<(), StoreError> {
        let sql = "UPDATE rules SET current = 0 WHERE name = ?1 AND version = ?2 AND current = 1";
        self.delete(sql, name, version)
    }

    pub(crate) fn put_source(&self, source: &Source) -> Result<(), StoreError> {
        let Source { name, version, enabled, .. } = source;
        self.check_version("SELECT version FROM sources WHERE name = ?1", name, *version)?;
        let document = record::encode::<SourceRecord>(source)?;
        self.put(
            "INSERT OR REPLACE INTO sources (name, version, enabled, document) VALUES (?1, ?2, ?3, ?4)",
            params![name.as_str(), version.cast_signed(), enabled, document],
        )
    }

    pub(crate) fn delete_source(&self, name: &Slug, version: u64) -> Result<(), StoreError> {
        self.delete("DELETE FROM sources WHERE name = ?1 AND version = ?2", name, version)
    }

    pub(crate) fn put_alert_rule(&self, rule: &AlertRule) -> Result<(), StoreError> {
        let AlertRule { name, version, enabled, .. } = rule;
        self.check_version("SELECT version FROM alert_rules WHERE name = ?1", name, *version)?;
        let document = record::encode::<AlertRuleRecord>(rule)?;
        self.put(
            "INSERT OR REPLACE INTO alert_rules (name, version, enabled, document) VALUES (?1, ?2, ?3, ?4)",
            params![name.as_str(), version.cast_signed(), enabled, document],
        )
    }

    pub(crate) fn delete_alert_rule(&self, name: &Slug, version: u64) -> Result<(), StoreError> {
        self.delete("DELETE FROM alert_rules WHERE name = ?1 AND version = ?2", name, version)
    }

    pub(crate) fn put_channel(&self, channel: &Channel) -> Result<(), StoreError> {
        let Channel { name, version, .. } = channel;
        self.check_version("SELECT version FROM alert_channels WHERE name = ?1", name, *version)?;
        let document = record::encode::<ChannelRecord>(channel)?;
        self.put(
            "INSERT OR REPLACE INTO alert_channels (name, version, document) VALUES (?1, ?2, ?3)",
            params![name.as_str(), version.cast_signed(), document],
        )
    }

    pub(crate) fn delete_channel(&self, name: &Slug, version: u64) -> Result<(), StoreError> {
        self.delete("DELETE FROM alert_channels WHERE name = ?1 AND version = ?2", name, version)
    }

    pub(crate) fn put_key(&self, key: &Key) -> Result<(), StoreError> {
        self.put(
            "INSERT OR REPLACE INTO keys (name, document) VALUES (?1, ?2)",
            params![key.name.as_str(), record::encode::<KeyRecord>(key)?],
        )
    }

    /// Replaces a secret, if it is still the one that was encrypted again.
    pub(crate) fn reseal(&mut self, rotation: &SecretRotation) -> Result<(), StoreError> {
        let SecretRotation { owner, was, now } = rotation;
        let (sql, name) = match owner {
            SecretOwner::Service(name) => (
                "UPDATE services SET document = json_set(document, '$.auth', ?3)
                 WHERE name = ?1 AND document ->> '$.auth' = ?2",
                name,
            ),
            SecretOwner::Channel(name) => (
                "UPDATE alert_channels SET document = json_set(document, '$.settings', ?3)
                 WHERE name = ?1 AND document ->> '$.settings' = ?2",
                name,
            ),
            SecretOwner::Source(name) => (
                "UPDATE sources SET document = json_set(document, '$.proof', ?3)
                 WHERE name = ?1 AND document ->> '$.proof' = ?2",
                name,
            ),
        };
        self.committed.touched += self.run(sql, params![name.as_str(), was.to_text(), now.to_text()])?;
        Ok(())
    }

    pub(crate) fn put_circuit(&self, circuit: &Circuit) -> Result<(), StoreError> {
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
        self.put(
            "INSERT INTO circuits (service, state, until, trips, reason, changed) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![service.as_str(), state.word(), until.map(|until| until.0), trips, reason, changed.0],
        )?;
        self.put(
            "DELETE FROM circuits WHERE service = ?1 AND number <=
             (SELECT number FROM circuits WHERE service = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
            params![service.as_str(), MOVES_KEPT],
        )
    }

    pub(crate) fn add_audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let AuditEntry { at, who, action, target, reason, trace } = entry;
        self.put(
            "INSERT INTO audit (at, who, action, target, reason, trace) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![at.0, who, action, target, reason, trace],
        )
    }

    fn put(&self, sql: &str, params: impl rusqlite::Params) -> Result<(), StoreError> {
        self.run(sql, params).map(drop)
    }

    fn delete(&self, sql: &str, name: &Slug, version: u64) -> Result<(), StoreError> {
        let gone = self.run(sql, params![name.as_str(), version.cast_signed()])?;
        if gone == 0 { Err(StoreError::Stale { found: None }) } else { Ok(()) }
    }

    /// Checks that version `n` replaces `n - 1`, or nothing if it is the first.
    fn check_version(&self, sql: &str, name: &Slug, version: u64) -> Result<(), StoreError> {
        let found = self.find(sql, [name.as_str()], |row| row.get::<_, i64>(0))?.map(i64::cast_unsigned);
        if next_version(found) == version { Ok(()) } else { Err(StoreError::Stale { found }) }
    }
}
