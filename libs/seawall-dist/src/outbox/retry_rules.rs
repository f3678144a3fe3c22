//! What comes of rows: functions over plain data.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use seawall::Backoff;

use super::store::{OutboxRow, OutcomeKind, RowOutcome};
use crate::{Message, PublishError};

/// When a row is set aside, and how long it waits until then.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryRules {
    pub(super) attempts_max: u32,
    pub(super) outage_attempts_max: u32,
    pub(super) backoff: Backoff,
}

/// The result of publishing a row; `None` while nobody has tried.
pub(super) type RowResult = Option<Result<(), PublishError>>;

/// Why a row is set aside before it is attempted again: its process died, or lost its lease, in too many attempts.
pub(super) fn lost_too_often(row: &OutboxRow, rules: &RetryRules) -> Option<String> {
    // The current attempt is counted already.
    let lost = row.attempts.saturating_sub(row.failures).saturating_sub(1);
    (lost >= rules.attempts_max)
        .then(|| format!("{lost} attempts ended without an outcome: the relay died, or lost its lease"))
}

/// Splits rows, by their places, into calls: with at most one message of each aggregate per call, or all in one.
pub(super) fn waves(rows: &[OutboxRow], keeps_order: bool) -> Vec<Vec<usize>> {
    if keeps_order {
        return vec![(0..rows.len()).collect()];
    }
    let mut next_wave: HashMap<(&str, &str), usize> = HashMap::with_capacity(rows.len());
    let mut waves: Vec<Vec<usize>> = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        let wave = next_wave.entry(key(&row.message)).or_insert(0);
        if waves.len() == *wave {
            waves.push(Vec::new());
        }
        waves[*wave].push(place);
        *wave += 1;
    }
    waves
}

/// The aggregate of a message: what keeps its order.
pub(super) fn key(message: &Message) -> (&str, &str) {
    (message.topic(), message.aggregate_id())
}

/// Decides what comes of each row. `random` is a source of evenly distributed numbers.
pub(super) fn outcomes(
    rows: &[OutboxRow],
    results: &[RowResult],
    rules: &RetryRules,
    mut random: impl FnMut() -> u64,
) -> Vec<RowOutcome> {
    // How long the rest of an aggregate waits for its first row that failed.
    let mut held_up: HashMap<(&str, &str), Duration> = HashMap::new();
    let mut outcomes = Vec::with_capacity(rows.len());
    for (row, result) in rows.iter().zip(results) {
        let key = key(&row.message);
        let kind = match (result, held_up.get(&key)) {
            (Some(Ok(())), _) => OutcomeKind::Published,
            (_, Some(&delay)) => OutcomeKind::Returned { delay },
            (None, None) => match lost_too_often(row, rules) {
                Some(error) => OutcomeKind::Dead { error },
                None => OutcomeKind::Returned { delay: Duration::ZERO },
            },
            (Some(Err(error)), None) => after_failure(row, error, rules, random()),
        };
        match &kind {
            OutcomeKind::Failed { delay, .. } => drop(held_up.insert(key, *delay)),
            // The next row must not be published before this one is recorded as set aside.
            OutcomeKind::Dead { .. } | OutcomeKind::Returned { .. } => {
                held_up.entry(key).or_insert(Duration::ZERO);
            }
            OutcomeKind::Published => {}
        }
        outcomes.push(RowOutcome { id: row.id, kind });
    }
    outcomes
}

fn after_failure(row: &OutboxRow, error: &PublishError, rules: &RetryRules, random: u64) -> OutcomeKind {
    let fault = error.fault();
    // What a policy refused says nothing about the message: it is like an outage.
    let is_outage = fault.is_transient() || fault.verdict() == seawall::fault::Verdict::Rejected;
    // Each kind has a count of its own: a long outage says nothing about the row.
    let (failures, max) = if is_outage {
        (row.outages, rules.outage_attempts_max)
    } else {
        (row.failures.saturating_sub(row.outages), rules.attempts_max)
    };
    if failures.saturating_add(1) >= max {
        return OutcomeKind::Dead { error: error.to_string() };
    }
    let throttled = fault.verdict() == seawall::fault::Verdict::Throttled;
    let wait = rules.backoff.wait(failures, Duration::ZERO, throttled, random);
    let delay = fault.retry_after().map_or(wait, |asked| wait.max(asked));
    OutcomeKind::Failed { delay, error: error.to_string(), outage: is_outage }
}

/// The aggregates that a failed row holds up.
#[derive(Default)]
pub(super) struct HeldUp(HashSet<(String, String)>);

impl HeldUp {
    pub(super) fn add(&mut self, message: &Message) {
        self.0.insert((message.topic().to_owned(), message.aggregate_id().to_owned()));
    }

    fn has(&self, message: &Message) -> bool {
        // The usual case costs nothing.
        !self.0.is_empty()
            && self.0.contains(&(message.topic().to_owned(), message.aggregate_id().to_owned()))
    }

    /// The places of rows in a wave that may be published: no earlier row of their aggregate failed, or is to be set aside.
    pub(super) fn publishable(
        &mut self,
        wave: &[usize],
        rows: &[OutboxRow],
        rules: &RetryRules,
    ) -> Vec<usize> {
        let mut places = Vec::with_capacity(wave.len());
        for &place in wave {
            let row = &rows[place];
            if self.has(&row.message) {
                continue;
            }
            if lost_too_often(row, rules).is_some() {
                self.add(&row.message);
            } else {
                places.push(place);
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Millis;
    use seawall::{Fault, secs};

    const RULES: RetryRules = RetryRules {
        attempts_max: 3,
        outage_attempts_max: 100,
        backoff: Backoff::constant(Duration::from_secs(1)).no_jitter(),
    };

    /// `a1 b1 a2`: the aggregate and a number, each claimed once.
    fn rows(names: &str) -> Vec<OutboxRow> {
        let row = |(id, name): (usize, &str)| {
            let mut row = OutboxRow::new(id as i64, Message::new("t", &name[..1], name), Millis(0));
            row.attempts = 1;
            row
        };
        names.split(' ').enumerate().map(row).collect()
    }

    fn down() -> RowResult {
        Some(Err(PublishError::new(Fault::unreachable(), "no broker")))
    }

    fn word(outcome: &RowOutcome) -> String {
        match &outcome.kind {
            OutcomeKind::Published => "published".into(),
            OutcomeKind::Failed { delay, .. } => format!("failed {}", delay.as_secs()),
            OutcomeKind::Returned { delay } => format!("returned {}", delay.as_secs()),
            OutcomeKind::Dead { .. } => "dead".into(),
        }
    }

    fn play(names: &str, results: &[RowResult]) -> Vec<String> {
        outcomes(&rows(names), results, &RULES, || 0).iter().map(word).collect()
    }

    /// CRD-3: a row that fails holds up the rest of its aggregate and nobody else, and they keep their attempt.
    #[test]
    fn crd_3_a_failed_row_holds_up_its_own_aggregate_only() {
        let results = [down(), Some(Ok(())), None, Some(Ok(()))];
        assert_eq!(play("a1 b1 a2 b2", &results), ["failed 1", "published", "returned 1", "published"]);
    }

    /// CRD-3: an outage is not a poison message: it takes many more attempts until a row is set aside.
    #[test]
    fn crd_3_poison_is_set_aside_after_n_attempts_and_an_outage_is_not() {
        let after = |failures: u32, fault: Fault| {
            let mut rows = rows("a1 a2");
            (rows[0].attempts, rows[0].failures) = (failures + 1, failures);
            rows[0].outages = if fault.is_transient() { failures } else { 0 };
            let results = [Some(Err(PublishError::new(fault, "no"))), None];
            outcomes(&rows, &results, &RULES, || 0).iter().map(word).collect::<Vec<_>>()
        };
        assert_eq!(after(1, Fault::business()), ["failed 1", "returned 1"]);
        assert_eq!(after(2, Fault::business()), ["dead", "returned 0"]);
        assert_eq!(after(2, Fault::unreachable()), ["failed 1", "returned 1"]);
        assert_eq!(after(99, Fault::unreachable()), ["dead", "returned 0"]);
        assert_eq!(after(0, Fault::throttled().after(secs(9))), ["failed 9", "returned 9"]);
    }

    /// CRD-3: failures of an outage and failures of the row are counted apart, in both directions.
    #[test]
    fn crd_3_an_outage_and_poison_are_counted_apart() {
        let after = |failures: u32, outages: u32, fault: Fault| {
            let mut row = rows("a1").remove(0);
            (row.attempts, row.failures, row.outages) = (failures + 1, failures, outages);
            let outcomes = outcomes(&[row], &[Some(Err(PublishError::new(fault, "no")))], &RULES, || 0);
            (word(&outcomes[0]), matches!(outcomes[0].kind, OutcomeKind::Failed { outage: true, .. }))
        };
        assert_eq!(after(60, 60, Fault::system()), ("failed 1".into(), false));
        assert_eq!(after(61, 60, Fault::system()), ("failed 1".into(), false));
        assert_eq!(after(62, 60, Fault::system()), ("dead".into(), false));
        assert_eq!(after(62, 60, Fault::unreachable()), ("failed 1".into(), true));
        assert_eq!(after(101, 98, Fault::rejected()), ("failed 1".into(), true));
        assert_eq!(after(101, 99, Fault::rejected()), ("dead".into(), false));
    }

    /// CRD-3. Trap "attempt counted after execution": a row whose process dies each time is set aside without an error.
    #[test]
    fn crd_3_a_row_that_kills_its_process_is_set_aside() {
        let mut row = rows("a1").remove(0);
        (row.attempts, row.failures) = (3, 0);
        assert_eq!(lost_too_often(&row, &RULES), None);
        row.attempts = 4;
        assert!(lost_too_often(&row, &RULES).is_some());
        row.failures = 1;
        assert_eq!(lost_too_often(&row, &RULES), None);
    }

    /// CRD-3: a row outlives an outage of eight hours, as the documentation says.
    #[test]
    fn crd_3_a_thousand_attempts_take_about_eight_hours() {
        // Evenly spread over the range of the jitter.
        let random = |attempt: u32| u64::MAX / 1_000 * u64::from(attempt * 619 % 1_000);
        let waits = (0..super::super::OUTAGE_ATTEMPTS_MAX - 1)
            .map(|attempt| Backoff::default().wait(attempt, Duration::ZERO, false, random(attempt)));
        let hours = waits.sum::<Duration>().as_secs_f64() / 3_600.0;
        assert!((8.0..8.6).contains(&hours), "{hours}");
    }

    #[test]
    fn a_wave_has_one_row_of_each_aggregate() {
        let rows = rows("a1 b1 a2 a3 c1 b2");
        assert_eq!(waves(&rows, false), [vec![0, 1, 4], vec![2, 5], vec![3]]);
        assert_eq!(waves(&rows, true), [vec![0, 1, 2, 3, 4, 5]]);
    }
}
