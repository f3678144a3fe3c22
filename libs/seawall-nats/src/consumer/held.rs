//! The messages in hand. The server is told that they are worked on, or it would deliver them again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Subject;
use async_nats::jetstream::AckKind;
use seawall::Clock;
use seawall::Tick;
use tokio::time::sleep;

use crate::NatsConnection;

/// The messages in hand, by a number of their own: one message may be in hand twice, if its time ran out while it was.
#[derive(Debug)]
pub(super) struct HeldMessages {
    clock: Clock,
    state: Mutex<HeldState>,
}

#[derive(Debug, Default)]
struct HeldState {
    next: u64,
    messages: HashMap<u64, (Subject, Tick)>,
}

/// A message in hand, until this is dropped.
#[derive(Debug)]
pub(super) struct HeldMessage {
    messages: Arc<HeldMessages>,
    number: u64,
    reply: Subject,
}

impl HeldMessages {
    pub(super) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(HeldMessages { clock, state: Mutex::default() })
    }

    pub(super) fn hold(self: &Arc<Self>, reply: Subject) -> HeldMessage {
        let now = self.clock.now();
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.messages.insert(number, (reply.clone(), now));
        drop(state);
        HeldMessage { messages: self.clone(), number, reply }
    }

    /// Where the acknowledgements of all messages in hand go.
    pub(super) fn replies(&self) -> Vec<Subject> {
        self.lock().messages.values().map(|(reply, _)| reply.clone()).collect()
    }

    /// Tells the server again and again that the messages in hand are worked on. Never ends by itself.
    pub(super) async fn signal_progress(&self, connection: &NatsConnection, ack_wait: Duration) {
        let interval = ack_wait / 3;
        loop {
            sleep(interval / 2).await;
            // Without a connection there is nobody to tell. The server counts the time nevertheless.
            let Ok(client) = connection.client().await else { continue };
            for reply in self.due(interval) {
                let _ = client.publish(reply, AckKind::Progress.into()).await;
            }
        }
    }

    /// The messages that the server has heard nothing of for this long. Marks them as told.
    fn due(&self, interval: Duration) -> Vec<Subject> {
        let now = self.clock.now();
        let mut due = Vec::new();
        for (reply, told) in self.lock().messages.values_mut() {
            if now.since(*told) >= interval {
                *told = now;
                due.push(reply.clone());
            }
        }
        due
    }

    fn lock(&self) -> MutexGuard<'_, HeldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldMessage {
    /// Where its acknowledgement goes.
    pub(super) fn reply(&self) -> &Subject {
        &self.reply
    }
}

impl Drop for HeldMessage {
    fn drop(&mut self) {
        self.messages.lock().messages.remove(&self.number);
    }
}
