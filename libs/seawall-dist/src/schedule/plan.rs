//! When a job runs: schedules, and what becomes of ticks that were missed. Pure: the same times give the same plan.

use std::collections::VecDeque;
use std::time::Duration;

use super::cron::{Cron, ScheduleError};
use crate::Millis;

/// How far back missed ticks of a cron expression are counted. Older ones are left out of the count.
const LOOK_BACK: Duration = Duration::from_secs(366 * 24 * 3_600);

/// The shortest interval: a store answers within milliseconds.
pub const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// When a job runs, in UTC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule(Kind);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Kind {
    Cron(Cron),
    /// Milliseconds.
    Interval(i64),
}

impl Schedule {
    /// Reads a cron expression: minute, hour, day of month, month, day of week, in UTC. Lists (`1,15`), ranges (`1-5`), steps
    /// (`*/10`), names (`MON`, `JAN`) and shorthands (`@daily`) are known. Where both days are restricted, one of them is
    /// enough.
    ///
    /// ```
    /// use seawall_dist::schedule::Schedule;
    /// use seawall_dist::Millis;
    /// let nightly = Schedule::cron("30 3 * * MON-FRI")?;
    /// assert_eq!(nightly.next_after(Millis(0)).unwrap().to_string(), "1970-01-01T03:30:00.000Z");
    /// let error = Schedule::cron("30 25 * * *").unwrap_err();
    /// assert_eq!(error.to_string(), "`30 25 * * *`: hour: `25` is not a number from 0 to 23");
    /// # Ok::<(), seawall_dist::schedule::ScheduleError>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the field and what is wrong in it.
    pub fn cron(expression: &str) -> Result<Schedule, ScheduleError> {
        Cron::parse(expression).map(|cron| Schedule(Kind::Cron(cron)))
    }

    /// Ticks at whole multiples of the interval since 1970, so that all processes have the same ticks.
    ///
    /// # Errors
    /// Fails below [`INTERVAL_MIN`], and for a part of a millisecond.
    pub fn every(interval: Duration) -> Result<Schedule, ScheduleError> {
        let millis = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
        if interval < INTERVAL_MIN || !interval.subsec_nanos().is_multiple_of(1_000_000) {
            let reason = format!(
                "an interval of {interval:?} can't be: write whole milliseconds, at least {INTERVAL_MIN:?}"
            );
            return Err(ScheduleError { reason });
        }
        Ok(Schedule(Kind::Interval(millis)))
    }

    /// The first tick after this time.
    #[must_use]
    pub fn next_after(&self, after: Millis) -> Option<Millis> {
        match &self.0 {
            Kind::Cron(cron) => cron.next_after(after),
            Kind::Interval(millis) => {
                after.0.div_euclid(*millis).checked_add(1)?.checked_mul(*millis).map(Millis)
            }
        }
    }

    /// The ticks after `after` and up to `until`: how many, and the last `keep` of them.
    fn ticks(&self, after: Millis, until: Millis, keep: usize) -> (u64, VecDeque<Millis>) {
        match &self.0 {
            Kind::Interval(interval) => {
                let (first, last) = (after.0.div_euclid(*interval) + 1, until.0.div_euclid(*interval));
                let count = u64::try_from(last - first + 1).unwrap_or(0);
                let from = first.max(last.saturating_sub(keep as i64 - 1));
                (count, (from..=last).map(|number| Millis(number * interval)).collect())
            }
            Kind::Cron(cron) => {
                let earliest = Millis(until.0.saturating_sub(LOOK_BACK.as_millis() as i64));
                let (mut at, mut count, mut kept) = (after.max(earliest), 0, VecDeque::new());
                while let Some(tick) = cron.next_after(at).filter(|tick| *tick <= until) {
                    at = tick;
                    count += 1;
                    kept.push_back(tick);
                    if kept.len() > keep {
                        kept.pop_front();
                    }
                }
                (count, kept)
            }
        }
    }
}

/// What becomes of ticks at which the job did not run: no process was there, the store was away, or a run was in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum MissedRuns {
    /// They are left out. For jobs whose next run does the same.
    #[default]
    Skip,
    /// One run makes up for all of them, at the newest one. For jobs that must not be late by a whole interval.
    RunOnce,
    /// Each is run, the oldest first. For jobs that work on the time of their tick.
    RunAll {
        /// The maximum number of ticks; older ones are left out.
        max: u32,
    },
}

/// What a job does now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plan {
    /// Nothing is due before this time.
    Wait { until: Option<Millis> },
    /// Run this tick; `missed` ticks before it were missed.
    Run { tick: Millis, missed: u64 },
    /// Run nothing; every tick up to this one was missed.
    Pass { tick: Millis, missed: u64 },
}

/// What to do at `now`, if every tick up to `last` is handled.
pub(crate) fn plan(
    schedule: &Schedule,
    policy: MissedRuns,
    tolerance: Duration,
    last: Millis,
    now: Millis,
) -> Plan {
    let keep = if let MissedRuns::RunAll { max } = policy { max.max(1) as usize } else { 1 };
    let (count, ticks) = schedule.ticks(last, now, keep);
    let (Some(&oldest), Some(&newest)) = (ticks.front(), ticks.back()) else {
        return Plan::Wait { until: schedule.next_after(now) };
    };
    match policy {
        MissedRuns::Skip if now.since(newest) > tolerance => Plan::Pass { tick: newest, missed: count },
        MissedRuns::Skip | MissedRuns::RunOnce => Plan::Run { tick: newest, missed: count - 1 },
        MissedRuns::RunAll { .. } => Plan::Run { tick: oldest, missed: count - ticks.len() as u64 },
    }
}

/// The ticks that came while a run was in progress, if the policy leaves them out: the newest one, and how many.
pub(crate) fn passed_during_run(
    schedule: &Schedule,
    policy: MissedRuns,
    tick: Millis,
    now: Millis,
) -> Option<(Millis, u64)> {
    if policy != MissedRuns::Skip {
        return None;
    }
    let (count, ticks) = schedule.ticks(tick, now, 1);
    ticks.back().map(|newest| (*newest, count))
}
