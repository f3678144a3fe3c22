//! Deliveries one by one: settled, returned, claimed, moved in time.

use std::time::Duration;

use seawall_hub_core::domain::delivery::{DeadLetterReason, Decision, Disposition, RuleStatus};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{Claim, LaneCapacity, Settlement};

use super::*;
use crate::postgres::write::applier::ApplyError;
use crate::postgres::write::claims::{CLAIM, next_due};
use crate::postgres::write::set_based::{
    NEXT_DUE, RETURN, SETTLE_DELIVERED, SETTLE_HOLD, SETTLE_RETRY, SHIFT, TAKE_DUE,
};

fn settlement(claim: Claim, disposition: Disposition) -> Settlement {
    let progress = Progress { accepted: Millis(NOW.0 - 30), counted: 3, failures: 4, panics: 1 };
    let decision = Decision { disposition, progress, attempted: false, throttle: None };
    Settlement { claim, decision, attempt: None, failure: None, at: NOW, ordered: false, is_replay: false }
}

/// Inserts two versions of the rule, so that only the current one can be meant.
async fn insert_rule(table: &Table, status: RuleStatus) {
    let versions = match status {
        RuleStatus::Enabled => [(1, false, false), (2, true, true)],
        RuleStatus::Disabled => [(1, false, true), (2, true, false)],
        RuleStatus::Deleted => [(1, false, true), (2, false, false)],
    };
    for (version, current, enabled) in versions {
        let sql = format!(
            "INSERT INTO rules (name, version, current, service, enabled, document)
             VALUES ('rule', {version}, {current}, 'service', {enabled}, '{{}}')"
        );
        table.node.text(&sql).await;
    }
}

/// HUB-14: a settlement does to every row what the function says, and is refused where the function refuses: alone, and in a
/// batch with all others.
#[tokio::test]
async fn hub_14_settling_is_the_function_for_every_row() {
    let dead = |holds_order| Disposition::DeadLetter { reason: DeadLetterReason::Gone, holds_order };
    let dispositions = [
        (Disposition::Delivered, true),
        (Disposition::Hold, true),
        (Disposition::Retry { due: Millis(NOW.0 + 7), stalled: false }, true),
        (Disposition::Retry { due: Millis(NOW.0 + 7), stalled: true }, true),
        (Disposition::Defer { retry_after: Some(Duration::ZERO) }, true),
        (dead(false), false),
        (dead(true), false),
    ];
    let mut table = Table::new(OURS).await;
    let before = every_row([OURS, OTHERS]);
    for (disposition, batched) in dispositions {
        for rule in RuleStatus::ALL {
            for in_batch in [false, true].into_iter().filter(|in_batch| batched || !in_batch) {
                table.clear().await;
                insert_rule(&table, rule).await;
                table.insert_all(&before).await;
                let all: Vec<Settlement> = (1..=table.rows)
                    .map(|number| settlement(table.node.claim(number), disposition))
                    .collect();
                let settled = settle(&table, &all, in_batch).await;
                let mut expected = Vec::new();
                for ((facts, settlement), settled) in before.iter().zip(&all).zip(settled) {
                    let says = facts.clone().settled(&settlement.decision, NOW, OURS, rule);
                    let refused = Err(StoreError::LeaseLost(settlement.claim.delivery));
                    assert_eq!(settled, if says.is_some() { Ok(()) } else { refused }, "{facts:?}");
                    expected.push(says.unwrap_or_else(|| facts.clone()));
                }
                assert_rows(&before, &table.all().await, &expected);
            }
        }
    }
    table.assert_proved(&[SETTLE_DELIVERED, SETTLE_HOLD, SETTLE_RETRY]);
}

async fn settle(table: &Table, all: &[Settlement], in_batch: bool) -> Vec<Result<(), StoreError>> {
    if in_batch {
        let units: Vec<_> = all.iter().cloned().map(|one| unit(Change::Settle(one))).collect();
        return apply(table, &units, UnitShape::Outcome).await;
    }
    let mut results = Vec::new();
    table.node.text("BEGIN").await;
    for settlement in all {
        results.push(match table.node.applier().settle(settlement).await {
            Ok(()) => Ok(()),
            Err(ApplyError::Refused(error)) => Err(error),
            Err(error) => panic!("{error:?}"),
        });
    }
    table.node.text("COMMIT").await;
    results
}

/// HUB-14, U1: several outcomes of one delivery in a batch are applied one after the other, and the attempt of each that counts is
/// recorded once.
#[tokio::test]
async fn hub_14_outcomes_of_one_delivery_in_a_batch_come_one_after_the_other() {
    let mut table = Table::new(OURS).await;
    table.insert_all(&[DeliveryFacts { epoch: OURS, ..row(StoredState::Leased) }]).await;
    let retry = Disposition::Retry { due: Millis(NOW.0 + 7), stalled: false };
    let attempt = Some(seawall_dist::deadletter::Attempt { at: NOW, ..Default::default() });
    let one =
        |disposition| Settlement { attempt: attempt.clone(), ..settlement(table.node.claim(1), disposition) };
    let units = [one(retry), one(Disposition::Delivered), one(retry)].map(|one| unit(Change::Settle(one)));
    let lost = || Err(StoreError::LeaseLost(DeliveryId::new(ERA, 1)));
    assert_eq!(apply(&table, &units, UnitShape::Outcome).await, [Ok(()), lost(), lost()]);
    assert_eq!(table.all().await[0].state, StoredState::Waiting);
    let count = table.node.session.find("SELECT count(*) FROM attempts", &[]).await.unwrap().unwrap();
    assert_eq!(count.get::<_, i64>(0), 1);
}

/// HUB-14: a delivery of another era is another one, whatever its number is.
#[tokio::test]
async fn hub_14_a_number_of_another_era_is_another_delivery() {
    let mut table = Table::new(OURS).await;
    table.insert_all(&[DeliveryFacts { epoch: OURS, ..row(StoredState::Leased) }]).await;
    let stranger = Claim { delivery: DeliveryId::new(ERA + 1, 1), epoch: OURS };
    for disposition in [Disposition::Delivered, Disposition::Hold] {
        let units = [unit(Change::Settle(settlement(stranger, disposition)))];
        let lost = Err(StoreError::LeaseLost(stranger.delivery));
        assert_eq!(apply(&table, &units, UnitShape::Outcome).await, [lost]);
    }
    apply(&table, &[unit(Change::ReturnToStore(vec![stranger]))], UnitShape::Return).await;
    assert_eq!(table.all().await[0].state, StoredState::Leased);
}

/// HUB-14: what is given back becomes what the function says, and what is not ours stays as it is.
#[tokio::test]
async fn hub_14_returning_is_the_function_for_every_row() {
    let mut table = Table::new(OURS).await;
    let before = every_row([OURS, OTHERS]);
    table.insert_all(&before).await;
    let claims: Vec<Claim> = (1..=table.rows).map(|number| table.node.claim(number)).collect();
    let units: Vec<_> =
        claims.chunks(100).map(|claims| unit(Change::ReturnToStore(claims.to_vec()))).collect();
    apply(&table, &units, UnitShape::Return).await;
    let expected: Vec<_> = before.iter().map(|facts| facts.clone().returned(OURS)).collect();
    assert_rows(&before, &table.all().await, &expected);
    table.assert_proved(&[RETURN]);
}

/// HUB-14: what is due is claimed, and nothing else: for every state, time and circuit, and for this service only.
#[tokio::test]
async fn hub_14_claiming_is_the_function_for_every_row() {
    let around = |time: Millis| [-1, 0, 1].map(|millis| Millis(time.0 + millis));
    let closed = Millis(NOW.0 - 500);
    let mut table = Table::new(OURS).await;
    for resume_before in [None, Some(closed)] {
        table.clear().await;
        let (mut before, mut names, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        for state in StoredState::ALL {
            for due in around(NOW) {
                for touched in around(closed) {
                    for service in ["service", "other"] {
                        let facts = DeliveryFacts { due, touched, ..row(state) };
                        let is_claimed = service == "service" && facts.is_due(NOW, resume_before);
                        names.push(Names { service, ..USUAL });
                        before.push(facts.clone());
                        expected.push(if is_claimed { facts.claimed(OURS) } else { facts });
                    }
                }
            }
        }
        table.insert(before.iter().zip(names)).await;
        let due = next_due(&table.node.session).await.unwrap();
        assert_eq!(due.iter().map(|due| due.service.as_str()).collect::<Vec<_>>(), ["other", "service"]);
        for due in due {
            let earliest = Some(Millis(NOW.0 - 1));
            assert_eq!((due.fresh, due.retries), (earliest, earliest));
        }
        let room = [room("service", 1_000, 1_000, resume_before)];
        table.node.applier().take_due(NOW, &room).await.unwrap();
        assert_rows(&before, &table.all().await, &expected);
        table.assert_proved(&[TAKE_DUE, NEXT_DUE, &CLAIM]);
    }
}

fn room(service: &str, fresh: usize, retries: usize, resume_before: Option<Millis>) -> LaneCapacity {
    LaneCapacity { service: Slug::new(service).unwrap(), fresh, retries, resume_before }
}

/// HUB-5: each service gives what there is room for, the longest due first; those that wait for their attempt and those that wait for
/// their service share their room.
#[tokio::test]
async fn hub_5_the_longest_due_are_claimed_within_the_room() {
    let mut table = Table::new(OURS).await;
    let states = [StoredState::Queued, StoredState::Waiting, StoredState::Stalled];
    let rows: Vec<DeliveryFacts> = (0..30)
        .map(|place| DeliveryFacts { due: Millis(NOW.0 - place), ..row(states[place as usize % 3]) })
        .collect();
    table.insert_all(&rows).await;
    let taken = table.node.applier().take_due(NOW, &[room("service", 2, 3, None)]).await.unwrap();
    let numbers: Vec<u64> = taken.iter().map(|taken| taken.id.number).collect();
    // The longest due has the highest number: 28 and 25 are queued, 30, 29 and 27 stalled, waiting, stalled.
    assert_eq!(numbers, [28, 25, 30, 29, 27]);
    // A node that was taken for dead claims nothing.
    table.node.text(&format!("UPDATE nodes SET state = 2 WHERE epoch = {OURS}")).await;
    assert!(table.node.applier().take_due(NOW, &[room("service", 2, 3, None)]).await.unwrap().is_empty());
}

/// HUB-14: a jump of the clock moves every row as the function says.
#[tokio::test]
async fn hub_14_moving_times_is_the_function_for_every_row() {
    let around = [-50, 0, 50].map(|millis| Millis(NOW.0 + millis));
    let mut table = Table::new(OURS).await;
    for by in [-100, 0, 100] {
        table.clear().await;
        let mut before = Vec::new();
        for state in StoredState::ALL {
            for accepted in around {
                for touched in around {
                    for due in around {
                        let row = row(state);
                        let progress = Progress { accepted, ..row.progress };
                        before.push(DeliveryFacts { progress, touched, due, ..row });
                    }
                }
            }
        }
        table.insert_all(&before).await;
        table.node.applier().move_times(by, NOW, true).await.unwrap();
        let expected: Vec<_> = before.iter().map(|facts| facts.clone().shifted(by, NOW)).collect();
        assert_rows(&before, &table.all().await, &expected);
    }
    table.assert_proved(&[SHIFT]);
}
