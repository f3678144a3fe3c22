//! Deliveries one by one: settled, returned, claimed, moved in time.

use std::time::Duration;

use seawall_hub_core::domain::delivery::{DeadLetterReason, Decision, Disposition, RuleStatus};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{Claim, LaneCapacity, Settlement, StoreError};

use super::*;
use crate::sqlite::write::set_based::{
    CLAIM, DUE_FRESH, DUE_STALLED, DUE_WAITING, RETURN, SETTLE_DEAD, SETTLE_DELIVERED, SETTLE_HOLD,
    SETTLE_RETRY, SHIFT_LEASED, SHIFT_WAITING,
};

fn settlement(claim: Claim, disposition: Disposition) -> Settlement {
    let progress = Progress { accepted: Millis(NOW.0 - 30), counted: 3, failures: 4, panics: 1 };
    let decision = Decision { disposition, progress, attempted: false, throttle: None };
    Settlement { claim, decision, attempt: None, failure: None, at: NOW, ordered: false, is_replay: false }
}

/// HUB-14: a settlement does to every row what the function says, and is refused where the function refuses.
#[test]
fn hub_14_settling_is_the_function_for_every_row() {
    let dead = |holds_order| Disposition::DeadLetter { reason: DeadLetterReason::Gone, holds_order };
    let dispositions = [
        Disposition::Delivered,
        Disposition::Hold,
        Disposition::Retry { due: Millis(NOW.0 + 7), stalled: false },
        Disposition::Retry { due: Millis(NOW.0 + 7), stalled: true },
        Disposition::Defer { retry_after: Some(Duration::ZERO) },
        dead(false),
        dead(true),
    ];
    for disposition in dispositions {
        for rule in RuleStatus::ALL {
            let mut table = Table::new();
            let epoch = table.restarted();
            insert_rule(&table, rule);
            let before = every_row([epoch, epoch - 1]);
            table.insert_all(&before);
            let mut expected = Vec::new();
            for (number, facts) in (1..).zip(&before) {
                let settlement = settlement(table.claim(number), disposition);
                let settled = table.applier().settle(&settlement);
                let says = facts.clone().settled(&settlement.decision, NOW, epoch, rule);
                let refused = Err(StoreError::LeaseLost(settlement.claim.delivery));
                assert_eq!(settled, if says.is_some() { Ok(()) } else { refused }, "{facts:?}");
                expected.push(says.unwrap_or_else(|| facts.clone()));
            }
            assert_rows(&before, &table.all(), &expected);
            match disposition {
                Disposition::Delivered => assert_proved(&[SETTLE_DELIVERED]),
                Disposition::Hold => assert_proved(&[SETTLE_HOLD]),
                Disposition::Retry { .. } => assert_proved(&[SETTLE_RETRY]),
                Disposition::DeadLetter { .. } => assert_proved(&[SETTLE_DEAD]),
                Disposition::Defer { .. } => {}
            }
        }
    }
}

/// Inserts two versions of the rule, so that only the current one can be meant.
fn insert_rule(table: &Table, status: RuleStatus) {
    let versions = match status {
        RuleStatus::Enabled => [(1, false, false), (2, true, true)],
        RuleStatus::Disabled => [(1, false, true), (2, true, false)],
        RuleStatus::Deleted => [(1, false, true), (2, false, false)],
    };
    for (version, current, enabled) in versions {
        let sql = "INSERT INTO rules (name, version, current, service, enabled, document)
                   VALUES ('rule', ?1, ?2, 'service', ?3, '{}')";
        table.connection.execute(sql, params![version, current, enabled]).unwrap();
    }
}

/// HUB-14: what is given back becomes what the function says, and what is not ours stays as it is.
#[test]
fn hub_14_returning_is_the_function_for_every_row() {
    let mut table = Table::new();
    let epoch = table.restarted();
    let before = every_row([epoch, epoch - 1]);
    table.insert_all(&before);
    let ids: Vec<Claim> = (1..=table.rows).map(|number| table.claim(number)).collect();
    table.applier().return_to_store(&ids).unwrap();
    let expected: Vec<_> = before.iter().map(|facts| facts.clone().returned(epoch)).collect();
    assert_rows(&before, &table.all(), &expected);
    assert_proved(&[RETURN]);
}

/// HUB-14: what is due is claimed, and nothing else: for every state, time and circuit, and for this service only.
#[test]
fn hub_14_claiming_is_the_function_for_every_row() {
    let around = |time: Millis| [-1, 0, 1].map(|millis| Millis(time.0 + millis));
    let closed = Millis(NOW.0 - 500);
    for resume_before in [None, Some(closed)] {
        let mut table = Table::new();
        let epoch = table.restarted();
        let (mut before, mut expected) = (Vec::new(), Vec::new());
        for state in StoredState::ALL {
            for due in around(NOW) {
                for touched in around(closed) {
                    for service in ["service", "other"] {
                        let facts = DeliveryFacts { due, touched, ..row(state) };
                        table.insert(&facts, Names { service, ..USUAL });
                        let is_claimed = service == "service" && facts.is_due(NOW, resume_before);
                        before.push(facts.clone());
                        expected.push(if is_claimed { facts.claimed(epoch) } else { facts });
                    }
                }
            }
        }
        let service = Slug::new("service").unwrap();
        let room = [LaneCapacity { service, fresh: 1_000, retries: 1_000, resume_before }];
        table.applier().due(NOW, &room).unwrap();
        assert_rows(&before, &table.all(), &expected);
        assert_proved(&[DUE_FRESH, DUE_WAITING, DUE_STALLED, CLAIM]);
    }
}

/// HUB-14: a jump of the clock moves every row as the function says.
#[test]
fn hub_14_moving_times_is_the_function_for_every_row() {
    let around = [-50, 0, 50].map(|millis| Millis(NOW.0 + millis));
    for by in [-100, 0, 100] {
        let mut table = Table::new();
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
        table.insert_all(&before);
        table.applier().move_times(by, NOW, true).unwrap();
        let expected: Vec<_> = before.iter().map(|facts| facts.clone().shifted(by, NOW)).collect();
        assert_rows(&before, &table.all(), &expected);
        assert_proved(&[SHIFT_LEASED, SHIFT_WAITING]);
    }
}
