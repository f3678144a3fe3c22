//! The messages in hand. The server is told that they are worked on, or it would deliver them again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Subject;
use async_nats::jetstream::AckKind;
use seawall::Clock;
use seawall::Tick;
use tokio::time::sleep;

use crate::NatsConnection;

/// The messages in hand, each in a place of its own: one message may be in hand twice, if its time ran out while it was.
#[derive(Debug)]
pub(super) struct HeldMessages {
    clock: Clock,
    state: Mutex<HeldState>,
}

/// There are never more places than messages may be in hand.
#[derive(Debug, Default)]
struct HeldState {
    places: Vec<Option<HeldPlace>>,
    free: Vec<usize>,
}

#[derive(Debug)]
struct HeldPlace {
    reply: Subject,
    /// When the server heard of the message for the last time.
    told: Tick,
}

/// A message in hand, until this is dropped.
#[derive(Debug)]
pub(super) struct HeldMessage {
    messages: Arc<HeldMessages>,
    place: usize,
}

impl HeldMessages {
    pub(super) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(HeldMessages { clock, state: Mutex::default() })
    }

    pub(super) fn hold(self: &Arc<Self>, reply: Subject) -> HeldMessage {
        let held = Some(HeldPlace { reply, told: self.clock.now() });
        let mut state = self.lock();
        let place = match state.free.pop() {
            Some(place) => {
                state.places[place] = held;
                place
            }
            None => {
                state.places.push(held);
                state.places.len() - 1
            }
        };
        drop(state);
        HeldMessage { messages: self.clone(), place }
    }

    /// How many messages are in hand.
    pub(super) fn count(&self) -> usize {
        let state = self.lock();
        state.places.len() - state.free.len()
    }

    /// Where the acknowledgements of all messages in hand go.
    pub(super) fn replies(&self) -> Vec<Subject> {
        self.lock().places.iter().flatten().map(|held| held.reply.clone()).collect()
    }

    /// Tells the server again and again that the messages in hand are worked on. Never ends by itself.
    pub(super) async fn signal_progress(&self, connection: &NatsConnection, ack_wait: Duration) {
        let interval = ack_wait / 3;
        loop {
            sleep(interval / 2).await;
            // Without a connection there is nobody to tell. The server counts the time nevertheless.
            let Ok(open) = connection.open().await else { continue };
            for reply in self.due(interval) {
                let _ = open.client.publish(reply, AckKind::Progress.into()).await;
            }
        }
    }

    /// The messages that the server has heard nothing of for this long. Marks them as told.
    fn due(&self, interval: Duration) -> Vec<Subject> {
        let now = self.clock.now();
        let mut due = Vec::new();
        for held in self.lock().places.iter_mut().flatten() {
            if now.since(held.told) >= interval {
                held.told = now;
                due.push(held.reply.clone());
            }
        }
        due
    }

    fn lock(&self) -> MutexGuard<'_, HeldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HeldMessage {
    fn drop(&mut self) {
        let mut state = self.messages.lock();
        state.places[self.place] = None;
        state.free.push(self.place);
    }
}
