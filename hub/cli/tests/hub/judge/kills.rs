//! Killed again and again from outside, with peers that are slow, hang, or do a little of everything: nobody is quarantined for it.

use std::collections::HashSet;
use std::path::Path;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::chance::{self, Chance};
use super::load::{Load, Pressure};
use super::log::Log;
use super::sink::{Mood, Sink};
use super::trial::{Folder, Ground};
use super::{alone, register, times, verdict};
use crate::harness::{Hub, SEAWALL};

/// Kills the hub at moments by chance, under load, as often as the variable `SEAWALL_JUDGE_QUARANTINE_KILLS` says.
fn quarantines_nobody(peer: &str, mood: Mood) {
    let _alone = alone();
    let (seed, kills) = (chance::seed(), times("SEAWALL_JUDGE_QUARANTINE_KILLS", 12));
    let (mut chance, notes, mut ground) = (Chance::new(seed), TempDir::new().unwrap(), Folder::new());
    let (sink, log) = (Sink::start(seed, mood), Log::create(notes.path()));
    let start = |ground: &Folder| Hub::command(Path::new(SEAWALL), &ground.folder()).spawn().unwrap();
    let mut hub = Hub::ready(start(&ground)).unwrap();
    register(&hub, &sink);
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
            sink.be(Mood::Kind);
        }
        hub = Hub::ready(start(&ground)).expect("it starts again");
        load.up(&hub.address);
    }
    load.finish();
    let faults = verdict::of(&log.read(), || sink.seen(), &hub.address, seed);
    quarantined.extend(verdict::quarantined(&hub.address));
    let lost = faults.iter().filter(|fault| matches!(fault, verdict::Fault::Lost { .. })).count();
    // The figures are part of what a long run shows.
    #[expect(clippy::print_stderr, reason = "a soak shows what it has done")]
    let () = eprintln!(
        "a peer that {peer}: seed {seed}, {kills} kills, {} acknowledgements, {} deliveries, {lost} lost, {} wrongly quarantined",
        log.len(),
        sink.count(),
        quarantined.len()
    );
    assert!(faults.is_empty() && quarantined.is_empty(), "seed {seed}: {faults:?}, {quarantined:?}");
}

/// PRM-1. Trap "a delivery in flight to a slow peer is quarantined": not by a kill from outside.
#[test]
fn prm_1_kills_quarantine_nobody_beside_a_slow_peer() {
    quarantines_nobody("answers after 0.6 s", Mood::Slow(600));
}

/// PRM-1. Trap "a delivery in flight to a hanging peer is quarantined": not by a kill from outside.
#[test]
fn prm_1_kills_quarantine_nobody_beside_a_hanging_peer() {
    quarantines_nobody("hangs", Mood::Hanging);
}

/// PRM-1: the same beside a peer that fails, hangs and answers.
#[test]
fn prm_1_kills_quarantine_nobody_beside_a_peer_that_does_a_little_of_everything() {
    quarantines_nobody("fails, hangs and answers", Mood::Mixed);
}
