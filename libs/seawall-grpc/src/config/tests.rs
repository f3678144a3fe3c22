use std::time::Duration;

use super::ServiceConfig;
use crate::policy::CallPolicy;

fn problems(json: &str) -> Vec<String> {
    let error = ServiceConfig::from_json(json).expect_err("the config has mistakes");
    error.problems().iter().map(|problem| format!("{}: {}", problem.path(), problem.reason())).collect()
}

fn retry(fields: &str) -> String {
    format!(
        r#"{{"methodConfig": [{{"name": [{{}}], "retryPolicy": {{
            "maxAttempts": 4, "initialBackoff": ".1s", "maxBackoff": "1s", "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE"] {fields}}}}}]}}"#
    )
}

/// ADP-2: the config of the seed reads as it is meant.
#[test]
fn adp_2_a_service_config_is_read() {
    let config = ServiceConfig::from_json(
        r#"{"methodConfig": [{
            "name": [{"service": "some.v1.SomeService"}],
            "retryPolicy": {
                "maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE", "deadline_exceeded", 10]
            },
            "timeout": "1.000000001s", "waitForReady": true,
            "maxRequestMessageBytes": "4096", "maxResponseMessageBytes": 8192
        }], "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1239}}"#,
    )
    .unwrap();
    let method = config.method("/some.v1.SomeService/Any").unwrap();
    let CallPolicy::Retry(retry) = &method.policy else { panic!("{method:?}") };
    assert_eq!((retry.max_attempts, retry.initial_backoff), (3, Duration::from_millis(100)));
    assert_eq!([14, 4, 10, 13].map(|code| retry.retryable.contains(code)), [true, true, true, false]);
    assert_eq!((method.timeout, method.wait_for_ready), (Some(Duration::new(1, 1)), true));
    assert_eq!(
        (method.max_request_message_bytes, method.max_response_message_bytes),
        (Some(4_096), Some(8_192))
    );
    let throttling = config.throttling().unwrap();
    assert_eq!((throttling.max_milli_tokens, throttling.milli_token_ratio), (10_000, 123), "three decimals");
    assert!(config.ignored().is_empty());
}

/// ADP-2: the most specific name wins, and entries are not merged.
#[test]
fn adp_2_the_most_specific_name_wins() {
    let config = ServiceConfig::from_json(
        r#"{"methodConfig": [
            {"name": [{}], "timeout": "1s", "waitForReady": true},
            {"name": [{"service": "a.B"}, {"service": "c.D"}], "timeout": "2s"},
            {"name": [{"service": "a.B", "method": "E"}], "timeout": "3s"}
        ]}"#,
    )
    .unwrap();
    let timeout = |path| config.method(path).unwrap().timeout.unwrap().as_secs();
    assert_eq!(["/a.B/E", "/a.B/F", "/c.D/E", "/x.Y/E", "/", ""].map(timeout), [3, 2, 2, 1, 1, 1]);
    assert!(!config.method("/a.B/F").unwrap().wait_for_ready, "entries are not merged");
    assert!(ServiceConfig::default().method("/a.B/E").is_none());
}

/// ADP-2: every mistake is reported at once, with its path and what to write instead.
#[test]
fn adp_2_all_mistakes_are_reported_at_once() {
    let found = problems(
        r#"{"methodConfig": [
            {"name": [{"method": "Get"}, {"service": 7}, {"service": "a.B"}], "timeout": "0s", "waitForReady": "yes"},
            {"name": [{"service": "a.B", "method": ""}], "maxRequestMessageBytes": -1,
             "retryPolicy": {"maxAttempts": 1, "initialBackoff": "100ms", "backoffMultiplier": 0,
                             "retryableStatusCodes": ["OK", "NOPE", 17]},
             "hedgingPolicy": {"hedgingDelay": "-1s", "nonFatalStatusCodes": "UNAVAILABLE"}},
            3
        ], "retryThrottling": {"maxTokens": 1001, "tokenRatio": 0.0009}}"#,
    );
    assert_eq!(
        found,
        [
            "methodConfig[0].name[0].service: is missing beside a method; name the service of the method",
            "methodConfig[0].name[1].service: `7` is not text",
            "methodConfig[0].timeout: \"0s\" is no time at all; write more than zero",
            "methodConfig[0].waitForReady: \"yes\" is neither `true` nor `false`",
            "methodConfig[1].name[0]: names what `methodConfig[0].name[2]` names already; name it once",
            "methodConfig[1].hedgingPolicy: stands beside `retryPolicy`; a method is retried or hedged, so take one out",
            "methodConfig[1].retryPolicy.maxAttempts: `1` is not a number of attempts; write 2 or more",
            "methodConfig[1].retryPolicy.initialBackoff: \"100ms\" is not a duration; write seconds with at most nine decimals, such as `\"0.1s\"`",
            "methodConfig[1].retryPolicy.maxBackoff: is missing, and must be there",
            "methodConfig[1].retryPolicy.backoffMultiplier: `0` is not a multiplier; write a number of more than zero",
            "methodConfig[1].retryPolicy.retryableStatusCodes[0]: `OK` is a success; take it out",
            "methodConfig[1].retryPolicy.retryableStatusCodes[1]: \"NOPE\" is not a status code; write a name such as `\"UNAVAILABLE\"`, or a number from 1 to 16",
            "methodConfig[1].retryPolicy.retryableStatusCodes[2]: `17` is not a status code; write a name such as `\"UNAVAILABLE\"`, or a number from 1 to 16",
            "methodConfig[1].hedgingPolicy.maxAttempts: is missing, and must be there",
            "methodConfig[1].hedgingPolicy.hedgingDelay: \"-1s\" is negative; write seconds with at most nine decimals, such as `\"0.1s\"`",
            "methodConfig[1].hedgingPolicy.nonFatalStatusCodes: \"UNAVAILABLE\" is not a list; write `[…]`",
            "methodConfig[1].maxRequestMessageBytes: `-1` is not a number of bytes; write a whole number",
            "methodConfig[2]: `3` is not an object; write `{…}`",
            "retryThrottling.maxTokens: `1001` is not a number of tokens; write more than 0 and at most 1000",
            "retryThrottling.tokenRatio: `0.0009` is not a ratio; write 0.001 or more",
        ]
    );
}

/// ADP-2: what is no service config at all is refused with a sentence, whatever it is.
#[test]
fn adp_2_what_is_no_config_is_refused() {
    for (json, begins) in [
        ("", ": this is not JSON"),
        ("[]", ": a list is not an object"),
        (&"[".repeat(10_000), ": this is not JSON"),
        (r#"{"methodConfig": {}}"#, "methodConfig: an object is not a list"),
    ] {
        assert!(problems(json)[0].starts_with(begins), "{:?}", problems(json));
    }
    let codes = retry("").replace(r#"["UNAVAILABLE"]"#, "[]");
    assert_eq!(
        problems(&codes),
        [
            "methodConfig[0].retryPolicy.retryableStatusCodes: names no status; write at least one, such as `\"UNAVAILABLE\"`"
        ]
    );
}

/// ADP-2: unknown fields change nothing, as in gRPC, but they are listed.
#[test]
fn adp_2_what_is_ignored_is_listed() {
    let config = retry(r#", "maxRetries": 3"#)
        .replace(r#""methodConfig""#, r#""loadBalancingPolicy": "round_robin", "methodConfig""#)
        .replace("]}", r#", {"timeout": "1s"}]}"#);
    let config = ServiceConfig::from_json(&config).unwrap();
    let ignored: Vec<String> = config.ignored().iter().map(ToString::to_string).collect();
    assert_eq!(
        ignored,
        [
            "methodConfig[0].retryPolicy.maxRetries: is not a field of this adapter, and ignored as gRPC ignores unknown fields",
            "methodConfig[1]: has no name, and so applies to no method",
            "loadBalancingPolicy: is a matter of the channel that the config is put around",
        ]
    );
}

/// ADP-2: durations are those of protocol buffers; gRPC's own examples leave out the zero before the point.
#[test]
fn adp_2_durations_are_those_of_protocol_buffers() {
    let backoff = |text: &str| {
        let json = retry("").replace(".1s", text);
        let config = ServiceConfig::from_json(&json).ok()?;
        let CallPolicy::Retry(retry) = &config.method("/a/b")?.policy else { return None };
        Some(retry.initial_backoff)
    };
    assert_eq!(backoff(".1s"), Some(Duration::from_millis(100)));
    assert_eq!(backoff("3s"), Some(Duration::from_secs(3)));
    assert_eq!(backoff("1.5s"), Some(Duration::from_millis(1_500)));
    assert_eq!(backoff("0.000000001s"), Some(Duration::from_nanos(1)));
    for wrong in [
        "0s",
        "1",
        "s",
        ".s",
        "1.0000000001s",
        "1e3s",
        "315576000001s",
        "99999999999999999999s",
        "+1s",
        " 1s",
    ] {
        assert_eq!(backoff(wrong), None, "{wrong}");
    }
}
