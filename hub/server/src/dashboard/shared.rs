//! Values that all who ask within a moment share.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use seawall::Tick;
use seawall_hub_core::sync::Lock;

/// The time for which a value is shared.
const SHARED: Duration = Duration::from_millis(1_800);
/// The maximum number of values that are remembered.
const REMEMBERED: usize = 1_000;

/// Values by their keys, each good for a moment.
pub(super) struct SharedValues<K, V>(Lock<HashMap<K, (Tick, V)>>);

impl<K, V> Default for SharedValues<K, V> {
    fn default() -> Self {
        SharedValues(Lock::default())
    }
}

impl<K: Eq + Hash, V: Clone> SharedValues<K, V> {
    /// Somebody has changed something: the next look is a new one.
    pub(super) fn forget(&self) {
        self.0.lock().clear();
    }

    /// The value, if it was made a moment ago.
    pub(super) fn fresh(&self, key: &K, now: Tick) -> Option<V> {
        let known = self.0.lock();
        known.get(key).filter(|(at, _)| now.since(*at) < SHARED).map(|(_, value)| value.clone())
    }

    /// Keeps a value that was asked for at this time.
    pub(super) fn keep(&self, key: K, at: Tick, value: V) {
        let mut known = self.0.lock();
        if known.len() >= REMEMBERED {
            known.retain(|_, (made, _)| at.since(*made) < SHARED);
        }
        if known.len() < REMEMBERED {
            known.insert(key, (at, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-1: a value is shared for a moment, until somebody changes something, and there is a bound on how many there are.
    #[test]
    fn ui_1_a_value_is_shared_for_a_moment() {
        let (shared, clock) = (SharedValues::default(), seawall::Clock::system());
        let now = clock.now();
        shared.keep(1, now, "one");
        assert_eq!((shared.fresh(&1, now), shared.fresh(&2, now)), (Some("one"), None));
        assert_eq!(shared.fresh(&1, now + SHARED), None);
        (0..2 * REMEMBERED).for_each(|key| shared.keep(key, now, "many"));
        assert_eq!(shared.0.lock().len(), REMEMBERED);
        shared.keep(0, now + SHARED, "later");
        assert_eq!(shared.0.lock().len(), 1, "what is over makes room");
        shared.forget();
        assert_eq!(shared.fresh(&0, now + SHARED), None);
    }
}
