//! What the workers said, put together.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::ChildStdout;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use seawall::{Clock, Tick};

/// A line of a worker.
pub(super) struct Line {
    pub(super) worker: usize,
    pub(super) at: Tick,
    pub(super) text: String,
}

/// Reads what a worker says, on a thread of its own.
pub(super) fn listen(worker: usize, output: BufReader<ChildStdout>, lines: SyncSender<Line>) {
    thread::spawn(move || {
        for text in output.lines().map_while(Result::ok) {
            let Some(text) = text.strip_prefix('@') else { continue };
            let line = Line { worker, at: Clock::system().precise(), text: text.to_owned() };
            if lines.send(line).is_err() {
                return;
            }
        }
    });
}

/// The tokens that were granted; shown by their number only.
#[derive(Default)]
struct Tokens(HashSet<String>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} different ones", self.0.len())
    }
}

/// What happened in a run.
#[derive(Default, Debug)]
pub(super) struct Report {
    pub(super) grants: u32,
    pub(super) kills: u32,
    pub(super) holders_killed: u32,
    pub(super) stops: u32,
    pub(super) partitions: u32,
    pub(super) node_losses: u32,
    /// Work that was cancelled before its lease ended.
    pub(super) cancelled: u32,
    /// The least time that was left of a lease when its work was cancelled.
    pub(super) least_left_ms: Option<u64>,
    /// Work that was cancelled when its process ran again, after its lease had ended.
    pub(super) cancelled_after_stop: u32,
    pub(super) refused_writes: u32,
    pub(super) errors: u32,
    pub(super) violations: Vec<String>,
    /// How long a dead holder's lock was not granted.
    pub(super) longest_wait: Duration,
    tokens: Tokens,
    pub(super) holder: Option<usize>,
    dead_since: Option<Tick>,
}

impl Report {
    pub(super) fn take(&mut self, line: &Line) {
        let (word, rest) = line.text.split_once(' ').unwrap_or((&line.text, ""));
        match word {
            "grant" => self.granted(line, rest),
            "done" => self.ended(line.worker),
            "cancelled" => {
                self.cancelled += 1;
                let left = rest.parse().unwrap_or_default();
                self.least_left_ms = Some(self.least_left_ms.map_or(left, |least: u64| least.min(left)));
                self.ended(line.worker);
            }
            "stopped" => {
                self.cancelled_after_stop += 1;
                self.ended(line.worker);
            }
            "refused" => self.refused_writes += 1,
            "violation" => self.violations.push(rest.to_owned()),
            _ => self.errors += 1,
        }
    }

    /// The holder is dead from now on.
    pub(super) fn killed(&mut self, worker: usize, at: Tick) {
        self.kills += 1;
        if self.holder == Some(worker) {
            self.holders_killed += 1;
            self.dead_since = Some(at);
            self.holder = None;
        }
    }

    fn granted(&mut self, line: &Line, rest: &str) {
        self.grants += 1;
        let token = rest.split(' ').next().unwrap_or_default();
        if !self.tokens.0.insert(token.to_owned()) {
            self.violations.push(format!("the token {token} was granted twice"));
        }
        self.holder = Some(line.worker);
        if let Some(since) = self.dead_since.take() {
            self.longest_wait = self.longest_wait.max(line.at.since(since));
        }
    }

    fn ended(&mut self, worker: usize) {
        if self.holder == Some(worker) {
            self.holder = None;
        }
    }
}
