use proptest::prelude::*;

use super::*;

fn replay(canary: &[u32], progress: OperationProgress) -> Operation {
    Operation {
        id: OperationId::new(1, 2),
        task: BulkAction::Replay(ReplayPlan { mode: ReplayMode::Render, rate: 50, canary: canary.to_vec() }),
        filter: LetterFilter::default(),
        most: None,
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

/// A tally of so many that went well.
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
    few.most = Some(6);
    assert_eq!(few.next(0), OperationDecision::Begin(1));
    few.most = Some(5);
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
