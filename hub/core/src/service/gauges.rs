//! What there is now, as opposed to what happens: for whoever asks for the metrics.

use std::collections::HashMap;
use std::time::Duration;

use metrics::gauge;
use seawall::Tick;
use tokio::sync::MutexGuard;

use super::deliver::LaneLoad;
use super::hub::Hub;
use super::numbers;
use crate::domain::delivery::State;
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::domain::wait::Wait;
use crate::port::store::{Census, Due, Kept, Store, StoreError};
use crate::port::transport::Transport;

/// The store is asked how much waits in it so often at most, however often somebody asks,
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// and after so many times as long as the last look took: many services with much to count cost no more than a twentieth of a reader.
const LOOK_PAUSE: u32 = 20;
/// It counts no further than this for a service, so that a heap of a million costs no more than this.
const COUNT_MAX: u32 = 100_000;

/// How much waits in the store, as of the last look.
#[derive(Debug, Default)]
pub(super) struct Depths {
    /// When the next look may be.
    next_look: Option<Tick>,
    /// Nothing, if the store did not answer.
    known: Option<HashMap<Slug, Depth>>,
}

/// What is in the store of one service.
#[derive(Clone, Copy, Debug, Default)]
struct Depth {
    waiting: u32,
    dead_letters: u64,
    /// When the next is due.
    next_due: Option<Millis>,
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
    /// Deliveries that have not ended and are not being sent, in memory and in the store. Those in the store are counted up to
    /// 100 000.
    pub waiting: u64,
    /// Deliveries whose request is under way, or whose answer is being written down.
    pub in_flight: usize,
    /// What those that wait are waiting for, if there are any.
    pub wait: Option<Wait>,
    /// What is in the store, if it answered.
    pub kept: Option<KeptStanding>,
}

/// What is in the store of a service, as of the last look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KeptStanding {
    /// Dead letters that are open.
    pub dead_letters: u64,
    /// Since when the oldest delivery has been due, if one is.
    pub due_since: Option<Millis>,
}

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Records what there is now: deliveries that wait or are under way, dead letters, circuits, places in use. If the store does
    /// not answer, what is in it is left out: the rest is wanted all the more.
    pub async fn record_gauges(&self) {
        self.registry().record_gauges();
        self.record_alerts().await;
        let now = self.now();
        for Standing { service, waiting, in_flight, kept, .. } in self.standings().await {
            let name = || service.as_str().to_owned();
            gauge!(numbers::IN_FLIGHT, "service" => name()).set(in_flight as f64);
            let Some(KeptStanding { dead_letters, due_since }) = kept else { continue };
            gauge!(numbers::WAITING, "service" => name()).set(waiting as f64);
            gauge!(numbers::DEAD_LETTERS_OPEN, "service" => name()).set(dead_letters as f64);
            gauge!(numbers::OLDEST_DUE, "service" => name())
                .set(due_since.map_or(0.0, |since| now.since(since).as_secs_f64()));
        }
    }

    /// How each service stands. The store is looked into a few times a second at most, however often somebody asks.
    pub async fn standings(&self) -> Vec<Standing> {
        let depths = self.depths().await;
        let loads = self.deliver.loads().into_iter();
        loads.map(|(service, load)| self.standing_by(service, load, depths.known.as_ref())).collect()
    }

    /// How one service stands.
    pub async fn standing(&self, service: &Slug) -> Standing {
        let depths = self.depths().await;
        self.standing_by(service.clone(), self.deliver.load(service), depths.known.as_ref())
    }

    /// What a delivery waits for, if it waits.
    pub fn wait_of(&self, kept: &Kept) -> Option<Wait> {
        if kept.state == State::Leased && self.deliver.is_in_flight(&kept.service, kept.id) {
            return None;
        }
        Wait::of_delivery(kept.state, kept.due, &self.deliver.gate(&kept.service), self.now())
    }

    fn standing_by(&self, service: Slug, load: LaneLoad, known: Option<&HashMap<Slug, Depth>>) -> Standing {
        let (now, LaneLoad { queued, in_flight, oldest }) = (self.now(), load);
        let depth = known.map(|known| known.get(&service).copied().unwrap_or_default());
        let (stored, next_due) = depth.map_or((0, None), |depth| (depth.waiting, depth.next_due));
        let waiting = u64::from(stored) + queued as u64;
        let wait = (waiting > 0).then(|| {
            let disabled = || self.rules().iter().any(|rule| !rule.enabled && rule.service == service);
            let rule_disabled = queued == 0 && next_due.is_none() && disabled();
            self.deliver.gate(&service).of_service(queued, next_due, rule_disabled, now)
        });
        let kept = depth.map(|depth| KeptStanding {
            dead_letters: depth.dead_letters,
            due_since: oldest.into_iter().chain(depth.next_due).min().filter(|oldest| *oldest < now),
        });
        Standing { service, waiting, in_flight, wait, kept }
    }

    async fn depths(&self) -> MutexGuard<'_, Depths> {
        let mut depths = self.depths.lock().await;
        let began = self.clock.precise();
        if depths.next_look.is_none_or(|next| began >= next) {
            depths.known = self.look().await.ok();
            let ended = self.clock.precise();
            depths.next_look = Some(ended + LOOK_EVERY.max(ended.since(began) * LOOK_PAUSE));
        }
        depths
    }

    /// For how long the oldest delivery of each service has been due, if the store says that these are.
    pub(super) fn oldest_due(&self, due: &[Due]) -> HashMap<Slug, Duration> {
        let now = self.now();
        let age = |(service, load): (Slug, LaneLoad)| {
            let age = age(&service, due, load.oldest, (self.began, now));
            (service, age)
        };
        self.deliver.loads().into_iter().map(age).collect()
    }

    async fn look(&self) -> Result<HashMap<Slug, Depth>, StoreError> {
        let names = self.services().into_iter().map(|service| service.name).collect();
        let Census { waiting, dead_letters } = self.store.census(names, COUNT_MAX).await?;
        let mut known: HashMap<Slug, Depth> = HashMap::new();
        for (service, count) in waiting {
            known.entry(service).or_default().waiting = count;
        }
        for (service, count) in dead_letters {
            known.entry(service).or_default().dead_letters = count;
        }
        for Due { service, fresh, again } in self.store.next_due().await? {
            let due = fresh.into_iter().chain(again).min();
            // What a start before had in hand is due since ever, and so since this one began.
            let due = due.map(|due| if due.0 > 0 { due } else { self.began });
            known.entry(service).or_default().next_due = due;
        }
        Ok(known)
    }
}
