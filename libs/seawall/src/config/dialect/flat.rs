//! Five flat keys of an integration hub: `cb_failure_threshold`, `cb_cooldown`, `max_retries`, `retry_backoff`, `timeout`.
//!
//! They keep their meaning: seconds, a breaker that counts calls, `max_retries: 3` is four attempts, waits that double
//! up to a minute without jitter, no retry on a status, no budget. Whoever wrote one of them had a breaker and retries,
//! so both are there with the defaults of that hub, unless they are written in our own words.

use super::super::layer::{Item, Layer, Report, policy_of};
use super::super::nearest::is_same;
use super::super::schema;
use super::super::time::{self, Bare};
use super::super::tree::{Entry, join};
use super::super::value::{self, Value, Wrong};
use super::super::{Origin, Place};
use crate::fault::StatusSet;

pub(in crate::config) const DIALECT: &str = "the flat keys";
const TIMEOUT: &str = "timeout";

/// Each key with the setting that it stands for.
const KEYS: &[(&str, &str)] = &[
    ("cb_failure_threshold", "breaker.consecutive_failures"),
    ("cb_cooldown", "breaker.cooldown"),
    ("max_retries", "retry.max_attempts"),
    ("retry_backoff", "retry.backoff.base"),
    (TIMEOUT, "attempt_timeout"),
];

/// What holds where a key is not written. The numbers are those of that hub.
const DEFAULTS: &[(&str, &str)] = &[
    ("breaker.consecutive_failures", "5"),
    ("breaker.cooldown", "30s"),
    ("breaker.scope", "call"),
    ("retry.max_attempts", "4"),
    ("retry.backoff.shape", "exponential"),
    ("retry.backoff.base", "1s"),
    ("retry.backoff.cap", "60s"),
    ("retry.backoff.jitter", "none"),
    ("retry.on_status", "none"),
    ("retry.budget", "none"),
];

/// Takes the entry if it is one of ours.
pub(in crate::config) fn read(entry: &Entry, path: &str, layer: &mut Layer, report: &mut Report) -> bool {
    let Some((name, setting)) = KEYS.iter().find(|(name, _)| is_same(name, &entry.key)) else {
        return false;
    };
    let text = entry
        .value
        .text()
        .ok_or_else(|| Wrong::new(format!("{} stands here", entry.value.noun()), "write a number"));
    let value = text.and_then(|text| match *name {
        "cb_failure_threshold" => value::count(text).map(Value::Count),
        // The first attempt is not a retry.
        "max_retries" => value::count(text).map(|retries| Value::Count(retries.saturating_add(1))),
        _ => time::read(text, Bare::Seconds).map(Value::Time),
    });
    if layer.written().any(|item| item.written == Some(name)) {
        report.wrong(
            &entry.place,
            path,
            Wrong::new(format!("this is `{name}` once more"), "take one of them out"),
        );
        return true;
    }
    match value {
        Ok(value) => {
            let origin = Origin::Written(entry.place.clone());
            layer.items.push(Item::new(setting, value, origin, Some(name)));
        }
        Err(wrong) => {
            let key = schema::find(setting).expect("the flat keys stand for settings of the table");
            layer.cannot_read(key, &entry.place, Some(name));
            report.wrong(&entry.value.place, path, wrong);
        }
    }
    true
}

pub(in crate::config) fn is_flat(item: &Item) -> bool {
    item.written.is_some_and(|written| KEYS.iter().any(|(name, _)| *name == written))
}

/// One policy in both languages at once.
pub(in crate::config) fn refuse_mixtures(layer: &Layer, shown: &str, report: &mut Report) {
    for item in layer.written().filter(|item| is_flat(item)) {
        let policy = policy_of(item.key.path);
        let native = layer.written().find(|other| !is_flat(other) && policy_of(other.key.path) == policy);
        if let (Some(native), Some(place)) = (native, item.origin.place()) {
            let written = item.written.unwrap_or_default();
            let line = native.origin.place().and_then(Place::line).unwrap_or_default();
            let reason = format!("it speaks of `{policy}`, which is written in other words on line {line}");
            let remedy = if native.key.path == item.key.path {
                "keep one of them".into()
            } else {
                format!("write `{}` there instead", item.key.path)
            };
            report.wrong(place, join(shown, written), Wrong::new(reason, remedy));
        }
    }
}

/// What lies under a guard because one of its layers has flat keys.
pub(in crate::config) fn implied(layers: &[&Layer], has_preset: bool) -> Vec<Item> {
    // What lies over the last flat key changes single settings of what is there, and not what was meant there.
    let last = layers.iter().rposition(|layer| layer.written().any(is_flat)).map_or(0, |last| last + 1);
    let items = || layers[..last].iter().flat_map(|layer| layer.written());
    let flat = |policy: &str| items().any(|item| is_flat(item) && policy_of(item.key.path) == policy);
    let native = |policy: &str| items().any(|item| !is_flat(item) && policy_of(item.key.path) == policy);
    let any = flat("breaker") || flat("retry");
    let wanted = |policy: &str| flat(policy) || (any && !has_preset && !native(policy));
    let defaults = DEFAULTS.iter().filter(|(path, _)| wanted(policy_of(path)));
    defaults
        .map(|(path, text)| {
            let key = schema::find(path).expect("the defaults stand in the table");
            let value = value::of_text(key.kind, text).unwrap_or(Value::Statuses(StatusSet::none()));
            Item { key, value, origin: Origin::Dialect(DIALECT), written: None }
        })
        .collect()
}

/// `timeout` without its company could mean either timeout.
pub(in crate::config) fn lonely_timeout<'a>(layers: &[&'a Layer]) -> Option<&'a Item> {
    let mut flat = layers.iter().flat_map(|layer| layer.written()).filter(|item| is_flat(item)).peekable();
    let first = *flat.peek()?;
    flat.all(|item| item.written == Some(TIMEOUT)).then_some(first)
}
