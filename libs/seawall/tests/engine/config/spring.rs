//! Files of applications with Spring: profiles, placeholders, properties.

use seawall::config::{Config, Format, Loader};

fn value(config: &Config, guard: &str, path: &str) -> String {
    let plan = config.plan(guard).expect("the guard is in the file");
    let found =
        plan.settings().find(|setting| setting.path() == path).map(|setting| setting.value().to_owned());
    found.unwrap_or_else(|| "nothing".into())
}

fn warnings(config: &Config) -> Vec<String> {
    config.warnings().iter().map(ToString::to_string).collect()
}

const PROFILES: &str = "
spring: {application: {name: shop}}
resilience4j.retry.instances.payments.max-attempts: 3
resilience4j:
  timelimiter: {instances: {payments: {timeoutDuration: 2s}}}
---
spring.config.activate.on-profile: prod
resilience4j.retry.instances.payments.maxAttempts: 5
---
spring: {profiles: 'dev, test'}
resilience4j: {timelimiter: {instances: {payments: {timeoutDuration: 9s}}}}
---
spring: {config: {activate: {on-profile: '!dev & !prod'}}}
resilience4j: {timelimiter: {instances: {payments: {timeoutDuration: 1s}}}}
";

fn profiles(names: &[&str]) -> Config {
    let loader = Config::loader().text("application.yml", PROFILES, Format::Yaml);
    names.iter().fold(loader, |loader, name| loader.profile(name)).load().unwrap()
}

/// ENG-12: documents after `---` count if their profile is chosen, and lie over those before.
#[test]
fn eng_12_profiles_are_chosen_by_name() {
    let of = |names: &[&str]| {
        let config = profiles(names);
        (value(&config, "payments", "retry.max_attempts"), value(&config, "payments", "attempt_timeout"))
    };
    let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    assert_eq!(of(&["prod"]), pair("5", "2s"));
    assert_eq!(of(&["test"]), pair("3", "1s"), "the last one is for it, too");
    assert_eq!(of(&["dev"]), pair("3", "9s"));
    assert_eq!(of(&["prod", "test"]), pair("5", "9s"));
    assert_eq!(of(&[]), pair("3", "1s"));
    assert_eq!(
        warnings(&profiles(&[]))[1..3],
        [
            "application.yml:7:1: not read: this document is for `prod`, and no profile is chosen",
            "application.yml:10:1: not read: this document is for `dev, test`, and no profile is chosen",
        ]
    );
}

/// ENG-12: a file may choose its profile itself, and mistakes of a chosen document have their line.
#[test]
fn eng_12_a_file_may_choose_its_profile() {
    let text = PROFILES.replacen(
        "spring: {application",
        "spring: {profiles: {active: '${STAGE:prod}'}, application",
        1,
    );
    let load = |stage: &[(&str, &str)]| {
        let loader = Config::loader().text("application.yml", &text, Format::Yaml);
        loader.env_from("SHOP", stage.iter().copied()).load().unwrap()
    };
    assert_eq!(value(&load(&[]), "payments", "retry.max_attempts"), "5");
    assert_eq!(value(&load(&[("STAGE", "dev")]), "payments", "attempt_timeout"), "9s");
    let wrong = PROFILES.replace("maxAttempts: 5", "maxAttempts: five");
    let loader = Config::loader().text("application.yml", &wrong, Format::Yaml).profile("prod");
    assert_eq!(
        loader.load().unwrap_err().to_string(),
        "application.yml:8:52: resilience4j.retry.instances.payments.maxAttempts: `five` is not a whole number; write one \
         like `3`"
    );
    let brackets = PROFILES.replace("'!dev & !prod'", "'(a | b) & c'");
    let error = Config::parse("application.yml", &brackets, Format::Yaml).unwrap_err().to_string();
    assert!(
        error.contains("application.yml:13:42: spring.config.activate.on-profile: `(a | b) & c` is not a"),
        "{error}"
    );
}

const PLACEHOLDERS: &str = "
app: {wait: '${BASE_WAIT:2}s'}
resilience4j:
  retry:
    instances:
      payments: {maxAttempts: '${ATTEMPTS:4}', waitDuration: '${app.wait}'}
  timelimiter:
    instances:
      payments: {timeoutDuration: '${TIMEOUT}'}
";

/// ENG-12: `${NAME:default}` stands for a variable, a property of the file, or its default.
#[test]
fn eng_12_placeholders_come_from_the_environment() {
    let load = |variables: &[(&str, &str)]| {
        let loader = Config::loader().text("application.yml", PLACEHOLDERS, Format::Yaml);
        loader.env_from("SHOP", variables.iter().copied()).load().map_err(|error| error.to_string())
    };
    let config = load(&[("TIMEOUT", "750ms"), ("BASE_WAIT", "3")]).unwrap();
    assert_eq!(value(&config, "payments", "retry.max_attempts"), "4");
    assert_eq!(value(&config, "payments", "retry.backoff.base"), "3s");
    assert_eq!(value(&config, "payments", "attempt_timeout"), "750ms");
    assert_eq!(
        load(&[("ATTEMPTS", "few")]).unwrap_err(),
        "\
application.yml:6:31: resilience4j.retry.instances.payments.maxAttempts: `few` is not a whole number; write one like `3`
application.yml:9:35: resilience4j.timelimiter.instances.payments.timeoutDuration: there is no variable `TIMEOUT`; set it, \
or write a default: `${TIMEOUT:…}`"
    );
}

const PROPERTIES: &str = r"
# The payment service.
! Another comment.
server.port = 8080
resilience4j.circuitbreaker.instances.payments.sliding-window-size=20
resilience4j.circuitbreaker.instances.payments.minimum-number-of-calls : ${MINIMUM:10}
resilience4j.circuitbreaker.instances.payments.waitDurationInOpenState 45s
resilience4j.retry.instances.payments.\
    max-attempts = \u0035
resilience4j.timelimiter.instances.payments.timeout-duration=2s
resilience4j.timelimiter.instances.[my.service].timeout-duration=3s
guards.mail.retry.on_classes[0]=io
guards.mail.retry.on_classes[1]=timeout
#---
spring.config.activate.on-profile=prod
resilience4j.retry.instances.payments.max-attempts=7
";

fn properties(text: &str) -> Loader {
    Config::loader().text("application.properties", text, Format::Properties)
}

/// ENG-12: properties say the same as YAML.
#[test]
fn eng_12_properties_are_read() {
    let config = properties(PROPERTIES).load().unwrap();
    assert_eq!(value(&config, "payments", "breaker.over_calls"), "20");
    assert_eq!(value(&config, "payments", "breaker.minimum_calls"), "10");
    assert_eq!(value(&config, "payments", "breaker.cooldown"), "45s");
    assert_eq!(value(&config, "payments", "retry.max_attempts"), "5");
    assert_eq!(value(&config, "my.service", "attempt_timeout"), "3s");
    assert_eq!(value(&config, "mail", "retry.on_classes"), "[io, timeout]");
    let prod = properties(PROPERTIES).profile("prod").load().unwrap();
    assert_eq!(value(&prod, "payments", "retry.max_attempts"), "7");
    assert_eq!(
        warnings(&config)[0],
        "application.properties:4:1: not read: `server`; only `resilience4j`, `guards` and `configs` are"
    );
}

/// ENG-12: mistakes in properties have their line, all at once.
#[test]
fn eng_12_mistakes_in_properties_have_their_line() {
    let report = |text: &str| properties(text).load().unwrap_err().to_string();
    assert_eq!(
        report("guards.a.retry.max_attempts=many\n  guards.a.retry.colour=red\n"),
        "\
application.properties:1:1: guards.a.retry.max_attempts: `many` is not a whole number; write one like `3`
application.properties:2:3: guards.a.retry.colour: no such key; `retry` has `max_attempts`, `backoff`, `on_classes`, \
`on_status`, `on_names`, `ignore_names`, `on_rejection`, `leave_to_outer`, `retry_after_cap`, `budget`"
    );
    assert_eq!(
        report("guards.a=1\nguards.a.retry=on\nb[0]=x\nb=y\n.=1\nc[=1\nd=\\ud83d\ne=1\ne=2"),
        "\
application.properties:2:1: guards.a: it is a value already; write `key=value`, with each key once
application.properties:4:1: b: it is a list already; write `key=value`, with each key once
application.properties:5:1: `.` has an empty name in it; write `key=value`, with each key once
application.properties:6:1: `c[` has a `[` without a `]`; write `key=value`, with each key once
application.properties:7:1: `\\ud83d` is no letter; write `key=value`, with each key once
application.properties:9:1: e: it is set on line 8 already; write `key=value`, with each key once"
    );
    let deep = format!("{}=1", vec!["a"; 100].join("."));
    assert!(report(&deep).contains("is nested too deep"), "{}", report(&deep));
}
