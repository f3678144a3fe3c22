//! What every store must do. Only `Place` knows which one it is; that another backend can run the same tests needs no other
//! change here.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use seawall::Clock;
use seawall_dist::deadletter::{Answer, Attempt, SentRequest};
use seawall_hub_core::domain::circuit::{Circuit, CircuitState};
use seawall_hub_core::domain::dead_letter::FailureSummary;
use seawall_hub_core::domain::delivery::{
    DeadLetterReason, Decision, DeliveryId, DeliveryState, Disposition, FailureCounting, Progress, Schedule,
};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::event_type::{EventType, Pattern};
use seawall_hub_core::domain::key::{Key, Scope};
use seawall_hub_core::domain::rule::{OrderingRule, Rule};
use seawall_hub_core::domain::service::{SealedSecret, Service};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::source::Source;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    Change, CircuitCause, Claim, CommitResult, DueTimes, EventFilter, EventReads, InitialState, LaneCapacity,
    NewDelivery, PageRequest, RegistryReads, RegistrySnapshot, Settlement, Store, StoreError, StoredDelivery,
    UnitOfWork, UnitStore, WritePriority,
};
use seawall_hub_store::Sqlite;
use tempfile::TempDir;

pub(crate) const NOW: Millis = Millis(1_700_000_000_000);

pub(crate) const DELIVERED: Decision = Decision {
    disposition: Disposition::Delivered,
    progress: Progress { accepted: NOW, counted: 0, failures: 0, panics: 0 },
    attempted: true,
    throttle: None,
};
pub(crate) const HELD: Decision = Decision { disposition: Disposition::Hold, attempted: false, ..DELIVERED };

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

pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Place { folder: TempDir::new().unwrap() }
    }

    pub(crate) fn open(&self) -> Sqlite {
        Sqlite::open(self.folder.path(), &Clock::system()).unwrap()
    }

    /// Its file, to look into from outside.
    pub(crate) fn database(&self) -> std::path::PathBuf {
        self.folder.path().join("seawall.db")
    }
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
    most: usize,
) -> Result<Vec<StoredDelivery>, StoreError> {
    let room = |service: &str| LaneCapacity {
        service: slug(service),
        fresh: most,
        retries: most,
        resume_before: None,
    };
    store.take_due(now, ["billing", "mail", "search"].map(room).into()).await
}

pub(crate) async fn kept(store: &impl Store, id: DeliveryId) -> StoredDelivery {
    store.delivery(id).await.unwrap().unwrap().0
}

fn source(version: u64) -> Source {
    Source {
        name: slug("github"),
        version,
        proof: SealedSecret(vec![1, 2, 3]),
        event_type: "github.{{ headers['x-github-event'] }}".into(),
        event_id: None,
        enabled: true,
        changed: NOW,
    }
}

fn key(hash: u8) -> Key {
    Key {
        name: slug("ci"),
        hash: [hash; 32],
        former: Some(([1; 32], NOW)),
        scopes: [Scope::Ingest, Scope::Read].into_iter().collect(),
        services: Some(vec![slug("billing")]),
        sources: Some(vec!["shop \"7\"".into()]),
        made: NOW,
        expires: Some(NOW),
        revoked: None,
    }
}

fn circuit(trips: u32) -> Circuit {
    Circuit {
        service: slug("billing"),
        state: CircuitState::Open,
        until: Some(NOW),
        trips,
        reason: Some("an outage".into()),
        changed: NOW,
    }
}

/// HUB-1, HUB-4, HUB-7: services and rules come back as they were put in; versions go up one by one, and a stale one is refused.
#[tokio::test]
async fn hub_1_services_and_rules_are_kept_by_version() {
    let place = Place::new();
    let store = place.open();
    let put = |change| store.commit(WritePriority::Admin, unit([change]));
    put(Change::PutService(service("billing", 1))).await.unwrap();
    put(Change::PutService(service("billing", 2))).await.unwrap();
    let stale = StoreError::Stale { found: Some(2) };
    assert_eq!(put(Change::PutService(service("billing", 2))).await, Err(stale.clone()));
    assert_eq!(put(Change::PutService(service("billing", 4))).await, Err(stale));
    assert_eq!(put(Change::PutService(service("other", 2))).await, Err(StoreError::Stale { found: None }));
    put(Change::PutRule(rule("invoices", 1))).await.unwrap();
    let ordered = Rule {
        ordering: Some(OrderingRule { key: "{{ data.c }}".into(), hold: true }),
        ..rule("invoices", 2)
    };
    put(Change::PutRule(ordered.clone())).await.unwrap();
    put(Change::PutSource(source(1))).await.unwrap();
    put(Change::PutSource(source(2))).await.unwrap();
    put(Change::PutKey(key(7))).await.unwrap();
    put(Change::PutKey(key(9))).await.unwrap();
    let moved = |circuit| Change::PutCircuit { circuit, cause: CircuitCause::Breaker };
    for trips in 1..300 {
        let closed = Circuit { state: CircuitState::Closed, ..circuit(trips) };
        put(moved(closed)).await.unwrap();
        put(moved(circuit(trips))).await.unwrap();
    }
    // An outage that goes on is one line, with its last end.
    put(moved(circuit(299))).await.unwrap();
    let all = RegistrySnapshot {
        services: vec![service("billing", 2)],
        rules: vec![ordered.clone()],
        sources: vec![source(2)],
        circuits: vec![circuit(299)],
        keys: vec![key(9)],
        alert_rules: Vec::new(),
        channels: Vec::new(),
    };
    assert_eq!(store.registered().await.unwrap(), all);
    assert_eq!(store.rule_versions(&slug("invoices")).await.unwrap(), [ordered, rule("invoices", 1)]);
    let history = store.circuit_history(&slug("billing"), 1_000).await.unwrap();
    assert_eq!((history.len(), &history[0]), (200, &circuit(299)), "bounded, the newest first");

    let gone = Err(StoreError::Stale { found: None });
    assert_eq!(put(Change::DeleteRule(slug("invoices"), 1)).await, gone, "that is not its version");
    put(Change::DeleteRule(slug("invoices"), 2)).await.unwrap();
    assert_eq!(put(Change::DeleteRule(slug("invoices"), 2)).await, gone);
    assert_eq!(
        put(Change::PutRule(rule("invoices", 1))).await,
        Err(StoreError::Stale { found: Some(2) }),
        "a version never means two things"
    );
    put(Change::PutRule(rule("invoices", 3))).await.unwrap();
    put(Change::DeleteSource(slug("github"), 2)).await.unwrap();
    put(Change::DeleteService(slug("billing"), 2)).await.unwrap();
    let left = store.registered().await.unwrap();
    assert!(left.services.is_empty() && left.sources.is_empty());
    assert_eq!(left.rules, [rule("invoices", 3)]);
}

/// HUB-14: a unit is true as a whole or not at all, whatever becomes of those that share its commit.
#[tokio::test]
async fn hub_14_a_unit_is_committed_as_a_whole_or_not_at_all() {
    let place = Place::new();
    let store = place.open();
    let half = unit([Change::PutService(service("billing", 1)), Change::PutService(service("other", 5))]);
    let (half, whole) = tokio::join!(
        store.commit(WritePriority::Admin, half),
        store.commit(WritePriority::Admin, unit([Change::PutService(service("third", 1))])),
    );
    assert_eq!(
        (half, whole),
        (
            Err(StoreError::Stale { found: None }),
            Ok(CommitResult { epoch: store.epoch(), ..CommitResult::default() })
        )
    );
    assert_eq!(store.registered().await.unwrap().services, [service("third", 1)]);
}

/// HUB-3: event, deliveries and idempotency record are one commit; the same id is stored once, however many send it at once,
/// and whoever comes second learns what it led to.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hub_3_the_same_event_is_stored_once() {
    let place = Place::new();
    let store = place.open();
    let mut senders = tokio::task::JoinSet::new();
    for n in 0..200 {
        let store = store.clone();
        senders
            .spawn(async move { (n, add(&store, &format!("evt-{}", n % 10), &["billing", "mail"]).await) });
    }
    let (mut first, mut again) = (BTreeSet::new(), 0);
    let mut led_to = BTreeMap::new();
    for (n, answer) in senders.join_all().await {
        match answer {
            Ok(committed) => {
                assert!(first.insert(n % 10), "stored twice");
                led_to.insert(n % 10, committed.deliveries);
            }
            Err(StoreError::EventExists { fingerprint, deliveries }) => {
                assert_eq!((fingerprint, deliveries.len()), ([7; 32], 2));
                again += 1;
            }
            Err(other) => unreachable!("{other}"),
        }
    }
    assert_eq!((first.len(), again), (10, 190));
    let names: BTreeSet<DeliveryId> = led_to.values().flatten().map(|(id, _)| *id).collect();
    assert_eq!(names.len(), 20, "names are given out once");
    assert_eq!(store.event("evt-3", None).await.unwrap().unwrap(), *event("evt-3"));
    assert_eq!(store.event("nope", None).await.unwrap(), None);
}

/// HUB-5: a delivery waits, is taken when it is due, and ends; each try is remembered.
#[tokio::test]
async fn hub_5_a_delivery_waits_is_taken_and_ends() {
    let place = Place::new();
    let store = place.open();
    let ids = add(&store, "evt-1", &["billing", "mail", "search"]).await.unwrap().names();
    assert!(due(&store, NOW, 10).await.unwrap().is_empty(), "they are born in this process's hand");

    let progress = Progress { accepted: NOW, counted: 1, failures: 2, panics: 0 };
    let until = NOW + Duration::from_secs(30);
    settle(&store, ids[0], retry(until, progress, false)).await.unwrap();
    settle(&store, ids[1], DELIVERED).await.unwrap();
    settle(&store, ids[2], dead(DeadLetterReason::Attempts)).await.unwrap();
    assert_eq!(settle(&store, ids[1], DELIVERED).await, Err(StoreError::LeaseLost(ids[1])), "it has ended");
    assert!(due(&store, NOW + Duration::from_secs(29), 10).await.unwrap().is_empty());
    let taken = due(&store, until, 10).await.unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!((taken[0].id, &taken[0].event, taken[0].progress), (ids[0], &"evt-1".to_owned(), progress));
    assert_eq!((&*taken[0].request, taken[0].state), (&b"to billing"[..], DeliveryState::Leased));
    assert!(due(&store, until, 10).await.unwrap().is_empty(), "taken once");

    settle(&store, ids[0], DELIVERED).await.unwrap();
    let (done, attempts) = store.delivery(ids[0]).await.unwrap().unwrap();
    assert_eq!((done.state, attempts.len()), (DeliveryState::Delivered, 2));
    assert_eq!(attempts[0], attempt(), "of a failure everything is remembered");
    let answer = attempts[1].answer.as_ref().unwrap();
    assert_eq!(
        (attempts[1].at, attempts[1].took, answer.status, &*answer.body),
        (NOW, attempt().took, 500, &[1, 2][..])
    );
    let dead = kept(&store, ids[2]).await;
    assert_eq!(
        (dead.state, dead.reason, dead.progress),
        (DeliveryState::DeadLettered, Some(DeadLetterReason::Attempts), SPENT)
    );
    let foreign = DeliveryId::new(ids[0].database ^ 1, ids[0].number);
    assert_eq!(store.delivery(foreign).await.unwrap(), None, "a name of another database");
    assert_eq!(DeliveryId::parse(&ids[0].to_string()), Some(ids[0]));
}

/// PRM-2, HUB-5: after a restart, what was in hand is due at once, under the same name; what the old process says of it counts
/// no more.
#[tokio::test]
async fn prm_2_a_restart_takes_up_what_was_in_hand() {
    let place = Place::new();
    let ids = {
        let store = place.open();
        let ids = add(&store, "evt-1", &["billing", "mail"]).await.unwrap().names();
        settle(&store, ids[1], DELIVERED).await.unwrap();
        ids
    };
    let store = place.open();
    assert_eq!(store.epoch(), 2);
    assert_eq!(
        settle(&store, ids[0], DELIVERED).await,
        Err(StoreError::LeaseLost(ids[0])),
        "not in hand yet"
    );
    let taken = due(&store, NOW, 10).await.unwrap();
    assert_eq!(taken.iter().map(|kept| (kept.id, kept.epoch)).collect::<Vec<_>>(), [(ids[0], 2)]);
    let before = Claim { delivery: ids[0], epoch: 1 };
    for late in [Change::ReturnToStore(vec![before]), Change::Settle(settlement(before, DELIVERED))] {
        let settles = matches!(late, Change::Settle(_));
        let answer = store.commit(WritePriority::Outcomes, unit([late])).await;
        assert_eq!(answer.err(), settles.then_some(StoreError::LeaseLost(ids[0])), "another claim");
        assert_eq!(kept(&store, ids[0]).await.state, DeliveryState::Leased);
    }
    settle(&store, ids[0], DELIVERED).await.unwrap();
    let fresh = add(&store, "evt-2", &["billing"]).await.unwrap().names();
    assert!(fresh[0] > ids[1], "names go on");
}

/// HUB-5: so many are taken at a time, the longest due first.
#[tokio::test]
async fn hub_5_the_longest_due_come_first() {
    let place = Place::new();
    let store = place.open();
    let mut expected = Vec::new();
    for n in 0..20_u64 {
        let ids = add(&store, &format!("evt-{n}"), &["billing"]).await.unwrap().names();
        let until = NOW + Duration::from_secs((n * 7) % 20);
        let progress = Progress { accepted: NOW, counted: 0, failures: 1, panics: 0 };
        settle(&store, ids[0], retry(until, progress, false)).await.unwrap();
        expected.push((until, ids[0]));
    }
    expected.sort_unstable();
    assert_eq!(
        store.next_due().await.unwrap(),
        [DueTimes { service: slug("billing"), fresh: None, retries: Some(NOW) }]
    );
    let taken = due(&store, NOW + Duration::from_secs(60), 5).await.unwrap();
    assert_eq!(
        taken.iter().map(|kept| kept.id).collect::<Vec<_>>(),
        expected[..5].iter().map(|(_, id)| *id).collect::<Vec<_>>()
    );
}

/// PRM-1: one folder, one process; a database from the future is refused with a word.
#[tokio::test]
async fn prm_1_a_folder_is_used_by_one_process() {
    let place = Place::new();
    let store = place.open();
    let second = Sqlite::open(place.folder.path(), &Clock::system()).unwrap_err().to_string();
    assert!(second.contains("another process uses it; stop that one"), "{second}");
    drop(store);
    let connection = rusqlite::Connection::open(place.folder.path().join("seawall.db")).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let newer = Sqlite::open(place.folder.path(), &Clock::system()).unwrap_err().to_string();
    assert!(newer.contains("newer Seawall (its version is 99"), "{newer}");
}

/// PRM-1: what is queued when the last handle goes is still written.
#[tokio::test]
async fn prm_1_what_is_queued_at_the_end_is_written() {
    let place = Place::new();
    let store = place.open();
    for n in 0..100 {
        let id = format!("evt-{n}");
        let mut commit = Box::pin(add(&store, &id, &["billing"]));
        // Polled once and dropped: it is queued, and nobody waits for it.
        std::future::poll_fn(|cx| {
            let _: () = drop(commit.as_mut().poll(cx));
            Poll::Ready(())
        })
        .await;
    }
    drop(store);
    let store = place.open();
    assert_eq!(due(&store, NOW, 1_000).await.unwrap().len(), 100);
}

/// PRM-1: what was acknowledged is there after `kill -9`, at whatever moment: another process writes as fast as it can and
/// says what it was told is written; this one kills it, opens the database and looks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_1_what_was_acknowledged_survives_a_kill() {
    const FOLDER: &str = "SEAWALL_TEST_FOLDER";
    if let Ok(folder) = std::env::var(FOLDER) {
        return write_for_ever(&folder).await;
    }
    let place = Place::new();
    let (mut acknowledged, mut events) = (BTreeSet::new(), 0);
    for round in 0..10_u64 {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "conformance::prm_1_what_was_acknowledged_survives_a_kill", "--nocapture"])
            .env(FOLDER, place.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        // Once it writes, it gets so many lines more.
        let most = 200 + round * 97;
        for line in
            lines.by_ref().map_while(Result::ok).filter(|line| line.starts_with("evt-")).take(most as usize)
        {
            acknowledged.insert(line);
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        // What it said before it died counts too.
        acknowledged.extend(
            lines.map_while(Result::ok).filter(|line| line.starts_with("evt-") && line.ends_with('.')),
        );
        let store = place.open();
        for line in &acknowledged {
            let id = line.trim_end_matches('.');
            assert!(store.event(id, None).await.unwrap().is_some(), "{id} was acknowledged and is lost");
        }
        events = due(&store, NOW, usize::MAX).await.unwrap().len();
        assert!(events >= acknowledged.len(), "each has its delivery");
        // To have looked is no crash.
        store.commit(WritePriority::Admin, unit([Change::RecordStop])).await.unwrap();
    }
    assert!(acknowledged.len() > 5_000, "{} of {events}", acknowledged.len());
}

/// Writes events, and a line for each that is said to be written.
async fn write_for_ever(folder: &str) {
    let store = Sqlite::open(std::path::Path::new(folder), &Clock::system()).unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..16 {
        let store = store.clone();
        writers.spawn(async move {
            for n in 0.. {
                let id = format!("evt-{}-{writer}-{n}", store.epoch());
                add(&store, &id, &["billing"]).await.unwrap();
                let mut out = std::io::stdout().lock();
                writeln!(out, "{id}.").unwrap();
                out.flush().unwrap();
            }
        });
    }
    writers.join_all().await;
}

/// PRM-8: a page of large events ends before it is too large, and the next ones go on from there.
#[tokio::test]
async fn prm_8_a_page_of_large_events_is_short() {
    let place = Place::new();
    let store = place.open();
    for n in 0..12 {
        let payload = vec![b'1'; 1024 * 1024].into();
        let large = Event { payload, ..Event::clone(&event(&format!("evt-{n}"))) };
        let unit = unit([Change::AddEvent(Arc::new(large), Vec::new())]);
        store.commit(WritePriority::Ingest, unit).await.unwrap();
    }
    let (mut found, mut from) = (Vec::new(), None);
    loop {
        let page = store.events(EventFilter::default(), PageRequest { from, size: 500 }).await.unwrap();
        assert!(page.items.len() <= 4, "{} at once", page.items.len());
        found.extend(page.items.into_iter().map(|event| event.id));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(found, (0..12).rev().map(|n| format!("evt-{n}")).collect::<Vec<_>>());
}
