//! The rules that are at work, compiled.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use seawall::Clock;
use serde_json::Value as Json;

use crate::domain::delivery::DeadLetterReason;
use crate::domain::event_type::Pattern;
use crate::domain::rule::Rule;
use crate::domain::slug::Slug;
use crate::render::{
    FilterResult, Meter, RenderedRequest, RequestTemplate, RuleText, TemplateContext, TemplateError, WORK_MAX,
};
use crate::service::panics::{CaughtPanic, caught};
use crate::sync::RwLock;

/// The maximum number of steps of all rules together for one event: that of twenty rules that use up all of theirs. It ends
/// within a second of CPU, however many rules match the event.
pub(crate) const EVENT_WORK_MAX: u64 = 20 * WORK_MAX;

/// All compiled rules, shared by all who accept events.
///
/// They are found by the type of the event and the types above it, so that an event costs as much with a thousand rules for other
/// types as with none. Adding or removing one touches nothing else, so that the last of a hundred thousand costs as much as the
/// first. Applying rules blocks nobody: they are looked up first, and applied after that.
#[derive(Debug, Default)]
pub struct RuleSet {
    index: RwLock<Index>,
}

/// Rules in the order of their names.
type RulesByName = BTreeMap<Slug, Arc<CompiledRule>>;

#[derive(Debug, Default)]
struct Index {
    exactly: HashMap<Box<str>, RulesByName>,
    below: HashMap<Box<str>, RulesByName>,
    everything: RulesByName,
    /// The pattern under which each rule is stored.
    places: HashMap<Slug, Pattern>,
}

/// A rule with its compiled templates.
#[derive(Debug)]
pub(in crate::service) struct CompiledRule {
    pub(in crate::service) name: Slug,
    pub(in crate::service) version: u64,
    pub(in crate::service) service: Slug,
    enabled: bool,
    hold: bool,
    pub(in crate::service) program: RequestTemplate,
}

/// What all rules make of one event.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MatchResult {
    /// What each matching rule makes of it.
    pub deliveries: Vec<RenderedDelivery>,
    /// How many rules matched and how many rejected it.
    pub counts: MatchCounts,
}

/// What one rule makes of one event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RenderedDelivery {
    /// The name and the version of the rule.
    pub rule: (Slug, u64),
    /// The service that receives the request.
    pub service: Slug,
    /// Whether the rule is enabled; if not, the delivery is held.
    pub enabled: bool,
    /// The request, or the reason why there is none. Nothing is dropped silently.
    pub request: Result<RenderedRequest, TemplateError>,
    /// Whether there is none because the hub's own code panicked.
    pub panicked: bool,
    /// The ordering key, if the rule has an order.
    pub order: Option<String>,
    /// Whether later deliveries with the same key wait, if it becomes a dead letter.
    pub hold: bool,
}

/// The number of rules that matched an event and that rejected it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MatchCounts {
    /// The number of rules that match its type.
    pub considered: u32,
    /// The number of rules whose filter rejected it.
    pub filtered: u32,
    /// The number of these whose filter failed, because the event lacks something or does not fit.
    pub unclear: u32,
}

/// How long the rules took for an event, for telemetry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleTiming {
    /// When the rules began.
    pub began: SystemTime,
    /// When the rules ended.
    pub ended: SystemTime,
    /// The rules that matched.
    pub rules: Vec<Slug>,
}

impl RuleTiming {
    /// Measures the rules of an event from a time until now.
    #[must_use]
    pub fn since(began: SystemTime, clock: &Clock, rendered: &[RenderedDelivery]) -> Self {
        let rules = rendered.iter().map(|delivery| delivery.rule.0.clone()).collect();
        RuleTiming { began, ended: clock.wall(), rules }
    }
}

impl RuleSet {
    /// Compiles the rules. One that can't be compiled is left out and logged: it was checked when it was written, so another
    /// version of the hub wrote it.
    #[must_use]
    pub fn new(rules: &[Rule]) -> (Self, Vec<RuleCompileError>) {
        let (set, mut bad) = (RuleSet::default(), Vec::new());
        for rule in rules {
            match compile(rule) {
                Ok(program) => set.put(rule, program),
                Err(mistakes) => bad.push(RuleCompileError { rule: rule.name.clone(), mistakes }),
            }
        }
        (set, bad)
    }

    /// Adds a rule, in place of the one with its name.
    pub fn put(&self, rule: &Rule, program: RequestTemplate) {
        let entry = Arc::new(CompiledRule {
            name: rule.name.clone(),
            version: rule.version,
            service: rule.service.clone(),
            enabled: rule.enabled,
            hold: rule.ordering.as_ref().is_some_and(|ordering| ordering.hold),
            program,
        });
        let mut index = self.index.write();
        index.take_out(&rule.name);
        index.places.insert(rule.name.clone(), rule.events.clone());
        index.shelf(&rule.events).insert(rule.name.clone(), entry);
    }

    /// Removes a rule.
    pub fn remove(&self, name: &Slug) {
        self.index.write().take_out(name);
    }

    /// Returns the rule with this name.
    pub(in crate::service) fn find(&self, name: &Slug) -> Option<Arc<CompiledRule>> {
        let index = self.index.read();
        let rules = match index.places.get(name)? {
            Pattern::Exactly(kind) => index.exactly.get(kind.as_str()),
            Pattern::Below(above) => index.below.get(above.as_str()),
            Pattern::Everything => Some(&index.everything),
        };
        rules?.get(name).cloned()
    }

    /// Returns the rules for this type, in the order of their names.
    fn for_kind(&self, kind: &str) -> Vec<Arc<CompiledRule>> {
        let index = self.index.read();
        let dots = kind.match_indices('.').map(|(at, _)| &kind[..at]);
        let above = dots.filter_map(|above| index.below.get(above));
        let shelves = [&index.everything].into_iter().chain(index.exactly.get(kind)).chain(above);
        let mut found: Vec<Arc<CompiledRule>> = shelves.flat_map(BTreeMap::values).cloned().collect();
        drop(index);
        // Each shelf is in order already, and this sort knows how to make use of it.
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// What the rules make of an event. `view` is asked for once at most; `event` is the event as it came. Each rule may
    /// take as much as one rendering may, and all together [`EVENT_WORK_MAX`] steps, so this belongs on a thread that may be held up.
    /// When these are spent, each further rule that needs more is a dead letter that says so.
    pub fn apply<'v>(
        &self,
        kind: &str,
        view: impl FnOnce() -> TemplateContext<'v>,
        event: &Bytes,
    ) -> MatchResult {
        self.apply_within(kind, view, event, None).unwrap_or_default()
    }

    /// The same for a place that can't wait: nothing if all rules together take more than `work` steps.
    pub fn apply_quickly<'v>(
        &self,
        kind: &str,
        view: impl FnOnce() -> TemplateContext<'v>,
        event: &Bytes,
        work: u64,
    ) -> Option<MatchResult> {
        self.apply_within(kind, view, event, Some(work))
    }

    fn apply_within<'v>(
        &self,
        kind: &str,
        view: impl FnOnce() -> TemplateContext<'v>,
        event: &Bytes,
        quickly: Option<u64>,
    ) -> Option<MatchResult> {
        let (found, mut matched) = (self.for_kind(kind), MatchResult::default());
        if found.is_empty() {
            return Some(matched);
        }
        let view = view();
        let mut left = quickly.unwrap_or(EVENT_WORK_MAX);
        for entry in found {
            let CompiledRule { name, version, service, enabled, hold, program } = &*entry;
            let meter = Meter::with_work(left.min(WORK_MAX));
            matched.counts.considered += 1;
            // A panic stays with its rule. Whether its filter takes the event is not known then: rather too much than too little.
            let applied = caught(|| {
                #[cfg(seawall_sabotage)]
                crate::service::panics::sabotage(name.as_str());
                apply(program, &view, event, &meter)
            });
            if quickly.is_some() && meter.is_spent() {
                return None;
            }
            left -= meter.work();
            let panicked = applied.is_err();
            let (order, request) = match applied.unwrap_or_else(|panic| Ok((None, Err(over(&panic))))) {
                Ok(rendered) => rendered,
                Err(verdict) => {
                    matched.counts.filtered += 1;
                    matched.counts.unclear += u32::from(verdict != FilterResult::NoMatch);
                    continue;
                }
            };
            matched.deliveries.push(RenderedDelivery {
                panicked,
                rule: (name.clone(), *version),
                service: service.clone(),
                enabled: *enabled,
                request: request.map_err(|mistake| all_spent(&meter).unwrap_or(mistake)),
                hold: *hold && order.is_some(),
                order,
            });
        }
        Some(matched)
    }
}

impl Index {
    /// Returns the rules with this pattern.
    fn shelf(&mut self, events: &Pattern) -> &mut RulesByName {
        match events {
            Pattern::Exactly(kind) => self.exactly.entry(kind.as_str().into()).or_default(),
            Pattern::Below(above) => self.below.entry(above.as_str().into()).or_default(),
            Pattern::Everything => &mut self.everything,
        }
    }

    fn take_out(&mut self, name: &Slug) {
        let Some(events) = self.places.remove(name) else { return };
        let shelf = self.shelf(&events);
        shelf.remove(name);
        let is_empty = shelf.is_empty();
        match &events {
            Pattern::Exactly(kind) if is_empty => drop(self.exactly.remove(kind.as_str())),
            Pattern::Below(above) if is_empty => drop(self.below.remove(above.as_str())),
            _ => {}
        }
    }
}

impl RenderedDelivery {
    /// Returns the reason of the dead letter, if there is no request.
    pub(in crate::service) fn reason(&self) -> DeadLetterReason {
        if self.panicked { DeadLetterReason::Poison } else { DeadLetterReason::Impossible }
    }
}

type RenderResult = (Option<String>, Result<RenderedRequest, TemplateError>);

/// Applies one rule to an event: returns the ordering key and the request, or that the filter rejects it.
fn apply(
    program: &RequestTemplate,
    view: &TemplateContext<'_>,
    event: &Bytes,
    meter: &Meter,
) -> Result<RenderResult, FilterResult> {
    match program.filter().map_or(FilterResult::Match, |filter| filter.judge(view, meter)) {
        FilterResult::Match => {}
        // Rather too much than too little: somebody has to see that the filter could not tell.
        FilterResult::TooCostly(reason) => {
            return Ok((None, Err(TemplateError { place: "filter".into(), reason })));
        }
        verdict => return Err(verdict),
    }
    Ok(match program.order(view, meter) {
        Ok(order) => (order, program.render(view, event, meter)),
        Err(mistake) => (None, Err(mistake)),
    })
}

/// Returns the error for a rule that is not rendered, because the rules before it have used up the budget of the event.
fn all_spent(meter: &Meter) -> Option<TemplateError> {
    (meter.is_spent() && meter.work_max() < WORK_MAX).then(|| TemplateError {
        place: "rule".into(),
        reason: format!(
            "all rules together may spend {EVENT_WORK_MAX} steps of work on one event, and the rules before this one have left {} of \
             them, which is not enough. Let fewer rules look at such an event, or let them look at less of it",
            meter.work_max()
        ),
    })
}

fn over(panic: &CaughtPanic) -> TemplateError {
    TemplateError { place: "rule".into(), reason: panic.to_string() }
}

/// Compiles a rule, and returns all its mistakes at once. Also used before a rule is stored.
pub fn compile(rule: &Rule) -> Result<RequestTemplate, Vec<TemplateError>> {
    let body = match rule.body.as_deref().map(serde_json::from_str::<Json>).transpose() {
        Ok(body) => body,
        Err(error) => {
            return Err(vec![TemplateError {
                place: "body".into(),
                reason: format!("not valid JSON: {error}"),
            }]);
        }
    };
    RequestTemplate::new(&RuleText {
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
pub struct RuleCompileError {
    pub rule: Slug,
    /// All mistakes in its templates.
    pub mistakes: Vec<TemplateError>,
}

impl fmt::Display for RuleCompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule `{}` is left out", self.rule)?;
        self.mistakes.iter().try_for_each(|mistake| write!(f, "; {mistake}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::delivery::Schedule;
    use crate::domain::time::Millis;

    fn rule(name: &str, events: &str, version: u64) -> Rule {
        Rule {
            name: Slug::new(name).unwrap(),
            version,
            events: Pattern::new(events).unwrap(),
            filter: None,
            service: Slug::new("billing").unwrap(),
            method: "POST".into(),
            path: "/".into(),
            headers: Vec::new(),
            body: None,
            schedule: Schedule::default(),
            ordering: None,
            enabled: true,
            note: None,
            changed: Millis(0),
        }
    }

    fn put(set: &RuleSet, rule: &Rule) {
        set.put(rule, compile(rule).unwrap());
    }

    fn names(set: &RuleSet, kind: &str) -> Vec<(String, u64)> {
        set.for_kind(kind).iter().map(|entry| (entry.name.to_string(), entry.version)).collect()
    }

    /// HUB-3: registering a rule is work on that rule alone: no other one is compiled, copied or moved for it, however many there
    /// are.
    #[test]
    fn hub_3_a_rule_that_is_put_in_touches_no_other() {
        let set = RuleSet::default();
        for number in 0..1_000 {
            put(&set, &rule(&format!("rule-{number:04}"), "order.*", 1));
        }
        let before = set.for_kind("order.created");
        put(&set, &rule("rule-0500", "order.*", 2));
        put(&set, &rule("rule-1000", "order.created", 1));
        set.remove(&Slug::new("rule-0007").unwrap());
        let after = set.for_kind("order.created");
        let same = |entry: &&Arc<CompiledRule>| before.iter().any(|old| Arc::ptr_eq(old, entry));
        assert_eq!((after.len(), after.iter().filter(same).count()), (1_000, 998));
        assert_eq!(Arc::strong_count(&before[0]), 3, "there is one of it: in the set, and in two answers");
    }

    /// PRM-8: however many costly rules there are for an event, all together spend no more than [`EVENT_WORK_MAX`] steps. Further ones
    /// are dead letters that say so; those before them are served as ever.
    #[test]
    fn prm_8_all_rules_together_have_a_bound_on_one_event() {
        let set = RuleSet::default();
        let costly = Some("{\"n\": \"{{ ([1.5] * 100000)|map('round', 2)|sort|length }}\"}".to_owned());
        for number in 0..30 {
            put(&set, &Rule { body: costly.clone(), ..rule(&format!("rule-{number:02}"), "order.*", 1) });
        }
        put(&set, &Rule { body: Some("{\"n\": \"{{ data.n }}\"}".into()), ..rule("a-cheap", "order.*", 1) });
        let payload = Bytes::from_static(br#"{"data": {"n": 1}}"#);
        let view = || TemplateContext::of_payload("evt-1", "order.created", "shop", &payload);
        let rendered = set.apply("order.created", view, &payload).deliveries;
        let (cheap, costly) = rendered.split_first().unwrap();
        assert!(cheap.request.is_ok(), "{cheap:?}");
        let reasons: Vec<String> =
            costly.iter().map(|one| one.request.clone().unwrap_err().to_string()).collect();
        // The cheap one has spent a little of what the twentieth would have needed.
        assert!(reasons[..19].iter().all(|reason| reason.contains("what one rule may spend")), "{reasons:?}");
        assert!(reasons[19..].iter().all(|reason| reason.contains("all rules together")), "{reasons:?}");
        assert!(costly.iter().all(|one| one.reason() == DeadLetterReason::Impossible));
    }

    /// HUB-3: rules are applied in the order of their names, whatever they are for and whenever they came; one that changes what
    /// it is for is found there alone, and one that goes leaves nothing behind.
    #[test]
    fn hub_3_rules_are_found_in_the_order_of_their_names() {
        let set = RuleSet::default();
        for (name, events) in
            [("d", "*"), ("b", "order.created"), ("c", "order.*"), ("a", "*"), ("e", "other")]
        {
            put(&set, &rule(name, events, 1));
        }
        let named = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 1)).collect::<Vec<_>>();
        assert_eq!(names(&set, "order.created"), named(&["a", "b", "c", "d"]));
        assert_eq!(names(&set, "order.paid"), named(&["a", "c", "d"]));
        put(&set, &rule("b", "order.paid", 2));
        assert_eq!(names(&set, "order.created"), named(&["a", "c", "d"]));
        assert_eq!(names(&set, "order.paid")[1], ("b".into(), 2));
        for name in ["a", "b", "c", "d", "e"] {
            set.remove(&Slug::new(name).unwrap());
        }
        let index = set.index.read();
        assert!(index.exactly.is_empty() && index.below.is_empty() && index.places.is_empty());
    }
}
