//! The story of the first minute: a service breaks and comes back, dead letters gather, and a group of them is replayed.
//!
//! Every line that is told has been seen: it waits for the circuit to open before it says so, and gives up telling when it does
//! not come, because somebody who plays with the switches may tell another story.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use seawall::breaker::State;
use seawall::{Clock, Tick};
use seawall_hub_core::domain::dead_letter::{
    GroupFilter, GroupState, LetterFilter, LetterGroup, LetterState,
};
use seawall_hub_core::domain::operation::{BulkAction, Operation, OperationState, ReplayMode, ReplayPlan};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::PageRequest;
use seawall_hub_core::service::{Author, BulkRequest, Context};

use super::{DemoServices, SampleState, SeedLetters, pile};
use crate::hub::Server;

/// When things happen, in seconds from the start.
const BREAKS: u32 = 10;
const HEALS: u32 = 30;
const REPLAYS: u32 = 45;
/// The replay goes slowly enough to be watched: so many a second, one first, then three more, then all.
const RATE: u32 = 4;
const CANARY: [u32; 2] = [1, 3];
const SETTLES: Duration = Duration::from_millis(500);
/// Whether something has come to be is looked at so often, and so many times: what does not come is not waited for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOKS: u32 = 300;

/// Tells the story, and then rests.
pub(super) async fn play(
    demo: &DemoServices,
    hub: &Arc<Server>,
    pace: Option<u32>,
    tell: &impl Fn(String),
) -> Infallible {
    if let Some(pace) = pace {
        let clock = hub.clock().clone();
        let story = DemoScenario { demo, hub, tell, from: clock.now(), clock, pace: pace.max(1) };
        story.outage().await;
        story.replay().await;
        (story.tell)("the story pauses here: now break a service yourself, and restore it".into());
    }
    std::future::pending().await
}

struct DemoScenario<'s, T> {
    demo: &'s DemoServices,
    hub: &'s Arc<Server>,
    tell: &'s T,
    from: Tick,
    clock: Clock,
    pace: u32,
}

impl<T: Fn(String)> DemoScenario<'_, T> {
    async fn outage(&self) {
        let (Some(warehouse), Some(name)) = (self.demo.upstream("warehouse"), slug("warehouse")) else {
            return;
        };
        self.at(BREAKS).await;
        warehouse.feel(SampleState::Down);
        (self.tell)("warehouse is down: it refuses connections".into());
        if self.sees(async || self.circuit(&name) == Some(State::Open)).await {
            (self.tell)(
                "the circuit of warehouse is open: it gets no calls, and its deliveries are waiting".into(),
            );
        }
        self.at(HEALS).await;
        let SeedLetters { waiting, .. } = self.pile(&name).await;
        warehouse.feel(SampleState::Healthy);
        (self.tell)(format!("warehouse is back; {waiting} deliveries are waiting for it"));
        if !self.sees(async || self.circuit(&name) == Some(State::Closed)).await {
            return;
        }
        (self.tell)(
            "a probe succeeded: the circuit of warehouse is closed, and its waiting deliveries resume".into(),
        );
        // Those that come meanwhile are under way too.
        if self.sees(async || self.pile(&name).await.waiting < 5).await {
            (self.tell)("all waiting deliveries of warehouse are delivered; nothing was lost".into());
        }
    }

    async fn replay(&self) {
        let (Some(crm), Some(name)) = (self.demo.upstream("crm"), slug("crm")) else { return };
        self.at(REPLAYS).await;
        // With few events a second it takes its time.
        self.sees(async || self.groups(&name).await.iter().any(is_about_tiers)).await;
        let groups = self.groups(&name).await;
        let letters: u64 = groups.iter().map(|group| group.counts.of(LetterState::Open)).sum();
        (self.tell)(format!(
            "crm has rejected {letters} customers: dead letters in {} groups, by error message",
            groups.len()
        ));
        let Some(group) = groups.into_iter().find(is_about_tiers) else { return };
        crm.learn_platinum();
        let count = group.counts.of(LetterState::Open);
        (self.tell)(format!(
            "crm has a new release that knows the tier platinum: the group of {count} rejected ones is replayed with a \
             canary: one, a few, then all"
        ));
        // What it refused at the last moment is on the desk by then, and goes along.
        tokio::time::sleep(SETTLES).await;
        let plan = ReplayPlan { mode: ReplayMode::Render, rate: RATE, canary: CANARY.to_vec() };
        let filter = LetterFilter { group: Some(group.fingerprint), ..LetterFilter::default() };
        let work = BulkRequest { task: BulkAction::Replay(plan), filter, limit: None, key: None };
        let author = Slug::new("demo").map_or(Author::Hub, Author::Key);
        let reason = Some("crm knows the tier platinum now".into());
        let cx = Context { author, reason, trace: None, now: self.hub.now() };
        let began = match self.hub.dead_letters.start_operation(&cx, &work).await {
            Ok(began) => began,
            Err(error) => return (self.tell)(format!("the replay could not begin: {error:?}")),
        };
        self.sees(async || self.operation(&began).await.is_some_and(|now| now.run.has_ended())).await;
        if let Some(now) = self.operation(&began).await {
            let (delivered, total) = (now.progress.delivered, now.total);
            let why = now
                .cause
                .filter(|_| now.run != OperationState::Done)
                .map(|why| format!(": {why}"))
                .unwrap_or_default();
            (self.tell)(format!("the replay is {}: {delivered} of {total} delivered{why}", now.run.word()));
        }
    }

    /// Waits until it is time, as the story goes.
    async fn at(&self, second: u32) {
        let then = Duration::from_secs(u64::from(second)) / self.pace;
        tokio::time::sleep(then.saturating_sub(self.clock.now().since(self.from))).await;
    }

    /// Whether something comes to be.
    async fn sees(&self, holds: impl AsyncFn() -> bool) -> bool {
        for _ in 0..LOOKS {
            if holds().await {
                return true;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        false
    }

    async fn pile(&self, service: &Slug) -> SeedLetters {
        pile(self.hub, std::slice::from_ref(service)).await
    }

    fn circuit(&self, service: &Slug) -> Option<State> {
        self.hub.gateway.guard(service)?.breaker().map(|circuit| circuit.state())
    }

    async fn groups(&self, service: &Slug) -> Vec<LetterGroup> {
        let states = vec![GroupState::Open];
        let filter = GroupFilter { service: Some(service.clone()), states, ..GroupFilter::default() };
        let page = self.hub.dead_letters.groups(filter, PageRequest { from: None, size: 100 }).await;
        page.map(|page| page.items).unwrap_or_default()
    }

    async fn operation(&self, began: &Operation) -> Option<Operation> {
        self.hub.dead_letters.operation(began.id).await.ok().flatten()
    }
}

fn is_about_tiers(group: &LetterGroup) -> bool {
    group.failure.message.starts_with("unknownTier")
}

fn slug(name: &str) -> Option<Slug> {
    Slug::new(name).ok()
}
