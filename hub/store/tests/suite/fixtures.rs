//! What the functions of the suite build on: services, rules, events, deliveries, and short ways to commit them.

pub(crate) use std::sync::Arc;
pub(crate) use std::time::Duration;

pub(crate) use seawall_dist::deadletter::{Answer, Attempt, SentRequest};
pub(crate) use seawall_hub_core::domain::dead_letter::FailureSummary;
pub(crate) use seawall_hub_core::domain::delivery::{
    DeadLetterReason, Decision, DeliveryId, DeliveryState, Disposition, FailureCounting, Progress, Schedule,
};
pub(crate) use seawall_hub_core::domain::event::Event;
pub(crate) use seawall_hub_core::domain::event_type::{EventType, Pattern};
pub(crate) use seawall_hub_core::domain::rule::{OrderingRule, Rule};
pub(crate) use seawall_hub_core::domain::service::{SealedSecret, Service};
pub(crate) use seawall_hub_core::domain::slug::Slug;
pub(crate) use seawall_hub_core::domain::time::Millis;
pub(crate) use seawall_hub_core::port::store::*;

pub(crate) const NOW: Millis = Millis(1_700_000_000_000);

pub(crate) const DELIVERED: Decision = Decision {
    disposition: Disposition::Delivered,
    progress: Progress { accepted: NOW, counted: 0, failures: 0, panics: 0 },
    attempted: true,
    throttle: None,
};

pub(crate) fn retry(due: Millis, progress: Progress, stalled: bool) -> Decision {
    Decision { disposition: Disposition::Retry { due, stalled }, progress, ..DELIVERED }
}

/// The end of a delivery after its last attempt.
pub(crate) fn dead(reason: DeadLetterReason) -> Decision {
    let disposition = Disposition::DeadLetter { reason, holds_order: false };
    Decision { disposition, progress: SPENT, ..DELIVERED }
}

/// The claim of this process on a delivery.
pub(crate) fn claim(store: &impl Store, delivery: DeliveryId) -> Claim {
    Claim { delivery, epoch: store.epoch() }
}

/// The settlement of a decision, without an attempt to record.
pub(crate) fn settlement(claim: Claim, decision: Decision) -> Settlement {
    Settlement { claim, decision, attempt: None, failure: None, at: NOW, ordered: false, is_replay: false }
}

pub(crate) fn slug(name: &str) -> Slug {
    Slug::new(name).unwrap()
}

pub(crate) fn service(name: &str, version: u64) -> Service {
    Service {
        version,
        headers: vec![("x-team".into(), "shop \"7\"".into())],
        auth: Some(SealedSecret(vec![0, 159, 146, 150])),
        policy: "{\"preset\":\"critical\"}".into(),
        paused: version.is_multiple_of(2),
        changed: NOW,
        ..Service::new(slug(name), "https://billing.example/api")
    }
}

pub(crate) fn rule(name: &str, version: u64) -> Rule {
    Rule {
        name: slug(name),
        version,
        events: Pattern::new("order.*").unwrap(),
        filter: Some("data.total > 100".into()),
        service: slug("billing"),
        method: "POST".into(),
        path: "/invoices/{{ data.id }}".into(),
        headers: vec![],
        body: Some("{\"order\":\"{{ data.id }}\"}".into()),
        schedule: Schedule { count: FailureCounting::All, attempts: Some(7), ..Schedule::default() },
        ordering: None,
        enabled: true,
        note: None,
        changed: NOW,
    }
}

pub(crate) fn event(id: &str) -> Arc<Event> {
    Arc::new(Event {
        id: id.into(),
        kind: EventType::new("order.created").unwrap(),
        source: "shop".into(),
        payload: format!("{{\"id\":\"{id}\"}}").into(),
        fingerprint: [7; 32],
        accepted: NOW,
        trace: Some("00-1-1-01".into()),
        considered: 2,
        filtered: 1,
    })
}

pub(crate) fn to(service: &str) -> NewDelivery {
    NewDelivery {
        rule: (slug("invoices"), 3),
        service: slug(service),
        request: format!("to {service}").into_bytes(),
        initial: InitialState::Leased,
        order: None,
    }
}

pub(crate) fn unit(changes: impl IntoIterator<Item = Change>) -> UnitOfWork {
    UnitOfWork { changes: changes.into_iter().collect() }
}

pub(crate) async fn add(
    store: &impl Store,
    id: &str,
    deliveries: &[&str],
) -> Result<CommitResult, StoreError> {
    let deliveries = deliveries.iter().map(|service| to(service)).collect();
    store.commit(WritePriority::Ingest, unit([Change::AddEvent(event(id), deliveries)])).await
}

pub(crate) fn attempt() -> Attempt {
    Attempt {
        at: NOW,
        took: Duration::from_micros(1_234),
        sent: Some(SentRequest {
            line: "POST https://x/y".into(),
            headers: vec![("x-team".into(), "7".into())],
        }),
        error: Some("down".into()),
        answer: Some(Answer {
            status: 500,
            headers: vec![("retry-after".into(), "7".into())],
            body: vec![1, 2],
        }),
    }
}

pub(crate) const SPENT: Progress = Progress { accepted: NOW, counted: 5, failures: 5, panics: 0 };

pub(crate) async fn settle(
    store: &impl Store,
    delivery: DeliveryId,
    decision: Decision,
) -> Result<CommitResult, StoreError> {
    let (attempt, settlement) = (attempt(), settlement(claim(store, delivery), decision));
    let failure = Some(FailureSummary::of_attempt(&attempt));
    let settlement = Settlement { attempt: Some(attempt), failure, ..settlement };
    store.commit(WritePriority::Outcomes, unit([Change::Settle(settlement)])).await
}

pub(crate) trait Names {
    fn names(&self) -> Vec<DeliveryId>;
}

impl Names for CommitResult {
    fn names(&self) -> Vec<DeliveryId> {
        self.deliveries.iter().map(|(id, _)| *id).collect()
    }
}

/// What is due of all services, up to so many of each.
pub(crate) async fn due(
    store: &impl Store,
    now: Millis,
    limit: usize,
) -> Result<Vec<StoredDelivery>, StoreError> {
    let room = |service: &str| LaneCapacity {
        service: slug(service),
        fresh: limit,
        retries: limit,
        resume_before: None,
    };
    store.take_due(now, ["billing", "mail", "search"].map(room).into()).await
}

pub(crate) async fn kept(store: &impl Store, id: DeliveryId) -> StoredDelivery {
    store.delivery(id).await.unwrap().unwrap().0
}

/// Commits one change, as an operator does.
pub(crate) async fn put(store: &impl Store, change: Change) -> Result<CommitResult, StoreError> {
    store.commit(WritePriority::Admin, unit([change])).await
}

/// Adds an event with these deliveries.
pub(crate) async fn add_all(store: &impl Store, id: &str, deliveries: Vec<NewDelivery>) -> CommitResult {
    store.commit(WritePriority::Ingest, unit([Change::AddEvent(event(id), deliveries)])).await.unwrap()
}
