//! Files that load, and what they mean.

use seawall::config::{Config, Format, Origin, Plan, policy};

use super::golden;

fn load(name: &str) -> Config {
    Config::load(golden("good").join(name)).map_err(|error| error.to_string()).unwrap()
}

fn yaml(text: &str) -> Config {
    Config::parse("test.yaml", text, Format::Yaml).map_err(|error| error.to_string()).unwrap()
}

fn explain(config: &Config, guard: &str) -> String {
    config.plan(guard).unwrap().builder().build().unwrap().explain()
}

pub(super) fn settings(plan: &Plan) -> Vec<(String, String)> {
    plan.settings().map(|setting| (setting.path().to_owned(), setting.value().to_owned())).collect()
}

fn value(config: &Config, guard: &str, path: &str) -> String {
    let found = settings(config.plan(guard).unwrap()).into_iter().find(|(known, _)| known == path);
    found.map_or_else(|| "nothing".into(), |(_, value)| value)
}

fn warnings(config: &Config) -> String {
    let folder = format!("{}/", golden("good").display());
    config.warnings().iter().map(|warning| format!("{warning}\n").replace(&folder, "")).collect()
}

/// ENG-12: the first example of the seed loads as it stands, with its own meaning.
#[test]
fn eng_12_the_payment_service_of_5_2_loads_as_it_stands() {
    let config = load("seed-004-5.2.yaml");
    assert_eq!(
        explain(&config, "paymentService"),
        "\
guard `paymentService`, from outside in
  call timeout    33.1s (all attempts and waits)
  retry           3 attempts, exponential back-off from 1s times 2, at most 60s, no jitter, on ResourceAccessException, \
PaymentServerException, not on PaymentBusinessException
    budget        none: an outage is hit by every attempt
  breaker         opens at 50 % failures among the last 10 calls (at least 5), for 30s; \
half-open with 3 probes judged together; counts attempts
  attempt timeout 10s
  operation       retried only as far as the call declares it safe
"
    );
    assert!(config.plan("paymentService").unwrap().is_in_health());
    assert_eq!(value(&config, "paymentService", "breaker.automatic_half_open"), "true");
    assert_eq!(
        warnings(&config),
        "\
seed-004-5.2.yaml:18:9: resilience4j.retry.instances.paymentService.exponentialBackoffMultiplier: taken as meant; \
resilience4j itself ignores it without `enableExponentialBackoff: true`
seed-004-5.2.yaml:19:9: guards.paymentService.retry.on_names: no fault is called `PaymentServerException` yet, so the name \
matches nothing; name one with `Fault::named`, or announce it with `Loader::fault_names`
seed-004-5.2.yaml:22:9: guards.paymentService.retry.ignore_names: no fault is called `PaymentBusinessException` yet, so the \
name matches nothing; name one with `Fault::named`, or announce it with `Loader::fault_names`
"
    );
}

/// ENG-12: the second example of the seed, with bases.
#[test]
fn eng_12_the_four_services_of_5_6_load_as_they_stand() {
    let config = load("seed-004-5.6.yaml");
    let names: Vec<_> = config.plans().iter().map(Plan::name).collect();
    assert_eq!(names, ["paymentService", "kafkaPublisher", "redisCache", "s3Storage"]);
    assert_eq!(
        explain(&config, "paymentService"),
        "\
guard `paymentService`, from outside in
  call timeout    63.1s (all attempts and waits)
  retry           3 attempts, exponential back-off from 1s times 2, at most 60s, no jitter, on ResourceAccessException, \
PaymentServerException, not on PaymentBusinessException
    budget        none: an outage is hit by every attempt
  breaker         opens at 60 % failures among the last 10 calls (at least 5), for 30s; \
half-open with 3 probes judged together; counts attempts
  bulkhead        10 calls at once, 1000000 wait up to 5s
  attempt timeout 15s
  operation       retried only as far as the call declares it safe
"
    );
    assert!(config.plans().iter().all(Plan::is_in_health));
    assert_eq!(value(&config, "kafkaPublisher", "retry.max_attempts"), "5");
    assert_eq!(value(&config, "kafkaPublisher", "breaker.failure_rate"), "70%");
    assert_eq!(value(&config, "kafkaPublisher", "bulkhead.max_wait"), "0s");
    assert_eq!(value(&config, "redisCache", "retry.max_attempts"), "nothing", "it has no retry instance");
    assert_eq!(value(&config, "redisCache", "attempt_timeout"), "2s");
    assert_eq!(value(&config, "s3Storage", "bulkhead.max_calls"), "5");
    // Another test gives its name to a fault.
    let others = warnings(&config).lines().filter(|line| !line.contains("CacheConnection")).count();
    assert_eq!(others, 3, "{}", warnings(&config));
    assert!(warnings(&config).contains("5.6.yaml:13:9: guards.paymentService.breaker.slow_after: `slowCall"));
}

/// ENG-12: where resilience4j says nothing, its own defaults hold.
#[test]
fn eng_12_an_empty_instance_has_the_defaults_of_resilience4j() {
    let config = yaml(
        "
spring: {application: {name: shop}}
server: {port: 8080}
resilience4j.circuitbreaker: {instances: {a: {}}}
resilience4j:
  retry: {instances: {a: {}}}
  time-limiter: {instances: {a: {}}}
  bulkhead: {instances: {a: {}}}
  rate-limiter: {instances: {a: {limit-for-period: 10, limit-refresh-period: PT1S}}}
",
    );
    assert_eq!(
        explain(&config, "a"),
        "\
guard `a`, from outside in
  call timeout    19.1s (all attempts and waits)
  retry           3 attempts, constant back-off of 500ms, no jitter
    budget        none: an outage is hit by every attempt
  breaker         opens at 50 % failures among the last 100 calls (at least 100), for \
60s; half-open with 10 probes judged together; counts attempts
  rate limit      10 calls per 1s, 10 at once, waits up to 5s
  bulkhead        25 calls at once
  attempt timeout 1s
  operation       retried only as far as the call declares it safe
"
    );
    assert_eq!(
        warnings(&config),
        "test.yaml:2:1: not read: `spring`, `server`; only `resilience4j`, `guards` and `configs` are\n"
    );
}

/// ENG-12: what lies under an instance is what lies under it in resilience4j 2 (`createRetryConfig` and its kind): `default` is
/// under bases too, but not under those of a circuit breaker, which has a base of its own name instead.
#[test]
fn eng_12_defaults_lie_under_bases_as_in_resilience4j() {
    let config = yaml(
        "
resilience4j:
  retry:
    configs:
      default: {maxAttempts: 7, waitDuration: 2s}
      shared: {maxAttempts: 4}
    instances:
      plain: {}
      based: {baseConfig: shared}
  ratelimiter:
    configs: {default: {limitForPeriod: 10, limitRefreshPeriod: 1s, timeoutDuration: 0}}
    limiters: {plain: {limitForPeriod: 20}}
  circuitbreaker:
    configs:
      default: {slidingWindowSize: 30, waitDurationInOpenState: 5s}
      shared: {slidingWindowSize: 40}
      own: {slidingWindowSize: 50}
    instances:
      plain: {}
      based: {baseConfig: shared}
      own: {}
",
    );
    let both =
        |guard: &str, one: &str, other: &str| (value(&config, guard, one), value(&config, guard, other));
    let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    let (attempts, wait) = ("retry.max_attempts", "retry.backoff.base");
    assert_eq!(both("plain", attempts, wait), pair("7", "2s"));
    assert_eq!(both("based", attempts, wait), pair("4", "2s"), "`default` lies under `shared`");
    assert_eq!(both("plain", "rate_limit.calls", "rate_limit.per"), pair("20", "1s"));
    let (window, cooldown) = ("breaker.over_calls", "breaker.cooldown");
    assert_eq!(both("plain", window, cooldown), pair("30", "5s"));
    assert_eq!(both("based", window, cooldown), pair("40", "60s"), "but not here");
    assert_eq!(both("own", window, cooldown), pair("50", "60s"), "nor where a base has the instance's name");
}

/// ENG-12: `max_retries: 5` is six attempts, and `critical` tries long before it gives up: the usual call timeout of 10 s does
/// not cut off the waits of up to 62 s that both have. Whoever sets a timeout has said how long.
#[test]
fn eng_12_promised_attempts_have_the_time_to_take_place() {
    let config = yaml(
        "
guards:
  flat: {max_retries: 5, retry_backoff: 2}
  breaker: {cb_cooldown: 30}
  critical: {preset: critical}
  bounded: {preset: critical, call_timeout: 20s}
  timed: {max_retries: 5, retry_backoff: 2, timeout: 3}
  own: {retry: {max_attempts: 6, backoff: {base: 2s}}}
",
    );
    let call_timeout = |guard| value(&config, guard, "call_timeout");
    assert_eq!((call_timeout("flat"), call_timeout("breaker")), ("72s".into(), "17s".into()));
    assert_eq!((call_timeout("critical"), call_timeout("bounded")), ("72s".into(), "20s".into()));
    assert!(explain(&config, "timed").contains("80.1s (all attempts and waits)"));
    assert!(explain(&config, "own").contains("10s (the default)"), "in our own words, our own rule");
}

/// ENG-12: windows over time, growing cooldowns, chance, and what is not quite the same.
#[test]
fn eng_12_the_finer_keys_of_resilience4j_keep_their_meaning() {
    let config = yaml(
        "
resilience4j:
  circuitbreaker:
    configs:
      default: {slidingWindowType: TIME_BASED}
      slow: {waitDurationInOpenState: 10s, enableExponentialBackoff: true, exponentialMaxWaitDurationInOpenState: 5m}
    instances:
      implicit: {slidingWindowSize: 30, minimumNumberOfCalls: 50}
      explicit: {baseConfig: slow, slidingWindowSize: 30, minimumNumberOfCalls: 50, maxWaitDurationInHalfOpenState: 5000}
  retry:
    instances:
      implicit: {enableRandomizedWait: true, waitDuration: 90s}
      explicit: {maxAttempts: 9, enableExponentialBackoff: true, exponentialBackoffMultiplier: 3}
  ratelimiter:
    instances:
      implicit: {}
      explicit: {limitForPeriod: 5, limitRefreshPeriod: 500us, timeoutDuration: 0}
",
    );
    let is = |guard: &str, path: &str, expected: &str| {
        assert_eq!(value(&config, guard, path), expected, "{guard} {path}");
    };
    is("implicit", "breaker.over_time", "30s");
    is("implicit", "breaker.minimum_calls", "50");
    is("implicit", "retry.backoff.jitter", "equal");
    is("implicit", "retry.backoff.cap", "90s");
    is("implicit", "rate_limit.calls", "nothing");
    is("implicit", "call_timeout", "none");
    is("explicit", "breaker.over_calls", "30");
    is("explicit", "breaker.minimum_calls", "30");
    is("explicit", "breaker.cooldown_growth", "1.5");
    is("explicit", "breaker.cooldown_max", "5m");
    is("explicit", "breaker.probe_timeout", "5s");
    is("explicit", "retry.backoff.cap", "1094s");
    is("explicit", "rate_limit.calls", "10");
    is("explicit", "rate_limit.per", "1ms");
    let words =
        ["above the window of 30 calls", "taken as `jitter: equal`", "are no limit", "may take for ever"];
    for word in words {
        assert!(warnings(&config).contains(word), "{word} is missing in {}", warnings(&config));
    }
}

/// ENG-12: the flat keys of the hub keep their meaning: seconds, calls, four attempts for three retries.
#[test]
fn eng_12_the_tuning_blocks_of_the_hub_load_with_their_meaning() {
    let config = load("seed-002.yaml");
    assert_eq!(
        explain(&config, "high-traffic-production"),
        "\
guard `high-traffic-production`, from outside in
  call timeout    12.1s (all attempts and waits)
  breaker         opens after 10 failures in a row, for 60s; half-open with 1 probe at once, closes after 1 success; \
counts calls
  retry           3 attempts, exponential back-off from 1s times 2, at most 60s, no jitter, on status none
    budget        none: an outage is hit by every attempt
  attempt timeout 3s
  operation       retried only as far as the call declares it safe
"
    );
    assert_eq!(value(&config, "low-traffic-development", "retry.max_attempts"), "4");
    assert_eq!(value(&config, "low-traffic-development", "attempt_timeout"), "10s");
    assert_eq!(value(&config, "critical-integrations", "breaker.consecutive_failures"), "20");
    assert_eq!(value(&config, "critical-integrations", "retry.backoff.base"), "2s");
    // What is not written is as it was there: 5 failures, 30 s, 3 retries after 1 s.
    assert_eq!(value(&config, "defaults", "breaker.consecutive_failures"), "5");
    assert_eq!(value(&config, "defaults", "breaker.cooldown"), "30s");
    assert_eq!(value(&config, "defaults", "retry.max_attempts"), "4");
    assert!(config.warnings().is_empty());
}

/// ENG-12: the flat keys stand in bases too, and leave alone what is written in our own words.
#[test]
fn eng_12_flat_keys_and_native_sections_meet_in_one_guard() {
    let config = yaml(
        "
configs:
  hub: {cb_failure_threshold: 10, max_retries: 2}
guards:
  a: {extends: hub, timeout: 5}
  b: {cb_cooldown: 10, retry: {max_attempts: 2}}
  c: {extends: hub, breaker: {scope: attempt}, retry: none}
  d: {preset: critical, max_retries: 1}
",
    );
    let is = |guard: &str, path: &str, expected: &str| {
        assert_eq!(value(&config, guard, path), expected, "{guard} {path}");
    };
    is("a", "retry.max_attempts", "3");
    is("a", "attempt_timeout", "5s");
    is("b", "breaker.scope", "call");
    is("b", "retry.backoff.jitter", "full");
    is("c", "breaker.scope", "attempt");
    is("c", "breaker.consecutive_failures", "10");
    is("c", "retry.max_attempts", "nothing");
    is("d", "retry.max_attempts", "2");
    is("d", "retry.backoff.base", "2s");
    is("d", "retry.backoff.jitter", "none");
    is("d", "breaker.cooldown", "120s");
    is("d", "breaker.scope", "attempt");
}

/// ENG-12: one configuration in three formats.
#[test]
fn eng_12_yaml_toml_and_json_mean_the_same() {
    let (yaml, toml, json) = (load("native.yaml"), load("native.toml"), load("native.json"));
    let of = |config: &Config| -> Vec<_> {
        config.plans().iter().map(|plan| (plan.name().to_owned(), settings(plan))).collect()
    };
    assert_eq!(of(&yaml), of(&toml));
    assert_eq!(of(&yaml), of(&json));
    for plan in yaml.plans() {
        assert_eq!(explain(&yaml, plan.name()), explain(&toml, plan.name()));
        assert_eq!(explain(&yaml, plan.name()), explain(&json, plan.name()));
    }
}

/// ENG-12: every section does what it says.
#[test]
fn eng_12_a_guard_with_everything_is_built_as_written() {
    let config = load("native.yaml");
    assert_eq!(
        explain(&config, "payments"),
        "\
guard `payments`, from outside in
  call timeout    10s
  retry           3 attempts, exponential back-off from 200ms times 3, at most 20s, equal jitter, on status \
429,500-599, on [Io, Timeout, Protocol], unless a guard further out retries
    budget        20 % of the calls of the last 30s; while those are fewer than 100 calls also 1.5 a second, up to 45 at once, \
which the share repays later
    hedge         a second attempt after what 95 % of the answers take, 200ms until that is known
  breaker         opens at 50 % failures or 80 % calls of 2s or more in the last 10s (at least 10), for 90s times 2 for \
each further trip up to 600s and up to 10 % more; half-open with 3 probes judged together; ramps up over 30s; counts \
attempts
  rate limit      100 calls per 1s, 20 at once, waits up to 500ms
  bulkhead        2 to 50 calls at once by timeouts, from 20, 40 wait up to 1s
  attempt timeout 3s
  chaos           off: 10 % of the attempts fail (throttled), 0 % hang, 20 % start 300ms later
  operation       retried only as far as the call declares it safe
"
    );
    assert_eq!(config.plan("search").unwrap().keys_max(), Some(1_000));
    assert!(
        config.plan("payments").unwrap().is_in_health() && !config.plan("search").unwrap().is_in_health()
    );
}

/// ENG-12: an absent section is off, an empty one is on with the defaults, and `none` switches off.
#[test]
fn eng_12_absent_is_off_and_empty_is_on_with_the_defaults() {
    let config = yaml(
        "
configs:
  all: {retry: {}, breaker: {cooldown: 5s}, bulkhead: default}
guards:
  nothing:
  bare: {retry: , breaker: , bulkhead: }
  off: {extends: all, retry: none, breaker: off, bulkhead: false}
  again: {extends: [all], breaker: {probes: 2}}
",
    );
    assert_eq!(explain(&config, "nothing").lines().count(), 3, "{}", explain(&config, "nothing"));
    assert_eq!(explain(&config, "off").lines().count(), 3);
    assert!(
        explain(&config, "bare")
            .contains("3 attempts, exponential back-off from 1s times 2, at most 60s, full")
    );
    assert!(explain(&config, "bare").contains(
        "10 % of the calls of the last 10s; while those are fewer than 100 calls also 3 a second, up to \
             30 at once, which the share repays later"
    ));
    assert!(explain(&config, "bare").contains("20 calls at once"));
    assert_eq!(value(&config, "again", "breaker.cooldown"), "5s");
    assert_eq!(value(&config, "again", "breaker.probes"), "2");
}

/// ENG-12: the other way to say a thing replaces that of a base, and does not contradict it.
#[test]
fn eng_12_a_guard_may_choose_otherwise_than_its_base() {
    let config = yaml(
        "
configs:
  base:
    breaker: {consecutive_failures: 3, close_after: 2, cooldown: 5s}
    retry: {budget: {share_of_calls: 5%}, backoff: {shape: exponential, multiplier: 3}}
    hedge: {after: 100ms}
guards:
  rate: {extends: base, breaker: {failure_rate: 20%, over_calls: 50, judge_probes: together}}
  tokens: {extends: base, retry: {budget: {tokens: 20}, backoff: {shape: constant}}}
  percentile: {extends: base, hedge: {percentile: 99%, until_known: 1s}}
  time: {extends: base, breaker: {over_time: 10s}}
",
    );
    let breaker = explain(&config, "rate");
    assert!(breaker.contains("opens at 20 % failures among the last 50 calls (at least 20), for 5s; half-open with 1 probes judged together"), "{breaker}");
    assert!(explain(&config, "tokens").contains("constant back-off of 1s"));
    assert!(explain(&config, "tokens").contains("20 tokens, 0.1 back"));
    assert!(explain(&config, "percentile").contains("99 % of the answers take, 1s until"));
    assert!(explain(&config, "time").contains("opens at 50 % failures in the last 10s"));
}

/// ENG-12: the presets have the values of the tuning section, and otherwise our own meaning.
#[test]
fn eng_12_presets_lie_under_everything_else() {
    let config = yaml(
        "
configs:
  vip: {preset: high-traffic, breaker: {cooldown: 90s}}
guards:
  high: {preset: high-traffic}
  dev: {preset: development}
  critical: {preset: critical}
  own: {preset: critical, breaker: {failure_rate: 50%}, retry: {max_attempts: 2}}
  based: {extends: vip}
",
    );
    let is = |guard: &str, expected: [&str; 5]| {
        let paths = [
            "breaker.consecutive_failures",
            "breaker.cooldown",
            "retry.max_attempts",
            "retry.backoff.base",
            "attempt_timeout",
        ];
        assert_eq!(paths.map(|path| value(&config, guard, path)), expected, "{guard}");
        assert_eq!(value(&config, guard, "breaker.scope"), "attempt");
        assert_eq!(value(&config, guard, "retry.budget.share_of_calls"), "10%");
    };
    is("high", ["10", "60s", "3", "1s", "3s"]);
    is("dev", ["3", "10s", "4", "1s", "10s"]);
    is("critical", ["20", "120s", "6", "2s", "nothing"]);
    is("own", ["nothing", "120s", "2", "2s", "nothing"]);
    is("based", ["10", "90s", "3", "1s", "3s"]);
    let high = config.plan("high").unwrap();
    let cooldown = high.settings().find(|setting| setting.path() == "breaker.cooldown").unwrap();
    assert_eq!(cooldown.to_string(), "breaker.cooldown = 60s (preset `high-traffic`)");
}

/// ENG-12: a later file replaces what an earlier one says, setting by setting.
#[test]
fn eng_12_later_files_lie_over_earlier_ones() {
    let base = "configs: {standard: {attempt_timeout: 3s, breaker: {cooldown: 30s}}}\n\
                guards: {payments: {extends: standard, retry: {max_attempts: 3}}, search: {}}\n";
    let production = "[configs.standard.breaker]\ncooldown = '60s'\n\
                      [guards.payments]\nretry.max_attempts = 5\n[guards.mail]\n";
    let config = Config::loader()
        .text("base.yaml", base, Format::Yaml)
        .text("prod.toml", production, Format::Toml)
        .load()
        .unwrap();
    let names: Vec<_> = config.plans().iter().map(Plan::name).collect();
    assert_eq!(names, ["payments", "search", "mail"]);
    let from = |path: &str| {
        let plan = config.plan("payments").unwrap();
        plan.settings().find(|setting| setting.path() == path).unwrap().to_string()
    };
    assert_eq!(from("attempt_timeout"), "attempt_timeout = 3s (base.yaml:1:22)");
    assert_eq!(from("breaker.cooldown"), "breaker.cooldown = 60s (prod.toml:2:1)");
    assert_eq!(from("retry.max_attempts"), "retry.max_attempts = 5 (prod.toml:4:7)");
    assert_eq!(from("breaker.probes"), "breaker.probes = 1 (default)");
}

/// ENG-12: profiles of Spring: a second file of resilience4j changes keys, not whole instances.
#[test]
fn eng_12_two_files_of_resilience4j_are_one() {
    let one = "resilience4j: {retry: {instances: {a: {maxAttempts: 5, waitDuration: 2s}}}}";
    let two = "resilience4j: {retry: {instances: {a: {waitDuration: 3s}}}}\nguards: {a: {extends: b, call_timeout: 9s}}\n\
               configs: {b: {retry: {budget: {share_of_calls: 5%}}}}";
    let config =
        Config::loader().text("1.yaml", one, Format::Yaml).text("2.yaml", two, Format::Yaml).load().unwrap();
    assert_eq!(value(&config, "a", "retry.max_attempts"), "5");
    assert_eq!(value(&config, "a", "retry.backoff.base"), "3s");
    assert_eq!(value(&config, "a", "call_timeout"), "9s", "our own words lie over those of resilience4j");
    assert_eq!(value(&config, "a", "retry.budget.share_of_calls"), "5%", "and so do those of a base");
    assert!(config.warnings().is_empty());
}

/// ENG-12: what changes with a newer file.
#[test]
fn eng_12_a_difference_names_guard_setting_and_both_values() {
    let old = yaml("guards: {a: {breaker: {cooldown: 30s}}, b: {}, c: {}}");
    let new = yaml("guards: {a: {breaker: {cooldown: 60s, failure_rate: 50%}}, c: {retry: none}, d: {}}");
    let changes = old.diff(&new);
    assert_eq!(
        changes.to_string(),
        "\
+ d
- b
a.breaker.consecutive_failures: 5 → nothing
a.breaker.failure_rate: nothing → 50%
a.breaker.over_calls: nothing → 100
a.breaker.cooldown: 30s → 60s"
    );
    assert!(old.diff(&old).is_empty());
    assert_eq!(old.diff(&old).to_string(), "nothing changes");
}

/// ENG-12: the hub's policy is one guard of the file, with the same words and the same mistakes.
#[test]
fn eng_12_a_policy_alone_is_one_guard_of_a_file() {
    let plan = policy("crm", r#"{"preset": "critical", "retry": {"maxAttempts": 5}}"#, Format::Json).unwrap();
    assert_eq!(plan.name(), "crm");
    assert!(plan.builder().build().unwrap().explain().contains("5 attempts"));
    let origin = plan
        .settings()
        .find(|setting| setting.path() == "retry.max_attempts")
        .map(|setting| setting.from().clone());
    assert!(matches!(origin, Some(Origin::Written(place)) if place.to_string() == "policy:1:34"));
    let error =
        policy("crm", r#"{"extends": "x", "retry": {"maxAttempt": 5}, "call_timeout": 3}"#, Format::Json);
    assert_eq!(
        error.unwrap_err().to_string(),
        "\
policy:1:13: extends: there is no base `x`; write it under `configs`
policy:1:28: retry.maxAttempt: no such key; did you mean `max_attempts`?
policy:1:62: call_timeout: a duration needs a unit; write `3s` or `3ms`"
    );
}

/// ENG-12: values are what the table says, not what YAML guesses; so Norway is a country.
#[test]
fn eng_12_yaml_guesses_nothing() {
    let config = yaml(
        "guards:\n  no: {retry: {max_attempts: '5', on_rejection: yes}}\n  010: {fallback: {on: io}}\n  null: {}\n  1e3: {}\n",
    );
    let names: Vec<_> = config.plans().iter().map(Plan::name).collect();
    assert_eq!(names, ["no", "010", "null", "1e3"]);
    assert_eq!(value(&config, "no", "retry.on_rejection"), "true");
    let again = yaml(&config.to_yaml());
    assert!(config.diff(&again).is_empty(), "{}", config.to_yaml());
}

/// ENG-12: an empty file is not an error, and not silence either.
#[test]
fn eng_12_a_file_without_guards_is_worth_a_word() {
    for (text, format) in
        [("", Format::Yaml), ("# soon\n", Format::Toml), ("{}", Format::Json), ("guards:", Format::Yaml)]
    {
        let config = Config::parse("empty", text, format).unwrap();
        assert!(config.plans().is_empty());
        assert_eq!(warnings(&config), "empty:1:1: there is no guard in it; write one below `guards`\n");
    }
}

/// ENG-12: every file, whatever it was written for, can be written out in our own words.
#[test]
fn eng_12_what_is_written_out_means_the_same() {
    for name in [
        "native.yaml",
        "native.toml",
        "native.json",
        "seed-002.yaml",
        "seed-004-5.2.yaml",
        "seed-004-5.6.yaml",
    ] {
        let config = load(name);
        let again = yaml(&config.to_yaml());
        assert!(config.diff(&again).is_empty(), "{name}: {}", config.diff(&again));
        let carried_by_nothing = |warning: &seawall::Problem| warning.reason().contains("no fault is called");
        assert!(again.warnings().iter().all(carried_by_nothing));
        for plan in config.plans() {
            assert!(plan.settings().all(|setting| !setting.from().to_string().is_empty()));
            // A derived call timeout is derived again.
            assert_eq!(explain(&config, plan.name()), explain(&again, plan.name()), "{name}");
        }
    }
}

/// ENG-12: anchors are written out.
#[test]
fn eng_12_aliases_are_what_they_stand_for() {
    let config = yaml("guards:\n  a: &a {call_timeout: 3s}\n  b: *a\n");
    assert_eq!(value(&config, "b", "call_timeout"), "3s");
}

/// ENG-12: the page about resilience4j says that its two files are the same but for jitter and budget.
#[test]
fn eng_12_before_and_after_on_the_page_about_resilience4j_are_the_same() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/resilience4j.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut blocks = page.split("```yaml\n").skip(1).map(|block| yaml(block.split("```").next().unwrap()));
    let (before, after) = (blocks.next().unwrap(), blocks.next().unwrap());
    let changed: Vec<_> = before.diff(&after).changed.iter().map(|change| change.path).collect();
    assert_eq!(
        changed,
        [
            "retry.backoff.jitter",
            "retry.budget",
            "retry.budget.share_of_calls",
            "retry.budget.window",
            "retry.budget.floor_per_second",
        ]
    );
}

/// ENG-12: the page of all settings is the table. `cargo xtask reference` writes it.
#[test]
fn eng_12_the_reference_page_is_not_stale() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration-reference.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&page, seawall::config::reference()).unwrap();
    }
    let written = std::fs::read_to_string(page).unwrap_or_default();
    assert!(written == seawall::config::reference(), "it is stale: run `cargo xtask reference`");
}
