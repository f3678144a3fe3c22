//! Trying a rule before it is at work: on one event, or over those that came lately.

use serde_json::Value as Json;

use super::hub::{Hub, Refused};
use super::rulebook::compile;
use crate::domain::event::Event;
use crate::domain::rule::Rule;
use crate::port::store::{EventFilter, PageAt, Store};
use crate::port::transport::Transport;
use crate::render::{Mistake, Program, Request, Said, Verdict, View};

/// What a rule makes of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Evaluation {
    /// The event is of another kind.
    OtherKind,
    /// The filter does not take it; the reason is there if the event lacks something.
    Filtered(Option<String>),
    /// It takes it, and no request can be made of it: this would be a dead letter.
    Unrenderable(Mistake),
    /// The exact request.
    Request {
        /// What is sent.
        request: Request,
        /// What it belongs together with, if the rule keeps an order.
        order: Option<String>,
    },
}

/// What a rule makes of the events that came lately.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Backtest {
    /// So many events of its kind were looked at.
    pub events: usize,
    /// That the filter does not take.
    pub filtered: usize,
    /// Of which no request can be made, and the first of them with its reason.
    pub unrenderable: usize,
    /// Requests.
    pub requests: usize,
    /// The first of each, with the event's id.
    pub samples: Vec<(String, Evaluation)>,
}

/// A backtest looks at so many events at most.
pub const BACKTEST_MAX: usize = 1_000;
/// And shows so many.
const SAMPLES: usize = 10;
const PAGE: usize = 100;

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// What a rule, kept or not, would make of an event.
    pub fn evaluate(&self, rule: &Rule, event: &Event) -> Result<Evaluation, Refused> {
        Ok(evaluate(rule, &program(rule)?, event))
    }

    /// What a rule would make of the events that came lately, up to so many, from these sources or from anywhere.
    pub async fn backtest(
        &self,
        rule: &Rule,
        most: usize,
        sources: Option<Vec<String>>,
    ) -> Result<Backtest, Refused> {
        let program = program(rule)?;
        let (mut test, mut from) = (Backtest::default(), None);
        let filter = EventFilter { kind: Some(rule.events.clone()), sources, unmatched: false };
        loop {
            let size = PAGE.min(most - test.events);
            let page = self.store.events(filter.clone(), PageAt { from, size }).await?;
            for event in &page.items {
                test.count(event, evaluate(rule, &program, event));
            }
            from = page.next;
            if from.is_none() || test.events >= most {
                return Ok(test);
            }
        }
    }
}

impl Backtest {
    fn count(&mut self, event: &Event, evaluation: Evaluation) {
        self.events += 1;
        match evaluation {
            // The store was asked for those of its kind.
            Evaluation::OtherKind => return,
            Evaluation::Filtered(_) => self.filtered += 1,
            Evaluation::Unrenderable(_) => self.unrenderable += 1,
            Evaluation::Request { .. } => self.requests += 1,
        }
        if self.samples.len() < SAMPLES {
            self.samples.push((event.id.clone(), evaluation));
        }
    }
}

fn program(rule: &Rule) -> Result<Program, Refused> {
    compile(rule).map_err(|mistakes| {
        Refused::Wrong(mistakes.into_iter().map(|mistake| (mistake.place, mistake.reason)).collect())
    })
}

pub(super) fn evaluate(rule: &Rule, program: &Program, event: &Event) -> Evaluation {
    if !rule.events.matches(event.kind.as_str()) {
        return Evaluation::OtherKind;
    }
    render(program, event)
}

/// What a rule makes of an event that is kept, whatever its kind.
pub(super) fn render(program: &Program, event: &Event) -> Evaluation {
    let view = view_of(event);
    match program.filter().map_or(Verdict::Match, |filter| filter.judge(&view)) {
        Verdict::Match => {}
        Verdict::NoMatch => return Evaluation::Filtered(None),
        Verdict::Missing(what) => return Evaluation::Filtered(Some(format!("the event has no `{what}`"))),
        Verdict::Wrong(reason) => return Evaluation::Filtered(Some(reason)),
    }
    let order = match program.order(&view) {
        Ok(order) => order,
        Err(mistake) => return Evaluation::Unrenderable(mistake),
    };
    match program.render(&view, &event.payload) {
        Ok(request) => Evaluation::Request { request, order },
        Err(mistake) => Evaluation::Unrenderable(mistake),
    }
}

/// An event that is kept, as expressions see it: the same as when it came.
fn view_of(event: &Event) -> View {
    let whole: Json = serde_json::from_slice(&event.payload).unwrap_or_default();
    let extensions = whole["extensions"].as_object();
    let extensions: Vec<(String, Json)> =
        extensions.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect();
    View::new(&Said {
        id: &event.id,
        kind: event.kind.as_str(),
        source: &event.source,
        time: whole["time"].as_str().unwrap_or_default(),
        subject: whole["subject"].as_str(),
        extensions: &extensions,
        data: &whole["data"],
    })
}
