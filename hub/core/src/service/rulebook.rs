//! The rules that are at work, compiled.

use std::fmt;

use serde_json::Value as Json;

use crate::domain::event_type::Pattern;
use crate::domain::rule::Rule;
use crate::domain::slug::Slug;
use crate::render::{Mistake, Program, Request, RuleText, Verdict, View};

/// The rules that are at work, compiled: made anew when one changes, and shared by all who accept events.
#[derive(Debug, Default)]
pub struct Rulebook {
    rules: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    name: Slug,
    version: u64,
    service: Slug,
    events: Pattern,
    program: Program,
}

/// What the rules make of an event.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Matched {
    /// The requests that are to be made.
    pub requests: Vec<(Slug, u64, Slug, Request)>,
    /// How many rules said what.
    pub tally: Tally,
    /// Rules whose request could not be made of this event, and why. Nothing is dropped silently.
    pub unrendered: Vec<(Slug, u64, Slug, Mistake)>,
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

impl Rulebook {
    /// Compiles the rules that are enabled. One that can't be compiled is left out and told: it was checked when it was
    /// written, so another version of the hub wrote it.
    #[must_use]
    pub fn new(rules: &[Rule]) -> (Self, Vec<BadRule>) {
        let (mut book, mut bad) = (Rulebook::default(), Vec::new());
        for rule in rules.iter().filter(|rule| rule.enabled) {
            match compile(rule) {
                Ok(program) => book.rules.push(Entry {
                    name: rule.name.clone(),
                    version: rule.version,
                    service: rule.service.clone(),
                    events: rule.events.clone(),
                    program,
                }),
                Err(mistakes) => bad.push(BadRule { rule: rule.name.clone(), mistakes }),
            }
        }
        (book, bad)
    }

    /// What the rules make of an event.
    #[must_use]
    pub fn apply(&self, kind: &str, view: &View, event: &Json) -> Matched {
        let mut matched = Matched::default();
        for Entry { name, version, service, program, .. } in
            self.rules.iter().filter(|rule| rule.events.matches(kind))
        {
            matched.tally.considered += 1;
            match program.filter().map_or(Verdict::Match, |filter| filter.judge(view)) {
                Verdict::Match => {}
                verdict => {
                    matched.tally.filtered += 1;
                    matched.tally.unclear += u32::from(verdict != Verdict::NoMatch);
                    continue;
                }
            }
            match program.render(view, event) {
                Ok(request) => matched.requests.push((name.clone(), *version, service.clone(), request)),
                Err(mistake) => matched.unrendered.push((name.clone(), *version, service.clone(), mistake)),
            }
        }
        matched
    }
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
