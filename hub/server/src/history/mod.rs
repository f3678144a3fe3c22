//! What happened lately, in points over time: for charts, and for "how is it going now".
//!
//! # Why not only metrics?
//! Whoever has a Prometheus keeps weeks. Whoever has none still wants to see the last hour, on the page where the trouble is. So
//! the hub looks at its own counters every five seconds and keeps the differences: a point for each look of the last five
//! minutes, and one for each half minute of the last hour, the one that has begun included.
//!
//! It is kept in memory, and is bounded: a service in which something has happened costs about 7 KB, one in which nothing has
//! costs next to nothing, and there are no more services in it than a metric has labels. A restart begins anew.

mod point;

use std::collections::HashMap;
use std::sync::MutexGuard;
use std::time::Duration;

use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::sync::Lock;

use self::point::PackedPoint;
pub(crate) use self::point::Point;
use crate::metric_store::{MetricStore, Totals};

/// So often the counters are looked at.
pub(crate) const EVERY: Duration = Duration::from_secs(5);
/// The number of fine points that are stored: five minutes.
const FINE: usize = 60;
/// The number of fine points that make a coarse one.
const TOGETHER: u64 = 6;
/// The number of coarse points that are stored: an hour.
const COARSE: usize = 120;

/// How far somebody looks back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HistoryRange {
    /// Five minutes, in points of five seconds.
    Minutes,
    /// An hour, in points of half a minute.
    Hour,
}

impl HistoryRange {
    /// The seconds of one point.
    pub(crate) const fn seconds(self) -> u64 {
        match self {
            HistoryRange::Minutes => EVERY.as_secs(),
            HistoryRange::Hour => EVERY.as_secs() * TOGETHER,
        }
    }
}

/// What happened lately.
#[derive(Debug)]
pub(crate) struct History {
    began: Millis,
    inner: Lock<HistoryInner>,
}

#[derive(Debug)]
struct HistoryInner {
    /// How often somebody has looked.
    looks: u64,
    /// When the last points ended.
    fine_at: [Millis; FINE],
    coarse_at: [Millis; COARSE],
    /// Of all services together.
    all: ServiceSeries,
    services: HashMap<String, ServiceSeries>,
    /// Events come to the hub, and to no service.
    events_before: u64,
    events_gathered: u64,
    fine_events: [u32; FINE],
    coarse_events: [u32; COARSE],
}

/// The points of one service.
#[derive(Debug, Default)]
struct ServiceSeries {
    before: Totals,
    /// Since the last half minute.
    gathered: Totals,
    /// Only where something has happened.
    points: Option<Box<Points>>,
}

#[derive(Debug)]
struct Points {
    fine: [PackedPoint; FINE],
    coarse: [PackedPoint; COARSE],
}

impl ServiceSeries {
    /// What has come since the last look, and a point of it at this place.
    fn look(&mut self, now: Totals, fine: usize) -> Totals {
        let lately = now.since(&self.before);
        self.before = now;
        self.put(&lately, fine);
        lately
    }

    fn put(&mut self, lately: &Totals, fine: usize) {
        self.gathered.add(lately);
        if self.points.is_none() && lately.is_nothing() {
            return;
        }
        let empty = || {
            Box::new(Points {
                fine: [PackedPoint::default(); FINE],
                coarse: [PackedPoint::default(); COARSE],
            })
        };
        self.points.get_or_insert_with(empty).fine[fine] = PackedPoint::of(lately);
    }

    fn gather(&mut self, coarse: usize) {
        let gathered = std::mem::take(&mut self.gathered);
        if let Some(points) = &mut self.points {
            points.coarse[coarse] = PackedPoint::of(&gathered);
        }
    }
}

/// The place of the look with this number in a ring.
fn place(look: u64, ring: usize) -> usize {
    usize::try_from(look % ring as u64).unwrap_or(0)
}

impl History {
    /// From now on. What was counted before does not count.
    pub(crate) fn new(numbers: &MetricStore, now: Millis) -> Self {
        let known = |(name, before)| (name, ServiceSeries { before, ..ServiceSeries::default() });
        let inner = HistoryInner {
            looks: 0,
            fine_at: [now; FINE],
            coarse_at: [now; COARSE],
            all: ServiceSeries::default(),
            services: numbers.of_services().into_iter().map(known).collect(),
            events_before: numbers.events_accepted(),
            events_gathered: 0,
            fine_events: [0; FINE],
            coarse_events: [0; COARSE],
        };
        History { began: now, inner: Lock::new(inner) }
    }

    /// Since when it is kept: when the hub was started.
    pub(crate) fn began(&self) -> Millis {
        self.began
    }

    /// Looks again and again.
    pub(crate) async fn run(&self, numbers: &MetricStore, now: impl Fn() -> Millis) {
        let mut every = tokio::time::interval(EVERY);
        // One that comes late is late; two at once would be one point with everything and one with nothing.
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        every.tick().await;
        loop {
            every.tick().await;
            self.look_now(numbers, now());
        }
    }

    /// Adds the current values.
    pub(crate) fn look_now(&self, numbers: &MetricStore, now: Millis) {
        self.look(numbers.of_services(), numbers.events_accepted(), now);
    }

    /// A point for each service, of what was counted since the last look.
    fn look(&self, seen: HashMap<String, Totals>, events: u64, now: Millis) {
        let mut guard = self.lock();
        let inner = &mut *guard;
        let fine = place(inner.looks, FINE);
        inner.looks += 1;
        let mut all = Totals::default();
        for (name, totals) in seen {
            all.add(&inner.services.entry(name).or_default().look(totals, fine));
        }
        inner.all.put(&all, fine);
        let came = events.saturating_sub(inner.events_before);
        (inner.events_before, inner.fine_at[fine]) = (events, now);
        inner.events_gathered += came;
        inner.fine_events[fine] = u32::try_from(came).unwrap_or(u32::MAX);
        if inner.looks.is_multiple_of(TOGETHER) {
            let coarse = place(inner.looks / TOGETHER - 1, COARSE);
            inner.services.values_mut().chain([&mut inner.all]).for_each(|track| track.gather(coarse));
            inner.coarse_at[coarse] = now;
            let gathered = std::mem::take(&mut inner.events_gathered);
            inner.coarse_events[coarse] = u32::try_from(gathered).unwrap_or(u32::MAX);
        }
    }

    /// The points of a service, or of all together, the oldest first. Events only of all.
    pub(crate) fn points(&self, service: Option<&str>, span: HistoryRange) -> Vec<Point> {
        let inner = self.lock();
        let track = match service {
            Some(name) => inner.services.get(name),
            None => Some(&inner.all),
        };
        let points = track.and_then(|track| track.points.as_deref());
        let (looks, ring) = match span {
            HistoryRange::Minutes => (inner.looks, FINE),
            HistoryRange::Hour => (inner.looks / TOGETHER, COARSE),
        };
        let mut found: Vec<Point> = (looks.saturating_sub(ring as u64)..looks)
            .map(|look| {
                let at = place(look, ring);
                let (time, events, packed) = match span {
                    HistoryRange::Minutes => {
                        (inner.fine_at[at], inner.fine_events[at], points.map(|points| points.fine[at]))
                    }
                    HistoryRange::Hour => {
                        (inner.coarse_at[at], inner.coarse_events[at], points.map(|points| points.coarse[at]))
                    }
                };
                let events = service.is_none().then_some(events);
                packed.unwrap_or_default().unpacked(time, span.seconds(), events)
            })
            .collect();
        found.extend((span == HistoryRange::Hour).then(|| inner.begun(track, service.is_none())).flatten());
        found
    }

    fn lock(&self) -> MutexGuard<'_, HistoryInner> {
        self.inner.lock()
    }
}

impl HistoryInner {
    /// The half minute that has begun, so that the last hour has all that the last five minutes have.
    fn begun(&self, track: Option<&ServiceSeries>, of_all: bool) -> Option<Point> {
        let looks = self.looks % TOGETHER;
        let at = self.fine_at[place(self.looks.checked_sub(1).filter(|_| looks > 0)?, FINE)];
        let packed = track.map(|track| PackedPoint::of(&track.gathered)).unwrap_or_default();
        let events = of_all.then(|| u32::try_from(self.events_gathered).unwrap_or(u32::MAX));
        Some(packed.unpacked(at, looks * EVERY.as_secs(), events))
    }
}

#[cfg(test)]
mod tests;
