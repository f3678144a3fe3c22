//! PostgreSQL under the hub: the hub is killed, the server is killed, stopped, paused, runs out of room, and is replaced by its standby.

use std::fmt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use seawall_testkit::servers::{Postgres, Replication};
use tempfile::TempDir;

use super::chance::{self, Chance};
use super::load::{Load, Pressure};
use super::log::Log;
use super::sink::{Arrival, PeerBehavior, Sink};
use super::trial::{self, Asked, Folder, Ground, Plan};
use super::verdict::{self, Fault};
use super::{alone, register, times};
use crate::harness::{Hub, SEAWALL, within};

/// The variable that says where the data of a hub is.
const DATABASE: &str = "SEAWALL_DATABASE";

/// Events are taken again so soon after the server is ready.
const AGAIN_WITHIN: Duration = Duration::from_secs(2);

fn plan(crashes: u32, url: &str) -> Plan {
    let mut plan = Plan::new(chance::seed(), crashes);
    plan.variables = vec![(DATABASE, url.to_owned())];
    plan
}

/// HUB-15, PRM-1, PRM-2: a hub on PostgreSQL that is killed under load loses nothing, and what was in flight is sent again in time.
#[test]
fn hub_15_nothing_is_lost_when_a_hub_on_postgres_is_killed() {
    let _alone = alone();
    let (server, crashes) = (Postgres::start().unwrap(), times("SEAWALL_JUDGE_DATABASE_KILLS", 8));
    let database = server.database().unwrap();
    let report = trial::run(&plan(crashes, database.url()), &mut Folder::new());
    eprintln!("kill -9 of a hub on PostgreSQL: {report}");
    assert!(report.faults.is_empty(), "{report}");
}

/// HUB-15, PRM-1, PRM-2: the same when it is asked to stop; and then nothing is sent again.
#[test]
fn hub_15_nothing_is_repeated_when_a_hub_on_postgres_is_asked_to_stop() {
    let _alone = alone();
    let (server, stops) = (Postgres::start().unwrap(), times("SEAWALL_JUDGE_DATABASE_STOPS", 3));
    let database = server.database().unwrap();
    let report = trial::run(&plan(stops, database.url()), &mut Asked(Folder::new()));
    eprintln!("a hub on PostgreSQL, asked to stop: {report}");
    assert!(report.faults.is_empty() && report.repeated == 0, "{report}");
}

/// A hub under load on a server that something happens to.
struct Scene {
    seed: u64,
    chance: Chance,
    // Before the hub, so that it is dropped first.
    load: Load,
    hub: Hub,
    log: Log,
    sink: Sink,
    _notes: TempDir,
    _ground: Folder,
    outages: u32,
    /// From the server being ready until an event was taken, at the most.
    again: Duration,
}

/// What came of it.
struct Report {
    seed: u64,
    outages: u32,
    again: Duration,
    acknowledged: usize,
    repeated: usize,
    faults: Vec<Fault>,
}

impl Scene {
    fn new(url: &str) -> Self {
        let (seed, notes, ground) = (chance::seed(), TempDir::new().unwrap(), Folder::new());
        let (sink, log) = (Sink::start(seed, PeerBehavior::Moody), Log::create(notes.path()));
        let pressure = Pressure { clients: 6, pause: Duration::from_millis(15), bytes_max: 6_000 };
        let load = Load::start(seed, pressure, &log);
        let mut command = Hub::command(Path::new(SEAWALL), &ground.folder());
        let hub = Hub::ready(command.env(DATABASE, url).spawn().unwrap()).expect("it starts");
        register(&hub, &sink);
        load.up(&hub.address);
        let (chance, again) = (Chance::new(seed), Duration::ZERO);
        Scene { seed, chance, load, hub, log, sink, _notes: notes, _ground: ground, outages: 0, again }
    }

    fn wait_up_to(&mut self, most: Duration) {
        thread::sleep(self.chance.between(Duration::ZERO, most));
    }

    /// The server is there again: events have to be taken soon.
    fn server_is_back(&mut self) {
        let (began, before) = (Instant::now(), self.log.len());
        within(Duration::from_secs(20), "it takes events again", || self.log.len() > before);
        self.again = self.again.max(began.elapsed());
        self.outages += 1;
        assert!(self.hub.process.try_wait().unwrap().is_none(), "the hub has ended");
    }

    fn end(mut self) -> Report {
        self.sink.be(PeerBehavior::Kind);
        self.load.finish();
        let mut faults = verdict::of(&self.log.read(), || self.sink.seen(), &self.hub.address, self.seed);
        for ((status, code), count) in self.load.answers() {
            if !matches!((status, code.as_str()), (503, "store" | "busy") | (507, "full")) {
                faults.push(Fault::Strange(format!("{count} times {status} {code}")));
            }
        }
        let taken = |all: &Vec<Arrival>| all.iter().filter(|one| one.settled()).count() > 1;
        let repeated = self.sink.seen().values().filter(|all| taken(all)).count();
        let (seed, outages, again) = (self.seed, self.outages, self.again);
        Report { seed, outages, again, acknowledged: self.log.len(), repeated, faults }
    }
}

impl Report {
    fn is_good(&self) -> bool {
        self.faults.is_empty() && self.again < AGAIN_WITHIN
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { seed, outages, again, acknowledged, repeated, faults } = self;
        writeln!(
            f,
            "seed {seed}: {outages} outages, {acknowledged} acknowledgements, {repeated} taken more than once; events taken again after \
             {again:.2?} at the most; {} faults",
            faults.len()
        )?;
        faults.iter().take(20).try_for_each(|fault| writeln!(f, "  {fault}"))
    }
}

/// HUB-15, PRM-1, PRM-2: PostgreSQL is killed, stopped and paused under load, again and again: nothing is lost, nothing is repeated, the
/// hub never ends, and takes events again within two seconds.
#[test]
fn hub_15_nothing_is_lost_or_repeated_when_postgres_is_killed() {
    let _alone = alone();
    let server = Postgres::start().unwrap();
    let mut scene = Scene::new(server.database().unwrap().url());
    for outage in 0..times("SEAWALL_JUDGE_DATABASE_OUTAGES", 6) {
        scene.wait_up_to(Duration::from_millis(1_500));
        match outage % 3 {
            0 => server.control().kill().unwrap(),
            1 => server.control().stop().unwrap(),
            _ => server.control().pause().unwrap(),
        }
        scene.wait_up_to(Duration::from_millis(2_500));
        if outage % 3 == 2 {
            server.control().resume().unwrap();
        } else {
            server.control().start().unwrap();
        }
        scene.server_is_back();
    }
    let report = scene.end();
    eprintln!("PostgreSQL is away: {report}");
    assert!(report.is_good(), "{report}");
}

/// HUB-15, PRM-1: the server is killed under load and its synchronous standby is promoted: nothing is lost, and no name stands for
/// two things.
#[test]
fn hub_15_nothing_is_lost_when_the_synchronous_standby_takes_over() {
    let _alone = alone();
    for _ in 0..times("SEAWALL_JUDGE_DATABASE_FAILOVERS", 1) {
        let primary = Postgres::start().unwrap();
        let database = primary.database().unwrap();
        let standby = primary.standby(Replication::Synchronous).unwrap();
        let mut scene = Scene::new(&database.url_with_standby(standby.address()));
        thread::sleep(Duration::from_secs(2));
        scene.wait_up_to(Duration::from_millis(1_000));
        primary.control().kill().unwrap();
        standby.promote().unwrap();
        scene.server_is_back();
        thread::sleep(Duration::from_secs(1));
        let report = scene.end();
        eprintln!("the standby takes over: {report}");
        assert!(report.faults.is_empty(), "{report}");
    }
}

/// HUB-15, PRM-8: the disk of the server fills up under load: the hub refuses events and goes on, and so does all when there is room.
#[test]
fn hub_15_a_full_disk_of_postgres_is_survived() {
    let _alone = alone();
    let server = Postgres::builder().small_disk(220).setting("max_wal_size=64MB").start().unwrap();
    let mut scene = Scene::new(server.database().unwrap().url());
    let log = scene.log.clone();
    within(Duration::from_secs(20), "it takes events", || log.len() > 100);
    server.fill_disk().unwrap();
    let refused = || scene.load.answers().values().sum::<u64>();
    within(Duration::from_secs(60), "it refuses events", || {
        server.fill_disk().unwrap();
        refused() >= 10
    });
    thread::sleep(Duration::from_secs(2));
    server.free_disk().unwrap();
    // Without room for its log the server ends, and somebody has to start it.
    server.control().kill().unwrap();
    server.control().start().unwrap();
    scene.server_is_back();
    let report = scene.end();
    eprintln!("the disk of PostgreSQL is full: {report}");
    assert!(report.faults.is_empty(), "{report}");
}
