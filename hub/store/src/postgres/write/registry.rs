//! What is registered. Everything but the columns is a document of `record`.
//!
//! # Why does each change raise a number first?
//! `meta.registry` tells other processes that they have to read again. Its row stays locked until the commit, so that changes of what
//! is registered come one after the other, however many processes make them, and who sees a number sees all changes up to it.

use seawall_hub_core::domain::alert::{AlertRule, Channel};
use seawall_hub_core::domain::key::Key;
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::source::Source;
use seawall_hub_core::domain::version::next_version;
use seawall_hub_core::port::store::{SecretOwner, SecretRotation, StoreError};
use serde_json::Value;

use super::applier::{ApplyError, UnitApplier};
use crate::record::{
    self, AlertRuleRecord, ChannelRecord, DocumentText, KeyRecord, RuleRecord, ServiceRecord, SourceRecord,
};

/// A version of a row to store.
struct RowVersion<'a> {
    table: &'static str,
    name: &'a Slug,
    version: u64,
    /// The column `enabled`, if the table has it.
    enabled: Option<bool>,
    document: String,
}

impl UnitApplier<'_> {
    pub(super) async fn put_service(&self, service: &Service) -> Result<(), ApplyError> {
        let Service { name, version, .. } = service;
        let document = record::encode::<ServiceRecord>(service)?;
        self.put_version(RowVersion { table: "services", name, version: *version, enabled: None, document })
            .await
    }

    pub(super) async fn delete_service(&self, name: &Slug, version: u64) -> Result<(), ApplyError> {
        self.delete_version("services", name, version).await?;
        // Another one of the same name begins with a circuit of its own.
        self.forget_circuits(name).await
    }

    pub(super) async fn put_rule(&self, rule: &Rule) -> Result<(), ApplyError> {
        let Rule { name, version, service, enabled, .. } = rule;
        self.raise_registry().await?;
        // Also if it was deleted in between: a version never means two things.
        let last = self
            .find(
                "SELECT version FROM rules WHERE name = $1 ORDER BY version DESC LIMIT 1 FOR UPDATE",
                &[&name.as_str()],
            )
            .await?;
        let found = last.map(|row| row.try_get::<_, i64>(0)).transpose()?.map(i64::cast_unsigned);
        if next_version(found) != *version {
            return Err(StoreError::Stale { found }.into());
        }
        let document = record::encode::<RuleRecord>(rule)?;
        self.run("UPDATE rules SET current = false WHERE name = $1 AND current", &[&name.as_str()]).await?;
        let added = self
            .run(
                "INSERT INTO rules (name, version, current, service, enabled, document) VALUES ($1, $2, true, $3, $4, $5)
                 ON CONFLICT DO NOTHING",
                &[&name.as_str(), &version.cast_signed(), &service.as_str(), enabled, &document],
            )
            .await?;
        if added == 0 { Err(StoreError::Stale { found: Some(*version) }.into()) } else { Ok(()) }
    }

    pub(super) async fn delete_rule(&self, name: &Slug, version: u64) -> Result<(), ApplyError> {
        self.raise_registry().await?;
        let gone = self
            .run(
                "UPDATE rules SET current = false WHERE name = $1 AND version = $2 AND current",
                &[&name.as_str(), &version.cast_signed()],
            )
            .await?;
        if gone == 0 { Err(StoreError::Stale { found: None }.into()) } else { Ok(()) }
    }

    pub(super) async fn put_source(&self, source: &Source) -> Result<(), ApplyError> {
        let Source { name, version, enabled, .. } = source;
        let document = record::encode::<SourceRecord>(source)?;
        let enabled = Some(*enabled);
        self.put_version(RowVersion { table: "sources", name, version: *version, enabled, document }).await
    }

    pub(super) async fn delete_source(&self, name: &Slug, version: u64) -> Result<(), ApplyError> {
        self.delete_version("sources", name, version).await
    }

    pub(super) async fn put_alert_rule(&self, rule: &AlertRule) -> Result<(), ApplyError> {
        let AlertRule { name, version, enabled, .. } = rule;
        let document = record::encode::<AlertRuleRecord>(rule)?;
        let enabled = Some(*enabled);
        self.put_version(RowVersion { table: "alert_rules", name, version: *version, enabled, document })
            .await
    }

    pub(super) async fn delete_alert_rule(&self, name: &Slug, version: u64) -> Result<(), ApplyError> {
        self.delete_version("alert_rules", name, version).await
    }

    pub(super) async fn put_channel(&self, channel: &Channel) -> Result<(), ApplyError> {
        let Channel { name, version, .. } = channel;
        let document = record::encode::<ChannelRecord>(channel)?;
        self.put_version(RowVersion {
            table: "alert_channels",
            name,
            version: *version,
            enabled: None,
            document,
        })
        .await
    }

    pub(super) async fn delete_channel(&self, name: &Slug, version: u64) -> Result<(), ApplyError> {
        self.delete_version("alert_channels", name, version).await
    }

    pub(super) async fn put_key(&self, key: &Key) -> Result<(), ApplyError> {
        self.raise_registry().await?;
        self.run(
            "INSERT INTO keys (name, document) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET document = $2",
            &[&key.name.as_str(), &record::encode::<KeyRecord>(key)?],
        )
        .await
        .map(drop)
    }

    /// Replaces a secret, if it is still the one that was encrypted anew.
    pub(super) async fn reseal(&mut self, rotation: &SecretRotation) -> Result<(), ApplyError> {
        let SecretRotation { owner, was, now } = rotation;
        let (table, field, name) = match owner {
            SecretOwner::Service(name) => ("services", "auth", name),
            SecretOwner::Channel(name) => ("alert_channels", "settings", name),
            SecretOwner::Source(name) => ("sources", "proof", name),
        };
        self.raise_registry().await?;
        let sql = format!("SELECT document FROM {table} WHERE name = $1 FOR UPDATE");
        let Some(row) = self.find(&sql, &[&name.as_str()]).await? else { return Ok(()) };
        // Only this field changes: a later version of the program may have stored more than this one knows.
        let mut document: Value = serde_json::from_str(row.try_get(0)?)
            .map_err(|error| StoreError::Failed(format!("the document of `{name}` in `{table}`: {error}")))?;
        if document[field].as_str() != Some(&was.to_text()) {
            return Ok(());
        }
        document[field] = now.to_text().into();
        let sql = format!("UPDATE {table} SET document = $2 WHERE name = $1");
        self.run(&sql, &[&name.as_str(), &document.to_string()]).await?;
        self.committed.touched += 1;
        Ok(())
    }

    /// Begins a change of what is registered: others wait until it has been committed.
    pub(super) async fn raise_registry(&self) -> Result<(), ApplyError> {
        self.run("UPDATE meta SET registry = registry + 1", &[]).await.map(drop)
    }

    /// Stores a version of a row. Version `n` replaces `n - 1`, or nothing if it is the first.
    async fn put_version(&self, new: RowVersion<'_>) -> Result<(), ApplyError> {
        let RowVersion { table, name, version, enabled, document } = new;
        self.raise_registry().await?;
        let (name, number) = (name.as_str(), version.cast_signed());
        let (column, value, set) = match enabled {
            Some(_) => (", enabled", ", $4", ", enabled = $4"),
            None => ("", "", ""),
        };
        let sql = match version {
            1 => format!(
                "INSERT INTO {table} (name, version, document{column}) VALUES ($1, $2, $3{value}) ON CONFLICT DO NOTHING"
            ),
            _ => format!(
                "UPDATE {table} SET version = $2, document = $3{set} WHERE name = $1 AND version = $2::bigint - 1"
            ),
        };
        let stored = match &enabled {
            Some(enabled) => self.run(&sql, &[&name, &number, &document, enabled]).await?,
            None => self.run(&sql, &[&name, &number, &document]).await?,
        };
        if stored > 0 {
            return Ok(());
        }
        let found = self.find(&format!("SELECT version FROM {table} WHERE name = $1"), &[&name]).await?;
        let found = found.map(|row| row.try_get::<_, i64>(0)).transpose()?;
        Err(StoreError::Stale { found: found.map(i64::cast_unsigned) }.into())
    }

    async fn delete_version(&self, table: &'static str, name: &Slug, version: u64) -> Result<(), ApplyError> {
        self.raise_registry().await?;
        let sql = format!("DELETE FROM {table} WHERE name = $1 AND version = $2");
        let gone = self.run(&sql, &[&name.as_str(), &version.cast_signed()]).await?;
        if gone == 0 { Err(StoreError::Stale { found: None }.into()) } else { Ok(()) }
    }
}
