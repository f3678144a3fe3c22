//! What can only be seen from inside.

mod equivalence;
mod statements;
mod traced;

use super::*;

/// HUB-9: to find what is old, no table is read as a whole.
#[test]
fn hub_9_what_is_old_is_found_by_an_index() {
    let folder = tempfile::TempDir::new().unwrap();
    drop(Sqlite::open(folder.path(), &Clock::system()).unwrap());
    let connection = Connection::open(folder.path().join("seawall.db")).unwrap();
    let layout: i64 = connection.pragma_query_value(None, "auto_vacuum", |row| row.get(0)).unwrap();
    assert_eq!(layout, 2, "what is free can be given back a few pages at a time");
    let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", read::prune::old_sql())).unwrap();
    let mut rows = plan.raw_query();
    while let Some(row) = rows.next().unwrap() {
        let step: String = row.get(3).unwrap();
        assert!(!step.starts_with("SCAN"), "{step}");
    }
}

/// HUB-5: no question about what is due looks at deliveries that have ended. SQLite uses a partial index only where the question
/// repeats its condition word by word, and otherwise reads the whole table without a word.
#[test]
fn hub_5_what_is_due_is_found_by_an_index() {
    let folder = tempfile::TempDir::new().unwrap();
    drop(Sqlite::open(folder.path(), &Clock::system()).unwrap());
    let connection = Connection::open(folder.path().join("seawall.db")).unwrap();
    let waiting = rows::WAITING_INDEX;
    for sql in [
        &*format!(
            "SELECT service, due FROM deliveries WHERE {waiting} AND state = 1 AND service > ?1 ORDER BY service, due LIMIT 1"
        ),
        write::set_based::DUE_FRESH,
        write::set_based::DUE_WAITING,
        write::set_based::DUE_STALLED,
        write::set_based::RESTART,
        write::set_based::SHIFT_LEASED,
        write::set_based::SHIFT_WAITING,
        "SELECT 1 FROM deliveries WHERE rule = ?1 AND ordering = ?2 AND state < 7 LIMIT 1",
        write::set_based::RELEASE,
        write::set_based::START_ORDERS,
        write::set_based::PENDING_OF_SERVICE,
        write::set_based::HELD_BY_RULE,
    ] {
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let mut rows = plan.raw_query();
        while let Some(row) = rows.next().unwrap() {
            let step: String = row.get(3).unwrap();
            assert!(!step.contains("SCAN deliveries") && !step.contains("TEMP B-TREE"), "{step}: {sql}");
        }
    }
}

/// PRM-1: what was a suspect by the rules of the first tables is due like any other.
#[test]
fn prm_1_suspects_of_the_first_tables_are_due() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("seawall.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(include_str!("engine/step_1.sql")).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    for (number, (state, failures)) in (1..).zip([(-1, 0), (-1, 2), (0, 0)]) {
        let sql = "INSERT INTO deliveries (number, event, state, epoch, due, touched, accepted, counted, failures, rule_version, rule,
                   service, crashes, together, starts) VALUES (?1, 1, ?2, 0, 9, 9, 9, 0, ?3, 1, 'r', 's', 2, 64, '1, 2')";
        connection.execute(sql, [number, state, failures]).unwrap();
    }
    drop(connection);
    drop(Sqlite::open(folder.path(), &Clock::system()).unwrap());
    let connection = Connection::open(&path).unwrap();
    let mut left = connection.prepare("SELECT state, against FROM deliveries ORDER BY number").unwrap();
    let left = left.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let left: Vec<(i64, i64)> = left.map(Result::unwrap).collect();
    assert_eq!(left, [(1, 0), (2, 0), (1, 0)]);
}

/// HUB-5, UI-2: a list of what has not ended looks at nothing that has: it reads the two indexes that hold no such row.
#[test]
fn hub_5_what_has_not_ended_is_found_by_an_index() {
    let folder = tempfile::TempDir::new().unwrap();
    drop(Sqlite::open(folder.path(), &Clock::system()).unwrap());
    let connection = Connection::open(folder.path().join("seawall.db")).unwrap();
    let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", read::deliveries::OPEN)).unwrap();
    let (mut rows, mut steps) = (plan.raw_query(), Vec::new());
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get::<_, String>(3).unwrap());
    }
    for index in ["deliveries_leased", "deliveries_waiting"] {
        assert_eq!(steps.iter().filter(|step| step.contains(index)).count(), 1, "{steps:?}");
    }
    let looks = steps.iter().filter(|step| step.contains("deliveries")).count();
    assert_eq!(looks, 2, "{steps:?}");
}
