//! Who sends events: so many clients at once, or so many events a second.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::event::{Event, Ids};
use super::sink::Arrivals;
use super::times::Times;
use super::wire::Connection;

/// Clients that still wait so long after the end wait for what never comes.
const END_WITHIN: Duration = Duration::from_secs(120);

/// Sends events to one hub, and gives each a number of its own.
#[derive(Clone)]
pub struct Driver {
    pub address: SocketAddr,
    pub times: Rc<Times>,
    pub arrivals: Rc<Arrivals>,
    pub next: Rc<Cell<u64>>,
}

/// When clients stop.
#[derive(Clone, Copy)]
pub enum Stop {
    After(Duration),
    Events(u64),
}

/// What a client waits for before it sends the next event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    Acknowledged,
    Arrived,
}

/// What clients do.
#[derive(Clone, Copy)]
pub struct Load {
    pub clients: usize,
    pub stop: Stop,
    pub pace: Pace,
    /// Events go round groups from this one.
    pub first_group: usize,
    pub groups: usize,
    pub ids: Ids,
}

/// What was sent.
#[derive(Default)]
pub struct Sent {
    /// The events that were acknowledged.
    pub events: Vec<u64>,
    /// How often the hub was too busy.
    pub refused: u64,
    pub began: u64,
    /// When the last one was acknowledged.
    pub ended: u64,
}

impl Driver {
    /// Clients that each send an event, wait, and send the next.
    pub async fn closed(&self, load: Load) -> Result<Sent, String> {
        let began = self.times.now();
        let (until, left) = match load.stop {
            Stop::After(time) => (began + time.as_nanos() as u64, u64::MAX),
            Stop::Events(events) => (u64::MAX, events),
        };
        let left = Rc::new(Cell::new(left));
        let mut clients = JoinSet::new();
        for _ in 0..load.clients {
            clients.spawn_local(self.clone().client(load, until, left.clone()));
        }
        let all = async {
            let mut sent = Sent { began, ..Sent::default() };
            while let Some(ended) = clients.join_next().await {
                sent.add(ended.map_err(|error| error.to_string())??);
            }
            Ok(sent)
        };
        let time = match load.stop {
            Stop::After(time) => time + END_WITHIN,
            Stop::Events(_) => END_WITHIN * 5,
        };
        timeout(time, all).await.map_err(|_| "clients wait for events that do not arrive".to_owned())?
    }

    async fn client(self, load: Load, until: u64, left: Rc<Cell<u64>>) -> Result<Sent, String> {
        let (mut sent, mut event) = (Sent::default(), Event::new(load.ids));
        let mut connection = self.connect().await?;
        while left.get() > 0 && self.times.now() < until {
            left.set(left.get() - 1);
            let number = self.number();
            let arrival = (load.pace == Pace::Arrived).then(|| self.arrivals.of(number));
            let group = load.first_group + number as usize % load.groups;
            if !self.send(&mut connection, &mut event, number, group).await? {
                sent.refused += 1;
                sleep(Duration::from_millis(1)).await;
                continue;
            }
            sent.events.push(number);
            sent.ended = self.times.now();
            if let Some(arrival) = arrival {
                // It is never let go of without an arrival while somebody waits.
                let _ = arrival.await;
            }
        }
        Ok(sent)
    }

    /// So many events a second, however long each takes.
    pub async fn open(&self, per_second: u32, time: Duration, group: usize) -> Result<Sent, String> {
        let began = self.times.now();
        let count = (f64::from(per_second) * time.as_secs_f64()) as u64;
        let mut ticks = interval(Duration::from_secs(1) / per_second);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let (mut idle, mut under_way) = (Vec::new(), JoinSet::new());
        let mut sent = Sent { began, ..Sent::default() };
        let mut back = |ended: Result<Result<_, String>, tokio::task::JoinError>, idle: &mut Vec<_>| {
            let (kept, one) = ended.map_err(|error| error.to_string())??;
            idle.push(kept);
            sent.add(one);
            Ok::<_, String>(())
        };
        for _ in 0..count {
            ticks.tick().await;
            while let Some(ended) = under_way.try_join_next() {
                back(ended, &mut idle)?;
            }
            let (driver, kept) = (self.clone(), idle.pop());
            under_way.spawn_local(async move {
                let (mut connection, mut event) = match kept {
                    Some(kept) => kept,
                    None => (driver.connect().await?, Event::new(Ids::Ascending)),
                };
                let (number, mut one) = (driver.number(), Sent::default());
                if driver.send(&mut connection, &mut event, number, group).await? {
                    one.events.push(number);
                    one.ended = driver.times.now();
                } else {
                    one.refused = 1;
                }
                Ok(((connection, event), one))
            });
        }
        while let Some(ended) = under_way.join_next().await {
            back(ended, &mut idle)?;
        }
        Ok(sent)
    }

    /// Sends an event; says whether it was taken, or the hub was too busy.
    async fn send(
        &self,
        connection: &mut Connection,
        event: &mut Event,
        number: u64,
        group: usize,
    ) -> Result<bool, String> {
        let request = event.request(number, group);
        self.times.sent.set_first(number, self.times.now());
        let status = connection.exchange(request).await;
        self.times.acknowledged.set_first(number, self.times.now());
        match status {
            Ok(202) => Ok(true),
            Ok(429 | 503) => Ok(false),
            Ok(status) => {
                let answer = String::from_utf8_lossy(connection.body());
                Err(format!("an event was answered with {status}: {answer}"))
            }
            Err(error) => Err(format!("an event was not answered: {error}")),
        }
    }

    async fn connect(&self) -> Result<Connection, String> {
        Connection::open(self.address).await.map_err(|error| format!("the hub is not there: {error}"))
    }

    fn number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }
}

impl Load {
    /// Clients that go on as soon as an event of group 0 is acknowledged.
    pub fn new(clients: usize, stop: Stop) -> Self {
        Load { clients, stop, pace: Pace::Acknowledged, first_group: 0, groups: 1, ids: Ids::Ascending }
    }
}

impl Sent {
    fn add(&mut self, other: Sent) {
        self.events.extend(other.events);
        self.refused += other.refused;
        self.ended = self.ended.max(other.ended);
    }
}
