//! Suspects: what was in hand when the process before ended by a crash is watched.
//!
//! Why, and when one is given up, is said in [`poison`](crate::domain::poison). Here is how it goes: a suspect goes the way of all
//! others, through the same queues, guards and schedules. The only difference is that each [`Step`] of it is marked in the store,
//! and that one against whom a crash speaks is in a step while no other suspect is.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use seawall_dist::deadletter::Attempt;
use tokio::sync::RwLock;

use super::Shared;
use crate::domain::delivery::{DeliveryId, Reason};
use crate::domain::poison::Step;
use crate::port::store::{Change, Evidence, Following, Kept, Settlement, StepMarks, Store, StoreError};
use crate::port::transport::Transport;
use crate::service::watch;

/// How soon a store that could not be read is asked again.
const READ_AGAIN: Duration = Duration::from_millis(200);

/// What all suspects share.
#[derive(Debug)]
pub(super) struct Suspects {
    marks: Arc<dyn StepMarks>,
    /// Held by each suspect that is in a step, alone by one against whom a crash speaks.
    turn: RwLock<()>,
}

/// A delivery that is watched, for as long as it is in hand.
#[derive(Debug)]
pub(super) struct Watched {
    id: DeliveryId,
    /// True if a crash speaks against it.
    accused: bool,
    suspects: Arc<Suspects>,
}

impl Suspects {
    pub(super) fn new(marks: Arc<dyn StepMarks>) -> Arc<Self> {
        Arc::new(Suspects { marks, turn: RwLock::new(()) })
    }

    pub(super) fn watch(self: &Arc<Self>, id: DeliveryId, accused: bool) -> Arc<Watched> {
        Arc::new(Watched { id, accused, suspects: self.clone() })
    }
}

impl Watched {
    /// Runs a future of this delivery, marked whenever it is polled and only then.
    pub(super) async fn step<F: Future>(&self, step: Step, future: F) -> F::Output {
        let Suspects { marks, turn } = &*self.suspects;
        let mut future = pin!(future);
        loop {
            let (alone, beside_others) =
                if self.accused { (Some(turn.write().await), None) } else { (None, Some(turn.read().await)) };
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

impl Drop for Watched {
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

impl<S: Store, T: Transport> Shared<S, T> {
    /// Gives up those against whom the last crash was the proof. Only a start finds such ones. An error means that the store
    /// can't be trusted.
    pub(super) async fn give_up_convicts(self: Arc<Self>) -> Option<StoreError> {
        loop {
            match self.convict_all().await {
                Ok(()) => return None,
                Err(error @ StoreError::Fatal(_)) => return Some(error),
                Err(_) => tokio::time::sleep(READ_AGAIN).await,
            }
        }
    }

    async fn convict_all(&self) -> Result<(), StoreError> {
        for (kept, evidence) in self.store.convicts().await? {
            self.convict(&kept, &evidence).await?;
        }
        Ok(())
    }

    /// The process has ended in the middle of the same step of this one again and again.
    async fn convict(&self, kept: &Kept, evidence: &Evidence) -> Result<(), StoreError> {
        let Evidence { crashes, starts, step } = evidence;
        let error = format!(
            "the process ended {crashes} times while it was in hand (starts {starts}), the last time in the middle of {step}"
        );
        let (at, mut progress) = (self.now(), kept.progress);
        progress.failures += 1;
        let hold = self.ways(&kept.rule.0).hold && kept.order.is_some();
        watch::quarantined(kept, &error);
        self.write_down(Change::Convict(Settlement {
            delivery: kept.id,
            next: Following::DeadLetter { reason: Reason::Poison, progress, hold },
            ordered: kept.order.is_some(),
            at,
            attempt: Some(Attempt { at, error: Some(error), ..Attempt::default() }),
            cause: None,
            number: progress.failures,
            replays: kept.replay_of.is_some(),
        }))
        .await
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
        fn began(&self, delivery: DeliveryId, step: Step) {
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
        let suspects = Suspects::new(marks.clone());
        let said = |expected: &[&str]| {
            assert_eq!(std::mem::take(&mut *marks.0.lock().unwrap()), expected);
        };
        let mut cx = Context::from_waker(Waker::noop());
        let (first, second) =
            [1, 2].map(|number| suspects.watch(DeliveryId { era: 1, number }, number == 2)).into();
        let mut polls = 0;
        let mut slow = Box::pin(first.step(
            Step::Send,
            std::future::poll_fn(|_| {
                polls += 1;
                if polls == 2 { Poll::Ready(7) } else { Poll::Pending }
            }),
        ));
        assert!(slow.as_mut().poll(&mut cx).is_pending());
        said(&["1 Send", "1 ended"]);

        let held = suspects.turn.try_read().unwrap();
        let mut other = Box::pin(second.step(Step::Send, std::future::ready(8)));
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
