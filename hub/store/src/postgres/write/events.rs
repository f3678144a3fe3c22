//! Events and their deliveries, one by one.

use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::dead_letter::FailureSummary;
use seawall_hub_core::domain::delivery::{
    DeadLetterReason, DeliveryId, InitialState, RuleStatus, StoredState, initial_state,
};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{NewDelivery, StoreError};

use super::applier::{ApplyError, UnitApplier};
use super::facts::{int, micros, reason_number, small};
use crate::postgres::rows::Columns;
use crate::postgres::text::stored;
use crate::record::{headers_to_text, sent_to_text};
use crate::sql::sql;

const ADD_EVENT: &str = "INSERT INTO events (number, id, source, kind, fingerprint, accepted, considered, filtered, trace, payload)
     VALUES (nextval('event_numbers'), $1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id, source) DO NOTHING RETURNING number";

const ADD_DELIVERY: &str = "INSERT INTO deliveries
     (number, era, event, rule, rule_version, service, ordering, replay_of, replay_era, request)
     VALUES (nextval('delivery_numbers'), $1, $2, $3, $4, $5, $6, $7, (SELECT era FROM deliveries WHERE number = $7), $8)
     RETURNING number";

/// A delivery that a node would claim that is no longer live waits for another one.
const ADD_WORK: &str = concat!(
    "INSERT INTO work (number, service, rule, ordering, is_replay, state, epoch, due, touched, accepted, reason)
     VALUES ($1, $2, $3, $4, $5, CASE WHEN $6::smallint = ",
    sql!(LEASED),
    " AND NOT ",
    is_live!("$7"),
    " THEN CASE WHEN $5 THEN ",
    sql!(WAITING),
    " ELSE ",
    sql!(QUEUED),
    " END ELSE $6 END, $7, $8, $8, $8, $9) RETURNING state"
);

const ADD_OUTCOME: &str = "INSERT INTO outcomes
     (number, state, epoch, due, touched, accepted, counted, failures, panics, reason, crashes, against, step)
     VALUES ($1, $2, $3, $4, $4, $4, 0, 0, 0, $5, 0, 0, 0)";

const ADD_ATTEMPT: &str =
    "INSERT INTO attempts (delivery, number, at, took, status, error, sent, headers, answer)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

/// The newest version of a rule, locked so that nobody enables, disables or deletes it until this transaction ends.
const RULE_STATUS: &str =
    "SELECT version, current, enabled FROM rules WHERE name = $1 ORDER BY version DESC LIMIT 1 FOR SHARE";

/// A delivery to insert.
pub(in crate::postgres) struct DeliveryInsert<'a> {
    /// The number of the event.
    pub(in crate::postgres) event: i64,
    pub(in crate::postgres) new: &'a NewDelivery,
    pub(in crate::postgres) at: Millis,
    /// The dead letter that it replays, which is a delivery of any era.
    pub(in crate::postgres) replay_of: Option<i64>,
}

impl UnitApplier<'_> {
    /// Inserts an event with its deliveries, unless it is there.
    pub(in crate::postgres) async fn add_event(
        &mut self,
        event: &Event,
        deliveries: &[NewDelivery],
    ) -> Result<(), ApplyError> {
        let orders = deliveries.iter().filter_map(|new| Some((new.rule.0.as_str(), new.order.as_deref()?)));
        self.lock_orders(&orders.collect::<Vec<_>>()).await?;
        let number = loop {
            if let Some(number) = self.insert_event(event).await? {
                break number;
            }
            // It was there, so a statement that begins now sees it, unless it has been pruned since.
            if let Some(exists) = self.existing(event).await? {
                return Err(exists.into());
            }
        };
        for new in deliveries {
            let insert = DeliveryInsert { event: number, new, at: event.accepted, replay_of: None };
            self.add_delivery(&insert).await?;
        }
        Ok(())
    }

    async fn insert_event(&self, event: &Event) -> Result<Option<i64>, ApplyError> {
        let row = self
            .find(
                ADD_EVENT,
                &[
                    &stored(&event.id),
                    &stored(&event.source),
                    &event.kind.as_str(),
                    &&event.fingerprint[..],
                    &event.accepted.0,
                    &int(event.considered),
                    &int(event.filtered),
                    &event.trace.as_deref().map(stored),
                    &&event.payload[..],
                ],
            )
            .await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    /// Returns what is stored of an event that was accepted before.
    async fn existing(&self, event: &Event) -> Result<Option<StoreError>, ApplyError> {
        let sql = "SELECT number, fingerprint FROM events WHERE id = $1 AND source = $2";
        let Some(row) = self.find(sql, &[&stored(&event.id), &stored(&event.source)]).await? else {
            return Ok(None);
        };
        let (number, fingerprint): (i64, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
        let sql = "SELECT era, number FROM deliveries WHERE event = $1 AND replay_of IS NULL ORDER BY number";
        let mut deliveries = Vec::new();
        for row in self.rows(sql, &[&number]).await? {
            deliveries.push(delivery_id(row.try_get(0)?, row.try_get(1)?));
        }
        let fingerprint = fingerprint.try_into().unwrap_or_default();
        Ok(Some(StoreError::EventExists { fingerprint, deliveries }))
    }

    /// Inserts a delivery, and returns its number and its state. Its order has to be locked.
    pub(in crate::postgres) async fn add_delivery(
        &mut self,
        insert: &DeliveryInsert<'_>,
    ) -> Result<(i64, StoredState), ApplyError> {
        let DeliveryInsert { event, new, at, replay_of } = insert;
        let NewDelivery { rule, service, request, initial, order } = new;
        let depends = initial.depends_on_rule();
        let status = if depends { self.rule_status(rule.0.as_str()).await? } else { RuleStatus::Enabled };
        let busy = match order {
            Some(key) if initial.depends_on_order(status) => {
                let facts = self.order_facts(rule.0.as_str(), key).await?;
                facts.active || facts.first_waiting.is_some()
            }
            _ => false,
        };
        let (state, reason) = initial_state(initial, status, busy, replay_of.is_some());
        let row = self
            .find(
                ADD_DELIVERY,
                &[
                    &self.node.era.cast_signed(),
                    event,
                    &rule.0.as_str(),
                    &rule.1.cast_signed(),
                    &service.as_str(),
                    &order.as_deref().map(stored),
                    replay_of,
                    request,
                ],
            )
            .await?;
        let number = row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
        let state = self.add_progress(number, insert, state, reason).await?;
        if let InitialState::Dead { error, .. } = initial {
            let attempt = Attempt { at: *at, error: Some(error.clone()), ..Attempt::default() };
            self.add_attempt(number, 1, &attempt).await?;
            self.add_dead_letter(number, *at, Some(&FailureSummary::of_attempt(&attempt)), 0).await?;
        } else if reason.is_some() {
            self.add_dead_letter(number, *at, None, 0).await?;
        }
        let id = self.id(number);
        self.committed.deliveries.push((id, state.shown()));
        Ok((number, state))
    }

    /// Inserts what changes of a delivery, where it belongs, and returns the state that it has.
    async fn add_progress(
        &self,
        number: i64,
        insert: &DeliveryInsert<'_>,
        state: StoredState,
        reason: Option<DeadLetterReason>,
    ) -> Result<StoredState, ApplyError> {
        let DeliveryInsert { new, at, replay_of, .. } = insert;
        let (wanted, epoch, reason) = (small(state), self.node.epoch.cast_signed(), reason_number(reason));
        if !state.occupies_order() {
            self.run(ADD_OUTCOME, &[&number, &wanted, &epoch, &at.0, &reason]).await?;
            return Ok(state);
        }
        let (service, rule) = (new.service.as_str(), new.rule.0.as_str());
        let (order, is_replay) = (new.order.as_deref().map(stored), replay_of.is_some());
        let row = self
            .find(ADD_WORK, &[&number, &service, &rule, &order, &is_replay, &wanted, &epoch, &at.0, &reason])
            .await?;
        Ok(row.map_or(Ok(state), |row| Columns::new("work", &row).numbered())?)
    }

    /// Returns whether a rule is enabled, which stays so until this transaction ends.
    pub(super) async fn rule_status(&self, rule: &str) -> Result<RuleStatus, ApplyError> {
        let mut seen = None;
        loop {
            let Some(row) = self.find(RULE_STATUS, &[&rule]).await? else { return Ok(RuleStatus::Deleted) };
            let (version, current, enabled): (i64, bool, bool) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            if current {
                return Ok(RuleStatus::of(Some(enabled)));
            }
            // Whoever has made another version current while this waited for the lock has committed, so the next statement
            // sees that version. If it is still this one, the rule is deleted.
            if seen == Some(version) {
                return Ok(RuleStatus::Deleted);
            }
            seen = Some(version);
        }
    }

    pub(super) async fn add_attempt(
        &self,
        delivery: i64,
        number: u32,
        attempt: &Attempt,
    ) -> Result<(), ApplyError> {
        let row = AttemptRow::of(attempt);
        self.run(
            ADD_ATTEMPT,
            &[
                &delivery,
                &int(number),
                &attempt.at.0,
                &micros(attempt.took),
                &row.status,
                &row.error,
                &row.sent,
                &row.headers,
                &row.answer,
            ],
        )
        .await
        .map(drop)
    }
}

/// The columns of an attempt that have another form in the database.
#[derive(Default)]
pub(super) struct AttemptRow<'a> {
    pub(super) status: Option<i32>,
    pub(super) error: Option<std::borrow::Cow<'a, str>>,
    pub(super) sent: Option<String>,
    pub(super) headers: Option<String>,
    pub(super) answer: Option<&'a [u8]>,
}

impl<'a> AttemptRow<'a> {
    pub(super) fn of(attempt: &'a Attempt) -> Self {
        let answer = attempt.answer.as_ref();
        let headers = answer.map(|answer| &answer.headers).filter(|headers| !headers.is_empty());
        AttemptRow {
            status: answer.map(|answer| i32::from(answer.status)),
            error: attempt.error.as_deref().map(stored),
            // Texts of JSON have no U+0000: it is escaped there.
            sent: attempt.sent.as_ref().map(sent_to_text),
            headers: headers.map(|headers| headers_to_text(headers)),
            answer: answer.map(|answer| &answer.body[..]),
        }
    }
}

/// Returns the id of a delivery from its columns.
pub(super) fn delivery_id(era: i64, number: i64) -> DeliveryId {
    DeliveryId::new(era.cast_unsigned(), number.cast_unsigned())
}
