//! Dead letters in memory, for tests and for programs that may lose them.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use seawall::Clock;

use super::{
    ChangeOutcome, CopyOutcome, Cursor, DeadLetter, DeadLetterStore, Edit, FailedReplay, Filter, GroupCount,
    LetterChange, LetterOrder, Page, PutOutcome, Record, ReplayRequest, ReplayStart, Status, transitions,
};
use crate::{Millis, StoreFuture};

/// Keeps dead letters in memory. They are gone when the process ends.
#[derive(Debug, Default)]
pub struct MemoryDeadLetters {
    letters: Mutex<HashMap<String, DeadLetter>>,
    clock: Clock,
}

impl MemoryDeadLetters {
    /// Creates an empty store on the default clock.
    #[must_use]
    pub fn new() -> Self {
        MemoryDeadLetters::default()
    }

    /// Creates an empty store on this clock.
    #[must_use]
    pub fn with_clock(clock: Clock) -> Self {
        MemoryDeadLetters { letters: Mutex::default(), clock }
    }

    fn letters(&self) -> MutexGuard<'_, HashMap<String, DeadLetter>> {
        // No method leaves a letter half changed, so that a panic elsewhere does not matter.
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Millis {
        let since = self.clock.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Millis(0) + since
    }
}

/// The work is done when the future is polled first, as a database would do it.
fn done<'a, T: Send>(work: impl FnOnce() -> T + Send + 'a) -> StoreFuture<'a, T> {
    Box::pin(async move { Ok(work()) })
}

impl DeadLetterStore for MemoryDeadLetters {
    fn put<'a>(&'a self, record: &'a Record) -> StoreFuture<'a, PutOutcome> {
        done(move || {
            let (now, mut letters) = (self.now(), self.letters());
            if let Some(letter) = letters.get_mut(&record.id) {
                return transitions::merge(letter, record, now);
            }
            letters.insert(record.id.clone(), DeadLetter::new(record.clone()));
            PutOutcome::Created
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<DeadLetter>> {
        done(move || self.letters().get(id).cloned())
    }

    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        order: LetterOrder,
        after: Option<&'a Cursor>,
        limit: u32,
    ) -> StoreFuture<'a, Page> {
        done(move || {
            let letters = self.letters();
            let compare = |a: (Millis, &str), b: (Millis, &str)| match order {
                LetterOrder::NewestFirst => b.cmp(&a),
                LetterOrder::AsItHappened => a.cmp(&b),
            };
            let is_after = |letter: &&DeadLetter| {
                let place = (order.time_of(letter), letter.id());
                after.is_none_or(|cursor| compare((cursor.at, &cursor.id), place).is_lt())
            };
            let mut found: Vec<&DeadLetter> =
                letters.values().filter(is_after).filter(|letter| filter.matches(letter)).collect();
            found.sort_by(|a, b| compare((order.time_of(a), a.id()), (order.time_of(b), b.id())));
            let more = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
            Page::of_rows(found.into_iter().take(more).cloned().collect(), order, limit)
        })
    }

    fn counts<'a>(&'a self, filter: &'a Filter, limit: u32) -> StoreFuture<'a, Vec<GroupCount>> {
        done(move || {
            let mut groups: BTreeMap<(String, String, String, Status), (u64, Millis)> = BTreeMap::new();
            for letter in self.letters().values().filter(|letter| filter.matches(letter)) {
                let Record { origin, fault, at, .. } = &letter.record;
                let key = (origin.kind.clone(), origin.place.clone(), fault.reason.clone(), letter.status);
                let (count, oldest) = groups.entry(key).or_insert((0, *at));
                *count += 1;
                *oldest = (*oldest).min(*at);
            }
            let mut counts: Vec<GroupCount> = groups
                .into_iter()
                .map(|((kind, place, reason, status), (count, oldest))| GroupCount {
                    kind,
                    place,
                    reason,
                    status,
                    count,
                    oldest,
                })
                .collect();
            counts.sort_by_key(|group| std::cmp::Reverse(group.count));
            counts.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            counts
        })
    }

    fn change<'a>(&'a self, id: &'a str, change: LetterChange) -> StoreFuture<'a, ChangeOutcome> {
        done(move || {
            let now = self.now();
            let mut letters = self.letters();
            letters
                .get_mut(id)
                .map_or(ChangeOutcome::Absent, |letter| transitions::apply(letter, change, now))
        })
    }

    fn copy<'a>(&'a self, id: &'a str, edit: &'a Edit, copy_id: &'a str) -> StoreFuture<'a, CopyOutcome> {
        done(move || {
            let (now, mut letters) = (self.now(), self.letters());
            let existing = letters.get(copy_id).cloned();
            let Some(letter) = letters.get_mut(id) else { return CopyOutcome::Absent };
            let outcome = transitions::copy(letter, edit, copy_id, existing, now);
            if let CopyOutcome::Copied(copy) = &outcome {
                letters.entry(copy_id.to_owned()).or_insert_with(|| (**copy).clone());
            }
            outcome
        })
    }

    fn begin_replay<'a>(&'a self, id: &'a str, request: &'a ReplayRequest) -> StoreFuture<'a, ReplayStart> {
        done(move || {
            let now = self.now();
            let mut letters = self.letters();
            letters
                .get_mut(id)
                .map_or(ReplayStart::Absent, |letter| transitions::begin_replay(letter, request, now))
        })
    }

    fn finish_replay<'a>(
        &'a self,
        id: &'a str,
        claim: u64,
        failure: Option<&'a FailedReplay>,
    ) -> StoreFuture<'a, bool> {
        done(move || {
            let now = self.now();
            let mut letters = self.letters();
            letters.get_mut(id).is_some_and(|letter| transitions::finish_replay(letter, claim, failure, now))
        })
    }

    fn purge(&self, deleted: Duration, replayed: Duration, limit: u32) -> StoreFuture<'_, u64> {
        done(move || {
            let (now, mut letters) = (self.now(), self.letters());
            let is_over = |letter: &DeadLetter| {
                let replayed_at = letter.replayed_at().filter(|_| letter.status == Status::Replayed);
                letter.deleted_at.is_some_and(|at| at + deleted <= now)
                    || replayed_at.is_some_and(|at| at + replayed <= now)
            };
            let over: Vec<String> = letters
                .values()
                .filter(|letter| is_over(letter))
                .map(|letter| letter.id().to_owned())
                .take(usize::try_from(limit).unwrap_or(usize::MAX))
                .collect();
            over.iter().filter(|id| letters.remove(*id).is_some()).count() as u64
        })
    }
}
