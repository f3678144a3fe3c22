//! Changes of what is registered, of dead letters and of operations that two make at the same moment, many times over.
//!
//! Each of the two uses a lane of its own, so that a store with several writers makes them at once.

use std::collections::BTreeMap;

use seawall_hub_core::domain::alert::{
    Acknowledgement, ConditionKind, Incident, NoticeKind, NoticeState, Severity,
};
use seawall_hub_core::domain::circuit::{Circuit, CircuitState};
use seawall_hub_core::domain::dead_letter::{
    Fingerprint, GroupFilter, LetterAction, LetterCounts, LetterFilter, LetterState, MESSAGES_MAX,
};
use seawall_hub_core::domain::operation::{
    BulkAction, Operation, OperationId, OperationProgress, OperationState, ReplayMode, ReplayPlan,
};
use seawall_hub_core::domain::retention::Limits;
use tokio::sync::Barrier;

use super::StoreFactory;
use super::fixtures::*;
use super::letters::{ALL, dies_as, failing};

const ROUNDS: u64 = 200;

type Outcome = Result<CommitResult, StoreError>;

/// Commits two units that start at the same moment, the first as an operator does, the other as an outcome is committed.
async fn race<S: Store + Clone>(stores: &[S; 2], first: UnitOfWork, other: UnitOfWork) -> [Outcome; 2] {
    let barrier = Barrier::new(2);
    let commit = async |store: &S, lane, unit| {
        barrier.wait().await;
        store.commit(lane, unit).await
    };
    let (first, other) = tokio::join!(
        commit(&stores[0], WritePriority::Admin, first),
        commit(&stores[1], WritePriority::Outcomes, other),
    );
    [first, other]
}

/// Opens a store, and a second handle to it.
async fn two_handles<F: StoreFactory>(place: &F) -> [F::Store; 2] {
    let store = place.open().await.unwrap();
    let beside = place.beside(&store).await;
    [store, beside]
}

/// Returns the refusal of the one that came second.
#[expect(clippy::panic, reason = "a test fails by panicking, in its helpers too")]
fn one_succeeds(outcomes: [Outcome; 2]) -> (CommitResult, StoreError) {
    match outcomes {
        [Ok(made), Err(refused)] | [Err(refused), Ok(made)] => (made, refused),
        both => panic!("not one of two: {both:?}"),
    }
}

fn queued() -> NewDelivery {
    NewDelivery { initial: InitialState::Queued, ..to("billing") }
}

fn replay_of(dead: DeliveryId, again: bool) -> UnitOfWork {
    unit([Change::Replay(ReplayChange { dead, new: queued(), at: NOW, again, edited: false })])
}

fn moved(dead: DeliveryId, to: LetterAction) -> UnitOfWork {
    unit([Change::Move(LetterMove { dead, to, at: NOW })])
}

/// Makes a dead letter whose peer said this.
async fn dead_letter(store: &impl Store, id: &str, said: &str) -> DeliveryId {
    dies_as(store, &failing(id, "x"), to("billing"), DeadLetterReason::Refused, 422, NOW, said).await
}

/// The end of a claimed delivery that its peer refused with these words.
fn refusal(store: &impl Store, delivery: DeliveryId, said: &str) -> UnitOfWork {
    let body = format!("{{\"error\":\"{said}\"}}").into_bytes();
    let answer = Some(Answer { status: 422, headers: vec![], body });
    let attempt = Attempt { at: NOW, took: Duration::ZERO, sent: None, error: None, answer };
    let failure = Some(FailureSummary::of_attempt(&attempt));
    let settled = settlement(claim(store, delivery), dead(DeadLetterReason::Refused));
    unit([Change::Settle(Settlement { attempt: Some(attempt), failure, ..settled })])
}

/// Returns a message that no other number has. Digits would not tell two messages apart.
fn message(number: u64) -> String {
    format!("{number:b}").replace('0', "apple ").replace('1', "pear ").trim_end().to_owned()
}

async fn letters(store: &impl Store) -> Vec<DeadLetter> {
    let filter = LetterFilter { states: LetterState::ALL.to_vec(), ..LetterFilter::default() };
    store.dead_letters(filter, ALL).await.unwrap().page.items
}

/// U2, U3: groups count what is there, no dead letter is without a group, and each stands where its replay says.
async fn assert_counts_are_right(store: &impl Store) {
    let mut expected: BTreeMap<Fingerprint, LetterCounts> = BTreeMap::new();
    for letter in letters(store).await {
        expected.entry(letter.group).or_default().0[letter.state as usize] += 1;
        let by_replay = LetterState::of_replay(letter.replayed.map(|(_, state, _)| state));
        match letter.state {
            LetterState::Parked => assert_eq!(by_replay, LetterState::Open),
            LetterState::Deleted => {}
            state => assert_eq!(state, by_replay, "{}", letter.delivery.id),
        }
    }
    let groups = store.groups(GroupFilter::default(), ALL).await.unwrap().items;
    let counted: BTreeMap<_, _> = groups.into_iter().map(|group| (group.fingerprint, group.counts)).collect();
    assert_eq!(counted, expected);
}

/// HUB-14: of two that put the same version one succeeds, and the other hears which version there is; also if it is the first, and
/// after a deletion.
pub(crate) async fn hub_14_of_two_that_put_a_version_one_succeeds<F: StoreFactory>() {
    let place = F::create().await;
    let stores = two_handles(&place).await;
    for round in 1..=ROUNDS {
        let name = format!("service-{round}");
        for version in 1..=2 {
            let put = || unit([Change::PutService(service(&name, version))]);
            let (_, refused) = one_succeeds(race(&stores, put(), put()).await);
            assert_eq!(refused, StoreError::Stale { found: Some(version) });
        }
        let version = 2 * round - 1;
        let put = |version| unit([Change::PutRule(rule("invoices", version))]);
        let (_, refused) = one_succeeds(race(&stores, put(version), put(version)).await);
        assert_eq!(refused, StoreError::Stale { found: Some(version) });
        // Either it is deleted first, and the next version is that of another rule of the name, or there is nothing to delete.
        let delete = unit([Change::DeleteRule(slug("invoices"), version)]);
        let [deleted, replaced] = race(&stores, delete, put(version + 1)).await;
        assert_eq!(replaced.map(drop), Ok(()));
        assert!(matches!(deleted, Ok(_) | Err(StoreError::Stale { found: None })), "{deleted:?}");
    }
    let registered = stores[0].registered().await.unwrap();
    assert_eq!(registered.rules, [rule("invoices", 2 * ROUNDS)]);
    assert_eq!(registered.services.len() as u64, ROUNDS);
}

/// HUB-4: an outage that two report at the same moment is one line of the history.
pub(crate) async fn hub_4_an_outage_that_two_report_is_one<F: StoreFactory>() {
    let place = F::create().await;
    let stores = two_handles(&place).await;
    for round in 0..ROUNDS {
        let moved = |state| {
            let circuit = Circuit {
                service: slug("billing"),
                state,
                until: None,
                trips: u32::try_from(round).unwrap(),
                reason: None,
                changed: NOW,
            };
            unit([Change::PutCircuit { circuit, cause: CircuitCause::Breaker }])
        };
        stores[0].commit(WritePriority::Admin, moved(CircuitState::Closed)).await.unwrap();
        for outcome in race(&stores, moved(CircuitState::Open), moved(CircuitState::Open)).await {
            outcome.unwrap();
        }
        let history = stores[0].circuit_history(&slug("billing"), 2).await.unwrap();
        let states: Vec<CircuitState> = history.iter().map(|circuit| circuit.state).collect();
        assert_eq!(states, [CircuitState::Open, CircuitState::Closed], "round {round}");
    }
}

/// HUB-3: of two units under one key one is applied, and the other hears what it has led to, whatever it asked for.
pub(crate) async fn hub_3_of_two_units_under_one_key_one_is_applied<F: StoreFactory>() {
    let place = F::create().await;
    let stores = two_handles(&place).await;
    for round in 0..ROUNDS {
        let keyed = |scope, note: &str, fingerprint, change| {
            let (key, note) = (format!("key-{round}"), note.to_owned());
            let record = IdempotencyRecord { scope, key, fingerprint: [fingerprint; 32], note, at: NOW };
            unit([Change::ClaimKey(record), change])
        };
        let names = [format!("one-{round}"), format!("two-{round}")];
        // Every other time both ask for the same.
        let asked = [7, if round % 2 == 0 { 7 } else { 8 }];
        for scope in ["events", "services"] {
            let change = |turn: usize| match scope {
                "events" => Change::AddEvent(event(&names[turn]), vec![queued()]),
                _ => Change::PutService(service(&names[turn], 1)),
            };
            let [first, other] = [0, 1].map(|turn| keyed(scope, &names[turn], asked[turn], change(turn)));
            let outcomes = race(&stores, first, other).await;
            let first = usize::from(outcomes[0].is_err());
            let (made, refused) = one_succeeds(outcomes);
            let applied = StoreError::AlreadyApplied {
                fingerprint: [asked[first]; 32],
                note: names[first].clone(),
                deliveries: made.names(),
            };
            assert_eq!(refused, applied);
        }
    }
    assert_eq!(stores[0].registered().await.unwrap().services.len() as u64, ROUNDS);
    let events = stores[0].events(EventFilter::default(), ALL).await.unwrap().items;
    assert_eq!(events.len() as u64, ROUNDS);
}

/// HUB-6: of two replays of a dead letter one is made, and one that is moved at the same moment was moved before or after it.
pub(crate) async fn hub_6_a_dead_letter_is_replayed_once_whatever_else_is_done_to_it<F: StoreFactory>() {
    let place = F::create().await;
    let stores = two_handles(&place).await;
    for round in 0..ROUNDS {
        let twice = dead_letter(&stores[0], &format!("twice-{round}"), "no stock").await;
        let (made, refused) =
            one_succeeds(race(&stores, replay_of(twice, false), replay_of(twice, false)).await);
        assert_eq!(refused, StoreError::AlreadyReplayed(made.names()[0], DeliveryState::Waiting));

        let deleted = dead_letter(&stores[0], &format!("deleted-{round}"), "no stock").await;
        let [replayed, gone] =
            race(&stores, replay_of(deleted, false), moved(deleted, LetterAction::Delete)).await;
        gone.unwrap();
        let letter = stores[0].dead_letter(deleted).await.unwrap().unwrap().dead;
        assert_eq!((letter.state, letter.replayed.is_some()), (LetterState::Deleted, replayed.is_ok()));

        let parked = dead_letter(&stores[0], &format!("parked-{round}"), "no stock").await;
        let [park, replayed] =
            race(&stores, moved(parked, LetterAction::Park), replay_of(parked, false)).await;
        replayed.unwrap();
        assert!(matches!(park, Ok(_) | Err(StoreError::WrongState("replaying"))), "{park:?}");
        // Handled in full, so that the next round begins with as few.
        for id in [twice, parked] {
            stores[0].commit(WritePriority::Admin, moved(id, LetterAction::Delete)).await.unwrap();
        }
        if round % 50 == 0 {
            assert_counts_are_right(&stores[0]).await;
        }
    }
    assert_counts_are_right(&stores[0]).await;
}

/// HUB-6: a dead letter that joins a group while its last one leaves is in a group, and two that begin a group are in one.
pub(crate) async fn hub_6_a_dead_letter_that_joins_while_the_last_one_leaves_has_a_group<F: StoreFactory>() {
    let place = F::create().await;
    let stores = two_handles(&place).await;
    let mut last = dead_letter(&stores[0], "first", "no stock").await;
    for round in 0..ROUNDS {
        let next = add(&stores[0], &format!("next-{round}"), &["billing"]).await.unwrap().names()[0];
        let joins = refusal(&stores[0], next, "no stock");
        for outcome in race(&stores, moved(last, LetterAction::Purge), joins).await {
            outcome.unwrap();
        }
        last = next;
        assert_eq!(letters(&stores[0]).await.len(), 1, "round {round}");
        assert_counts_are_right(&stores[0]).await;
    }
    for round in 0..ROUNDS {
        let both = add(&stores[0], &format!("both-{round}"), &["billing", "billing"]).await.unwrap().names();
        let [first, other] = [both[0], both[1]].map(|id| refusal(&stores[0], id, &message(round)));
        for outcome in race(&stores, first, other).await {
            outcome.unwrap();
        }
        let group = async |id| stores[0].dead_letter(id).await.unwrap().unwrap().dead.group;
        assert_eq!(group(both[0]).await, group(both[1]).await, "round {round}");
    }
    assert_counts_are_right(&stores[0]).await;
}

/// HUB-6, PRM-8: two that begin a group at the same moment keep the number of groups within its limit.
pub(crate) async fn hub_6_two_messages_at_once_keep_within_the_limit<F: StoreFactory>() {
    let place = F::create().await;
    let stores = two_handles(&place).await;
    for number in 1..u64::from(MESSAGES_MAX) {
        dead_letter(&stores[0], &format!("known-{number}"), &message(number)).await;
    }
    for round in 0..ROUNDS {
        let both = add(&stores[0], &format!("both-{round}"), &["billing", "billing"]).await.unwrap().names();
        let new = |turn| message(1_000 + 2 * round + turn);
        let (first, other) = (refusal(&stores[0], both[0], &new(0)), refusal(&stores[0], both[1], &new(1)));
        for outcome in race(&stores, first, other).await {
            outcome.unwrap();
        }
        let groups = stores[0].groups(GroupFilter::default(), ALL).await.unwrap().items;
        let told = groups.iter().filter(|group| !group.failure.message.is_empty()).count();
        assert_eq!((told, groups.len()), (MESSAGES_MAX as usize, MESSAGES_MAX as usize + 1), "round {round}");
        for id in both {
            stores[0].commit(WritePriority::Admin, moved(id, LetterAction::Purge)).await.unwrap();
        }
    }
    assert_counts_are_right(&stores[0]).await;
}

/// HUB-6: two that index at the same moment index each dead letter once, and one that is purged meanwhile by nobody.
pub(crate) async fn hub_6_a_dead_letter_is_indexed_once<F: StoreFactory>() {
    let place = F::create().await;
    let stores = two_handles(&place).await;
    for round in 0..ROUNDS {
        let id = dead_letter(&stores[0], &format!("evt-{round}"), "no stock").await;
        let index = || unit([Change::Index { limit: 10 }]);
        let indexed: usize =
            race(&stores, index(), index()).await.into_iter().map(|outcome| outcome.unwrap().touched).sum();
        assert_eq!(indexed, 1, "round {round}");
        let text = Some(format!("\"evt-{round}\""));
        let found =
            stores[0].dead_letters(LetterFilter { text, ..LetterFilter::default() }, ALL).await.unwrap();
        let ids: Vec<DeliveryId> = found.page.items.iter().map(|dead| dead.delivery.id).collect();
        assert_eq!((ids, found.unindexed), (vec![id], 0));

        let purged = dead_letter(&stores[0], &format!("purged-{round}"), "no stock").await;
        let [indexed, gone] = race(&stores, index(), moved(purged, LetterAction::Purge)).await;
        indexed.unwrap();
        gone.unwrap();
        let left = stores[0].count_letters(LetterFilter::default(), 1_000).await.unwrap();
        assert_eq!((left.count, left.unindexed), (round + 1, 0));
    }
}

/// HUB-9: an event that is pruned while a dead letter of it is replayed is there with the replay, or the replay is refused.
pub(crate) async fn hub_9_an_event_is_not_pruned_from_under_a_replay<F: StoreFactory>() {
    let place = F::create().await;
    let stores = two_handles(&place).await;
    let late = Millis(NOW.0 + 1);
    let limits = Limits { now: late, delivered: late, discarded: late, audit: late };
    for round in 0..ROUNDS {
        let name = format!("evt-{round}");
        let id = dead_letter(&stores[0], &name, "no stock").await;
        let first = stores[0].commit(WritePriority::Admin, replay_of(id, false)).await.unwrap().names()[0];
        assert_eq!(due(&stores[0], NOW, 10).await.unwrap().len(), 1);
        let done = Settlement { is_replay: true, ..settlement(claim(&stores[0], first), DELIVERED) };
        stores[0].commit(WritePriority::Outcomes, unit([Change::Settle(done)])).await.unwrap();
        // The newest delivery of all is never pruned.
        let newest = add(&stores[0], &format!("newest-{round}"), &["mail"]).await.unwrap().names()[0];

        let old = stores[0].old_events(limits, 0).await.unwrap();
        let numbers: Vec<u64> = old.found.iter().map(|(number, _)| *number).collect();
        assert!(!numbers.is_empty(), "round {round}");
        let prune = unit([Change::Prune(PruneTarget::Events { numbers, limits })]);
        let [pruned, replayed] = race(&stores, prune, replay_of(id, true)).await;
        pruned.unwrap();
        let event = stores[0].event(&name, None).await.unwrap();
        match replayed {
            Ok(made) => {
                assert!(event.is_some(), "round {round}: a replay without an event");
                let again = kept(&stores[0], made.names()[0]).await;
                assert_eq!((again.event, again.replay_of), (name, Some(id)));
                let taken = due(&stores[0], NOW, 10).await.unwrap();
                assert_eq!(taken.len(), 1);
                let done =
                    Settlement { is_replay: true, ..settlement(claim(&stores[0], taken[0].id), DELIVERED) };
                stores[0].commit(WritePriority::Outcomes, unit([Change::Settle(done)])).await.unwrap();
            }
            Err(refused) => assert_eq!((refused, event), (StoreError::NotADeadLetter(id), None)),
        }
        settle(&stores[0], newest, DELIVERED).await.unwrap();
    }
    assert_counts_are_right(&stores[0]).await;
}

async fn operation(store: &impl Store) -> OperationId {
    let plan = ReplayPlan { mode: ReplayMode::Same, rate: 50, canary: Vec::new() };
    let operation = Operation {
        id: OperationId::new(0, 0),
        task: BulkAction::Replay(plan),
        filter: LetterFilter::default(),
        limit: None,
        total: 2,
        run: OperationState::Running,
        cause: None,
        failed_delivery: None,
        progress: OperationProgress::default(),
        cursor: 0,
        exhausted: false,
        who: "ann".into(),
        reason: None,
        began: NOW,
        changed: NOW,
        ended: None,
    };
    put(store, Change::StartOperation(Box::new(operation))).await.unwrap().operation.unwrap()
}

fn step(operation: OperationId, from_cursor: u64, dead: &[DeliveryId]) -> UnitOfWork {
    unit([Change::AdvanceOperation(OperationStep {
        operation,
        items: dead.iter().map(|dead| BulkItem::Replay(*dead, queued())).collect(),
        skipped: 1,
        cause: None,
        failed_delivery: None,
        from_cursor,
        cursor: dead.last().map_or(0, |dead| dead.number),
        exhausted: false,
        at: NOW,
    })])
}

/// HUB-6: two that run the same operation never both take a batch, and replays that end during a batch are counted.
pub(crate) async fn hub_6_a_batch_is_taken_once_and_every_outcome_counts<F: StoreFactory>() {
    let place = F::create().await;
    let stores = two_handles(&place).await;
    for round in 0..ROUNDS {
        let id = operation(&stores[0]).await;
        let mut dead = Vec::new();
        for number in 0..2 {
            dead.push(dead_letter(&stores[0], &format!("evt-{round}-{number}"), "no stock").await);
        }
        let first = step(id, 0, &dead[..1]);
        let (made, refused) = one_succeeds(race(&stores, first.clone(), first).await);
        assert_eq!((made.touched, refused), (1, StoreError::Stale { found: Some(dead[0].number) }));
        let taken = due(&stores[0], NOW, 10).await.unwrap();
        assert_eq!(taken.len(), 1);
        let done = Settlement { is_replay: true, ..settlement(claim(&stores[0], taken[0].id), DELIVERED) };
        let [stepped, settled] =
            race(&stores, step(id, dead[0].number, &dead[1..]), unit([Change::Settle(done)])).await;
        assert_eq!((stepped.unwrap().touched, settled.map(drop)), (1, Ok(())));
        let now = stores[0].operation(id).await.unwrap().unwrap();
        let expected =
            OperationProgress { begun: 2, skipped: 2, tried: 1, faltered: 0, delivered: 1, failed: 0 };
        assert_eq!((now.progress, now.cursor), (expected, dead[1].number), "round {round}");
        let taken = due(&stores[0], NOW, 10).await.unwrap();
        settle(&stores[0], taken[0].id, DELIVERED).await.unwrap();
        for id in dead {
            stores[0].commit(WritePriority::Admin, moved(id, LetterAction::Delete)).await.unwrap();
        }
    }
}

/// HUB-12: what one stores of an incident does not undo what another has stored: its acknowledgement, and what was sent.
pub(crate) async fn hub_12_an_acknowledgement_is_not_undone<F: StoreFactory>() {
    let place = F::create().await;
    let stores = two_handles(&place).await;
    let hook = slug("hook");
    for round in 0..ROUNDS {
        let mut incident = Incident {
            id: format!("inc-{round}"),
            rule: slug("built-in"),
            kind: ConditionKind::CircuitOpen,
            severity: Severity::Warning,
            service: None,
            opened: NOW,
            updated: NOW,
            resolved: None,
            value: 1.0,
            summary: "the circuit is open".into(),
            acknowledged: None,
            muted: None,
            notified: false,
            notices: Vec::new(),
        };
        incident.tell(std::slice::from_ref(&hook), NOW);
        let put = |incident: &Incident| unit([Change::PutIncident(Box::new(incident.clone()))]);
        // One knows it from the start, and two begin with it at once.
        let [first, other] = race(&stores, put(&incident), put(&incident)).await;
        first.unwrap();
        other.unwrap();
        let seen = Some(Acknowledgement { who: "ann".into(), at: NOW, reason: None });
        let acknowledged = Incident { acknowledged: seen.clone(), ..incident.clone() };
        let mut sent = Incident { value: 2.0, ..incident };
        sent.settle(&hook, NoticeKind::Opened, Ok(()), NOW);
        let [first, other] = race(&stores, put(&acknowledged), put(&sent)).await;
        first.unwrap();
        other.unwrap();
        let stored = stores[0].incident(&format!("inc-{round}")).await.unwrap().unwrap();
        let states: Vec<&NoticeState> = stored.notices.iter().map(|notice| &notice.state).collect();
        assert_eq!(
            (stored.acknowledged, states),
            (seen, vec![&NoticeState::Sent { at: NOW }]),
            "round {round}"
        );
    }
}
