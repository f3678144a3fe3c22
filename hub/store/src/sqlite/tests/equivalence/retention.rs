//! What is old.

use seawall_dist::idempotency::{Claim, ClaimDecision, Entry, claim};
use seawall_hub_core::domain::dead_letter::LetterState;
use seawall_hub_core::domain::retention::{EndedDelivery, Limits, PruneFacts};
use seawall_hub_core::port::store::PruneTarget;

use super::*;
use crate::record::StoredNumber;
use crate::sqlite::write::set_based::{IS_OLD, PRUNE_KEYS};

const LIMITS: Limits =
    Limits { now: NOW, delivered: Millis(NOW.0 - 70), discarded: Millis(NOW.0 - 300), audit: NOW };

/// A time before a limit, and the limit itself.
fn around(limit: Millis) -> [Millis; 2] {
    [Millis(limit.0 - 1), limit]
}

/// Every delivery that can belong to an old event: in each state and age, with each dead letter or none.
fn every_delivery() -> Vec<EndedDelivery> {
    let deleted = [None].into_iter().chain(around(LIMITS.discarded).map(Some));
    let letters: Vec<_> = LetterState::ALL
        .into_iter()
        .flat_map(|state| deleted.clone().map(move |deleted| Some((state, deleted))))
        .chain([None])
        .collect();
    let mut all = Vec::new();
    for state in StoredState::ALL {
        for touched in around(LIMITS.delivered) {
            for letter in &letters {
                all.push(EndedDelivery { state, touched, is_newest: false, letter: *letter });
            }
        }
    }
    all
}

fn insert_event(table: &mut Table, number: i64, facts: &PruneFacts) {
    let sql =
        "INSERT INTO events (number, id, source, kind, fingerprint, accepted, considered, filtered, payload)
               VALUES (?1, ?1, 'source', 'kind', x'', ?2, 0, 0, x'')";
    table.connection.prepare_cached(sql).unwrap().execute([number, facts.accepted.0]).unwrap();
    for EndedDelivery { state, touched, letter, .. } in &facts.deliveries {
        let delivery = table.insert(&DeliveryFacts { touched: *touched, ..row(*state) }, USUAL);
        let belongs = "UPDATE deliveries SET event = ?2 WHERE number = ?1";
        table.connection.prepare_cached(belongs).unwrap().execute([delivery, number]).unwrap();
        if let Some((state, deleted)) = letter {
            let sql =
                "INSERT INTO dead_letters (delivery, grouping, standing, at, discarded, indexed, edited)
                       VALUES (?1, 1, ?2, 0, ?3, 0, 0)";
            let values = params![delivery, state.to_number(), deleted.map(|deleted| deleted.0)];
            table.connection.prepare_cached(sql).unwrap().execute(values).unwrap();
        }
    }
}

/// HUB-14, HUB-9: an event is pruned if the function says so: with any one delivery, with any one beside an old one, with none, and
/// with the newest of all.
#[test]
fn hub_14_pruning_is_the_function_for_every_event() {
    let every = every_delivery();
    let old =
        EndedDelivery { state: StoredState::Delivered, touched: Millis(0), is_newest: false, letter: None };
    let mut events = Vec::new();
    for accepted in around(LIMITS.delivered) {
        events.push(PruneFacts { accepted, deliveries: Vec::new() });
        for delivery in &every {
            events.push(PruneFacts { accepted, deliveries: vec![*delivery] });
            events.push(PruneFacts { accepted, deliveries: vec![old, *delivery] });
        }
    }
    let newest = EndedDelivery { is_newest: true, ..old };
    events.push(PruneFacts { accepted: Millis(0), deliveries: vec![newest] });

    let mut table = Table::new();
    for (number, facts) in (1..).zip(&events) {
        insert_event(&mut table, number, facts);
    }
    let numbers = (1..).take(events.len()).collect();
    table.applier().prune(&PruneTarget::Events { numbers, limits: LIMITS }).unwrap();
    let mut left = table.connection.prepare("SELECT number FROM events ORDER BY number").unwrap();
    let left: Vec<i64> = left.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for (number, facts) in (1..).zip(&events) {
        assert_eq!(left.binary_search(&number).is_err(), facts.is_prunable(&LIMITS), "{facts:?}");
    }
    assert_proved(&[IS_OLD]);
}

/// HUB-14: a key is pruned if anybody may claim it again.
#[test]
fn hub_14_a_key_is_pruned_when_it_can_be_claimed_again() {
    let table = Table::new();
    let times = [-1, 0, 1].map(|millis| NOW.0 + millis);
    for until in times {
        let sql = "INSERT INTO once (scope, key, fingerprint, note, deliveries, until) VALUES ('s', ?1, x'', '', '[]', ?1)";
        table.connection.execute(sql, [until]).unwrap();
    }
    table.applier().prune(&PruneTarget::Keys { now: NOW, limit: 10 }).unwrap();
    for until in times {
        let wanted = Claim { fingerprint: [0; 32], token: 0, lease: 0 };
        let decision = claim(Entry::Done { fingerprint: [1; 32], until }, &wanted, NOW.0);
        let left: bool = table
            .connection
            .query_row("SELECT EXISTS (SELECT 1 FROM once WHERE until = ?1)", [until], |row| row.get(0))
            .unwrap();
        assert_eq!(!left, matches!(decision, ClaimDecision::Run(_)), "{until}");
    }
    assert_proved(&[PRUNE_KEYS]);
}
