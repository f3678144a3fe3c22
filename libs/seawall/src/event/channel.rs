//! From a guard to whoever listens: bounded, and never waited for.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::{Semaphore, mpsc};

use super::Event;

/// Events as they come. Made by [`Guard::subscribe`](crate::Guard::subscribe) and
/// [`Registry::subscribe`](crate::Registry::subscribe); dropping it ends the subscription.
///
/// It holds as many events as was asked for. A guard never waits for whoever listens: what finds it full is dropped and
/// [counted](Events::dropped).
pub struct Events {
    receiver: mpsc::Receiver<Event>,
    dropped: Arc<AtomicU64>,
}

impl Events {
    /// The next event. `None` when every guard that it listens to is gone.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        self.receiver.recv().await
    }

    /// The next event if one is there.
    pub fn try_next(&mut self) -> Option<Event> {
        self.receiver.try_recv().ok()
    }

    /// How many events were dropped because nobody took the earlier ones in time.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

/// Those who listen to a guard, or to all guards of a registry.
#[derive(Default)]
pub(crate) struct Subscribers {
    /// How many, to be looked at by each call: one plain load where nobody listens.
    count: AtomicU32,
    list: RwLock<Vec<Subscriber>>,
}

struct Subscriber {
    sender: mpsc::Sender<Event>,
    dropped: Arc<AtomicU64>,
}

impl Subscribers {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn add(&self, capacity: usize) -> Events {
        let (sender, receiver) = mpsc::channel(capacity.clamp(1, Semaphore::MAX_PERMITS));
        let dropped = Arc::new(AtomicU64::new(0));
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        list.retain(|subscriber| !subscriber.sender.is_closed());
        list.push(Subscriber { sender, dropped: dropped.clone() });
        self.set_count(list.len());
        Events { receiver, dropped }
    }

    pub(crate) fn tell(&self, event: impl Fn() -> Event) {
        let mut anybody_gone = false;
        {
            let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
            for Subscriber { sender, dropped } in list.iter() {
                match sender.try_reserve() {
                    Ok(place) => place.send(event()),
                    Err(mpsc::error::TrySendError::Full(())) => {
                        dropped.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(mpsc::error::TrySendError::Closed(())) => anybody_gone = true,
                }
            }
        }
        if anybody_gone {
            self.forget_the_gone();
        }
    }

    /// Whoever finds somebody else at the list leaves it to the next event.
    #[cold]
    fn forget_the_gone(&self) {
        if let Ok(mut list) = self.list.try_write() {
            list.retain(|subscriber| !subscriber.sender.is_closed());
            self.set_count(list.len());
        }
    }

    fn set_count(&self, subscribers: usize) {
        self.count.store(u32::try_from(subscribers).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

impl fmt::Debug for Subscribers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscribers").field("count", &self.count).finish_non_exhaustive()
    }
}
