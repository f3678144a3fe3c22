//! Crash suspects: deliveries that were claimed when the process before crashed are on probation.
//!
//! Why, and when one is given up, is said in [`poison`](crate::domain::delivery::suspects). Here is how it goes: a suspect goes the way of all
//! others, through the same queues, guards and schedules. The only difference is that each [`HandlingStep`] of it is marked in the store,
//! and that one against whom a crash speaks is in a step while no other suspect is.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::RwLock;

use super::DispatcherInner;
use super::telemetry;
use crate::domain::delivery::suspects::HandlingStep;
use crate::domain::delivery::{DeliveryId, Outcome};
use crate::port::store::{CrashHistory, StepMarks, StoreError, UnitStore};
use crate::port::transport::Transport;

/// The wait before a store that could not be read is asked again.
const READ_AGAIN: Duration = Duration::from_millis(200);

/// What all crash suspects share.
#[derive(Debug)]
pub(super) struct SuspectTracker {
    marks: Arc<dyn StepMarks>,
    /// Held by each suspect that is in a step: alone by one that a crash counts against, shared by the others.
    turn: RwLock<()>,
}

/// A delivery on probation, for as long as it is in memory.
#[derive(Debug)]
pub(super) struct WatchedDelivery {
    id: DeliveryId,
    /// Whether a crash counts against it.
    on_probation: bool,
    suspects: Arc<SuspectTracker>,
}

impl SuspectTracker {
    pub(super) fn new(marks: Arc<dyn StepMarks>) -> Arc<Self> {
        Arc::new(SuspectTracker { marks, turn: RwLock::new(()) })
    }

    pub(super) fn watch(self: &Arc<Self>, id: DeliveryId, on_probation: bool) -> Arc<WatchedDelivery> {
        Arc::new(WatchedDelivery { id, on_probation, suspects: self.clone() })
    }
}

impl WatchedDelivery {
    /// Runs a future of this delivery, with the step marked whenever it is polled and only then.
    pub(super) async fn step<F: Future>(&self, step: HandlingStep, future: F) -> F::Output {
        let SuspectTracker { marks, turn } = &*self.suspects;
        let mut future = pin!(future);
        loop {
            let (alone, beside_others) = if self.on_probation {
                (Some(turn.write().await), None)
            } else {
                (None, Some(turn.read().await))
            };
            marks.began(self.id, step);
            let polled = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
            marks.ended(self.id);
            drop((alone, beside_others));
            match polled {
                Poll::Ready(output) => return output,
                // The future was told whom to wake: this task, which then polls it again.
                Poll::Pending => until_woken().await,
            }
        }
    }
}

impl Drop for WatchedDelivery {
    fn drop(&mut self) {
        self.suspects.marks.forget(self.id);
    }
}

async fn until_woken() {
    let mut woken = false;
    std::future::poll_fn(
        |_| if std::mem::replace(&mut woken, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await;
}

impl<S: UnitStore, T: Transport> DispatcherInner<S, T> {
    /// Quarantines the deliveries that the last crash proved guilty. Only a start finds any. An error means that the store is
    /// broken.
    pub(super) async fn quarantine_guilty(self: Arc<Self>) -> Option<StoreError> {
        loop {
            match self.quarantine_all().await {
                Ok(()) => return None,
                Err(error @ StoreError::Broken(_)) => return Some(error),
                Err(_) => tokio::time::sleep(READ_AGAIN).await,
            }
        }
    }

    /// Dead-letters each delivery that has crashed the process repeatedly in the same step.
    async fn quarantine_all(&self) -> Result<(), StoreError> {
        for (stored, CrashHistory { crashes, starts, step }) in self.store.quarantine_candidates().await? {
            let error = format!(
                "the process ended {crashes} times while it handled this delivery (starts {starts}), the last time while {step}"
            );
            telemetry::quarantined(&stored, &error);
            self.settle_unsent(&stored, Outcome::Crashed, error).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as Lock;
    use std::task::{Context, Waker};

    use super::*;

    /// Remembers what was marked.
    #[derive(Debug, Default)]
    struct Marks(Lock<Vec<String>>);

    impl StepMarks for Marks {
        fn began(&self, delivery: DeliveryId, step: HandlingStep) {
            self.0.lock().unwrap().push(format!("{} {step:?}", delivery.number));
        }

        fn ended(&self, delivery: DeliveryId) {
            self.0.lock().unwrap().push(format!("{} ended", delivery.number));
        }

        fn forget(&self, delivery: DeliveryId) {
            self.0.lock().unwrap().push(format!("{} forgotten", delivery.number));
        }
    }

    /// PRM-1. Trap "a delivery that waits for its peer did not end the process": it is marked while it is polled, and not while it
    /// waits; one against whom a crash speaks is marked while no other is.
    #[test]
    fn prm_1_a_delivery_is_marked_while_it_is_polled_and_not_while_it_waits() {
        let marks = Arc::new(Marks::default());
        let suspects = SuspectTracker::new(marks.clone());
        let said = |expected: &[&str]| {
            assert_eq!(std::mem::take(&mut *marks.0.lock().unwrap()), expected);
        };
        let mut cx = Context::from_waker(Waker::noop());
        let (first, second) =
            [1, 2].map(|number| suspects.watch(DeliveryId::new(1, number), number == 2)).into();
        let mut polls = 0;
        let mut slow = Box::pin(first.step(
            HandlingStep::Send,
            std::future::poll_fn(|_| {
                polls += 1;
                if polls == 2 { Poll::Ready(7) } else { Poll::Pending }
            }),
        ));
        assert!(slow.as_mut().poll(&mut cx).is_pending());
        said(&["1 Send", "1 ended"]);

        let held = suspects.turn.try_read().unwrap();
        let mut other = Box::pin(second.step(HandlingStep::Send, std::future::ready(8)));
        assert!(other.as_mut().poll(&mut cx).is_pending());
        said(&[]);
        drop(held);
        assert_eq!(other.as_mut().poll(&mut cx), Poll::Ready(8));
        said(&["2 Send", "2 ended"]);

        assert_eq!(slow.as_mut().poll(&mut cx), Poll::Ready(7));
        said(&["1 Send", "1 ended"]);
        drop((slow, other));
        drop((first, second));
        said(&["1 forgotten", "2 forgotten"]);
    }
}
