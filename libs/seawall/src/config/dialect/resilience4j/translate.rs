//! The same in our words, with the defaults of resilience4j where it says nothing.

use std::time::Duration;

use super::super::super::book::Named;
use super::super::super::layer::{Item, Layer, Report};
use super::super::super::tree::join;
use super::super::super::value::Value;
use super::super::super::{Origin, Place};
use super::{DIALECT, Setting};
use crate::{millis, secs};

/// The line before a bulkhead has no bound there; this is the largest that we have.
const WAITING_MAX: u32 = 1_000_000;
/// Waits and cooldowns that grow have no bound there.
const GROWTH_MAX: Duration = Duration::from_secs(86_400);
/// How fast waits and cooldowns grow where it is not said.
const MULTIPLIER: f64 = 1.5;
/// How much of a wait is left to chance where it is not said.
const RANDOMIZED: f64 = 0.5;
/// The shortest period of a rate limit.
const PERIOD_MIN: Duration = Duration::from_millis(1);
/// Calls per shortest period that are as good as no limit.
const CALLS_MAX: u64 = 100_000;

/// One guard from the modules that have an instance of its name.
pub(super) fn layer(
    modules: &[(&'static str, Place, Vec<Setting>)],
    guard: &Named,
    report: &mut Report,
) -> Layer {
    let mut layer = Layer::default();
    for (module, place, settings) in modules {
        let mut translation = Translation { settings, place, guard, items: &mut layer.items, report };
        match *module {
            "circuitbreaker" => translation.circuitbreaker(),
            "retry" => translation.retry(),
            "timelimiter" => translation.timelimiter(),
            "bulkhead" => translation.bulkhead(),
            _ => translation.ratelimiter(),
        }
    }
    bound_calls(modules, guard, &mut layer, report);
    layer
}

/// There is no call timeout there, so ours must not cut off what could still happen there.
fn bound_calls(
    modules: &[(&'static str, Place, Vec<Setting>)],
    guard: &Named,
    layer: &mut Layer,
    report: &mut Report,
) {
    let implied = |value| Item::new("call_timeout", value, Origin::Dialect(DIALECT), None);
    if !modules.iter().any(|(module, ..)| *module == "timelimiter") {
        let mut native = guard.layers.iter().flat_map(|layer| &layer.items);
        if !native.any(|item| item.key.path.ends_with("_timeout")) {
            let reason =
                "no `timelimiter` has an instance of this name, so its calls may take for ever; add one";
            report.warn(&guard.place, guard.path.clone(), reason.into());
        }
        layer.items.push(implied(Value::None));
    }
}

struct Translation<'a> {
    settings: &'a [Setting],
    place: &'a Place,
    guard: &'a Named,
    items: &'a mut Vec<Item>,
    report: &'a mut Report,
}

impl Translation<'_> {
    fn circuitbreaker(&mut self) {
        let Share(rate) = self.take("failureRateThreshold", Share(50.0));
        self.put("breaker.failure_rate", Value::Share(rate), "failureRateThreshold");
        self.window();
        let cooldown = self.take("waitDurationInOpenState", secs(60));
        self.put("breaker.cooldown", Value::Time(cooldown), "waitDurationInOpenState");
        self.growth();
        let slow_after = self.take("slowCallDurationThreshold", secs(60));
        self.put("breaker.slow_after", Value::Time(slow_after), "slowCallDurationThreshold");
        let Share(slow_rate) = self.take("slowCallRateThreshold", Share(100.0));
        self.put("breaker.slow_rate", Value::Share(slow_rate), "slowCallRateThreshold");
        let probes = self.take("permittedNumberOfCallsInHalfOpenState", 10_u32);
        self.put("breaker.probes", Value::Count(probes), "permittedNumberOfCallsInHalfOpenState");
        self.put("breaker.judge_probes", Value::Word("together"), "");
        // Zero means "for ever" there. Half-open always ends here.
        let half_open = self.take("maxWaitDurationInHalfOpenState", Duration::ZERO);
        if !half_open.is_zero() {
            self.put("breaker.probe_timeout", Value::Time(half_open), "maxWaitDurationInHalfOpenState");
        }
        let automatic = self.take("automaticTransitionFromOpenToHalfOpenEnabled", false);
        let written = "automaticTransitionFromOpenToHalfOpenEnabled";
        self.put("breaker.automatic_half_open", Value::Switch(automatic), written);
        self.put("breaker.scope", Value::Word("attempt"), "");
        self.names("breaker.record_names", "recordExceptions");
        self.names("breaker.ignore_names", "ignoreExceptions");
        self.health();
    }

    fn window(&mut self) {
        let size = self.take("slidingWindowSize", 100_u32);
        let mut minimum = self.take("minimumNumberOfCalls", 100_u32);
        if self.take("slidingWindowType", "COUNT_BASED") == "TIME_BASED" {
            self.put("breaker.over_time", Value::Time(secs(size.into())), "slidingWindowSize");
        } else {
            if minimum > size && self.written("minimumNumberOfCalls").is_some() {
                let reason =
                    format!("above the window of {size} calls; taken as {size}, as resilience4j does");
                self.warn("minimumNumberOfCalls", reason);
            }
            minimum = minimum.min(size);
            self.put("breaker.over_calls", Value::Count(size), "slidingWindowSize");
        }
        self.put("breaker.minimum_calls", Value::Count(minimum), "minimumNumberOfCalls");
    }

    fn growth(&mut self) {
        if self.grows() {
            let multiplier = self.take("exponentialBackoffMultiplier", MULTIPLIER);
            self.put("breaker.cooldown_growth", Value::Number(multiplier), "exponentialBackoffMultiplier");
            let max = self.take("exponentialMaxWaitDurationInOpenState", GROWTH_MAX);
            self.put("breaker.cooldown_max", Value::Time(max), "exponentialMaxWaitDurationInOpenState");
        }
        if let Some(factor) = self.randomized() {
            self.put(
                "breaker.cooldown_jitter",
                Value::Share((factor * 100.0).min(100.0)),
                "randomizedWaitFactor",
            );
            let reason =
                "a cooldown is made longer by chance and never shorter; taken as `breaker.cooldown_jitter`";
            self.warn("enableRandomizedWait", reason.into());
        }
    }

    fn retry(&mut self) {
        let old = self.take("maxRetryAttempts", 3_u32);
        let attempts = self.take("maxAttempts", old);
        let written = if self.written("maxAttempts").is_some() { "maxAttempts" } else { "maxRetryAttempts" };
        self.put("retry.max_attempts", Value::Count(attempts), written);
        let wait = self.take("waitDuration", millis(500));
        self.put("retry.backoff.base", Value::Time(wait), "waitDuration");
        if self.grows() {
            let multiplier = self.take("exponentialBackoffMultiplier", MULTIPLIER);
            self.put("retry.backoff.shape", Value::Word("exponential"), "enableExponentialBackoff");
            self.put("retry.backoff.multiplier", Value::Number(multiplier), "exponentialBackoffMultiplier");
            let longest = wait.as_secs_f64() * multiplier.powf(f64::from(attempts.saturating_sub(2)));
            let longest = Duration::try_from_secs_f64(longest.ceil()).unwrap_or(GROWTH_MAX).min(GROWTH_MAX);
            let cap = self.take("exponentialMaxWaitDuration", longest.max(crate::backoff::CAP));
            self.put("retry.backoff.cap", Value::Time(cap), "exponentialMaxWaitDuration");
        } else {
            self.put("retry.backoff.shape", Value::Word("constant"), "");
            self.put("retry.backoff.cap", Value::Time(wait.max(crate::backoff::CAP)), "");
        }
        let jitter = match self.randomized() {
            Some(factor) => {
                let jitter = if factor >= 0.75 { "full" } else { "equal" };
                let varies = format!(
                    "waits vary by {factor} up and down there; taken as `jitter: {jitter}`, which never waits longer"
                );
                self.warn("enableRandomizedWait", varies);
                jitter
            }
            None => "none",
        };
        self.put("retry.backoff.jitter", Value::Word(jitter), "enableRandomizedWait");
        self.put("retry.budget", Value::Off, "");
        self.names("retry.on_names", "retryExceptions");
        self.names("retry.ignore_names", "ignoreExceptions");
    }

    fn timelimiter(&mut self) {
        let timeout = self.take("timeoutDuration", secs(1));
        self.put("attempt_timeout", Value::Time(timeout), "timeoutDuration");
        if !self.take("cancelRunningFuture", true) {
            self.warn("cancelRunningFuture", "an attempt that timed out is always dropped here".into());
        }
    }

    fn bulkhead(&mut self) {
        let calls = self.take("maxConcurrentCalls", 25_u32);
        self.put("bulkhead.max_calls", Value::Count(calls), "maxConcurrentCalls");
        let wait = self.take("maxWaitDuration", Duration::ZERO);
        self.put("bulkhead.max_wait", Value::Time(wait), "maxWaitDuration");
        if !wait.is_zero() {
            self.put("bulkhead.max_waiting", Value::Count(WAITING_MAX), "");
        }
        if !self.take("fairCallHandlingStrategyEnabled", true) {
            self.warn(
                "fairCallHandlingStrategyEnabled",
                "whoever waits is always let in by order here".into(),
            );
        }
    }

    fn ratelimiter(&mut self) {
        let mut calls = self.take("limitForPeriod", 50_u32);
        let mut period = self.take("limitRefreshPeriod", Duration::from_nanos(500));
        self.health();
        if period < PERIOD_MIN {
            let times = PERIOD_MIN.as_nanos() / period.as_nanos().max(1);
            let scaled = u64::from(calls).saturating_mul(u64::try_from(times).unwrap_or(u64::MAX));
            if scaled >= CALLS_MAX {
                let reason = format!(
                    "{calls} calls per {period:?} are no limit; write `limitRefreshPeriod: 1s`, or leave it out"
                );
                return self.warn("limitRefreshPeriod", reason);
            }
            (calls, period) = (u32::try_from(scaled).unwrap_or(u32::MAX), PERIOD_MIN);
        }
        self.put("rate_limit.calls", Value::Count(calls), "limitForPeriod");
        self.put("rate_limit.per", Value::Time(period), "limitRefreshPeriod");
        let wait = self.take("timeoutDuration", secs(5));
        self.put("rate_limit.max_wait", Value::Time(wait), "timeoutDuration");
    }

    fn names(&mut self, path: &str, written: &str) {
        if let Some(names) = self.written(written).map(|setting| setting.value.clone()) {
            self.put(path, names, written);
        }
    }

    fn health(&mut self) {
        if self.take("registerHealthIndicator", false) {
            self.put("health", Value::Switch(true), "registerHealthIndicator");
        }
    }

    /// Whether waits grow: said so, or meant so by whoever wrote how fast.
    fn grows(&mut self) -> bool {
        let meant = self.written("exponentialBackoffMultiplier").is_some();
        let said = self.written("enableExponentialBackoff").is_some();
        if meant && !said {
            let reason =
                "taken as meant; resilience4j itself ignores it without `enableExponentialBackoff: true`";
            self.warn("exponentialBackoffMultiplier", reason.into());
        }
        self.take("enableExponentialBackoff", meant)
    }

    fn randomized(&mut self) -> Option<f64> {
        let on = self.take("enableRandomizedWait", false);
        let factor = self.take("randomizedWaitFactor", RANDOMIZED);
        (on && factor > 0.0).then_some(factor)
    }

    fn written(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }

    /// What is written, or the default of resilience4j.
    fn take<T: Known>(&self, name: &str, default: T) -> T {
        self.written(name).and_then(|setting| T::of(&setting.value)).unwrap_or(default)
    }

    /// Sets one of ours, on behalf of a key that may not be written.
    fn put(&mut self, path: &str, value: Value, written: &str) {
        let setting = self.written(written);
        let origin =
            setting.map_or(Origin::Dialect(DIALECT), |setting| Origin::Written(setting.place.clone()));
        let written = setting.map(|setting| setting.name);
        self.items.push(Item::new(path, value, origin, written));
    }

    fn warn(&mut self, name: &str, reason: String) {
        let (place, path) = match self.written(name) {
            Some(setting) => (setting.place.clone(), setting.path.clone()),
            None => (self.place.clone(), join(&self.guard.path, name)),
        };
        self.report.warn(&place, path, reason);
    }
}

/// A share in percent, to tell it from other numbers.
struct Share(f64);

/// What a setting can be taken as.
trait Known: Sized {
    fn of(value: &Value) -> Option<Self>;
}

impl Known for Share {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Share(share) = value { Some(Share(*share)) } else { None }
    }
}

impl Known for Duration {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Time(time) = value { Some(*time) } else { None }
    }
}

impl Known for u32 {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Count(count) = value { Some(*count) } else { None }
    }
}

impl Known for f64 {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Number(number) = value { Some(*number) } else { None }
    }
}

impl Known for bool {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Switch(switch) = value { Some(*switch) } else { None }
    }
}

impl Known for &'static str {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Word(word) = value { Some(word) } else { None }
    }
}
