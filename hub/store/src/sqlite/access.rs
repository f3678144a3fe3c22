//! Keys to the API, and who has changed what.

use rusqlite::{Connection, Row, params};
use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::key::{Key, Scope, Scopes};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::StoreError;
use serde_json::Value;

use super::changes::UnitApplier;
use super::rows;

impl UnitApplier<'_> {
    pub(super) fn put_key(&self, key: &Key) -> Result<(), StoreError> {
        let Key { name, hash, former, scopes, services, sources, made, expires, revoked } = key;
        let scopes: Vec<&str> = scopes.named().map(Scope::word).collect();
        let services = services.as_ref().map(|all| list(all.iter().map(Slug::as_str)));
        let sources = sources.as_ref().map(|all| list(all.iter().map(String::as_str)));
        self.run(
            "INSERT OR REPLACE INTO keys
             (name, hash, former, former_until, scopes, services, sources, made, expires, revoked)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                name.as_str(),
                &hash[..],
                former.as_ref().map(|(hash, _)| &hash[..]),
                former.map(|(_, until)| until.0),
                scopes.join(" "),
                services,
                sources,
                made.0,
                expires.map(|at| at.0),
                revoked.map(|at| at.0)
            ],
        )?;
        Ok(())
    }

    pub(super) fn add_audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let AuditEntry { at, who, action, target, reason, trace } = entry;
        self.run(
            "INSERT INTO audit (at, who, action, target, reason, trace) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![at.0, who, action, target, reason, trace],
        )?;
        Ok(())
    }
}

pub(super) fn list<'a>(all: impl Iterator<Item = &'a str>) -> String {
    Value::from(all.collect::<Vec<_>>()).to_string()
}

pub(super) fn keys(connection: &Connection) -> rusqlite::Result<Vec<Key>> {
    let mut statement = connection.prepare_cached(
        "SELECT name, hash, former, former_until, scopes, services, sources, made, expires, revoked FROM keys ORDER BY name",
    )?;
    statement.query_map([], key)?.collect()
}

fn key(row: &Row<'_>) -> rusqlite::Result<Key> {
    let former: Option<[u8; 32]> = row.get(2)?;
    let until: Option<i64> = row.get(3)?;
    let scopes: Option<Scopes> = row.get_ref(4)?.as_str()?.split_whitespace().map(Scope::from_word).collect();
    let services = match texts(row, 5)? {
        Some(names) => Some(
            names
                .iter()
                .map(|name| Slug::new(name))
                .collect::<Result<_, _>>()
                .map_err(|error| rows::strange(5, error))?,
        ),
        None => None,
    };
    Ok(Key {
        name: rows::slug(row, 0)?,
        hash: row.get(1)?,
        former: former.zip(until.map(Millis)),
        scopes: scopes.ok_or_else(|| rows::strange(4, "no scopes"))?,
        services,
        sources: texts(row, 6)?,
        made: Millis(row.get(7)?),
        expires: row.get::<_, Option<i64>>(8)?.map(Millis),
        revoked: row.get::<_, Option<i64>>(9)?.map(Millis),
    })
}

pub(super) fn texts(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Vec<String>>> {
    let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(None) };
    let list: Value = serde_json::from_str(&text).map_err(|error| rows::strange(column, error))?;
    let text = |item: &Value| item.as_str().map(ToOwned::to_owned);
    let texts = list.as_array().and_then(|items| items.iter().map(text).collect::<Option<_>>());
    texts.map(Some).ok_or_else(|| rows::strange(column, "no list of texts"))
}

pub(super) fn audit_row(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    Ok(AuditEntry {
        at: Millis(row.get(1)?),
        who: row.get(2)?,
        action: row.get(3)?,
        target: row.get(4)?,
        reason: row.get(5)?,
        trace: row.get(6)?,
    })
}
