//! A policy as fields that somebody fills in, and as JSON for what has no field.

use minijinja::{Value as View, context};
use seawall::config;
use serde_json::{Map, Value};

use crate::dashboard::ask::view;

/// A part of the form: what it is called, what it is for, and its fields.
struct Group {
    title: &'static str,
    about: &'static str,
    fields: &'static [Field],
}

/// Its place in the policy, what it is called, whether it is a number, what is usual, and a word about it.
type Field = (&'static str, &'static str, bool, &'static str, &'static str);

const PRESETS: [&str; 3] = ["high-traffic", "development", "critical"];

const GROUPS: [Group; 5] = [
    Group {
        title: "Timeouts",
        about: "How long somebody waits for it. Without an attempt timeout a send takes as long as the whole call may.",
        fields: &[
            ("attempt_timeout", "Each attempt", false, "3s", "connection and answer together"),
            (
                "call_timeout",
                "The whole call",
                false,
                "10s",
                "for calls through the gateway, retries included",
            ),
        ],
    },
    Group {
        title: "Circuit",
        about: "When the hub stops calling it. It opens after failures in a row, or at a share of failures; say one of both.",
        fields: &[
            (
                "breaker.consecutive_failures",
                "Threshold: failures in a row",
                true,
                "5",
                "it opens after so many",
            ),
            ("breaker.failure_rate", "Threshold: share of failures", false, "50%", "instead, over a window"),
            ("breaker.over_calls", "The window, in calls", true, "100", "for a share"),
            ("breaker.minimum_calls", "Calls before a share counts", true, "20", "for a share"),
            ("breaker.cooldown", "Cooldown", false, "30s", "so long it stays open before a probe"),
        ],
    },
    Group {
        title: "Retries of calls",
        about: "For calls through the gateway. Deliveries are tried again by the schedule of their rule.",
        fields: &[
            ("retry.max_attempts", "Attempts in all", true, "3", "the first included"),
            ("retry.backoff.base", "First wait", false, "1s", "it doubles, with chance in it"),
            ("retry.backoff.cap", "Longest wait", false, "60s", ""),
        ],
    },
    Group {
        title: "Bulkhead",
        about: "How much of the hub it may take up. What has no place waits, and nothing is lost.",
        fields: &[
            ("bulkhead.max_calls", "Requests at once", true, "20", ""),
            ("bulkhead.max_wait", "Wait for a place", false, "0s", "for calls through the gateway"),
        ],
    },
    Group {
        title: "Rate",
        about: "What was agreed with it. Deliveries that are too many wait for their turn.",
        fields: &[
            ("rate_limit.calls", "Calls", true, "none", "so many"),
            ("rate_limit.per", "in", false, "1s", "each such time"),
            ("rate_limit.burst", "Burst", true, "a tenth", "so many more at once after a pause"),
        ],
    },
];

/// The presets, each with the values that it has for fields of the form.
fn presets() -> Vec<View> {
    let preset = |name: &&str| context! { name => *name, values => Value::from(values_of(name)).to_string() };
    PRESETS.iter().map(preset).collect()
}

/// The values of a preset, by the names of the fields.
fn values_of(preset: &str) -> Map<String, Value> {
    let text = serde_json::json!({ "preset": preset }).to_string();
    let Ok(plan) = config::policy("preset", &text, config::Format::Json) else { return Map::new() };
    let own = plan.settings().filter(|setting| matches!(setting.from(), config::Origin::Preset(_)));
    let values = own.filter_map(|setting| {
        let fields = GROUPS.iter().flat_map(|group| group.fields);
        let (path, _, number, ..) = fields.into_iter().find(|(path, ..)| *path == setting.path())?;
        let kind = if *number { ":number" } else { "" };
        Some((format!("policy.{path}{kind}"), Value::from(setting.value())))
    });
    values.collect()
}

/// A policy that begins with a preset: its values in place of those of `usual`.
pub(super) fn with_preset(mut usual: Value, preset: &str) -> Value {
    let preset = PRESETS.iter().find(|name| **name == preset);
    for (name, value) in preset.map(|name| values_of(name)).unwrap_or_default() {
        let path = name.trim_start_matches("policy.").trim_end_matches(":number").split('.');
        let number = value.as_str().and_then(|text| text.parse::<u64>().ok());
        let place = path.fold(&mut usual, |place, key| &mut place[key]);
        *place = number.map_or(value, Value::from);
    }
    if let Some(preset) = preset {
        usual["preset"] = Value::from(*preset);
    }
    usual
}

/// For a template: the preset, the groups with their values, and the rest as JSON.
pub(super) fn form(policy: &Value) -> View {
    let mut rest = policy.clone();
    let preset = take(&mut rest, "preset").unwrap_or_default();
    let groups: Vec<View> = GROUPS
        .iter()
        .map(|group| {
            let field = |&(path, label, number, usual, about): &Field| {
                let value = take(&mut rest, path).unwrap_or_default();
                let kind = if number { ":number" } else { "" };
                context! { name => format!("policy.{path}{kind}"), label, usual, about, value, number }
            };
            let fields: Vec<View> = group.fields.iter().map(field).collect();
            context! { title => group.title, about => group.about, fields }
        })
        .collect();
    let is_nothing = rest.as_object().is_none_or(Map::is_empty);
    let rest = if is_nothing { View::from("") } else { view(&rest) };
    context! { preset, presets => presets(), groups, rest }
}

/// Takes a value out of a policy, however its keys are spelt. A section that has nothing else goes with it: what is filled in
/// brings it back.
fn take(policy: &mut Value, path: &str) -> Option<String> {
    let Value::Object(fields) = policy else { return None };
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let key = fields.keys().find(|key| snake(key) == first)?.clone();
    if rest.is_empty() {
        let text = match fields.get(&key)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        fields.remove(&key);
        return Some(text);
    }
    let section = fields.get_mut(&key)?;
    let found = take(section, rest)?;
    if section.as_object().is_some_and(Map::is_empty) {
        fields.remove(&key);
    }
    Some(found)
}

/// `maxAttempts` and `max-attempts` are `max_attempts`.
fn snake(key: &str) -> String {
    let mut out = String::with_capacity(key.len() + 4);
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(if letter == '-' { '_' } else { letter.to_ascii_lowercase() });
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// UI-3: what has a field is in its field, however it was written; all else stays in the JSON, and nothing is in both.
    #[test]
    fn ui_3_a_policy_is_taken_apart_into_fields_and_the_rest() {
        let policy = json!({
            "preset": "critical", "attemptTimeout": "2s", "breaker": {"cooldown": "5s", "probes": 2},
            "retry": {"backoff": {"base": "1s"}}, "bulkhead": {}, "chaos": "none",
        });
        let form = form(&policy);
        let value = |name: &str| -> String {
            let groups = form.get_attr("groups").unwrap();
            let fields = groups
                .try_iter()
                .unwrap()
                .flat_map(|group| group.get_attr("fields").unwrap().try_iter().unwrap().collect::<Vec<_>>());
            let named = |field: &View| field.get_attr("name").unwrap().to_string() == name;
            fields.into_iter().find(named).unwrap().get_attr("value").unwrap().to_string()
        };
        assert_eq!(form.get_attr("preset").unwrap().to_string(), "critical");
        assert_eq!(value("policy.attempt_timeout"), "2s");
        assert_eq!(value("policy.breaker.cooldown"), "5s");
        assert_eq!(value("policy.retry.backoff.base"), "1s");
        assert_eq!(value("policy.bulkhead.max_calls:number"), "");
        let rest: Value = serde_json::to_value(form.get_attr("rest").unwrap()).unwrap();
        assert_eq!(rest, json!({"breaker": {"probes": 2}, "bulkhead": {}, "chaos": "none"}));
    }
}
