//! What is asked for, on connections that only read: what is registered, and what is due.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use seawall_dist::idempotency::KEPT;
use seawall_hub_core::domain::circuit::{Circuit, CircuitState};
use seawall_hub_core::domain::event_type::Pattern;
use seawall_hub_core::domain::rule::{OrderingRule, Rule};
use seawall_hub_core::domain::service::{SealedSecret, Service};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::source::Source;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    BacklogCounts, DeliverySelector, DueTimes, IdempotencyRecord, RegistrySnapshot,
};

use super::letters::{HELD_BY_RULE, PENDING_OF_SERVICE};
use super::rows::{self, QUEUED, STALLED, WAITING, WAITING_INDEX};
use super::{access, alerts};

pub(super) fn registered(connection: &Connection) -> rusqlite::Result<RegistrySnapshot> {
    let all = |sql: &str| connection.prepare_cached(sql);
    Ok(RegistrySnapshot {
        services: all(
            "SELECT name, version, address, headers, auth, policy, paused, changed FROM services ORDER BY name",
        )?
        .query_map([], service)?
        .collect::<rusqlite::Result<_>>()?,
        rules: all(&format!("SELECT {RULE} FROM rules WHERE current = 1 ORDER BY name"))?
            .query_map([], rule)?
            .collect::<rusqlite::Result<_>>()?,
        sources: all(
            "SELECT name, version, proof, event_type, event_id, enabled, changed FROM sources ORDER BY name",
        )?
        .query_map([], source)?
        .collect::<rusqlite::Result<_>>()?,
        circuits: all(&format!(
            "SELECT {CIRCUIT} FROM circuits WHERE number IN (SELECT max(number) FROM circuits GROUP BY service)"
        ))?
        .query_map([], circuit)?
        .collect::<rusqlite::Result<_>>()?,
        keys: access::keys(connection)?,
        alert_rules: alerts::rules(connection)?,
        channels: alerts::channels(connection)?,
    })
}

pub(super) fn claimed(
    connection: &Connection,
    scope: &'static str,
    key: &str,
) -> rusqlite::Result<Option<IdempotencyRecord>> {
    let sql = "SELECT fingerprint, note, until FROM once WHERE scope = ?1 AND key = ?2";
    let record = |row: &Row<'_>| {
        let at = Millis(row.get::<_, i64>(2)? - KEPT.as_millis() as i64);
        Ok(IdempotencyRecord { scope, key: key.to_owned(), fingerprint: row.get(0)?, note: row.get(1)?, at })
    };
    connection.prepare_cached(sql)?.query_row(params![scope, key], record).optional()
}

pub(super) fn rule_versions(connection: &Connection, name: &Slug) -> rusqlite::Result<Vec<Rule>> {
    let sql = format!("SELECT {RULE} FROM rules WHERE name = ?1 ORDER BY version DESC");
    connection.prepare_cached(&sql)?.query_map([name.as_str()], rule)?.collect()
}

pub(super) fn circuit_history(
    connection: &Connection,
    service: &Slug,
    most: usize,
) -> rusqlite::Result<Vec<Circuit>> {
    let sql = format!("SELECT {CIRCUIT} FROM circuits WHERE service = ?1 ORDER BY number DESC LIMIT ?2");
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    connection.prepare_cached(&sql)?.query_map(params![service.as_str(), most], circuit)?.collect()
}

fn service(row: &Row<'_>) -> rusqlite::Result<Service> {
    Ok(Service {
        name: rows::slug(row, 0)?,
        version: row.get::<_, i64>(1)?.cast_unsigned(),
        address: row.get(2)?,
        headers: rows::pairs(row, 3)?,
        auth: row.get::<_, Option<Vec<u8>>>(4)?.map(SealedSecret),
        policy: row.get(5)?,
        paused: row.get(6)?,
        changed: Millis(row.get(7)?),
    })
}

const RULE: &str = "name, version, events, filter, service, method, path, headers, body, schedule, ordering, hold, enabled, \
                    note, changed";

fn rule(row: &Row<'_>) -> rusqlite::Result<Rule> {
    let hold = row.get(11)?;
    Ok(Rule {
        name: rows::slug(row, 0)?,
        version: row.get::<_, i64>(1)?.cast_unsigned(),
        events: Pattern::new(row.get_ref(2)?.as_str()?).map_err(|error| rows::strange(2, error))?,
        filter: row.get(3)?,
        service: rows::slug(row, 4)?,
        method: row.get(5)?,
        path: row.get(6)?,
        headers: rows::pairs(row, 7)?,
        body: row.get(8)?,
        schedule: rows::schedule(row, 9)?,
        ordering: row.get::<_, Option<String>>(10)?.map(|key| OrderingRule { key, hold }),
        enabled: row.get(12)?,
        note: row.get(13)?,
        changed: Millis(row.get(14)?),
    })
}

fn source(row: &Row<'_>) -> rusqlite::Result<Source> {
    Ok(Source {
        name: rows::slug(row, 0)?,
        version: row.get::<_, i64>(1)?.cast_unsigned(),
        proof: SealedSecret(row.get(2)?),
        event_type: row.get(3)?,
        event_id: row.get(4)?,
        enabled: row.get(5)?,
        changed: Millis(row.get(6)?),
    })
}

const CIRCUIT: &str = "service, state, until, trips, reason, changed";

fn circuit(row: &Row<'_>) -> rusqlite::Result<Circuit> {
    let word = row.get_ref(1)?.as_str()?;
    Ok(Circuit {
        service: rows::slug(row, 0)?,
        state: CircuitState::from_word(word)
            .ok_or_else(|| rows::strange(1, format!("`{word}` is no state")))?,
        until: row.get::<_, Option<i64>>(2)?.map(Millis),
        trips: row.get(3)?,
        reason: row.get(4)?,
        changed: Millis(row.get(5)?),
    })
}

pub(super) fn pending(connection: &Connection, whose: &DeliverySelector, most: u32) -> rusqlite::Result<u32> {
    let (sql, name) = match whose {
        DeliverySelector::Service(name) => (PENDING_OF_SERVICE, name),
        DeliverySelector::HeldBy(name) => (HELD_BY_RULE, name),
    };
    let sql = format!("SELECT count(*) FROM ({sql} LIMIT ?2)");
    connection.prepare_cached(&sql)?.query_row(params![name.as_str(), most], |row| row.get(0))
}

pub(super) fn census(
    connection: &Connection,
    services: Vec<Slug>,
    most: u32,
) -> rusqlite::Result<BacklogCounts> {
    let mut count = connection.prepare_cached(&format!(
        "SELECT count(*) FROM (SELECT 1 FROM deliveries
         WHERE {WAITING_INDEX} AND state IN (1, 2, 3, 4, 5) AND service = ?1 LIMIT ?2)"
    ))?;
    let waiting = services.into_iter().map(|service| {
        let waiting = count.query_row(params![service.as_str(), most], |row| row.get(0))?;
        Ok((service, waiting))
    });
    let mut open = connection.prepare_cached(
        "SELECT service, sum(open) FROM letter_groups GROUP BY service HAVING sum(open) > 0",
    )?;
    let open = open.query_map([], |row| Ok((rows::slug(row, 0)?, row.get::<_, i64>(1)?.cast_unsigned())))?;
    Ok(BacklogCounts {
        waiting: waiting.collect::<rusqlite::Result<_>>()?,
        dead_letters: open.collect::<rusqlite::Result<_>>()?,
    })
}

pub(super) fn next_due(connection: &Connection) -> rusqlite::Result<Vec<DueTimes>> {
    let mut found: BTreeMap<Slug, DueTimes> = BTreeMap::new();
    for state in [QUEUED, WAITING, STALLED] {
        // The index has the services in order, so each step is one look into it, however many wait.
        let mut first = connection.prepare_cached(&format!(
            "SELECT service, due FROM deliveries
             WHERE {WAITING_INDEX} AND state = {state} AND service > ?1 ORDER BY service, due LIMIT 1"
        ))?;
        let mut after = String::new();
        let read = |row: &Row<'_>| Ok((rows::slug(row, 0)?, Millis(row.get(1)?)));
        while let Some((service, due)) = first.query_row([&after], read).optional()? {
            after = service.as_str().to_owned();
            let entry =
                found.entry(service.clone()).or_insert(DueTimes { service, fresh: None, retries: None });
            let earliest = if state == QUEUED { &mut entry.fresh } else { &mut entry.retries };
            *earliest = Some(earliest.map_or(due, |before| before.min(due)));
        }
    }
    Ok(found.into_values().collect())
}
