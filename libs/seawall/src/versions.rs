//! Settings that change while they are being read.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::config::{ConfigError, Problems};

/// A value with versions: readers get the newest by a plain load, a writer publishes another one.
///
/// # Why not an atomic pointer swap?
/// A swap must know when the last reader of an old value is gone, which costs every reader two writes to shared
/// memory, more than a whole breaker. Settings are small and change seldom, so old ones are simply kept until
/// the owner goes; a reference to them lives as long as the owner. The price is memory: one settings struct
/// (up to a kilobyte for a whole guard) for each *change*, with what only it refers to, up to a million changes.
#[derive(Debug)]
pub(crate) struct Versions<T> {
    newest: AtomicUsize,
    first: T,
    /// Made when the first change comes, which for most settings is never. Chunk `k` holds the versions 2ᵏ to
    /// 2ᵏ⁺¹-1.
    later: OnceLock<Box<[Chunk<T>; CHUNKS]>>,
    writer: Mutex<()>,
}

type Chunk<T> = OnceLock<Box<[OnceLock<T>]>>;

const CHUNKS: usize = 20;

/// A million versions were published; nobody changes settings that often by intent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooMany;

impl TooMany {
    /// As a user is told.
    pub(crate) fn refusal(self, what: &str, path: &'static str) -> ConfigError {
        let mut problems = Problems::default();
        problems.add(path, "it was changed a million times; build a new one");
        problems.into_error(what)
    }
}

/// Where a whole guard is changed.
impl From<TooMany> for ConfigError {
    fn from(too_many: TooMany) -> Self {
        too_many.refusal("the guard", "guard")
    }
}

impl<T> Versions<T> {
    pub(crate) fn new(first: T) -> Self {
        Versions { newest: AtomicUsize::new(0), first, later: OnceLock::new(), writer: Mutex::new(()) }
    }

    /// The newest version.
    #[inline]
    pub(crate) fn newest(&self) -> &T {
        match self.newest.load(Ordering::Acquire) {
            0 => &self.first,
            number => self.later(number),
        }
    }

    /// Out of line, because this is looked up several times in a call that should be inlined as a whole.
    #[cold]
    #[inline(never)]
    fn later(&self, number: usize) -> &T {
        let chunk = number.ilog2() as usize;
        self.later
            .get()
            .and_then(|later| later[chunk].get()?[number - (1 << chunk)].get())
            .expect("a version is written before its number is published")
    }

    /// Makes a new version out of the newest and publishes it. Only one writer at a time gets to do so, so none
    /// overwrites what it has not seen.
    pub(crate) fn publish(&self, make: impl FnOnce(&T) -> T) -> Result<(), TooMany> {
        self.try_publish(|old| Ok(Some(make(old)))).map(|_| ())
    }

    /// As [`publish`](Versions::publish), for a version that can't always be made, or that may be the same as the
    /// newest. Says whether there is a new one.
    pub(crate) fn try_publish<E: From<TooMany>>(
        &self,
        make: impl FnOnce(&T) -> Result<Option<T>, E>,
    ) -> Result<bool, E> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.newest.load(Ordering::Acquire) + 1;
        let chunk = number.ilog2() as usize;
        if chunk >= CHUNKS {
            return Err(TooMany.into());
        }
        let Some(version) = make(self.newest())? else { return Ok(false) };
        let later = self.later.get_or_init(|| Box::new(std::array::from_fn(|_| OnceLock::new())));
        let slots = later[chunk].get_or_init(|| (0..1 << chunk).map(|_| OnceLock::new()).collect());
        // A writer that panicked in `make` has left its slot empty, so it is always ours to fill.
        let _ = slots[number - (1 << chunk)].set(version);
        self.newest.store(number, Ordering::Release);
        Ok(true)
    }
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;

    #[test]
    fn readers_see_whole_versions_in_order() {
        let versions = Versions::new((0_u32, 0_u32));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut seen = 0;
                    while seen < 5_000 {
                        let &(a, b) = versions.newest();
                        assert_eq!(a * 3, b);
                        assert!(a >= seen, "went back from {seen} to {a}");
                        seen = a;
                    }
                });
            }
            for _ in 0..5_000 {
                versions.publish(|(a, b)| (a + 1, b + 3)).unwrap();
            }
        });
    }

    #[test]
    fn a_bound_on_everything() {
        let versions = Versions::new(0_u8);
        let published = (0..).take_while(|_| versions.publish(|_| 1).is_ok()).count();
        assert_eq!(published, (1 << CHUNKS) - 1);
    }
}
