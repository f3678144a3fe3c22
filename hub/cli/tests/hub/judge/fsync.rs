//! A disk that can't write: `fsync` fails.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::load::{Load, Pressure};
use super::log::Log;
use super::power::{Disk, need};
use super::sink::{PeerBehavior, Sink};
use super::trial::Ground;
use super::{alone, chance, register, verdict};
use crate::harness::{Hub, SEAWALL};
use crate::peer::Peer;

/// What stands between the hub and the disk, and how it is told to fail.
struct Shim {
    folder: TempDir,
}

impl Shim {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let source = folder.path().join("fsync_fails.c");
        fs::write(&source, include_str!("fsync_fails.c")).unwrap();
        let library = folder.path().join("fsync_fails.so");
        need("cc", Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source));
        Shim { folder }
    }

    fn start(&self, folder: &Path) -> Hub {
        let mut command = Hub::command(Path::new(SEAWALL), folder);
        command
            .env("LD_PRELOAD", self.folder.path().join("fsync_fails.so"))
            .env("SEAWALL_FSYNC_FAILS", self.trigger())
            .stderr(Stdio::piped());
        Hub::ready(command.spawn().unwrap()).unwrap()
    }

    fn trigger(&self) -> PathBuf {
        self.folder.path().join("fails")
    }

    /// From now on it fails for files whose path ends so.
    fn fail(&self, suffix: &str) {
        let (made, trigger) = (self.folder.path().join("made"), self.trigger());
        fs::write(&made, suffix).unwrap();
        fs::rename(made, trigger).unwrap();
    }
}

/// Waits until it has ended by itself, and says what its last words were.
fn last_words(process: &mut Child) -> String {
    let began = Instant::now();
    let status = loop {
        match process.try_wait().unwrap() {
            Some(status) => break status,
            None => assert!(began.elapsed() < Duration::from_secs(20), "it does not stop"),
        }
        thread::sleep(Duration::from_millis(5));
    };
    let mut words = String::new();
    process.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert_eq!(status.code(), Some(1), "{words}");
    words
}

/// Under load, `fsync` begins to fail for these files. The hub stops; then the power is cut, so that only what was really
/// synced is there; and all that it had acknowledged must be.
fn stops_and_has_promised_nothing(suffix: &str, bytes_max: u64) {
    let _alone = alone();
    let (seed, notes, shim, mut disk) =
        (chance::seed(), TempDir::new().unwrap(), Shim::new(), Disk::new(256));
    let (sink, log) = (Sink::start(seed, PeerBehavior::Kind), Log::create(notes.path()));
    let mut hub = shim.start(&disk.folder());
    register(&hub, &sink);
    let mut load = Load::start(seed, Pressure { clients: 6, pause: Duration::ZERO, bytes_max }, &log);
    load.up(&hub.address);
    while log.len() < 200 {
        thread::sleep(Duration::from_millis(2));
    }
    shim.fail(suffix);
    let words = last_words(&mut hub.process);
    assert!(words.contains("may not be on the disk"), "{words}");
    load.down();
    sink.next_life();
    disk.cut();
    let hub = Hub::start(&disk.folder());
    load.up(&hub.address);
    load.finish();
    let acks = log.read();
    let faults = verdict::of(&acks, || sink.seen(), &hub.address, seed);
    assert!(faults.is_empty(), "seed {seed}, {} acknowledgements: {faults:?}", acks.len());
}

/// PRM-8. Trap "fsync error retried or ignored": no acknowledgement after it; the process stops and recovers from the log.
#[test]
fn prm_8_an_fsync_error_stops_it_and_nothing_is_acknowledged_after_it() {
    stops_and_has_promised_nothing("", 2_000);
}

/// PRM-8: the same when it is the database that can't be written, while the log is folded back into it. SQLite folds back by
/// itself and does not say when that fails.
#[test]
fn prm_8_an_fsync_error_while_the_log_is_folded_back_stops_it_too() {
    stops_and_has_promised_nothing("seawall.db", 60_000);
}

/// HUB-12: that a hub ends because its disk fails is told once, however often it is started on that disk; when a start goes well, so
/// is that.
#[test]
fn hub_12_a_disk_that_fails_is_told_once_and_its_end_too() {
    let (shim, folder, duty) = (Shim::new(), TempDir::new().unwrap(), Peer::start());
    let mut hub = shim.start(folder.path());
    let hook = json!({"type": "webhook", "url": duty.address});
    hub.must("PUT", "/api/v1/ops/alertChannels/duty", &hook);
    let rule = json!({"freeBytesBelow": 0, "resolveAfter": "0s"});
    hub.must("PATCH", "/api/v1/ops/alertRules/data-loss-risk", &rule);
    shim.fail("");
    hub.try_post("/api/v1/bridge/events", &json!({"id": "a", "type": "a"}));
    last_words(&mut hub.process);
    let told = duty.only().json();
    assert_eq!((&told["type"], &told["incident"]["kind"]), (&json!("alert.opened"), &json!("dataLossRisk")));
    assert!(told["incident"]["summary"].as_str().unwrap().contains("the hub has ended"), "{told}");
    for _ in 0..2 {
        let again = Hub::command(Path::new(SEAWALL), folder.path())
            .env("LD_PRELOAD", shim.folder.path().join("fsync_fails.so"))
            .env("SEAWALL_FSYNC_FAILS", shim.trigger())
            .output()
            .unwrap();
        assert!(!again.status.success());
    }
    assert_eq!(duty.count(), 1, "it is known");
    let hub = Hub::start(folder.path());
    crate::harness::until("its end is told", || duty.count() == 2);
    let over = duty.requests().pop().unwrap().json();
    assert_eq!((&over["type"], &over["incident"]["id"]), (&json!("alert.resolved"), &told["incident"]["id"]));
    crate::harness::until("it is written down", || {
        let path = format!("/api/v1/ops/alerts/{}", told["incident"]["id"].as_str().unwrap());
        hub.get(&path)["state"] == "resolved"
    });
}

/// PRM-8: the same when nothing is delivered, and so nobody but a client writes.
#[test]
fn prm_8_an_fsync_error_stops_it_also_while_nothing_is_delivered() {
    let (shim, folder) = (Shim::new(), TempDir::new().unwrap());
    let mut hub = shim.start(folder.path());
    assert_eq!(hub.post("/api/v1/bridge/events", &json!({"id": "a", "type": "a"})).0, 202);
    shim.fail("");
    let answer = hub.try_post("/api/v1/bridge/events", &json!({"id": "b", "type": "a"}));
    assert!(answer.is_none_or(|(status, _)| status >= 500));
    last_words(&mut hub.process);
    let hub = Hub::start(folder.path());
    assert_eq!(
        hub.post("/api/v1/bridge/events", &json!({"id": "a", "type": "a"})).1["data"]["deduplicated"],
        json!(true)
    );
    assert_eq!(hub.post("/api/v1/bridge/events", &json!({"id": "b", "type": "a"})).0, 202);
}
