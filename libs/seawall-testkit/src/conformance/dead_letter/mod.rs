//! What a store of dead letters has to hold.
#![expect(clippy::panic, reason = "a suite panics with a sentence when a store breaks its contract")]

mod replays;

use std::sync::Arc;
use std::time::Duration;

use seawall_dist::Millis;
use seawall_dist::deadletter::{
    Answer, Attempt, ChangeOutcome, CopyOutcome, DeadLetter, DeadLetterStore, Edit, FailedReplay, Filter,
    LetterChange, LetterFault, LetterOrder, Origin, PutOutcome, Record, ReplayRequest, ReplayStart,
    SentRequest, Status,
};

/// Checks a store of dead letters that nobody else uses.
///
/// # Panics
/// If the store breaks its contract, with a sentence that says how.
pub async fn dead_letter(store: Arc<dyn DeadLetterStore>) {
    let store = store.as_ref();
    records_come_back_whole(store).await;
    attempts_are_never_overwritten(store).await;
    replays::a_replay_loses_nothing(store).await;
    replays::one_key_is_one_replay(store).await;
    replays::a_failed_replay_adds_an_attempt(store).await;
    replays::a_letter_that_dies_again_waits_again(store).await;
    a_restored_letter_stands_where_it_stood(store).await;
    parked_letters_are_left_alone(store).await;
    replays::copies_are_linked(store).await;
    replays::a_letter_whose_replay_runs_is_not_copied(store).await;
    pages_show_every_letter_once(store).await;
    lists_follow_the_order_of_events(store).await;
    searches_find_text_everywhere(store).await;
    groups_are_counted(store).await;
    purges_spare_what_waits(store).await;
}

fn record(id: &str, place: &str) -> Record {
    Record {
        id: id.into(),
        origin: Origin {
            kind: "amqp".into(),
            place: place.into(),
            id: format!("message of {id}"),
            at: Some(Millis(1_794_744_000_250)),
        },
        payload: vec![0, 159, 146, 150, b'p'],
        headers: vec![("x-order".into(), "Ä \"7\"\n\0".into()), ("x-order".into(), "twice".into())],
        fault: LetterFault { reason: "attempts".into(), message: Some("503 from billing".into()) },
        at: Millis(1_794_744_001_000),
        attempts: vec![attempt(1), attempt(2)],
        trace: Some("4bf92f3577b34da6a3ce929d0e0e4736".into()),
    }
}

fn attempt(number: i64) -> Attempt {
    Attempt {
        at: Millis(1_794_744_000_000 + number),
        took: Duration::from_nanos(1_234_567_891),
        sent: Some(SentRequest {
            line: "POST /invoices".into(),
            headers: vec![("accept".into(), "*/*".into())],
        }),
        error: (number % 2 == 0).then(|| "connection reset".into()),
        answer: (number % 2 == 1).then(|| Answer {
            status: 503,
            headers: vec![("retry-after".into(), "7".into())],
            body: vec![0, 255, b'x'],
        }),
    }
}

async fn put(store: &dyn DeadLetterStore, record: &Record) -> PutOutcome {
    store.put(record).await.expect("the store takes a record")
}

async fn get(store: &dyn DeadLetterStore, id: &str) -> DeadLetter {
    let letter = store.get(id).await.expect("the store answers");
    letter.unwrap_or_else(|| panic!("the letter `{id}` is lost"))
}

async fn change(store: &dyn DeadLetterStore, id: &str, change: LetterChange) -> ChangeOutcome {
    store.change(id, change).await.expect("the store answers")
}

async fn begin(store: &dyn DeadLetterStore, id: &str, request: &ReplayRequest) -> ReplayStart {
    store.begin_replay(id, request).await.expect("the store answers")
}

async fn start(store: &dyn DeadLetterStore, id: &str, key: &str) -> u64 {
    match begin(store, id, &ReplayRequest::new(key)).await {
        ReplayStart::Started { claim, .. } => claim,
        other => panic!("a letter that waits can be replayed, but the store says {other:?}"),
    }
}

async fn finish(store: &dyn DeadLetterStore, id: &str, claim: u64, failure: Option<&FailedReplay>) -> bool {
    store.finish_replay(id, claim, failure).await.expect("the store answers")
}

async fn records_come_back_whole(store: &dyn DeadLetterStore) {
    let record = record("whole", "whole");
    assert_eq!(put(store, &record).await, PutOutcome::Created);
    let letter = get(store, "whole").await;
    assert_eq!(letter, DeadLetter::new(record), "a record comes back as it was put away");
    assert_eq!(store.get("nobody").await.expect("the store answers"), None);
    assert_eq!(change(store, "nobody", LetterChange::Park).await, ChangeOutcome::Absent);
    assert_eq!(begin(store, "nobody", &ReplayRequest::new("k")).await, ReplayStart::Absent);
    let copy = store.copy("nobody", &Edit::default(), "copy of nobody").await.expect("the store answers");
    assert_eq!(copy, CopyOutcome::Absent);
    assert_eq!(store.get("copy of nobody").await.expect("the store answers"), None);
    let mut poor = self::record("poor", "whole");
    (poor.trace, poor.fault.message, poor.origin.at) = (None, None, None);
    (poor.headers, poor.attempts, poor.payload) = (Vec::new(), Vec::new(), Vec::new());
    put(store, &poor).await;
    assert_eq!(get(store, "poor").await.record, poor, "what is absent comes back as absent");
}

async fn attempts_are_never_overwritten(store: &dyn DeadLetterStore) {
    let first = record("again", "again");
    put(store, &first).await;
    assert_eq!(put(store, &first).await, PutOutcome::Known, "the same record twice is one letter");
    let mut second = first.clone();
    (second.attempts, second.at) = (vec![attempt(3)], Millis(first.at.0 + 5));
    second.fault.reason = "age".into();
    assert_eq!(put(store, &second).await, PutOutcome::Updated);
    let letter = get(store, "again").await;
    assert_eq!(
        letter.record.attempts,
        [attempt(1), attempt(2), attempt(3)],
        "a second put overwrites the attempts of the first"
    );
    assert_eq!((letter.record.fault.reason.as_str(), letter.record.at), ("age", second.at));
}

async fn a_restored_letter_stands_where_it_stood(store: &dyn DeadLetterStore) {
    put(store, &record("restored", "restored")).await;
    assert_eq!(change(store, "restored", LetterChange::Restore).await, ChangeOutcome::Unchanged);
    change(store, "restored", LetterChange::Park).await;
    let before = get(store, "restored").await;
    assert_eq!(change(store, "restored", LetterChange::Delete).await, ChangeOutcome::Changed);
    assert_eq!(change(store, "restored", LetterChange::Delete).await, ChangeOutcome::Unchanged);
    assert!(get(store, "restored").await.deleted_at.is_some(), "a deleted letter is kept");
    let visible = Filter::default().place("restored");
    assert!(ids(store, &visible).await.is_empty(), "a deleted letter is not listed");
    assert_eq!(ids(store, &visible.deleted()).await, ["restored"]);
    assert_eq!(change(store, "restored", LetterChange::Unpark).await, ChangeOutcome::Refused(Status::Parked));
    assert!(matches!(begin(store, "restored", &ReplayRequest::new("k")).await, ReplayStart::Refused(_)));
    assert_eq!(change(store, "restored", LetterChange::Restore).await, ChangeOutcome::Changed);
    assert_eq!(get(store, "restored").await, before, "a restored letter forgets where it stood");
}

async fn parked_letters_are_left_alone(store: &dyn DeadLetterStore) {
    put(store, &record("parked", "parked")).await;
    assert_eq!(change(store, "parked", LetterChange::Park).await, ChangeOutcome::Changed);
    assert_eq!(change(store, "parked", LetterChange::Park).await, ChangeOutcome::Unchanged);
    let again = ReplayRequest::new("k").again();
    assert_eq!(begin(store, "parked", &again).await, ReplayStart::Refused(Status::Parked));
    assert_eq!(change(store, "parked", LetterChange::Unpark).await, ChangeOutcome::Changed);
    start(store, "parked", "k").await;
}

async fn ids(store: &dyn DeadLetterStore, filter: &Filter) -> Vec<String> {
    let page = store.list(filter, LetterOrder::NewestFirst, None, 100).await.expect("the store lists");
    page.letters.into_iter().map(|letter| letter.record.id).collect()
}

async fn pages_show_every_letter_once(store: &dyn DeadLetterStore) {
    for number in 0..10_i64 {
        let mut record = record(&format!("page {number}"), "pages");
        // Some letters die in the same millisecond.
        record.at = Millis(number / 3);
        record.fault.reason = if number % 2 == 0 { "age" } else { "refused" }.into();
        put(store, &record).await;
    }
    let filter = Filter::default().kind("amqp").place("pages").status(Status::Waiting);
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page =
            store.list(&filter, LetterOrder::NewestFirst, after.as_ref(), 3).await.expect("the store lists");
        seen.extend(page.letters.iter().map(|letter| letter.record.id.clone()));
        if seen.len() == 3 {
            put(store, &{
                let mut new = record("page new", "pages");
                new.at = Millis(9);
                new
            })
            .await;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let expected: Vec<String> = (0..10).rev().map(|number| format!("page {number}")).collect();
    assert_eq!(seen, expected, "pages show every letter once, the newest one first");
    let within = filter.clone().reason("age").from(Millis(1)).until(Millis(3));
    assert_eq!(ids(store, &within).await, ["page 8", "page 6", "page 4"]);
    assert!(ids(store, &filter.status(Status::Parked)).await.is_empty());
}

async fn lists_follow_the_order_of_events(store: &dyn DeadLetterStore) {
    // Given up in this order; `None` means that the sender's time is unknown.
    let happened = [Some(300), Some(100), None, Some(200), Some(100), Some(5_000)];
    for (number, at) in (0_i64..).zip(happened) {
        let mut record = record(&format!("event {number}"), "events");
        (record.at, record.origin.at) = (Millis(1_000 + number), at.map(Millis));
        put(store, &record).await;
    }
    let (filter, mut seen, mut after) = (Filter::default().place("events"), Vec::new(), None);
    loop {
        let page = store.list(&filter, LetterOrder::AsItHappened, after.as_ref(), 2).await;
        let page = page.expect("the store lists");
        seen.extend(page.letters.iter().map(|letter| letter.record.id.clone()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let expected = [1, 4, 3, 0, 2, 5].map(|number| format!("event {number}"));
    assert_eq!(seen, expected, "a list follows the order in which things happened");
}

async fn searches_find_text_everywhere(store: &dyn DeadLetterStore) {
    let mut text = record("text", "texts");
    text.payload = "{\"customer\": \"Grüße 100% _O'Brien\\\"}".into();
    text.headers = vec![("X-Tenant".into(), "ACME".into())];
    put(store, &text).await;
    put(store, &record("binary", "texts")).await;
    let find = |needle: &str| Filter::default().place("texts").text(needle);
    for needle in ["customer", "GRÜSSE", "grüße", "100% _o'br", "brien\\\"", "x-tenant: acme", "503 FROM"]
    {
        let found = ids(store, &find(needle)).await;
        let expected = needle != "GRÜSSE";
        assert_eq!(found.iter().any(|id| id == "text"), expected, "{needle:?} finds {found:?}");
    }
    assert_eq!(ids(store, &find("twice")).await, ["binary"]);
    assert!(ids(store, &find("10%%")).await.is_empty(), "a percent sign is no wildcard");
    assert_eq!(ids(store, &find("")).await.len(), 2, "an empty text is no filter");
}

async fn groups_are_counted(store: &dyn DeadLetterStore) {
    for number in 0..5_i64 {
        let mut record = record(&format!("group {number}"), "groups");
        record.at = Millis(100 - number);
        record.fault.reason = if number < 3 { "age" } else { "refused" }.into();
        put(store, &record).await;
    }
    change(store, "group 4", LetterChange::Park).await;
    let filter = Filter::default().place("groups");
    let groups = store.counts(&filter, 10).await.expect("the store counts");
    let mut groups: Vec<_> = groups
        .iter()
        .map(|group| (group.count, group.reason.as_str(), group.status, group.oldest.0))
        .collect();
    groups[1..].sort_unstable_by_key(|(_, _, status, _)| *status);
    let expected = [
        (3, "age", Status::Waiting, 98),
        (1, "refused", Status::Waiting, 97),
        (1, "refused", Status::Parked, 96),
    ];
    assert_eq!(groups, expected);
    assert_eq!(store.counts(&filter, 1).await.expect("the store counts").len(), 1);
}

async fn purges_spare_what_waits(store: &dyn DeadLetterStore) {
    for id in ["purge waits", "purge parked", "purge deleted", "purge replayed"] {
        put(store, &record(id, "purges")).await;
    }
    change(store, "purge parked", LetterChange::Park).await;
    change(store, "purge deleted", LetterChange::Delete).await;
    let claim = start(store, "purge replayed", "k").await;
    finish(store, "purge replayed", claim, None).await;
    let month = Duration::from_secs(30 * 86_400);
    assert_eq!(store.purge(month, month, 100).await.expect("the store purges"), 0, "what is young is kept");
    while store.purge(Duration::ZERO, Duration::ZERO, 1).await.expect("the store purges") > 0 {}
    let left = [
        store.get("purge waits").await.expect("the store answers").is_some(),
        store.get("purge parked").await.expect("the store answers").is_some(),
        store.get("purge deleted").await.expect("the store answers").is_some(),
        store.get("purge replayed").await.expect("the store answers").is_some(),
    ];
    assert_eq!(
        left,
        [true, true, false, false],
        "a purge removes what was deleted or replayed, and nothing else"
    );
}
