//! Trying a rule before it is at work: on one event, or over those that came lately.

use std::sync::Arc;

use super::hub::{Hub, Refused};
use super::render_pool::{QUICK_BYTES_MAX, QUICK_WORK_MAX, RenderPool};
use super::rulebook::compile;
use crate::domain::event::Event;
use crate::domain::rule::Rule;
use crate::port::store::{EventFilter, PageAt, Store};
use crate::port::transport::Transport;
use crate::render::{Meter, Mistake, Program, Request, Verdict, View};

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
    pub async fn evaluate(&self, rule: &Rule, event: &Event) -> Result<Evaluation, Refused> {
        let (rule, event) = (rule.clone(), event.clone());
        self.trials.run_soon(move || Ok(evaluate(&rule, &program(&rule)?, &event))).await?
    }

    /// What a rule would make of the events that came lately, up to so many, from these sources or from anywhere.
    pub async fn backtest(
        &self,
        rule: &Rule,
        most: usize,
        sources: Option<Vec<String>>,
    ) -> Result<Backtest, Refused> {
        let (program, rule) = (Arc::new(program(rule)?), Arc::new(rule.clone()));
        let (mut test, mut from) = (Backtest::default(), None);
        let filter = EventFilter { kind: Some(rule.events.clone()), sources, unmatched: false };
        loop {
            let size = PAGE.min(most - test.events);
            let page = self.store.events(filter.clone(), PageAt { from, size }).await?;
            // One by one, so that whoever tries another rule has a turn in between.
            for event in page.items {
                let (rule, program) = (rule.clone(), program.clone());
                let tried = move || (evaluate(&rule, &program, &event), event.id);
                let (evaluation, event) = self.trials.run_soon(tried).await?;
                test.count(event, evaluation);
            }
            from = page.next;
            if from.is_none() || test.events >= most {
                return Ok(test);
            }
        }
    }
}

impl Backtest {
    fn count(&mut self, event: String, evaluation: Evaluation) {
        self.events += 1;
        match evaluation {
            // The store was asked for those of its kind.
            Evaluation::OtherKind => return,
            Evaluation::Filtered(_) => self.filtered += 1,
            Evaluation::Unrenderable(_) => self.unrenderable += 1,
            Evaluation::Request { .. } => self.requests += 1,
        }
        if self.samples.len() < SAMPLES {
            self.samples.push((event, evaluation));
        }
    }
}

fn program(rule: &Rule) -> Result<Program, Refused> {
    compile(rule).map_err(|mistakes| {
        Refused::Wrong(mistakes.into_iter().map(|mistake| (mistake.place, mistake.reason)).collect())
    })
}

fn evaluate(rule: &Rule, program: &Program, event: &Event) -> Evaluation {
    if !rule.events.matches(event.kind.as_str()) {
        return Evaluation::OtherKind;
    }
    render(program, event, &Meter::default())
}

/// What a rule makes of an event that is kept, whatever its kind. What is costly goes to the pool.
pub(super) async fn render_in(
    pool: &RenderPool,
    program: &Arc<Program>,
    event: &Event,
) -> Result<Evaluation, Refused> {
    if event.payload.len() <= QUICK_BYTES_MAX {
        let meter = Meter::with_work(QUICK_WORK_MAX);
        let evaluation = render(program, event, &meter);
        if !meter.is_spent() {
            return Ok(evaluation);
        }
    }
    let (program, event) = (program.clone(), event.clone());
    Ok(pool.run(move || render(&program, &event, &Meter::default())).await?)
}

fn render(program: &Program, event: &Event, meter: &Meter) -> Evaluation {
    let view = View::of_payload(&event.id, event.kind.as_str(), &event.source, &event.payload);
    match program.filter().map_or(Verdict::Match, |filter| filter.judge(&view, meter)) {
        Verdict::Match => {}
        Verdict::NoMatch => return Evaluation::Filtered(None),
        Verdict::Missing(what) => return Evaluation::Filtered(Some(format!("the event has no `{what}`"))),
        Verdict::Wrong(reason) => return Evaluation::Filtered(Some(reason)),
        Verdict::TooCostly(reason) => {
            return Evaluation::Unrenderable(Mistake { place: "filter".into(), reason });
        }
    }
    let order = match program.order(&view, meter) {
        Ok(order) => order,
        Err(mistake) => return Evaluation::Unrenderable(mistake),
    };
    match program.render(&view, &event.payload, meter) {
        Ok(request) => Evaluation::Request { request, order },
        Err(mistake) => Evaluation::Unrenderable(mistake),
    }
}
