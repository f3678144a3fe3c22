//! A guard in words.

use std::fmt::Write;

use super::Inner;
use crate::breaker::Scope;

pub(super) fn explain(guard: &Inner) -> String {
    let settings = guard.settings.newest();
    let mut lines: Vec<(&str, String)> = Vec::new();
    match settings.timeouts.call {
        Some(call) if settings.timeouts.derived => {
            let from =
                if settings.timeouts.attempt.is_some() { "all attempts and waits" } else { "the default" };
            lines.push(("call timeout", format!("{call:?} ({from})")));
        }
        Some(call) => lines.push(("call timeout", format!("{call:?}"))),
        None => {}
    }
    let counts = if settings.scope == Scope::Call { "calls" } else { "attempts" };
    let breaker = settings
        .breaker
        .as_ref()
        .map(|breaker| ("breaker", format!("{}; counts {counts}", breaker.explain())));
    if settings.scope == Scope::Call {
        lines.extend(breaker.clone());
    }
    if settings.retry.is_some() {
        lines.push(("retry", settings.recipe.explain_retry()));
        let budget = settings.budget.as_ref().map(|budget| budget.explain().to_owned());
        lines.push(("  budget", budget.unwrap_or_else(|| "none: an outage is hit by every attempt".into())));
    }
    if let Some(hedger) = &settings.hedger {
        lines.push(("  hedge", hedger.explain()));
    }
    if settings.scope == Scope::Attempt {
        lines.extend(breaker);
    }
    if let Some(limiter) = &settings.limiter {
        lines.push(("rate limit", limiter.explain().to_owned()));
    }
    if let Some(gate) = &settings.gate {
        lines.push(("bulkhead", gate.explain().to_owned()));
    }
    if let Some(attempt) = settings.timeouts.attempt {
        lines.push(("attempt timeout", format!("{attempt:?}")));
    }
    if let Some(chaos) = &settings.chaos {
        let state = if chaos.is_on() { "on" } else { "off" };
        lines.push(("chaos", format!("{state}: {}", chaos.explain())));
    }
    let operation = if settings.retry.is_some() {
        "retried only as far as the call declares it safe"
    } else {
        "never retried"
    };
    lines.push(("operation", operation.into()));

    let mut text = format!("guard `{}`, from outside in\n", guard.watch.name);
    for (name, what) in lines {
        writeln!(text, "  {name:<15} {what}").expect("writing to a string never fails");
    }
    text
}
