use super::config::{CallTimeout, DERIVED_SLACK};
use super::*;
use crate::clock::Tick;
use crate::config::Problems;
use crate::{millis, secs};
use std::time::Duration;

fn timeouts(call: CallTimeout, attempt: Option<Duration>) -> Result<Timeouts, String> {
    let mut problems = Problems::default();
    let timeouts = Timeouts::new(call, attempt, 3, secs(3), &mut problems);
    problems.into_result("it", timeouts).map_err(|error| error.to_string())
}

/// ENG-7: a call timeout that is not set is derived from the attempts and the longest waits, or is 10 s.
#[test]
fn eng_7_a_call_timeout_that_is_not_set_is_derived() {
    assert_eq!(timeouts(CallTimeout::Derived, Some(secs(2))).unwrap().call, Some(secs(9) + DERIVED_SLACK));
    assert_eq!(timeouts(CallTimeout::Derived, None).unwrap().call, Some(secs(10)));
    assert_eq!(timeouts(CallTimeout::Set(secs(4)), Some(secs(2))).unwrap().call, Some(secs(4)));
    assert_eq!(timeouts(CallTimeout::None, Some(secs(2))).unwrap().call, None);
    let endless = timeouts(CallTimeout::Derived, Some(Duration::MAX)).unwrap();
    assert_eq!(endless.call, Some(Duration::MAX));
}

/// ENG-11: an attempt timeout above an explicit call timeout is refused, and so is zero.
#[test]
fn eng_11_timeouts_that_contradict_are_refused() {
    let error = timeouts(CallTimeout::Set(secs(1)), Some(secs(2))).unwrap_err();
    assert!(error.contains("attempt_timeout: 2s is above the call timeout of 1s"), "{error}");
    assert!(timeouts(CallTimeout::Set(Duration::ZERO), None).unwrap_err().contains("no_call_timeout()"));
    assert!(
        timeouts(CallTimeout::Derived, Some(Duration::ZERO)).unwrap_err().contains("fails every attempt")
    );
}

#[test]
fn short_timeouts_read_the_precise_clock() {
    assert!(timeouts(CallTimeout::Set(millis(60)), None).unwrap().precise());
    assert!(timeouts(CallTimeout::Derived, Some(millis(99))).unwrap().precise());
    assert!(!timeouts(CallTimeout::Derived, Some(millis(100))).unwrap().precise());
}

#[test]
fn the_deadline_that_came_first_decides_where_both_have_passed() {
    let at = |seconds| Tick::ZERO + secs(seconds);
    assert_eq!(expired(at(10), at(3), at(2)), None);
    assert_eq!(expired(at(10), at(3), at(3)), Some(Expired::Attempt));
    assert_eq!(expired(at(10), at(10), at(10)), Some(Expired::Attempt));
    assert_eq!(expired(at(10), at(11), at(12)), Some(Expired::Call));
    assert_eq!(expired(Tick::NEVER, Tick::NEVER, at(1_000_000)), None);
}
