//! The threshold of slow calls beside a time limit.
//!
//! resilience4j has a threshold of a minute by default, and its own documentation writes it beside time limits of seconds.
//! It is never reached there either: the time limiter ends the attempt before. A guard would be refused for it.

use super::super::super::book::Named;
use super::super::super::layer::{Item, Layer, Report};
use super::super::super::resolve::Settings;
use super::super::super::tree::join;
use super::super::super::value::Value;
use super::super::super::{Origin, build};
use super::DIALECT;

const SLOW_AFTER: &str = "breaker.slow_after";
const WRITTEN: &str = "slowCallDurationThreshold";

fn is_ours(item: &Item) -> bool {
    item.key.path == SLOW_AFTER && (item.written == Some(WRITTEN) || item.origin == Origin::Dialect(DIALECT))
}

/// Takes the threshold out where a timeout is shorter.
pub(in crate::config) fn leave_out_slow_calls(settings: &mut Settings) {
    let Some(Value::Time(slow_after)) =
        settings.get(SLOW_AFTER).filter(|item| is_ours(item)).map(|item| &item.value)
    else {
        return;
    };
    let slow_after = *slow_after;
    if build::longest_counted(settings).is_some_and(|longest| slow_after > longest) {
        settings.take_out(|item| item.key.path == SLOW_AFTER || item.key.path == "breaker.slow_rate");
    }
}

/// Says so where somebody wrote it.
pub(in crate::config) fn warn_of_slow_calls(
    named: &Named,
    stack: &[&Layer],
    settings: &Settings,
    report: &mut Report,
) {
    let written = stack.iter().flat_map(|layer| &layer.items).find(|item| item.written == Some(WRITTEN));
    let Some(place) = written.and_then(|item| item.origin.place()) else { return };
    if settings.is_on("breaker")
        && settings.get("breaker.failure_rate").is_some()
        && settings.get(SLOW_AFTER).is_none()
    {
        let reason = format!("`{WRITTEN}`: left out, because a timeout ends every attempt before it is slow");
        report.warn(place, join(&named.path, SLOW_AFTER), reason);
    }
}
