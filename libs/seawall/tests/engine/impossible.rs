//! Settings of a guard that can never take effect together.

use seawall::breaker::Scope;
use seawall::config::{Config, Format};
use seawall::{Breaker, Bulkhead, Guard, GuardBuilder, Hedge, RateLimit, millis, secs};

/// The paths of what is refused.
fn refused(builder: GuardBuilder) -> Vec<String> {
    match builder.build() {
        Ok(_) => Vec::new(),
        Err(error) => error.problems().iter().map(|problem| problem.path().to_owned()).collect(),
    }
}

fn guard() -> GuardBuilder {
    Guard::builder("g").no_retry()
}

/// ENG-11: a second attempt that would start when the first is over never starts.
#[test]
fn eng_11_a_hedge_that_comes_too_late_is_refused() {
    let timed = || guard().attempt_timeout(secs(1));
    assert_eq!(refused(timed().hedge(Hedge::after(secs(1)))), ["hedge.after"]);
    assert_eq!(refused(timed().hedge(Hedge::percentile(95).until_known(secs(2)))), ["hedge.until_known"]);
    assert!(refused(timed().hedge(Hedge::after(millis(999)))).is_empty());
    assert_eq!(refused(guard().call_timeout(secs(1)).hedge(Hedge::after(secs(1)))), ["hedge.after"]);
    assert_eq!(refused(guard().hedge(Hedge::after(secs(10)))), ["hedge.after"], "10 s is the default");
    assert!(refused(guard().no_call_timeout().hedge(Hedge::after(secs(100)))).is_empty());
}

/// ENG-11: no attempt takes longer than its timeout, so none would ever be that slow.
#[test]
fn eng_11_a_slow_threshold_above_the_timeout_is_refused() {
    let slow = |time| Breaker::failure_rate(50).slow_after(time);
    let timed = || guard().attempt_timeout(secs(2)).call_timeout(secs(9));
    assert_eq!(refused(timed().breaker(slow(secs(3)))), ["breaker.slow_after"]);
    assert!(refused(timed().breaker(slow(secs(2)))).is_empty(), "attempts that time out are slow");
    assert!(refused(timed().breaker(slow(secs(3)).scope(Scope::Call))).is_empty(), "calls may be slower");
    assert_eq!(refused(timed().breaker(slow(secs(10)).scope(Scope::Call))), ["breaker.slow_after"]);
    assert_eq!(refused(guard().call_timeout(secs(9)).breaker(slow(secs(10)))), ["breaker.slow_after"]);
    assert!(refused(guard().no_call_timeout().breaker(slow(secs(100)))).is_empty());
}

/// ENG-11: whoever waits as long as a call may take has no time left to call.
#[test]
fn eng_11_a_wait_as_long_as_the_call_is_refused() {
    let timed = || guard().call_timeout(secs(5));
    assert_eq!(refused(timed().bulkhead(Bulkhead::max_calls(1).max_wait(secs(5)))), ["bulkhead.max_wait"]);
    assert_eq!(refused(timed().rate_limit(RateLimit::calls(1).max_wait(secs(6)))), ["rate_limit.max_wait"]);
    assert!(refused(timed().bulkhead(Bulkhead::max_calls(1).max_wait(secs(4)))).is_empty());
    let derived = guard().attempt_timeout(secs(1)).bulkhead(Bulkhead::max_calls(1).max_wait(secs(60)));
    assert!(refused(derived).is_empty(), "a call timeout that is not set leaves time for waits");
}

/// ENG-12: a file has them at the place of the setting.
#[test]
fn eng_12_settings_that_never_take_effect_are_found_in_a_file() {
    let text = "
guards:
  payments:
    attempt_timeout: 1s
    call_timeout: 5s
    hedge:
      after: 1500ms
    breaker:
      failure_rate: 50%
      slow_after: 2s
    bulkhead:
      max_wait: 5s
    rate_limit:
      calls: 5
      max_wait: 7s
";
    let error = Config::parse("app.yaml", text, Format::Yaml).unwrap_err().to_string();
    assert_eq!(
        error,
        "\
app.yaml:7:7: guards.payments.hedge.after: the second attempt would start after 1.5s, when the attempt timeout of 1s has \
ended the first; start it earlier
app.yaml:10:7: guards.payments.breaker.slow_after: nothing takes 2s or more under the attempt timeout of 1s, so nothing is \
ever slow; lower it or raise the timeout
app.yaml:12:7: guards.payments.bulkhead.max_wait: a wait of up to 5s does not fit into the call timeout of 5s; wait shorter or \
allow the call more time
app.yaml:15:7: guards.payments.rate_limit.max_wait: a wait of up to 7s does not fit into the call timeout of 5s; wait shorter or \
allow the call more time"
    );
}

/// ENG-12: resilience4j has a slow threshold of a minute unless it is told otherwise, beside any time limit. Its files load: a
/// threshold that was written and is never reached is a warning, the default not even that.
#[test]
fn eng_12_a_slow_threshold_of_resilience4j_above_the_time_limit_is_left_out() {
    let text = "
resilience4j:
  circuitbreaker:
    instances:
      plain: {}
      written: {slowCallDurationThreshold: 20s}
      reached: {slowCallDurationThreshold: 5s}
  timelimiter:
    instances: {plain: {timeoutDuration: 10s}, written: {timeoutDuration: 10s}, reached: {timeoutDuration: 10s}}
";
    let config = Config::parse("app.yaml", text, Format::Yaml).unwrap();
    let slow = |guard: &str| {
        let mut settings = config.plan(guard).unwrap().settings();
        settings.any(|setting| setting.path().starts_with("breaker.slow_"))
    };
    assert_eq!((slow("plain"), slow("written"), slow("reached")), (false, false, true));
    let warnings: Vec<_> = config.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "app.yaml:6:17: guards.written.breaker.slow_after: `slowCallDurationThreshold`: left out, because a timeout ends \
          every attempt before it is slow"
        ]
    );
}
