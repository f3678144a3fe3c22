//! Faults with names, and rules that go by them.

use seawall::breaker::State;
use seawall::config::{Config, Format};
use seawall::{Breaker, Error, Fault, Guard, Retry, millis};
use seawall_testkit::{ManualClock, Script, Step, run};

const CACHE: &str = "CacheConnectionException";

fn seed() -> Config {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/config/good/seed-004-5.6.yaml");
    Config::loader().file(path).fault_names([CACHE]).load().unwrap()
}

fn calls(hands: &ManualClock, guard: &Guard, faults: &[Fault]) -> Vec<Result<(), Error<Fault>>> {
    let script = Script::new(hands, faults.iter().map(|fault| Step::Fail(*fault)).collect::<Vec<_>>());
    faults.iter().map(|_| run(hands, guard.call(|attempt| script.attempt(attempt)))).collect()
}

/// ENG-12: `recordExceptions` of the seed's `redisCache` means what it says: its circuit opens on `CacheConnectionException` alone.
#[test]
fn eng_12_the_redis_cache_of_5_6_trips_on_its_own_exception_alone() {
    let hands = ManualClock::new();
    let config = seed();
    let guard = config.plan("redisCache").unwrap().builder().clock(hands.clock()).seed(1).build().unwrap();
    let breaker = guard.breaker().unwrap();
    let others =
        [Fault::io(), Fault::timeout(), Fault::of_http(503).unwrap(), Fault::io().named("OtherException")];
    for fault in others {
        calls(&hands, &guard, &[fault; 20]);
        assert_eq!(breaker.state(), State::Closed, "{fault}");
    }
    calls(&hands, &guard, &[Fault::io().named(CACHE); 7]);
    assert_eq!(breaker.state(), State::Closed, "7 of the last 10");
    calls(&hands, &guard, &[Fault::io().named(CACHE)]);
    assert_eq!(breaker.state(), State::Open, "8 of the last 10 are 80 %");
    assert!(guard.explain().contains("counts only CacheConnectionException"), "{}", guard.explain());
}

/// ENG-12: only names that nothing carries are worth a warning.
#[test]
fn eng_12_names_that_nothing_carries_are_warned_about() {
    let warnings: Vec<_> = seed().warnings().iter().map(ToString::to_string).collect();
    let warnings = warnings.join("\n");
    assert!(!warnings.contains(CACHE), "{warnings}");
    assert!(!warnings.contains("ResourceAccessException"), "it stands for faults of ours: {warnings}");
    assert!(
        warnings.contains(
            "retry.on_names: no fault is called `PaymentServerException` yet, so the name matches nothing; name one with \
             `Fault::named`, or announce it with `Loader::fault_names`"
        ),
        "{warnings}"
    );
    let text = "guards: {a: {retry: {on_names: [com.x.CarriedAlready, NeverCarried]}}}";
    let _ = Fault::io().named("CarriedAlready");
    let config = Config::parse("t.yaml", text, Format::Yaml).unwrap();
    assert_eq!(config.warnings().len(), 1, "{:?}", config.warnings());
}

/// ENG-3, ENG-12: retried is only what is listed, and never what is ignored; rejections stay what they are.
#[test]
fn eng_3_only_listed_names_are_retried_and_ignored_ones_never() {
    let hands = ManualClock::new();
    let text = "
guards:
  listed: {retry: {max_attempts: 3, backoff: {base: 1ms}, on_names: [GatewayDownException, java.net.SocketTimeoutException]}}
  ignored: {retry: {max_attempts: 3, backoff: {base: 1ms}, ignore_names: 'com.x.Outer$CardDeclinedException'}}
  both: {retry: {max_attempts: 3, backoff: {base: 1ms}, on_names: [IOException], ignore_names: [LockedException]}}
  more: {retry: {max_attempts: 3, backoff: {base: 1ms}, on_names: [GatewayDownException], on_classes: [io], on_status: '503'}}
";
    let config = Config::parse("t.yaml", text, Format::Yaml).unwrap();
    let attempts = |guard: &str, fault: Fault| {
        let guard = config.plan(guard).unwrap().builder().clock(hands.clock()).seed(1).build().unwrap();
        let script = Script::new(&hands, [Step::Fail(fault); 3]);
        run(&hands, guard.idempotent().call(|attempt| script.attempt(attempt))).unwrap_err().attempts()
    };
    let server = Fault::protocol().named("GatewayDownException");
    assert_eq!((attempts("listed", server), attempts("listed", server.permanent())), (3, 3), "it is named");
    assert_eq!((attempts("listed", Fault::timeout()), attempts("listed", Fault::io())), (3, 1));
    assert_eq!(attempts("listed", Fault::timeout().permanent()), 1, "a kind is retried where that can help");
    assert_eq!((attempts("ignored", Fault::io()), attempts("ignored", server)), (3, 3));
    assert_eq!(attempts("ignored", Fault::io().named("CardDeclinedException")), 1);
    assert_eq!(
        (attempts("both", Fault::io()), attempts("both", Fault::io().named("LockedException"))),
        (3, 1)
    );
    assert_eq!(
        (attempts("more", server), attempts("more", Fault::io()), attempts("more", Fault::timeout())),
        (3, 3, 1)
    );
    let status = |status| Fault::of_http(status).unwrap();
    assert_eq!((attempts("more", status(503)), attempts("more", status(502))), (3, 1));
}

/// ENG-1, ENG-12: what is not recorded counts as a success, what is ignored counts as nothing.
#[test]
fn eng_1_recorded_names_fail_ignored_ones_do_not_count() {
    let hands = ManualClock::new();
    let breaker = Breaker::consecutive_failures(2).record_names(["Broken", "Busy"]).ignore_names(["Busy"]);
    let build =
        || Guard::builder("g").no_retry().clock(hands.clock()).breaker(breaker.clone()).build().unwrap();
    let (broken, busy, other) =
        (Fault::business().named("Broken"), Fault::io().named("Busy"), Fault::system().named("Other"));
    let state = |faults: &[Fault]| {
        let guard = build();
        calls(&hands, &guard, faults);
        guard.breaker().unwrap().state()
    };
    assert_eq!(state(&[broken, broken]), State::Open, "a name in the list counts whatever its class");
    assert_eq!(state(&[broken, other, broken]), State::Closed, "the other one was a success");
    assert_eq!(state(&[broken, busy, broken]), State::Open, "the busy one was nothing");
    assert_eq!(state(&[Fault::io(), Fault::io(), Fault::io()]), State::Closed);
}

/// ENG-12: lists in code and in a file are the same.
#[test]
fn eng_12_names_have_the_same_words_in_code_and_file() {
    let text = "guards: {g: {retry: {on_names: [A, x.B], ignore_names: C}, breaker: {record_names: D, ignore_names: E}}}";
    let config = Config::parse("t.yaml", text, Format::Yaml).unwrap();
    let code = Guard::builder("g")
        .retry(Retry::default().on_names(["A", "x.B"]).ignore_names(["C"]))
        .breaker(Breaker::default().record_names(["D"]).ignore_names(["E"]));
    assert_eq!(config.plans()[0].builder().build().unwrap().explain(), code.build().unwrap().explain());
    let again = Config::parse("t.yaml", &config.to_yaml(), Format::Yaml).unwrap();
    assert!(config.diff(&again).is_empty(), "{}", config.to_yaml());
    for wrong in ["[]", "''", "'a b'", "{a: b}", "[a, [b]]"] {
        let text = format!("guards: {{g: {{retry: {{on_names: {wrong}}}}}}}");
        assert!(Config::parse("t.yaml", &text, Format::Yaml).is_err(), "{wrong}");
    }
}

/// ENG-3: a fault stays small with its name and its wait.
#[test]
fn eng_3_a_fault_with_a_name_is_small() {
    assert_eq!(size_of::<Fault>(), 16);
    let fault = Fault::io().named("A").after(millis(1_500));
    assert_eq!((fault.name(), fault.retry_after()), (Some("A"), Some(millis(1_500))));
    assert_eq!((Fault::io().name(), fault.permanent().name()), (None, Some("A")));
    assert_eq!(fault.to_string(), "i/o fault A, the peer asks to wait 1.5s");
}

/// ENG-12: what is about Spring's metrics and threads is a warning, and no mistake.
#[test]
fn eng_12_micrometer_and_scheduled_are_warnings() {
    let text = "
resilience4j:
  scheduled: {executor: {corePoolSize: 5}}
  micrometer: {enabled: true}
  timelimiter: {metrics: {enabled: true}, instances: {a: {timeoutDuration: 1s}}}
  retry: {instances: {a: {registerHealthIndicator: true, eventConsumerBufferSize: 10}}}
resilience4j.micrometer.timer.enabled: true
management.metrics.enabled: true
";
    let config = Config::parse("t.yaml", text, Format::Yaml).unwrap();
    let lines: Vec<_> = config.warnings().iter().filter_map(seawall::Problem::line).collect();
    assert_eq!(lines, [3, 4, 5, 6, 6, 7, 8], "{:?}", config.warnings());
}
