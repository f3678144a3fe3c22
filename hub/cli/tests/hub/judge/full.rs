//! A disk that is full, and later is not.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::load::{Load, Pressure};
use super::log::Log;
use super::power::{Disk, Mounted, need};
use super::sink::{Arrival, PeerBehavior, Sink};
use super::{alone, chance, register, verdict};
use crate::harness::{Client, Hub, SEAWALL, until};
use crate::peer::Peer;

/// What takes all the room there is, and gives it back.
trait Thief {
    fn start(&self, data: &Path) -> Hub {
        Hub::start(data)
    }

    /// Whatever there is, and whatever has become free since.
    fn take(&self);

    fn give_back(&self);
}

/// A file that does.
struct Ballast(PathBuf);

impl Thief for Ballast {
    /// Down to the last block.
    fn take(&self) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0).unwrap();
        for size in [1 << 20, 1 << 16, 1 << 12, 1 << 9, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        let _ = file.sync_all();
    }

    fn give_back(&self) {
        fs::remove_file(&self.0).unwrap();
    }
}

/// A quota that is used up: it stands between the hub and the disk.
struct Quota {
    folder: TempDir,
    of: PathBuf,
}

impl Quota {
    fn new(of: &Path) -> Self {
        let folder = TempDir::new().unwrap();
        let (source, library) = (folder.path().join("quota.c"), folder.path().join("quota.so"));
        fs::write(&source, include_str!("quota.c")).unwrap();
        need("cc", Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source));
        Quota { folder, of: of.canonicalize().unwrap() }
    }

    fn trigger(&self) -> PathBuf {
        self.folder.path().join("used-up")
    }
}

impl Quota {
    fn command(&self, data: &Path) -> Command {
        let mut command = Hub::command(Path::new(SEAWALL), data);
        command.env("LD_PRELOAD", self.folder.path().join("quota.so")).env("SEAWALL_QUOTA", self.trigger());
        command
    }
}

impl Thief for Quota {
    fn start(&self, data: &Path) -> Hub {
        Hub::ready(self.command(data).spawn().unwrap()).unwrap()
    }

    fn take(&self) {
        let made = self.folder.path().join("made");
        fs::write(&made, self.of.to_str().unwrap()).unwrap();
        fs::rename(made, self.trigger()).unwrap();
    }

    fn give_back(&self) {
        fs::remove_file(self.trigger()).unwrap();
    }
}

struct Case {
    /// The number of events that are acknowledged before the disk is full.
    before: usize,
    pressure: Pressure,
}

/// Says how many outcomes of deliveries had to wait for room.
fn survives(case: &Case, root: &Path, thief: &dyn Thief) -> usize {
    let (seed, notes) = (chance::seed(), TempDir::new().unwrap());
    let (sink, log) = (Sink::start(seed, PeerBehavior::Kind), Log::create(notes.path()));
    let data = root.join("data");
    let mut hub = thief.start(&data);
    let hub_address = hub.address.clone();
    register(&hub, &sink);
    let mut load = Load::start(seed, case.pressure, &log);
    load.up(&hub.address);
    until("it takes events", || log.len() >= case.before);

    // Deliveries are under way when the disk fills up, and end while it is full: what came of them can't be written.
    sink.be(PeerBehavior::Silent);
    thief.take();
    until("it says that there is no room", || load.answers().values().sum::<u64>() > 0);
    thief.take();
    sink.be(PeerBehavior::Kind);
    let unwritten = || {
        let settled = sink.seen().into_iter().filter(|(_, all)| all.iter().any(Arrival::settled));
        settled.filter(|(delivery, _)| !verdict::has_ended(&hub_address, delivery)).count()
    };
    let mut waited = 0;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        thief.take();
        waited = waited.max(unwritten());
        // On a connection of its own: to look at all deliveries may take longer than an idle one is kept.
        let mut client = Client::connect(&hub.address).unwrap();
        assert_eq!(client.ask("GET", "/actuator/health", "").unwrap().0, 200);
        thread::sleep(Duration::from_millis(50));
    }
    let (acked, refused) = (log.len(), load.answers().values().sum::<u64>());
    assert!(refused >= 10, "{refused} were refused");
    assert!(hub.process.try_wait().unwrap().is_none(), "it has ended");
    assert_eq!(verdict::lost(&log.since(acked.saturating_sub(100)), &hub.address), []);

    // Room again, and it goes on by itself.
    thief.give_back();
    until("it takes events again", || log.len() >= acked + 20);
    load.finish();
    let faults = verdict::of(&log.read(), || sink.seen(), &hub.address, seed);
    let answers = load.answers();
    assert!(faults.is_empty(), "seed {seed}, {answers:?}: {faults:?}");
    assert!(answers.keys().all(|(status, code)| (*status, code.as_str()) == (507, "full")), "{answers:?}");

    // What is on the disk is whole.
    drop(hub);
    let database = rusqlite::Connection::open(data.join("seawall.db")).unwrap();
    let sound: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    drop(database);
    let hub = Hub::start(&data);
    assert_eq!(verdict::lost(&log.since(0), &hub.address), []);
    waited
}

/// Until the outcome of a delivery had to wait for room, too: a last block may be found for it, and all of them fit in one.
fn survives_also_with_outcomes(case: &Case, megabytes: u64) {
    let waited = (0..5).any(|_| {
        let disk = Disk::new(megabytes);
        survives(case, &disk.root(), &Ballast(disk.root().join("ballast"))) > 0
    });
    assert!(waited, "there was always room for the outcome of a delivery");
}

/// PRM-8: a start without room says so and ends; what was acknowledged is there when there is room.
#[test]
fn prm_8_a_start_on_a_full_disk_says_so_and_loses_nothing() {
    let disk = Disk::new(16);
    let data = disk.root().join("data");
    let hub = Hub::start(&data);
    assert_eq!(hub.post("/api/v1/bridge/events", &json!({"id": "a", "type": "a"})).0, 202);
    drop(hub);
    let ballast = Ballast(disk.root().join("ballast"));
    ballast.take();
    let output = Hub::command(Path::new(SEAWALL), &data).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("disk is full"), "{said}");
    ballast.give_back();
    let hub = Hub::start(&data);
    let (_, again) = hub.post("/api/v1/bridge/events", &json!({"id": "a", "type": "a"}));
    assert_eq!(again["data"]["deduplicated"], json!(true));
}

/// HUB-12: that there is no room is told although nothing can be written, once, and so is that there is again.
#[test]
fn hub_12_a_full_disk_is_told_although_nothing_can_be_written() {
    let (folder, duty) = (TempDir::new().unwrap(), Peer::start());
    let mounted = Mounted::in_memory(&folder.path().join("mount"), 32);
    let hub = Hub::start(&mounted.at.join("data"));
    // Only what is really full counts here: there is never much room.
    let rule = json!({"freeBytesBelow": 0, "resolveAfter": "1s"});
    hub.must("PATCH", "/api/v1/ops/alertRules/data-loss-risk", &rule);
    // A full disk is in the log as well, and only the one rule is looked at here.
    hub.must("PATCH", "/api/v1/ops/alertRules/errors", &json!({"enabled": false}));
    let open = || hub.get("/api/v1/ops/alerts?state=open")["alerts"].as_array().unwrap().len();
    until("nothing is wrong", || open() == 0);
    let hook = json!({"type": "webhook", "url": duty.address});
    hub.must("PUT", "/api/v1/ops/alertChannels/duty", &hook);
    let ballast = Ballast(mounted.at.join("ballast"));
    ballast.take();
    let mut sent = 0;
    until("it says that there is no room", || {
        sent += 1;
        let event = json!({"id": format!("a-{sent}"), "type": "a", "data": "x".repeat(100_000)});
        hub.post("/api/v1/bridge/events", &event).0 == 507
    });
    until("somebody is told", || duty.count() > 0);
    let told = duty.requests()[0].json();
    assert_eq!((&told["type"], &told["incident"]["kind"]), (&json!("alert.opened"), &json!("dataLossRisk")));
    assert!(told["incident"]["summary"].as_str().unwrap().contains("the disk is full"), "{told}");
    ballast.give_back();
    until("its end is told", || duty.count() == 2);
    let over = duty.requests().pop().unwrap().json();
    assert_eq!((&over["type"], &over["incident"]["id"]), (&json!("alert.resolved"), &told["incident"]["id"]));
    until("it is written down", || {
        let over = hub.get("/api/v1/ops/alerts?state=resolved")["alerts"].as_array().unwrap().clone();
        over.iter().any(|incident| incident["id"] == told["incident"]["id"])
    });
}

fn small(bytes_max: u64) -> Pressure {
    Pressure { clients: 6, pause: Duration::from_millis(2), bytes_max }
}

/// PRM-8. Trap "full disk": 507, nothing half written, and it goes on by itself when there is room: the log can't grow.
#[test]
fn prm_8_a_full_disk_is_survived_when_the_log_cannot_grow() {
    let _alone = alone();
    survives_also_with_outcomes(&Case { before: 100, pressure: small(3_000) }, 48);
}

/// PRM-8: the same in the middle of folding the log back: the log has room of its own, and the database can't grow.
#[test]
fn prm_8_a_full_disk_is_survived_when_the_database_cannot_grow() {
    let _alone = alone();
    survives_also_with_outcomes(&Case { before: 500, pressure: small(60_000) }, 128);
}

/// PRM-8: the same in memory, where a page that is missing under a mapped file would kill the process.
#[test]
fn prm_8_a_full_disk_in_memory_is_survived() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let mounted = Mounted::in_memory(&folder.path().join("mount"), 32);
    let ballast = Ballast(mounted.at.join("ballast"));
    survives(&Case { before: 100, pressure: small(20_000) }, &mounted.at, &ballast);
}

/// PRM-8: a quota that is used up is no failing disk, though SQLite takes it for one: the log can't grow, or the database can't.
#[test]
fn prm_8_a_quota_that_is_used_up_is_survived() {
    let _alone = alone();
    for (before, bytes_max) in [(100, 3_000), (700, 60_000)] {
        let folder = TempDir::new().unwrap();
        survives(&Case { before, pressure: small(bytes_max) }, folder.path(), &Quota::new(folder.path()));
    }
}

/// PRM-8. Trap "a write without room is taken for a lost one": a quota that refuses one write and has room again before anybody can
/// look ends nothing, wherever it strikes. The event is refused or accepted, and the next one is accepted.
#[test]
fn prm_8_a_quota_that_refuses_one_write_ends_nothing() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let (quota, data) = (Quota::new(folder.path()), folder.path().join("data"));
    let mut hub = Hub::ready(quota.command(&data).env("SEAWALL_QUOTA_ONCE", "1").spawn().unwrap()).unwrap();
    let mut refused = 0;
    for number in 0..60 {
        quota.take();
        // Enough that the log grows, and is folded back in between.
        let event = json!({"id": format!("e-{number}"), "type": "a", "data": "x".repeat(400_000)});
        let (status, answer) = hub.post("/api/v1/bridge/events", &event);
        assert!([202, 500, 507].contains(&status), "{answer}");
        refused += u32::from(status != 202);
        assert!(hub.process.try_wait().unwrap().is_none(), "it has ended");
        let (status, answer) = hub.post("/api/v1/bridge/events", &event);
        assert_eq!(status, 202, "{answer}");
    }
    assert!(refused > 0, "no write was refused");
}
