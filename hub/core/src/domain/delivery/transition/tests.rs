use std::time::Duration;

use super::*;

const NOW: Millis = Millis(1_000);
const OURS: u64 = 7;

fn row(state: StoredState) -> DeliveryFacts {
    DeliveryFacts {
        state,
        epoch: OURS,
        due: Millis(10),
        touched: Millis(20),
        progress: Progress { accepted: Millis(5), counted: 0, failures: 0, panics: 0 },
        reason: None,
        has_order: false,
        is_replay: false,
        crashes: 2,
        suspicion: Suspicion { crashes: 1, step: Some(HandlingStep::Send) },
        starts: Some("3".into()),
    }
}

fn failed(state: StoredState) -> DeliveryFacts {
    let row = row(state);
    DeliveryFacts { progress: Progress { failures: 1, ..row.progress }, ..row }
}

fn decision(disposition: Disposition) -> Decision {
    let progress = Progress { accepted: Millis(99), counted: 2, failures: 3, panics: 1 };
    Decision { disposition, progress, attempted: true, throttle: None }
}

const DEFER: Disposition = Disposition::Defer { retry_after: Some(Duration::ZERO) };

/// HUB-5: only the process that has claimed a delivery settles it or gives it back.
#[test]
fn hub_5_only_its_process_settles_a_delivery() {
    let dispositions = [
        Disposition::Delivered,
        Disposition::Hold,
        Disposition::Retry { due: NOW, stalled: true },
        Disposition::DeadLetter { reason: DeadLetterReason::Age, holds_order: true },
    ];
    for disposition in dispositions.map(decision) {
        for state in StoredState::ALL {
            let settled = |epoch| row(state).settled(&disposition, NOW, epoch, RuleStatus::Enabled).is_some();
            assert_eq!(settled(OURS), state == StoredState::Leased, "{state:?}");
            assert!(!settled(OURS + 1), "{state:?}");
            let returned = row(state).returned(OURS + 1);
            assert_eq!(returned, row(state), "{state:?}");
        }
    }
    let deferred = row(StoredState::Leased).settled(&decision(DEFER), NOW, OURS, RuleStatus::Enabled);
    assert_eq!(deferred, Some(row(StoredState::Leased)), "nothing is written");
}

/// HUB-5, PRM-1: what a decision makes of a delivery. An attempt that the process survived clears the suspicion.
#[test]
fn hub_5_a_decision_leads_to_one_state() {
    let settled =
        |row: DeliveryFacts, disposition, rule| row.settled(&decision(disposition), NOW, OURS, rule).unwrap();
    let leased = || row(StoredState::Leased);
    let retried =
        settled(leased(), Disposition::Retry { due: Millis(77), stalled: false }, RuleStatus::Enabled);
    let progress = Progress { accepted: Millis(5), counted: 2, failures: 3, panics: 1 };
    let cleared = DeliveryFacts { state: StoredState::Waiting, touched: NOW, ..leased().cleared() };
    assert_eq!(retried, DeliveryFacts { due: Millis(77), progress, ..cleared.clone() });
    let stalled = settled(leased(), Disposition::Retry { due: NOW, stalled: true }, RuleStatus::Enabled);
    assert_eq!(stalled.state, StoredState::Stalled);

    let delivered = settled(leased(), Disposition::Delivered, RuleStatus::Enabled);
    assert_eq!(delivered, DeliveryFacts { state: StoredState::Delivered, touched: NOW, ..leased() });
    for (holds_order, state) in [(true, StoredState::HoldingOrder), (false, StoredState::DeadLettered)] {
        let reason = DeadLetterReason::Refused;
        let dead = settled(leased(), Disposition::DeadLetter { reason, holds_order }, RuleStatus::Enabled);
        assert_eq!(dead, DeliveryFacts { state, touched: NOW, progress, reason: Some(reason), ..leased() });
    }

    for (rule, before, state) in [
        (RuleStatus::Disabled, leased(), StoredState::Held),
        (RuleStatus::Enabled, leased(), StoredState::Queued),
        (RuleStatus::Enabled, failed(StoredState::Leased), StoredState::Waiting),
        (RuleStatus::Deleted, failed(StoredState::Leased), StoredState::Waiting),
    ] {
        let held = settled(before.clone(), Disposition::Hold, rule);
        assert_eq!(held, DeliveryFacts { state, touched: NOW, ..before.cleared() });
    }
}

/// HUB-5: what was attempted before is due again, also a replay; what is new goes back to the queue.
#[test]
fn hub_5_what_is_given_back_is_due_again() {
    let returned = |row: DeliveryFacts| row.returned(OURS).state;
    assert_eq!(returned(row(StoredState::Leased)), StoredState::Queued);
    assert_eq!(returned(failed(StoredState::Leased)), StoredState::Stalled);
    let replay = DeliveryFacts { is_replay: true, ..row(StoredState::Leased) };
    assert_eq!(returned(replay), StoredState::Stalled);
}

/// HUB-5: a delivery is claimed at its time, and one that waits for its service also when the circuit closes.
#[test]
fn hub_5_a_delivery_is_due_at_its_time_or_when_its_service_recovers() {
    let (due, touched) = (Millis(10), Millis(20));
    let before = Millis(9);
    for state in StoredState::ALL {
        let at_its_time = matches!(state, StoredState::Queued | StoredState::Waiting | StoredState::Stalled);
        assert_eq!(row(state).is_due(due, None), at_its_time, "{state:?}");
        assert!(!row(state).is_due(before, Some(Millis(19))), "{state:?}");
        assert_eq!(row(state).is_due(before, Some(touched)), state == StoredState::Stalled, "{state:?}");
    }
}

/// HUB-5: a rule that is enabled releases what it held, and nothing else.
#[test]
fn hub_5_only_held_deliveries_are_released() {
    for state in StoredState::ALL {
        for has_order in [false, true] {
            let released = DeliveryFacts { has_order, ..row(state) }.released().state;
            let expected = match (state, has_order) {
                (StoredState::Held, true) => StoredState::Blocked,
                (StoredState::Held, false) => StoredState::Queued,
                _ => state,
            };
            assert_eq!(released, expected);
        }
    }
}

/// PRM-9: a jump of the clock moves what is pending, and nothing is in the future after it.
#[test]
fn prm_9_a_jump_of_the_clock_moves_what_is_pending() {
    let times = |row: DeliveryFacts| [row.progress.accepted.0, row.touched.0, row.due.0];
    assert_eq!(times(row(StoredState::Waiting).shifted(100, NOW)), [105, 120, 110]);
    assert_eq!(times(row(StoredState::Waiting).shifted(0, NOW)), [5, 20, 10]);
    assert_eq!(times(row(StoredState::Waiting).shifted(0, Millis(4))), [4, 4, 4], "from the future");
    assert_eq!(times(row(StoredState::Waiting).shifted(2_000, NOW)), [1_000, 1_000, 1_000]);
    assert_eq!(times(row(StoredState::Delivered).shifted(100, NOW)), [5, 20, 10]);
}

/// PRM-1: a restart makes what was claimed due at once, apart from what is proved guilty.
#[test]
fn prm_1_a_restart_makes_claimed_deliveries_due() {
    for state in StoredState::ALL {
        let after = row(state).after_restart(true);
        let leased = state == StoredState::Leased;
        let expected = DeliveryFacts { state: StoredState::Queued, due: Millis(0), crashes: 3, ..row(state) };
        assert_eq!(after, if leased { expected } else { row(state) });
    }
    assert_eq!(failed(StoredState::Leased).after_restart(false).state, StoredState::Waiting);
    let guilty = DeliveryFacts {
        suspicion: Suspicion { crashes: super::super::suspects::CRASHES_MAX, step: None },
        ..row(StoredState::Leased)
    };
    assert_eq!(guilty.clone().after_restart(true), guilty);
    assert!(guilty.is_guilty(OURS + 1) && !guilty.is_guilty(OURS));
}

/// PRM-1: a crash says something about what was claimed: by its mark if it is watched, by the company if it is not.
#[test]
fn prm_1_a_crash_speaks_by_marks_or_by_company() {
    let watched = row(StoredState::Leased);
    let unwatched = DeliveryFacts { crashes: 0, ..watched.clone() };
    let (sending, ended) = (Some(Some(HandlingStep::Send)), Some(None));
    assert_eq!(watched.crash_trace(sending, 1), Some(CrashTrace::Begun(HandlingStep::Send)));
    assert_eq!(watched.crash_trace(ended, 1), Some(CrashTrace::Ended));
    assert_eq!(watched.crash_trace(None, 1), None);
    assert_eq!(unwatched.crash_trace(None, FEW), Some(CrashTrace::Unwatched(FEW)));
    assert_eq!(unwatched.crash_trace(sending, FEW + 1), None);
    assert_eq!(row(StoredState::Waiting).crash_trace(sending, 1), None);

    let starts = |row: DeliveryFacts, trace| row.suspected(trace, 4).starts;
    assert_eq!(starts(watched.clone(), CrashTrace::Begun(HandlingStep::Send)).as_deref(), Some("3, 4"));
    assert_eq!(starts(watched.clone(), CrashTrace::Begun(HandlingStep::Load)).as_deref(), Some("4"));
    assert_eq!(starts(watched, CrashTrace::Ended), None);
    assert_eq!(starts(unwatched, CrashTrace::Unwatched(1)).as_deref(), Some("4"));
}

/// HUB-5: it does not matter whether a delivery goes back to the store before or after its times follow a jump of the clock.
#[test]
fn hub_5_a_return_and_a_jump_of_the_clock_can_come_in_any_order() {
    for state in StoredState::ALL {
        for row in [row(state), failed(state), DeliveryFacts { is_replay: true, ..row(state) }] {
            for by in [-2_000, 0, 40, 2_000] {
                let jumped_first = row.clone().shifted(by, NOW).returned(OURS);
                assert_eq!(row.clone().returned(OURS).shifted(by, NOW), jumped_first, "{row:?} by {by}");
            }
        }
    }
}
