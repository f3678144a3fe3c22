//! A hub, who sends to it, and who receives from it.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::sleep;

use super::api::Api;
use super::cli::Options;
use super::database::DatabaseServer;
use super::event;
use super::load::{Driver, Load, Pace, Sent, Stop};
use super::process::Hub;
use super::report::Row;
use super::sink::{Manner, Sink};
use super::times::{Spread, Times};

/// What has not arrived so long after the last arrival is told as missing.
const QUIET: Duration = Duration::from_secs(20);
/// What came of the last deliveries is written down within this.
const SETTLED_WITHIN: Duration = Duration::from_millis(250);

/// A fresh hub on a fresh folder, who sends to it, and who receives from it.
pub struct Lab {
    pub hub: Hub,
    pub api: Api,
    pub times: Rc<Times>,
    pub sink: Sink,
    next: Rc<Cell<u64>>,
    binary: PathBuf,
    folder: PathBuf,
}

/// What had been used at some moment.
#[derive(Clone, Copy)]
pub struct Before {
    hub: Duration,
    database: Option<Duration>,
    driver: Duration,
    arrived: u64,
}

impl Lab {
    pub async fn new(options: &Options) -> Result<Self, String> {
        Self::with_binary(&options.hub, options).await
    }

    /// A hub that this program starts.
    pub async fn with_binary(binary: &Path, options: &Options) -> Result<Self, String> {
        let folder = options.folder.join("run");
        let database = options.database.as_ref().map(DatabaseServer::database).transpose()?;
        let hub = Hub::start(binary, &folder, database)?;
        let api = Api::open(hub.address).await?;
        let (times, sink, next) = (Rc::new(Times::new()), Sink::default(), Rc::default());
        Ok(Lab { hub, api, times, sink, next, binary: binary.to_owned(), folder })
    }

    /// Kills the hub and starts another on the same folder.
    pub async fn restart(&mut self) -> Result<(), String> {
        self.hub.restart(&self.binary)?;
        self.api = Api::open(self.hub.address).await?;
        Ok(())
    }

    /// A prompt peer, as service `sink`, and a rule that sends it the events of group 0 as they came.
    pub async fn with_sink(mut self) -> Result<Self, String> {
        let at = self.peer(Manner::Prompt).await?;
        self.api.service("sink", at, false).await?;
        self.api.rule("to-sink", &event::kind(0), "sink").await?;
        Ok(self)
    }

    pub async fn peer(&self, manner: Manner) -> Result<SocketAddr, String> {
        self.sink.listen(&self.times, manner).await
    }

    pub fn driver(&self) -> Driver {
        Driver {
            address: self.hub.address,
            times: self.times.clone(),
            arrivals: self.sink.arrivals.clone(),
            next: self.next.clone(),
        }
    }

    /// Waits until so many more events have arrived than before, or nothing arrives any more.
    pub async fn until_arrived(&self, before: Before, events: u64) {
        let arrivals = &self.sink.arrivals;
        let (mut seen, mut quiet_since) = (arrivals.count.get(), self.times.now());
        while arrivals.count.get() - before.arrived < events {
            sleep(Duration::from_millis(5)).await;
            if arrivals.count.get() != seen {
                (seen, quiet_since) = (arrivals.count.get(), self.times.now());
            }
            if self.times.now() - quiet_since > QUIET.as_nanos() as u64 {
                return;
            }
        }
        sleep(SETTLED_WITHIN).await;
    }

    pub fn before(&self) -> Before {
        Before {
            hub: self.hub.cpu(),
            database: self.hub.database_cpu(),
            driver: own_cpu(),
            arrived: self.sink.arrivals.count.get(),
        }
    }

    /// Sends for half a second, so that connections and caches are there.
    pub async fn warm_up(&self, load: Load) -> Result<(), String> {
        let before = self.before();
        let stop = Stop::After(Duration::from_millis(500));
        let sent = self.driver().closed(Load { stop, ..load }).await?;
        if load.pace == Pace::Arrived {
            self.until_arrived(before, sent.events.len() as u64).await;
        }
        Ok(())
    }

    /// A row of what was sent and acknowledged.
    pub fn acknowledged(&self, scene: &'static str, name: String, before: Before, sent: &Sent) -> Row {
        let spread = self.times.between(&self.times.sent, &self.times.acknowledged, &sent.events);
        let count = sent.events.len() as u64;
        self.row(scene, name, before, (count, sent.ended - sent.began), &spread).and(refused(sent))
    }

    /// A row of what was sent and has arrived, when it has.
    pub async fn delivered(&self, scene: &'static str, name: String, before: Before, sent: &Sent) -> Row {
        let count = sent.events.len() as u64;
        self.until_arrived(before, count).await;
        let arrivals = &self.sink.arrivals;
        let arrived = arrivals.count.get() - before.arrived;
        let ended = sent.ended.max(arrivals.last.get());
        let spread = self.times.between(&self.times.acknowledged, &self.times.arrived, &sent.events);
        let row = self.row(scene, name, before, (arrived, ended - sent.began), &spread).and(refused(sent));
        let acknowledged = count as f64 * 1e9 / (sent.ended - sent.began) as f64;
        let row = row.and(Some(format!("acknowledged at {acknowledged:.0}/s")));
        let row = row.and((arrived < count).then(|| format!("{} did not arrive", count - arrived)));
        row.and((arrivals.again.get() > 0).then(|| format!("{} arrived again", arrivals.again.get())))
    }

    /// A row of so many events in so many nanoseconds.
    pub fn row(
        &self,
        scene: &'static str,
        name: String,
        before: Before,
        (events, nanos): (u64, u64),
        spread: &Spread,
    ) -> Row {
        let memory = self.hub.memory();
        let each = |used: Duration| used.as_secs_f64() * 1e6 / events.max(1) as f64;
        let database = self.hub.database_cpu().zip(before.database);
        let database = database.map(|(now, before)| format!("PostgreSQL {:.1} µs", each(now - before)));
        Row {
            scene,
            name,
            events,
            rate: Some(events as f64 * 1e9 / nanos.max(1) as f64),
            cpu_us: Some(each(self.hub.cpu() - before.hub)),
            driver_us: Some(each(own_cpu() - before.driver)),
            p50_ms: spread.percentile(50.0),
            p95_ms: spread.percentile(95.0),
            p99_ms: spread.percentile(99.0),
            rss_mb: Some(memory.now_mb),
            peak_mb: Some(memory.peak_mb),
            notes: database.into_iter().collect(),
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // What it kept may be gigabytes. The hub that still holds it is killed right after.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn refused(sent: &Sent) -> Option<String> {
    (sent.refused > 0).then(|| format!("refused as busy {} times", sent.refused))
}

fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
