//! What the store costs on PostgreSQL: events per second, and the CPU time of the server and of this process for each event that is
//! stored and settled, at several sizes of batches; and for each claim out of many rows.
//!
//! `cargo run --release -p seawall-hub-store --example postgres_cost -- URL FOLDER PID [ROWS]`, with an empty database, an empty folder
//! and the number of the server's first process. With `ROWS`, so many deliveries of 1 000 services wait in the store meanwhile.

#![expect(clippy::print_stdout, reason = "it is a table for whoever runs it")]

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use seawall::{Clock, Tick};
use seawall_dist::deadletter::{Answer, Attempt};
use seawall_hub_core::domain::delivery::{Decision, DeliveryId, Disposition, Progress};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::event_type::EventType;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    Change, Claim, InitialState, LaneCapacity, NewDelivery, Settlement, UnitOfWork, UnitStore, WritePriority,
};
use seawall_hub_store::{Postgres, PostgresOptions};

type Failure = Box<dyn Error + Send + Sync>;

const NOW: Millis = Millis(1_700_000_000_000);
const SERVICES: usize = 1_000;
/// The ticks of `/proc/PID/stat` in a second, on every Linux.
const TICKS: f64 = 100.0;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, folder, pid, rest @ ..] = &args[..] else {
        return Err("usage: postgres_cost URL FOLDER PID [ROWS]".into());
    };
    let rows = rest.first().map_or(Ok(0), |rows| rows.parse())?;
    let options = PostgresOptions { url: url.clone(), data_folder: folder.into(), name: "cost".into() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(&options, pid.parse()?, rows))
}

async fn run(options: &PostgresOptions, server: u32, rows: usize) -> Result<(), Failure> {
    let clock = Clock::system();
    let store = Postgres::open(options, &clock).await?;
    let mut bench = Bench { store, clock, server, events: 0 };
    if rows > 0 {
        bench.fill(rows).await?;
    }
    println!("| what | events/s | server, CPU µs per event | this process, CPU µs per event |");
    println!("|---|---|---|---|");
    for (batch, rounds) in [(1, 2_000), (16, 400), (64, 200), (160, 100), (256, 100)] {
        bench.store_and_settle(batch, rounds / 10 + 1, None).await?;
        let name = format!("stored and settled, batches of {batch}");
        bench.store_and_settle(batch, rounds, Some(&name)).await?;
    }
    if rows > 0 {
        for lanes in [1, 50, SERVICES] {
            bench.claim(lanes, 5).await?;
        }
    }
    Ok(())
}

struct Bench {
    store: Postgres,
    clock: Clock,
    server: u32,
    events: u64,
}

/// What was used up at a moment.
struct Used {
    at: Tick,
    server: u64,
    client: u64,
}

impl Bench {
    fn used(&self) -> Result<Used, Failure> {
        let (server, client) = (cpu_of_family(self.server)?, cpu_of(std::process::id())?.1);
        Ok(Used { at: self.clock.precise(), server, client })
    }

    fn report(&self, name: &str, before: &Used, count: usize) -> Result<(), Failure> {
        let after = self.used()?;
        let seconds = after.at.since(before.at).as_secs_f64();
        let each = |before: u64, after: u64| (after - before) as f64 / TICKS * 1e6 / count as f64;
        println!(
            "| {name} | {:.0} | {:.1} | {:.1} |",
            count as f64 / seconds,
            each(before.server, after.server),
            each(before.client, after.client)
        );
        Ok(())
    }

    fn event(&mut self, service: usize, initial: InitialState) -> Result<UnitOfWork, Failure> {
        self.events += 1;
        let event = Event {
            id: format!("evt-{}", self.events),
            kind: EventType::new("order.created")?,
            source: "shop".into(),
            payload: vec![b'x'; 1_024].into(),
            fingerprint: [7; 32],
            accepted: NOW,
            trace: None,
            considered: 1,
            filtered: 0,
        };
        let service = Slug::new(&format!("service-{service}"))?;
        let new = NewDelivery {
            rule: (Slug::new("invoices")?, 3),
            service,
            request: [vec![1], vec![b'r'; 120]].concat(),
            initial,
            order: None,
        };
        Ok(UnitOfWork::of(Change::AddEvent(Arc::new(event), vec![new])))
    }

    async fn add(&mut self, count: usize, initial: &InitialState) -> Result<Vec<DeliveryId>, Failure> {
        let units: Result<Vec<_>, _> =
            (0..count).map(|place| self.event(place % SERVICES, initial.clone())).collect();
        let mut ids = Vec::with_capacity(count);
        for made in self.store.commit_all(WritePriority::Ingest, units?).await {
            ids.extend(made?.deliveries.into_iter().map(|(id, _)| id));
        }
        Ok(ids)
    }

    async fn store_and_settle(
        &mut self,
        batch: usize,
        rounds: usize,
        name: Option<&str>,
    ) -> Result<(), Failure> {
        let before = self.used()?;
        for _ in 0..rounds {
            let ids = self.add(batch, &InitialState::Leased).await?;
            let epoch = self.store.epoch();
            let units = ids.into_iter().map(|delivery| delivered(Claim { delivery, epoch })).collect();
            for made in self.store.commit_all(WritePriority::Outcomes, units).await {
                made?;
            }
        }
        name.map_or(Ok(()), |name| self.report(name, &before, batch * rounds))
    }

    async fn fill(&mut self, rows: usize) -> Result<(), Failure> {
        for _ in 0..rows / 1_600 {
            self.add(1_600, &InitialState::Queued).await?;
        }
        Ok(())
    }

    /// Claims from so many services at once, and gives it back.
    async fn claim(&mut self, lanes: usize, rounds: usize) -> Result<(), Failure> {
        let room: Result<Vec<LaneCapacity>, Failure> = (0..lanes)
            .map(|lane| {
                let service = Slug::new(&format!("service-{lane}"))?;
                Ok(LaneCapacity { service, fresh: 3_000 / lanes.max(60), retries: 50, resume_before: None })
            })
            .collect();
        let room = room?;
        let (mut claimed, mut slowest) = (0, Duration::ZERO);
        let before = self.used()?;
        for _ in 0..rounds {
            let began = self.clock.precise();
            let taken = self.store.take_due(NOW, room.clone()).await?;
            slowest = slowest.max(self.clock.precise().since(began));
            claimed += taken.len();
        }
        self.report(&format!("claimed, {lanes} services, slowest {slowest:?}"), &before, claimed)?;
        let before = self.used()?;
        for _ in 0..50 {
            self.store.next_due().await?;
        }
        self.report("next due times, each", &before, 50)
    }
}

fn delivered(claim: Claim) -> UnitOfWork {
    let progress = Progress { accepted: NOW, counted: 0, failures: 0, panics: 0 };
    let decision =
        Decision { disposition: Disposition::Delivered, progress, attempted: true, throttle: None };
    let answer = Some(Answer { status: 200, headers: Vec::new(), body: b"ok".to_vec() });
    let attempt = Some(Attempt { at: NOW, took: Duration::from_millis(2), answer, ..Attempt::default() });
    UnitOfWork::of(Change::Settle(Settlement {
        claim,
        decision,
        attempt,
        failure: None,
        at: NOW,
        ordered: false,
        is_replay: false,
    }))
}

/// Returns the parent of a process, and the ticks that it has used: with those of its children that have ended.
fn cpu_of(pid: u32) -> Result<(u32, u64), Failure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let number =
        |field: usize| fields.get(field).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    Ok((u32::try_from(number(1))?, number(11) + number(12) + number(13) + number(14)))
}

/// Returns the ticks that a process and its children have used.
fn cpu_of_family(pid: u32) -> Result<u64, Failure> {
    let mut all = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(number) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
        // A process may end between the two looks.
        if let Ok(used) = cpu_of(number) {
            all.insert(number, used);
        }
    }
    let family = all.iter().filter(|(number, (parent, _))| **number == pid || *parent == pid);
    Ok(family.map(|(_, (_, ticks))| ticks).sum())
}
