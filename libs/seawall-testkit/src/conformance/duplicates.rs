//! Many duplicates of many requests in several processes that are killed and paused: each request has one effect, and everybody gets the
//! same answer.
//!
//! The test process calls [`run`] with the name of a test that calls [`work`] when it is started as a worker.
#![expect(clippy::panic, reason = "a suite fails with a sentence")]
#![expect(clippy::print_stdout, reason = "workers tell their parent how far they are")]

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use seawall_dist::idempotency::{Fingerprint, Idempotency, IdempotencyKey, OnceError, fingerprint};

use crate::servers::WorkerProcess;

/// How many processes send duplicates.
const PROCESSES: u32 = 4;

/// How long the work takes after its effect: executors that are killed in this time have had their effect without a record.
const AFTER_EFFECT: Duration = Duration::from_millis(2);

/// The pause before a client asks again while its request is in flight; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The time from the beginning of a block until a process is stopped in it: it has work in flight then.
const MOMENT: Duration = Duration::from_millis(4);

/// The lease of the workers: longer than a busy machine holds a process up.
pub const LEASE: Duration = Duration::from_secs(2);

/// How much is sent, and how often a process is killed.
#[derive(Clone, Copy, Debug)]
pub struct DuplicatesPlan {
    /// The number of different requests.
    pub keys: u32,
    /// How often each of them is sent.
    pub duplicates: u32,
    /// How many times a process is killed while it works.
    pub kills: u32,
    /// How many requests a process has in flight, each with all its duplicates.
    pub block: u32,
}

impl DuplicatesPlan {
    fn blocks(&self) -> u32 {
        self.keys.div_ceil(self.block)
    }

    /// Whether this process is stopped for longer than its lease in this block.
    fn pauses_in(&self, process: u32, block: u32) -> bool {
        process == 0 && block > 0 && block == self.blocks() / 2
    }

    /// Whether this process is killed in this block.
    fn kills_in(&self, process: u32, block: u32) -> bool {
        let kills = self.kills / PROCESSES;
        let every = self.blocks() / (kills + 1);
        block > 0 && every > 0 && block / every <= kills && (block + process).is_multiple_of(every)
    }
}

/// What happened in a [`run`].
#[derive(Clone, Copy, Default, Debug)]
pub struct Report {
    /// How often a process was killed, or stopped for longer than its lease.
    pub stops: u32,
    /// How many executions were lost in processes that ran: their lease could not be renewed in time.
    pub lost: u32,
}

impl Report {
    /// The largest number of executions that the plan explains: one for each request, one for each that a stopped process had
    /// in flight, and one for each that was lost.
    #[must_use]
    pub fn executions_max(&self, plan: DuplicatesPlan) -> i64 {
        i64::from(plan.keys) + i64::from(self.stops * plan.block) + i64::from(self.lost)
    }
}

/// Where the effects are, as a boxed function of key and fencing token.
pub type Effect =
    Arc<dyn Fn(String, u64) -> Pin<Box<dyn Future<Output = io::Result<bool>> + Send>> + Send + Sync>;

/// Reads the fencing token of the effect of a key.
pub type Look = Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = io::Result<u64>> + Send>> + Send + Sync>;

/// Starts the workers, kills them as planned and starts them again, until all requests are answered. One process is stopped for
/// longer than its lease and goes on with executions that others have taken over. Returns what happened.
///
/// # Panics
/// If a worker finds a wrong answer.
#[must_use]
pub fn run(worker_test: &str, settings: &[(&str, &str)], plan: DuplicatesPlan) -> Report {
    thread::scope(|scope| {
        let managers: Vec<_> = (0..PROCESSES)
            .map(|process| scope.spawn(move || manage(worker_test, settings, plan, process)))
            .collect();
        let mut all = Report::default();
        for manager in managers {
            let report = manager.join().expect("a worker found a wrong answer");
            all.stops += report.stops;
            all.lost += report.lost;
        }
        all
    })
}

fn manage(worker_test: &str, settings: &[(&str, &str)], plan: DuplicatesPlan, process: u32) -> Report {
    let (mut first, mut report) = (0, Report::default());
    let (mut last_killed, mut paused) = (None, false);
    loop {
        let own = [
            ("KEYS", plan.keys.to_string()),
            ("BLOCK", plan.block.to_string()),
            ("DUPLICATES", (plan.duplicates / PROCESSES).to_string()),
            ("FIRST", first.to_string()),
        ];
        let mut all = settings.to_vec();
        all.extend(own.iter().map(|(name, value)| (*name, value.as_str())));
        let mut worker = WorkerProcess::spawn(worker_test, &all).expect("the test binary starts again");
        while let Some(line) = worker.read_line().expect("its output can be read") {
            if line.contains("all answered") {
                return report;
            }
            report.lost += u32::from(line.contains("execution lost"));
            let Some((_, number)) = line.split_once("block ") else { continue };
            first = number.parse().expect("a number");
            if plan.pauses_in(process, first) && !std::mem::replace(&mut paused, true) {
                pause(MOMENT);
                worker.pause().expect("it can be stopped");
                pause(LEASE + LEASE / 4);
                worker.resume().expect("it can go on");
                report.stops += 1;
                continue;
            }
            if plan.kills_in(process, first) && last_killed != Some(first) {
                last_killed = Some(first);
                pause(Duration::from_millis(u64::from((first * 7 + process * 5) % 9)));
                worker.kill().expect("it can be killed");
                report.stops += 1;
                break;
            }
        }
        assert!(last_killed == Some(first), "a worker ended early");
    }
}

#[expect(clippy::disallowed_methods, reason = "kills come at any moment, and nothing waits for them")]
fn pause(duration: Duration) {
    thread::sleep(duration);
}

/// Sends its share of the duplicates of every request and compares the answers with each other and with the effects.
///
/// # Panics
/// If an answer is wrong.
pub async fn work(idempotency: Idempotency, settings: &HashMap<String, String>, effect: Effect, look: Look) {
    let number = |name: &str| settings[name].parse::<u32>().expect("a number");
    let (keys, block_size) = (number("KEYS"), number("BLOCK"));
    for block in number("FIRST")..keys.div_ceil(block_size) {
        println!("block {block}");
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..number("DUPLICATES") {
            for key in block * block_size..((block + 1) * block_size).min(keys) {
                calls.spawn(call(idempotency.clone(), key, effect.clone()));
            }
        }
        let mut answers = HashMap::new();
        while let Some(answer) = calls.join_next().await {
            let (key, token) = answer.expect("a call panicked");
            let first = *answers.entry(key).or_insert(token);
            assert_eq!(first, token, "request {key} has two answers");
        }
        for (key, token) in answers {
            let effect = look(name(key)).await.expect("the effects can be read");
            assert_eq!(effect, token, "the answer to request {key} is not what was done");
        }
        refuses_another_body(&idempotency, block * block_size).await;
    }
    println!("all answered");
}

/// Sends a request until it is answered.
async fn call(idempotency: Idempotency, number: u32, effect: Effect) -> (u32, u64) {
    let key = IdempotencyKey::new("duplicates", &name(number)).expect("a valid key");
    let mut pause = FIRST_PAUSE;
    loop {
        let effect = effect.clone();
        let work = async |execution: seawall_dist::idempotency::Execution| {
            if !effect(name(number), execution.fencing_token).await? {
                return Err(io::Error::other("a newer executor was here"));
            }
            tokio::time::sleep(AFTER_EFFECT).await;
            Ok(execution.fencing_token.to_string().into_bytes())
        };
        match idempotency.once(&key, body(number), work).await {
            Ok(outcome) => {
                let text = String::from_utf8(outcome.into_bytes()).expect("digits");
                return (number, text.parse().expect("a number"));
            }
            Err(OnceError::InFlight { retry_after, .. }) => {
                tokio::time::sleep(retry_after.min(pause)).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            Err(OnceError::Mismatch | OnceError::Unknown | OnceError::TooLarge { .. }) => {
                panic!("request {number} was answered wrongly")
            }
            // The store was slow and nothing ran: the client asks again, as clients do.
            Err(OnceError::Store(_)) => tokio::time::sleep(FIRST_PAUSE).await,
            // The execution was lost on a busy machine.
            Err(_) => {
                println!("execution lost");
                tokio::time::sleep(FIRST_PAUSE).await;
            }
        }
    }
}

async fn refuses_another_body(idempotency: &Idempotency, number: u32) {
    let key = IdempotencyKey::new("duplicates", &name(number)).expect("a valid key");
    let other = fingerprint([b"another body".as_slice()]);
    loop {
        match idempotency.once(&key, other, async |_| Ok::<_, io::Error>(Vec::new())).await {
            Err(OnceError::Mismatch) => return,
            // The store was slow.
            Err(OnceError::Store(_)) => tokio::time::sleep(FIRST_PAUSE).await,
            answer => panic!("another body got an answer: {answer:?}"),
        }
    }
}

fn name(number: u32) -> String {
    format!("request-{number}")
}

fn body(number: u32) -> Fingerprint {
    fingerprint([b"POST".as_slice(), &number.to_be_bytes()])
}
