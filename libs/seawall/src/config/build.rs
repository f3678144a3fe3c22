//! From settings to a guard. The defaults are filled in already; what is still missing has none.

use std::time::Duration;

use super::book::Named;
use super::layer::Report;
use super::resolve::Settings;
use super::tree::join;
use super::value::{Value, Wrong};
use crate::backoff::{Backoff, Jitter};
use crate::breaker::{Breaker, Scope};
use crate::budget::Budget;
use crate::bulkhead::{Adapt, Bulkhead};
use crate::chaos::Chaos;
use crate::config::Percent;
use crate::fallback::FallbackFilter;
use crate::fault::{Class, Fault, StatusSet, is_known_name, simple_name};
use crate::guard::{Guard, GuardBuilder};
use crate::hedge::Hedge;
use crate::rate::RateLimit;
use crate::retry::Retry;
use crate::timeout::CALL_TIMEOUT;

/// Settings that need another one beside them: `(section, setting, what it needs, why)`.
const NEEDS: &[(&str, &str, &str, &str)] = &[
    ("rate_limit", "rate_limit", "rate_limit.calls", "it does not say how many calls"),
    ("breaker", "breaker.slow_rate", "breaker.slow_after", "it does not say from when on a call is slow"),
    (
        "hedge",
        "hedge.percentile",
        "hedge.until_known",
        "it does not say when to start until enough answers are known",
    ),
    ("hedge", "hedge.until_known", "hedge.percentile", "it does not say by which share of the answers"),
];

/// As many guards as a family may have.
const KEYS_MAX: u32 = 1_000_000;

/// Says which settings are missing, and what only a registry would see.
pub(super) fn refuse_gaps(named: &Named, settings: &Settings, report: &mut Report) {
    let gaps = NEEDS.iter().filter(|(section, ..)| settings.is_on(section));
    for (_, path, needed, why) in gaps {
        if settings.get(path).is_some() && settings.get(needed).is_none() {
            missing(named, settings, path, needed, why, report);
        }
    }
    if let Some(max) = settings.count("keys_max").filter(|max| !(1..=KEYS_MAX).contains(max)) {
        let place = settings.place_of("keys_max").unwrap_or(&named.place);
        let reason = format!("{max} guards are not between 1 and {KEYS_MAX}");
        let wrong = Wrong::new(reason, "leave it out for one guard without keys");
        report.wrong(place, join(&named.path, "keys_max"), wrong);
    }
    let hedge = |path: &str| settings.get(path).is_none();
    if settings.is_on("hedge")
        && hedge("hedge.after")
        && hedge("hedge.percentile")
        && hedge("hedge.until_known")
    {
        missing(named, settings, "hedge", "hedge.after", "it does not say when to start", report);
    }
}

fn missing(named: &Named, settings: &Settings, path: &str, needed: &str, why: &str, report: &mut Report) {
    let place = settings.place_of(path).unwrap_or(&named.place);
    let name = needed.rsplit('.').next().unwrap_or(needed);
    report.wrong(place, join(&named.path, path), Wrong::new(why, format!("add `{name}`")));
}

/// Says which names of faults nothing carries.
pub(super) fn warn_of_names(named: &Named, settings: &Settings, report: &mut Report) {
    for item in settings.items() {
        let Value::Names(names) = &item.value else { continue };
        let place = item.origin.place().unwrap_or(&named.place);
        for name in names.iter().filter(|name| !is_known_name(name)) {
            let reason = format!(
                "no fault is called `{}` yet, so the name matches nothing; name one with `Fault::named`, or announce it \
                 with `Loader::fault_names`",
                simple_name(name)
            );
            report.warn(place, join(&named.path, item.key.path), reason);
        }
    }
}

/// The longest time that the breaker can see: of an attempt, or of a call where it counts calls.
pub(super) fn longest_counted(s: &Settings) -> Option<Duration> {
    let call = match s.value("call_timeout") {
        Some(Value::Time(call)) => Some(*call),
        Some(Value::None) => None,
        // A timeout that follows from the attempts is longer than each of them.
        _ => s.time("attempt_timeout").is_none().then_some(CALL_TIMEOUT),
    };
    if s.word("breaker.scope") == "call" { call } else { s.time("attempt_timeout").or(call) }
}

/// How long an attempt may have to wait before it starts.
pub(super) fn longest_queue(s: &Settings) -> Duration {
    let waits = ["rate_limit", "bulkhead"].into_iter().filter(|section| s.is_on(section));
    let waits = waits.filter_map(|section| s.time(&format!("{section}.max_wait")));
    waits.fold(Duration::ZERO, Duration::saturating_add)
}

/// The guard that these settings describe.
pub(super) fn builder(name: &str, s: &Settings) -> GuardBuilder {
    let mut builder = Guard::builder(name).no_retry();
    match s.get("call_timeout").map(|item| &item.value) {
        Some(Value::Time(timeout)) => builder = builder.call_timeout(*timeout),
        Some(Value::None) => builder = builder.no_call_timeout(),
        _ => {}
    }
    if let Some(timeout) = s.time("attempt_timeout") {
        builder = builder.attempt_timeout(timeout);
    }
    if s.is_on("retry") {
        builder = builder.retry(retry(s));
    }
    if s.is_on("breaker") {
        builder = builder.breaker(breaker(s));
    }
    if s.is_on("rate_limit") {
        builder = builder.rate_limit(rate_limit(s));
    }
    if s.is_on("bulkhead") {
        builder = builder.bulkhead(bulkhead(s));
    }
    if let Some(hedge) = hedge(s).filter(|_| s.is_on("hedge")) {
        builder = builder.hedge(hedge);
    }
    if s.is_on("chaos") {
        builder = builder.chaos(chaos(s));
    }
    builder.fallback_when(fallback(s))
}

fn retry(s: &Settings) -> Retry {
    let mut retry = Retry::max_attempts(s.count("retry.max_attempts").unwrap_or(1)).backoff(backoff(s));
    if let Some(words) = s.words("retry.on_classes") {
        retry = retry.on_classes(words.iter().filter_map(|word| class(word)));
    }
    if let Some(Value::Statuses(statuses)) = s.value("retry.on_status") {
        retry = retry.on_status(StatusSet::clone(statuses));
    }
    if let Some(names) = s.names("retry.on_names") {
        retry = retry.on_names(names);
    }
    if let Some(names) = s.names("retry.ignore_names") {
        retry = retry.ignore_names(names);
    }
    if s.switch("retry.on_rejection") {
        retry = retry.on_rejection();
    }
    if s.switch("retry.leave_to_outer") {
        retry = retry.leave_to_outer();
    }
    if let Some(cap) = s.time("retry.retry_after_cap") {
        retry = retry.retry_after_cap(cap);
    }
    if s.is_on("retry.budget") { retry.budget(budget(s)) } else { retry.no_budget() }
}

pub(super) fn backoff(s: &Settings) -> Backoff {
    let base = s.time("retry.backoff.base").unwrap_or_default();
    let mut backoff = match s.word("retry.backoff.shape") {
        "constant" => Backoff::constant(base),
        "linear" => Backoff::linear(base),
        _ => match s.number("retry.backoff.multiplier") {
            Some(multiplier) => Backoff::exponential(base).multiplier(multiplier),
            None => Backoff::exponential(base),
        },
    };
    if let Some(cap) = s.time("retry.backoff.cap") {
        backoff = backoff.cap(cap);
    }
    if let Some(base) = s.time("retry.backoff.throttled_base") {
        backoff = backoff.throttled_base(base);
    }
    backoff.jitter(match s.word("retry.backoff.jitter") {
        "none" => Jitter::None,
        "equal" => Jitter::Equal,
        "decorrelated" => Jitter::Decorrelated,
        _ => Jitter::Full,
    })
}

fn budget(s: &Settings) -> Budget {
    if let (Some(tokens), Some(ratio)) =
        (s.number("retry.budget.tokens"), s.number("retry.budget.token_ratio"))
    {
        return Budget::tokens(tokens).token_ratio(ratio);
    }
    let mut budget = Budget::default();
    if let Some(share) = s.share("retry.budget.share_of_calls") {
        budget = Budget::share_of_calls(share);
    }
    if let Some(window) = s.time("retry.budget.window") {
        budget = budget.window(window);
    }
    match s.number("retry.budget.floor_per_second") {
        Some(floor) => budget.floor_per_second(floor),
        None => budget,
    }
}

fn breaker(s: &Settings) -> Breaker {
    let mut breaker = match (s.share("breaker.failure_rate"), s.count("breaker.consecutive_failures")) {
        (Some(rate), _) => Breaker::failure_rate(rate),
        (None, Some(failures)) => Breaker::consecutive_failures(failures),
        (None, None) => Breaker::default(),
    };
    if let Some(calls) = s.count("breaker.over_calls") {
        breaker = breaker.over_calls(calls);
    }
    if let Some(time) = s.time("breaker.over_time") {
        breaker = breaker.over_time(time);
    }
    if let Some(calls) = s.count("breaker.minimum_calls") {
        breaker = breaker.minimum_calls(calls);
    }
    if let (Some(after), Some(share)) = (s.time("breaker.slow_after"), s.share("breaker.slow_rate")) {
        breaker = breaker.slow_after(after).slow_rate(share);
    }
    if let Some(cooldown) = s.time("breaker.cooldown") {
        breaker = breaker.cooldown(cooldown);
    }
    if let (Some(growth), Some(max)) = (s.number("breaker.cooldown_growth"), s.time("breaker.cooldown_max")) {
        breaker = breaker.cooldown_growth(growth).cooldown_max(max);
    }
    if let Some(jitter) = s.share("breaker.cooldown_jitter") {
        breaker = breaker.cooldown_jitter(jitter);
    }
    probing(breaker, s)
}

/// How it comes back.
fn probing(mut breaker: Breaker, s: &Settings) -> Breaker {
    let probes = s.count("breaker.probes").unwrap_or(crate::breaker::PROBES);
    breaker = match s.word("breaker.judge_probes") {
        "together" => breaker.probes(probes).judge_probes_together(),
        _ => breaker
            .probes(probes)
            .close_after(s.count("breaker.close_after").unwrap_or(crate::breaker::SUCCESSES)),
    };
    if let Some(timeout) = s.time("breaker.probe_timeout") {
        breaker = breaker.probe_timeout(timeout);
    }
    if let Some(ramp) = s.time("breaker.ramp") {
        breaker = breaker.ramp(ramp);
    }
    if s.switch("breaker.automatic_half_open") {
        breaker = breaker.automatic_half_open();
    }
    if let Some(threshold) = s.time("breaker.abandoned_after") {
        breaker = breaker.abandoned_after(threshold);
    }
    if let Some(names) = s.names("breaker.record_names") {
        breaker = breaker.record_names(names);
    }
    if let Some(names) = s.names("breaker.ignore_names") {
        breaker = breaker.ignore_names(names);
    }
    breaker.scope(if s.word("breaker.scope") == "call" { Scope::Call } else { Scope::Attempt })
}

fn rate_limit(s: &Settings) -> RateLimit {
    // A limit without a number has been refused; this one is never used.
    let mut limit = RateLimit::calls(s.count("rate_limit.calls").unwrap_or(1));
    if let Some(period) = s.time("rate_limit.per") {
        limit = limit.per(period);
    }
    if let Some(burst) = s.count("rate_limit.burst") {
        limit = limit.burst(burst);
    }
    limit.max_wait(s.time("rate_limit.max_wait").unwrap_or_default())
}

fn bulkhead(s: &Settings) -> Bulkhead {
    let calls = s.count("bulkhead.max_calls").unwrap_or(crate::bulkhead::MAX_CALLS);
    let mut bulkhead = Bulkhead::max_calls(calls);
    let max_wait = s.time("bulkhead.max_wait").filter(|wait| !wait.is_zero());
    if let Some(wait) = max_wait {
        bulkhead = bulkhead.max_wait(wait);
    }
    if let Some(waiting) = s.count("bulkhead.max_waiting") {
        bulkhead = bulkhead.max_waiting(waiting);
    }
    if s.is_on("bulkhead.adaptive") {
        let (min, max) = (s.count("bulkhead.adaptive.min"), s.count("bulkhead.adaptive.max"));
        let (min, max) = (min.unwrap_or(1), max.unwrap_or(calls));
        bulkhead = bulkhead.adaptive(match s.word("bulkhead.adaptive.by") {
            "timeouts" => Adapt::Timeouts { min, max },
            _ => Adapt::Latency { min, max },
        });
    }
    bulkhead
}

fn hedge(s: &Settings) -> Option<Hedge> {
    let hedge = match (s.time("hedge.after"), s.share("hedge.percentile"), s.time("hedge.until_known")) {
        (Some(after), ..) => Hedge::after(after),
        (None, Some(share), Some(until_known)) => Hedge::percentile(share).until_known(until_known),
        _ => return None,
    };
    Some(hedge.max_hedges(s.count("hedge.max_hedges").unwrap_or(crate::hedge::MAX_HEDGES)))
}

fn fallback(s: &Settings) -> FallbackFilter {
    let words = s.words("fallback.on").unwrap_or_default();
    let when = FallbackFilter::classes(words.iter().filter_map(|word| class(word)));
    if words.contains(&"rejected") { when.or_rejections() } else { when }
}

fn chaos(s: &Settings) -> Chaos {
    let share = |path| s.share(path).unwrap_or(Percent::from(0));
    Chaos::new()
        .fault_rate(share("chaos.fault_rate"))
        .fault(fault(s.word("chaos.fault")))
        .hang_rate(share("chaos.hang_rate"))
        .slow_rate(share("chaos.slow_rate"))
        .slow_by(s.time("chaos.slow_by").unwrap_or_default())
        .enabled(s.switch("chaos.enabled"))
}

fn class(word: &str) -> Option<Class> {
    Some(match word {
        "business" => Class::Business,
        "io" => Class::Io,
        "timeout" => Class::Timeout,
        "protocol" => Class::Protocol,
        "system" => Class::System,
        _ => return None,
    })
}

fn fault(word: &str) -> Fault {
    match word {
        "unreachable" => Fault::unreachable(),
        "timeout" => Fault::timeout(),
        "protocol" => Fault::protocol(),
        "throttled" => Fault::throttled(),
        "system" => Fault::system(),
        "business" => Fault::business(),
        _ => Fault::io(),
    }
}

impl Settings {
    fn value(&self, path: &str) -> Option<&Value> {
        self.get(path).map(|item| &item.value)
    }

    fn time(&self, path: &str) -> Option<Duration> {
        if let Some(Value::Time(time)) = self.value(path) { Some(*time) } else { None }
    }

    fn share(&self, path: &str) -> Option<Percent> {
        if let Some(Value::Share(share)) = self.value(path) { Some(Percent::exact(*share)) } else { None }
    }

    pub(super) fn count(&self, path: &str) -> Option<u32> {
        if let Some(Value::Count(count)) = self.value(path) { Some(*count) } else { None }
    }

    fn number(&self, path: &str) -> Option<f64> {
        if let Some(Value::Number(number)) = self.value(path) { Some(*number) } else { None }
    }

    fn word(&self, path: &str) -> &'static str {
        if let Some(Value::Word(word)) = self.value(path) { word } else { "" }
    }

    fn words(&self, path: &str) -> Option<&[&'static str]> {
        if let Some(Value::Words(words)) = self.value(path) { Some(words) } else { None }
    }

    fn names(&self, path: &str) -> Option<&[String]> {
        if let Some(Value::Names(names)) = self.value(path) { Some(names) } else { None }
    }

    pub(super) fn switch(&self, path: &str) -> bool {
        matches!(self.value(path), Some(Value::Switch(true)))
    }
}
