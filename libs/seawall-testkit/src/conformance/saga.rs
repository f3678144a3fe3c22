//! What every store of sagas has to hold.

use std::sync::Arc;
use std::time::Duration;

use seawall_dist::saga::{
    ClaimOutcome, CreateOutcome, DefinitionId, DueSagas, EntryKind, JournalEntry, SagaFilter, SagaRecord,
    SagaRow, SagaState, SagaStore, SagaWrite, WriteOutcome,
};

/// Long enough that it never ends within the suite.
const LONG: Duration = Duration::from_secs(600);

/// Checks a store of sagas that is empty and that nobody else uses.
///
/// # Panics
/// Panics with a sentence when the store breaks its contract.
pub async fn saga(store: Arc<dyn SagaStore>) {
    sagas_are_stored_once(&*store).await;
    an_entity_has_one_active_saga(&*store).await;
    the_journal_is_kept_in_order(&*store).await;
    a_stale_version_writes_nothing(&*store).await;
    a_stale_fence_writes_nothing(&*store).await;
    a_claim_is_exclusive(&store).await;
    due_sagas_are_handed_out_once(&store).await;
    unknown_definitions_are_left_alone(&*store).await;
    leases_are_renewed_and_given_back(&*store).await;
    a_write_moves_the_deadline(&*store).await;
    operators_find_what_needs_attention(&*store).await;
    ended_sagas_are_counted_and_deleted(&*store).await;
    any_text_is_recorded(&*store).await;
}

fn row(id: &str, lease: Duration) -> SagaRow {
    SagaRow {
        id: id.to_owned(),
        definition: DefinitionId { name: "transfer".to_owned(), version: 3 },
        entity: None,
        input: vec![0, 1, 255],
        timeout: LONG,
        owner: "first".to_owned(),
        lease,
    }
}

async fn created(store: &dyn SagaStore, row: &SagaRow) -> SagaRecord {
    match store.create(row).await.expect("the store answers") {
        CreateOutcome::Created(record) => record,
        other => unreachable!("a new saga was not stored: {other:?}"),
    }
}

fn write(record: &SagaRecord, entry: JournalEntry, state: SagaState) -> SagaWrite {
    let (id, fence, version) = (record.id.clone(), record.lease.fence, record.version);
    SagaWrite { id, fence, version, entry, state, reason: None, timeout: None }
}

async fn written(store: &dyn SagaStore, record: &mut SagaRecord, entry: JournalEntry, state: SagaState) {
    let outcome = store.write(&write(record, entry, state)).await.expect("the store answers");
    assert_eq!(outcome, WriteOutcome::Written, "a write with the right fence and version was refused");
    record.version += 1;
}

async fn read(store: &dyn SagaStore, id: &str) -> SagaRecord {
    store.get(id).await.expect("the store answers").expect("a stored saga can be read")
}

fn due(owner: &str, limit: u32) -> DueSagas {
    DueSagas {
        owner: owner.to_owned(),
        lease: LONG,
        known: vec![DefinitionId { name: "transfer".to_owned(), version: 3 }],
        limit,
    }
}

async fn sagas_are_stored_once(store: &dyn SagaStore) {
    let row = row("once", LONG);
    let record = created(store, &row).await;
    assert_eq!((record.version, record.lease.fence, record.state), (0, 1, SagaState::Running));
    assert_eq!(
        record.deadline_at.since(record.created_at),
        LONG,
        "the deadline is the timeout after the start"
    );
    assert!(record.lease.until.since(record.now) > LONG / 2, "the lease begins when the saga is stored");
    match store.create(&row).await.expect("the store answers") {
        CreateOutcome::Exists(found) => {
            assert_eq!(
                (found.input, found.definition),
                (row.input, row.definition),
                "the saga reads otherwise than it was stored"
            );
        }
        other => unreachable!("a saga was stored twice: {other:?}"),
    }
    assert!(store.get("nowhere").await.expect("the store answers").is_none());
}

async fn an_entity_has_one_active_saga(store: &dyn SagaStore) {
    let on = |id: &str| SagaRow { entity: Some("account:7".to_owned()), ..row(id, LONG) };
    let mut first = created(store, &on("entity-1")).await;
    let second = store.create(&on("entity-2")).await.expect("the store answers");
    let busy = CreateOutcome::EntityBusy { saga: "entity-1".to_owned() };
    assert_eq!(second, busy, "two sagas work on one entity");
    written(store, &mut first, JournalEntry::new(EntryKind::NeedsAttention), SagaState::NeedsAttention).await;
    let second = store.create(&on("entity-2")).await.expect("the store answers");
    assert_eq!(second, busy, "a saga that needs attention lost its entity");
    written(store, &mut first, JournalEntry::new(EntryKind::Reopened), SagaState::Running).await;
    written(store, &mut first, JournalEntry::new(EntryKind::Completed), SagaState::Completed).await;
    let mut second = created(store, &on("entity-2")).await;
    written(store, &mut second, JournalEntry::new(EntryKind::NeedsAttention), SagaState::NeedsAttention)
        .await;
    let resolved = JournalEntry::new(EntryKind::Resolved).with_text("settled by hand");
    written(store, &mut second, resolved, SagaState::NeedsAttention).await;
    created(store, &on("entity-3")).await;
}

/// CRD-5: an intent can be read as soon as its write returned, and entries come back in the order of their writes.
async fn the_journal_is_kept_in_order(store: &dyn SagaStore) {
    let mut record = created(store, &row("journal", LONG)).await;
    let entries = [
        JournalEntry::of_step(EntryKind::StepIntent, "debit", 1),
        JournalEntry::of_step(EntryKind::StepAttemptFailed, "debit", 1).with_text("a word with ' and \u{e9}"),
        JournalEntry::of_step(EntryKind::StepIntent, "debit", 2),
        JournalEntry::of_step(EntryKind::StepDone, "debit", 2).with_payload(vec![0, 1, 254]),
    ];
    for (index, entry) in entries.iter().enumerate() {
        written(store, &mut record, entry.clone(), SagaState::Running).await;
        let found = read(store, "journal").await;
        let lines: Vec<_> = found
            .journal
            .iter()
            .map(|entry| JournalEntry { at: record.created_at, ..entry.clone() })
            .collect();
        let expected: Vec<_> = entries[..=index]
            .iter()
            .map(|entry| JournalEntry { at: record.created_at, ..entry.clone() })
            .collect();
        assert_eq!(lines, expected, "the journal is not what was written, in the order of the writes");
        assert_eq!(found.version, index as u64 + 1, "the version does not count the writes");
    }
    let times: Vec<_> = read(store, "journal").await.journal.iter().map(|entry| entry.at).collect();
    assert!(times.is_sorted() && times[0] >= record.created_at, "entries have no times of the store's clock");
}

async fn a_stale_version_writes_nothing(store: &dyn SagaStore) {
    let mut record = created(store, &row("version", LONG)).await;
    let stale = write(&record, JournalEntry::new(EntryKind::Completed), SagaState::Completed);
    written(store, &mut record, JournalEntry::of_step(EntryKind::StepIntent, "debit", 1), SagaState::Running)
        .await;
    let outcome = store.write(&stale).await.expect("the store answers");
    let conflict = WriteOutcome::Conflict { fence: record.lease.fence, version: 1 };
    assert_eq!(outcome, conflict, "a transition was written without comparing the version");
    let found = read(store, "version").await;
    assert_eq!((found.state, found.journal.len()), (SagaState::Running, 1), "a refused write left a trace");
    let missing = SagaWrite { id: "nowhere".to_owned(), ..stale };
    assert_ne!(store.write(&missing).await.expect("the store answers"), WriteOutcome::Written);
}

async fn a_stale_fence_writes_nothing(store: &dyn SagaStore) {
    let first = created(store, &row("fence", Duration::ZERO)).await;
    assert_eq!(first.lease.fence, 0, "a saga that nobody drives yet counts as driven");
    let ClaimOutcome::Claimed(second) =
        store.claim("fence", "second", LONG).await.expect("the store answers")
    else {
        unreachable!("a saga whose lease is over was not handed out")
    };
    assert!(second.lease.fence > first.lease.fence, "the fence did not grow with the claim");
    assert_eq!((second.lease.owner.as_str(), second.version), ("second", 0));
    let late = write(&first, JournalEntry::of_step(EntryKind::StepIntent, "debit", 1), SagaState::Running);
    let outcome = store.write(&late).await.expect("the store answers");
    assert!(matches!(outcome, WriteOutcome::Conflict { .. }), "a write with an older fence was accepted");
    assert!(
        !store.renew("fence", first.lease.fence, LONG).await.expect("the store answers"),
        "a lost lease was renewed"
    );
    store.release("fence", first.lease.fence).await.expect("the store answers");
    let held = store.claim("fence", "third", LONG).await.expect("the store answers");
    assert!(
        matches!(held, ClaimOutcome::Held(lease) if lease.owner == "second"),
        "a lost lease was given back"
    );
}

async fn a_claim_is_exclusive(store: &Arc<dyn SagaStore>) {
    for round in 0..10 {
        let id = format!("claim-{round}");
        created(&**store, &row(&id, Duration::ZERO)).await;
        let mut claims = tokio::task::JoinSet::new();
        for number in 0..4 {
            let (store, id) = (store.clone(), id.clone());
            claims.spawn(async move { store.claim(&id, &format!("owner-{number}"), LONG).await });
        }
        let outcomes = claims.join_all().await;
        let claimed =
            outcomes.iter().filter(|outcome| matches!(outcome, Ok(ClaimOutcome::Claimed(_)))).count();
        assert_eq!(claimed, 1, "a claim is not exclusive");
    }
    let missing = store.claim("nowhere", "owner", LONG).await.expect("the store answers");
    assert_eq!(missing, ClaimOutcome::Missing);
}

async fn due_sagas_are_handed_out_once(store: &Arc<dyn SagaStore>) {
    for number in 0..20 {
        let mut record = created(&**store, &row(&format!("due-{number:02}"), Duration::ZERO)).await;
        let intent = JournalEntry::of_step(EntryKind::StepIntent, "debit", 1);
        written(&**store, &mut record, intent, SagaState::Running).await;
    }
    created(&**store, &row("due-held", LONG)).await;
    let mut claims = tokio::task::JoinSet::new();
    for number in 0..4 {
        let store = store.clone();
        claims.spawn(async move { store.claim_due(&due(&format!("owner-{number}"), 8)).await });
    }
    let mut taken: Vec<SagaRecord> =
        claims.join_all().await.into_iter().flat_map(|taken| taken.expect("the store answers")).collect();
    // Those who asked at the same moment may have passed over each other's rows.
    taken.extend(store.claim_due(&due("last", 100)).await.expect("the store answers"));
    let mut ids: Vec<&str> = taken.iter().map(|record| record.id.as_str()).collect();
    ids.sort_unstable();
    let expected: Vec<String> = (0..20).map(|number| format!("due-{number:02}")).collect();
    assert_eq!(ids, expected, "due sagas are not handed out exactly once each");
    assert!(taken.iter().all(|record| record.journal.len() == 1), "a claimed saga came without its journal");
    assert!(taken.iter().all(|record| record.lease.fence == 1 && record.version == 1));
}

async fn unknown_definitions_are_left_alone(store: &dyn SagaStore) {
    created(store, &row("unknown", Duration::ZERO)).await;
    let other = vec![DefinitionId { name: "transfer".to_owned(), version: 4 }];
    let stranger = DueSagas { known: other, ..due("stranger", 10) };
    let taken = store.claim_due(&stranger).await.expect("the store answers");
    assert!(taken.is_empty(), "a process took a saga of a definition that it does not know");
    let nobody = DueSagas { known: Vec::new(), ..stranger };
    let taken = store.claim_due(&nobody).await.expect("the store answers");
    assert!(taken.is_empty(), "a process took a saga of a definition that it does not know");
    let listed = |age| async move {
        let filter = SagaFilter { state: None, unclaimed_for: Some(age), after: None, limit: 10 };
        let page = store.list(&filter).await.expect("the store answers");
        page.into_iter().map(|record| record.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(Duration::ZERO).await, ["unknown"], "a saga that nobody drives is not listed");
    assert!(listed(LONG).await.is_empty(), "a saga is listed as unclaimed too early");
    let counts = store.unclaimed(Duration::ZERO).await.expect("the store answers");
    let definition = DefinitionId { name: "transfer".to_owned(), version: 3 };
    assert_eq!(counts, [(definition, 1)], "sagas that nobody drives are not counted by definition");
    let early = store.unclaimed(LONG).await.expect("the store answers");
    assert!(early.is_empty(), "a saga is counted as unclaimed too early");
    let taken = store.claim_due(&due("owner", 10)).await.expect("the store answers");
    assert_eq!(taken.len(), 1, "a saga was not handed out to a process that knows it");
    let counts = store.unclaimed(Duration::ZERO).await.expect("the store answers");
    assert!(counts.is_empty(), "a saga is unclaimed although a process drives it");
}

async fn leases_are_renewed_and_given_back(store: &dyn SagaStore) {
    let record = created(store, &row("lease", Duration::from_millis(1))).await;
    assert!(store.renew("lease", record.lease.fence, LONG).await.expect("the store answers"));
    let held = store.claim("lease", "second", LONG).await.expect("the store answers");
    assert!(matches!(held, ClaimOutcome::Held(_)), "a renewed lease was taken");
    store.release("lease", record.lease.fence).await.expect("the store answers");
    let claimed = store.claim("lease", "second", Duration::from_millis(50)).await.expect("the store answers");
    assert!(matches!(claimed, ClaimOutcome::Claimed(_)), "a lease that was given back can't be taken");
    let mut outcome = store.claim("lease", "third", LONG).await.expect("the store answers");
    while matches!(outcome, ClaimOutcome::Held(_)) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        outcome = store.claim("lease", "third", LONG).await.expect("the store answers");
    }
    assert!(matches!(outcome, ClaimOutcome::Claimed(_)), "a lease that ran out can't be taken");
}

async fn a_write_moves_the_deadline(store: &dyn SagaStore) {
    let mut record = created(store, &row("deadline", LONG)).await;
    let intent = JournalEntry::of_step(EntryKind::StepIntent, "debit", 1);
    written(store, &mut record, intent, SagaState::Running).await;
    assert_eq!(
        read(store, "deadline").await.deadline_at,
        record.deadline_at,
        "a plain write moved the deadline"
    );
    let reopened = write(&record, JournalEntry::new(EntryKind::Reopened), SagaState::Running);
    let reopened = SagaWrite { timeout: Some(LONG * 2), ..reopened };
    assert_eq!(store.write(&reopened).await.expect("the store answers"), WriteOutcome::Written);
    let found = read(store, "deadline").await;
    assert_eq!(found.deadline_at.since(found.updated_at), LONG * 2, "a write did not move the deadline");
    // It does not look like work for the next checks.
    let end = SagaRecord { version: record.version + 1, ..record };
    let end = write(&end, JournalEntry::new(EntryKind::Completed), SagaState::Completed);
    assert_eq!(store.write(&end).await.expect("the store answers"), WriteOutcome::Written);
}

async fn operators_find_what_needs_attention(store: &dyn SagaStore) {
    let filter = |after: Option<&str>| SagaFilter {
        state: Some(SagaState::NeedsAttention),
        unclaimed_for: None,
        after: after.map(ToOwned::to_owned),
        limit: 1,
    };
    for id in ["need-1", "need-2"] {
        let record = created(store, &row(id, LONG)).await;
        let entry = JournalEntry::new(EntryKind::NeedsAttention);
        let write = SagaWrite {
            reason: Some("no peer".to_owned()),
            ..write(&record, entry, SagaState::NeedsAttention)
        };
        assert_eq!(store.write(&write).await.expect("the store answers"), WriteOutcome::Written);
    }
    let page = store.list(&filter(None)).await.expect("the store answers");
    assert_eq!((page.len(), page[0].id.as_str(), page[0].reason.as_deref()), (1, "need-1", Some("no peer")));
    let page = store.list(&filter(Some("need-1"))).await.expect("the store answers");
    assert_eq!(page[0].id, "need-2", "the second page is not the second page");
    let taken = store.claim_due(&due("monitor", 100)).await.expect("the store answers");
    assert!(taken.is_empty(), "a monitor took a saga that needs attention: {taken:?}");
    let ClaimOutcome::Claimed(mut record) =
        store.claim("need-1", "operator", LONG).await.expect("the store answers")
    else {
        unreachable!("an operator can't claim a saga that needs attention")
    };
    let resolved = JournalEntry::new(EntryKind::Resolved).with_text("paid back by hand");
    written(store, &mut record, resolved, SagaState::NeedsAttention).await;
    let page = store.list(&filter(None)).await.expect("the store answers");
    assert_eq!(page[0].id, "need-2", "a resolved saga is still listed");
    assert_eq!(read(store, "need-1").await.resolution.as_deref(), Some("paid back by hand"));
    let ended = store.claim("need-1", "operator", LONG).await.expect("the store answers");
    assert!(matches!(ended, ClaimOutcome::Ended(_)), "a resolved saga can be claimed");
}

async fn ended_sagas_are_counted_and_deleted(store: &dyn SagaStore) {
    let number = |counts: &[(SagaState, u64)], state| {
        counts.iter().find(|(of, _)| *of == state).map_or(0, |(_, number)| *number)
    };
    let before = store.count().await.expect("the store answers");
    let mut record = created(store, &row("count", LONG)).await;
    let during = store.count().await.expect("the store answers");
    let running = SagaState::Running;
    assert_eq!(number(&during, running), number(&before, running) + 1, "sagas are not counted by state");
    written(store, &mut record, JournalEntry::new(EntryKind::Compensated), SagaState::Compensated).await;
    let after = store.count().await.expect("the store answers");
    assert_eq!(number(&after, running), number(&before, running), "an ended saga counts as running");
    assert_eq!(number(&after, SagaState::Compensated), 0, "ended sagas are counted");
    assert_eq!(number(&after, SagaState::NeedsAttention), 1, "resolved sagas are counted");
    assert_eq!(store.clean_up(LONG, 100).await.expect("the store answers"), 0, "a young saga was deleted");
    assert!(
        store.clean_up(Duration::ZERO, 1).await.expect("the store answers") <= 1,
        "more was deleted than asked for"
    );
    while store.clean_up(Duration::ZERO, 100).await.expect("the store answers") > 0 {}
    assert!(store.get("count").await.expect("the store answers").is_none(), "an old saga was not deleted");
    assert!(
        store.get("need-2").await.expect("the store answers").is_some(),
        "a saga that needs attention was deleted"
    );
    assert!(store.get("lease").await.expect("the store answers").is_some(), "an active saga was deleted");
}

/// Errors and reasons hold what others sent: a text that a database can't hold must not keep an entry from being written.
async fn any_text_is_recorded(store: &dyn SagaStore) {
    let record = created(store, &row("texts", LONG)).await;
    let entry = JournalEntry::of_step(EntryKind::StepAttemptFailed, "debit", 1).with_text("no\0 funds");
    let write =
        SagaWrite { reason: Some("no\0 funds".to_owned()), ..write(&record, entry, SagaState::Compensating) };
    let outcome = store.write(&write).await.expect("a NUL in a text keeps an entry from being written");
    assert_eq!(outcome, WriteOutcome::Written);
    let record = read(store, "texts").await;
    let texts = [record.reason.as_deref(), record.journal[0].text.as_deref()];
    assert!(
        texts.iter().all(|text| text.is_some_and(|text| text.contains("funds"))),
        "a text is lost: {texts:?}"
    );
}
