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

/// How a service stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Which one.
    pub service: Slug,
    /// Deliveries in the hands of this process.
    pub in_hand: usize,
    /// What is in the store.
    pub kept: Option<KeptStanding>,
}

/// What is in the store of a service, as of the last look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KeptStanding {
    /// Deliveries that wait there, counted up to 10 000.
    pub waiting: u32,
    /// Dead letters that are open.
    pub dead_letters: u64,
    /// Since when the oldest delivery has been due, if one is.
    pub due_since: Option<Millis>,
}

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Records what there is now: deliveries in hand and in the store, dead letters, circuits, places in use. If the store does
    /// not answer, what is in it is left out: the rest is wanted all the more.
    pub async fn record_gauges(&self) {
        self.registry().record_gauges();
        self.record_alerts().await;
        let now = self.now();
        for Standing { service, in_hand, kept } in self.standings().await {
            let name = || service.as_str().to_owned();
            gauge!(numbers::IN_HAND, "service" => name()).set(in_hand as f64);
            let Some(KeptStanding { waiting, dead_letters, due_since }) = kept else { continue };
            gauge!(numbers::WAITING, "service" => name()).set(f64::from(waiting));
            gauge!(numbers::DEAD_LETTERS_OPEN, "service" => name()).set(dead_letters as f64);
            gauge!(numbers::OLDEST_DUE, "service" => name())
                .set(due_since.map_or(0.0, |since| now.since(since).as_secs_f64()));
        }
    }

    /// How each service stands. The store is looked into every few seconds at most, however often somebody asks.
    pub async fn standings(&self) -> Vec<Standing> {
        let mut depths = self.depths.lock().await;
        let tick = self.clock.now();
        if depths.looked.is_none_or(|looked| tick.since(looked) >= LOOK_EVERY) {
            depths.known = self.look().await.ok();
            depths.looked = Some(tick);
        }
        let now = self.now();
        let known = depths.known.as_ref().map(|(census, due)| {
            let waiting: HashMap<&Slug, u32> =
                census.waiting.iter().map(|(name, count)| (name, *count)).collect();
            let dead: HashMap<&Slug, u64> =
                census.dead_letters.iter().map(|(name, count)| (name, *count)).collect();
            let due: HashMap<&Slug, &Due> = due.iter().map(|due| (&due.service, due)).collect();
            (waiting, dead, due)
        });
        let standing = |(service, in_hand, oldest): (Slug, usize, Option<Millis>)| {
            let kept = known.as_ref().map(|(waiting, dead, due)| {
                let due = due.get(&service).and_then(|due| due.fresh.into_iter().chain(due.again).min());
                // What a start before had in hand is due since ever, and so since this one began.
                let due = due.map(|due| if due.0 > 0 { due } else { self.began });
                KeptStanding {
                    waiting: waiting.get(&service).copied().unwrap_or_default(),
                    dead_letters: dead.get(&service).copied().unwrap_or_default(),
                    due_since: oldest.into_iter().chain(due).min().filter(|oldest| *oldest < now),
                }
            });
            Standing { service, in_hand, kept }
        };
        self.deliver.standing().into_iter().map(standing).collect()
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
