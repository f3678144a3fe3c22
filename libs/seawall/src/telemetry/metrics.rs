//! Metrics through the `metrics` facade.

use std::sync::Arc;

use ::metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

use crate::breaker::State;
use crate::error::{Kind, Policy};
use crate::event::{EventKind, Labels, Listener};
use crate::fault::Class;
use crate::guard::Guard;

/// What a metric counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// How often something happened.
    Counter,
    /// How much of something there is now.
    Gauge,
    /// How long something took, in seconds.
    Histogram,
}

/// How a call ended, in the label `outcome`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// With an answer.
    Success,
    /// As [`Kind`] says.
    Error(Kind),
    /// Its caller dropped it.
    Abandoned,
}

impl Outcome {
    const ALL: [Outcome; 7] = [
        Outcome::Success,
        Outcome::Error(Kind::Failed),
        Outcome::Error(Kind::Exhausted),
        Outcome::Error(Kind::BudgetDenied),
        Outcome::Error(Kind::TimedOut),
        Outcome::Error(Kind::Rejected),
        Outcome::Abandoned,
    ];

    /// As it stands in the label.
    const fn label(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Error(Kind::Failed) => "failed",
            Outcome::Error(Kind::Exhausted) => "exhausted",
            Outcome::Error(Kind::BudgetDenied) => "budget_denied",
            Outcome::Error(Kind::TimedOut) => "timed_out",
            Outcome::Error(Kind::Rejected) => "rejected",
            Outcome::Abandoned => "abandoned",
        }
    }
}

/// Every metric: its name, what it measures, its labels beside `guard`, and what it means. The names are public and do
/// not change.
pub const NAMES: &[(&str, Measure, &[&str], &str)] = &[
    ("seawall.calls", Measure::Counter, &["outcome"], "calls that ended"),
    (
        "seawall.call.duration",
        Measure::Histogram,
        &["outcome"],
        "how long calls took with all their attempts",
    ),
    ("seawall.attempts", Measure::Counter, &[], "attempts that started"),
    ("seawall.faults", Measure::Counter, &["error.type"], "attempts that failed, by class of fault"),
    ("seawall.retries", Measure::Counter, &[], "attempts that were made again"),
    ("seawall.rejections", Measure::Counter, &["policy"], "attempts that a policy refused"),
    ("seawall.timeouts", Measure::Counter, &["policy"], "attempts and calls that ran out of time"),
    ("seawall.budget.denied", Measure::Counter, &[], "retries that the budget did not allow"),
    ("seawall.budget.retries", Measure::Gauge, &[], "retries that the budget's window holds"),
    ("seawall.budget.calls", Measure::Gauge, &[], "calls that the budget's window holds"),
    ("seawall.fallbacks", Measure::Counter, &[], "calls that a fallback answered"),
    (
        "seawall.hedges",
        Measure::Counter,
        &["won"],
        "second attempts that started, and those that answered first",
    ),
    ("seawall.circuit.state", Measure::Gauge, &[], "0 closed, 1 half-open, 2 open, -1 bypassed"),
    ("seawall.circuit.transitions", Measure::Counter, &["to"], "how often the circuit moved"),
    ("seawall.circuit.slow", Measure::Counter, &[], "calls above the circuit's threshold for slow ones"),
    ("seawall.circuit.late", Measure::Counter, &[], "outcomes that came after the circuit had moved on"),
    ("seawall.panics", Measure::Counter, &[], "operations that panicked"),
    ("seawall.bulkhead.in_use", Measure::Gauge, &[], "places in the bulkhead that are taken"),
    ("seawall.bulkhead.limit", Measure::Gauge, &[], "places in the bulkhead"),
    ("seawall.bulkhead.waiting", Measure::Gauge, &[], "calls that wait for a place"),
];

/// Tells the installed recorder what each metric means, for those that pass it on.
pub fn describe() {
    for &(name, measure, _, meaning) in NAMES {
        match measure {
            Measure::Counter => describe_counter!(name, meaning),
            Measure::Gauge => describe_gauge!(name, meaning),
            Measure::Histogram => describe_histogram!(name, Unit::Seconds, meaning),
        }
    }
}

const CLASSES: [(Class, &str); 5] = [
    (Class::Business, "business"),
    (Class::Io, "io"),
    (Class::Timeout, "timeout"),
    (Class::Protocol, "protocol"),
    (Class::System, "system"),
];
const REFUSERS: [(Policy, &str); 3] =
    [(Policy::Breaker, "breaker"), (Policy::RateLimit, "rate_limit"), (Policy::Bulkhead, "bulkhead")];
const TIMERS: [(Policy, &str); 2] =
    [(Policy::AttemptTimeout, "attempt_timeout"), (Policy::CallTimeout, "call_timeout")];
const MOVES: [&str; 4] = ["open", "half_open", "closed", "bypassed"];

/// The metrics of one guard, or of a family of them. Registered once, because a look into a recorder costs more than a
/// call.
pub(super) struct GuardMetrics {
    calls: [(Outcome, Counter, Histogram); Outcome::ALL.len()],
    attempts: Counter,
    faults: [(Class, Counter); CLASSES.len()],
    retries: Counter,
    rejections: [(Policy, Counter); REFUSERS.len()],
    timeouts: [(Policy, Counter); TIMERS.len()],
    budget_denied: Counter,
    fallbacks: Counter,
    hedges: Counter,
    hedges_won: Counter,
    /// One number can't be the state of a whole family.
    state: Option<Gauge>,
    moves: [Counter; MOVES.len()],
    slow: Counter,
    late: Counter,
    panics: Counter,
}

impl GuardMetrics {
    pub(super) fn new(label: &Arc<str>, is_family: bool) -> Self {
        let count = |name: &'static str| counter!(name, "guard" => label.clone());
        let count_by = |name: &'static str, by: &'static str, value: &'static str| counter!(name, "guard" => label.clone(), by => value);
        GuardMetrics {
            calls: Outcome::ALL.map(|outcome| {
                let duration =
                    histogram!("seawall.call.duration", "guard" => label.clone(), "outcome" => outcome.label());
                (outcome, count_by("seawall.calls", "outcome", outcome.label()), duration)
            }),
            attempts: count("seawall.attempts"),
            faults: CLASSES.map(|(class, text)| (class, count_by("seawall.faults", "error.type", text))),
            retries: count("seawall.retries"),
            rejections: REFUSERS.map(|(policy, text)| (policy, count_by("seawall.rejections", "policy", text))),
            timeouts: TIMERS.map(|(policy, text)| (policy, count_by("seawall.timeouts", "policy", text))),
            budget_denied: count("seawall.budget.denied"),
            fallbacks: count("seawall.fallbacks"),
            hedges: count_by("seawall.hedges", "won", "false"),
            hedges_won: count_by("seawall.hedges", "won", "true"),
            state: (!is_family).then(|| gauge!("seawall.circuit.state", "guard" => label.clone())),
            moves: MOVES.map(|to| count_by("seawall.circuit.transitions", "to", to)),
            slow: count("seawall.circuit.slow"),
            late: count("seawall.circuit.late"),
            panics: count("seawall.panics"),
        }
    }

    fn ended(&self, outcome: Outcome, took: std::time::Duration) {
        if let Some((_, calls, duration)) = self.calls.iter().find(|(of, ..)| *of == outcome) {
            calls.increment(1);
            duration.record(took);
        }
    }

    fn moved(&self, to: usize, state: f64) {
        self.moves[to].increment(1);
        if let Some(gauge) = &self.state {
            gauge.set(state);
        }
    }
}

impl Listener for GuardMetrics {
    fn hear(&self, _: Labels<'_>, what: EventKind) {
        match what {
            EventKind::Started | EventKind::Reconfigured => {}
            EventKind::Attempt { .. } => self.attempts.increment(1),
            EventKind::Failed { fault, .. } => increment(&self.faults, fault.class()),
            EventKind::Retry { .. } => self.retries.increment(1),
            EventKind::Rejected { by, .. } => increment(&self.rejections, by),
            EventKind::BudgetDenied { .. } => self.budget_denied.increment(1),
            EventKind::TimedOut { by } => increment(&self.timeouts, by),
            EventKind::Succeeded { took, .. } => self.ended(Outcome::Success, took),
            EventKind::GivenUp { kind, took, .. } => self.ended(Outcome::Error(kind), took),
            EventKind::Abandoned { took, .. } => self.ended(Outcome::Abandoned, took),
            EventKind::Panicked => self.panics.increment(1),
            EventKind::Fallback { .. } => self.fallbacks.increment(1),
            EventKind::Hedged => self.hedges.increment(1),
            EventKind::HedgeWon => self.hedges_won.increment(1),
            EventKind::Opened { .. } => self.moved(0, 2.0),
            EventKind::HalfOpened => self.moved(1, 1.0),
            EventKind::Closed => self.moved(2, 0.0),
            EventKind::Bypassed => self.moved(3, -1.0),
            EventKind::Slow { .. } => self.slow.increment(1),
            EventKind::Late => self.late.increment(1),
        }
    }
}

fn increment<T: PartialEq + Copy>(counters: &[(T, Counter)], of: T) {
    if let Some((_, counter)) = counters.iter().find(|(it, _)| *it == of) {
        counter.increment(1);
    }
}

/// Records what a guard is now, as opposed to what happened in it. For whoever scrapes.
pub(crate) fn record_gauges(guard: &Guard) {
    let set = |name: &'static str, value: f64| gauge!(name, "guard" => guard.shared_name()).set(value);
    if let Some(breaker) = guard.breaker() {
        set(
            "seawall.circuit.state",
            match breaker.state() {
                State::Closed | State::Ramping => 0.0,
                State::HalfOpen => 1.0,
                State::Open | State::ForcedOpen => 2.0,
                State::ForcedClosed | State::Disabled => -1.0,
            },
        );
    }
    if let Some(gate) = guard.bulkhead() {
        set("seawall.bulkhead.in_use", f64::from(gate.inside()));
        set("seawall.bulkhead.limit", f64::from(gate.limit()));
        set("seawall.bulkhead.waiting", gate.waiting() as f64);
    }
    if let Some(budget) = guard.budget() {
        let (calls, retries) = budget.in_window();
        set("seawall.budget.calls", calls as f64);
        set("seawall.budget.retries", retries as f64);
    }
}
