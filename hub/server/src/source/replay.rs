//! Requests that were seen already.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::MutexGuard;

use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::sync::Lock;

use super::verify::TOLERANCE;

/// Keys of requests, for as long as a replay of them would pass the check of its time: twice the tolerance, because a
/// sender whose clock is five minutes ahead signs what is good for ten.
///
/// It has room for so many. When it is full, the oldest key goes before its time, and a replay of that one request is
/// not seen here any more; the event's id is what then keeps it from happening twice. A source that sends more than
/// its room in ten minutes needs a larger one. To refuse instead would let whoever sends much keep others out.
///
/// It is in memory: after a restart, what was seen before is new again until its time has run out.
#[derive(Debug)]
pub struct ReplayCache {
    capacity: NonZeroUsize,
    seen: Lock<ReplayTable>,
}

#[derive(Debug, Default)]
struct ReplayTable {
    keys: HashMap<[u8; 32], ReplayEntry>,
    /// Oldest first. A key that was forgotten keeps its place here, so that the line bounds both.
    line: VecDeque<Entry>,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct ReplayEntry {
    /// The number under which it stands in line.
    number: u64,
    accepted: bool,
}

/// What is known of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayCheck {
    /// It was never here, and from now on it is under way.
    First,
    /// The same is under way, and nobody knows yet what becomes of it.
    UnderWay,
    /// It was accepted before.
    Accepted,
}

#[derive(Debug)]
struct Entry {
    key: [u8; 32],
    number: u64,
    at: Millis,
}

impl ReplayCache {
    /// With room for so many keys.
    #[must_use]
    pub fn new(capacity: NonZeroUsize) -> Self {
        ReplayCache { capacity, seen: Lock::default() }
    }

    /// What is known of this key. One that is new is under way from now on, until it is [accepted](ReplayCache::accepted) or
    /// [forgotten](ReplayCache::forget).
    #[must_use]
    pub fn look(&self, key: [u8; 32], now: Millis) -> ReplayCheck {
        let mut seen = self.lock();
        while seen.line.front().is_some_and(|oldest| now.since(oldest.at) > TOLERANCE * 2) {
            seen.drop_oldest();
        }
        if let Some(known) = seen.keys.get(&key) {
            return if known.accepted { ReplayCheck::Accepted } else { ReplayCheck::UnderWay };
        }
        if seen.line.len() >= self.capacity.get() {
            seen.drop_oldest();
        }
        let number = seen.next;
        seen.next += 1;
        seen.keys.insert(key, ReplayEntry { number, accepted: false });
        seen.line.push_back(Entry { key, number, at: now });
        ReplayCheck::First
    }

    /// The request was accepted: the same bytes are a repetition.
    pub fn accepted(&self, key: &[u8; 32]) {
        if let Some(known) = self.lock().keys.get_mut(key) {
            known.accepted = true;
        }
    }

    /// The request was not accepted after all, so the same bytes may come again.
    pub fn forget(&self, key: &[u8; 32]) {
        self.lock().keys.remove(key);
    }

    /// A panic elsewhere leaves at most one key too many or too few.
    fn lock(&self) -> MutexGuard<'_, ReplayTable> {
        self.seen.lock()
    }
}

impl ReplayTable {
    fn drop_oldest(&mut self) {
        let Some(oldest) = self.line.pop_front() else { return };
        // If it was forgotten and came again, it stands further back under another number.
        if self.keys.get(&oldest.key).is_some_and(|known| known.number == oldest.number) {
            self.keys.remove(&oldest.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Millis = Millis(1_700_000_000_000);
    const TEN_MINUTES: i64 = 600_000;

    fn replays(capacity: usize) -> ReplayCache {
        ReplayCache::new(NonZeroUsize::new(capacity).unwrap())
    }

    impl ReplayCache {
        /// Whether it is new, and accepted then.
        fn first_time(&self, key: [u8; 32], now: Millis) -> bool {
            let first = self.look(key, now) == ReplayCheck::First;
            self.accepted(&key);
            first
        }
    }

    fn after(millis: i64) -> Millis {
        Millis(START.0 + millis)
    }

    /// HUB-3. Trap: "Replay of a signed webhook → tolerance of 5 minutes both ways and an id cache." A request from a
    /// clock that is five minutes ahead passes for ten minutes, the last millisecond included.
    #[test]
    fn hub_3_a_key_is_known_for_twice_the_tolerance() {
        let replays = replays(10);
        assert!(replays.first_time([1; 32], START));
        assert!(!replays.first_time([1; 32], START));
        assert!(!replays.first_time([1; 32], after(TEN_MINUTES)), "its time may still be good");
        assert!(replays.first_time([1; 32], after(TEN_MINUTES + 1)), "its time is over, so it is gone");
        assert!(replays.first_time([2; 32], START), "another one is new");
    }

    /// HUB-3: the number of keys has a bound, and the oldest make room.
    #[test]
    fn hub_3_when_it_is_full_the_oldest_key_goes() {
        let replays = replays(3);
        for key in 0..3 {
            assert!(replays.first_time([key; 32], START));
        }
        assert!(replays.first_time([3; 32], after(1)));
        assert!(!replays.first_time([1; 32], after(1)) && !replays.first_time([2; 32], after(1)));
        assert!(replays.first_time([0; 32], after(1)), "the price of the bound");
        for round in 0..1000_u32 {
            let mut key = [9; 32];
            key[..4].copy_from_slice(&round.to_be_bytes());
            assert!(replays.first_time(key, after(2)));
            replays.forget(&key);
        }
        let seen = replays.lock();
        assert!(seen.line.len() <= 3 && seen.keys.len() <= 3, "{} and {}", seen.line.len(), seen.keys.len());
    }

    /// HUB-3: an event that could not be stored may be sent again with the same bytes, and then counts from there.
    #[test]
    fn hub_3_what_was_forgotten_is_new_again() {
        let replays = replays(2);
        assert!(replays.first_time([1; 32], START));
        replays.forget(&[1; 32]);
        assert!(replays.first_time([1; 32], after(1000)));
        assert!(!replays.first_time([1; 32], after(2000)));
        // The place of the first time goes, and the key stays by its second one.
        assert!(replays.first_time([2; 32], after(3000)));
        assert!(!replays.first_time([1; 32], after(3000)));
        assert!(!replays.first_time([1; 32], after(TEN_MINUTES + 500)));
        replays.forget(&[7; 32]);
    }

    /// PRM-1: what is under way is not accepted yet, and may never be.
    #[test]
    fn prm_1_what_is_under_way_is_not_taken_for_accepted() {
        let replays = replays(2);
        assert_eq!(replays.look([1; 32], START), ReplayCheck::First);
        assert_eq!(replays.look([1; 32], START), ReplayCheck::UnderWay);
        replays.forget(&[1; 32]);
        assert_eq!(replays.look([1; 32], START), ReplayCheck::First, "it was not accepted after all");
        replays.accepted(&[1; 32]);
        assert_eq!(replays.look([1; 32], START), ReplayCheck::Accepted);
        replays.accepted(&[7; 32]);
        assert_eq!(replays.look([7; 32], START), ReplayCheck::First, "who was never here can't be accepted");
    }

    /// HUB-3: a clock that is set back forgets nothing; one that is at its end does not panic.
    #[test]
    fn hub_3_a_jumping_clock_does_not_reopen_the_door() {
        let replays = replays(10);
        assert!(replays.first_time([1; 32], START));
        assert!(!replays.first_time([1; 32], Millis(START.0 - 3_600_000)));
        assert!(!replays.first_time([1; 32], Millis(i64::MIN)));
        assert!(replays.first_time([2; 32], Millis(i64::MIN)));
        assert!(replays.first_time([1; 32], Millis(i64::MAX)));
    }

    /// HUB-3: of many that come at once with the same key, one is first.
    #[test]
    fn hub_3_of_many_at_once_one_is_first() {
        let replays = replays(100);
        let firsts: usize = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..50).filter(|key| replays.first_time([*key; 32], START)).count()))
                .collect();
            all.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!(firsts, 50);
    }
}
