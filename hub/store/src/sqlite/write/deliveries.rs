//! Changes of deliveries.

use std::sync::LazyLock;

use rusqlite::{Connection, OptionalExtension, Row, params};
use seawall_dist::deadletter::{Answer, Attempt};
use seawall_hub_core::domain::dead_letter::FailureSummary;
use seawall_hub_core::domain::delivery::{
    Decision, DeliveryId, Disposition, RuleStatus, StoredState, initial_state,
};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    Claim, InitialState, LaneCapacity, NewDelivery, Settlement, StoreError, StoredDelivery,
};

use crate::record::{self, StoredNumber};
use crate::sqlite::engine::writer::translate;
use crate::sqlite::rows::{self, REQUEST, STORED, STORED_COLUMNS};
use crate::sqlite::write::UnitApplier;
use crate::sqlite::write::set_based::{
    CLAIM, DUE_FRESH, DUE_STALLED, DUE_WAITING, RETURN, SETTLE_DEAD, SETTLE_DELIVERED, SETTLE_HOLD,
    SETTLE_RETRY,
};

/// A delivery to insert.
pub(crate) struct DeliveryInsert<'a> {
    /// The row number of the event.
    pub(crate) event: i64,
    pub(crate) new: &'a NewDelivery,
    pub(crate) at: Millis,
    pub(crate) replay_of: Option<i64>,
}

impl UnitApplier<'_> {
    /// Inserts a delivery, and returns its row number and its state. A new delivery that is claimed and has no ordering key needs
    /// no look at another row.
    pub(crate) fn add_delivery(
        &mut self,
        insert: &DeliveryInsert<'_>,
    ) -> Result<(i64, StoredState), StoreError> {
        let DeliveryInsert { event, new, at, replay_of } = insert;
        let rule =
            if new.initial.depends_on_rule() { self.rule_status(&new.rule.0)? } else { RuleStatus::Enabled };
        let order_busy = new.initial.depends_on_order(rule) && self.is_order_busy(new)?;
        let (state, reason) = initial_state(&new.initial, rule, order_busy, replay_of.is_some());
        self.run(
            "INSERT INTO deliveries
             (event, state, epoch, due, touched, accepted, counted, failures, reason, replay_of, rule_version, rule, service,
              ordering)
             VALUES (?1, ?2, ?3, ?4, ?4, ?4, 0, 0, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                event,
                state.to_number(),
                self.start.epoch.cast_signed(),
                at.0,
                reason.map(StoredNumber::to_number),
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
            self.add_dead_letter(number, *at, Some(&FailureSummary::of_attempt(&attempt)), 0)?;
        } else if reason.is_some() {
            self.add_dead_letter(number, *at, None, 0)?;
        }
        self.record_inserted(number, state.shown());
        Ok((number, state))
    }

    fn rule_status(&self, rule: &Slug) -> Result<RuleStatus, StoreError> {
        let sql = "SELECT enabled FROM rules WHERE name = ?1 AND current = 1";
        self.find(sql, [rule.as_str()], |row| row.get(0)).map(RuleStatus::of)
    }

    /// Settles a delivery that is claimed under the epoch of the settlement.
    pub(crate) fn settle(&mut self, settlement: &Settlement) -> Result<(), StoreError> {
        let Settlement { claim, decision, attempt, failure, at, ordered, is_replay } = settlement;
        let (delivery, disposition) = (&claim.delivery, &decision.disposition);
        let number = delivery.number.cast_signed();
        // It stays claimed, and nothing is known that was not known before.
        if let Disposition::Defer { .. } = disposition {
            return Ok(());
        }
        let changed = self.settle_row(number, settlement)?;
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
        if *ordered
            && !StoredState::after(disposition).occupies_order()
            && let Some(next) = self.order_behind(number)?.next()
        {
            self.start_in_order(next, StoredState::Leased)?;
            let next = stored(self.connection, self.delivery_id(next.cast_signed()));
            self.committed.ready.extend(next.map_err(|error| translate(&error))?);
        }
        Ok(())
    }

    /// Changes the row of a delivery that is claimed under this epoch, and returns how many rows that were: one or none.
    fn settle_row(&self, number: i64, settlement: &Settlement) -> Result<usize, StoreError> {
        let Settlement { decision, attempt, .. } = settlement;
        let Decision { disposition, progress, .. } = decision;
        let (epoch, touched) = (settlement.claim.epoch.cast_signed(), settlement.touched().0);
        let state = StoredState::after(disposition).to_number();
        match disposition {
            Disposition::Defer { .. } => Ok(0),
            Disposition::Delivered => {
                let answer = attempt.as_ref().and_then(|attempt| attempt.answer.as_ref());
                self.run(
                    SETTLE_DELIVERED,
                    params![
                        number,
                        epoch,
                        touched,
                        attempt.as_ref().map(|attempt| micros(attempt.took)),
                        answer.map(|answer| answer.status),
                        answer.map(|answer| &answer.body[..])
                    ],
                )
            }
            Disposition::Hold => self.run(SETTLE_HOLD, params![number, epoch, touched]),
            Disposition::Retry { due, .. } => self.run(
                SETTLE_RETRY,
                params![
                    number,
                    epoch,
                    state,
                    touched,
                    due.0,
                    progress.counted,
                    progress.failures,
                    progress.panics
                ],
            ),
            Disposition::DeadLetter { reason, .. } => self.run(
                SETTLE_DEAD,
                params![
                    number,
                    epoch,
                    state,
                    touched,
                    reason.to_number(),
                    progress.counted,
                    progress.failures,
                    progress.panics
                ],
            ),
        }
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
                Ok(FailureSummary::of_attempt(&Attempt { error: row.get(1)?, answer, ..Attempt::default() }))
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
                attempt.sent.as_ref().map(record::sent_to_text),
                headers.map(|headers| record::headers_to_text(headers)),
                answer.map(|answer| &answer.body),
            ],
        )?;
        Ok(())
    }

    /// Returns claimed deliveries to the store. Those of other claims stay as they are. A delivery that was attempted before
    /// was due, or its service has recovered: it is due again.
    pub(crate) fn return_to_store(&self, claims: &[Claim]) -> Result<(), StoreError> {
        for Claim { delivery, epoch } in
            claims.iter().filter(|claim| claim.delivery.database == self.start.database)
        {
            self.run(RETURN, params![delivery.number.cast_signed(), epoch.cast_signed()])?;
        }
        Ok(())
    }

    /// Claims due deliveries, the longest due first.
    pub(crate) fn due(&self, now: Millis, room: &[LaneCapacity]) -> rusqlite::Result<Vec<StoredDelivery>> {
        let mut fresh = self.connection.prepare_cached(DUE_FRESH)?;
        let mut waiting = self.connection.prepare_cached(DUE_WAITING)?;
        let mut stalled = self.connection.prepare_cached(DUE_STALLED)?;
        let mut take = self.connection.prepare_cached(CLAIM)?;
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
                taken.extend(stored(self.connection, self.delivery_id(number))?);
            }
        }
        Ok(taken)
    }
}

/// Returns a delivery with its request, if it exists.
pub(crate) fn stored(connection: &Connection, id: DeliveryId) -> rusqlite::Result<Option<StoredDelivery>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {STORED}, {REQUEST} FROM deliveries d JOIN events e ON e.number = d.event
             JOIN requests r ON r.delivery = d.number WHERE d.number = ?1"
        )
    });
    let mut statement = connection.prepare_cached(&SQL)?;
    let stored = |row: &Row<'_>| rows::stored_row(row, id.database, Some(STORED_COLUMNS));
    statement.query_row([id.number.cast_signed()], stored).optional()
}

fn micros(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
