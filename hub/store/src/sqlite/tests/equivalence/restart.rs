//! A start after a crash or an orderly stop.

use seawall_hub_core::domain::delivery::suspects::FEW;

use super::*;
use crate::sqlite::write::set_based::{GUILTY, RESTART, SUSPECT_UNWATCHED};
use crate::steps::Mark;

/// The marks that a process may have left about a delivery: none, of a step that has ended, of one that had begun.
const MARKS: [Option<Option<HandlingStep>>; 4] =
    [None, Some(None), Some(Some(HandlingStep::Load)), Some(Some(HandlingStep::Send))];

/// Restarts with these rows, each with a mark or none, and compares each with what the functions say.
fn check(before: &[(DeliveryFacts, Option<Option<HandlingStep>>)], crashed: bool) {
    let mut table = Table::new();
    let epoch = table.start.epoch;
    if !crashed {
        table.applier().record_stop().unwrap();
    }
    let (mut facts, mut marks) = (Vec::new(), Vec::new());
    for (row, mark) in before {
        let number = table.insert(row, USUAL);
        facts.push(row.clone());
        marks.extend(mark.map(|step| Mark { epoch: epoch.cast_signed(), number, step }));
        // What another process left behind says nothing.
        marks.push(Mark { epoch: epoch.cast_signed() - 1, number, step: Some(HandlingStep::Record) });
    }
    write::restart::reclaim(&table.connection, &marks).unwrap();
    let claimed = facts.iter().filter(|facts| facts.state == StoredState::Leased).count();
    let expected = before.iter().cloned().map(|(facts, mark)| {
        let trace = facts.crash_trace(mark, u32::try_from(claimed).unwrap()).filter(|_| crashed);
        let facts = match trace {
            Some(trace) => facts.suspected(trace, epoch),
            None => facts,
        };
        facts.after_restart(crashed)
    });
    assert_rows(&facts, &table.all(), &expected.collect::<Vec<_>>());
    assert_proved(&[RESTART]);
}

/// HUB-14, PRM-1: a restart does to every row what the functions say: among many, and among so few that a crash counts against
/// each.
#[test]
fn hub_14_a_restart_is_the_function_for_every_row() {
    let every: Vec<_> =
        every_row([1, 0]).into_iter().flat_map(|facts| MARKS.map(|mark| (facts.clone(), mark))).collect();
    for crashed in [false, true] {
        check(&every, crashed);
    }
    let leased: Vec<_> = every.into_iter().filter(|(facts, _)| facts.state == StoredState::Leased).collect();
    for few in leased.chunks(FEW as usize) {
        check(few, true);
    }
    let mut table = Table::new();
    table.insert(&row(StoredState::Leased), USUAL);
    write::restart::reclaim(&table.connection, &[]).unwrap();
    assert_proved(&[SUSPECT_UNWATCHED]);
}

/// HUB-14, PRM-1: guilty is who the function says.
#[test]
fn hub_14_guilt_is_the_function_for_every_row() {
    let mut table = Table::new();
    let epoch = table.restarted();
    let sql =
        "INSERT INTO events (number, id, source, kind, fingerprint, accepted, considered, filtered, payload)
               VALUES (1, 'event', 'source', 'kind', x'', 0, 0, 0, x'')";
    table.connection.execute(sql, []).unwrap();
    let before = every_row([epoch, epoch - 1]);
    table.insert_all(&before);
    table.connection.execute("INSERT INTO requests SELECT number, x'' FROM deliveries", []).unwrap();
    let found = read::restart::quarantine_candidates(&table.connection, epoch).unwrap();
    let found: Vec<_> = found.into_iter().map(|(stored, _)| stored.id).collect();
    let numbered = (1..).zip(&before);
    let guilty: Vec<_> = numbered
        .clone()
        .filter(|(_, facts)| facts.is_guilty(epoch))
        .map(|(number, _)| table.id(number))
        .collect();
    assert_eq!(found, guilty);
    assert_proved(&[GUILTY]);
}
