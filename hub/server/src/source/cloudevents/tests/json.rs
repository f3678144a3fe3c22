//! Structured and batched mode.

use super::*;

fn example() -> Value {
    json!({
        "specversion": "1.0", "type": "com.shop.order.placed", "source": "/shops/7", "subject": "A-7", "id": "e-1",
        "time": "2026-04-05T17:31:00Z", "datacontenttype": "application/json", "dataschema": "https://shop.com/order",
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "shard": 5, "test": true,
        "unset": null, "data": {"total": 120.5, "items": [1, "two", null]},
    })
}

/// The example with one thing changed.
fn changed(name: &str, value: Value) -> Result<Vec<CloudEvent>, CloudEventError> {
    let mut event = example();
    event[name] = value;
    structured(&event)
}

/// HUB-3: an event with everything, as the specification's examples have it.
#[test]
fn hub_3_a_structured_event_is_read_whole() {
    let event = one(structured(&example()));
    let trace = json!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    assert_eq!(event.extension("traceparent"), Some(&trace));
    assert_eq!(event.extension("unset"), None);
    let expected = CloudEvent {
        id: "e-1".into(),
        kind: "com.shop.order.placed".into(),
        source: "/shops/7".into(),
        time: Some("2026-04-05T17:31:00Z".into()),
        subject: Some("A-7".into()),
        dataschema: Some("https://shop.com/order".into()),
        datacontenttype: Some("application/json".into()),
        extensions: vec![
            ("shard".into(), json!(5)),
            ("test".into(), json!(true)),
            ("traceparent".into(), trace),
        ],
        data: json!({"total": 120.5, "items": [1, "two", null]}),
        data_base64: None,
    };
    assert_eq!(event, expected);
}

/// HUB-3: what is optional may be missing or null; a text as data stays a text, and is not read as JSON once more.
#[test]
fn hub_3_the_smallest_event_and_the_kinds_of_data() {
    let mut event =
        json!({"specversion": "1.0", "type": "t", "source": "s", "id": "1", "time": null, "subject": null});
    let smallest = one(structured(&event));
    assert_eq!((smallest.time, smallest.subject, smallest.datacontenttype), (None, None, None));
    assert_eq!((smallest.data, smallest.data_base64), (Value::Null, None));
    for data in [json!("{\"not\": \"read\"}"), json!(null), json!([1]), json!(12e3), json!({})] {
        event["data"] = data.clone();
        assert_eq!(one(structured(&event)).data, data);
    }
    event["data"] = json!("<order id=\"7\"/>");
    event["datacontenttype"] = json!("application/xml");
    assert_eq!(one(structured(&event)).data, "<order id=\"7\"/>");
    let event = event.as_object_mut().unwrap();
    event.remove("data");
    event.insert("data_base64".into(), json!("AAEC/w=="));
    let binary = one(structured(&Value::Object(event.clone())));
    assert_eq!((binary.data, binary.data_base64.as_deref()), (Value::Null, Some("AAEC/w==")));
}

/// HUB-3: a batch is a list, may be empty, and is whole or not at all; a mistake says in which event it is.
#[test]
fn hub_3_a_batch_is_read_whole_or_not_at_all() {
    let batch = |value: &Value| {
        let kind = [("content-type", "application/cloudevents-batch+json; charset=utf-8")];
        request(&kind, value.to_string().as_bytes())
    };
    assert_eq!(batch(&json!([])).unwrap(), []);
    let mut other = example();
    other["id"] = json!("e-2");
    let events = batch(&json!([example(), other])).unwrap();
    assert_eq!(events.iter().map(|event| &*event.id).collect::<Vec<_>>(), ["e-1", "e-2"]);
    let wrong =
        json!([example(), {"specversion": "1.0", "id": "", "source": "s", "type": "t"}, 7, {"id": "4"}]);
    assert_eq!(
        mistakes(batch(&wrong)),
        [
            "[1].id: must not be empty",
            "[2]: must be an object",
            "[3].specversion: required",
            "[3].source: required",
            "[3].type: required",
        ]
    );
    assert_eq!(mistakes(batch(&example())), [": must be an array of events"]);
    assert_eq!(batch(&json!(vec![example(); 1000])).unwrap().len(), 1000);
    let many = mistakes(batch(&json!(vec![example(); 1001])));
    assert_eq!(many, [": there are 1001 events; a batch has at most 1000"]);
    let all_wrong = mistakes(batch(&json!(vec![json!({}); 1000])));
    assert_eq!(all_wrong.len(), 101, "what is said back has a bound");
    assert_eq!(mistakes(batch(&json!(vec![json!({}); 25]))).len(), 100, "four each, and no more");
    assert_eq!(all_wrong[100], ": these are the first 100 mistakes; there are more");
}

/// HUB-3: every mistake of an event at once.
#[test]
fn hub_3_all_mistakes_are_told_at_once() {
    let wrong = json!({
        "specversion": "0.3", "id": 7, "source": null, "time": "yesterday", "Upper": 1, "list": [],
        "data": 1, "data_base64": "AA==", "dataschema": "not absolute",
    });
    assert_eq!(
        mistakes(structured(&wrong)),
        [
            "data_base64: set either `data` or `data_base64`, not both",
            "specversion: only `1.0` is read here",
            "id: must be a string",
            "source: required",
            "type: required",
            "time: must be a time by RFC 3339, such as `2026-01-31T12:00:00Z`",
            "dataschema: must be a URI",
            "Upper: the name of an attribute must consist of lower-case letters and digits",
            "list: must be a string, an integer, true or false",
        ]
    );
    let text = structured(&json!({"id": "1"})).unwrap_err().to_string();
    let missing = "`specversion`: required; `source`: required; `type`: required";
    assert_eq!(text, format!("not a valid CloudEvent: {missing}"));
}

/// HUB-3: each mistake with its words, in an event that has no other.
#[test]
fn hub_3_each_mistake_has_its_words() {
    let whole = "must be a 32-bit integer; send other numbers as strings";
    let control = "must not contain characters that attributes may not have, such as control characters";
    for (name, value, reason) in [
        ("specversion", json!("1.1"), "only `1.0` is read here"),
        ("specversion", json!(1.0), "must be a string"),
        ("id", json!(""), "must not be empty"),
        ("id", json!("a\u{0}b"), control),
        ("type", json!(null), "required"),
        ("type", json!("a\u{fffe}"), control),
        ("source", json!(""), "must not be empty"),
        ("source", json!("my shop"), "must be a URI reference"),
        ("source", json!("/100%"), "must be a URI reference"),
        ("subject", json!(""), "must not be empty"),
        ("subject", json!(false), "must be a string"),
        ("dataschema", json!("/relative"), "must be a URI"),
        ("dataschema", json!("1a:b"), "must be a URI"),
        ("dataschema", json!("https://shop.com/my order"), "must be a URI"),
        ("datacontenttype", json!("json"), "must be a media type"),
        ("datacontenttype", json!("a/b/c"), "must be a media type"),
        ("data_base64", json!("AA=="), "set either `data` or `data_base64`, not both"),
        ("shard", json!(1.5), whole),
        ("shard", json!(2_147_483_648_i64), whole),
        ("shard", json!(u64::MAX), whole),
        ("shard", json!({"a": 1}), "must be a string, an integer, true or false"),
        ("shard", json!("\u{7f}"), control),
        ("my_shard", json!(1), "the name of an attribute must consist of lower-case letters and digits"),
        ("", json!(1), "the name of an attribute must consist of lower-case letters and digits"),
        (
            "gr\u{f6}\u{df}e",
            json!(1),
            "the name of an attribute must consist of lower-case letters and digits",
        ),
    ] {
        assert_eq!(mistakes(changed(name, value.clone())), [format!("{name}: {reason}")], "{value}");
    }
    let mut event = example();
    event.as_object_mut().unwrap().remove("data");
    for (value, reason) in
        [(json!("AAE"), "must be base64"), (json!("A A="), "must be base64"), (json!(5), "must be a string")]
    {
        event["data_base64"] = value;
        assert_eq!(mistakes(structured(&event)), [format!("data_base64: {reason}")]);
    }
    for (name, value) in [
        ("source", json!("urn:x?a=%20#b")),
        ("shard", json!(i32::MIN)),
        ("id", json!("gr\u{f6}\u{df}e \u{1f600}")),
        ("datacontenttype", json!("text/plain; charset=\"utf-8\"")),
        ("data_base64", json!(null)),
    ] {
        assert!(changed(name, value.clone()).is_ok(), "{name}: {value}");
    }
    assert_eq!(mistakes(structured(&json!([]))), [": must be an object"]);
}

/// HUB-3: times are by RFC 3339, with days that exist.
#[test]
fn hub_3_a_time_is_one_that_exists() {
    let good = "2026-01-31T23:59:59Z 2026-01-31t00:00:00z 2024-02-29T12:00:00.123456789+14:00 2000-02-29T12:00:00-00:00 \
        0000-01-01T00:00:00Z 9999-12-31T23:59:59.9Z 2016-12-31T23:59:60Z 2017-01-01T05:29:60+05:30 2016-12-31T15:59:60-08:00";
    for time in good.split_whitespace() {
        assert_eq!(one(changed("time", json!(time))).time.as_deref(), Some(time));
    }
    let bad = "2026-01-31 2026-01-31T12:00Z 2026-01-31T12:00:00 2026-1-31T12:00:00Z 2026-13-01T12:00:00Z \
        2026-00-01T12:00:00Z 2026-01-00T12:00:00Z 2026-01-32T12:00:00Z 2026-04-31T12:00:00Z 2026-02-29T12:00:00Z \
        1900-02-29T12:00:00Z 2026-01-31T24:00:00Z 2026-01-31T12:60:00Z 2026-01-31T12:00:61Z 2026-01-31T12:00:60Z \
        2026-01-31T12:00:00.Z 2026-01-31T12:00:00,5Z 2026-01-31T12:00:00+24:00 2026-01-31T12:00:00+01:60 \
        2026-01-31T12:00:00+0100 2026-01-31T12:00:00ZZ 2026-01-31_12:00:00Z +026-01-31T12:00:00Z 20260131T120000Z \
        2026-01-31T12:00:00+1:00 2026-01-3\u{661}T12:00:00Z";
    for time in bad.split_whitespace().chain(["2026-01-31 12:00:00Z", " 2026-01-31T12:00:00Z", ""]) {
        assert!(mistakes(changed("time", json!(time)))[0].starts_with("time: "), "{time}");
    }
}

/// HUB-3. Trap: "JSON 100 000 levels deep, duplicate keys, huge numbers, invalid UTF-8 … → 413, 431 or 400 with a code;
/// RSS stays under its cap." The library's bound of 128 levels is what makes it an error and no stack overflow.
#[test]
fn hub_3_json_that_is_too_deep_is_an_error() {
    for open in ["[", "{\"data\":", "[{\"a\":[", " ["] {
        let body = open.repeat(100_000);
        for kind in ["application/cloudevents+json", "application/cloudevents-batch+json"] {
            let said = mistakes(request(&[("content-type", kind)], body.as_bytes()));
            assert!(said[0].starts_with("not JSON: recursion limit exceeded"), "{said:?}");
        }
        let binary = [
            ("ce-specversion", "1.0"),
            ("ce-id", "1"),
            ("ce-type", "t"),
            ("ce-source", "s"),
            ("content-type", "application/json"),
        ];
        let said = mistakes(request(&binary, body.as_bytes()));
        assert!(
            said[0].starts_with("data: the body is not valid JSON: recursion limit exceeded"),
            "{said:?}"
        );
    }
    let deep = |levels: usize| {
        let data = "[".repeat(levels) + &"]".repeat(levels);
        let body = format!(r#"{{"specversion":"1.0","id":"1","type":"t","source":"s","data":{data}}}"#);
        request(&[("content-type", "application/cloudevents+json")], body.as_bytes())
    };
    assert!(deep(126).is_ok() && deep(127).is_err());
}

/// HUB-3. Trap: "duplicate keys, huge numbers, invalid UTF-8": a name that stands twice is refused at any depth and in any
/// spelling, because others would take the first where we take the last.
#[test]
fn hub_3_json_that_can_be_read_in_two_ways_is_an_error() {
    let body = |more: &str| {
        let body =
            format!(r#"{{"specversion":"1.0","id":"1","type":"t","source":"s","x":"a:b\":\\",{more}}}"#);
        request(&[("content-type", "application/cloudevents+json")], body.as_bytes())
    };
    for more in
        [r#""id":"2""#, r#""\u0069d":"2""#, r#""data":{"a":1,"a":1}"#, r#""data":[{"b":{"a":{},"a":[]}}]"#]
    {
        assert_eq!(mistakes(body(more)), ["not JSON: duplicate field in an object"], "{more}");
    }
    for more in [
        r#""data":{"a":{"a":{"a":":"}},"b":"\":"}"#,
        r#""data":[{"a":1},{"a":1}]"#,
        r#""data":{":":1,"::":"\\"}"#,
    ] {
        assert!(body(more).is_ok(), "{more}");
    }
    for more in [r#""data":1e999"#, r#""data":"#, r#""data":NaN"#, r#""data":1} {"#, r#""data":"\ud800""#] {
        assert!(mistakes(body(more))[0].starts_with("not JSON: "), "{more}");
    }
    let kind = [("content-type", "application/cloudevents+json")];
    for raw in [&b"\"\xff\""[..], b"\xef\xbb\xbf{}", b"", b"\0"] {
        assert!(mistakes(request(&kind, raw))[0].starts_with("not JSON: "));
    }
}

/// HUB-3: a format that is not JSON, or two content types, are refused and not read as something else.
#[test]
fn hub_3_other_formats_are_refused() {
    let body = example().to_string();
    let said = |pairs: &[(&str, &str)]| mistakes(request(pairs, body.as_bytes()));
    let only = "content-type: of the formats of CloudEvents, only `application/cloudevents+json` is read in this mode";
    for kind in ["application/cloudevents+avro", "application/cloudevents", "application/cloudevents+jsonl"] {
        assert_eq!(said(&[("content-type", kind)]), [only]);
    }
    let latin = "application/cloudevents+json; charset=iso-8859-1";
    assert_eq!(said(&[("content-type", latin)]), ["content-type: JSON is in UTF-8"]);
    let twice = [("content-type", "application/cloudevents+json"), ("content-type", "text/plain")];
    assert_eq!(said(&twice), ["content-type: it stands more than once"]);
    let quoted = "application/cloudevents+json;  Charset=\"UTF-8\"; x=y";
    assert!(request(&[("content-type", quoted)], body.as_bytes()).is_ok());
}
