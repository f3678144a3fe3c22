//! The whole guard, as plainly as it can be said: one call after the other, from its beginning to its end.

use seawall::{Fault, Kind, Policy, Ran, Safety};

use super::parts::{Allowance, Bucket, BudgetSettings, Circuit, CircuitSettings, Was};

/// What is in a guard. Times are in units.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) call_timeout: Option<u64>,
    pub(super) attempt_timeout: Option<u64>,
    pub(super) attempts: u32,
    pub(super) shape: Shape,
    pub(super) base: u64,
    pub(super) cap: u64,
    /// The longest wait that a peer may ask for.
    pub(super) asked_cap: u64,
    pub(super) on_rejection: bool,
    pub(super) budget: Option<BudgetSettings>,
    pub(super) circuit: Option<CircuitSettings>,
    /// Interval and burst.
    pub(super) rate: Option<(u64, u32)>,
    pub(super) places: Option<u32>,
}

/// How waits grow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Constant,
    Linear,
    Doubling,
}

/// What one attempt does, and after how long.
#[derive(Clone, Copy, Debug)]
pub(super) enum Does {
    Answer(u64),
    Fail(u64, Fault),
    Hang,
}

/// One call: what its attempts do, when it is dropped, and how many places others hold meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) pause: u64,
    /// First attempts of other callers, which earn and need no retry.
    pub(super) others: u32,
    pub(super) safety: Safety,
    pub(super) attempts: Vec<Does>,
    pub(super) dropped_after: Option<u64>,
    pub(super) held: u32,
}

/// What became of a call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Ended {
    pub(super) how: How,
    pub(super) attempts: u32,
    pub(super) took: u64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum How {
    Well,
    Dropped,
    Badly { kind: Kind, by: Policy, ran: Ran, come_back: Option<u64> },
}

pub(super) struct Plain {
    parts: Parts,
    pub(super) now: u64,
    pub(super) circuit: Option<Circuit>,
    pub(super) budget: Option<Allowance>,
    bucket: Option<Bucket>,
}

/// A call under way.
struct Under {
    began: u64,
    deadline: u64,
    dropped_at: u64,
    safety: Safety,
    /// Attempts that were started, and those that were refused too.
    attempts: u32,
    tries: u32,
    ran: Ran,
    /// Whether a ticket of the circuit is out.
    ticket: bool,
    /// When the first attempt of that ticket began.
    ticket_since: Option<u64>,
    /// Whether a retry has been taken that has not started.
    token: bool,
    /// Whether the last attempt took time.
    took_time: bool,
}

/// How one attempt came out.
enum Came {
    Well,
    Badly(Fault, Policy),
    /// The call's deadline has cut it short.
    CutShort,
    Dropped,
}

const NEVER: u64 = u64::MAX;
/// How long a dropped call must have run to say something about its peer, where no timeout says so: a second.
const ABANDONED_AFTER: f64 = 1e9 / (1 << 20) as f64;

impl Plain {
    pub(super) fn new(parts: &Parts, now: u64) -> Self {
        Plain {
            now,
            circuit: parts.circuit.map(Circuit::new),
            budget: parts.budget.filter(|_| parts.attempts > 1).map(Allowance::new),
            bucket: parts.rate.map(|(interval, burst)| Bucket::new(interval, burst, now)),
            parts: parts.clone(),
        }
    }

    pub(super) fn call(&mut self, script: &Script) -> Ended {
        let began = self.now;
        let mut call = Under {
            began,
            deadline: self.parts.call_timeout.map_or(NEVER, |timeout| began + timeout),
            dropped_at: script.dropped_after.map_or(NEVER, |after| began + after),
            safety: script.safety,
            attempts: 0,
            tries: 0,
            ran: Ran::No,
            ticket: false,
            ticket_since: None,
            token: false,
            took_time: false,
        };
        let how = self.run(&mut call, script);
        if call.token
            && let Some(budget) = &mut self.budget
        {
            budget.give_back(self.now);
        }
        Ended { how, attempts: call.attempts, took: self.now - call.began }
    }

    fn run(&mut self, call: &mut Under, script: &Script) -> How {
        loop {
            let (fault, from) = match self.admit(call, script.held) {
                Err((fault, by)) => {
                    call.tries += 1;
                    if self.per_attempt() || !self.retries() || !self.parts.on_rejection {
                        let has_run = call.ticket_since.is_some();
                        self.answered(call, Was::Nothing, has_run);
                    }
                    (fault, by)
                }
                Ok(()) => {
                    let does =
                        script.attempts.get(call.attempts as usize).copied().unwrap_or(Does::Answer(0));
                    match self.attempt(call, does) {
                        Came::Well => {
                            self.answered(call, Was::Good, true);
                            if let Some(budget) = &mut self.budget {
                                budget.succeeded(call.attempts == 1);
                            }
                            return How::Well;
                        }
                        Came::Badly(fault, from) => {
                            call.ran = call.ran.max(fault.did_run());
                            if self.per_attempt() {
                                self.answered(call, was(fault), call.took_time);
                            }
                            if let Some(budget) = self.budget.as_mut().filter(|_| fault.is_transient()) {
                                budget.failed();
                            }
                            (fault, from)
                        }
                        Came::CutShort => {
                            call.ran = Ran::Unknown;
                            self.abandon(call);
                            return badly(Kind::TimedOut, Policy::CallTimeout, call, Fault::timeout());
                        }
                        Came::Dropped => {
                            self.abandon(call);
                            return How::Dropped;
                        }
                    }
                }
            };
            if let Some((kind, by)) = self.gives_up(call, fault, from) {
                let has_run = call.ticket_since.is_some();
                self.answered(call, was(fault), has_run);
                return badly(kind, by, call, fault);
            }
            let resumes = self.now + self.wait(call, fault);
            if resumes >= call.dropped_at {
                self.now = call.dropped_at;
                self.abandon(call);
                return How::Dropped;
            }
            self.now = resumes;
        }
    }

    /// The breaker, the rate limit and the bulkhead, in this order.
    fn admit(&mut self, call: &mut Under, held: u32) -> Result<(), (Fault, Policy)> {
        let later = |units: u64| Fault::rejected().after(super::time(units));
        if let (Some(circuit), false) = (&mut self.circuit, call.ticket) {
            circuit.admit(self.now).map_err(|wait| (later(wait), Policy::Breaker))?;
            call.ticket = true;
            call.ticket_since = None;
        }
        if let Some(bucket) = &mut self.bucket {
            bucket.take(self.now).map_err(|wait| (later(wait), Policy::RateLimit))?;
        }
        if self.parts.places.is_some_and(|places| held >= places) {
            return Err((Fault::rejected(), Policy::Bulkhead));
        }
        Ok(())
    }

    fn attempt(&mut self, call: &mut Under, does: Does) -> Came {
        call.token = false;
        if let (Some(budget), 0) = (&mut self.budget, call.attempts) {
            budget.first_attempt(self.now);
        }
        call.tries += 1;
        call.attempts += 1;
        call.ticket_since.get_or_insert(self.now);
        let answers = match does {
            Does::Answer(after) | Does::Fail(after, _) => self.now + after,
            Does::Hang => NEVER,
        };
        let timeout = self.parts.attempt_timeout.map_or(NEVER, |timeout| self.now + timeout);
        let ends = answers.min(timeout).min(call.deadline);
        // What is ready when the call is first polled comes before being dropped later.
        if ends > self.now && ends >= call.dropped_at {
            self.now = call.dropped_at;
            return Came::Dropped;
        }
        call.took_time = ends > self.now;
        self.now = ends;
        match does {
            Does::Answer(_) if ends == answers => Came::Well,
            Does::Fail(_, fault) if ends == answers => Came::Badly(fault, Policy::Operation),
            _ if ends == timeout => Came::Badly(Fault::timeout(), Policy::AttemptTimeout),
            _ => Came::CutShort,
        }
    }

    /// The first reason against another attempt. With none, a retry is taken from the budget.
    fn gives_up(&mut self, call: &mut Under, fault: Fault, from: Policy) -> Option<(Kind, Policy)> {
        let rejected = matches!(from, Policy::Breaker | Policy::RateLimit | Policy::Bulkhead);
        let as_it_is = match from {
            Policy::AttemptTimeout => (Kind::TimedOut, from),
            _ if rejected => (Kind::Rejected, from),
            _ => (Kind::Failed, from),
        };
        let helps = if rejected { self.parts.on_rejection } else { fault.is_transient() };
        if !self.retries() || !helps {
            return Some(as_it_is);
        }
        if call.safety == Safety::Once && fault.did_run() != Ran::No {
            return Some(if from == Policy::Operation { (Kind::Failed, Policy::Retry) } else { as_it_is });
        }
        if call.tries >= self.parts.attempts {
            return Some(if rejected { as_it_is } else { (Kind::Exhausted, Policy::Retry) });
        }
        if self.now + self.wait(call, fault) >= call.deadline {
            return Some(if rejected { as_it_is } else { (Kind::TimedOut, Policy::CallTimeout) });
        }
        if let (Some(budget), true, false) = (&mut self.budget, call.attempts > 0, call.token) {
            if !budget.try_take(self.now) {
                return Some((Kind::BudgetDenied, Policy::Budget));
            }
            call.token = true;
        }
        None
    }

    fn wait(&self, call: &Under, fault: Fault) -> u64 {
        if let Some(asked) = fault.retry_after() {
            return super::units(asked).min(self.parts.asked_cap);
        }
        let throttled = fault.verdict() == seawall::fault::Verdict::Throttled;
        let base = if throttled { 5 * self.parts.base } else { self.parts.base };
        let times = match self.parts.shape {
            Shape::Constant => 1,
            Shape::Linear => u64::from(call.tries),
            Shape::Doubling => 1 << (call.tries - 1),
        };
        (base * times).min(self.parts.cap)
    }

    fn settle(&mut self, call: &mut Under, was: Was) {
        if let (Some(circuit), true) = (&mut self.circuit, call.ticket) {
            circuit.settle(was, self.now);
        }
        call.ticket = false;
    }

    /// The call is over before its attempt: that is the peer's fault if it had long enough.
    fn abandon(&mut self, call: &mut Under) {
        let timeout = match (self.parts.attempt_timeout, self.parts.call_timeout) {
            (Some(attempt), Some(call)) => Some(attempt.min(call)),
            (attempt, call) => attempt.or(call),
        };
        let threshold = timeout.map_or(ABANDONED_AFTER, |timeout| timeout as f64 / 2.0);
        let Some(since) = call.ticket_since else { return self.settle(call, Was::Nothing) };
        let was = match &mut self.circuit {
            _ if (self.now - since) as f64 > threshold => Was::Bad,
            Some(circuit) if call.ticket => circuit.abandoned(since, self.now),
            _ => Was::Nothing,
        };
        self.settle(call, was);
    }

    /// The peer has answered, or its time was up. An answer that counts for nothing is one to the circuit only if it took
    /// time.
    fn answered(&mut self, call: &mut Under, was: Was, took_time: bool) {
        if let (Some(circuit), true) = (&mut self.circuit, call.ticket && (was != Was::Nothing || took_time))
        {
            circuit.answered();
        }
        self.settle(call, was);
    }

    fn retries(&self) -> bool {
        self.parts.attempts > 1
    }

    fn per_attempt(&self) -> bool {
        self.parts.circuit.is_none_or(|circuit| !circuit.of_calls)
    }
}

fn was(fault: Fault) -> Was {
    if fault.counts() { Was::Bad } else { Was::Nothing }
}

fn badly(kind: Kind, by: Policy, call: &Under, fault: Fault) -> How {
    How::Badly { kind, by, ran: call.ran, come_back: fault.retry_after().map(super::units) }
}
