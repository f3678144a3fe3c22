//! Plans and snapshots in an application's own structures.

use std::time::{Duration, SystemTime};

use seawall::breaker::{Snapshot, State};
use seawall::config::{Config, Plan};
use serde::Deserialize;

#[derive(Deserialize, Debug)]
struct App {
    port: u16,
    payments: Plan,
    #[serde(default)]
    resilience: Option<Config>,
}

/// ENG-12: a plan is a field of an application's own structure, in whatever format that is written.
#[test]
fn eng_12_a_plan_is_a_field_of_an_own_structure() {
    let json =
        r#"{"port": 80, "payments": {"call_timeout": "5s", "retry": {"maxAttempts": 4, "budget": "none"}}}"#;
    let toml = "
port = 80
[payments]
name = 'payments'
call_timeout = '5s'
retry = {max_attempts = 4, budget = 'none'}
[resilience.configs.standard]
attempt_timeout = '1s'
[resilience.guards.mail]
extends = 'standard'
";
    let json: App = serde_json::from_str(json).unwrap();
    let toml: App = toml::from_str(toml).unwrap();
    assert_eq!((json.port, toml.port), (80, 80));
    assert_eq!((json.payments.name(), toml.payments.name()), ("guard", "payments"));
    let named = json.payments.with_name("payments").unwrap();
    assert!(named.clone().with_name("").is_err(), "a guard has a name");
    let explain = |plan: &Plan| plan.builder().build().unwrap().explain();
    assert_eq!(explain(&named), explain(&toml.payments));
    assert!(explain(&named).contains("4 attempts"), "{}", explain(&named));
    let mail = toml.resilience.unwrap();
    assert!(explain(mail.plan("mail").unwrap()).contains("attempt timeout 1s"));
}

/// ENG-12: mistakes are told all at once, with path and reason.
#[test]
fn eng_12_mistakes_in_an_own_structure_have_path_and_reason() {
    let text = r#"{"port": 80, "payments": {"call_timeout": 5, "retry": {"maxAttempt": 4}, "breaker": {"probes": 100}}}"#;
    let error = serde_json::from_str::<App>(text).unwrap_err().to_string();
    for expected in [
        "call_timeout: a duration needs a unit; write `5s` or `5ms`",
        "retry.maxAttempt: no such key; did you mean `max_attempts`?",
        "breaker.probes: 100 probes",
    ] {
        assert!(error.contains(expected), "{expected} is not in {error}");
    }
    let error = serde_json::from_str::<Plan>(r#"{"health": true, "health": false}"#).unwrap_err().to_string();
    assert!(error.contains("health: this key stands here twice"), "{error}");
    let deep = format!("{}1{}", r#"{"a":"#.repeat(100), "}".repeat(100));
    assert!(serde_json::from_str::<Plan>(&deep).unwrap_err().to_string().contains("nested too deep"));
    assert!(
        serde_json::from_str::<Config>(r#"{"gaurds": {}}"#).unwrap_err().to_string().contains("`guards`")
    );
}

/// ENG-1: a snapshot is the same when it is read again; what a newer version adds is left alone.
#[test]
fn eng_1_a_snapshot_goes_there_and_back() {
    let states = [
        (State::Closed, "closed"),
        (State::Ramping, "ramping"),
        (State::Open, "open"),
        (State::HalfOpen, "half_open"),
        (State::ForcedOpen, "forced_open"),
        (State::ForcedClosed, "forced_closed"),
        (State::Disabled, "disabled"),
    ];
    for (state, word) in states {
        let until = Some(SystemTime::UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789));
        let mut snapshot = Snapshot::new(state);
        (snapshot.until, snapshot.trips, snapshot.reason) = (until, 3, Some("deploy".into()));
        let text = serde_json::to_string(&snapshot).unwrap();
        assert!(text.starts_with(&format!("{{\"state\":\"{word}\"")), "{text}");
        assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot);
    }
    let newer = r#"{"colour": "red", "state": "open"}"#;
    let snapshot: Snapshot = serde_json::from_str(newer).unwrap();
    assert_eq!(
        (snapshot.state, snapshot.until, snapshot.trips, snapshot.reason),
        (State::Open, None, 0, None)
    );
    let error = serde_json::from_str::<Snapshot>(r#"{"state": "ajar"}"#).unwrap_err().to_string();
    assert!(error.contains("ajar") && error.contains("half_open"), "{error}");
}
