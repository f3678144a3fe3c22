//! What the tests of several stores share: every combination of the facts of a delivery.

use seawall_hub_core::domain::delivery::suspects::{CRASHES_MAX, HandlingStep, Suspicion};
use seawall_hub_core::domain::delivery::{DeliveryFacts, Progress, StoredState};
use seawall_hub_core::domain::time::Millis;

pub(crate) const NOW: Millis = Millis(1_000_000);

/// Compares each row with what the function says, and tells what it was before.
#[track_caller]
pub(crate) fn assert_rows(before: &[DeliveryFacts], after: &[DeliveryFacts], expected: &[DeliveryFacts]) {
    assert_eq!(after.len(), expected.len());
    for ((before, after), expected) in before.iter().zip(after).zip(expected) {
        assert_eq!(after, expected, "from {before:?}");
    }
}

/// Returns a delivery in a state, about which nothing else is known.
pub(crate) fn row(state: StoredState) -> DeliveryFacts {
    DeliveryFacts {
        state,
        epoch: 1,
        due: Millis(NOW.0 - 10),
        touched: Millis(NOW.0 - 20),
        progress: Progress { accepted: Millis(NOW.0 - 30), counted: 0, failures: 0, panics: 0 },
        reason: None,
        has_order: false,
        is_replay: false,
        crashes: 0,
        suspicion: Suspicion::default(),
        starts: None,
    }
}

/// Every combination of what the transitions of a single delivery look at, in each state.
pub(crate) fn every_row(epochs: [u64; 2]) -> Vec<DeliveryFacts> {
    let suspicions =
        [(0, None), (1, None), (2, Some(HandlingStep::Send)), (CRASHES_MAX, Some(HandlingStep::Load))];
    let mut all = Vec::new();
    for state in StoredState::ALL {
        for epoch in epochs {
            for failures in [0, 2] {
                for is_replay in [false, true] {
                    for crashes in [0, 2] {
                        for (against, step) in suspicions {
                            let row = row(state);
                            all.push(DeliveryFacts {
                                epoch,
                                progress: Progress { failures, counted: failures, ..row.progress },
                                is_replay,
                                crashes,
                                suspicion: Suspicion { crashes: against, step },
                                starts: (against > 0).then(|| "1".into()),
                                ..row
                            });
                        }
                    }
                }
            }
        }
    }
    all
}
