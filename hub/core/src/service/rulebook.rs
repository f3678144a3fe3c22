//! The rules that are at work, compiled.

use std::collections::HashMap;
use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;
use seawall::Clock;
use serde_json::Value as Json;

use super::caught::{Panicked, caught};
use crate::domain::delivery::Reason;
use crate::domain::event_type::Pattern;
use crate::domain::rule::Rule;
use crate::domain::slug::Slug;
use crate::render::{Meter, Mistake, Program, Request, RuleText, Verdict, View};

/// All rules, compiled: made anew when one changes, and shared by all who accept events.
///
/// They are found by the kind of the event and what is above it, so that an event costs as much with a thousand rules for
/// other kinds as with none.
#[derive(Debug, Default)]
pub struct Rulebook {
    rules: Vec<Entry>,
    exactly: HashMap<Box<str>, Vec<usize>>,
    below: HashMap<Box<str>, Vec<usize>>,
    everything: Vec<usize>,
}

#[derive(Debug)]
struct Entry {
    name: Slug,
    version: u64,
    service: Slug,
    enabled: bool,
    hold: bool,
    program: Program,
}

/// What the rules make of an event.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Matched {
    /// What each rule that takes it makes of it.
    pub made: Vec<Made>,
    /// How many rules said what.
    pub tally: Tally,
}

/// What a rule makes of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Made {
    /// The rule and its version.
    pub rule: (Slug, u64),
    /// To whom.
    pub service: Slug,
    /// Whether the rule is at work; if not, it is held.
    pub enabled: bool,
    /// The request, or why there is none. Nothing is dropped silently.
    pub request: Result<Request, Mistake>,
    /// Whether there is none because the hub's own code has panicked over it.
    pub panicked: bool,
    /// What it belongs together with, if the rule keeps an order.
    pub order: Option<String>,
    /// Whether those behind it wait, if it ends as a dead letter.
    pub hold: bool,
}

/// How many rules said what of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Rules for its kind.
    pub considered: u32,
    /// Whose filter did not take it.
    pub filtered: u32,
    /// Of these, because the event lacks something or the filter makes no sense for it.
    pub unclear: u32,
}

/// How long the rules looked at an event, and which took it: for whoever tells of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Looked {
    /// From then.
    pub began: SystemTime,
    /// Until then.
    pub ended: SystemTime,
    /// The rules that took it.
    pub rules: Vec<Slug>,
}

impl Looked {
    /// The rules have looked at an event from then until now.
    #[must_use]
    pub fn since(began: SystemTime, clock: &Clock, made: &[Made]) -> Self {
        let rules = made.iter().map(|made| made.rule.0.clone()).collect();
        Looked { began, ended: clock.wall(), rules }
    }
}

impl Rulebook {
    /// Compiles the rules. One that can't be compiled is left out and told: it was checked when it was written, so another
    /// version of the hub wrote it.
    #[must_use]
    pub fn new(rules: &[Rule]) -> (Self, Vec<BadRule>) {
        let (mut book, mut bad) = (Rulebook::default(), Vec::new());
        for rule in rules {
            let program = match compile(rule) {
                Ok(program) => program,
                Err(mistakes) => {
                    bad.push(BadRule { rule: rule.name.clone(), mistakes });
                    continue;
                }
            };
            let at = book.rules.len();
            match &rule.events {
                Pattern::Exactly(kind) => book.exactly.entry(kind.as_str().into()).or_default().push(at),
                Pattern::Below(above) => book.below.entry(above.as_str().into()).or_default().push(at),
                Pattern::Everything => book.everything.push(at),
            }
            book.rules.push(Entry {
                name: rule.name.clone(),
                version: rule.version,
                service: rule.service.clone(),
                enabled: rule.enabled,
                hold: rule.ordering.as_ref().is_some_and(|ordering| ordering.hold),
                program,
            });
        }
        (book, bad)
    }

    /// The rules for this kind, in the order in which they were given.
    fn for_kind(&self, kind: &str) -> Vec<usize> {
        let mut found: Vec<usize> = self.everything.clone();
        found.extend(self.exactly.get(kind).into_iter().flatten());
        let dots = kind.match_indices('.').map(|(at, _)| &kind[..at]);
        found.extend(dots.filter_map(|above| self.below.get(above)).flatten());
        found.sort_unstable();
        found
    }

    /// What the rules make of an event. `view` is asked for once at most; `event` is the event as it came. Each rule may
    /// take as much as one rendering may, so this belongs on a thread that may be held up.
    pub fn apply<'v>(&self, kind: &str, view: impl FnOnce() -> View<'v>, event: &Bytes) -> Matched {
        self.apply_within(kind, view, event, None).unwrap_or_default()
    }

    /// The same for a place that can't wait: nothing if all rules together take more than `work` steps.
    pub fn apply_quickly<'v>(
        &self,
        kind: &str,
        view: impl FnOnce() -> View<'v>,
        event: &Bytes,
        work: u64,
    ) -> Option<Matched> {
        self.apply_within(kind, view, event, Some(work))
    }

    fn apply_within<'v>(
        &self,
        kind: &str,
        view: impl FnOnce() -> View<'v>,
        event: &Bytes,
        mut work: Option<u64>,
    ) -> Option<Matched> {
        let (found, mut matched) = (self.for_kind(kind), Matched::default());
        if found.is_empty() {
            return Some(matched);
        }
        let view = view();
        for entry in found.into_iter().map(|at| &self.rules[at]) {
            let Entry { name, version, service, enabled, hold, program } = entry;
            let meter = work.map_or_else(Meter::default, Meter::with_work);
            matched.tally.considered += 1;
            // A panic stays with its rule. Whether its filter takes the event is not known then: rather too much than too little.
            let applied = caught(|| {
                #[cfg(seawall_sabotage)]
                super::caught::sabotage(name.as_str());
                apply(program, &view, event, &meter)
            });
            if let Some(left) = &mut work {
                if meter.is_spent() {
                    return None;
                }
                *left -= meter.work();
            }
            let panicked = applied.is_err();
            let (order, request) = match applied.unwrap_or_else(|panic| Ok((None, Err(over(&panic))))) {
                Ok(made) => made,
                Err(verdict) => {
                    matched.tally.filtered += 1;
                    matched.tally.unclear += u32::from(verdict != Verdict::NoMatch);
                    continue;
                }
            };
            matched.made.push(Made {
                panicked,
                rule: (name.clone(), *version),
                service: service.clone(),
                enabled: *enabled,
                request,
                hold: *hold && order.is_some(),
                order,
            });
        }
        Some(matched)
    }
}

impl Made {
    /// What it is called, if there is no request.
    pub(super) fn reason(&self) -> Reason {
        if self.panicked { Reason::Poison } else { Reason::Impossible }
    }
}

type Rendered = (Option<String>, Result<Request, Mistake>);

/// What one rule makes of an event: the order that it belongs to and the request, or that its filter does not take it.
fn apply(program: &Program, view: &View<'_>, event: &Bytes, meter: &Meter) -> Result<Rendered, Verdict> {
    match program.filter().map_or(Verdict::Match, |filter| filter.judge(view, meter)) {
        Verdict::Match => {}
        // Rather too much than too little: somebody has to see that the filter could not tell.
        Verdict::TooCostly(reason) => return Ok((None, Err(Mistake { place: "filter".into(), reason }))),
        verdict => return Err(verdict),
    }
    Ok(match program.order(view, meter) {
        Ok(order) => (order, program.render(view, event, meter)),
        Err(mistake) => (None, Err(mistake)),
    })
}

fn over(panic: &Panicked) -> Mistake {
    Mistake { place: "rule".into(), reason: panic.to_string() }
}

/// Compiles a rule; every mistake in it at once. Used before a rule is kept, too.
pub fn compile(rule: &Rule) -> Result<Program, Vec<Mistake>> {
    let body = match rule.body.as_deref().map(serde_json::from_str::<Json>).transpose() {
        Ok(body) => body,
        Err(error) => {
            return Err(vec![Mistake { place: "body".into(), reason: format!("it is no JSON: {error}") }]);
        }
    };
    Program::new(&RuleText {
        filter: rule.filter.as_deref(),
        method: &rule.method,
        path: &rule.path,
        headers: &rule.headers,
        body: body.as_ref(),
        order: rule.ordering.as_ref().map(|ordering| &*ordering.key),
    })
}

/// A rule that can't be compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadRule {
    /// Which.
    pub rule: Slug,
    /// Why.
    pub mistakes: Vec<Mistake>,
}

impl fmt::Display for BadRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule `{}` is left out", self.rule)?;
        self.mistakes.iter().try_for_each(|mistake| write!(f, "; {mistake}"))
    }
}
