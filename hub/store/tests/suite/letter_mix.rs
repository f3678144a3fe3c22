//! Many dead letters of all kinds, and filters of all kinds.

use seawall_hub_core::domain::dead_letter::{Fingerprint, LetterFilter, LetterState, Visibility};

use super::fixtures::*;
use super::letters::{ALL, dies_as, failing, settle_as};

/// Numbers that look like chance and are the same each time.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new() -> Self {
        Dice(0x9E37_79B9_7F4A_7C15)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
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
pub(crate) async fn populated(store: &impl Store, dice: &mut Dice, count: usize) -> Vec<DeliveryId> {
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
            let new = NewDelivery { initial: InitialState::Queued, ..to_any(dice) };
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

async fn take(store: &impl Store, id: DeliveryId) {
    let taken = due(store, Millis(i64::MAX / 2), 1_000).await.unwrap();
    assert!(taken.iter().any(|kept| kept.id == id), "{id} is due");
}

pub(crate) async fn everything_there(store: &impl Store) -> Vec<DeadLetter> {
    let filter = LetterFilter { states: LetterState::ALL.to_vec(), ..LetterFilter::default() };
    let mut all = store.dead_letters(filter, ALL).await.unwrap().page.items;
    for dead in &mut all {
        // The list has no payloads.
        dead.delivery.payload = store.dead_letter(dead.delivery.id).await.unwrap().unwrap().event.payload;
    }
    all
}

/// Whether a filter takes a dead letter, said as simply as can be.
pub(crate) fn takes(filter: &LetterFilter, dead: &DeadLetter) -> bool {
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
        && filter.up_to.is_none_or(|last| kept.id.number <= last)
        && filter.text.as_ref().is_none_or(|word| text.contains(word.as_str()))
        && (filter.ids.is_empty() || filter.ids.contains(&kept.id))
        && filter.within.services.as_ref().is_none_or(|seen| seen.contains(&kept.service))
        && filter.within.sources.as_ref().is_none_or(|seen| seen.contains(&dead.source))
        && match &filter.states[..] {
            [] => dead.state != LetterState::Deleted,
            asked => asked.contains(&dead.state),
        }
}

pub(crate) fn any_filter(dice: &mut Dice, all: &[DeliveryId], groups: &[Fingerprint]) -> LetterFilter {
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
        up_to: dice.maybe(all).map(|id| id.number),
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
