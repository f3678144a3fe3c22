//! The judges of what the hub promises: nothing that it has acknowledged is lost, and nothing is sent twice for nothing.
//!
//! They know the hub from outside only: clients that log each acknowledgement to the disk before it counts, and a sink
//! that writes down each delivery. See `docs/judges.md`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::panic, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::disallowed_methods, reason = "it looks at another process, and waits for it")]

mod chance;
mod database;
mod fsync;
mod full;
mod judged;
mod kills;
mod load;
mod log;
mod poison;
mod power;
mod replay;
mod rotate;
mod sink;
mod start;
mod trial;
mod verdict;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use self::load::{Load, Pressure, registrations};
use self::log::Log;
use self::power::Disk;
use self::sink::{PeerBehavior, Sink};
use self::trial::{Asked, Folder, Ground, Plan};
use crate::harness::Hub;

/// Two judges at once would measure each other.
fn alone() -> MutexGuard<'static, ()> {
    static COURT: Mutex<()> = Mutex::new(());
    COURT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often, unless the variable says otherwise.
fn times(variable: &str, usual: u32) -> u32 {
    std::env::var(variable).ok().map_or(usual, |text| text.parse().expect("it is a number"))
}

/// PRM-1, PRM-2: killed with -9 at 50 moments under load: what was acknowledged ends delivered or as a dead letter, nothing
/// has two names, and what was in flight is sent again within 5 s.
#[test]
fn prm_1_nothing_is_lost_when_it_is_killed_50_times() {
    let _alone = alone();
    let plan = Plan::new(chance::seed(), times("SEAWALL_JUDGE_KILLS", 50));
    let report = trial::run(&plan, &mut Folder::new());
    eprintln!("kill -9: {report}");
    assert!(report.faults.is_empty(), "{report}");
}

/// PRM-1, PRM-2: asked to stop under load, again and again, it stops, and it is the same. And since that is no crash, what the
/// sink has taken is not sent again.
#[test]
fn prm_1_nothing_is_lost_when_it_is_asked_to_stop() {
    let _alone = alone();
    let plan = Plan::new(chance::seed(), times("SEAWALL_JUDGE_STOPS", 6));
    let report = trial::run(&plan, &mut Asked(Folder::new()));
    eprintln!("asked to stop: {report}");
    assert!(report.faults.is_empty() && report.repeated == 0, "{report}");
}

/// PRM-1, PRM-2. Trap "acknowledged and lost at power loss": the same, with the power cut 20 times.
#[test]
fn prm_1_nothing_is_lost_when_the_power_is_cut_20_times() {
    let _alone = alone();
    let plan = Plan::new(chance::seed(), times("SEAWALL_JUDGE_CUTS", 20));
    let report = trial::run(&plan, &mut Disk::new(256));
    eprintln!("power cut: {report}");
    assert!(report.faults.is_empty(), "{report}");
}

/// PRM-2: without a crash a delivery arrives once, however many come at once.
#[test]
fn prm_2_without_a_crash_each_delivery_arrives_once() {
    let _alone = alone();
    let (seed, notes, ground) = (chance::seed(), TempDir::new().unwrap(), Folder::new());
    let (sink, log) = (Sink::start(seed, PeerBehavior::Kind), Log::create(notes.path()));
    let hub = Hub::start(&ground.folder());
    register(&hub, &sink);
    let pressure = Pressure { clients: 16, pause: Duration::ZERO, bytes_max: 2_000 };
    let mut load = Load::start(seed, pressure, &log);
    load.up(&hub.address);
    while log.len() < 3_000 {
        std::thread::sleep(Duration::from_millis(10));
    }
    load.finish();
    let faults = verdict::of(&log.read(), || sink.seen(), &hub.address, seed);
    assert!(faults.is_empty() && load.answers().is_empty(), "seed {seed}: {faults:?}, {:?}", load.answers());
    let often: Vec<_> = sink.seen().into_iter().filter(|(_, arrivals)| arrivals.len() != 1).collect();
    assert!(often.is_empty(), "seed {seed}: {} came more than once: {:?}", often.len(), often[0]);
}

fn register(hub: &Hub, sink: &Sink) {
    for (path, body) in registrations(sink.address()) {
        let (status, answer) = hub.post(path, &body);
        assert_eq!(status, 201, "{answer}");
    }
}
