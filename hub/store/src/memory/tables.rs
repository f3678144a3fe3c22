//! The tables of the memory store, and their rows.

use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::alert::{AlertRule, Channel, Incident};
use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::circuit::Circuit;
use seawall_hub_core::domain::dead_letter::{LetterGroup, LetterState};
use seawall_hub_core::domain::delivery::{
    DeliveryFacts, DeliveryId, DeliveryState, OrderFacts, RuleStatus, StoredState,
};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::key::Key;
use seawall_hub_core::domain::operation::Operation;
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::source::Source;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::port::store::StoredDelivery;

use super::table::CowTable;

/// All tables. A unit works on a clone of them, which takes their place if the unit succeeds.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    /// The id of the database, the first half of every id.
    pub(super) database: u64,
    /// How often the tables were opened.
    pub(super) epoch: u64,
    /// The last epoch that ended in an orderly way.
    pub(super) stopped: u64,
    /// The last number that was given to a row. No number is given twice.
    pub(super) last_number: u64,
    pub(super) services: CowTable<Slug, Service>,
    /// All versions of all rules.
    pub(super) rules: CowTable<(Slug, u64), Rule>,
    /// The current version of each rule that is not deleted.
    pub(super) current_rules: CowTable<Slug, u64>,
    pub(super) sources: CowTable<Slug, Source>,
    pub(super) alert_rules: CowTable<Slug, AlertRule>,
    pub(super) channels: CowTable<Slug, Channel>,
    pub(super) keys: CowTable<Slug, Key>,
    /// The changes of all circuits.
    pub(super) circuits: CowTable<u64, Circuit>,
    pub(super) audit: CowTable<u64, AuditEntry>,
    pub(super) incidents: CowTable<u64, Incident>,
    pub(super) once: CowTable<(&'static str, String), OnceRow>,
    pub(super) events: CowTable<u64, Event>,
    /// The numbers of events by id and source.
    pub(super) event_ids: CowTable<(String, String), u64>,
    pub(super) deliveries: CowTable<u64, DeliveryRow>,
    /// Dead letters by the number of their delivery.
    pub(super) letters: CowTable<u64, MemoryLetter>,
    pub(super) groups: CowTable<u64, LetterGroup>,
    pub(super) operations: CowTable<u64, Operation>,
}

/// What was first done under an idempotency key.
#[derive(Clone, Debug)]
pub(super) struct OnceRow {
    pub(super) fingerprint: [u8; 32],
    pub(super) note: String,
    pub(super) deliveries: Vec<DeliveryId>,
    pub(super) at: Millis,
    pub(super) until: Millis,
}

/// The row of a delivery: what transitions change, and what never changes.
#[derive(Clone, Debug)]
pub(super) struct DeliveryRow {
    pub(super) facts: DeliveryFacts,
    /// The number of its event.
    pub(super) event: u64,
    pub(super) rule: (Slug, u64),
    pub(super) service: Slug,
    pub(super) order: Option<String>,
    pub(super) replay_of: Option<u64>,
    pub(super) request: Vec<u8>,
    pub(super) attempts: Vec<Attempt>,
}

/// The row of a dead letter.
#[derive(Clone, Debug)]
pub(super) struct MemoryLetter {
    /// The number of its group.
    pub(super) group: u64,
    pub(super) state: LetterState,
    pub(super) at: Millis,
    pub(super) status: Option<u16>,
    pub(super) error: Option<String>,
    /// Whether its words can be found.
    pub(super) indexed: bool,
    pub(super) edited: bool,
    /// The delivery of the last replay, and when it started.
    pub(super) replayed: Option<(u64, Millis)>,
    pub(super) deleted: Option<Millis>,
    pub(super) note: Option<String>,
    /// The number of the operation that replayed it last.
    pub(super) operation: Option<u64>,
}

impl Tables {
    /// Returns a number for a new row.
    pub(super) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn id(&self, number: u64) -> DeliveryId {
        DeliveryId::new(self.database, number)
    }

    /// Returns the row of a delivery of this database.
    pub(super) fn delivery(&self, id: DeliveryId) -> Option<&DeliveryRow> {
        self.deliveries.get(&id.number).filter(|_| id.database == self.database)
    }

    pub(super) fn rule_status(&self, name: &Slug) -> RuleStatus {
        let current = self.current_rules.get(name);
        let rule = current.and_then(|version| self.rules.get(&(name.clone(), *version)));
        RuleStatus::of(rule.map(|rule| rule.enabled))
    }

    /// Returns the facts of an order: the deliveries of a rule with the same ordering key.
    pub(super) fn order(&self, rule: &Slug, key: &str) -> OrderFacts {
        let of_order = |row: &DeliveryRow| row.rule.0 == *rule && row.order.as_deref() == Some(key);
        let rows = self.deliveries.iter().filter(|(_, row)| of_order(row));
        OrderFacts::of(rows.map(|(number, row)| (*number, row.facts.state)))
    }

    /// Returns the order of a delivery, if it has one.
    pub(super) fn order_of(&self, number: u64) -> OrderFacts {
        let row = self.deliveries.get(&number);
        let order = row.and_then(|row| row.order.as_deref().map(|key| (&row.rule.0, key)));
        order.map(|(rule, key)| self.order(rule, key)).unwrap_or_default()
    }

    pub(super) fn set_state(&mut self, number: u64, state: StoredState) {
        if let Some(row) = self.deliveries.get_mut(&number) {
            row.facts.state = state;
        }
    }

    /// Returns the last replay of a dead letter with its state.
    pub(super) fn replay_of_letter(&self, letter: &MemoryLetter) -> Option<(u64, DeliveryState)> {
        let (number, _) = letter.replayed?;
        self.deliveries.get(&number).map(|row| (number, row.facts.state.shown()))
    }

    /// Returns a delivery as everybody sees it, with its request unless it is for a list.
    pub(super) fn stored(&self, number: u64, whole: bool) -> Option<StoredDelivery> {
        let row = self.deliveries.get(&number)?;
        let event = self.events.get(&row.event)?;
        let DeliveryFacts { state, epoch, due, progress, reason, crashes, suspicion, .. } = &row.facts;
        let request = if whole { row.request.clone() } else { Vec::new() };
        Some(StoredDelivery {
            id: self.id(number),
            event: event.id.clone(),
            source: event.source.clone(),
            event_accepted: event.accepted,
            trace: event.trace.as_deref().and_then(TraceId::of),
            rule: row.rule.clone(),
            service: row.service.clone(),
            state: state.shown(),
            epoch: *epoch,
            reason: *reason,
            due: *due,
            progress: *progress,
            order: row.order.clone(),
            is_suspect: *crashes > 0,
            on_probation: suspicion.crashes > 0,
            replay_of: row.replay_of.map(|number| self.id(number)),
            payload: if request.first() == Some(&1) { event.payload.clone() } else { Default::default() },
            request,
        })
    }
}
