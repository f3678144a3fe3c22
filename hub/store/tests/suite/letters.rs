//! Dead letters are found, grouped and counted.

use std::collections::BTreeMap;

use seawall_hub_core::domain::dead_letter::{
    Fingerprint, GroupFilter, GroupState, LetterCounts, LetterFilter, LetterGroup, LetterState,
};
use serde_json::json;

use super::StoreFactory;
use super::fixtures::*;
use super::letter_mix::{Dice, any_filter, everything_there, populated, takes};

pub(crate) const ALL: PageRequest = PageRequest { from: None, size: 1_000 };

async fn groups(store: &impl Store) -> Vec<LetterGroup> {
    store.groups(GroupFilter::default(), ALL).await.unwrap().items
}

async fn find(store: &impl Store, filter: LetterFilter) -> Vec<DeliveryId> {
    let letters = store.dead_letters(filter, ALL).await.unwrap();
    letters.page.items.iter().map(|dead| dead.delivery.id).collect()
}

/// All words are in the index.
async fn index(store: &impl Store) {
    while store.commit(WritePriority::Retention, unit([Change::Index { limit: 7 }])).await.unwrap().touched
        > 0
    {}
}

/// HUB-6: dead letters are found by words of their event, their errors and their names, the last word while it is typed; and
/// whoever searches is told what is not in the index yet.
pub(crate) async fn hub_6_dead_letters_are_found_by_their_words<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let one = dies(&store, &failing("evt-A-7731", "Zürich said no"), "customer \"Ann\" unknown").await;
    let two = dies(&store, &failing("evt-B-1", "out of stock"), "no such thing").await;
    let search = async |text: &str| {
        let filter = LetterFilter { text: Some(text.into()), ..LetterFilter::default() };
        let found = store.dead_letters(filter, ALL).await.unwrap();
        (found.page.items.iter().map(|dead| dead.delivery.id).collect::<Vec<_>>(), found.unindexed)
    };
    assert_eq!(search("stock").await, (vec![], 2), "not yet, and it says so");
    index(&store).await;
    let by_name = one.to_string();
    for (text, expected) in [
        ("stock", vec![two]),
        ("out of", vec![two]),
        ("sto", vec![two]),
        ("sto out", vec![]),
        ("\"of out\"", vec![]),
        ("ZÜRICH", vec![one]),
        ("A-7731", vec![one]),
        ("ann unknown", vec![one]),
        (by_name.as_str(), vec![one]),
        ("evt", vec![two, one]),
        ("no", vec![two, one]),
        ("nothing such", vec![]),
        ("\" OR 1=1 --", vec![]),
        ("***", vec![]),
    ] {
        assert_eq!(search(text).await, (expected, 0), "{text}");
    }
    if F::CAPABILITIES.full_text {
        assert_eq!(search("ZURICH").await, (vec![one], 0), "without its diacritics");
    }
    store
        .commit(
            WritePriority::Admin,
            unit([Change::Move(LetterMove { dead: two, to: LetterAction::Purge, at: NOW })]),
        )
        .await
        .unwrap();
    assert_eq!(search("stock").await, (vec![], 0));
}

/// HUB-6: a peer that says something else each time does not make as many groups as dead letters.
pub(crate) async fn hub_6_a_peer_that_talks_too_much_makes_a_bounded_number_of_groups<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let letters = |number: usize| {
        let letter = |place: usize| char::from(b'a' + u8::try_from(place % 26).unwrap());
        String::from_iter([letter(number), letter(number / 26), 'x'])
    };
    for number in 0..130 {
        dies(&store, &failing(&format!("evt-{number}"), "data"), &format!("no {}", letters(number))).await;
    }
    let groups = groups(&store).await;
    assert_eq!(groups.len(), 101);
    let rest: Vec<u64> = groups
        .iter()
        .filter(|group| group.failure.message.is_empty())
        .map(|group| group.counts.of(LetterState::Open))
        .collect();
    assert_eq!(rest, [30], "the rest is one group");
}

/// An event with this word in it.
pub(crate) fn failing(id: &str, word: &str) -> Event {
    let payload = json!({"id": id, "data": {"word": word}}).to_string().into();
    Event { payload, ..(*event(id)).clone() }
}

/// Its delivery is given up, with this said by the peer.
async fn dies(store: &impl Store, event: &Event, said: &str) -> DeliveryId {
    dies_as(store, event, to("billing"), DeadLetterReason::Refused, 422, NOW, said).await
}

pub(crate) async fn dies_as(
    store: &impl Store,
    event: &Event,
    new: NewDelivery,
    reason: DeadLetterReason,
    status: u16,
    at: Millis,
    said: &str,
) -> DeliveryId {
    let add = Change::AddEvent(Arc::new(event.clone()), vec![new]);
    let delivery = store.commit(WritePriority::Ingest, unit([add])).await.unwrap().names()[0];
    settle_as(store, delivery, reason, status, at, said, false).await;
    delivery
}

pub(crate) async fn settle_as(
    store: &impl Store,
    delivery: DeliveryId,
    reason: DeadLetterReason,
    status: u16,
    at: Millis,
    said: &str,
    replays: bool,
) {
    let body = json!({"error": said}).to_string().into_bytes();
    let answer = Some(Answer { status, headers: vec![], body });
    let attempt = Attempt { at, took: Duration::ZERO, sent: None, error: Some("refused".into()), answer };
    let failure = Some(FailureSummary::of_attempt(&attempt));
    let settled = settlement(claim(store, delivery), dead(reason));
    let settlement = Settlement { at, attempt: Some(attempt), failure, is_replay: replays, ..settled };
    store.commit(WritePriority::Outcomes, unit([Change::Settle(settlement)])).await.unwrap();
}

/// HUB-6: whatever is asked for, the desk finds exactly what a look at each one finds, in pages as well; counts what it finds; and
/// groups count what is there after any moves.
pub(crate) async fn hub_6_filters_find_what_a_look_at_each_finds_and_groups_count_right<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let mut dice = Dice::new();
    let all = populated(&store, &mut dice, 300).await;
    index(&store).await;
    let there = everything_there(&store).await;
    let groups = groups(&store).await;
    let mut counted: BTreeMap<Fingerprint, LetterCounts> = BTreeMap::new();
    for dead in &there {
        counted.entry(dead.group).or_default().0[dead.state as usize] += 1;
    }
    let kept: BTreeMap<Fingerprint, LetterCounts> =
        groups.iter().map(|group| (group.fingerprint, group.counts)).collect();
    assert_eq!(kept, counted);
    assert!(LetterState::ALL.iter().all(|one| there.iter().any(|dead| dead.state == *one)), "all are there");

    let names: Vec<Fingerprint> = groups.iter().map(|group| group.fingerprint).collect();
    let mut found_some = 0;
    for _ in 0..400 {
        let filter = any_filter(&mut dice, &all, &names);
        let expected: Vec<DeliveryId> =
            there.iter().filter(|dead| takes(&filter, dead)).map(|dead| dead.delivery.id).collect();
        found_some += usize::from(!expected.is_empty());
        assert_eq!(find(&store, filter.clone()).await, expected, "{filter:?}");
        let count = store.count_letters(filter.clone(), 1_000_000).await.unwrap();
        assert_eq!((count.count, count.all), (expected.len() as u64, true), "{filter:?}");
        let (mut pages, mut from) = (Vec::new(), None);
        loop {
            let page = store.dead_letters(filter.clone(), PageRequest { from, size: 7 }).await.unwrap().page;
            pages.extend(page.items.iter().map(|dead| dead.delivery.id));
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(pages, expected, "in pages: {filter:?}");
        let (mut oldest, mut behind) = (Vec::new(), 0);
        loop {
            let (some, last, more) = store.letters_behind(filter.clone(), behind, 5).await.unwrap();
            oldest.extend(some.iter().map(|(dead, _)| dead.delivery.id));
            behind = last;
            if !more {
                break;
            }
        }
        oldest.reverse();
        assert_eq!(oldest, expected, "the oldest first: {filter:?}");
    }
    assert!(found_some > 100, "only {found_some} filters have found something");
}

/// HUB-6: notes and states of groups that are not there are refused.
pub(crate) async fn hub_6_what_is_not_there_has_no_note<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let fingerprint = Fingerprint(7);
    for note in [
        Annotation::Group { fingerprint, note: None },
        Annotation::GroupState { fingerprint, state: GroupState::Resolved },
    ] {
        let done = store.commit(WritePriority::Admin, unit([Change::Note(note)])).await;
        assert_eq!(done, Err(StoreError::Stale { found: None }));
    }
    let dead = DeliveryId::new(1, 1);
    let done = store
        .commit(WritePriority::Admin, unit([Change::Note(Annotation::Letter { dead, note: None })]))
        .await;
    assert_eq!(done, Err(StoreError::NotADeadLetter(dead)));
}

/// HUB-6: a dead letter is parked, deleted, restored and purged, each from where it can be done; a refusal says where it stands. A
/// purged one is gone for good, also after a restart.
pub(crate) async fn hub_6_a_dead_letter_is_deleted_restored_and_purged<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let letter = dies(&store, &failing("evt", "word"), "no").await;
    let act = |to| put(&store, Change::Move(LetterMove { dead: letter, to, at: NOW }));
    let state = async || store.dead_letter(letter).await.unwrap().unwrap().dead.state;
    for to in [LetterAction::Unpark, LetterAction::Restore] {
        assert_eq!(act(to).await, Err(StoreError::WrongState("open")), "{to:?}");
    }
    act(LetterAction::Park).await.unwrap();
    assert_eq!(state().await, LetterState::Parked);
    act(LetterAction::Delete).await.unwrap();
    assert_eq!(find(&store, LetterFilter::default()).await, [], "out of sight");
    assert_eq!(groups(&store).await[0].state, GroupState::Resolved, "nothing is left to handle");
    assert_eq!(act(LetterAction::Park).await, Err(StoreError::WrongState("deleted")));
    let replay = ReplayChange { dead: letter, new: to("billing"), at: NOW, again: true, edited: false };
    assert_eq!(put(&store, Change::Replay(replay)).await, Err(StoreError::WrongState("deleted")));
    act(LetterAction::Restore).await.unwrap();
    assert_eq!(state().await, LetterState::Open);
    dies(&store, &failing("evt-2", "word"), "no").await;
    let [group] = &groups(&store).await[..] else { unreachable!("one group") };
    assert_eq!((group.state, group.reopened, group.counts.of(LetterState::Open)), (GroupState::Open, 1, 2));
    act(LetterAction::Purge).await.unwrap();
    place.kill(store).await;
    let store = place.open().await.unwrap();
    assert_eq!(store.dead_letter(letter).await.unwrap(), None);
    let (kept, attempts) = store.delivery(letter).await.unwrap().unwrap();
    assert_eq!((kept.state, attempts.len()), (DeliveryState::DeadLettered, 0), "its evidence is gone");
    assert_eq!(groups(&store).await[0].counts.of(LetterState::Open), 1);
}
