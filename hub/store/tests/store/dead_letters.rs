//! The dead letter desk: where dead letters stand, their groups, finding them.

use std::collections::BTreeMap;
use std::time::Duration;

use seawall_dist::deadletter::{Answer, Attempt};
use seawall_hub_core::domain::dead_letter::{
    FailureSummary, Fingerprint, GroupFilter, GroupState, LetterCounts, LetterFilter, LetterGroup,
    LetterState, Visibility,
};
use seawall_hub_core::domain::delivery::{
    DeadLetterReason, Decision, DeliveryId, DeliveryState, Disposition,
};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    Annotation, Change, DeadLetter, DeadLetterReads, EventReads, LetterAction, LetterMove, NewDelivery,
    PageRequest, ReplayChange, Settlement, StoreError, UnitStore, WritePriority,
};
use seawall_hub_core::service::{ChangeError, LetterEdit, ReplayMode, ReplayRequest};
use seawall_hub_store::Sqlite;
use serde_json::json;

use crate::conformance::{
    DELIVERED, NOW, Names, Place, claim, dead, event, kept, settlement, slug, to, unit,
};
use crate::scene::{Scene, USUAL, everything, says};

const ALL: PageRequest = PageRequest { from: None, size: 1_000 };

async fn groups(store: &Sqlite) -> Vec<LetterGroup> {
    store.groups(GroupFilter::default(), ALL).await.unwrap().items
}

async fn find(store: &Sqlite, filter: LetterFilter) -> Vec<DeliveryId> {
    let letters = store.dead_letters(filter, ALL).await.unwrap();
    letters.page.items.iter().map(|dead| dead.delivery.id).collect()
}

async fn state(store: &Sqlite, id: DeliveryId) -> LetterState {
    store.dead_letter(id).await.unwrap().unwrap().dead.state
}

/// All words are in the index.
async fn index(store: &Sqlite) {
    while store.commit(WritePriority::Retention, unit([Change::Index { most: 7 }])).await.unwrap().touched > 0
    {
    }
}

fn counts(pairs: &[(LetterState, u64)]) -> LetterCounts {
    let mut counts = LetterCounts::default();
    for (state, count) in pairs {
        counts.0[*state as usize] = *count;
    }
    counts
}

/// HUB-6: what has failed alike is one group that counts; it follows its dead letters to the end, is then done with, and is open
/// again with the next failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_6_a_group_counts_is_resolved_and_opens_again() {
    let place = Place::new();
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let one = scene.dead_letter("one", json!({})).await;
            let two = scene.dead_letter("two", json!({})).await;
            let [group] = &groups(&scene.store).await[..] else { unreachable!("one group") };
            assert_eq!((group.counts, group.state), (counts(&[(LetterState::Open, 2)]), GroupState::Open));
            assert_eq!((group.sample, group.failure.status), (Some(two), Some(422)));
            let name = group.fingerprint;
            scene
                .hub
                .dead_letters
                .settle_group(&scene.cx(), name, GroupState::Acknowledged, Some("on it".into()))
                .await
                .unwrap();

            let same = ReplayRequest { mode: ReplayMode::Same, again: false, key: None };
            let made = scene.replay(one, &same).await.unwrap();
            scene.until(made, DeliveryState::Delivered).await;
            scene.peer.script("two", [says(422)]);
            let failed = scene.replay(two, &same).await.unwrap();
            scene.until(failed, DeliveryState::DeadLettered).await;
            assert_eq!(state(&scene.store, one).await, LetterState::Delivered);
            assert_eq!(state(&scene.store, two).await, LetterState::FailedAgain);
            assert_eq!(state(&scene.store, failed).await, LetterState::Open, "exactly one is open");
            let group = scene.store.group(name).await.unwrap().unwrap();
            let expected =
                [(LetterState::Open, 1), (LetterState::Delivered, 1), (LetterState::FailedAgain, 1)];
            assert_eq!((group.counts, group.state), (counts(&expected), GroupState::Acknowledged));
            assert_eq!(group.note.as_deref(), Some("on it"));

            let made = scene.replay(failed, &same).await.unwrap();
            scene.until(made, DeliveryState::Delivered).await;
            let group = scene.store.group(name).await.unwrap().unwrap();
            assert_eq!(group.state, GroupState::Resolved, "nothing is left to deal with");
            scene.dead_letter("three", json!({})).await;
            let group = scene.store.group(name).await.unwrap().unwrap();
            assert_eq!((group.state, group.reopened), (GroupState::Open, 1));
        })
        .await;
}

/// HUB-6: park, delete, restore and purge, each from where it can be done; what can't be done says where it stands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_6_a_dead_letter_is_parked_deleted_restored_and_purged() {
    let place = Place::new();
    let scene = Scene::new(&place, USUAL, everything()).await;
    let dead = scene.play(scene.dead_letter("evt", json!({"word": "needle"}))).await;
    let (hub, store) = (&scene.hub, &scene.store);
    index(store).await;
    let refused = async |to| {
        hub.dead_letters.move_letter(&hub.runtime.own_context(), dead, to).await.unwrap_err().to_string()
    };
    for to in [LetterAction::Unpark, LetterAction::Restore] {
        assert!(refused(to).await.contains("in the state open"), "{to:?}");
    }
    hub.dead_letters.move_letter(&hub.runtime.own_context(), dead, LetterAction::Park).await.unwrap();
    assert_eq!(state(store, dead).await, LetterState::Parked);
    hub.dead_letters.move_letter(&hub.runtime.own_context(), dead, LetterAction::Delete).await.unwrap();
    assert_eq!(find(store, LetterFilter::default()).await, [], "out of sight");
    let deleted = LetterFilter { states: vec![LetterState::Deleted], ..LetterFilter::default() };
    assert_eq!(find(store, deleted).await, [dead]);
    assert!(refused(LetterAction::Park).await.contains("in the state deleted"));
    hub.dead_letters.move_letter(&hub.runtime.own_context(), dead, LetterAction::Restore).await.unwrap();
    let whole = store.dead_letter(dead).await.unwrap().unwrap();
    assert_eq!((whole.dead.state, whole.dead.deleted), (LetterState::Open, None));
    hub.dead_letters.note_letter(&hub.runtime.own_context(), dead, Some("ask Ann".into())).await.unwrap();
    assert_eq!(store.dead_letter(dead).await.unwrap().unwrap().dead.note.as_deref(), Some("ask Ann"));

    hub.dead_letters.move_letter(&hub.runtime.own_context(), dead, LetterAction::Purge).await.unwrap();
    assert_eq!(
        hub.dead_letters.move_letter(&hub.runtime.own_context(), dead, LetterAction::Delete).await,
        Err(ChangeError::Missing)
    );
    assert_eq!(store.dead_letter(dead).await.unwrap(), None);
    assert_eq!(groups(store).await, [], "a group of nothing is none");
    let text = LetterFilter { text: Some("needle".into()), ..LetterFilter::default() };
    assert_eq!(find(store, text).await, []);
    let (kept, attempts) = store.delivery(dead).await.unwrap().unwrap();
    assert_eq!(
        (kept.state, attempts.len()),
        (DeliveryState::DeadLettered, 0),
        "its evidence is gone, its delivery is not"
    );
}

/// HUB-6: dead letters are found by words of their event, their errors and their names, the last word while it is typed; and
/// whoever searches is told what is not in the index yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_6_dead_letters_are_found_by_their_words() {
    let place = Place::new();
    let store = place.open();
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
        ("ZURICH", vec![one]),
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
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_6_a_peer_that_talks_too_much_makes_a_bounded_number_of_groups() {
    let place = Place::new();
    let store = place.open();
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

/// HUB-6: an edited copy is linked, sent once, and differs where somebody has changed it; the event stays as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_6_an_edited_copy_is_sent_and_linked() {
    let place = Place::new();
    let rule = seawall_hub_core::domain::rule::Rule {
        body: Some(r#"{"title":"{{ data.title }}"}"#.into()),
        ..everything()
    };
    let scene = Scene::new(&place, USUAL, rule).await;
    scene
        .play(async {
            let dead = scene.dead_letter("evt", json!({"title": "old"})).await;
            let edit = LetterEdit::Data(json!({"title": "new"}));
            let shown = scene.edit(dead, &edit, true, false, None).await.unwrap();
            assert_eq!((shown.delivery, shown.differences.len()), (None, 1));
            let place = &shown.differences[0];
            assert_eq!((&*place.place, place.now.as_deref()), ("body.title", Some("\"new\"")));
            assert_eq!(scene.count().await, 1, "nothing was sent");
            let nothing = LetterEdit::Data(json!({"title": "old"}));
            assert!(matches!(
                scene.edit(dead, &nothing, false, false, None).await,
                Err(ChangeError::Conflict(_))
            ));

            let edit_once = || scene.edit(dead, &edit, false, false, Some("click"));
            let (a, b) = tokio::join!(edit_once(), edit_once());
            let made = a.unwrap().delivery.unwrap();
            assert_eq!(b.unwrap().delivery, Some(made), "a double click");
            scene.until(made, DeliveryState::Delivered).await;
            let got = scene.peer.got().pop().unwrap();
            assert_eq!(got.request.body.bytes().unwrap(), &br#"{"title":"new"}"#[..]);
            let letter = scene.store.dead_letter(dead).await.unwrap().unwrap();
            assert_eq!((letter.dead.edited, letter.dead.state), (true, LetterState::Delivered));
            assert!(String::from_utf8_lossy(&letter.event.payload).contains("old"));

            let dead = scene.dead_letter("evt-2", json!({"title": "x"})).await;
            let (method, headers, body) = (None, None, None);
            let bad = LetterEdit::Request { method, path: Some("no slash".into()), headers, body };
            let wrong = scene.edit(dead, &bad, false, false, None).await;
            assert!(
                matches!(&wrong, Err(ChangeError::Wrong(fields)) if fields[0].0 == "request.path"),
                "{wrong:?}"
            );
            let body = Some(b"plain".to_vec());
            let good = LetterEdit::Request {
                method: Some("put".into()),
                path: Some("/other".into()),
                headers: None,
                body,
            };
            let made = scene.edit(dead, &good, false, false, None).await.unwrap().delivery.unwrap();
            scene.until(made, DeliveryState::Delivered).await;
            let got = scene.peer.got().pop().unwrap().request;
            assert_eq!((&*got.operation, &*got.target), ("PUT", "/other"));
            assert_eq!(got.body.bytes().unwrap(), &b"plain"[..]);
        })
        .await;
}

/// An event with this word in it.
fn failing(id: &str, word: &str) -> Event {
    let payload = json!({"id": id, "data": {"word": word}}).to_string().into();
    Event { payload, ..(*event(id)).clone() }
}

/// Its delivery is given up, with this said by the peer.
async fn dies(store: &Sqlite, event: &Event, said: &str) -> DeliveryId {
    dies_as(store, event, to("billing"), DeadLetterReason::Refused, 422, NOW, said).await
}

async fn dies_as(
    store: &Sqlite,
    event: &Event,
    new: NewDelivery,
    reason: DeadLetterReason,
    status: u16,
    at: Millis,
    said: &str,
) -> DeliveryId {
    let add = Change::AddEvent(std::sync::Arc::new(event.clone()), vec![new]);
    let delivery = store.commit(WritePriority::Ingest, unit([add])).await.unwrap().names()[0];
    settle_as(store, delivery, reason, status, at, said, false).await;
    delivery
}

async fn settle_as(
    store: &Sqlite,
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

/// Numbers that look like chance and are the same each time.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        Dice(0x9E37_79B9_7F4A_7C15)
    }

    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn maybe<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        (self.below(3) == 0).then(|| self.one_of(all))
    }
}

const SERVICES: [&str; 3] = ["billing", "mail", "search"];
const WORDS: [&str; 4] = ["apple", "pear", "plum", "quince"];

/// Many dead letters of all kinds, moved about.
async fn populated(store: &Sqlite, dice: &mut Dice, count: usize) -> Vec<DeliveryId> {
    let mut all = Vec::new();
    for number in 0..count {
        let event = Event {
            source: dice.one_of(&["shop", "till"]).into(),
            ..failing(&format!("evt-{number}"), dice.one_of(&WORDS))
        };
        let rule = (slug(dice.one_of(&["invoices", "letters"])), 1);
        let new = NewDelivery { rule, ..to(dice.one_of(&SERVICES)) };
        let reason = dice.one_of(&[DeadLetterReason::Refused, DeadLetterReason::Attempts]);
        let status = dice.one_of(&[422, 500]);
        let at = Millis(NOW.0 + i64::try_from(dice.below(1_000)).unwrap());
        let said = dice.one_of(&["no stock", "no customer", "broken"]);
        all.push(dies_as(store, &event, new, reason, status, at, said).await);
    }
    for _ in 0..count {
        let dead = dice.one_of(&all);
        let to = dice.one_of(&[
            LetterAction::Park,
            LetterAction::Unpark,
            LetterAction::Delete,
            LetterAction::Restore,
            LetterAction::Purge,
            LetterAction::Park,
        ]);
        let moved =
            store.commit(WritePriority::Admin, unit([Change::Move(LetterMove { dead, to, at: NOW })])).await;
        match moved {
            Ok(_) | Err(StoreError::WrongState(_) | StoreError::NotADeadLetter(_)) => {}
            Err(error) => unreachable!("{error}"),
        }
        if dice.below(4) == 0 {
            let new =
                NewDelivery { initial: seawall_hub_core::port::store::InitialState::Queued, ..to_any(dice) };
            let replay = Change::Replay(ReplayChange { dead, new, at: NOW, again: false, edited: false });
            if let Ok(made) = store.commit(WritePriority::Admin, unit([replay])).await {
                let made = made.names()[0];
                take(store, made).await;
                match dice.below(3) {
                    0 => {}
                    1 => settle_as(store, made, DeadLetterReason::Refused, 422, NOW, "again", true).await,
                    _ => {
                        let done =
                            Settlement { is_replay: true, ..settlement(claim(store, made), DELIVERED) };
                        store.commit(WritePriority::Outcomes, unit([Change::Settle(done)])).await.unwrap();
                    }
                }
            }
        }
    }
    all
}

fn to_any(dice: &mut Dice) -> NewDelivery {
    to(dice.one_of(&SERVICES))
}

async fn take(store: &Sqlite, id: DeliveryId) {
    let taken = crate::conformance::due(store, Millis(i64::MAX / 2), 1_000).await.unwrap();
    assert!(taken.iter().any(|kept| kept.id == id), "{id} is due");
}

async fn everything_there(store: &Sqlite) -> Vec<DeadLetter> {
    let filter = LetterFilter { states: LetterState::ALL.to_vec(), ..LetterFilter::default() };
    let mut all = store.dead_letters(filter, ALL).await.unwrap().page.items;
    for dead in &mut all {
        // The list has no payloads.
        dead.delivery.payload = store.dead_letter(dead.delivery.id).await.unwrap().unwrap().event.payload;
    }
    all
}

/// Whether a filter takes a dead letter, said as simply as can be.
fn takes(filter: &LetterFilter, dead: &DeadLetter) -> bool {
    let kept = &dead.delivery;
    let text = String::from_utf8_lossy(&kept.payload);
    filter.service.as_ref().is_none_or(|service| *service == kept.service)
        && filter.rule.as_ref().is_none_or(|rule| *rule == kept.rule.0)
        && filter.event.as_ref().is_none_or(|event| *event == kept.event)
        && filter.reason.is_none_or(|reason| Some(reason) == kept.reason)
        && filter.status.is_none_or(|status| Some(status) == dead.status)
        && filter.group.is_none_or(|group| group == dead.group)
        && filter.since.is_none_or(|since| dead.at >= since)
        && filter.before.is_none_or(|before| dead.at < before)
        && filter.text.as_ref().is_none_or(|word| text.contains(word.as_str()))
        && (filter.ids.is_empty() || filter.ids.contains(&kept.id))
        && filter.within.services.as_ref().is_none_or(|seen| seen.contains(&kept.service))
        && filter.within.sources.as_ref().is_none_or(|seen| seen.contains(&dead.source))
        && match &filter.states[..] {
            [] => dead.state != LetterState::Deleted,
            asked => asked.contains(&dead.state),
        }
}

fn any_filter(dice: &mut Dice, all: &[DeliveryId], groups: &[Fingerprint]) -> LetterFilter {
    let names = |names: &[&str]| names.iter().map(|name| slug(name)).collect::<Vec<Slug>>();
    let event = dice.maybe(&[0]).map(|_| format!("evt-{}", dice.below(all.len())));
    let ids = dice.maybe(&[0]).map(|_| (0..20).map(|_| dice.one_of(all)).collect());
    let time = |dice: &mut Dice| Millis(NOW.0 + i64::try_from(dice.below(1_000)).unwrap());
    let (since, before) = (dice.maybe(&[0]).map(|_| time(dice)), dice.maybe(&[0]).map(|_| time(dice)));
    LetterFilter {
        service: dice.maybe(&names(&SERVICES)),
        rule: dice.maybe(&names(&["invoices", "letters"])),
        event: event.filter(|_| dice.below(3) == 0),
        reason: dice.maybe(&[DeadLetterReason::Refused, DeadLetterReason::Attempts]),
        status: dice.maybe(&[422, 500]),
        group: dice.maybe(groups).filter(|_| dice.below(2) == 0),
        states: (0..dice.below(4))
            .map(|_| dice.one_of(&LetterState::ALL))
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect(),
        since,
        before,
        text: dice.maybe(&WORDS).map(Into::into),
        ids: ids.filter(|_| dice.below(2) == 0).unwrap_or_default(),
        except: Vec::new(),
        within: Visibility {
            services: dice
                .maybe(&[names(&["billing", "mail"]), names(&["search"])])
                .filter(|_| dice.below(2) == 0),
            sources: dice.maybe(&[vec!["shop".to_owned()]]).filter(|_| dice.below(2) == 0),
        },
    }
}

/// HUB-6: whatever is asked for, the desk finds exactly what a look at each one finds, in pages as well; counts what it finds; and
/// groups count what is there after any moves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_6_filters_find_what_a_look_at_each_finds_and_groups_count_right() {
    let place = Place::new();
    let store = place.open();
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
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_6_what_is_not_there_has_no_note() {
    let place = Place::new();
    let store = place.open();
    let fingerprint = Fingerprint(7);
    for note in [
        Annotation::Group { fingerprint, note: None },
        Annotation::Stands { fingerprint, state: GroupState::Resolved },
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

/// HUB-5. A replay whose rule has another ordering key by now takes nobody's place: those behind its dead letter go on. They used to
/// stay blocked for ever.
#[tokio::test]
async fn hub_5_a_replay_in_another_order_releases_the_one_of_its_dead_letter() {
    let place = Place::new();
    let store = place.open();
    let ordered = NewDelivery { order: Some("key".into()), ..to("billing") };
    let mut ids = Vec::new();
    for id in ["first", "second"] {
        let added = unit([Change::AddEvent(event(id), vec![ordered.clone()])]);
        ids.extend(store.commit(WritePriority::Ingest, added).await.unwrap().names());
    }
    let disposition = Disposition::DeadLetter { reason: DeadLetterReason::Refused, holds_order: true };
    let decision = Decision { disposition, ..dead(DeadLetterReason::Refused) };
    let settled = Settlement { ordered: true, ..settlement(claim(&store, ids[0]), decision) };
    store.commit(WritePriority::Outcomes, unit([Change::Settle(settled)])).await.unwrap();
    assert_eq!(kept(&store, ids[1]).await.state, DeliveryState::Blocked);
    let replay = ReplayChange { dead: ids[0], new: to("billing"), at: NOW, again: false, edited: false };
    store.commit(WritePriority::Admin, unit([Change::Replay(replay)])).await.unwrap();
    assert_eq!(kept(&store, ids[1]).await.state, DeliveryState::Queued);
}
