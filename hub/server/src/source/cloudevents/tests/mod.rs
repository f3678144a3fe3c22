//! Events as the specification shows them, and every mistake with its words.

mod binary;
mod json;

use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use proptest::strategy::Strategy;
use seawall_hub_core::domain::time::Millis;
use serde_json::json;

use super::*;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

/// Reads a request in the mode that it has.
fn request(pairs: &[(&str, &str)], body: &[u8]) -> Result<Vec<CloudEvent>, CloudEventError> {
    let headers = headers(pairs);
    read(CloudEventMode::of(&headers).expect("it has a mode"), &headers, body)
}

fn structured(body: &Value) -> Result<Vec<CloudEvent>, CloudEventError> {
    request(&[("content-type", "application/cloudevents+json")], body.to_string().as_bytes())
}

fn one(read: Result<Vec<CloudEvent>, CloudEventError>) -> CloudEvent {
    let mut events = read.unwrap();
    assert_eq!(events.len(), 1);
    events.remove(0)
}

/// All mistakes, one a line.
fn mistakes(read: Result<Vec<CloudEvent>, CloudEventError>) -> Vec<String> {
    match read.unwrap_err() {
        CloudEventError::Wrong(problems) => {
            problems.iter().map(|problem| format!("{}: {}", problem.field, problem.reason)).collect()
        }
        CloudEventError::NotJson(why) => vec![format!("not JSON: {why}")],
    }
}

/// HUB-3: the mode is told from the content type, and binary mode from the version's header.
#[test]
fn hub_3_the_mode_is_told_from_the_headers() {
    let mode = |kind: &str| CloudEventMode::of(&headers(&[("content-type", kind)]));
    assert_eq!(mode("application/cloudevents+json"), Some(CloudEventMode::Structured));
    assert_eq!(mode("Application/CloudEvents+JSON; charset=UTF-8"), Some(CloudEventMode::Structured));
    assert_eq!(
        mode("application/cloudevents+avro"),
        Some(CloudEventMode::Structured),
        "refused when it is read"
    );
    assert_eq!(mode("application/cloudevents-batch+json"), Some(CloudEventMode::Batched));
    assert_eq!(mode("application/cloudevents-batch+avro"), Some(CloudEventMode::Batched));
    assert_eq!(mode("application/json"), None);
    assert_eq!(CloudEventMode::of(&HeaderMap::new()), None);
    assert_eq!(
        CloudEventMode::of(&headers(&[("ce-id", "1")])),
        None,
        "one header of that kind makes no event"
    );
    let binary = [("content-type", "application/json"), ("CE-SpecVersion", "1.0")];
    assert_eq!(CloudEventMode::of(&headers(&binary)), Some(CloudEventMode::Binary));
    let both = [("content-type", "application/cloudevents+json"), ("ce-specversion", "1.0")];
    assert_eq!(
        CloudEventMode::of(&headers(&both)),
        Some(CloudEventMode::Structured),
        "headers may repeat what the body says"
    );
}

proptest::proptest! {
    /// HUB-3: whatever comes in, in any mode, is read or refused and not a panic; and what is refused says why.
    #[test]
    fn hub_3_no_request_makes_it_panic(
        names in proptest::collection::vec(
            ("(ce-)?(id|type|source|time|specversion|data|subject|content-type|[a-z0-9-]{1,9})", ".{0,30}"), 0..12),
        kind in "(application/(json|cloudevents(-batch)?\\+json|xml)|text/plain|[a-z/;= ]{0,20})(; ?charset=[a-z0-9-]{0,9})?",
        body in proptest::prop_oneof![
            proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
            "[\\[\\]{}:,\"\\\\a-z0-9 ]{0,200}".prop_map(String::into_bytes),
            "(\\[?\\{\"(id|time|data|data_base64|type)\": ?(null|1|\"[^\"\\\\]{0,30}\"),? ?\\}?\\]?){0,3}"
                .prop_map(String::into_bytes),
        ],
    ) {
        let mut map = HeaderMap::new();
        for (name, value) in names.iter().chain([&("content-type".to_owned(), kind)]) {
            if let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
            {
                map.append(name, value);
            }
        }
        let _ = CloudEventMode::of(&map);
        for mode in [CloudEventMode::Structured, CloudEventMode::Batched, CloudEventMode::Binary] {
            if let Err(error) = read(mode, &map, &body) {
                proptest::prop_assert!(!error.to_string().is_empty());
                proptest::prop_assert!(error != CloudEventError::Wrong(Vec::new()));
            }
        }
    }

    /// HUB-3: any text that is no time is none, and does not panic.
    #[test]
    fn hub_3_no_text_makes_the_check_of_times_panic(text in "[0-9TZtz:.+ -]{0,40}|.{0,30}") {
        let _ = Millis::from_rfc3339(&text);
    }
}
