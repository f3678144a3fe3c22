//! Every table with the columns that both databases have, and how SQLite reads and writes them.
//!
//! The columns are those of PostgreSQL. What SQLite keeps in another form is brought into it by the query, or by a [`Form`]. The
//! full-text index is in no table here: the hub builds it anew.

use seawall_hub_core::domain::delivery::DeliveryId;
use tokio_postgres::types::Type;

use super::cell::{Cell, Row};
use crate::sql::sql;

/// A table and its columns.
pub(crate) struct CopiedTable {
    /// The name in PostgreSQL.
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, Type)],
    /// Reads the columns from SQLite; `?1` is the era of the database.
    pub(crate) read: &'static str,
    /// Each writes a row to SQLite, or a part of it.
    pub(crate) write: &'static [&'static str],
    pub(crate) form: RowForm,
    /// The sequence of the numbers, and whose numbers they are.
    pub(crate) sequence: Option<(&'static str, &'static str)>,
}

/// What a query of SQLite can't bring into the form of PostgreSQL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowForm {
    Same,
    /// SQLite has the numbers of deliveries as JSON in this column, PostgreSQL has ids.
    DeliveryIds(usize),
    /// SQLite has the number of a delivery in this column, PostgreSQL has its id.
    DeliveryId(usize),
    /// SQLite has columns, PostgreSQL has a document.
    Incident,
}

const BIG: Type = Type::INT8;
const INT: Type = Type::INT4;
const SMALL: Type = Type::INT2;
const FLAG: Type = Type::BOOL;
const TEXT: Type = Type::TEXT;
const BYTES: Type = Type::BYTEA;

/// All tables, in the order in which they are copied.
#[rustfmt::skip]
pub(crate) const TABLES: &[CopiedTable] = &[
    CopiedTable { name: "services", form: RowForm::Same, sequence: None,
        columns: &[("name", TEXT), ("version", BIG), ("document", TEXT)],
        read: "SELECT name, version, document FROM services",
        write: &["INSERT INTO services (name, version, document) VALUES (?1, ?2, ?3)"] },
    CopiedTable { name: "rules", form: RowForm::Same, sequence: None,
        columns: &[("name", TEXT), ("version", BIG), ("current", FLAG), ("service", TEXT), ("enabled", FLAG), ("document", TEXT)],
        read: "SELECT name, version, current, service, enabled, document FROM rules",
        write: &["INSERT INTO rules (name, version, current, service, enabled, document) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"] },
    CopiedTable { name: "sources", form: RowForm::Same, sequence: None,
        columns: &[("name", TEXT), ("version", BIG), ("enabled", FLAG), ("document", TEXT)],
        read: "SELECT name, version, enabled, document FROM sources",
        write: &["INSERT INTO sources (name, version, enabled, document) VALUES (?1, ?2, ?3, ?4)"] },
    CopiedTable { name: "keys", form: RowForm::Same, sequence: None,
        columns: &[("name", TEXT), ("document", TEXT)],
        read: "SELECT name, document FROM keys",
        write: &["INSERT INTO keys (name, document) VALUES (?1, ?2)"] },
    CopiedTable { name: "alert_rules", form: RowForm::Same, sequence: None,
        columns: &[("name", TEXT), ("version", BIG), ("enabled", FLAG), ("document", TEXT)],
        read: "SELECT name, version, enabled, document FROM alert_rules",
        write: &["INSERT INTO alert_rules (name, version, enabled, document) VALUES (?1, ?2, ?3, ?4)"] },
    CopiedTable { name: "alert_channels", form: RowForm::Same, sequence: None,
        columns: &[("name", TEXT), ("version", BIG), ("document", TEXT)],
        read: "SELECT name, version, document FROM alert_channels",
        write: &["INSERT INTO alert_channels (name, version, document) VALUES (?1, ?2, ?3)"] },
    CopiedTable { name: "audit", form: RowForm::Same, sequence: Some(("audit_number_seq", "number")),
        columns: &[("number", BIG), ("at", BIG), ("who", TEXT), ("action", TEXT), ("target", TEXT), ("reason", TEXT), ("trace", TEXT)],
        read: "SELECT number, at, who, action, target, reason, trace FROM audit",
        write: &["INSERT INTO audit (number, at, who, action, target, reason, trace) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"] },
    CopiedTable { name: "circuits", form: RowForm::Same, sequence: Some(("circuits_number_seq", "number")),
        columns: &[("number", BIG), ("service", TEXT), ("state", TEXT), ("until", BIG), ("trips", BIG), ("reason", TEXT), ("changed", BIG)],
        read: "SELECT number, service, state, until, trips, reason, changed FROM circuits",
        write: &["INSERT INTO circuits (number, service, state, until, trips, reason, changed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"] },
    CopiedTable { name: "once", form: RowForm::DeliveryIds(4), sequence: None,
        columns: &[("scope", TEXT), ("key", TEXT), ("fingerprint", BYTES), ("note", TEXT), ("deliveries", Type::TEXT_ARRAY), ("until", BIG),
            ("at", BIG)],
        // A key is kept for a day.
        read: "SELECT scope, key, fingerprint, note, deliveries, until, until - 86400000 FROM once",
        write: &["INSERT INTO once (scope, key, fingerprint, note, deliveries, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"] },
    CopiedTable { name: "events", form: RowForm::Same, sequence: Some(("event_numbers", "number")),
        columns: &[("number", BIG), ("id", TEXT), ("source", TEXT), ("kind", TEXT), ("fingerprint", BYTES), ("accepted", BIG),
            ("considered", INT), ("filtered", INT), ("trace", TEXT), ("payload", BYTES)],
        read: "SELECT number, id, source, kind, fingerprint, accepted, considered, filtered, trace, payload FROM events",
        write: &["INSERT INTO events (number, id, source, kind, fingerprint, accepted, considered, filtered, trace, payload)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"] },
    CopiedTable { name: "deliveries", form: RowForm::Same, sequence: Some(("delivery_numbers", "number")),
        columns: &[("number", BIG), ("era", BIG), ("event", BIG), ("rule", TEXT), ("rule_version", BIG), ("service", TEXT),
            ("ordering", TEXT), ("replay_of", BIG), ("replay_era", BIG), ("request", BYTES)],
        read: "SELECT d.number, ?1, d.event, d.rule, d.rule_version, d.service, d.ordering, d.replay_of,
            iif(d.replay_of IS NULL, NULL, ?1), coalesce(r.request, x'') FROM deliveries d LEFT JOIN requests r ON r.delivery = d.number",
        // The state comes with the next tables. Until then it is one that no index has.
        write: &["INSERT INTO deliveries (number, event, rule, rule_version, service, ordering, replay_of, state, epoch, due, touched,
            accepted, counted, failures) VALUES (?1, ?3, ?4, ?5, ?6, ?7, ?8, 8, 0, 0, 0, 0, 0, 0)",
            "INSERT INTO requests (delivery, request) VALUES (?1, ?10)"] },
    CopiedTable { name: "work", form: RowForm::Same, sequence: None,
        columns: &[("number", BIG), ("service", TEXT), ("rule", TEXT), ("ordering", TEXT), ("is_replay", FLAG), ("state", SMALL),
            ("epoch", BIG), ("due", BIG), ("touched", BIG), ("accepted", BIG), ("counted", INT), ("failures", INT), ("panics", INT),
            ("reason", SMALL), ("crashes", INT), ("against", INT), ("step", SMALL), ("starts", TEXT)],
        read: sql!("SELECT number, service, rule, ordering, replay_of IS NOT NULL, state, epoch, due, touched, accepted, counted,
            failures, panics, reason, crashes, against, step, starts FROM deliveries WHERE state < " DELIVERED),
        write: &["UPDATE deliveries SET state = ?6, epoch = ?7, due = ?8, touched = ?9, accepted = ?10, counted = ?11, failures = ?12,
            panics = ?13, reason = ?14, crashes = ?15, against = ?16, step = ?17, starts = ?18 WHERE number = ?1"] },
    CopiedTable { name: "outcomes", form: RowForm::Same, sequence: None,
        columns: &[("number", BIG), ("state", SMALL), ("epoch", BIG), ("due", BIG), ("touched", BIG), ("accepted", BIG),
            ("counted", INT), ("failures", INT), ("panics", INT), ("reason", SMALL), ("crashes", INT), ("against", INT), ("step", SMALL),
            ("starts", TEXT), ("took", BIG), ("status", INT), ("answer", BYTES)],
        read: sql!("SELECT number, state, epoch, due, touched, accepted, counted, failures, panics, reason, crashes, against, step, starts,
            took, status, answer FROM deliveries WHERE state >= " DELIVERED),
        write: &["UPDATE deliveries SET state = ?2, epoch = ?3, due = ?4, touched = ?5, accepted = ?6, counted = ?7, failures = ?8,
            panics = ?9, reason = ?10, crashes = ?11, against = ?12, step = ?13, starts = ?14, took = ?15, status = ?16,
            answer = ?17 WHERE number = ?1"] },
    CopiedTable { name: "attempts", form: RowForm::Same, sequence: None,
        columns: &[("delivery", BIG), ("number", INT), ("at", BIG), ("took", BIG), ("status", INT), ("error", TEXT), ("sent", TEXT),
            ("headers", TEXT), ("answer", BYTES)],
        read: "SELECT delivery, number, at, took, status, error, sent, headers, answer FROM attempts",
        write: &["INSERT INTO attempts (delivery, number, at, took, status, error, sent, headers, answer)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"] },
    CopiedTable { name: "dead_letters", form: RowForm::Same, sequence: None,
        columns: &[("delivery", BIG), ("grouping", BIG), ("standing", SMALL), ("at", BIG), ("status", INT), ("replayed", BIG),
            ("replayed_at", BIG), ("operation", BIG), ("discarded", BIG), ("edited", FLAG), ("note", TEXT), ("error", TEXT)],
        read: "SELECT delivery, grouping, standing, at, status, replayed, replayed_at, operation, discarded, edited, note, error
            FROM dead_letters",
        write: &["INSERT INTO dead_letters (delivery, grouping, standing, at, status, replayed, replayed_at, operation, discarded, edited,
            note, error, indexed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 0)"] },
    CopiedTable { name: "letter_groups", form: RowForm::Same, sequence: Some(("letter_groups_number_seq", "number")),
        columns: &[("number", BIG), ("fingerprint", BIG), ("service", TEXT), ("rule", TEXT), ("reason", SMALL), ("status", INT),
            ("message", TEXT), ("state", SMALL), ("note", TEXT), ("first", BIG), ("last", BIG), ("reopened", INT), ("open", BIG),
            ("replaying", BIG), ("delivered", BIG), ("failed_again", BIG), ("parked", BIG), ("deleted", BIG)],
        read: "SELECT number, fingerprint, service, rule, reason, status, message, state, note, first, last, reopened, open, replaying,
            delivered, failed_again, parked, deleted FROM letter_groups",
        write: &["INSERT INTO letter_groups (number, fingerprint, service, rule, reason, status, message, state, note, first, last,
            reopened, open, replaying, delivered, failed_again, parked, deleted)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)"] },
    CopiedTable { name: "operations", form: RowForm::DeliveryId(9), sequence: Some(("operations_number_seq", "number")),
        columns: &[("number", BIG), ("era", BIG), ("task", SMALL), ("plan", TEXT), ("filter", TEXT), ("most", BIG), ("total", BIG),
            ("run", SMALL), ("why", TEXT), ("failed_delivery", TEXT), ("begun", BIG), ("skipped", BIG), ("tried", BIG),
            ("faltered", BIG), ("delivered", BIG), ("failed", BIG), ("cursor", BIG), ("looked", FLAG), ("who", TEXT),
            ("reason", TEXT), ("began", BIG), ("changed", BIG), ("ended", BIG)],
        read: "SELECT number, ?1, task, plan, filter, most, total, run, why, failed_delivery, begun, skipped, tried, faltered, delivered,
            failed, cursor, looked, who, reason, began, changed, ended FROM operations",
        write: &["INSERT INTO operations (number, task, plan, filter, most, total, run, why, failed_delivery, begun, skipped, tried,
            faltered, delivered, failed, cursor, looked, who, reason, began, changed, ended)
            VALUES (?1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)"] },
    CopiedTable { name: "incidents", form: RowForm::Incident, sequence: Some(("incidents_number_seq", "number")),
        columns: &[("number", BIG), ("id", TEXT), ("live", FLAG), ("is_open", FLAG), ("rule", TEXT), ("severity", TEXT),
            ("service", TEXT), ("resolved", BIG), ("document", TEXT)],
        read: "", write: &[] },
];

impl CopiedTable {
    /// The names of the columns, with commas.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    pub(crate) fn kinds(&self) -> Vec<Type> {
        self.columns.iter().map(|(_, kind)| kind.clone()).collect()
    }
}

impl RowForm {
    /// Brings a row of SQLite into the form of PostgreSQL.
    pub(crate) fn widen(self, row: &mut Row, era: i64) {
        let id = |number: i64| DeliveryId::new(era.cast_unsigned(), number.cast_unsigned()).to_string();
        match self {
            RowForm::Same | RowForm::Incident => {}
            RowForm::DeliveryId(column) => {
                if let Cell::Integer(number) = row[column] {
                    row[column] = Cell::Text(id(number));
                }
            }
            RowForm::DeliveryIds(column) => {
                let numbers: Vec<i64> = serde_json::from_str(row[column].text()).unwrap_or_default();
                let ids: Vec<String> = numbers.into_iter().map(id).collect();
                row[column] = Cell::Text(serde_json::Value::from(ids).to_string());
            }
        }
    }

    /// Brings a row of PostgreSQL into the form of SQLite.
    pub(crate) fn narrow(self, row: &mut Row) {
        let number = |id: &str| DeliveryId::parse(id).map(|id| id.number.cast_signed());
        match self {
            RowForm::Same | RowForm::Incident => {}
            RowForm::DeliveryId(column) => row[column] = number(row[column].text()).into(),
            RowForm::DeliveryIds(column) => {
                let ids: Vec<String> = serde_json::from_str(row[column].text()).unwrap_or_default();
                let numbers: Vec<i64> = ids.iter().filter_map(|id| number(id)).collect();
                row[column] = Cell::Text(serde_json::Value::from(numbers).to_string());
            }
        }
    }
}
