//! One try of a call.

use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Deadline;
use crate::chance::{entropy, mix};
use crate::clock::Tick;
use crate::failover::Side;

/// What an operation is told about the attempt that it makes. `Copy`, and free unless it is asked.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    pub(super) number: u32,
    /// Retries by guards further out that led here.
    pub(super) retries_above: u32,
    pub(super) identity: Identity,
    pub(super) deadline: Deadline,
    pub(super) started: Tick,
    pub(super) side: Side,
    pub(super) hedge: u32,
}

impl Attempt {
    /// Which attempt this is, counted from 1.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// How deep in retries this attempt is, over this guard and those further out: 0 where nothing has been
    /// retried. What to tell the callee, so that it does not multiply.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.retries_above.saturating_add(self.number - 1)
    }

    /// The idempotency key of the call: the same for all its attempts, another one for every other call.
    #[must_use]
    pub fn key(&self) -> Key {
        self.identity.key()
    }

    /// When this attempt will be given up: to be sent along, or taken into a task of its own.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        (self.deadline.at != Tick::NEVER).then_some(self.deadline)
    }

    /// How long this attempt may take, as of its start.
    #[must_use]
    pub fn time_allowed(&self) -> Option<Duration> {
        self.deadline().map(|deadline| deadline.at.since(self.started))
    }

    /// Which hedge this is: 0 for the call's own attempts, 1 for the first attempt that starts beside them, and so on.
    #[must_use]
    pub fn hedge(&self) -> u32 {
        self.hedge
    }

    /// Which side of a [failover](crate::failover) this attempt asks; the primary, where there is only one.
    #[must_use]
    pub fn side(&self) -> Side {
        self.side
    }
}

/// 128 bits that name a call. Written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    high: u64,
    low: u64,
}

impl Key {
    /// A key that was made elsewhere.
    #[must_use]
    pub const fn from_u128(bits: u128) -> Self {
        Key { high: (bits >> 64) as u64, low: bits as u64 }
    }

    /// The key of a name of your own, like an order's number: the same name, the same key, in every process. (FNV-1a with 128
    /// bits: spread well, but no secret.)
    #[must_use]
    pub const fn named(name: &str) -> Self {
        let (mut hash, bytes, mut at) = (0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, name.as_bytes(), 0);
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u128).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
            at += 1;
        }
        Key::from_u128(hash)
    }

    /// Its bits.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.as_u128())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// Who a call is: a key that was given, or the number out of which one is made if it is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Identity {
    Given(Key),
    Made(u64),
}

/// A thread takes numbers in blocks of a million, so that calls share no counter and no number is given out twice, however
/// many threads come and go.
const BLOCK: u64 = 1 << 20;

impl Identity {
    #[inline]
    pub(super) fn new() -> Self {
        thread_local!(static NEXT: Cell<u64> = const { Cell::new(0) });
        let number = match NEXT.get() {
            next if next.is_multiple_of(BLOCK) => next_block(),
            next => next,
        };
        NEXT.set(number + 1);
        Identity::Made(number)
    }

    /// Within a process keys differ because each step is a bijection of the number; between processes they differ
    /// because of 128 random bits.
    fn key(self) -> Key {
        static SEEDS: OnceLock<(u64, u64)> = OnceLock::new();
        let number = match self {
            Identity::Given(key) => return key,
            Identity::Made(number) => number,
        };
        let &(a, b) = SEEDS.get_or_init(|| (entropy(), entropy()));
        Key { high: mix(number ^ a), low: mix(number.rotate_left(32) ^ b) }
    }
}

#[cold]
fn next_block() -> u64 {
    static BLOCKS: AtomicU64 = AtomicU64::new(1);
    BLOCKS.fetch_add(1, Ordering::Relaxed) * BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// ENG-3: one key for all attempts of a call, another for every other call, on every thread.
    #[test]
    fn eng_3_no_two_calls_share_a_key() {
        let keys = |n: usize| (0..n).map(|_| Identity::new().key()).collect::<Vec<_>>();
        let mut all = keys(10_000);
        all.extend(std::thread::spawn(move || keys(10_000)).join().unwrap());
        let distinct: HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        let identity = Identity::new();
        assert_eq!(identity.key(), identity.key());
        let given = Key::from_u128(7);
        assert_eq!(Identity::Given(given).key(), given);
        assert_eq!(given.to_string(), "00000000000000000000000000000007");
    }

    /// ENG-3: numbers go on into another block when one is used up.
    #[test]
    fn eng_3_a_thread_that_uses_up_its_block_takes_another() {
        let numbers: Vec<u64> = (0..BLOCK + 10)
            .map(|_| match Identity::new() {
                Identity::Made(number) => number,
                Identity::Given(_) => unreachable!("none was given"),
            })
            .collect();
        let distinct: HashSet<_> = numbers.iter().collect();
        assert_eq!(distinct.len(), numbers.len());
        assert!(numbers.iter().any(|number| number / BLOCK != numbers[0] / BLOCK));
    }

    /// ENG-3: a key of a name of your own is the same in every process and for ever.
    #[test]
    fn eng_3_a_named_key_is_the_same_everywhere() {
        assert_eq!(Key::named("order-4711").to_string(), Key::named("order-4711").to_string());
        assert_ne!(Key::named("order-4711"), Key::named("order-4712"));
        // The published test vectors of FNV-1a with 128 bits.
        assert_eq!(Key::named("").as_u128(), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(Key::named("a").as_u128(), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
