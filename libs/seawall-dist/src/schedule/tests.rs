use std::time::Duration;

use super::plan::{Plan, passed_during_run, plan};
use super::{MissedRuns, Schedule};
use crate::Millis;

/// Milliseconds of `2026-11-15T12:00:00Z`, a Sunday.
const NOON: i64 = 1_794_744_000_000;
const SECOND: Duration = Duration::from_secs(1);

fn next(expression: &str, after: i64) -> String {
    Schedule::cron(expression).unwrap().next_after(Millis(after)).unwrap().to_string()
}

/// CRD-6: expressions mean what cron's manual says.
#[test]
fn crd_6_cron_expressions_are_understood() {
    for (expression, expected) in [
        ("* * * * *", "2026-11-15T12:01:00.000Z"),
        ("*/15 * * * *", "2026-11-15T12:15:00.000Z"),
        ("0 * * * *", "2026-11-15T13:00:00.000Z"),
        ("30 3 * * *", "2026-11-16T03:30:00.000Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00.000Z"),
        ("0 9 * * MON-FRI", "2026-11-16T09:00:00.000Z"),
        ("0 9 * * 7", "2026-11-22T09:00:00.000Z"),
        ("0 9 * * sun", "2026-11-22T09:00:00.000Z"),
        ("0 0 1,15 * *", "2026-12-01T00:00:00.000Z"),
        ("0 0 31 * *", "2026-12-31T00:00:00.000Z"),
        ("5/20 14 * * *", "2026-11-15T14:05:00.000Z"),
        ("0 12-14/2 * * *", "2026-11-15T14:00:00.000Z"),
        ("0 0 * jan,MAR *", "2027-01-01T00:00:00.000Z"),
        ("@daily", "2026-11-16T00:00:00.000Z"),
        ("@yearly", "2027-01-01T00:00:00.000Z"),
        // Both days are restricted: either is enough. 17 November 2026 is a Tuesday.
        ("0 0 13 * TUE", "2026-11-17T00:00:00.000Z"),
        ("0 0 16 * TUE", "2026-11-16T00:00:00.000Z"),
        // A day that begins with a star does not count as restricted.
        ("0 0 */2 * TUE", "2026-11-17T00:00:00.000Z"),
    ] {
        assert_eq!(next(expression, NOON), expected, "{expression}");
    }
    assert_eq!(next("0 12 * * *", NOON - 1), "2026-11-15T12:00:00.000Z");
    assert_eq!(next("0 12 * * *", NOON), "2026-11-16T12:00:00.000Z", "a tick comes once");
    assert_eq!(next("59 23 31 12 *", -1), "1970-12-31T23:59:00.000Z");
}

/// CRD-6: a wrong expression is refused with the field and what is wrong in it.
#[test]
fn crd_6_wrong_expressions_are_refused_with_the_reason() {
    for (expression, expected) in [
        ("* * * *", "4 fields instead of five: minute, hour, day of month, month, day of week"),
        ("0 0 * * * *", "6 fields instead of five"),
        ("60 * * * *", "minute: `60` is not a number from 0 to 59"),
        ("+5 * * * *", "minute: `+5` is not a number"),
        ("* * 0 * *", "day of month: `0` is not a number from 1 to 31"),
        ("* * * FEV *", "month: `FEV` is neither a number from 1 to 12 nor a name like JAN"),
        ("* * * * 8", "day of week: `8` is neither a number from 0 to 7 nor a name like SUN"),
        ("*/0 * * * *", "minute: `0` is no step: write 1 to 59"),
        ("10-5 * * * *", "minute: `10-5` runs backwards: write it as two ranges"),
        ("0 0 30 2 *", "there is no such day: it never comes"),
        ("@fortnightly", "unknown shorthand; known are @yearly"),
        (",5 * * * *", "minute: `` is not a number"),
        ("", "0 fields instead of five"),
    ] {
        let error = Schedule::cron(expression).unwrap_err().to_string();
        assert!(error.contains(expected) && error.starts_with(&format!("`{expression}`: ")), "{error}");
    }
    assert!(Schedule::every(Duration::ZERO).is_err());
    assert!(Schedule::every(Duration::from_micros(10_500)).is_err());
}

/// CRD-6: for every expression and time, the next tick is the first minute that fits.
#[test]
fn crd_6_the_next_tick_is_the_first_that_fits() {
    let schedule = Schedule::cron("7,38 */5 * * *").unwrap();
    for minutes in 0..3_000 {
        let after = NOON + minutes * 60_000 + 1;
        let expected = (after / 60_000 + 1..)
            .find(|minute| [7, 38].contains(&(minute % 60)) && minute / 60 % 24 % 5 == 0);
        assert_eq!(schedule.next_after(Millis(after)), expected.map(|minute| Millis(minute * 60_000)));
    }
}

/// CRD-6: what becomes of missed ticks, by policy.
#[test]
fn crd_6_missed_ticks_are_treated_as_the_policy_says() {
    let every = Schedule::every(SECOND).unwrap();
    let at = |seconds: i64| Millis(NOON + seconds * 1_000);
    let decide = |policy, last: i64, now: i64| plan(&every, policy, SECOND * 5, at(last), at(now));
    let all = MissedRuns::RunAll { max: 3 };
    for policy in [MissedRuns::Skip, MissedRuns::RunOnce, all] {
        assert_eq!(decide(policy, 0, 0), Plan::Wait { until: Some(at(1)) }, "{policy:?}");
        assert_eq!(decide(policy, 0, 1), Plan::Run { tick: at(1), missed: 0 }, "{policy:?}");
    }
    assert_eq!(decide(MissedRuns::Skip, 0, 10), Plan::Run { tick: at(10), missed: 9 });
    assert_eq!(decide(MissedRuns::RunOnce, 0, 10), Plan::Run { tick: at(10), missed: 9 });
    assert_eq!(decide(all, 0, 10), Plan::Run { tick: at(8), missed: 7 });
    assert_eq!(decide(all, 8, 10), Plan::Run { tick: at(9), missed: 0 });
    // An hour late: only the tolerance tells skipping from running once.
    let hourly = Schedule::cron("0 * * * *").unwrap();
    let late = |policy, seconds: i64| plan(&hourly, policy, SECOND * 60, at(-3_600), at(seconds));
    assert_eq!(late(MissedRuns::Skip, 60), Plan::Run { tick: at(0), missed: 0 });
    assert_eq!(late(MissedRuns::Skip, 61), Plan::Pass { tick: at(0), missed: 1 });
    assert_eq!(late(MissedRuns::RunOnce, 3_500), Plan::Run { tick: at(0), missed: 0 });
    // A year of minutes is counted, and bounded.
    let minutely = Schedule::cron("* * * * *").unwrap();
    let Plan::Run { missed, .. } = plan(&minutely, MissedRuns::RunOnce, SECOND, Millis(0), at(0)) else {
        panic!()
    };
    assert_eq!(missed, 366 * 24 * 60 - 1);
}

/// CRD-6: a tick that comes while the job runs is skipped, where missed ticks are.
#[test]
fn crd_6_ticks_during_a_run_are_skipped() {
    let every = Schedule::every(SECOND).unwrap();
    let at = |seconds: i64| Millis(NOON + seconds * 1_000);
    assert_eq!(passed_during_run(&every, MissedRuns::Skip, at(0), at(0)), None);
    assert_eq!(passed_during_run(&every, MissedRuns::Skip, at(0), at(3)), Some((at(3), 3)));
    assert_eq!(passed_during_run(&every, MissedRuns::RunOnce, at(0), at(3)), None);
}
