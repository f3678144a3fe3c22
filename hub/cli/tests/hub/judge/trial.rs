//! A hub under load that crashes again and again, and is judged.

use std::collections::HashSet;
use std::fmt;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::chance::Chance;
use super::load::{Load, Pressure};
use super::log::Log;
use super::sink::{Arrival, PeerBehavior, Sink};
use super::verdict::{self, Fault};
use crate::harness::{Hub, SEAWALL};

/// What was in flight at a crash is sent again so soon after the hub is ready.
const AGAIN_WITHIN: Duration = Duration::from_secs(5);
/// The number of recent acknowledgements that are looked up right after each crash, so that a loss is found early.
const LOOKED_UP: usize = 40;

/// Where the hub keeps its data, and how it crashes there.
pub(crate) trait Ground {
    fn folder(&self) -> PathBuf;
    /// Ends the process without asking it; afterwards the folder holds what is left.
    fn crash(&mut self, process: &mut Child);
}

/// A folder of the usual file system. A process that is killed loses what it has not handed to the system.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(TempDir::new().unwrap())
    }
}

impl Ground for Folder {
    fn folder(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn crash(&mut self, process: &mut Child) {
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

/// A folder whose hub is asked to stop, and not killed.
pub(crate) struct Asked(pub(crate) Folder);

impl Ground for Asked {
    fn folder(&self) -> PathBuf {
        self.0.folder()
    }

    fn crash(&mut self, process: &mut Child) {
        let asked = Command::new("kill").arg(process.id().to_string()).status().unwrap();
        assert!(asked.success(), "the hub can't be asked");
        let began = Instant::now();
        while process.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < Duration::from_secs(20), "it was asked to stop, and does not");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What is tried.
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) crashes: u32,
    pub(crate) binary: PathBuf,
    /// Variables of the hub.
    pub(crate) variables: Vec<(&'static str, String)>,
    pub(crate) pressure: Pressure,
    /// A judge who is judged needs one fault, and not all of them.
    pub(crate) until_first_fault: bool,
}

impl Plan {
    pub(crate) fn new(seed: u64, crashes: u32) -> Self {
        Plan {
            seed,
            crashes,
            binary: PathBuf::from(SEAWALL),
            variables: Vec::new(),
            pressure: Pressure { clients: 6, pause: Duration::from_millis(15), bytes_max: 6_000 },
            until_first_fault: false,
        }
    }
}

/// When it crashes.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So soon after the process was started: mostly before it listens.
    Starting(Duration),
    /// This long after it was ready.
    Working(Duration),
    /// As soon as the log is being folded back into the database.
    Checkpoint,
    /// When all that was in flight at the crash before has been sent again.
    SentAgain,
}

impl Moment {
    fn choose(chance: &mut Chance) -> Self {
        let millis = Duration::from_millis;
        match chance.below(100) {
            0..18 => Moment::Starting(chance.between(millis(0), millis(60))),
            18..45 => Moment::Working(chance.between(millis(0), millis(150))),
            45..70 => Moment::Working(chance.between(millis(150), millis(1_200))),
            70..82 => Moment::Checkpoint,
            _ => Moment::SentAgain,
        }
    }
}

/// What came of it.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) faults: Vec<Fault>,
    seed: u64,
    crashes: u32,
    /// At the start, at a checkpoint.
    aimed: [u32; 2],
    acks: usize,
    deliveries: usize,
    arrivals: usize,
    /// Taken by the sink more than once.
    pub(crate) repeated: usize,
    /// From ready until sent again, at the most: of what the sink had not failed before, and of all.
    again: [Duration; 2],
    owed: usize,
    /// Given up as poison, although nobody was.
    quarantined: usize,
    took: Duration,
}

pub(crate) fn run(plan: &Plan, ground: &mut impl Ground) -> Report {
    let mut trial = Trial::new(plan, ground);
    for _ in 0..plan.crashes {
        trial.crash_once();
        if plan.until_first_fault && !trial.report.faults.is_empty() {
            return trial.report();
        }
    }
    trial.end();
    trial.report()
}

struct Trial<'t, G> {
    plan: &'t Plan,
    ground: &'t mut G,
    chance: Chance,
    // Before the hub, so that it is dropped first.
    load: Load,
    hub: Hub,
    log: Log,
    _notes: TempDir,
    sink: Sink,
    life: u32,
    ready: Instant,
    /// Promised or begun before the last crash, and without the sink's last word.
    owed: HashSet<String>,
    report: Report,
    began: Instant,
}

impl<'t, G: Ground> Trial<'t, G> {
    fn new(plan: &'t Plan, ground: &'t mut G) -> Self {
        let notes = TempDir::new().unwrap();
        let (sink, log) = (Sink::start(plan.seed, PeerBehavior::Moody), Log::create(notes.path()));
        let load = Load::start(plan.seed, plan.pressure, &log);
        let hub = Hub::ready(start(plan, ground)).expect("it starts");
        super::register(&hub, &sink);
        load.up(&hub.address);
        let now = Instant::now();
        Trial {
            plan,
            ground,
            chance: Chance::new(plan.seed),
            load,
            hub,
            log,
            _notes: notes,
            sink,
            life: 0,
            ready: now,
            owed: HashSet::new(),
            report: Report { seed: plan.seed, ..Report::default() },
            began: now,
        }
    }

    fn crash_once(&mut self) {
        let moment = Moment::choose(&mut self.chance);
        self.await_moment(moment);
        if let Some(status) = self.hub.process.try_wait().unwrap() {
            self.report.faults.push(Fault::Strange(format!("the hub has ended by itself: {status}")));
        }
        self.ground.crash(&mut self.hub.process);
        self.after_crash();
        if let Moment::Starting(time) = moment {
            let mut process = start(self.plan, self.ground);
            thread::sleep(time);
            self.ground.crash(&mut process);
            self.after_crash();
            self.report.aimed[0] += 1;
        }
        let acked = self.log.len();
        match Hub::ready(start(self.plan, self.ground)) {
            Some(hub) => self.hub = hub,
            None => {
                self.report.faults.push(Fault::Strange("the hub does not start any more".into()));
                return;
            }
        }
        self.ready = Instant::now();
        self.load.up(&self.hub.address);
        let last = self.log.since(acked.saturating_sub(LOOKED_UP));
        self.report.faults.extend(verdict::lost(&last[..last.len().min(LOOKED_UP)], &self.hub.address));
    }

    fn await_moment(&mut self, moment: Moment) {
        match moment {
            Moment::Starting(_) => {}
            Moment::Working(time) => thread::sleep(time),
            Moment::Checkpoint => {
                let database = self.ground.folder().join("seawall.db");
                if !database.exists() {
                    // The data is elsewhere, and so is its log.
                    return thread::sleep(Duration::from_millis(300));
                }
                let written =
                    || std::fs::metadata(&database).and_then(|about| Metadata::modified(&about)).ok();
                let (before, began) = (written(), Instant::now());
                while written() == before && began.elapsed() < Duration::from_secs(3) {
                    thread::sleep(Duration::from_micros(200));
                }
                self.report.aimed[1] += u32::from(written() != before);
            }
            Moment::SentAgain => self.await_sent_again(),
        }
    }

    fn await_sent_again(&mut self) {
        let missing = || self.sink.missing(&self.owed, self.life);
        while missing() > 0 && self.ready.elapsed() < AGAIN_WITHIN {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The hub is dead: what did it send in its life, and what does it owe?
    fn after_crash(&mut self) {
        let lived = self.ready.elapsed();
        self.load.down();
        self.note_sent_again(lived);
        self.life = self.sink.next_life();
        self.report.crashes += 1;
        let seen = self.sink.seen();
        let acks = self.log.since(0);
        let promised = acks.iter().flat_map(|ack| &ack.deliveries).chain(seen.keys());
        let settled =
            |delivery: &String| seen.get(delivery).is_some_and(|all| all.iter().any(Arrival::settled));
        self.owed = promised.filter(|delivery| !settled(delivery)).cloned().collect();
        self.report.owed += self.owed.len();
        // Until it is ready again nothing is late.
        self.ready = Instant::now();
    }

    fn note_sent_again(&mut self, lived: Duration) {
        let seen = self.sink.seen();
        for delivery in &self.owed {
            let all = seen.get(delivery).map_or(&[][..], Vec::as_slice);
            let Some(first) = all.iter().find(|one| one.life == self.life) else {
                if lived >= AGAIN_WITHIN {
                    let late = format!("{delivery} was not sent within {lived:?} of the start");
                    self.report.faults.push(Fault::Late(late));
                }
                continue;
            };
            let took = first.at.saturating_duration_since(self.ready);
            let failed = all.iter().any(|one| one.life < self.life && one.failed);
            let [untouched, any] = &mut self.report.again;
            *any = took.max(*any);
            if !failed {
                *untouched = took.max(*untouched);
            }
            if took > AGAIN_WITHIN {
                self.report.faults.push(Fault::Late(format!("{delivery} was sent {took:?} after the start")));
            }
        }
    }

    /// The last life is a whole one: everything ends.
    fn end(&mut self) {
        self.await_sent_again();
        self.note_sent_again(self.ready.elapsed());
        self.sink.be(PeerBehavior::Kind);
        self.load.finish();
        let faults = verdict::of(&self.log.read(), || self.sink.seen(), &self.hub.address, self.plan.seed);
        self.report.faults.extend(faults);
        for ((status, code), count) in self.load.answers() {
            self.report.faults.push(Fault::Strange(format!("{count} times {status} {code}")));
        }
    }

    fn report(mut self) -> Report {
        let seen = self.sink.seen();
        let taken = |all: &&Vec<Arrival>| all.iter().filter(|one| one.settled()).count() > 1;
        self.report.repeated = seen.values().filter(taken).count();
        self.report.arrivals = seen.values().map(Vec::len).sum();
        self.report.deliveries = seen.len();
        self.report.acks = self.log.len();
        self.report.quarantined = verdict::quarantined(&self.hub.address).len();
        self.report.took = self.began.elapsed();
        std::mem::take(&mut self.report)
    }
}

fn start(plan: &Plan, ground: &impl Ground) -> Child {
    let mut command = Hub::command(Path::new(&plan.binary), &ground.folder());
    command.envs(plan.variables.iter().map(|(name, value)| (name, value))).spawn().unwrap()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            faults,
            seed,
            crashes,
            aimed: [starting, checkpoint],
            acks,
            deliveries,
            arrivals,
            repeated,
            again,
            owed,
            quarantined,
            took,
        } = self;
        writeln!(
            f,
            "seed {seed}: {crashes} crashes in {took:.1?} ({starting} at the start, {checkpoint} at a checkpoint); {acks} \
             acknowledgements, {deliveries} deliveries, {arrivals} arrivals, {repeated} taken more than once; {owed} in flight at \
             crashes, sent again after {:.2?} at the most, {:.2?} with back-off; {quarantined} wrongly quarantined; {} faults",
            again[0],
            again[1],
            faults.len()
        )?;
        faults.iter().take(20).try_for_each(|fault| writeln!(f, "  {fault}"))
    }
}
