//! Every setting of the table, there and back.

use super::super::schema::{Key, Kind, Section, TABLE};
use super::super::{Config, Format, Plan};

/// A value of each kind that every setting accepts.
fn sample(key: &Key) -> Option<&'static str> {
    Some(match (key.path, key.kind) {
        ("preset", _) => "critical",
        ("breaker.cooldown_max", _) => "45m",
        ("bulkhead.adaptive.min", _) => "3",
        ("hedge.percentile", _) => "97.5%",
        ("hedge.max_hedges", _) => "3",
        (_, Kind::Time | Kind::TimeOrNone) => "1500ms",
        (_, Kind::Share) => "12.5%",
        (_, Kind::Count) => "30",
        (_, Kind::Number) => "1.5",
        (_, Kind::Switch) => "true",
        (_, Kind::Word(words)) => words.last()?,
        (_, Kind::Words(words)) => words.first()?,
        (_, Kind::Names) => "[com.x.A, B]",
        (_, Kind::Statuses) => "\"429,500-599\"",
        (_, Kind::Section(Section::Part) | Kind::Bases) => return None,
        (_, Kind::Section(_)) => "none",
    })
}

/// What must stand beside a setting.
fn company(path: &str) -> &'static str {
    match path {
        "rate_limit.per" | "rate_limit.burst" | "rate_limit.max_wait" => "calls: 5, ",
        "breaker.slow_rate" => "slow_after: 1s, ",
        "breaker.over_calls" => "minimum_calls: 1, ",
        "hedge.percentile" => "until_known: 1s, ",
        "hedge.until_known" => "percentile: 95%, ",
        "hedge.max_hedges" => "after: 1s, ",
        "bulkhead.max_waiting" => "max_wait: 1s, ",
        "bulkhead.adaptive.max" => "min: 1, ",
        _ => "",
    }
}

fn guard(key: &Key, value: &str) -> String {
    let mut parts: Vec<&str> = key.path.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let begin: String = parts.iter().map(|part| format!("{{{part}: ")).collect();
    format!("{begin}{{{}{last}: {value}}}{}", company(key.path), "}".repeat(parts.len()))
}

/// ENG-12: what is serialised is the same plan when it is read again, whatever is set in it.
#[test]
fn eng_12_every_setting_goes_there_and_back() {
    let mut checked = 0;
    for key in TABLE {
        let Some(value) = sample(key) else { continue };
        let text = format!("guards: {{g: {}}}", guard(key, value));
        let config = Config::parse("t.yaml", &text, Format::Yaml).map_err(|error| error.to_string()).unwrap();
        let written = serde_json::to_string(&config).unwrap();
        let again: Config = serde_json::from_str(&written).unwrap();
        let mut changes = config.diff(&again);
        changes.changed.retain(|change| change.path != "preset");
        assert!(changes.is_empty(), "{}: {changes}\n{written}", key.path);
        let plan = &config.plans()[0];
        let copy: Plan = serde_json::from_value(serde_json::to_value(plan).unwrap()).unwrap();
        assert_eq!(copy.name(), "g");
        assert_eq!(
            copy.builder().build().unwrap().explain(),
            plan.builder().build().unwrap().explain(),
            "{}",
            key.path
        );
        checked += 1;
    }
    assert!(checked > 60, "{checked} settings");
}
