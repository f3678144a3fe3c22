//! What must hold for all bytes that come to the hub from outside.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use seawall_http::Secret;
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::event_type::{EventType, Pattern};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::render::{
    EventFields, Meter, OUTPUT_BYTES_MAX, RenderedRequest, RequestTemplate, RuleText, TemplateContext,
};
use seawall_hub_server::http::fuzz;
use seawall_hub_server::source::cloudevents::{self, CloudEventError, CloudEventMode};
use seawall_hub_server::source::verify::{Scheme, SchemeSettings, SignedRequest, Verifier};
use serde_json::Value;

/// An event is refused with a reason, or what is passed on is JSON that can be taken apart.
pub fn event(written: &[u8]) {
    if let Some(data) = fuzz::event(written) {
        serde_json::from_str::<Value>(&data).expect("data is JSON that is not too deep");
        serde_json::from_slice::<Value>(written).expect("the event is JSON");
    }
}

/// Headers, one to a line, until an empty line; then the body.
fn request(bytes: &[u8]) -> (HeaderMap, &[u8]) {
    let (mut headers, mut rest) = (HeaderMap::new(), bytes);
    while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (&rest[..at], &rest[at + 1..]);
        rest = after;
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default();
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    (headers, rest)
}

/// In each of its modes: refused with reasons, or events that have what every event has.
pub fn cloud_events(bytes: &[u8]) {
    let (headers, body) = request(bytes);
    let said = CloudEventMode::of(&headers);
    for mode in [CloudEventMode::Structured, CloudEventMode::Batched, CloudEventMode::Binary] {
        match cloudevents::read(mode, &headers, body) {
            Ok(events) => {
                assert!(mode == CloudEventMode::Binary || said.is_some(), "only what says so is one");
                for event in events {
                    assert!(!event.id.is_empty() && !event.kind.is_empty() && !event.source.is_empty());
                    assert!(event.data.is_null() || event.data_base64.is_none());
                }
            }
            Err(CloudEventError::Wrong(problems)) => assert!(!problems.is_empty()),
            Err(other) => assert!(!other.to_string().is_empty()),
        }
    }
}

/// Nobody who does not have the secret proves that they do, under any scheme.
pub fn webhook(bytes: &[u8]) {
    // A valid key of Standard Webhooks, which no input holds a signature by.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwc3VwZXJzZWNyZXQ=";
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let names = ["bearer", "standard-webhooks", "github", "stripe", "slack", "hmac"];
    let name = names[usize::from(choice) % names.len()];
    let settings = match name {
        "hmac" => SchemeSettings {
            header: Some("x-signature".into()),
            prefix: (choice & 64 != 0).then(|| "v1=".into()),
            encoding: (choice & 128 != 0).then(|| "base64".into()),
        },
        _ => SchemeSettings::default(),
    };
    let scheme = Scheme::named(name, &settings).expect("the scheme is known");
    let verifier = Verifier::new(scheme, [Secret::new(SECRET)]).expect("the secret is one");
    let (headers, body) = request(rest);
    // The times in the corpus are near it, so that more than the clock is reached.
    let refused = verifier.check(&SignedRequest { headers: &headers, body }, Millis(1_700_000_000_000));
    match refused {
        Err(refused) => assert!(!refused.reason().contains(SECRET)),
        Ok(_) => {
            assert!(name == "bearer" && rest.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()))
        }
    }
}

/// A rule over an event, both in one JSON: refused with mistakes, or a request that is within its limits and can be kept.
pub fn template(text: &str) {
    fuzz::rule(text.as_bytes());
    let Ok(all) = serde_json::from_str::<Value>(text) else { return };
    let word = |name: &str| all[name].as_str();
    let headers: Vec<(String, String)> = all["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    let rule = RuleText {
        filter: word("filter"),
        method: word("method").unwrap_or("POST"),
        path: word("path").unwrap_or("/"),
        headers: &headers,
        body: all.get("body"),
        order: word("order"),
    };
    let program = match RequestTemplate::new(&rule) {
        Ok(program) => program,
        Err(mistakes) => return assert!(!mistakes.is_empty()),
    };
    let view = TemplateContext::new(EventFields {
        id: "evt-1",
        kind: "order.created",
        source: "shop",
        time: "2026-11-15T12:00:00Z",
        subject: word("subject"),
        extensions: &[],
        data: (&all["data"]).into(),
    });
    if let Some(filter) = program.filter() {
        let _ = filter.judge(&view, &Meter::default());
    }
    if let Ok(Some(order)) = program.order(&view, &Meter::default()) {
        assert!(order.len() <= 200);
    }
    let event = Bytes::from_static(b"{}");
    if let Ok(request) = program.render(&view, &event, &Meter::default()) {
        assert!(
            request.target.starts_with('/') && request.target.bytes().all(|byte| byte.is_ascii_graphic())
        );
        assert!(request.body.bytes().is_none_or(|body| body.len() <= OUTPUT_BYTES_MAX));
        for (name, value) in &request.attributes {
            HeaderName::from_bytes(name.as_bytes()).expect("a name that can be sent");
            HeaderValue::from_bytes(value.as_bytes()).expect("a value that can be sent");
        }
        assert_eq!(RenderedRequest::from_bytes(&request.to_bytes(), &event), Some(request));
    }
}

/// What is kept is read back, or is nothing; and what was read back is kept as the same.
pub fn kept_request(bytes: &[u8]) {
    let event = Bytes::from_static(b"{\"id\":\"evt-1\"}");
    if let Some(request) = RenderedRequest::from_bytes(bytes, &event) {
        assert_eq!(RenderedRequest::from_bytes(&request.to_bytes(), &event), Some(request));
    }
}

/// Names and queries: what is one is written as it was read.
pub fn names(text: &str) {
    if let Some(id) = DeliveryId::parse(text) {
        assert!(id.to_string().eq_ignore_ascii_case(text));
        assert_eq!(DeliveryId::parse(&id.to_string()), Some(id));
    }
    if let Ok(slug) = Slug::new(text) {
        assert_eq!(slug.as_str(), text);
    }
    if let Ok(kind) = EventType::new(text) {
        assert!(Pattern::new(text).is_ok_and(|pattern| pattern.matches(kind.as_str())));
    }
    if let Ok(pattern) = Pattern::new(text) {
        assert_eq!(pattern.to_string(), text);
    }
    let _ = fuzz::query(text);
}
