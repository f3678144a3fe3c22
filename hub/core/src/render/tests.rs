//! Rules on real events, and on hostile ones.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;

fn order() -> Json {
    json!({"id": "A-7", "total": 120.5, "paid": true, "note": null, "customer": {"name": "Ada \"the\" Great"},
           "items": [{"sku": "x", "n": 2}, {"sku": "y", "n": 1}], "big": 9_007_199_254_740_993_u64})
}

/// A view over this as `data`.
pub(super) fn view(data: &Json) -> TemplateContext<'_> {
    TemplateContext::new(EventFields {
        id: "evt-1",
        kind: "order.created",
        source: "shop",
        time: "2026-11-15T12:00:00Z",
        subject: None,
        extensions: &[],
        data: data.into(),
    })
}

fn body(template: &Json) -> Result<Json, String> {
    let template = JsonTemplate::new(template, "body").map_err(|mistakes| mistakes[0].to_string())?;
    rendered(&template, &order()).map_err(|mistake| mistake.to_string())
}

fn rendered(template: &JsonTemplate, data: &Json) -> Result<Json, TemplateError> {
    let text = template.render(&view(data), "body", &Meter::default())?;
    Ok(serde_json::from_str(&text).unwrap())
}

fn rule<'a>(path: &'a str, headers: &'a [(String, String)], body: Option<&'a Json>) -> RuleText<'a> {
    RuleText { filter: None, method: "post", path, headers, body, order: None }
}

fn path_of(path: &str, data: &Json) -> Result<String, String> {
    let program = RequestTemplate::new(&rule(path, &[], None)).map_err(|mistakes| mistakes[0].to_string())?;
    program
        .render(&view(data), &data.to_string().into(), &Meter::default())
        .map(|request| request.target)
        .map_err(|mistake| mistake.to_string())
}

/// HUB-4: a string that is one whole expression yields a typed value; within a text it is text.
#[test]
fn hub_4_values_keep_their_types() {
    let rendered = body(&json!({
        "order": "{{ data.id }}", "amount": "{{ data.total }}", "paid": "{{ data.paid }}", "note": "{{ data.note }}",
        "items": "{{ data.items }}", "first": "{{ data.items[0].sku }}", "big": "{{ data.big }}",
        "text": "Order {{ data.id }}: {{ data.total }} EUR, {{ data.paid }}, {{ data.items }}",
        "nested": [{"kind": "{{ type }}", "fixed": 1.0}], "double": "{{ data.total * 2 }}",
        "skus": "{{ data.items | map(attribute='sku') | join(',') }}", "count": "{{ data.items | length }}",
        "speed": "{{ 'express' if data.total > 100 else 'standard' }}", "literal": "{ no expression }",
    }));
    assert_eq!(
        rendered.unwrap(),
        json!({
            "order": "A-7", "amount": 120.5, "paid": true, "note": null,
            "items": [{"sku": "x", "n": 2}, {"sku": "y", "n": 1}], "first": "x", "big": 9_007_199_254_740_993_u64,
            "text": "Order A-7: 120.5 EUR, true, [{\"n\":2,\"sku\":\"x\"},{\"n\":1,\"sku\":\"y\"}]",
            "nested": [{"kind": "order.created", "fixed": 1.0}], "double": 241.0,
            "skus": "x,y", "count": 2, "speed": "express", "literal": "{ no expression }",
        })
    );
}

/// HUB-4: nothing that stands in an event can break out of the string that it stands in, nor be an expression itself.
#[test]
fn hub_4_nothing_can_be_injected() {
    let evil = json!({"name": "\"}, \"admin\": true, {{ data.secret }}", "secret": "s3cr3t"});
    let template =
        JsonTemplate::new(&json!({"name": "{{ data.name }}", "greeting": "Hi {{ data.name }}"}), "body")
            .unwrap();
    let rendered = rendered(&template, &evil).unwrap();
    assert_eq!(rendered["name"], evil["name"]);
    assert_eq!(rendered.as_object().unwrap().len(), 2);
    assert_eq!(rendered["greeting"], json!("Hi \"}, \"admin\": true, {{ data.secret }}"));
}

/// HUB-4: an unknown variable is an error that says what to write, unless a default is given.
#[test]
fn hub_4_what_is_missing_is_an_error_unless_there_is_a_default() {
    let error = |template: &str| body(&json!({"a": [template]})).unwrap_err();
    assert_eq!(
        error("{{ data.nope }}"),
        "body.a[0]: the event has no `data.nope`; say what to take instead: `{{ data.nope | default('…') }}`"
    );
    assert!(
        error("{{ data.customer.nope.deeper }}").contains("data.customer.nope"),
        "the whole path is named"
    );
    assert!(
        error("{{ data.nope > 5 }}").contains("the event has no `data.nope`"),
        "also within an expression"
    );
    assert!(error("x {{ data.note }}").contains("is null, which is no text"));
    assert_eq!(body(&json!("{{ data.nope | default(3) }}")).unwrap(), json!(3));
    assert_eq!(body(&json!("{{ 'yes' if data.nope is defined else 'no' }}")).unwrap(), json!("no"));
    assert_eq!(body(&json!("x {{ data.note | default('-', true) }}")).unwrap(), json!("x -"));
}

/// HUB-4: every mistake of a rule is found when it is written, all at once, with its place.
#[test]
fn hub_4_a_wrong_rule_is_refused_with_all_its_mistakes() {
    let headers =
        [("X Bad".into(), "1".into()), ("Host".into(), "h".into()), ("x-ok".into(), "{{ data.id".into())];
    let template = json!({"a": "{{ nope.x }}", "b": ["{{ 1 + }}", "{{ }}"], "{{ data.id }}": 1, "c": "{{ data.x | sha1 }}"});
    let text = RuleText {
        filter: Some("data.total >"),
        method: "BREW",
        path: "invoices",
        headers: &headers,
        body: Some(&template),
        order: None,
    };
    let mistakes: Vec<String> =
        RequestTemplate::new(&text).unwrap_err().iter().map(ToString::to_string).collect();
    let expected = [
        "filter: `data.total >` is no expression",
        "method: must be one of GET, POST, PUT, PATCH, DELETE, HEAD, not `BREW`",
        "path: must start with a slash",
        "headers.X Bad: a header name must consist",
        "headers.Host: this header belongs to the connection",
        "headers.x-ok: an expression that begins with `{{` does not end",
        "body.a: unknown name `nope`. Known: id, type, source, time, data, subject, extensions",
        "body.b[0]: `1 +` is no expression",
        "body.b[1]: there is nothing between the braces",
        "body.c: unknown filter `sha1`. Known: default, upper",
        "body.{{ data.id }}: the name of a field can't be an expression",
    ];
    for (at, start) in expected.iter().enumerate() {
        assert!(
            mistakes.iter().any(|mistake| mistake.starts_with(start)),
            "{at}: {start} is not in\n{mistakes:#?}"
        );
    }
    assert_eq!(mistakes.len(), expected.len(), "{mistakes:#?}");
}

/// HUB-4: words within quotes are no filters, and tests are known as well.
#[test]
fn hub_4_unknown_words_are_found_when_a_rule_is_written() {
    assert!(Filter::new("data.id == 'a | sha1' and data.id is not defined").is_ok());
    assert!(Filter::new(r#"data.id == "it\"s | sha1""#).is_ok());
    assert!(Filter::new("data.id is not prime").unwrap_err().reason.starts_with("unknown test `prime`"));
    assert!(
        Filter::new("data.list|map('upper')|  shuffle")
            .unwrap_err()
            .reason
            .contains("unknown filter `shuffle`")
    );
    assert!(Filter::new("now() > 5").unwrap_err().reason.contains("unknown name `now`"));
}

/// HUB-4: path and query interpolations are percent-encoded: a value can't leave its place.
#[test]
fn hub_4_a_value_stays_in_its_place_in_a_path() {
    let path = |value: &str| path_of("/invoices/{{ data.v }}/pdf?by={{ data.v }}", &json!({"v": value}));
    assert_eq!(path("A-7").unwrap(), "/invoices/A-7/pdf?by=A-7");
    assert_eq!(
        path("a/b?x=1&y=#z").unwrap(),
        "/invoices/a%2Fb%3Fx%3D1%26y%3D%23z/pdf?by=a%2Fb%3Fx%3D1%26y%3D%23z"
    );
    // Servers decode a path before they walk it, so encoding does not keep these in their place.
    for climbing in ["..", ".", "a/../b", "..\\b", "..;"] {
        assert!(path(climbing).unwrap_err().contains("leave the address"), "{climbing}");
    }
    let query = path_of("/invoices?by={{ data.v }}", &json!({"v": "../.."}));
    assert_eq!(query.unwrap(), "/invoices?by=..%2F..");
    assert_eq!(path("Zoë\r\n").unwrap(), "/invoices/Zo%C3%AB%0D%0A/pdf?by=Zo%C3%AB%0D%0A");
    assert_eq!(path_of("/n/{{ data.n }}", &json!({"n": 12.5})).unwrap(), "/n/12.5");
    assert!(path_of("/a/../b", &json!({})).unwrap_err().contains("leave the address"));
    assert!(path_of("/a b", &json!({})).unwrap_err().contains("percent-encoded"));
    assert!(path_of("//evil.example/x", &json!({})).unwrap_err().contains("another host"));
}

/// HUB-4. Trap "CR, LF, NUL in header values": refused, never on the wire.
#[test]
fn hub_4_a_header_can_not_be_split() {
    let headers = [("X-Order".to_owned(), "order {{ data.v }}".to_owned())];
    let program = RequestTemplate::new(&rule("/", &headers, None)).unwrap();
    let value = |text: &str| {
        let data = json!({"v": text});
        program
            .render(&view(&data), &data.to_string().into(), &Meter::default())
            .map(|request| request.attributes[0].clone())
    };
    assert_eq!(value("A-7").unwrap(), ("x-order".into(), "order A-7".into()));
    for evil in ["a\r\nx-admin: 1", "a\nb", "a\0b", "a\u{7f}"] {
        assert!(value(evil).unwrap_err().reason.contains("line breaks"), "{evil:?}");
    }
}

/// HUB-4: a rule without a body sends the event as it came; methods without a body send none.
#[test]
fn hub_4_without_a_body_the_event_is_sent() {
    let event = json!({"id": "evt-1", "type": "order.created", "data": order()});
    let send = |method| {
        let text = RuleText { method, ..rule("/", &[], None) };
        RequestTemplate::new(&text)
            .unwrap()
            .render(&view(&order()), &event.to_string().into(), &Meter::default())
            .unwrap()
    };
    let request = send("PUT");
    assert_eq!(
        (request.operation.as_str(), request.body),
        ("PUT", RequestBody::Event(event.to_string().into()))
    );
    assert_eq!(request.attributes, [("content-type".to_owned(), "application/json".to_owned())]);
    for method in ["GET", "HEAD", "DELETE"] {
        let request = send(method);
        assert_eq!(
            (request.operation.as_str(), request.body, request.attributes.len()),
            (method, RequestBody::Empty, 0)
        );
    }
}

/// HUB-4: filters; a missing field is no match, and told apart.
#[test]
fn hub_4_filters_take_what_they_say() {
    let judge = |text: &str| Filter::new(text).unwrap().judge(&view(&order()), &Meter::default());
    assert_eq!(judge("data.total > 100"), FilterResult::Match);
    assert_eq!(judge("{{ data.total > 1000 or not data.paid }}"), FilterResult::NoMatch);
    assert_eq!(
        judge("data.customer.name is startingwith 'Ada' and type == 'order.created'"),
        FilterResult::Match
    );
    assert_eq!(
        judge("data.items | selectattr('sku', 'eq', 'x') | map(attribute='n') | sum == 2"),
        FilterResult::Match
    );
    assert_eq!(judge("data.nope > 100"), FilterResult::Missing("data.nope".into()));
    assert_eq!(judge("data.nope | default(0) > 100"), FilterResult::NoMatch);
    assert!(
        matches!(judge("data.id - 1 > 0"), FilterResult::Wrong(reason) if reason.contains("data.id - 1"))
    );
}

/// HUB-4, SEC-3: hostile templates end within their limits.
#[test]
fn sec_3_hostile_templates_end_within_their_limits() {
    let refused = |template: &str| body(&json!(template)).unwrap_err();
    assert!(refused("{% for x in data %}{% endfor %}{{ data.id").contains("there are no statements"));
    assert!(refused("{{ range(1000000000) }}").contains("range"), "nothing that makes much of little");
    assert!(refused("{{ 'x' * 1000000000 }}").contains("needs more than"));
    assert!(refused("{{ ('x' * 100000) * 100000 }}").contains("needs more than"));
    let deep = format!("{{{{ {}1{} }}}}", "(".repeat(1_900), ")".repeat(1_900));
    assert!(!refused(&deep).is_empty(), "deep expressions are refused, not a stack overflow");
    let long = format!("{{{{ {} }}}}", vec!["1"; 3_000].join("+"));
    assert!(refused(&long).contains("too long"));
    let nested = (0..100).fold(json!("{{ data.id }}"), |inner, _| json!([inner]));
    assert!(body(&nested).unwrap_err().contains("nested deeper"));
    let list = json!({"list": (0..2_000).collect::<Vec<_>>()});
    let steps = "{{ data.list | map('string') | join('') | replace('1', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy') }}";
    let much = json!((0..200).map(|_| steps).collect::<Vec<_>>());
    let template = JsonTemplate::new(&much, "body").unwrap();
    let error = rendered(&template, &list).unwrap_err().to_string();
    assert!(error.contains("larger than 1048576 bytes"), "{error}");
}

proptest! {
    /// PRM-8: no template and no event makes it panic.
    #[test]
    fn prm_8_no_template_panics(text in "[ -~]{0,40}(\\{\\{[ -~]{0,30}\\}\\})?[ -~]{0,10}", value in "\\PC{0,20}") {
        let data = json!({"v": value, "n": 1});
        let _ = JsonTemplate::new(&json!(text), "body").map(|template| rendered(&template, &data));
        let _ = Filter::new(&text).map(|filter| filter.judge(&view(&data), &Meter::default()));
        let headers = [("x".to_owned(), text.clone())];
        let path = format!("/{text}");
        if let Ok(program) = RequestTemplate::new(&rule(&path, &headers, None))
            && let Ok(request) = program.render(&view(&data), &data.to_string().into(), &Meter::default())
        {
            prop_assert!(request.target.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }

    /// HUB-4: whatever stands in an event, a typed expression hands it on as it is.
    #[test]
    fn hub_4_whatever_stands_in_an_event_arrives(text in "\\PC{0,60}", number: i64, float in -1e12..1e12_f64) {
        let data = json!({"t": text, "n": number, "f": float, "l": [text, number]});
        let template = json!({"t": "{{ data.t }}", "n": "{{ data.n }}", "f": "{{ data.f }}", "l": "{{ data.l }}"});
        let template = JsonTemplate::new(&template, "body").unwrap();
        prop_assert_eq!(template.render(&view(&data), "body", &Meter::default()).unwrap(), data.to_string());
    }
}

/// HUB-5: the stored form of a request stays as it was, so that a database of an earlier version loses nothing.
#[test]
fn hub_5_the_stored_bytes_of_a_request_are_those_of_earlier_versions() {
    let event = Bytes::from_static(b"{}");
    let request = RenderedRequest {
        operation: "PUT".into(),
        target: "/orders/7?by=shop".into(),
        attributes: vec![("x-order".into(), "7".into())],
        body: RequestBody::Own(Bytes::from_static(b"seven")),
    };
    let stored = b"\x02\x2d\0\0\0[\"PUT\",\"/orders/7?by=shop\",[[\"x-order\",\"7\"]]]seven";
    assert_eq!(request.to_bytes(), stored);
    assert_eq!(RenderedRequest::from_bytes(stored, &event), Some(request));
}
