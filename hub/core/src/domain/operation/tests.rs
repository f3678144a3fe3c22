use proptest::prelude::*;

use super::*;

fn replay(canary: &[u32], progress: OperationProgress) -> Operation {
    Operation {
        id: OperationId::new(1, 2),
        task: BulkAction::Replay(ReplayPlan { mode: ReplayMode::Render, rate: 50, canary: canary.to_vec() }),
        filter: LetterFilter::default(),
        limit: None,
        total: 1_000,
        run: OperationState::Running,
        cause: None,
        progress,
        cursor: 0,
        exhausted: false,
        failed_delivery: None,
        who: "key".into(),
        reason: None,
        began: Millis(0),
        changed: Millis(0),
        ended: None,
    }
}

/// The progress of an operation with this many delivered replays.
fn well(count: u64) -> OperationProgress {
    OperationProgress { begun: count, tried: count, delivered: count, ..OperationProgress::default() }
}

/// HUB-6: one, then ten, then all; nothing more begins before all of a stage are delivered.
#[test]
fn hub_6_the_canary_is_one_then_ten_then_all() {
    let step = |progress| replay(&ReplayPlan::CANARY, progress).next(0);
    assert_eq!(step(OperationProgress::default()), OperationDecision::Begin(1));
    assert_eq!(step(OperationProgress { begun: 1, ..OperationProgress::default() }), OperationDecision::Wait);
    assert_eq!(step(well(1)), OperationDecision::Begin(10));
    assert_eq!(step(OperationProgress { begun: 6, ..well(5) }), OperationDecision::Begin(5));
    assert_eq!(step(OperationProgress { begun: 11, ..well(10) }), OperationDecision::Wait);
    assert_eq!(step(well(11)), OperationDecision::Begin(AHEAD));
}

/// HUB-6: a bad fix is stopped after one and after ten, also if no request can be made; after that it is no canary any more.
#[test]
fn hub_6_a_canary_that_fails_stops_it() {
    let stops =
        |progress| matches!(replay(&ReplayPlan::CANARY, progress).next(0), OperationDecision::Stop(_));
    assert!(stops(OperationProgress { begun: 1, tried: 1, faltered: 1, ..OperationProgress::default() }));
    assert!(stops(OperationProgress { skipped: 1, ..OperationProgress::default() }));
    assert!(stops(OperationProgress { begun: 11, tried: 8, faltered: 1, ..well(7) }));
    assert!(!stops(OperationProgress { begun: 20, tried: 20, faltered: 3, failed: 1, ..well(16) }));
    let none = OperationProgress { begun: 1, tried: 1, faltered: 1, ..OperationProgress::default() };
    assert_eq!(replay(&[], none).next(0), OperationDecision::Begin(AHEAD), "nobody asked for a canary");
}

/// HUB-6: it ends when nothing is left and what has begun has ended; never more than asked for begin.
#[test]
fn hub_6_it_ends_when_all_have_ended() {
    let mut few = replay(&[], OperationProgress { begun: 5, tried: 5, ..well(4) });
    few.limit = Some(6);
    assert_eq!(few.next(0), OperationDecision::Begin(1));
    few.limit = Some(5);
    assert_eq!(few.next(0), OperationDecision::Wait, "one is under way");
    few.progress.failed = 1;
    assert_eq!(few.next(0), OperationDecision::Finish);
    let mut park = replay(&[], well(5));
    (park.task, park.progress) =
        (BulkAction::Park, OperationProgress { begun: 5, ..OperationProgress::default() });
    assert_eq!(park.next(0), OperationDecision::Begin(u64::MAX));
    park.exhausted = true;
    assert_eq!(park.next(0), OperationDecision::Finish);
}

/// HUB-6: what is ahead follows what the peer has dealt with, so that a slow peer has peace soon after a halt.
#[test]
fn hub_6_little_is_ahead_of_a_slow_peer() {
    let ahead =
        |untried, lately| replay(&[], OperationProgress { begun: 100 + untried, ..well(100) }).next(lately);
    assert_eq!(ahead(AHEAD, 0), OperationDecision::Wait);
    assert_eq!(ahead(AHEAD - 2, 0), OperationDecision::Begin(2));
    assert_eq!(ahead(AHEAD, 2_500), OperationDecision::Begin(2_500 - AHEAD));
}

/// HUB-6: a transition is allowed from the states that it names, and ends an operation or lets it go on.
#[test]
fn hub_6_an_operation_changes_its_state_from_the_named_states_only() {
    let change = |to| OperationTransition {
        operation: OperationId::new(1, 2),
        from: &[OperationState::Paused, OperationState::Stopped],
        to,
        cause: None,
        failed_delivery: None,
        at: Millis(9),
    };
    for run in OperationState::ALL {
        for to in OperationState::ALL {
            let operation = Operation { run, ..replay(&[1], well(1)) };
            let allowed = matches!(run, OperationState::Paused | OperationState::Stopped);
            match operation.clone().transition(&change(to)) {
                Err(refused) => assert!(!allowed && refused == run, "{run:?} {to:?}"),
                Ok(after) => {
                    assert!(allowed, "{run:?} {to:?}");
                    assert_eq!((after.run, after.changed), (to, Millis(9)));
                    assert_eq!(after.ended, to.has_ended().then_some(Millis(9)));
                    let resumed = run == OperationState::Stopped && to == OperationState::Running;
                    let BulkAction::Replay(plan) = after.task else { panic!("it is a replay") };
                    assert_eq!(plan.canary.is_empty(), resumed, "who resumes it takes the canary's part");
                }
            }
        }
    }
}

/// HUB-6: why something was skipped is still true at the end, and forgotten when the operation runs again.
#[test]
fn hub_6_the_cause_is_kept_until_the_operation_runs_again() {
    let (first, second) = (DeliveryId::new(1, 5), DeliveryId::new(1, 6));
    let paused = Operation {
        run: OperationState::Paused,
        cause: Some("skipped".into()),
        failed_delivery: Some(first),
        ..replay(&[], well(1))
    };
    let to = |to, cause: Option<&str>, failed_delivery| {
        let change = OperationTransition {
            operation: paused.id,
            from: &OperationState::ALL,
            to,
            cause: cause.map(Into::into),
            failed_delivery,
            at: Millis(9),
        };
        let after = paused.clone().transition(&change).unwrap();
        (after.cause, after.failed_delivery)
    };
    assert_eq!(to(OperationState::Running, None, None), (None, None));
    assert_eq!(to(OperationState::Done, None, None), (Some("skipped".into()), Some(first)));
    assert_eq!(
        to(OperationState::Stopped, Some("canary"), Some(second)),
        (Some("canary".into()), Some(second))
    );
}

/// HUB-6: a batch adds to what was done, and keeps the first that was skipped; only a running operation takes one.
#[test]
fn hub_6_only_a_running_operation_advances() {
    let batch = |cause: &str| BatchResult {
        begun: 2,
        skipped: 1,
        cause: Some(cause.into()),
        failed_delivery: Some(DeliveryId::new(1, 5)),
        cursor: 7,
        exhausted: true,
        at: Millis(9),
    };
    for run in OperationState::ALL {
        let advanced = Operation { run, ..replay(&[], well(3)) }.advance(batch("first"));
        assert_eq!(advanced.is_ok(), run == OperationState::Running);
    }
    let after =
        replay(&[], well(3)).advance(batch("first")).and_then(|one| one.advance(batch("second"))).unwrap();
    assert_eq!((after.progress.begun, after.progress.skipped, after.progress.delivered), (7, 2, 3));
    assert_eq!((after.cursor, after.exhausted, after.changed), (7, true, Millis(9)));
    assert_eq!(after.cause.as_deref(), Some("first"));
}

/// HUB-6: an attempt of a replay counts once as tried, and once by its end.
#[test]
fn hub_6_an_attempt_of_a_replay_counts_for_its_operation() {
    use crate::domain::dead_letter::LetterState;
    let counts = |becomes, is_first| {
        let OperationProgress { begun, skipped, tried, faltered, delivered, failed } =
            OperationProgress::on_attempt(becomes, is_first);
        assert_eq!((begun, skipped), (0, 0));
        [tried, faltered, delivered, failed]
    };
    for (becomes, first, later) in [
        (LetterState::Delivered, [1, 0, 1, 0], [0, 0, 1, 0]),
        (LetterState::FailedAgain, [1, 1, 0, 1], [0, 0, 0, 1]),
        (LetterState::Replaying, [1, 1, 0, 0], [0, 0, 0, 0]),
        (LetterState::Open, [0; 4], [0; 4]),
        (LetterState::Parked, [0; 4], [0; 4]),
        (LetterState::Deleted, [0; 4], [0; 4]),
    ] {
        assert_eq!((counts(becomes, true), counts(becomes, false)), (first, later), "{becomes:?}");
    }
}

/// HUB-6: names are read back.
#[test]
fn hub_6_the_name_of_an_operation_is_read_back() {
    let id = OperationId::new(7, 9);
    assert_eq!(id.to_string(), "op_00000000000000070000000000000009");
    assert_eq!(OperationId::parse(&id.to_string()), Some(id));
    assert_eq!(OperationId::parse("op_7"), None);
}

/// HUB-6: a pause of the store is made up for, a little at a time.
#[test]
fn hub_6_a_pause_is_made_up_for_a_little_at_a_time() {
    let mut pace = ReplayPacer::new(500);
    let mut tick = |millis| {
        let count = pace.after(Duration::from_millis(millis));
        pace.used(count);
        count
    };
    tick(20);
    // The store pauses for half a second.
    let mut begun = tick(500);
    assert!(begun <= 626, "{begun} at once");
    for _ in 0..150 {
        let count = tick(20);
        assert!(count <= 13, "{count} in a fiftieth of a second");
        begun += count;
    }
    assert!((1_740..=1_760).contains(&begun), "{begun} of 1750");
}

proptest! {
    /// HUB-6: over any ticks, no more begin than the rate allows, and no fewer than it asks for but for the last part.
    #[test]
    fn hub_6_the_pace_is_kept(rate in 1_u32..10_000, ticks in proptest::collection::vec(1_u64..200, 1..200)) {
        let mut pace = ReplayPacer::new(rate);
        let (mut begun, mut time) = (0, 0);
        for tick in ticks {
            time += tick;
            let count = pace.after(Duration::from_millis(tick));
            pace.used(count);
            begun += count;
        }
        let ideal = f64::from(rate) * time as f64 / 1_000.0;
        prop_assert!(begun as f64 <= ideal + 1.5, "{begun} of {ideal}");
        prop_assert!(begun as f64 >= ideal - 1.5, "{begun} of {ideal}");
    }
}
