//! Outcomes in batches.

use std::borrow::Cow;
use std::collections::HashSet;

use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::delivery::{Disposition, RuleStatus, StoredState};
use seawall_hub_core::port::store::{Settlement, StoreError};

use super::{ApplyError, Batch, UnitResult, finished, pending};
use crate::postgres::write::applier::UnitApplier;
use crate::postgres::write::events::AttemptRow;
use crate::postgres::write::facts::{int, micros, small};
use crate::postgres::write::set_based::{SETTLE_DELIVERED, SETTLE_HOLD, SETTLE_RETRY};

/// The rules of these deliveries.
const RULES: &str = "SELECT DISTINCT rule FROM deliveries WHERE number = ANY($1) ORDER BY rule";

/// What all settlements have, by its columns.
#[derive(Default)]
struct ClaimColumns {
    numbers: Vec<i64>,
    epochs: Vec<i64>,
    touched: Vec<i64>,
}

impl ClaimColumns {
    fn of(settlements: &[&Settlement]) -> Self {
        let mut columns = ClaimColumns::default();
        for settlement in settlements {
            columns.numbers.push(settlement.claim.delivery.number.cast_signed());
            columns.epochs.push(settlement.claim.epoch.cast_signed());
            columns.touched.push(settlement.touched().0);
        }
        columns
    }
}

/// The attempts of settlements by their columns; a time that is not there means that none took place.
#[derive(Default)]
struct AttemptColumns<'u> {
    numbers: Vec<i32>,
    at: Vec<Option<i64>>,
    took: Vec<i64>,
    status: Vec<Option<i32>>,
    errors: Vec<Option<Cow<'u, str>>>,
    sent: Vec<Option<String>>,
    headers: Vec<Option<String>>,
    answers: Vec<Option<&'u [u8]>>,
}

impl<'u> AttemptColumns<'u> {
    fn push(&mut self, number: u32, attempt: Option<&'u Attempt>) {
        let row = attempt.map(AttemptRow::of).unwrap_or_default();
        self.numbers.push(int(number));
        self.at.push(attempt.map(|attempt| attempt.at.0));
        self.took.push(attempt.map_or(0, |attempt| micros(attempt.took)));
        self.status.push(row.status);
        self.errors.push(row.error);
        self.sent.push(row.sent);
        self.headers.push(row.headers);
        self.answers.push(row.answer);
    }
}

impl Batch<'_> {
    /// Settles deliveries, those of one delivery one after the other.
    pub(super) async fn settle(&self, units: &[&Settlement]) -> Result<Vec<UnitResult>, ApplyError> {
        let mut results: Vec<Option<UnitResult>> = vec![None; units.len()];
        for _ in 0..units.len() {
            let mut open = pending(&results);
            let mut seen = HashSet::with_capacity(open.len());
            open.retain(|place| seen.insert(units[*place].claim.delivery));
            if open.is_empty() {
                break;
            }
            // In the same sequence for all, so that no two transactions wait for each other.
            open.sort_unstable_by_key(|place| units[*place].claim.delivery.number);
            let settled =
                self.settle_each_once(&open.iter().map(|place| units[*place]).collect::<Vec<_>>()).await?;
            for place in open {
                let settlement = units[place];
                let is_deferred = matches!(settlement.decision.disposition, Disposition::Defer { .. });
                let is_settled =
                    is_deferred || settled.contains(&settlement.claim.delivery.number.cast_signed());
                results[place] = Some(if is_settled {
                    Ok(self.result())
                } else {
                    self.settle_elsewhere(settlement).await?
                });
            }
        }
        Ok(finished(results))
    }

    /// Settles what the statements have not: they know the numbers of this era alone.
    async fn settle_elsewhere(&self, settlement: &Settlement) -> Result<UnitResult, ApplyError> {
        let lost = StoreError::LeaseLost(settlement.claim.delivery);
        if settlement.claim.delivery.database == self.node.era {
            return Ok(Err(lost));
        }
        let mut applier = UnitApplier::new(self.session, self.node);
        match applier.settle(settlement).await {
            Ok(()) => Ok(Ok(applier.committed)),
            // It has changed nothing then.
            Err(ApplyError::Refused(error)) => Ok(Err(error)),
            Err(error) => Err(error),
        }
    }

    /// Settles deliveries of this era, and returns the numbers of those whose claim was not lost.
    async fn settle_each_once(&self, settlements: &[&Settlement]) -> Result<HashSet<i64>, ApplyError> {
        let of_era = |wanted: fn(&Disposition) -> bool| -> Vec<&Settlement> {
            let settlements = settlements.iter().copied();
            let is_wanted = |settlement: &&Settlement| {
                settlement.claim.delivery.database == self.node.era
                    && wanted(&settlement.decision.disposition)
            };
            settlements.filter(is_wanted).collect()
        };
        let delivered = of_era(|disposition| matches!(disposition, Disposition::Delivered));
        let retried = of_era(|disposition| matches!(disposition, Disposition::Retry { .. }));
        let held = of_era(|disposition| matches!(disposition, Disposition::Hold));
        let mut settled = HashSet::with_capacity(settlements.len());
        if !delivered.is_empty() {
            settled.extend(self.settle_delivered(&delivered).await?);
        }
        if !retried.is_empty() {
            settled.extend(self.settle_retried(&retried).await?);
        }
        if !held.is_empty() {
            settled.extend(self.settle_held(&held).await?);
        }
        Ok(settled)
    }

    async fn settle_delivered(&self, settlements: &[&Settlement]) -> Result<Vec<i64>, ApplyError> {
        let claims = ClaimColumns::of(settlements);
        let (mut took, mut status, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        for settlement in settlements {
            let answer = settlement.attempt.as_ref().and_then(|attempt| attempt.answer.as_ref());
            took.push(settlement.attempt.as_ref().map(|attempt| micros(attempt.took)));
            status.push(answer.map(|answer| i32::from(answer.status)));
            answers.push(answer.map(|answer| &answer.body[..]));
        }
        let rows = self
            .session
            .rows(
                SETTLE_DELIVERED,
                &[&claims.numbers, &claims.epochs, &claims.touched, &took, &status, &answers],
            )
            .await?;
        numbers(&rows)
    }

    async fn settle_retried(&self, settlements: &[&Settlement]) -> Result<Vec<i64>, ApplyError> {
        let claims = ClaimColumns::of(settlements);
        let mut attempts = AttemptColumns::default();
        let (mut states, mut due) = (Vec::new(), Vec::new());
        let (mut counted, mut failures, mut panics) = (Vec::new(), Vec::new(), Vec::new());
        for settlement in settlements {
            let decision = &settlement.decision;
            let Disposition::Retry { due: at, .. } = decision.disposition else { continue };
            attempts.push(decision.attempt_number(), settlement.attempt.as_ref());
            states.push(small(StoredState::after(&decision.disposition)));
            due.push(at.0);
            counted.push(int(decision.progress.counted));
            failures.push(int(decision.progress.failures));
            panics.push(int(decision.progress.panics));
        }
        let a = &attempts;
        let rows = self
            .session
            .rows(
                SETTLE_RETRY,
                &[
                    &claims.numbers,
                    &claims.epochs,
                    &claims.touched,
                    &states,
                    &due,
                    &counted,
                    &failures,
                    &panics,
                    &a.numbers,
                    &a.at,
                    &a.took,
                    &a.status,
                    &a.errors,
                    &a.sent,
                    &a.headers,
                    &a.answers,
                ],
            )
            .await?;
        numbers(&rows)
    }

    async fn settle_held(&self, settlements: &[&Settlement]) -> Result<Vec<i64>, ApplyError> {
        let claims = ClaimColumns::of(settlements);
        let applier = UnitApplier::new(self.session, self.node);
        let mut disabled = Vec::new();
        for row in self.session.rows(RULES, &[&claims.numbers]).await? {
            let rule: String = row.try_get(0)?;
            if applier.rule_status(&rule).await? == RuleStatus::Disabled {
                disabled.push(rule);
            }
        }
        let rows = self
            .session
            .rows(SETTLE_HOLD, &[&claims.numbers, &claims.epochs, &claims.touched, &disabled])
            .await?;
        numbers(&rows)
    }
}

fn numbers(rows: &[tokio_postgres::Row]) -> Result<Vec<i64>, ApplyError> {
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}
