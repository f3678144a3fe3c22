//! A policy as fields that somebody fills in, and as JSON for what has no field.

use minijinja::{Value as View, context};
use seawall::config;
use serde_json::{Map, Value};

use crate::dashboard::ask::view;

/// A part of the form: what it is called, what it is for, and its fields.
struct PolicyGroup {
    title: &'static str,
    about: &'static str,
    fields: &'static [PolicyField],
}

/// Its place in the policy, what it is called, whether it is a number, what is usual, and a word about it.
type PolicyField = (&'static str, &'static str, bool, &'static str, &'static str);

const PRESETS: [&str; 3] = ["high-traffic", "development", "critical"];

#[rustfmt::skip]
const GROUPS: [PolicyGroup; 5] = [
    PolicyGroup {
        title: "Timeouts",
        about: "How long an attempt and a call may take. Without an attempt timeout the call timeout applies.",
        fields: &[
            ("attempt_timeout", "Attempt timeout", false, "3s", "connection and response together"),
            ("call_timeout", "Call timeout", false, "10s", "gateway calls, retries included"),
        ],
    },
    PolicyGroup {
        title: "Circuit",
        about: "When the hub stops calling the service. Set either consecutive failures or a failure rate.",
        fields: &[
            ("breaker.consecutive_failures", "Consecutive failures", true, "5", "the circuit opens after this many"),
            ("breaker.failure_rate", "Failure rate", false, "50%", "alternative, over a window"),
            ("breaker.over_calls", "Window (calls)", true, "100", "for the failure rate"),
            ("breaker.minimum_calls", "Minimum calls", true, "20", "before the failure rate applies"),
            ("breaker.cooldown", "Cooldown", false, "30s", "how long it stays open before a probe"),
        ],
    },
    PolicyGroup {
        title: "Retries of calls",
        about: "For gateway calls. Deliveries are retried by the schedule of their rule.",
        fields: &[
            ("retry.max_attempts", "Maximum attempts", true, "3", "including the first"),
            ("retry.backoff.base", "Initial back-off", false, "1s", "doubles after each attempt, with jitter"),
            ("retry.backoff.cap", "Maximum back-off", false, "60s", ""),
        ],
    },
    PolicyGroup {
        title: "Bulkhead",
        about: "How many calls run at the same time. Deliveries without a free slot wait; none are lost.",
        fields: &[
            ("bulkhead.max_calls", "Maximum concurrent calls", true, "20", ""),
            ("bulkhead.max_wait", "Maximum wait", false, "0s", "gateway calls"),
        ],
    },
    PolicyGroup {
        title: "Rate limit",
        about: "How many calls per period the service allows. Deliveries above the limit wait.",
        fields: &[
            ("rate_limit.calls", "Calls", true, "none", "per period"),
            ("rate_limit.per", "Period", false, "1s", ""),
            ("rate_limit.burst", "Burst", true, "a tenth", "extra calls at once after an idle period"),
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
            let field = |&(path, label, number, usual, about): &PolicyField| {
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
