//! Changes of events and deliveries.

use std::sync::LazyLock;

use rusqlite::{Connection, OptionalExtension, Row, params};
use seawall_dist::deadletter::{Answer, Attempt};
use seawall_hub_core::domain::dead_letter::FailureSummary;
use seawall_hub_core::domain::delivery::{
    DeadLetterReason, Decision, DeliveryId, DeliveryState, Disposition,
};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    Claim, InitialState, LaneCapacity, NewDelivery, Settlement, StoreError, StoredDelivery,
};
use seawall_hub_core::service::failure_summary;

use super::changes::UnitApplier;
use super::rows::{
    self, BLOCKED, HOLDING, LEASED, QUEUED, REQUEST, STALLED, STORED, STORED_COLUMNS, WAITING, WAITING_INDEX,
};
use super::unit_of_work::translate;

/// A delivery to insert.
pub(super) struct DeliveryInsert<'a> {
    /// The row number of the event.
    pub(super) event: i64,
    pub(super) new: &'a NewDelivery,
    pub(super) at: Millis,
    pub(super) replay_of: Option<i64>,
}

impl UnitApplier<'_> {
    pub(super) fn add_event(&mut self, event: &Event, deliveries: &[NewDelivery]) -> Result<(), StoreError> {
        let added = self.run(
            "INSERT INTO events (id, kind, source, payload, fingerprint, accepted, trace, considered, filtered)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (id, source) DO NOTHING",
            params![
                event.id,
                event.kind.as_str(),
                event.source,
                &event.payload[..],
                &event.fingerprint[..],
                event.accepted.0,
                event.trace,
                event.considered,
                event.filtered
            ],
        )?;
        if added == 0 {
            return Err(self.existing(event).unwrap_or_else(|error| translate(&error)));
        }
        let number = self.connection.last_insert_rowid();
        for new in deliveries {
            self.add_delivery(&DeliveryInsert { event: number, new, at: event.accepted, replay_of: None })?;
        }
        Ok(())
    }

    pub(super) fn add_delivery(&mut self, born: &DeliveryInsert<'_>) -> Result<(), StoreError> {
        let DeliveryInsert { event, new, at, replay_of } = born;
        let at_work = if new.initial == InitialState::Held { self.is_rule_enabled(new)? } else { Some(true) };
        let state = match (&new.initial, at_work) {
            // Held by a rule that is gone, nobody would ever let it go.
            (InitialState::Dead { .. }, _) | (_, None) => DeliveryState::DeadLettered,
            (_, Some(false)) => DeliveryState::Held,
            _ if self.is_behind_others(new)? => DeliveryState::Blocked,
            (InitialState::Leased, _) => DeliveryState::Leased,
            // What is replayed comes behind what is fresh.
            _ if replay_of.is_some() => DeliveryState::Waiting,
            (InitialState::Queued | InitialState::Held, _) => DeliveryState::Queued,
        };
        let reason = match new.initial {
            InitialState::Dead { reason, .. } if at_work.is_some() => reason,
            _ => DeadLetterReason::Deleted,
        };
        let reason = (state == DeliveryState::DeadLettered).then(|| rows::reason_to_number(reason));
        self.run(
            "INSERT INTO deliveries
             (event, state, epoch, due, touched, accepted, counted, failures, reason, replay_of, rule_version, rule, service,
              ordering)
             VALUES (?1, ?2, ?3, ?4, ?4, ?4, 0, 0, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                event,
                if let InitialState::Dead { hold: true, .. } = new.initial { HOLDING } else { rows::state_to_number(state) },
                self.start.epoch.cast_signed(),
                at.0,
                reason,
                replay_of,
                new.rule.1.cast_signed(),
                new.rule.0.as_str(),
                new.service.as_str(),
                new.order
            ],
        )?;
        let number = self.connection.last_insert_rowid();
        self.run("INSERT INTO requests (delivery, request) VALUES (?1, ?2)", params![number, new.request])?;
        if let InitialState::Dead { error, .. } = &new.initial {
            let attempt = Attempt { at: *at, error: Some(error.clone()), ..Attempt::default() };
            self.add_attempt(number, 1, &attempt)?;
            self.add_dead_letter(number, *at, Some(&failure_summary(&attempt)), 0)?;
        } else if state == DeliveryState::DeadLettered {
            self.add_dead_letter(number, *at, None, 0)?;
        }
        self.made(number, state);
        Ok(())
    }

    /// Whether its rule was enabled meanwhile: then its held deliveries have been released, and nobody would release this one.
    /// `None` if the rule was deleted.
    fn is_rule_enabled(&self, new: &NewDelivery) -> Result<Option<bool>, StoreError> {
        let sql = "SELECT enabled FROM rules WHERE name = ?1 AND current = 1";
        self.find(sql, [new.rule.0.as_str()], |row| row.get(0))
    }

    fn is_behind_others(&self, new: &NewDelivery) -> Result<bool, StoreError> {
        let Some(order) = &new.order else { return Ok(false) };
        let sql = "SELECT 1 FROM deliveries WHERE rule = ?1 AND ordering = ?2 AND state < 7 LIMIT 1";
        Ok(self.find(sql, [new.rule.0.as_str(), order], |_| Ok(()))?.is_some())
    }

    /// Returns what is stored of an event that was accepted before.
    fn existing(&self, event: &Event) -> rusqlite::Result<StoreError> {
        let mut find = self
            .connection
            .prepare_cached("SELECT number, fingerprint FROM events WHERE id = ?1 AND source = ?2")?;
        let (number, fingerprint): (i64, [u8; 32]) =
            find.query_row([&event.id, &event.source], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut deliveries = self.connection.prepare_cached(
            "SELECT number FROM deliveries WHERE event = ?1 AND replay_of IS NULL ORDER BY number",
        )?;
        let deliveries = deliveries.query_map([number], |row| row.get(0).map(|number| self.name(number)))?;
        Ok(StoreError::EventExists { fingerprint, deliveries: deliveries.collect::<rusqlite::Result<_>>()? })
    }

    /// Settles a delivery that is claimed under the epoch of the settlement.
    pub(super) fn settle(&mut self, settlement: &Settlement) -> Result<(), StoreError> {
        let Settlement {
            claim: Claim { delivery, epoch },
            decision,
            attempt,
            failure,
            at,
            ordered,
            is_replay,
        } = settlement;
        let Decision { disposition, progress, .. } = decision;
        let (number, epoch) = (delivery.number.cast_signed(), epoch.cast_signed());
        let state = rows::state_after(disposition);
        let changed = match disposition {
            // It stays claimed, and nothing is known that was not known before.
            Disposition::Defer { .. } => return Ok(()),
            Disposition::Delivered => {
                let answer = attempt.as_ref().and_then(|attempt| attempt.answer.as_ref());
                self.run(
                    "UPDATE deliveries SET state = ?3, touched = ?4, took = ?5, status = ?6, answer = ?7
                     WHERE number = ?1 AND state = 0 AND epoch = ?2",
                    params![
                        number,
                        epoch,
                        state,
                        attempt.as_ref().map_or(at.0, |attempt| attempt.at.0),
                        attempt.as_ref().map(|attempt| micros(attempt.took)),
                        answer.map(|answer| answer.status),
                        answer.map(|answer| &answer.body[..])
                    ],
                )?
            }
            // Unless its rule has been enabled since somebody looked, or is gone: what it has asked for goes on.
            Disposition::Hold => self.run(
                "UPDATE deliveries SET touched = ?4, crashes = 0, against = 0, step = 0, starts = NULL, state = CASE
                     WHEN EXISTS (SELECT 1 FROM rules WHERE name = deliveries.rule AND current = 1 AND enabled = 0) THEN ?3
                     WHEN failures = 0 THEN ?5 ELSE ?6 END
                 WHERE number = ?1 AND state = 0 AND epoch = ?2",
                params![number, epoch, state, at.0, QUEUED, WAITING],
            )?,
            Disposition::Retry { due, .. } => self.run(
                // Its attempt has ended, and the process has not: it is no suspect any more.
                "UPDATE deliveries SET state = ?3, touched = ?4, due = ?5, counted = ?6, failures = ?7, panics = ?8,
                     crashes = 0, against = 0, step = 0, starts = NULL
                 WHERE number = ?1 AND state = 0 AND epoch = ?2",
                params![number, epoch, state, at.0, due.0, progress.counted, progress.failures, progress.panics],
            )?,
            Disposition::DeadLetter { reason, .. } => self.run(
                "UPDATE deliveries SET state = ?3, touched = ?4, reason = ?5, counted = ?6, failures = ?7, panics = ?8
                 WHERE number = ?1 AND state = 0 AND epoch = ?2",
                params![
                    number,
                    epoch,
                    state,
                    at.0,
                    rows::reason_to_number(*reason),
                    progress.counted,
                    progress.failures,
                    progress.panics
                ],
            )?,
        };
        if changed == 0 || delivery.database != self.start.database {
            return Err(StoreError::LeaseLost(*delivery));
        }
        let attempt_number = decision.attempt_number();
        if let Some(attempt) = attempt.as_ref().filter(|_| *disposition != Disposition::Delivered) {
            self.add_attempt(number, attempt_number, attempt)?;
        }
        if let Disposition::DeadLetter { .. } = disposition {
            let recorded = if attempt.is_none() { self.last_failure(number)? } else { None };
            let failure = recorded.as_ref().or(failure.as_ref());
            self.add_dead_letter(number, *at, failure, attempt_number)?;
        }
        if *is_replay {
            self.replay_tried(number, attempt_number, disposition)?;
        }
        let ended = matches!(
            disposition,
            Disposition::Delivered | Disposition::DeadLetter { holds_order: false, .. }
        );
        if *ordered
            && ended
            && let Some(next) = self.unblock(number, LEASED)?
        {
            let next = stored(self.connection, self.name(next)).map_err(|error| translate(&error))?;
            self.committed.ready.extend(next);
        }
        Ok(())
    }

    /// Claims the next delivery in the order of one that has ended, unless a dead letter before it holds it up.
    pub(super) fn unblock(&self, ended: i64, becomes: i64) -> Result<Option<i64>, StoreError> {
        let next = self.find(
            "SELECT b.number, b.state FROM deliveries a JOIN deliveries b ON b.rule = a.rule AND b.ordering = a.ordering
             WHERE a.number = ?1 AND a.ordering IS NOT NULL AND b.ordering IS NOT NULL AND b.state < 7 AND b.state IN (4, 6)
             ORDER BY b.number LIMIT 1",
            [ended],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
        )?;
        let Some((next, BLOCKED)) = next else { return Ok(None) };
        self.run(
            "UPDATE deliveries SET state = ?2, epoch = ?3 WHERE number = ?1",
            params![next, becomes, self.start.epoch.cast_signed()],
        )?;
        Ok(Some(next))
    }

    /// Returns the failure of the last recorded attempt of a delivery, for one that is given up without another attempt.
    fn last_failure(&self, delivery: i64) -> Result<Option<FailureSummary>, StoreError> {
        self.find(
            "SELECT status, error, answer FROM attempts WHERE delivery = ?1 ORDER BY number DESC LIMIT 1",
            [delivery],
            |row| {
                let status: Option<u16> = row.get(0)?;
                let body = row.get::<_, Option<Vec<u8>>>(2)?.unwrap_or_default();
                let answer = status.map(|status| Answer { status, headers: Vec::new(), body });
                Ok(failure_summary(&Attempt { error: row.get(1)?, answer, ..Attempt::default() }))
            },
        )
    }

    fn add_attempt(&self, delivery: i64, number: u32, attempt: &Attempt) -> Result<(), StoreError> {
        let answer = attempt.answer.as_ref();
        let headers = answer.map(|answer| &answer.headers).filter(|headers| !headers.is_empty());
        self.run(
            "INSERT INTO attempts (delivery, number, at, took, status, error, sent, headers, answer)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                delivery,
                number,
                attempt.at.0,
                micros(attempt.took),
                answer.map(|answer| answer.status),
                attempt.error,
                attempt.sent.as_ref().map(rows::sent_to_text),
                headers.map(|headers| rows::pairs_to_text(headers)),
                answer.map(|answer| &answer.body),
            ],
        )?;
        Ok(())
    }

    /// Returns claimed deliveries to the store. Those of other claims stay as they are. A delivery that was attempted before
    /// was due, or its service has recovered: it is due again.
    pub(super) fn return_to_store(&self, claims: &[Claim]) -> Result<(), StoreError> {
        for Claim { delivery, epoch } in
            claims.iter().filter(|claim| claim.delivery.database == self.start.database)
        {
            self.run(
                "UPDATE deliveries SET state = CASE WHEN failures = 0 AND replay_of IS NULL THEN ?3 ELSE ?4 END
                 WHERE number = ?1 AND state = 0 AND epoch = ?2",
                params![delivery.number.cast_signed(), epoch.cast_signed(), QUEUED, STALLED],
            )?;
        }
        Ok(())
    }

    /// Claims due deliveries, the longest due first.
    pub(super) fn due(&self, now: Millis, room: &[LaneCapacity]) -> rusqlite::Result<Vec<StoredDelivery>> {
        let due = |state: i64| {
            format!(
                "SELECT number, due FROM deliveries WHERE {WAITING_INDEX} AND state = {state} AND service = ?1 AND due <= ?2
                 ORDER BY due LIMIT ?3"
            )
        };
        let mut fresh = self.connection.prepare_cached(&due(QUEUED))?;
        let mut waiting = self.connection.prepare_cached(&due(WAITING))?;
        let mut stalled = self.connection.prepare_cached(&format!(
            "SELECT number, due FROM deliveries
             WHERE {WAITING_INDEX} AND state = 3 AND service = ?1 AND (due <= ?2 OR touched <= ?4) ORDER BY due LIMIT ?3"
        ))?;
        let mut take = self
            .connection
            .prepare_cached("UPDATE deliveries SET state = 0, epoch = ?2 WHERE number = ?1")?;
        let pair = |row: &Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(0)?));
        let mut taken = Vec::new();
        for LaneCapacity { service, fresh: fresh_limit, retries: retry_limit, resume_before } in room {
            let (service, limit) =
                (service.as_str(), |limit: usize| i64::try_from(limit).unwrap_or(i64::MAX));
            let mut found = fresh
                .query_map(params![service, now.0, limit(*fresh_limit)], pair)?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let mut retries = waiting
                .query_map(params![service, now.0, limit(*retry_limit)], pair)?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let before = resume_before.map_or(i64::MIN, |before| before.0);
            let recovered = stalled.query_map(params![service, now.0, limit(*retry_limit), before], pair)?;
            retries.extend(recovered.collect::<rusqlite::Result<Vec<_>>>()?);
            retries.sort_unstable();
            retries.truncate(*retry_limit);
            found.append(&mut retries);
            for (_, number) in found {
                take.execute(params![number, self.start.epoch.cast_signed()])?;
                taken.extend(stored(self.connection, self.name(number))?);
            }
        }
        Ok(taken)
    }
}

/// Returns a delivery with its request, if it exists.
pub(super) fn stored(connection: &Connection, id: DeliveryId) -> rusqlite::Result<Option<StoredDelivery>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {STORED}, {REQUEST} FROM deliveries d JOIN events e ON e.number = d.event
             JOIN requests r ON r.delivery = d.number WHERE d.number = ?1"
        )
    });
    let mut statement = connection.prepare_cached(&SQL)?;
    let read = |row: &Row<'_>| rows::stored_row(row, id.database, Some(STORED_COLUMNS));
    statement.query_row([id.number.cast_signed()], read).optional()
}

fn micros(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
