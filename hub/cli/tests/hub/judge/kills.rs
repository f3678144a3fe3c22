//! Killed again and again from outside, with peers that are slow, hang, or do a little of everything: nobody is quarantined for it.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::chance::{self, Chance};
use super::load::{Load, Pressure, registrations};
use super::log::Log;
use super::sink::{PeerBehavior, Sink};
use super::trial::{Folder, Ground};
use super::verdict::{self, Fault};
use super::{alone, times};
use crate::harness::{Hub, SEAWALL};

/// What came of it.
struct Report {
    seed: u64,
    kills: u32,
    acknowledged: usize,
    deliveries: usize,
    faults: Vec<Fault>,
    quarantined: HashSet<String>,
}

impl Report {
    fn is_good(&self) -> bool {
        self.faults.is_empty() && self.quarantined.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { seed, kills, acknowledged, deliveries, faults, quarantined } = self;
        let lost = faults.iter().filter(|fault| matches!(fault, Fault::Lost { .. })).count();
        writeln!(
            f,
            "seed {seed}: {kills} kills, {acknowledged} acknowledgements, {deliveries} deliveries, {lost} lost, {} wrongly \
             quarantined; {} faults",
            quarantined.len(),
            faults.len()
        )?;
        faults.iter().take(20).try_for_each(|fault| writeln!(f, "  {fault}"))
    }
}

/// Kills the hub at moments by chance, under load, as often as the variable `SEAWALL_JUDGE_QUARANTINE_KILLS` says.
fn killed_beside(mood: PeerBehavior) -> Report {
    let _alone = alone();
    let (seed, kills) = (chance::seed(), times("SEAWALL_JUDGE_QUARANTINE_KILLS", 12));
    let (mut chance, notes, mut ground) = (Chance::new(seed), TempDir::new().unwrap(), Folder::new());
    let (sink, log) = (Sink::start(seed, mood), Log::create(notes.path()));
    let start = |ground: &Folder| Hub::command(Path::new(SEAWALL), &ground.folder()).spawn().unwrap();
    let mut hub = Hub::ready(start(&ground)).unwrap();
    for (path, mut body) in registrations(sink.address()) {
        if path.ends_with("/services") {
            // Longer than a life: what is in flight at a kill waits for its peer.
            body["policy"]["attempt_timeout"] = json!("20s");
        }
        hub.must("POST", path, &body);
    }
    let pressure = Pressure { clients: 4, pause: Duration::from_millis(40), bytes_max: 3_000 };
    let mut load = Load::start(seed, pressure, &log);
    load.up(&hub.address);
    let mut quarantined: HashSet<String> = HashSet::new();
    for kill in 0..kills {
        if kill % 4 == 3 {
            // Soon after the start it works at all that was in hand.
            thread::sleep(chance.between(Duration::ZERO, Duration::from_millis(100)));
        } else {
            thread::sleep(chance.between(Duration::ZERO, Duration::from_millis(1_200)));
        }
        quarantined.extend(verdict::quarantined(&hub.address));
        ground.crash(&mut hub.process);
        load.down();
        sink.next_life();
        if kill + 1 == kills {
            // What hangs would hang for as long as an attempt may take.
            sink.be(PeerBehavior::Kind);
        }
        hub = Hub::ready(start(&ground)).expect("it starts again");
        load.up(&hub.address);
    }
    load.finish();
    let faults = verdict::of(&log.read(), || sink.seen(), &hub.address, seed);
    quarantined.extend(verdict::quarantined(&hub.address));
    let (acknowledged, deliveries) = (log.len(), sink.count());
    Report { seed, kills, acknowledged, deliveries, faults, quarantined }
}

/// PRM-1. Trap "a delivery in flight to a slow peer is quarantined": not by a kill from outside.
#[test]
fn prm_1_kills_quarantine_nobody_beside_a_slow_peer() {
    let report = killed_beside(PeerBehavior::Slow(600));
    eprintln!("a peer that answers after 0.6 s: {report}");
    assert!(report.is_good(), "{report}");
}

/// PRM-1. Trap "a delivery in flight to a hanging peer is quarantined": not by a kill from outside.
#[test]
fn prm_1_kills_quarantine_nobody_beside_a_hanging_peer() {
    let report = killed_beside(PeerBehavior::Hanging);
    eprintln!("a peer that hangs: {report}");
    assert!(report.is_good(), "{report}");
}

/// PRM-1: the same beside a peer that fails, hangs and answers.
#[test]
fn prm_1_kills_quarantine_nobody_beside_a_peer_that_does_a_little_of_everything() {
    let report = killed_beside(PeerBehavior::Mixed);
    eprintln!("a peer that fails, hangs and answers: {report}");
    assert!(report.is_good(), "{report}");
}
