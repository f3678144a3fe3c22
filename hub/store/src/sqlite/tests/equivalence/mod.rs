//! Every statement of `set_based.rs` against the function of the domain that it stands for.
//!
//! Each test inserts every combination of the facts, runs the change as a unit of work would, and demands for each row what the
//! function says. It then names the statements that it has proved, and fails if one of them was not run.

mod deliveries;
mod orders;
mod restart;
mod retention;

use rusqlite::{Connection, params};
use seawall_hub_core::domain::delivery::suspects::HandlingStep;
use seawall_hub_core::domain::delivery::{DeliveryFacts, DeliveryId, Progress, StoredState};
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::Claim;

use super::traced::{ran, trace};
use crate::record::{self, StoredNumber};
use crate::sqlite::engine::schema::{self, StartInfo};
use crate::sqlite::write::{self, UnitApplier};
use crate::sqlite::{read, rows};
use crate::tests::{NOW, assert_rows, every_row, row};

/// The names of a delivery, beside its facts.
#[derive(Clone, Copy, Debug)]
struct Names<'a> {
    service: &'a str,
    rule: &'a str,
    order: &'a str,
}

const USUAL: Names<'_> = Names { service: "service", rule: "rule", order: "key" };

/// A database in memory whose deliveries are numbered from 1.
struct Table {
    connection: Connection,
    start: StartInfo,
    rows: i64,
}

impl Table {
    fn new() -> Self {
        ran();
        let mut connection = Connection::open_in_memory().unwrap();
        let start = schema::prepare(&mut connection, &[]).unwrap();
        trace(&connection);
        Table { connection, start, rows: 0 }
    }

    /// Begins another epoch, as a restart does.
    fn restarted(&mut self) -> u64 {
        self.connection.execute("UPDATE meta SET epoch = epoch + 1", []).unwrap();
        self.start.epoch += 1;
        self.start.epoch
    }

    fn applier(&self) -> UnitApplier<'_> {
        UnitApplier::new(&self.connection, self.start)
    }

    fn id(&self, number: i64) -> DeliveryId {
        DeliveryId::new(self.start.database, number.cast_unsigned())
    }

    /// A claim under the present epoch.
    fn claim(&self, number: i64) -> Claim {
        Claim { delivery: self.id(number), epoch: self.start.epoch }
    }

    fn insert(&mut self, facts: &DeliveryFacts, names: Names<'_>) -> i64 {
        self.rows += 1;
        let DeliveryFacts { progress, suspicion, .. } = facts;
        let sql = "INSERT INTO deliveries (number, event, state, epoch, due, touched, accepted, counted, failures, panics, reason,
                   ordering, replay_of, crashes, against, step, starts, rule_version, rule, service)
                   VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, 1, ?17, ?18)";
        let values = params![
            self.rows,
            facts.state.to_number(),
            facts.epoch.cast_signed(),
            facts.due.0,
            facts.touched.0,
            progress.accepted.0,
            progress.counted,
            progress.failures,
            progress.panics,
            facts.reason.map(StoredNumber::to_number),
            facts.has_order.then_some(names.order),
            facts.is_replay.then_some(0),
            facts.crashes,
            suspicion.crashes,
            record::step_to_number(suspicion.step),
            facts.starts,
            names.rule,
            names.service,
        ];
        self.connection.prepare_cached(sql).unwrap().execute(values).unwrap();
        self.rows
    }

    fn insert_all<'r>(&mut self, all: impl IntoIterator<Item = &'r DeliveryFacts>) {
        for facts in all {
            self.insert(facts, USUAL);
        }
    }

    /// Returns all rows in the order of their numbers.
    fn all(&self) -> Vec<DeliveryFacts> {
        let sql = format!("SELECT {} FROM deliveries ORDER BY number", rows::FACTS);
        let mut statement = self.connection.prepare(&sql).unwrap();
        statement.query_map([], rows::facts).unwrap().map(Result::unwrap).collect()
    }
}

/// Fails unless each of these statements was run on this thread since the table was made.
#[track_caller]
fn assert_proved(statements: &[&str]) {
    let ran = ran();
    for statement in statements {
        assert!(ran.iter().any(|ran| ran.contains(statement)), "not run: {statement}");
    }
}
