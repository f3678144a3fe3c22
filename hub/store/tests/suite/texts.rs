//! Texts come back as they were put in, whatever characters they have: they come from outside, and each database has some that it
//! can't hold as they are.

use seawall_dist::idempotency::KEPT;
use seawall_hub_core::domain::alert::{
    Acknowledgement, ConditionKind, Incident, Mute, NoticeKind, Resolution, Severity,
};
use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::circuit::{Circuit, CircuitState};
use seawall_hub_core::domain::dead_letter::{
    FailureSignature, Fingerprint, GroupFilter, LetterFilter, LetterState, Visibility,
};
use seawall_hub_core::domain::key::{Key, Scope};
use seawall_hub_core::domain::operation::{
    BulkAction, Operation, OperationId, OperationProgress, OperationState, OperationTransition,
};
use seawall_hub_core::domain::source::Source;

use super::StoreFactory;
use super::fixtures::*;

const ALL: PageRequest = PageRequest { from: None, size: 100 };

/// Returns a text with U+0000 and with what a store may escape it with.
fn odd(text: &str) -> String {
    format!("{text}\0\u{1}\u{2}\\0'\"\u{7f}\u{fffd}\0")
}

fn odd_event(id: &str) -> Event {
    Event {
        id: odd(id),
        source: odd("shop"),
        trace: Some(odd("00-1-1-01")),
        payload: odd("\"payload\"").into(),
        ..Event::clone(&event(id))
    }
}

fn odd_attempt() -> Attempt {
    Attempt {
        sent: Some(SentRequest { line: odd("POST /"), headers: vec![(odd("x-team"), odd("7"))] }),
        error: Some(odd("reset")),
        answer: Some(Answer {
            status: 503,
            headers: vec![(odd("server"), odd("old"))],
            body: odd("no").into_bytes(),
        }),
        ..attempt()
    }
}

/// HUB-14, HUB-3, HUB-5: an event, its delivery and the attempts keep their texts, and are found by them.
pub(crate) async fn hub_14_texts_of_deliveries_come_back<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let new = NewDelivery { order: Some(odd("customer")), request: odd("request").into(), ..to("billing") };
    let record = IdempotencyRecord {
        scope: "events",
        key: odd("key"),
        fingerprint: [3; 32],
        note: odd("note"),
        at: NOW,
    };
    let added = unit([
        Change::ClaimKey(record.clone()),
        Change::AddEvent(Arc::new(odd_event("evt")), vec![new.clone()]),
    ]);
    let id = store.commit(WritePriority::Ingest, added).await.unwrap().names()[0];
    // The escaped form of one text is another text.
    let other = Event { id: stored_elsewhere(&odd("evt")), ..odd_event("other") };
    put(&store, Change::AddEvent(Arc::new(other.clone()), Vec::new())).await.unwrap();
    assert_eq!(store.claimed("events", &record.key).await.unwrap(), Some(record.clone()));
    assert_eq!(store.claimed("events", "key").await.unwrap(), None);
    let again =
        put(&store, Change::ClaimKey(IdempotencyRecord { at: NOW + KEPT / 2, ..record.clone() })).await;
    let IdempotencyRecord { fingerprint, note, .. } = record;
    assert_eq!(again, Err(StoreError::AlreadyApplied { fingerprint, note, deliveries: vec![id] }));
    for source in [None, Some(odd("shop"))] {
        assert_eq!(store.event(&odd("evt"), source.as_deref()).await.unwrap(), Some(odd_event("evt")));
        assert_eq!(store.event(&other.id, source.as_deref()).await.unwrap(), Some(other.clone()));
    }
    let twice = put(&store, Change::AddEvent(Arc::new(odd_event("evt")), Vec::new())).await;
    assert!(matches!(twice, Err(StoreError::EventExists { .. })), "{twice:?}");

    let progress = Progress { failures: 1, ..SPENT };
    let settlement = settlement(claim(&store, id), retry(NOW, progress, false));
    let settlement = Settlement { attempt: Some(odd_attempt()), ordered: true, ..settlement };
    store.commit(WritePriority::Outcomes, unit([Change::Settle(settlement)])).await.unwrap();
    let (stored, attempts) = store.delivery(id).await.unwrap().unwrap();
    assert_eq!((stored.event, stored.source, stored.order), (odd("evt"), odd("shop"), new.order));
    assert_eq!((stored.request, attempts), (new.request, vec![odd_attempt()]));
    let sources = Some(vec![odd("shop")]);
    let found = store.events(EventFilter { sources: sources.clone(), ..EventFilter::default() }, ALL).await;
    assert_eq!(found.unwrap().items.len(), 2);
    let filter = DeliveryFilter { sources, event: Some(odd("evt")), ..DeliveryFilter::default() };
    assert_eq!(store.deliveries(filter, ALL).await.unwrap().items.len(), 1);
}

/// Returns a text as a store may hold this one.
fn stored_elsewhere(text: &str) -> String {
    text.replace('\u{1}', "\u{1}\u{2}").replace('\0', "\u{1}\u{1}")
}

/// HUB-14, HUB-6: dead letters, their groups and operations keep their texts, and are found by them.
pub(crate) async fn hub_14_texts_of_dead_letters_come_back<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let added = Change::AddEvent(Arc::new(odd_event("evt")), vec![to("billing")]);
    let id = store.commit(WritePriority::Ingest, unit([added])).await.unwrap().names()[0];
    let failure = FailureSummary { status: Some(503), message: Some(odd("no stock")) };
    let reason = DeadLetterReason::Refused;
    let settlement = settlement(claim(&store, id), dead(reason));
    let settlement =
        Settlement { attempt: Some(odd_attempt()), failure: Some(failure.clone()), ..settlement };
    store.commit(WritePriority::Outcomes, unit([Change::Settle(settlement)])).await.unwrap();
    let signature = FailureSignature::new(slug("billing"), slug("invoices"), reason, &failure);
    let fingerprint = Fingerprint::of(&signature);
    put(&store, Change::Note(Annotation::Letter { dead: id, note: Some(odd("letter")) })).await.unwrap();
    put(&store, Change::Note(Annotation::Group { fingerprint, note: Some(odd("group")) })).await.unwrap();

    let filter = LetterFilter {
        event: Some(odd("evt")),
        within: Visibility { sources: Some(vec![odd("shop")]), services: None },
        ..LetterFilter::default()
    };
    let found = store.dead_letters(filter.clone(), ALL).await.unwrap().page.items;
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].error, &found[0].note), (&failure.message, &Some(odd("letter"))));
    assert_eq!((&found[0].source, found[0].state), (&odd("shop"), LetterState::Open));
    let whole = store.dead_letter(id).await.unwrap().unwrap();
    assert_eq!((whole.event, whole.attempts), (odd_event("evt"), vec![odd_attempt()]));
    let groups = store.groups(GroupFilter::default(), ALL).await.unwrap().items;
    assert_eq!((groups.len(), &groups[0].failure, &groups[0].note), (1, &signature, &Some(odd("group"))));
    // It is in the index too, and found by the words beside the odd characters.
    put(&store, Change::Index { limit: 10 }).await.unwrap();
    for text in ["evt", &odd("evt"), "payload", &format!("\"{}\"", odd("reset"))] {
        let filter = LetterFilter { text: Some(text.to_owned()), ..filter.clone() };
        assert_eq!(store.count_letters(filter, 10).await.unwrap().count, 1, "{text:?}");
    }

    let operation = Operation {
        id: OperationId::new(0, 0),
        task: BulkAction::Park,
        filter: LetterFilter { text: Some(odd("no stock")), ..filter },
        limit: None,
        total: 1,
        run: OperationState::Running,
        cause: Some(odd("cause")),
        failed_delivery: Some(id),
        progress: OperationProgress::default(),
        cursor: 0,
        exhausted: false,
        who: odd("ann"),
        reason: Some(odd("a fix")),
        began: NOW,
        changed: NOW,
        ended: None,
    };
    let started = put(&store, Change::StartOperation(Box::new(operation.clone()))).await.unwrap();
    let operation_id = started.operation.unwrap();
    let stopped = OperationTransition {
        operation: operation_id,
        from: &[OperationState::Running],
        to: OperationState::Stopped,
        cause: Some(odd("it failed")),
        failed_delivery: Some(id),
        at: NOW,
    };
    put(&store, Change::TransitionOperation(stopped)).await.unwrap();
    let read = store.operation(operation_id).await.unwrap().unwrap();
    assert_eq!((read.who, read.reason, read.filter), (operation.who, operation.reason, operation.filter));
    assert_eq!((read.cause, read.failed_delivery), (Some(odd("it failed")), Some(id)));
}

/// HUB-14, HUB-1, HUB-12: what people write in the registry, the audit log, circuits and incidents comes back.
pub(crate) async fn hub_14_texts_of_people_come_back<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let service = Service {
        address: odd("https://billing.example"),
        headers: vec![(odd("x-team"), odd("7"))],
        policy: odd("{}"),
        ..service("billing", 1)
    };
    let ordering = Some(OrderingRule { key: odd("{{ data.c }}"), hold: true });
    let (filter, body, note) = (Some(odd("true")), Some(odd("{}")), Some(odd("ours")));
    let (method, path) = (odd("POST"), odd("/"));
    let rule = Rule { method, path, filter, body, note, ordering, ..rule("invoices", 1) };
    let source = Source {
        name: slug("github"),
        version: 1,
        proof: SealedSecret(vec![0, 1, 2]),
        event_type: odd("github"),
        event_id: Some(odd("id")),
        enabled: true,
        changed: NOW,
    };
    let scopes = [Scope::Ingest].into_iter().collect();
    let (name, sources) = (slug("ci"), Some(vec![odd("shop")]));
    let (hash, made) = ([1; 32], NOW);
    let key =
        Key { name, hash, former: None, scopes, services: None, sources, made, expires: None, revoked: None };
    let circuit = Circuit {
        service: slug("billing"),
        state: CircuitState::ForcedOpen,
        until: None,
        trips: 1,
        reason: Some(odd("maintenance")),
        changed: NOW,
    };
    let entry = AuditEntry {
        at: NOW,
        who: odd("ann"),
        action: odd("put"),
        target: odd("billing"),
        reason: Some(odd("why")),
        trace: Some(odd("00-1-1-01")),
    };
    let changes = unit([
        Change::PutService(service.clone()),
        Change::PutRule(rule.clone()),
        Change::PutSource(source.clone()),
        Change::PutKey(key.clone()),
        Change::PutCircuit { circuit: circuit.clone(), cause: CircuitCause::Command },
        Change::Audit(entry.clone()),
    ]);
    store.commit(WritePriority::Admin, changes).await.unwrap();
    let all = store.registered().await.unwrap();
    assert_eq!((all.services, all.rules), (vec![service], vec![rule]));
    assert_eq!((all.sources, all.keys, all.circuits), (vec![source], vec![key], vec![circuit]));
    assert_eq!(store.audit(ALL).await.unwrap().items, [entry]);

    let incident = odd_incident();
    put(&store, Change::PutIncident(Box::new(incident.clone()))).await.unwrap();
    assert_eq!(store.incident(&incident.id).await.unwrap(), Some(incident.clone()));
    assert_eq!(store.incidents(IncidentFilter::default(), ALL).await.unwrap().items, [incident]);
}

fn odd_incident() -> Incident {
    let mut incident = Incident {
        id: odd("inc"),
        rule: slug("circuit-open"),
        kind: ConditionKind::CircuitOpen,
        severity: Severity::Critical,
        service: None,
        opened: NOW,
        updated: NOW,
        resolved: None,
        value: 0.1 + 0.2,
        summary: odd("it is open"),
        acknowledged: Some(Acknowledgement { who: odd("ann"), at: NOW, reason: Some(odd("seen")) }),
        muted: Some(Mute { until: NOW, reason: odd("quiet") }),
        notified: false,
        notices: Vec::new(),
    };
    incident.tell(&[slug("mail")], NOW);
    incident.settle(&slug("mail"), NoticeKind::Opened, Err(odd("refused")), NOW);
    incident.resolved = Some(Resolution { at: NOW, because: odd("it is closed") });
    incident
}
