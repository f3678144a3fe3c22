//! Trying a rule before it is at work: on one event, or over those that came lately.

use std::sync::Arc;

use super::rule_set::compile;
use crate::domain::event::Event;
use crate::domain::rule::Rule;
use crate::port::store::{EventFilter, PageRequest, Store};
use crate::port::transport::Transport;
use crate::render::{FilterResult, Meter, RenderedRequest, RequestTemplate, TemplateContext, TemplateError};
use crate::service::handles::RegistryHandle;
use crate::service::shared::ChangeError;

/// What a rule would make of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Evaluation {
    /// The rule does not match the type of the event.
    OtherKind,
    /// The filter rejects the event; the reason is set if the event lacks something.
    Filtered(Option<String>),
    /// The filter passes, but no request can be rendered: this would be a dead letter.
    Unrenderable(TemplateError),
    /// The exact request.
    Request {
        /// The request to send.
        request: RenderedRequest,
        /// The ordering key, if the rule has an order.
        order: Option<String>,
    },
}

/// What a rule would make of recent events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BacktestReport {
    /// The number of events that match its type.
    pub events: usize,
    /// The number of events that the filter rejects.
    pub filtered: usize,
    /// The number of events for which no request can be rendered.
    pub unrenderable: usize,
    /// The number of requests.
    pub requests: usize,
    /// The first results of each kind, with the id of the event.
    pub samples: Vec<(String, Evaluation)>,
}

/// The maximum number of events in a backtest.
pub const BACKTEST_MAX: usize = 1_000;
/// The maximum number of samples of a backtest.
const SAMPLES: usize = 10;
const PAGE: usize = 100;

impl<S: Store + Clone, T: Transport> RegistryHandle<S, T> {
    /// Evaluates a rule, stored or not, on an event.
    pub async fn evaluate(&self, rule: &Rule, event: &Event) -> Result<Evaluation, ChangeError> {
        let (rule, event) = (rule.clone(), event.clone());
        self.core.evaluations.run_soon(move || Ok(evaluate(&rule, &program(&rule)?, &event))).await?
    }

    /// Evaluates a rule on recent events, up to a number, from these sources or from all.
    pub async fn backtest(
        &self,
        rule: &Rule,
        limit: usize,
        sources: Option<Vec<String>>,
    ) -> Result<BacktestReport, ChangeError> {
        let (program, rule) = (Arc::new(program(rule)?), Arc::new(rule.clone()));
        let (mut test, mut from) = (BacktestReport::default(), None);
        let filter = EventFilter { kind: Some(rule.events.clone()), sources, unmatched: false };
        loop {
            let size = PAGE.min(limit - test.events);
            let page = self.core.store.events(filter.clone(), PageRequest { from, size }).await?;
            // One by one, so that other evaluations get a turn in between.
            for event in page.items {
                let (rule, program) = (rule.clone(), program.clone());
                let tried = move || (evaluate(&rule, &program, &event), event.id);
                let (evaluation, event) = self.core.evaluations.run_soon(tried).await?;
                test.count(event, evaluation);
            }
            from = page.next;
            if from.is_none() || test.events >= limit {
                return Ok(test);
            }
        }
    }
}

impl BacktestReport {
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

fn program(rule: &Rule) -> Result<RequestTemplate, ChangeError> {
    compile(rule).map_err(|mistakes| {
        ChangeError::Wrong(mistakes.into_iter().map(|mistake| (mistake.place, mistake.reason)).collect())
    })
}

fn evaluate(rule: &Rule, program: &RequestTemplate, event: &Event) -> Evaluation {
    if !rule.events.matches(event.kind.as_str()) {
        return Evaluation::OtherKind;
    }
    render(program, event, &Meter::default())
}

fn render(program: &RequestTemplate, event: &Event, meter: &Meter) -> Evaluation {
    let view = TemplateContext::of_payload(&event.id, event.kind.as_str(), &event.source, &event.payload);
    match program.filter().map_or(FilterResult::Match, |filter| filter.judge(&view, meter)) {
        FilterResult::Match => {}
        FilterResult::NoMatch => return Evaluation::Filtered(None),
        FilterResult::Missing(what) => {
            return Evaluation::Filtered(Some(format!("the event has no `{what}`")));
        }
        FilterResult::Wrong(reason) => return Evaluation::Filtered(Some(reason)),
        FilterResult::TooCostly(reason) => {
            return Evaluation::Unrenderable(TemplateError { place: "filter".into(), reason });
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
