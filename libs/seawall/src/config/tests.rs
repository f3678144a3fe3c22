//! The table against the policies, and values against their text.

use std::time::Duration;

use super::schema::{CHOICES, Kind, TABLE, children, find};
use super::time::{self, Bare};
use super::value::{self, Value};
use super::{Config, Format};
use crate::backoff::Backoff;
use crate::{Breaker, Bulkhead, Chaos, Guard, RateLimit, Retry, millis, secs};

fn load(guard: &str) -> Result<Config, String> {
    let text = format!("guards: {{g: {guard}}}");
    Config::parse("t", &text, Format::Yaml).map_err(|error| error.to_string())
}

fn built(guard: &str) -> String {
    let config = load(guard).expect("the guard can be read");
    format!("{:?}", config.plans()[0].builder())
}

/// ENG-12: the defaults in the table are those of the policies. Whoever changes one is told here about the other.
#[test]
fn eng_12_an_empty_section_is_the_default_of_its_policy() {
    let bare = || Guard::builder("g").no_retry();
    let same = |guard: &str, builder: crate::GuardBuilder| {
        assert_eq!(built(guard), format!("{builder:?}"), "{guard}");
    };
    same("{}", bare());
    same("{retry: {}}", bare().retry(Retry::default()));
    same(
        "{retry: {backoff: {shape: linear}}}",
        bare().retry(Retry::default().backoff(Backoff::linear(secs(1)))),
    );
    same("{breaker: {}}", bare().breaker(Breaker::default()));
    same("{breaker: {failure_rate: 50%}}", bare().breaker(Breaker::failure_rate(50.0).over_calls(100)));
    same("{bulkhead: {}}", bare().bulkhead(Bulkhead::default()));
    same("{bulkhead: {max_wait: 1s}}", bare().bulkhead(Bulkhead::default().max_wait(secs(1))));
    same("{rate_limit: {calls: 5}}", bare().rate_limit(RateLimit::calls(5)));
    same("{chaos: {enabled: true}}", bare().chaos(Chaos::default()));
    same("{call_timeout: none, attempt_timeout: none}", bare().no_call_timeout());
}

/// ENG-12: what stands in the table can be read, and every path of a choice stands in the table.
#[test]
fn eng_12_the_table_is_sound() {
    for key in TABLE {
        assert!(key.doc.ends_with('.'), "{} has no sentence", key.path);
        assert!(key.parent().is_empty() || find(key.parent()).is_some(), "{} has no section", key.path);
        if let Some(default) = key.fixed_default() {
            let value = value::of_text(key.kind, default);
            assert_eq!(value.map(|value| value.to_string()), Ok(default.to_owned()), "{}", key.path);
        }
        if matches!(key.kind, Kind::Section(_)) {
            assert!(children(key.path).count() > 0, "{} is empty", key.path);
        }
    }
    for way in CHOICES.iter().flat_map(|choice| choice.ways).flatten() {
        assert!(find(way.0).is_some(), "{} is not in the table", way.0);
    }
}

/// ENG-12: the ranges on the reference page are those that hold.
#[test]
fn eng_12_ranges_are_as_the_page_says() {
    let company = |path: &str| match path {
        "rate_limit.per" | "rate_limit.max_wait" => "calls: 5, ",
        "breaker.over_calls" => "minimum_calls: 1, ",
        "bulkhead.max_waiting" => "max_wait: 1s, ",
        "hedge.max_hedges" => "after: 1s, ",
        _ => "",
    };
    let write = |path: &str, value: &str| {
        let mut parts: Vec<&str> = path.split('.').collect();
        let last = parts.pop().unwrap();
        let begin: String = parts.iter().map(|part| format!("{{{part}: ")).collect();
        format!("{begin}{{{}{last}: {value}}}{}", company(path), "}".repeat(parts.len()))
    };
    let mut checked = 0;
    for key in TABLE {
        let Some((low, high)) = key.range.split_once(" to ") else { continue };
        let (Ok(_), Ok(_)) = (value::of_text(key.kind, low), value::of_text(key.kind, high)) else {
            continue;
        };
        for edge in [low, high] {
            // A bound of the rate limit is met by the budget of the breaker's window, and so on; only this key counts.
            let report = load(&write(key.path, edge)).err().unwrap_or_default();
            assert!(!report.contains(&format!("g.{}: ", key.path)), "{edge}: {report}");
        }
        let outside = match key.kind {
            Kind::Count | Kind::Number => format!("{high}1"),
            Kind::Share => "101%".into(),
            _ => format!("{high}1s"),
        };
        let report = load(&write(key.path, &outside)).err().unwrap_or_default();
        assert!(report.contains(&format!("g.{}: ", key.path)), "{} {outside}: {report:?}", key.path);
        checked += 1;
    }
    assert!(checked > 10, "{checked} ranges");
}

#[test]
fn durations_are_exact_and_written_as_people_do() {
    let check = |text: &str, time: Duration, shown: &str| {
        assert_eq!(time::read(text, Bare::Refused), Ok(time), "{text}");
        assert_eq!(Value::Time(time).to_string(), shown);
        assert_eq!(time::read(shown, Bare::Refused), Ok(time), "{shown}");
    };
    check("30s", secs(30), "30s");
    check("1m30s", secs(90), "90s");
    check("1.5 s", millis(1_500), "1500ms");
    check("1.1s", millis(1_100), "1100ms");
    check("10m", secs(600), "10m");
    check("1d 2h", secs(26 * 3_600), "26h");
    check("1µs", Duration::from_nanos(1_000), "1us");
    check("0s", Duration::ZERO, "0s");
    check("366d", secs(366 * 86_400), "366d");
    assert_eq!(time::read("1500", Bare::Millis), Ok(millis(1_500)));
    assert_eq!(time::read("1.5", Bare::Seconds), Ok(millis(1_500)));
    for wrong in [
        "",
        "s",
        "30",
        "-1s",
        "1.5.5s",
        "1e3s",
        "infs",
        "∞",
        "1s2",
        "1_000ms",
        "٣s",
        "9999999999999999999999d",
    ] {
        assert!(time::read(wrong, Bare::Refused).is_err(), "{wrong}");
    }
}

#[test]
fn shares_are_percent_with_or_without_the_sign() {
    for (text, percent) in
        [("10%", 10.0), ("10 %", 10.0), ("10", 10.0), ("0.5%", 0.5), ("0", 0.0), ("100%", 100.0)]
    {
        assert_eq!(value::share(text), Ok(percent));
    }
    for wrong in ["", "%", "101%", "0.5", "1", "-1", "half", "1e1", "NaN", "10%%"] {
        assert!(value::share(wrong).is_err(), "{wrong}");
    }
}

/// ENG-12: JSON is JSON, to the letter.
#[test]
fn eng_12_what_is_not_json_is_refused() {
    let is_json = |text: &str| super::json::read(&super::Place::whole("t", 0), text).is_ok();
    for good in
        ["{}", " [1, -0, 1.5e+3, \"\\u00e9\\ud83d\\ude00\\n\", null, true] ", "\"x\"", "{\"a\":{\"b\":[]}}"]
    {
        assert!(is_json(good), "{good}");
    }
    let bad = [
        "",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "'x'",
        "01",
        "+1",
        ".5",
        "5.",
        "1e",
        "0x10",
        "NaN",
        "Infinity",
        "nul",
        "\"\\x\"",
        "\"\\ud83d\"",
        "\"\\u12\"",
        "\"a\nb\"",
        "\"\u{1}\"",
        "[1 2]",
        "{} {}",
        "// c\n{}",
        "[\"",
    ];
    for bad in bad {
        assert!(!is_json(bad), "{bad}");
    }
    assert!(!is_json(&"[".repeat(10_000)), "deep");
}
