//! What a node had claimed that has ended, by a crash or in an orderly way.

use seawall_hub_core::domain::delivery::suspects::FEW;

use super::*;
use crate::postgres::write::restart::quarantine_candidates;
use crate::postgres::write::set_based::{GUILTY, RESTART, SUSPECT_UNWATCHED};
use crate::steps::Mark;

/// The marks that a process may have left about a delivery: none, of a step that has ended, of one that had begun.
const MARKS: [Option<Option<HandlingStep>>; 4] =
    [None, Some(None), Some(Some(HandlingStep::Load)), Some(Some(HandlingStep::Send))];

/// Ends the node of another epoch with these rows, each with a mark or none, and compares each with what the functions say.
async fn check(table: &mut Table, before: &[(DeliveryFacts, Option<Option<HandlingStep>>)], crashed: bool) {
    table.clear().await;
    let state = if crashed { 2 } else { 1 };
    table
        .node
        .text(&format!("UPDATE nodes SET state = {state}, reclaimed = false WHERE epoch = {OTHERS}"))
        .await;
    let facts: Vec<_> = before.iter().map(|(facts, _)| facts.clone()).collect();
    table.insert_all(&facts).await;
    let mut marks = Vec::new();
    for (number, (_, mark)) in (1..).zip(before) {
        marks.extend(mark.map(|step| Mark { epoch: OTHERS.cast_signed(), number, step }));
        // What another process left behind says nothing.
        marks.push(Mark { epoch: OTHERS.cast_signed() - 1, number, step: Some(HandlingStep::Record) });
    }
    // Twice, because it counts once.
    for _ in 0..2 {
        table.node.applier().reclaim(&marks).await.unwrap();
    }
    let is_theirs = |facts: &DeliveryFacts| facts.is_claimed_by(OTHERS);
    let claimed = u32::try_from(facts.iter().filter(|facts| is_theirs(facts)).count()).unwrap();
    let expected = before.iter().cloned().map(|(facts, mark)| {
        if !is_theirs(&facts) {
            return facts;
        }
        let facts = match facts.crash_trace(mark, claimed).filter(|_| crashed) {
            Some(trace) => facts.suspected(trace, OTHERS),
            None => facts,
        };
        facts.after_restart(crashed)
    });
    assert_rows(&facts, &table.all().await, &expected.collect::<Vec<_>>());
}

/// HUB-14, HUB-15, PRM-1: what a node had claimed that has ended is given back as the functions say: among many, and among so few
/// that a crash counts against each. What a live node has claimed stays as it is.
#[tokio::test]
async fn hub_14_a_restart_is_the_function_for_every_row() {
    let every: Vec<_> = every_row([OURS, OTHERS])
        .into_iter()
        .flat_map(|facts| MARKS.map(|mark| (facts.clone(), mark)))
        .collect();
    let mut table = Table::new(OURS).await;
    table.add_node(OTHERS).await;
    for crashed in [false, true] {
        check(&mut table, &every, crashed).await;
    }
    let leased: Vec<_> = every.into_iter().filter(|(facts, _)| facts.state == StoredState::Leased).collect();
    for few in leased.chunks(FEW as usize) {
        check(&mut table, few, true).await;
    }
    table.assert_proved(&[RESTART, SUSPECT_UNWATCHED]);
}

/// HUB-14, PRM-1: guilty is who the function says.
#[tokio::test]
async fn hub_14_guilt_is_the_function_for_every_row() {
    let mut table = Table::new(OURS).await;
    table.add_node(OTHERS).await;
    let before = every_row([OURS, OTHERS]);
    table.insert_all(&before).await;
    let found = quarantine_candidates(&table.node.session, OURS).await.unwrap();
    assert!(found.is_empty(), "the other node is live, and handles them");
    table.node.text(&format!("UPDATE nodes SET state = 2, reclaimed = true WHERE epoch = {OTHERS}")).await;
    let found = quarantine_candidates(&table.node.session, OURS).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|(stored, _)| stored.id.number).collect();
    let guilty = (1..).zip(&before).filter(|(_, facts)| facts.is_guilty(OURS)).map(|(number, _)| number);
    assert_eq!(found, guilty.collect::<Vec<u64>>());
    table.assert_proved(&[GUILTY]);
}
