//! The number of statements that each unit of work costs.
//!
//! Each statement costs the only writer some microseconds, for every event. The numbers may go down, and never up.

use std::sync::Arc;

use seawall_dist::deadletter::{Answer, Attempt};
use seawall_hub_core::domain::dead_letter::{FailureSummary, LetterFilter};
use seawall_hub_core::domain::delivery::{DeadLetterReason, Decision, DeliveryId, Disposition, Progress};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::event_type::EventType;
use seawall_hub_core::domain::operation::{
    BulkAction, Operation, OperationId, OperationProgress, OperationState, ReplayMode, ReplayPlan,
};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    BulkItem, Change, Claim, InitialState, LaneCapacity, LetterAction, LetterMove, NewDelivery,
    OperationStep, ReplayChange, Settlement,
};

use super::traced::{TracedWriter, ran};

const NOW: Millis = Millis(1_700_000_000_000);

fn new(order: Option<&str>) -> NewDelivery {
    NewDelivery {
        rule: (Slug::new("rule").unwrap(), 1),
        service: Slug::new("service").unwrap(),
        request: b"a request".to_vec(),
        initial: InitialState::Leased,
        order: order.map(ToOwned::to_owned),
    }
}

/// A claim of the first epoch, which is that of the writer.
fn claim(delivery: DeliveryId) -> Claim {
    Claim { delivery, epoch: 1 }
}

fn settlement(delivery: DeliveryId, disposition: Disposition) -> Settlement {
    let progress = Progress { accepted: NOW, counted: 1, failures: 1, panics: 0 };
    let answer = Answer { status: 500, headers: Vec::new(), body: b"no stock".to_vec() };
    Settlement {
        claim: claim(delivery),
        decision: Decision { disposition, progress, attempted: true, throttle: None },
        attempt: Some(Attempt { at: NOW, answer: Some(answer), ..Attempt::default() }),
        failure: Some(FailureSummary { status: Some(500), message: Some("no stock".into()) }),
        at: NOW,
        ordered: false,
        is_replay: false,
    }
}

const DEAD: Disposition = Disposition::DeadLetter { reason: DeadLetterReason::Attempts, holds_order: false };
const RETRY: Disposition = Disposition::Retry { due: NOW, stalled: false };

/// A hub at work, which counts the statements of each unit.
struct Counter {
    writer: TracedWriter,
    events: u32,
    counts: Vec<(&'static str, usize)>,
}

impl Counter {
    /// Accepts an event with one delivery.
    fn accept(&mut self, order: Option<&str>) -> DeliveryId {
        self.events += 1;
        let event = Event {
            id: self.events.to_string(),
            kind: EventType::new("a").unwrap(),
            source: "test".into(),
            payload: b"{}".to_vec().into(),
            fingerprint: [0; 32],
            accepted: NOW,
            trace: None,
            considered: 1,
            filtered: 0,
        };
        let made = self.writer.commit([Change::AddEvent(Arc::new(event), vec![new(order)])]).unwrap();
        made.deliveries[0].0
    }

    fn dead_letter(&mut self) -> DeliveryId {
        let id = self.accept(None);
        self.writer.commit([Change::Settle(settlement(id, DEAD))]).unwrap();
        id
    }

    fn replay(&self, dead: DeliveryId) -> DeliveryId {
        let replay = ReplayChange { dead, new: new(None), at: NOW, again: false, edited: false };
        self.writer.commit([Change::Replay(replay)]).unwrap().deliveries[0].0
    }

    fn commit(&self, change: Change) {
        self.writer.commit([change]).unwrap();
    }

    /// Counts the statements of a unit, without those that begin and end the transaction.
    fn count(&mut self, name: &'static str, unit: impl FnOnce(&mut Self)) {
        ran();
        unit(self);
        let statements = ran();
        assert!(statements[0].contains("IMMEDIATE") && statements.ends_with(&["COMMIT".into()]));
        self.counts.push((name, statements.len() - 2));
    }

    fn start_operation(&self) -> OperationId {
        let plan = ReplayPlan { mode: ReplayMode::Same, rate: 50, canary: Vec::new() };
        let operation = Operation {
            id: OperationId::new(0, 0),
            task: BulkAction::Replay(plan),
            filter: LetterFilter::default(),
            limit: None,
            total: 10,
            run: OperationState::Running,
            cause: None,
            failed_delivery: None,
            progress: OperationProgress::default(),
            cursor: 0,
            exhausted: false,
            who: "key".into(),
            reason: None,
            began: NOW,
            changed: NOW,
            ended: None,
        };
        self.writer.commit([Change::StartOperation(Box::new(operation))]).unwrap().operation.unwrap()
    }
}

fn step(operation: OperationId, from_cursor: u64, items: Vec<BulkItem>) -> Change {
    Change::AdvanceOperation(OperationStep {
        operation,
        items,
        skipped: 0,
        cause: None,
        failed_delivery: None,
        from_cursor,
        cursor: 1,
        exhausted: false,
        at: NOW,
    })
}

/// The number of statements of each unit, without those that begin and end the transaction. A change that lowers one lowers it here.
const BOUNDS: &[(&str, usize)] = &[
    ("accept an event with one delivery", 3),
    ("deliver at once", 1),
    ("fail and wait", 2),
    ("claim what is due", 7),
    ("return to the store", 1),
    ("dead letter in a new group", 7),
    ("dead letter in a known group", 6),
    ("accept one behind others of its order", 4),
    ("deliver the first of an order", 4),
    ("replay", 9),
    ("deliver a replay", 6),
    ("dead letter of a replay", 11),
    ("park", 4),
    ("delete", 6),
    ("restore", 6),
    ("purge", 8),
    ("bulk step with one replay", 13),
    ("bulk step that parks one", 8),
];

/// HUB-14: no unit of work costs more statements than it did.
#[test]
fn hub_14_no_unit_costs_more_statements_than_it_did() {
    let mut hub = Counter { writer: TracedWriter::new(), events: 0, counts: Vec::new() };
    hub.count("accept an event with one delivery", |hub| _ = hub.accept(None));
    let (delivered, failed, dead, alike) =
        (hub.accept(None), hub.accept(None), hub.accept(None), hub.accept(None));
    hub.count("deliver at once", |hub| {
        hub.commit(Change::Settle(settlement(delivered, Disposition::Delivered)));
    });
    hub.count("fail and wait", |hub| hub.commit(Change::Settle(settlement(failed, RETRY))));
    hub.count("claim what is due", |hub| {
        let room = LaneCapacity { service: new(None).service, fresh: 9, retries: 9, resume_before: None };
        assert_eq!(hub.writer.take(NOW, vec![room]).len(), 1);
    });
    hub.count("return to the store", |hub| hub.commit(Change::ReturnToStore(vec![claim(failed)])));
    hub.count("dead letter in a new group", |hub| hub.commit(Change::Settle(settlement(dead, DEAD))));
    hub.count("dead letter in a known group", |hub| hub.commit(Change::Settle(settlement(alike, DEAD))));

    hub.accept(Some("key"));
    hub.count("accept one behind others of its order", |hub| _ = hub.accept(Some("key")));
    let first = hub.accept(Some("other"));
    hub.accept(Some("other"));
    hub.count("deliver the first of an order", |hub| {
        let first = Settlement { ordered: true, ..settlement(first, Disposition::Delivered) };
        hub.commit(Change::Settle(first));
    });

    hub.count("replay", |hub| _ = hub.replay(dead));
    let (replayed, failing) = (hub.replay(alike), hub.dead_letter());
    let failing = hub.replay(failing);
    hub.count("deliver a replay", |hub| {
        let settled = Settlement { is_replay: true, ..settlement(replayed, Disposition::Delivered) };
        hub.commit(Change::Settle(settled));
    });
    hub.count("dead letter of a replay", |hub| {
        hub.commit(Change::Settle(Settlement { is_replay: true, ..settlement(failing, DEAD) }));
    });

    for (name, action) in [
        ("park", LetterAction::Park),
        ("delete", LetterAction::Delete),
        ("restore", LetterAction::Restore),
        ("purge", LetterAction::Purge),
    ] {
        let dead = hub.dead_letter();
        if action == LetterAction::Restore {
            hub.commit(Change::Move(LetterMove { dead, to: LetterAction::Delete, at: NOW }));
        }
        hub.count(name, |hub| hub.commit(Change::Move(LetterMove { dead, to: action, at: NOW })));
    }

    let (operation, dead, parked) = (hub.start_operation(), hub.dead_letter(), hub.dead_letter());
    hub.count("bulk step with one replay", |hub| {
        hub.commit(step(operation, 0, vec![BulkItem::Replay(dead, new(None))]));
    });
    hub.count("bulk step that parks one", |hub| {
        hub.commit(step(operation, 1, vec![BulkItem::Move(parked, LetterAction::Park)]));
    });
    assert_eq!(hub.counts, BOUNDS);
}
