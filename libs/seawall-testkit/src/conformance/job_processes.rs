//! Scheduled jobs across processes that are killed: what every shared store of jobs has to hold.
//!
//! Each worker runs one job per missed-run policy. A run writes a line into a file that all workers append to, so that the
//! file, and not the store, is the proof of how often a tick was run.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use seawall_dist::Millis;
use seawall_dist::schedule::{Job, JobContext, JobRun, JobStore, Jobs, MissedRuns, RunState, Schedule};

use crate::servers::WorkerProcess;

const INTERVAL: Duration = Duration::from_millis(100);
const LEASE: Duration = Duration::from_millis(500);
/// Most of the interval, so that a kill often hits a run.
const WORK: Duration = Duration::from_millis(50);
/// More runs than any test has: nothing may leave the history.
const HISTORY: u32 = 10_000;

const POLICIES: [(&str, MissedRuns); 3] =
    [("skip", MissedRuns::Skip), ("once", MissedRuns::RunOnce), ("all", MissedRuns::RunAll { max: 1_000 })];

/// Runs the jobs in a worker process until it is killed.
///
/// # Panics
/// Panics if the file can't be written.
pub async fn run_worker(store: Arc<dyn JobStore>, settings: &HashMap<String, String>) {
    let (file, owner) = (PathBuf::from(&settings["FILE"]), settings["OWNER"].clone());
    let mut jobs = Jobs::builder(store).owner(owner.as_str()).history(HISTORY);
    for (name, policy) in POLICIES {
        let (file, owner) = (file.clone(), owner.clone());
        let schedule = Schedule::every(INTERVAL).expect("the interval is long enough");
        let job = Job::new(name, schedule, move |context: JobContext| {
            let (file, owner) = (file.clone(), owner.clone());
            async move {
                append(&file, &format!("{} {} {} {owner}\n", context.job, context.tick.0, context.fence))?;
                tokio::time::sleep(WORK).await;
                Ok::<_, std::io::Error>(())
            }
        });
        jobs = jobs.job(job.missed_runs(policy).lease(LEASE));
    }
    jobs.build().expect("the jobs are right").run(std::future::pending()).await;
}

fn append(file: &Path, line: &str) -> std::io::Result<()> {
    OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
}

/// One line of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Firing {
    job: String,
    tick: Millis,
    fence: u64,
    owner: String,
}

fn firings(file: &Path) -> Vec<Firing> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let parse = |line: &str| {
        let mut words = line.split(' ');
        let (job, tick) = (words.next()?.to_owned(), Millis(words.next()?.parse().ok()?));
        Some(Firing { job, tick, fence: words.next()?.parse().ok()?, owner: words.next()?.to_owned() })
    };
    text.lines().filter_map(parse).collect()
}

/// Lets three processes run the jobs for so many ticks, kills the one that works again and again, and checks that each tick was
/// run at most once, that every tick is accounted for, and that each policy was kept. `worker` is the path of a test that calls
/// [`run_worker`], `address` its setting `ADDRESS`. Returns a line with figures.
///
/// # Panics
/// Panics with a sentence when the store breaks its contract.
pub async fn fires_once_per_tick(
    store: Arc<dyn JobStore>,
    worker: &str,
    address: &str,
    folder: &Path,
    ticks: u32,
) -> String {
    let file = folder.join("firings.txt");
    let spawn = |number: usize| {
        let owner = format!("worker-{number}");
        let settings =
            [("ADDRESS", address), ("FILE", file.to_str().expect("a plain path")), ("OWNER", &owner)];
        WorkerProcess::spawn(worker, &settings).expect("the worker starts")
    };
    let mut workers: Vec<WorkerProcess> = (0..3).map(spawn).collect();
    let (mut kills, mut seen) = (0, 0);
    loop {
        tokio::time::sleep(INTERVAL * 7).await;
        let fired = firings(&file);
        let of_all: Vec<_> = fired.iter().filter(|firing| firing.job == "all").collect();
        let (Some(first), Some(last)) = (of_all.first(), of_all.last()) else { continue };
        if last.tick.since(first.tick) >= INTERVAL * ticks {
            break;
        }
        // The one that began last is most probably at work.
        if let Some(victim) = fired.last().filter(|_| fired.len() > seen) {
            let number =
                victim.owner.strip_prefix("worker-").and_then(|number| number.parse().ok()).unwrap_or(0);
            workers[number].kill().expect("a process can be killed");
            workers[number] = spawn(number);
            kills += 1;
        }
        seen = fired.len();
    }
    for worker in &mut workers {
        worker.kill().expect("a process can be killed");
    }
    let mut report = format!("{ticks} ticks of {INTERVAL:?}, 3 processes, {kills} kills;");
    let fired = firings(&file);
    for (name, policy) in POLICIES {
        let mut history = store.history(name, HISTORY).await.expect("the store answers");
        history.reverse();
        let of_job: Vec<&Firing> = fired.iter().filter(|firing| firing.job == name).collect();
        report = format!("{report} {}", check(name, policy, &of_job, &history, kills + 3));
    }
    report
}

fn check(name: &str, policy: MissedRuns, fired: &[&Firing], history: &[JobRun], kills: u64) -> String {
    let mut by_tick: Vec<&Firing> = fired.to_vec();
    by_tick.sort_by_key(|firing| firing.tick);
    let twice = by_tick.windows(2).find(|pair| pair[0].tick == pair[1].tick);
    assert!(twice.is_none(), "{name}: a tick was run twice: {twice:?}");
    let grows = by_tick.windows(2).all(|pair| pair[0].fence < pair[1].fence);
    assert!(grows, "{name}: a later run has no higher fence");
    let runs: Vec<&JobRun> = history.iter().filter(|run| run.state != RunState::Missed).collect();
    let unknown = by_tick.iter().find(|firing| !runs.iter().any(|run| run.tick == firing.tick));
    assert!(unknown.is_none(), "{name}: a tick was run without a claim: {unknown:?}");
    let silent: Vec<_> =
        runs.iter().filter(|run| !by_tick.iter().any(|firing| firing.tick == run.tick)).collect();
    assert!(
        silent.iter().all(|run| run.state != RunState::Succeeded),
        "{name}: a success without a run: {silent:?}"
    );
    assert!(silent.len() as u64 <= kills, "{name}: more runs were lost than processes killed: {silent:?}");
    // Every tick between the first and the last is a run, or counted as missed.
    let (first, last) = (history.first().expect("there are runs"), history.last().expect("there are runs"));
    let between = (last.tick.since(first.tick).as_millis() / INTERVAL.as_millis()) as u64;
    let missed: u64 = history[1..].iter().map(|run| run.missed).sum();
    let accounted = missed + history[1..].iter().filter(|run| run.state != RunState::Missed).count() as u64;
    assert_eq!(accounted, between, "{name}: a tick is neither run nor counted as missed");
    let abandoned = runs.iter().filter(|run| run.state == RunState::Abandoned).count();
    match policy {
        MissedRuns::RunAll { .. } => assert_eq!(missed, 0, "{name}: ticks were missed"),
        MissedRuns::RunOnce => {
            assert!(
                history.iter().all(|run| run.state != RunState::Missed),
                "{name}: a tick was passed over"
            );
        }
        _ => {}
    }
    assert!(
        abandoned == 0 || policy == MissedRuns::RunAll { max: 1_000 } || missed > 0,
        "{name}: a dead run missed nothing"
    );
    format!("{name}: {} runs, {abandoned} abandoned, {missed} missed.", runs.len())
}
