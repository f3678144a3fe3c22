//! Several mistakes in one section are reported together.

use seawall::config::{Config, Format};

/// The paths of all mistakes, each with its line.
fn mistakes(text: &str) -> Vec<String> {
    let error = Config::parse("app.yaml", text, Format::Yaml).expect_err("the file can't be loaded");
    let shown = error.problems().iter().map(|problem| {
        assert_eq!(problem.file(), Some("app.yaml"), "{problem}");
        assert!(!problem.reason().is_empty());
        format!("{} {}", problem.line().unwrap_or_default(), problem.path())
    });
    shown.collect()
}

/// ENG-12: two wrong values in one section are two mistakes, whether they can't be read or can't be used.
#[test]
fn eng_12_two_wrong_values_of_one_section_are_reported_at_once() {
    let text = "
guards:
  payments:
    breaker:
      cooldown: soon
      probes: 100
      ramp: 3
";
    let expected = [
        "5 guards.payments.breaker.cooldown",
        "6 guards.payments.breaker.probes",
        "7 guards.payments.breaker.ramp",
    ];
    assert_eq!(mistakes(text), expected);
}

/// ENG-12: a wrong value, an unknown key and settings that contradict each other are found in one go.
#[test]
fn eng_12_a_wrong_value_hides_neither_an_unknown_key_nor_a_contradiction() {
    let text = "
guards:
  payments:
    breaker:
      cooldown: soon
      cooldwn: 3s
      minimum_calls: 50
      over_calls: 10
    retry:
      max_attempts: few
      backoff: {base: 3m, cap: 1m}
      budget: {window: 1ms, share: 3%}
";
    let expected = [
        "5 guards.payments.breaker.cooldown",
        "6 guards.payments.breaker.cooldwn",
        "7 guards.payments.breaker.minimum_calls",
        "10 guards.payments.retry.max_attempts",
        "11 guards.payments.retry.backoff.base",
        "12 guards.payments.retry.budget.share",
        "12 guards.payments.retry.budget.window",
    ];
    let mut found = mistakes(text);
    found.sort_by_key(|line| line.split(' ').next().and_then(|line| line.parse::<u32>().ok()));
    found[5..].sort();
    assert_eq!(found, expected);
}

/// ENG-12: two ways to say one thing exclude each other also when one of them can't be read.
#[test]
fn eng_12_a_value_that_cannot_be_read_still_excludes_another_way() {
    let text = "guards: {a: {breaker: {consecutive_failures: 3,\n failure_rate: half}}}";
    assert_eq!(mistakes(text), ["2 guards.a.breaker.failure_rate", "2 guards.a.breaker.failure_rate"]);
}

/// ENG-12: a mistake that may come from the value that can't be read is not reported.
#[test]
fn eng_12_what_may_follow_from_an_unreadable_value_is_not_reported() {
    let text = "
guards:
  cap: {retry: {backoff: {base: 3m, cap: 5minutes}}}
  window: {breaker: {over_cals: 1000, minimum_calls: 500}}
  limit: {rate_limit: {calls: many}}
  missing: {rate_limit: {cals: 5}}
  timeout: {attempt_timeout: 20s, call_timeout: 1 minute}
  layered: {breaker: {failure_rate: none, minimum_calls: 101}}
";
    let expected = [
        "3 guards.cap.retry.backoff.cap",
        "4 guards.window.breaker.over_cals",
        "5 guards.limit.rate_limit.calls",
        "6 guards.missing.rate_limit.cals",
        "7 guards.timeout.call_timeout",
        "8 guards.layered.breaker.failure_rate",
        "8 guards.layered.breaker.minimum_calls",
    ];
    assert_eq!(mistakes(text), expected);
}

/// ENG-12: so it is in a file for resilience4j.
#[test]
fn eng_12_mistakes_of_one_resilience4j_section_are_reported_at_once() {
    let text = "
resilience4j:
  circuitbreaker:
    instances:
      payments:
        waitDurationInOpenState: soon
        permittedNumberOfCallsInHalfOpenState: 100
        slidingWindwSize: 10
        failureRateThreshold: 0
  timelimiter:
    instances:
      payments: {timeoutDuration: 0, cancelRunning: 3}
";
    let base = "resilience4j.circuitbreaker.instances.payments";
    let expected = [
        format!("6 {base}.waitDurationInOpenState"),
        "7 guards.payments.breaker.probes".into(),
        format!("8 {base}.slidingWindwSize"),
        "9 guards.payments.breaker.failure_rate".into(),
        "12 guards.payments.attempt_timeout".into(),
        "12 resilience4j.timelimiter.instances.payments.cancelRunning".into(),
    ];
    assert_eq!(mistakes(text), expected);
}

/// ENG-12: and with the flat keys.
#[test]
fn eng_12_mistakes_of_flat_keys_are_reported_at_once() {
    let text = "
guards:
  crm:
    cb_failure_threshold: five
    cb_cooldown: 0
    max_retries: -1
    retry_backoff: 100
    timeout: 0
    max_retry: 3
";
    let expected = [
        "4 guards.crm.cb_failure_threshold",
        "5 guards.crm.breaker.cooldown",
        "6 guards.crm.max_retries",
        "7 guards.crm.retry.backoff.base",
        "8 guards.crm.attempt_timeout",
        "9 guards.crm.max_retry",
    ];
    assert_eq!(mistakes(text), expected);
}
