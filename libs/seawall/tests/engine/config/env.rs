//! Variables of the environment, laid over a file.

use seawall::config::{Config, Format};

const FILE: &str = "
configs:
  standard: {attempt_timeout: 3s}
guards:
  payment-service: {extends: standard, breaker: {consecutive_failures: 3}}
  search: {extends: standard}
";

fn load(variables: &[(&str, &str)]) -> Result<Config, String> {
    let loader = Config::loader().text("base.yaml", FILE, Format::Yaml);
    loader.env_from("SEAWALL", variables.iter().copied()).load().map_err(|error| error.to_string())
}

fn setting(config: &Config, guard: &str, path: &str) -> String {
    let plan = config.plan(guard).unwrap();
    plan.settings()
        .find(|setting| setting.path() == path)
        .map(|setting| setting.to_string())
        .unwrap_or_default()
}

/// ENG-12: variables lie over files; names are compared without case and dashes.
#[test]
fn eng_12_variables_lie_over_files() {
    let config = load(&[
        ("SEAWALL_GUARDS__PAYMENT_SERVICE__BREAKER__COOLDOWN", "60s"),
        ("SEAWALL_GUARDS__PAYMENT_SERVICE__BREAKER__FAILURE_RATE", "20%"),
        ("SEAWALL_GUARDS__SEARCH__RETRY__BACKOFF__JITTER", "none"),
        ("SEAWALL_GUARDS__SEARCH__RETRY__ON_CLASSES", "io, timeout"),
        ("SEAWALL_GUARDS__SEARCH__EXTENDS", "standard"),
        ("SEAWALL_CONFIGS__STANDARD__ATTEMPT_TIMEOUT", "2s"),
        ("SEAWALL_ADMIN_KEY", "not ours"),
        ("SEAWALLS_GUARDS__X__Y", "not ours"),
        ("PATH", "/bin"),
    ])
    .unwrap();
    let variable = "SEAWALL_GUARDS__PAYMENT_SERVICE__BREAKER__COOLDOWN";
    assert_eq!(
        setting(&config, "payment-service", "breaker.cooldown"),
        format!("breaker.cooldown = 60s ({variable})")
    );
    assert_eq!(setting(&config, "payment-service", "breaker.consecutive_failures"), "", "a rate replaces it");
    assert!(setting(&config, "payment-service", "attempt_timeout").starts_with("attempt_timeout = 2s"));
    assert!(setting(&config, "search", "retry.backoff.jitter").contains("none"));
    assert!(setting(&config, "search", "retry.on_classes").contains("[io, timeout]"));
}

/// ENG-12: the environment of the process is read, where somebody asks for it.
#[test]
fn eng_12_the_environment_of_the_process_may_have_nothing_to_say() {
    let loader = Config::loader().text("base.yaml", FILE, Format::Yaml);
    let config = loader.env("SEAWALL_OF_A_TEST_THAT_SETS_NOTHING").load().unwrap();
    assert_eq!(config.plans().len(), 2);
}

/// ENG-12: a variable that means nothing is a mistake, named like a file.
#[test]
fn eng_12_a_wrong_variable_is_named_with_what_was_meant() {
    let report = load(&[
        ("SEAWALL_GUARDS__PAYMENTSERVICES__BREAKER__COOLDOWN", "60s"),
        ("SEAWALL_GUARDS__SEARCH__BREAKER__COOLDOWN", "60"),
        ("SEAWALL_GUARDS__SEARCH__BREAKER__COOLDWN", "60s"),
        ("SEAWALL_GUARDS__SEARCH", "on"),
        ("SEAWALL_GUARDS__SEARCH__RETRY__BUDGET", "small"),
        ("SEAWALL_GUARD__SEARCH__CALL_TIMEOUT", "3s"),
        ("SEAWALL_GUARDS__SEARCH__BULKHEAD__MAX_CALLS", "0"),
    ])
    .unwrap_err();
    assert_eq!(
        report,
        "\
SEAWALL_GUARDS__PAYMENTSERVICES__BREAKER__COOLDOWN: there is no guard `PAYMENTSERVICES`; did you mean `payment-service`?
SEAWALL_GUARDS__SEARCH: it names no setting; write one, like `SEAWALL_GUARDS__SEARCH__CALL_TIMEOUT`
SEAWALL_GUARDS__SEARCH__BREAKER__COOLDOWN: a duration needs a unit; write `60s` or `60ms`
SEAWALL_GUARDS__SEARCH__BREAKER__COOLDWN: no such key `COOLDWN`; did you mean `cooldown`?
SEAWALL_GUARDS__SEARCH__BULKHEAD__MAX_CALLS: guards.search.bulkhead.max_calls: 0 calls at once are not between 1 and \
1000000; leave the bulkhead out for no limit
SEAWALL_GUARDS__SEARCH__RETRY__BUDGET: `small` is not a section; write its settings below it, `default` or `none`
SEAWALL_GUARD__SEARCH__CALL_TIMEOUT: no such section `GUARD`; did you mean `SEAWALL_GUARDS__SEARCH__CALL_TIMEOUT`?"
    );
}

/// ENG-12: two variables that exclude each other are a mistake, as they are in a file.
#[test]
fn eng_12_variables_that_exclude_each_other_are_refused() {
    let report = load(&[
        ("SEAWALL_GUARDS__SEARCH__BREAKER__CONSECUTIVE_FAILURES", "3"),
        ("SEAWALL_GUARDS__SEARCH__BREAKER__FAILURE_RATE", "20%"),
    ]);
    assert_eq!(
        report.unwrap_err(),
        "SEAWALL_GUARDS__SEARCH__BREAKER__FAILURE_RATE: guards.search.breaker.failure_rate: it excludes \
         `consecutive_failures`: a circuit opens after failures in a row or at a rate, not both; keep one of them"
    );
}

/// ENG-12: a name that fits two guards is not guessed.
#[test]
fn eng_12_a_variable_that_means_two_guards_is_refused() {
    let file = "guards: {pay-ment: {}, payment: {}}";
    let loader = Config::loader().text("base.yaml", file, Format::Yaml);
    let error = loader.env_from("APP", [("APP_GUARDS__PAYMENT__HEALTH", "true")]).load().unwrap_err();
    assert_eq!(
        error.to_string(),
        "APP_GUARDS__PAYMENT__HEALTH: it means `pay-ment` as well as `payment`; give one of them another name"
    );
}

/// ENG-12: a variable that changes one number of a breaker that flat keys brought along changes that number and nothing else;
/// a breaker in a base, under the flat keys, is the one that was meant.
#[test]
fn eng_12_a_variable_keeps_what_flat_keys_brought_along() {
    let text = "
configs: {own: {breaker: {failure_rate: 30%}}}
guards: {payments: {max_retries: 3}, search: {extends: own, max_retries: 3}}
";
    let config = Config::loader()
        .text("hub.yaml", text, Format::Yaml)
        .env_from("SEAWALL", [("SEAWALL_GUARDS__PAYMENTS__BREAKER__COOLDOWN", "60s")])
        .load()
        .unwrap();
    let value = |guard: &str, path: &str| {
        let found = config.plan(guard).unwrap().settings().find(|setting| setting.path() == path);
        found.map_or_else(|| "nothing".to_owned(), |setting| setting.value().to_owned())
    };
    assert_eq!(value("payments", "breaker.cooldown"), "60s");
    assert_eq!(value("payments", "breaker.scope"), "call", "as it was");
    assert_eq!(value("payments", "breaker.consecutive_failures"), "5");
    assert_eq!(
        (value("search", "breaker.failure_rate"), value("search", "breaker.scope")),
        ("30%".into(), "attempt".into())
    );
}
