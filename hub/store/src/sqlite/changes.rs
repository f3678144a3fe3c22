//! One change after another, within a unit.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, params};
use seawall_hub_core::domain::delivery::{DeliveryId, Reason};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    Change, Committed, Following, Kept, NewDelivery, Room, Settlement, StoreError, Unit,
};

use super::rows::{self, DEAD, DELIVERED, LEASED, WAITING};
use super::schema::Start;
use super::unit_of_work::translate;

pub(super) struct Changes<'c> {
    pub(super) connection: &'c Connection,
    pub(super) start: Start,
}

impl Changes<'_> {
    pub(super) fn unit(&self, unit: &Unit) -> Result<Committed, StoreError> {
        let mut committed = Committed::default();
        for change in &unit.changes {
            match change {
                Change::PutService(service) => self.put_service(service)?,
                Change::DeleteService(name) => {
                    self.delete("DELETE FROM services WHERE name = ?1", name.as_str())?;
                }
                Change::PutRule(rule) => self.put_rule(rule)?,
                Change::DeleteRule(name) => {
                    self.delete("DELETE FROM rules WHERE name = ?1", name.as_str())?;
                }
                Change::AddEvent(event, deliveries) => self.add_event(event, deliveries, &mut committed)?,
                Change::Settle(settlement) => self.settle(settlement)?,
            }
        }
        Ok(committed)
    }

    fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>, StoreError> {
        self.connection.prepare_cached(sql).map_err(|error| translate(&error))
    }

    fn run(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        self.prepare(sql)?.execute(params).map_err(|error| translate(&error))
    }

    fn delete(&self, sql: &str, name: &str) -> Result<(), StoreError> {
        if self.run(sql, [name])? == 0 { Err(StoreError::Stale { found: None }) } else { Ok(()) }
    }

    /// Version `n` takes the place of `n - 1`, or of nothing if it is the first.
    fn check_version(&self, sql: &str, name: &str, version: u64) -> Result<(), StoreError> {
        let found = self.prepare(sql)?.query_row([name], |row| row.get::<_, i64>(0)).optional();
        let found = found.map_err(|error| translate(&error))?.map(i64::cast_unsigned);
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
        self.check_version("SELECT version FROM rules WHERE name = ?1", rule.name.as_str(), rule.version)?;
        self.run(
            "INSERT OR REPLACE INTO rules
             (name, version, events, filter, service, method, path, headers, body, schedule, enabled, changed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            params![
                rule.name.as_str(),
                rule.version.cast_signed(),
                rule.events.to_string(),
                rule.filter,
                rule.service.as_str(),
                rule.method,
                rule.path,
                rows::pairs_to_text(&rule.headers),
                rule.body,
                rows::schedule_to_text(&rule.schedule),
                rule.enabled,
                rule.changed.0
            ],
        )?;
        Ok(())
    }

    fn add_event(
        &self,
        event: &Event,
        deliveries: &[NewDelivery],
        committed: &mut Committed,
    ) -> Result<(), StoreError> {
        let added = self.run(
            "INSERT INTO events (id, kind, source, payload, fingerprint, accepted, trace)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING",
            params![
                event.id,
                event.kind.as_str(),
                event.source,
                event.payload,
                &event.fingerprint[..],
                event.accepted.0,
                event.trace
            ],
        )?;
        if added == 0 {
            return Err(self.existing(&event.id).unwrap_or_else(|error| translate(&error)));
        }
        let number = self.connection.last_insert_rowid();
        for delivery in deliveries {
            let stillborn = delivery.stillborn.as_ref();
            self.run(
                "INSERT INTO deliveries
                 (event, rule, rule_version, service, state, epoch, due, accepted, counted, failures, reason)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, 0, 0, ?8)",
                params![
                    number,
                    delivery.rule.0.as_str(),
                    delivery.rule.1.cast_signed(),
                    delivery.service.as_str(),
                    if stillborn.is_some() { DEAD } else { LEASED },
                    self.start.epoch.cast_signed(),
                    event.accepted.0,
                    stillborn.map(|_| rows::reason_to_number(Reason::Impossible))
                ],
            )?;
            let id = self.connection.last_insert_rowid();
            self.run(
                "INSERT INTO requests (delivery, request) VALUES (?1, ?2)",
                params![id, delivery.request],
            )?;
            if let Some(error) = stillborn {
                self.run(
                    "INSERT INTO attempts (delivery, number, at, took, error, answer) VALUES (?1, 1, ?2, 0, ?3, x'')",
                    params![id, event.accepted.0, error],
                )?;
            }
            committed.deliveries.push(self.name(id));
        }
        Ok(())
    }

    fn name(&self, number: i64) -> DeliveryId {
        DeliveryId { era: self.start.era, number: number.cast_unsigned() }
    }

    /// What is known of an event that was there before.
    fn existing(&self, id: &str) -> rusqlite::Result<StoreError> {
        let mut event =
            self.connection.prepare_cached("SELECT number, fingerprint FROM events WHERE id = ?1")?;
        let (number, fingerprint): (i64, [u8; 32]) =
            event.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut deliveries = self
            .connection
            .prepare_cached("SELECT number FROM deliveries WHERE event = ?1 ORDER BY number")?;
        let deliveries = deliveries.query_map([number], |row| row.get(0).map(|number| self.name(number)))?;
        Ok(StoreError::EventExists { fingerprint, deliveries: deliveries.collect::<rusqlite::Result<_>>()? })
    }

    /// Only what is in this process's hand can be settled.
    fn settle(&self, settlement: &Settlement) -> Result<(), StoreError> {
        let Settlement { delivery, next, attempt } = settlement;
        let (number, epoch) = (delivery.number.cast_signed(), self.start.epoch.cast_signed());
        let changed = match next {
            Following::Delivered => self.run(
                "UPDATE deliveries SET state = ?3 WHERE number = ?1 AND state = 0 AND epoch = ?2",
                params![number, epoch, DELIVERED],
            )?,
            Following::Waits { until, progress } => self.run(
                "UPDATE deliveries SET state = ?3, due = ?4, counted = ?5, failures = ?6
                 WHERE number = ?1 AND state = 0 AND epoch = ?2",
                params![number, epoch, WAITING, until.0, progress.counted, progress.failures],
            )?,
            Following::DeadLetter(reason) => self.run(
                "UPDATE deliveries SET state = ?3, reason = ?4 WHERE number = ?1 AND state = 0 AND epoch = ?2",
                params![number, epoch, DEAD, rows::reason_to_number(*reason)],
            )?,
        };
        if changed == 0 || delivery.era != self.start.era {
            return Err(StoreError::NotOurs(*delivery));
        }
        if let Some(attempt) = attempt {
            self.run(
                "INSERT INTO attempts (delivery, number, at, took, status, error, answer)
                 SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3, ?4, ?5, ?6 FROM attempts WHERE delivery = ?1",
                params![
                    number,
                    attempt.at.0,
                    attempt.took_micros.cast_signed(),
                    attempt.status,
                    attempt.error,
                    attempt.answer
                ],
            )?;
        }
        Ok(())
    }

    /// Takes what is due, the longest due first.
    pub(super) fn due(&self, now: Millis, room: &[Room]) -> rusqlite::Result<Vec<Kept>> {
        let mut find = self.connection.prepare_cached(
            "SELECT number FROM deliveries WHERE state = 1 AND service = ?1 AND due <= ?2 ORDER BY due, number LIMIT ?3",
        )?;
        let mut take = self
            .connection
            .prepare_cached("UPDATE deliveries SET state = 0, epoch = ?2 WHERE number = ?1")?;
        let mut taken = Vec::new();
        for Room { service, most } in room {
            let most = i64::try_from(*most).unwrap_or(i64::MAX);
            let found = find.query_map(params![service.as_str(), now.0, most], |row| row.get(0))?;
            for number in found.collect::<rusqlite::Result<Vec<i64>>>()? {
                take.execute(params![number, self.start.epoch.cast_signed()])?;
                taken.extend(rows::kept(self.connection, self.name(number))?);
            }
        }
        Ok(taken)
    }
}
