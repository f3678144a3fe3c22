//! What there is now, as opposed to what happens: for whoever asks for the metrics.

use std::collections::HashMap;
use std::time::Duration;

use metrics::gauge;
use seawall::Tick;

use super::hub::Hub;
use super::numbers;
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::store::{Census, Due, Store, StoreError};
use crate::port::transport::Transport;

/// The store is asked how much waits in it so often at most, however often somebody asks for the metrics.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// It counts no further than this for a service, so that a heap of a million costs no more than this.
const COUNT_MAX: u32 = 10_000;

/// How much waits in the store, as of the last look.
#[derive(Debug, Default)]
pub(super) struct Depths {
    looked: Option<Tick>,
    /// Nothing, if the store did not answer.
    known: Option<(Census, Vec<Due>)>,
}

/// For how long the oldest delivery of a service has been due, in hand or in the store. What a start before had in hand is due
/// since ever, and so since this one began.
fn age(service: &Slug, due: &[Due], in_hand: Option<Millis>, (began, now): (Millis, Millis)) -> Duration {
    let due = due.iter().find(|due| due.service == *service);
    let due = due.and_then(|due| due.fresh.into_iter().chain(due.again).min());
    let due = due.map(|due| if due.0 > 0 { due } else { began });
    let oldest = in_hand.into_iter().chain(due).min();
    oldest.map_or(Duration::ZERO, |oldest| now.since(oldest))
}

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Records what there is now: deliveries in hand and in the store, dead letters, circuits, places in use. If the store does
    /// not answer, what is in it is left out: the rest is wanted all the more.
    pub async fn record_gauges(&self) {
        self.registry().record_gauges();
        self.record_alerts().await;
        let now = self.now();
        let mut depths = self.depths.lock().await;
        let tick = self.clock.now();
        if depths.looked.is_none_or(|looked| tick.since(looked) >= LOOK_EVERY) {
            depths.known = self.look().await.ok();
            depths.looked = Some(tick);
        }
        for (service, in_hand, oldest) in self.deliver.standing() {
            let name = || service.as_str().to_owned();
            gauge!(numbers::IN_HAND, "service" => name()).set(in_hand as f64);
            let Some((census, due)) = &depths.known else { continue };
            let waiting = census.waiting.iter().find(|(name, _)| *name == service);
            gauge!(numbers::WAITING, "service" => name())
                .set(waiting.map_or(0.0, |(_, count)| f64::from(*count)));
            let open = census.dead_letters.iter().find(|(name, _)| *name == service);
            gauge!(numbers::DEAD_LETTERS_OPEN, "service" => name())
                .set(open.map_or(0.0, |(_, count)| *count as f64));
            let age = age(&service, due, oldest, (self.began, now));
            gauge!(numbers::OLDEST_DUE, "service" => name()).set(age.as_secs_f64());
        }
    }

    /// For how long the oldest delivery of each service has been due, if the store says that these are.
    pub(super) fn oldest_due(&self, due: &[Due]) -> HashMap<Slug, Duration> {
        let now = self.now();
        let age = |(service, _, oldest): (Slug, usize, Option<Millis>)| {
            let age = age(&service, due, oldest, (self.began, now));
            (service, age)
        };
        self.deliver.standing().into_iter().map(age).collect()
    }

    async fn look(&self) -> Result<(Census, Vec<Due>), StoreError> {
        let names = self.services().into_iter().map(|service| service.name).collect();
        Ok((self.store.census(names, COUNT_MAX).await?, self.store.next_due().await?))
    }
}
