//! Tests of the statements, each on a database of its own, with as many nodes as a test needs.

mod equivalence;
mod plans;
mod races;

use std::fmt::Write as _;
use std::sync::Arc;

use seawall::Clock;
use seawall_hub_core::domain::delivery::{DeliveryFacts, DeliveryId, StoredState};
use seawall_hub_core::port::store::Claim;
use seawall_testkit::servers::{self, Database};

use super::engine::address::Address;
use super::engine::connect::Connector;
use super::engine::session::Session;
use super::engine::telemetry::ConnectTelemetry;
use super::engine::{schema, tls};
use super::rows::{Columns, FACTS, facts};
use super::write::WRITER_SETTINGS;
use super::write::applier::{NodeId, UnitApplier};
use crate::record::{StoredNumber, step_to_number};

/// The era of every test.
const ERA: u64 = 77;

/// The names of a delivery, beside its facts.
#[derive(Clone, Copy, Debug)]
struct Names<'a> {
    service: &'a str,
    rule: &'a str,
    order: &'a str,
}

const USUAL: Names<'_> = Names { service: "service", rule: "rule", order: "key" };

/// A connection of a node.
struct TestNode {
    session: Session,
    id: NodeId,
}

impl TestNode {
    fn applier(&self) -> UnitApplier<'_> {
        UnitApplier::new(&self.session, self.id)
    }

    /// A claim of this node on a delivery.
    fn claim(&self, number: i64) -> Claim {
        Claim { delivery: DeliveryId::new(ERA, number.cast_unsigned()), epoch: self.id.epoch }
    }

    async fn text(&self, sql: &str) {
        self.session.run_text(sql).await.unwrap();
    }
}

/// A database whose deliveries are numbered from 1, with a node.
struct Table {
    database: Database,
    node: TestNode,
    rows: i64,
}

impl Table {
    /// Creates the tables, with a live node of this epoch.
    async fn new(epoch: u64) -> Self {
        // The server is started, and the database made, by programs that are waited for.
        let database = tokio::task::spawn_blocking(|| servers::Postgres::shared().database().unwrap());
        let database = database.await.unwrap();
        let node = TestNode { session: connect(&database).await, id: NodeId { epoch, era: ERA } };
        schema::migrate(&node.session).await.unwrap();
        let table = Table { database, node, rows: 0 };
        table.add_node(epoch).await;
        let event = "INSERT INTO events (number, id, source, kind, fingerprint, accepted, considered, filtered, payload)
             VALUES (nextval('event_numbers'), 'event', 'source', 'kind', decode(repeat('07', 32), 'hex'), 0, 0, 0, 'payload')";
        table.node.text(event).await;
        table
    }

    /// Connects as another live node.
    async fn another_node(&self, epoch: u64) -> TestNode {
        self.add_node(epoch).await;
        TestNode { session: connect(&self.database).await, id: NodeId { epoch, era: ERA } }
    }

    async fn add_node(&self, epoch: u64) {
        let nodes = format!(
            "INSERT INTO nodes (epoch, name, state, until, reclaimed)
                 VALUES ({epoch}, 'test', 0, clock_timestamp() + interval '1 h', false);
             INSERT INTO writers (epoch, slot, number) VALUES ({epoch}, 0, 0)"
        );
        self.node.text(&nodes).await;
    }

    /// Removes every delivery.
    async fn clear(&mut self) {
        self.node
            .text("TRUNCATE deliveries, work, outcomes, attempts, dead_letters, letter_groups, rules")
            .await;
        self.rows = 0;
    }

    async fn insert(&mut self, all: impl IntoIterator<Item = (&DeliveryFacts, Names<'_>)>) {
        let (mut deliveries, mut work, mut outcomes) = (String::new(), String::new(), String::new());
        for (facts, names) in all {
            self.rows += 1;
            let number = self.rows;
            let order = if facts.has_order { format!("'{}'", names.order) } else { "NULL".into() };
            let replay_of = if facts.is_replay { "0" } else { "NULL" };
            let Names { service, rule, .. } = names;
            let sep = |text: &str| if text.is_empty() { "" } else { "," };
            let separator = sep(&deliveries);
            write!(
                deliveries,
                "{separator}({number},{ERA},1,'{rule}',1,'{service}',{order},{replay_of},{replay_of},'\\x00')"
            )
            .unwrap();
            let row = row_text(facts);
            if facts.state.occupies_order() {
                let separator = sep(&work);
                let is_replay = facts.is_replay;
                write!(work, "{separator}({number},{row},'{service}','{rule}',{order},{is_replay})").unwrap();
            } else {
                let separator = sep(&outcomes);
                write!(outcomes, "{separator}({number},{row})").unwrap();
            }
        }
        let columns = "number, state, epoch, due, touched, accepted, counted, failures, panics, reason, crashes, against, step, starts";
        if !deliveries.is_empty() {
            let into = "INSERT INTO deliveries (number, era, event, rule, rule_version, service, ordering, replay_of, replay_era, request)";
            self.node.text(&format!("{into} VALUES {deliveries}")).await;
        }
        if !work.is_empty() {
            let into = format!("INSERT INTO work ({columns}, service, rule, ordering, is_replay)");
            self.node.text(&format!("{into} VALUES {work}")).await;
        }
        if !outcomes.is_empty() {
            self.node.text(&format!("INSERT INTO outcomes ({columns}) VALUES {outcomes}")).await;
        }
    }

    async fn insert_all(&mut self, all: &[DeliveryFacts]) {
        self.insert(all.iter().map(|facts| (facts, USUAL))).await;
    }

    /// Returns all rows in the order of their numbers.
    async fn all(&self) -> Vec<DeliveryFacts> {
        let sql = format!(
            "SELECT {FACTS} FROM progress p JOIN deliveries d ON d.number = p.number ORDER BY p.number"
        );
        let rows = self.node.session.rows(&sql, &[]).await.unwrap();
        rows.iter().map(|row| facts(&mut Columns::new("progress", row)).unwrap()).collect()
    }

    /// Fails unless the node has run each of these statements.
    #[track_caller]
    fn assert_proved(&self, statements: &[&str]) {
        for statement in statements {
            assert!(self.node.session.has_run(statement), "not run: {statement}");
        }
    }
}

fn row_text(facts: &DeliveryFacts) -> String {
    let DeliveryFacts { state, epoch, due, touched, progress, reason, crashes, suspicion, starts, .. } =
        facts;
    let reason = reason.map_or("NULL".into(), |reason| reason.to_number().to_string());
    let starts = starts.as_ref().map_or("NULL".into(), |starts| format!("'{starts}'"));
    format!(
        "{},{epoch},{},{},{},{},{},{},{reason},{crashes},{},{},{starts}",
        StoredState::to_number(*state),
        due.0,
        touched.0,
        progress.accepted.0,
        progress.counted,
        progress.failures,
        progress.panics,
        suspicion.crashes,
        step_to_number(suspicion.step)
    )
}

async fn connect(database: &Database) -> Session {
    let address = Address::parse(database.url(), "test").unwrap();
    let telemetry = Arc::new(ConnectTelemetry::new(Clock::system()));
    let tls = tls::connector(&address.tls).unwrap();
    let connector = Connector { tls, address, telemetry, settings: WRITER_SETTINGS };
    connector.connect().await.ok().unwrap()
}
