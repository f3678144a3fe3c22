//! Random configurations: what is printed is read again, and nothing that is read panics.

use std::fs;

use proptest::prelude::*;
use seawall::config::{Config, Format};

use super::golden;
use super::good::settings;

/// One line of a section, or nothing.
fn line(key: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::option::weighted(0.4, prop::sample::select(values))
        .prop_map(move |value| value.map_or(String::new(), |value| format!("{key}: {value}, ")))
}

fn section(name: &'static str, lines: Vec<BoxedStrategy<String>>) -> BoxedStrategy<String> {
    let body = lines.prop_map(move |lines| format!("{name}: {{{}}}, ", lines.concat()));
    prop_oneof![2 => body, 1 => Just(String::new()), 1 => Just(format!("{name}: none, "))].boxed()
}

const TIMES: &[&str] = &["1ms", "250ms", "1s", "1m30s", "90s", "0.1s", "1.0005ms", "2h", "123456789ns"];
/// Short enough for every timeout below.
const SHORT_TIMES: &[&str] = &["1ms", "0.25ms", "123456ns"];
const SHARES: &[&str] = &["1%", "0.5%", "33.3%", "100%", "50 %"];
const COUNTS: &[&str] = &["1", "2", "17", "1_000"];

fn guard() -> impl Strategy<Value = String> {
    let backoff = section(
        "retry",
        vec![
            line("max_attempts", COUNTS).boxed(),
            line(
                "backoff",
                &["{base: 1s}", "{shape: linear}", "{multiplier: 1.5, cap: 2h}", "{jitter: decorrelated}"],
            )
            .boxed(),
            line("on_classes", &["io", "[io, timeout]", "\"protocol, system\""]).boxed(),
            line("on_status", &["none", "429", "\"429,500-599\"", "[500, 502-504]"]).boxed(),
            line("on_rejection", &["yes", "false"]).boxed(),
            line("budget", &["none", "{tokens: 5}", "{share_of_calls: 12.5%, window: 30s}", "{}"]).boxed(),
        ],
    );
    let trip = prop_oneof![
        line("consecutive_failures", COUNTS),
        line("failure_rate", SHARES),
        line("over_time", &["10s", "1m"]),
        line("slow_after", SHORT_TIMES)
    ];
    let breaker = section(
        "breaker",
        vec![
            trip.boxed(),
            line("cooldown", &["2s", "5m", "90s"]).boxed(),
            line("cooldown_jitter", SHARES).boxed(),
            line("judge_probes", &["each", "together"]).boxed(),
            line("abandoned_after", TIMES).boxed(),
            line("scope", &["call", "attempt"]).boxed(),
        ],
    );
    let bulkhead = section(
        "bulkhead",
        vec![line("max_wait", TIMES).boxed(), line("adaptive", &["{}", "{by: timeouts}"]).boxed()],
    );
    let others = vec![
        line("preset", &["critical", "development", "high-traffic"]).boxed(),
        line("health", &["on", "no"]).boxed(),
        line("keys_max", COUNTS).boxed(),
        line("call_timeout", &["none", "3h"]).boxed(),
        line("attempt_timeout", &["none", "1ms", "2s"]).boxed(),
        line("hedge", &["{after: 1us}", "{percentile: 99.9%, until_known: 0.5ms}"]).boxed(),
        line("fallback", &["none", "{on: rejected}"]).boxed(),
        line("chaos", &["{}", "{enabled: true, fault_rate: 5%, fault: system}"]).boxed(),
        line("rate_limit", &["{calls: 5}", "{calls: 7, per: 1m, burst: 2, max_wait: 3s}"]).boxed(),
    ];
    (backoff, breaker, bulkhead, others).prop_map(|(a, b, c, d)| format!("{{{a}{b}{c}{}}}", d.concat()))
}

/// Pieces of files that Spring reads.
const PARTS: &[&str] = &[
    "resilience4j.retry.instances.a.",
    "maxAttempts",
    "max-attempts",
    "guards.g.retry.",
    "on_names",
    "[0]",
    "[x.y]",
    "[",
    "]",
    "=",
    ": ",
    " ",
    "\n",
    "\n",
    "\n---\n",
    "\n#---\n",
    "spring.config.activate.on-profile",
    "spring.profiles",
    "prod",
    "!dev",
    "${A:1}",
    "${A",
    "}",
    "${A:${B:${C}}}",
    "\\",
    "\\\n",
    "\\u0041",
    "\\ud8",
    "3",
    "1s",
    "{",
    ",",
    "\"",
    "'",
    "<<: ",
    "!t ",
    "&a ",
    "*a",
    "resilience4j:\n  retry:\n    instances:\n      a:\n        ",
    "retryExceptions: [",
    "java.io.IOException",
];

/// A text is refused with mistakes that have a place, or all its guards can be built; as a file of ours, and as one of an
/// application.
fn refuse_or_build(text: &str, format: Format) -> Result<(), TestCaseError> {
    let loader = || Config::loader().text("random", text, format).env_from("S", [("S_NOT_OURS", "1")]);
    for loader in [loader(), loader().foreign_sections().profile("prod"), loader().below("guards.g")] {
        match loader.load() {
            Ok(config) => {
                for plan in config.plans() {
                    prop_assert!(plan.builder().build().is_ok(), "{}\n{text}", plan.name());
                }
            }
            Err(error) => {
                prop_assert!(
                    error.problems().iter().all(|problem| problem.file() == Some("random")),
                    "{error}"
                );
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// ENG-12: what a plan says of itself, written as a file, is the same plan.
    #[test]
    fn eng_12_settings_that_are_printed_are_read_again(base in guard(), own in guard(), flat in any::<bool>()) {
        let flat = if flat { "cb_cooldown: 7, max_retries: 1, timeout: 0.5" } else { "" };
        let text = format!("configs:\n  base: {base}\n  flat: {{{flat}}}\nguards:\n  a b: {base}\n  own: {own}\n  flat: {{extends: flat}}\n");
        let config = Config::parse("random.yaml", &text, Format::Yaml);
        let config = config.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        let written = config.to_yaml();
        let again = Config::parse("written.yaml", &written, Format::Yaml);
        let again = again.map_err(|error| TestCaseError::fail(format!("{error}\n{text}\n{written}")))?;
        for (one, two) in config.plans().iter().zip(again.plans()) {
            let without_preset: Vec<_> = settings(one).into_iter().filter(|(path, _)| path != "preset").collect();
            prop_assert_eq!(without_preset, settings(two), "{}\n{}", &text, &written);
            let explain = |config: &Config| config.plan(one.name()).unwrap().builder().build().unwrap().explain();
            prop_assert_eq!(explain(&config), explain(&again));
        }
        prop_assert_eq!(config.plans().len(), again.plans().len());
        // Whatever lies over whatever: the same file is built or refused, never half of it.
        let layered = text.replace("own: {", "own: {extends: base, ");
        let _ = Config::parse("layered.yaml", &layered, Format::Yaml);
    }

    /// ENG-12: no text makes a reader panic, and every mistake in it has a place.
    #[test]
    fn eng_12_no_text_makes_a_reader_panic(text in "\\PC{0,80}|[-:{}\\[\\],&*!|>'\"%@\n a-c0-9#.]{0,60}") {
        for format in [Format::Yaml, Format::Toml, Format::Json, Format::Properties] {
            refuse_or_build(&text, format)?;
        }
    }

    /// ENG-12: nor do keys, brackets, escapes, documents and placeholders in any order.
    #[test]
    fn eng_12_no_lines_of_spring_make_a_reader_panic(
        parts in prop::collection::vec(prop::sample::select(PARTS), 0..40),
        format in prop::sample::select(&[Format::Yaml, Format::Properties][..]),
    ) {
        refuse_or_build(&parts.concat(), format)?;
    }

    /// ENG-12: nor does a good file with a few characters changed.
    #[test]
    fn eng_12_no_damaged_file_makes_a_reader_panic(
        which in any::<prop::sample::Index>(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), "[-:{}\\[\\],&*\"\n\t a-c0-9]{0,3}"), 1..4),
    ) {
        let names = ["native.yaml", "native.toml", "native.json", "seed-004-5.6.yaml", "seed-002.yaml", "spring.yaml", "spring.properties"];
        let path = golden("good").join(which.get(&names));
        let mut text = fs::read_to_string(&path).unwrap();
        for (at, with) in &cuts {
            let at = text.floor_char_boundary(at.index(text.len()));
            let end = text.ceil_char_boundary((at + with.len()).min(text.len()));
            text.replace_range(at..end, with);
        }
        refuse_or_build(&text, Format::of(&path).unwrap())?;
    }
}
